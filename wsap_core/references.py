"""Specs of what a user names: a registered name, `./game.py:Game`, `package.module:Game`, or an object.

The spec of an unregistered class is inferred: name and summary from the class, abilities from its members. Its
attribute `wsap_spec`, a mapping of the spec's fields, overrides what is inferred:

    class Duel:
        wsap_spec = {"seats": (2, 2), "timing": "simultaneous"}
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar, cast, get_type_hints

from wsap_core.errors import ConfigError, UnknownNameError, UsageError
from wsap_core.factories import build
from wsap_core.host import NAME, PluginHost
from wsap_core.loading import MODEL_AGENT, load_object, names_file, names_model, names_object
from wsap_core.protocol import Part
from wsap_core.protocol.base import wire_type
from wsap_core.seams.context import Context
from wsap_core.seams.game import MEMBERS, has_methods
from wsap_core.specs import Ability, AdapterSpec, AgentSpec, Timing, problems_of

# Any, in this module: a reference may name anything.

SPEC_ATTRIBUTE = "wsap_spec"
"""The attribute of a class that overrides fields of its spec."""

_S = TypeVar("_S", AdapterSpec, AgentSpec)


class ConstantFactory:
    """A factory that returns an existing object, such as one created in a notebook."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __call__(self) -> object:
        """Return the object, the same one each time."""
        return self.value


def load_adapter_spec(reference: object, host: PluginHost | None = None) -> AdapterSpec:
    """Return the spec of a game: a name registered with `host` (by default all plugins), with `:NAME` for a member of
    a family; `./file.py:Class` or `module:Class`; a class, factory, adapter or spec.

    Raises:
        UnknownNameError: there is no game, file or attribute of that name; the message suggests similar ones.
        DuplicateNameError: several plugins claim the name.
        UsageError: the reference is invalid or names something that is not a game.
        PluginError: the file or module can't be imported.
        ConfigError: its `wsap_spec` is invalid.
    """
    if isinstance(reference, str) and not _in_file_or_package(reference):
        host = host or PluginHost.discovered()
        stem = reference.partition(":")[0]
        family = stem in host.games.names() and host.games.get(stem).family
        if family or not names_object(reference) or importlib.util.find_spec(stem) is None:
            return host.games.get(reference)
    target, name = _target(reference)
    if isinstance(target, AdapterSpec):
        return target
    face = _face_of(target, ("observe", "act"), f"{name} is not a game: it has no", Context())
    abilities, names, timing = _abilities_of_game(face), _names_of_seats(face), getattr(face, "timing", "free")
    most = len(names) or (2 if "multi-seat" in abilities else 1)
    spec = AdapterSpec(
        _kebab(name),
        _summary(face, name),
        _factory(target),
        title=name,
        abilities=abilities,
        seats=(0 if "lives" in abilities else most, most),
        seat_names=names,
        timing=cast(Timing, timing if isinstance(timing, str) else "free"),
        wire_types=_own_wire_types(face),
    )
    found = _overridden(spec, face)
    if found.default_agent != spec.default_agent:
        host = host or PluginHost.discovered()
        if problem := host.missing_agent(found):
            raise ConfigError(f"The spec of {found.name!r} is invalid: {problem}")
    return found


def load_agent_spec(reference: object, host: PluginHost | None = None) -> AgentSpec:
    """Return the spec of an agent, like `load_adapter_spec` for games. A model's address means the agent `llm`."""
    if isinstance(reference, str) and names_model(reference):
        reference = MODEL_AGENT
    if isinstance(reference, str) and not names_object(reference):
        return (host or PluginHost.discovered()).agents.get(reference)
    target, name = _target(reference)
    if isinstance(target, AgentSpec):
        return target
    face = _face_of(target, ("decide",), f"{name} is not an agent: it has no", Context())
    abilities: tuple[Ability, ...] = ("snapshot",) if _has(face, "snapshot", "restore") else ()
    return _overridden(AgentSpec(_kebab(name), _summary(face, name), _factory(target), abilities), face)


def _in_file_or_package(text: str) -> bool:
    """Return whether a text names an object and can't be the name of a registered game."""
    return names_file(text) or (names_object(text) and not NAME.fullmatch(text.partition(":")[0]))


def _target(reference: object) -> tuple[Any, str]:
    target: Any = load_object(reference) if isinstance(reference, str) else reference
    named = target if isinstance(target, type) or inspect.isroutine(target) else type(target)
    return target, getattr(named, "__name__", type(target).__name__)


def _factory(target: Any) -> Callable[..., Any]:
    return cast(Callable[..., Any], target) if _makes(target) else ConstantFactory(target)


def _makes(target: Any) -> bool:
    """Return whether the target creates a game or agent, rather than being one."""
    return isinstance(target, type) or (callable(target) and not _has(target, "act") and not _has(target, "decide"))


def _face_of(target: Any, members: tuple[str, ...], complaint: str, context: Context) -> Any:
    """Return the class or object to inspect; for a factory function its return annotation, or what it creates."""
    face = target
    if _makes(target) and not isinstance(target, type):
        try:
            face = get_type_hints(target).get("return")
        except (NameError, TypeError):
            face = None
        if not _has(face, *members):
            face = build(target, context)
    missing = [m for m in members if not hasattr(face, m)]
    if missing:
        raise UsageError(f"{complaint} {missing[0]}().")
    return face


def _has(face: Any, *members: str) -> bool:
    return all(callable(getattr(face, member, None)) for member in members)


def _abilities_of_game(face: Any) -> tuple[Ability, ...]:
    seen = {ability: has_methods(face, ability) for ability in MEMBERS if ability != "irreversible"}
    seen["seed"] = _takes(getattr(face, "reset", None), "seed")
    seen["messages"] = hasattr(face, "mailbox") or bool(getattr(face, "talks", False))
    seen["lives"] = inspect.iscoroutinefunction(getattr(face, "advance", None))
    return tuple(ability for ability, there in seen.items() if there)


def _names_of_seats(face: Any) -> tuple[str, ...]:
    names = getattr(face, "seats", ())
    return tuple(names) if isinstance(names, tuple | list) and all(isinstance(n, str) for n in names) else ()


def _takes(method: Any, parameter: str) -> bool:
    try:
        return method is not None and parameter in inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False


def _own_wire_types(face: Any) -> tuple[type, ...]:
    """Return the subclasses of protocol types defined in the module of a class."""
    cls = face if isinstance(face, type) else type(face)
    module = sys.modules.get(cls.__module__)
    classes = [v for v in vars(module).values() if isinstance(v, type)] if module is not None else []
    own = [c for c in classes if issubclass(c, Part) and c.__module__ == cls.__module__]
    return tuple(dict.fromkeys(c for c in own if wire_type(c) is not None))


def _summary(face: Any, name: str) -> str:
    cls = face if isinstance(face, type) else type(face)
    first = (inspect.cleandoc(cls.__doc__ or "").splitlines() or [""])[0]
    return first or name


def _kebab(name: str) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name)
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or "unnamed"


def _overridden(spec: _S, face: Any) -> _S:
    given = getattr(face, SPEC_ATTRIBUTE, None) or {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{SPEC_ATTRIBUTE} of {spec.name!r} must be a mapping of fields, not {type(given).__name__}.")
    known = {f.name for f in fields(spec)} - {"factory"}
    for key in given:
        if key not in known:
            raise ConfigError(str(UnknownNameError(f"field of {type(spec).__name__}", str(key), known)))
    values: Any = {str(k): tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    found = replace(spec, **values)
    if wrong := problems_of(found):
        raise ConfigError(f"The spec of {spec.name!r} is invalid: {' '.join(wrong)}")
    return found
