"""The plugin host: what is installed, its origin, and its problems."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Generic, TypeVar, cast

import pluggy

import wsap_core
from wsap_core import hookspecs
from wsap_core.discovery import FoundPlugin, find_plugins
from wsap_core.errors import DuplicateNameError, UnknownNameError
from wsap_core.loading import names_model, names_object
from wsap_core.specs import AdapterSpec, AgentSpec, BackendSpec, CommandSpec, MemorySpec, Spec, ToolSpec, problems_of
from wsap_core.untrusted import error_line

S = TypeVar("S")

DISABLE_VARIABLE = "WSAP_DISABLE_PLUGINS"
"""Environment variable: plugin names to block, separated by commas."""

BUILTIN = FoundPlugin("core", "wsap_core.builtin.plugin", "wsap-core", wsap_core.__version__)
"""The kernel's own parts, registered through the same hooks as any plugin's."""

NAME = re.compile(r"[a-z0-9][a-z0-9-]*")
"""A valid name of a spec."""


@dataclass(frozen=True)
class Registration(Generic[S]):
    """A spec with its origin."""

    spec: S
    plugin: str
    distribution: str


@dataclass
class PluginReport:
    """An installed plugin, as `wsap plugins` lists it."""

    name: str
    distribution: str
    version: str
    module: str
    status: str = "ok"
    """"ok", "warning" (works, with problems), "broken" or "disabled"."""
    reasons: list[str] = field(default_factory=list)
    """Its problems, one sentence each."""
    provides: dict[str, list[str]] = field(default_factory=dict)
    """Kind ("games", "agents", ...) -> names."""

    def add_problem(self, reason: str, *, broken: bool = False) -> None:
        """Add a problem; a broken plugin stays broken."""
        self.reasons.append(reason)
        if broken or self.status == "broken":
            self.status = "broken"
        elif self.status == "ok":
            self.status = "warning"


class Registry(Generic[S]):
    """The registered specs of one kind, by name."""

    def __init__(self, holds: type[S], kind: str, plural: str) -> None:
        self.holds = holds
        """The class of the specs."""
        self.kind = kind
        """The noun for one of them, such as `game`."""
        self.plural = plural
        self._entries: dict[str, list[Registration[S]]] = {}
        self._former: dict[str, list[Registration[S]]] = {}

    def add(self, entry: Registration[S]) -> None:
        """Register a spec; a second one of the same name makes the name unusable."""
        self._entries.setdefault(cast(Spec, entry.spec).name, []).append(entry)
        for name in getattr(entry.spec, "former_names", ()):
            self._former.setdefault(name, []).append(entry)

    def get(self, name: str) -> S:
        """Return the spec of that name; `family:NAME` is a member of a family of games.

        Raises:
            UnknownNameError: there is none; the message suggests similar names.
            DuplicateNameError: several plugins claim it.
        """
        return self.entry(name).spec

    def entry(self, name: str) -> Registration[S]:
        """Return the spec of that name with its origin; raises like `get`."""
        name, colon, member = name.partition(":")
        entries = self._entries.get(name) or self._former.get(name)
        if not entries:
            listed = self.kind in ("game", "agent")
            known = ", ".join(sorted(self._entries)) or "none"
            hint = f"`wsap {self.kind}s` lists what is installed." if listed else f"There are: {known}."
            raise UnknownNameError(self.kind, name, self._entries, hint=hint)
        if len(entries) > 1:
            raise DuplicateNameError(
                f"The {self.kind} {name!r} is claimed by {_origins(entries)}; "
                f"block one by its plugin name, for instance {DISABLE_VARIABLE}={entries[-1].plugin}."
            )
        if colon and isinstance(spec := entries[0].spec, AdapterSpec):
            return replace(entries[0], spec=cast(S, spec.member(member)))
        return entries[0]

    def names(self) -> tuple[str, ...]:
        """Return the usable names, sorted; a name claimed twice is not usable."""
        return tuple(sorted(n for n, e in self._entries.items() if len(e) == 1))

    def has(self, name: str) -> bool:
        """Return whether anything is registered by that name, usable or not."""
        return name in self._entries

    def all(self) -> list[Registration[S]]:
        """Return all entries, sorted by name and plugin, including those whose name is claimed twice."""
        return [e for _, entries in sorted(self._entries.items()) for e in sorted(entries, key=lambda e: e.plugin)]

    def is_builtin(self, name: str) -> bool:
        """Return whether the kernel registers that name."""
        own = (BUILTIN.name, BUILTIN.distribution)
        return any((e.plugin, e.distribution) == own for e in self._entries.get(name, ()))

    def duplicates(self) -> dict[str, list[Registration[S]]]:
        """Return the names, former ones among them, that several plugins claim."""
        claims = {n: [*self._entries.get(n, ()), *self._former.get(n, ())] for n in {*self._entries, *self._former}}
        return {n: e for n, e in sorted(claims.items()) if len(e) > 1}


def _may_be_found(reference: str) -> bool:
    """Return whether the top package of a reference exists, without importing it."""
    package = reference.partition(":")[0].partition(".")[0]
    try:
        return package in sys.modules or importlib.util.find_spec(package) is not None
    except ValueError:  # an empty name
        return False


def _origins(entries: Iterable[Registration[Any]]) -> str:
    return " and ".join(f"{e.plugin!r} ({e.distribution})" for e in entries)


class PluginHost:
    """Loads plugins and keeps their specs with their origin; a failing plugin affects no other. Blocks the plugins
    named in the variable `WSAP_DISABLE_PLUGINS` of `environ` (by default the environment of the process)."""

    def __init__(self, *, environ: Mapping[str, str] | None = None) -> None:
        blocked = (os.environ if environ is None else environ).get(DISABLE_VARIABLE, "")
        self._disabled = {n.strip() for n in blocked.split(",") if n.strip()}
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self.rows: list[PluginReport] = []
        """Every plugin that was found, in the order it was loaded."""
        self._plugins: list[tuple[object, PluginReport]] = []
        self._registries: dict[str, Registry[Any]] = {}
        self.games = self._registry("wsap_adapters", AdapterSpec, "game")
        self.agents = self._registry("wsap_agents", AgentSpec, "agent")
        self.backends = self._registry("wsap_backends", BackendSpec, "backend")
        self.memories = self._registry("wsap_memories", MemorySpec, "memory", "memories")
        self.tools = self._registry("wsap_tools", ToolSpec, "tool")
        self.commands = self._registry("wsap_commands", CommandSpec, "command")

    def _registry(self, hook: str, holds: type[S], kind: str, plural: str = "") -> Registry[S]:
        self._registries[hook] = registry = Registry(holds, kind, plural or f"{kind}s")
        return registry

    @classmethod
    def discovered(cls) -> PluginHost:
        """Return a host with the kernel's parts and all installed plugins."""
        host = cls()
        host.load(BUILTIN)
        for found in find_plugins():
            host.load(found)
        host.note_duplicates()
        host.note_missing_agents()
        return host

    def note_missing_agents(self) -> None:
        """Report each game whose default agent is not installed as a problem of its plugin."""
        for entry in self.games.all():
            if problem := self.missing_agent(entry.spec):
                rows = (row for row in self.rows if (row.name, row.distribution) == (entry.plugin, entry.distribution))
                for row in rows:
                    row.add_problem(f"The game {entry.spec.name!r}: {problem}")

    def missing_agent(self, spec: AdapterSpec) -> str:
        """Return what is wrong if the default agent of a game is not registered; a reference may name any other."""
        name = spec.default_agent
        if names_object(name) or names_model(name) or self.agents.has(name):
            return ""
        return f"default_agent is {name!r}. {UnknownNameError('agent', name, self.agents.names())}"

    def add_hook(self, specification: ModuleType, hook: str, kind: type[S], noun: str) -> Registry[S]:
        """Collect a hook that another distribution defines, from plugins already loaded and from later ones.

        Plugins mark it with `hookimpl(optionalhook=True)`, so that they also load where it is not collected.
        The module `specification` marks it with `hookspec`; it returns specs of class `kind`, called `noun` in
        messages.
        """
        if hook not in self._registries:
            self._manager.add_hookspecs(specification)
            self._registry(hook, kind, noun)
            for plugin, row in self._plugins:
                self._collect_hook(hook, plugin, row)
        return self._registries[hook]

    def load(self, found: FoundPlugin) -> PluginReport:
        """Import and register a plugin; failures are added to its report."""
        row = PluginReport(found.name, found.distribution, found.version, found.module)
        if self._blocked(row):
            return row
        if found.problem:
            row.add_problem(found.problem, broken=True)
            return row
        try:
            with redirect_stdout(sys.stderr):  # which may be JSON
                module = importlib.import_module(found.module)
        except KeyboardInterrupt:
            raise  # the user's; anything else is the plugin's, sys.exit() included
        except BaseException as error:
            row.add_problem(f"{found.module} can't be imported: {error_line(error, kind=True)}", broken=True)
            return row
        self._register(module, row)
        return row

    def register(self, plugin: object, name: str, *, distribution: str = "", version: str = "") -> PluginReport:
        """Register a plugin object, such as one defined in a test or a notebook."""
        row = PluginReport(name, distribution or name, version, getattr(plugin, "__name__", type(plugin).__name__))
        if not self._blocked(row):
            self._register(plugin, row)
        return row

    def _blocked(self, row: PluginReport) -> bool:
        self.rows.append(row)
        if blocked := row.name in self._disabled:
            row.status = "disabled"
            row.reasons.append(f"Blocked by name ({DISABLE_VARIABLE} or the caller).")
        return blocked

    def note_duplicates(self) -> None:
        """Report each name that several plugins claim as a problem of these plugins."""
        for registry in self._registries.values():
            for name, entries in registry.duplicates().items():
                use = "means the one of that name now" if name in registry.names() else "can't be used"
                reason = f"The {registry.kind} {name!r} is claimed by {_origins(entries)}; it {use}."
                for row in self.rows:
                    if row.name in {e.plugin for e in entries} and reason not in row.reasons:
                        row.add_problem(reason)

    def _register(self, plugin: object, row: PluginReport) -> None:
        self._report_misspellings(plugin, row)
        try:
            self._manager.register(plugin, f"{row.name}:{row.distribution}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            row.add_problem(f"It can't be registered: {error_line(error, kind=True)}", broken=True)
            return
        self._plugins.append((plugin, row))
        for hook in self._registries:
            self._collect_hook(hook, plugin, row)

    def _collect_hook(self, hook: str, plugin: object, row: PluginReport) -> None:
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            if implementation.plugin is plugin:
                self._collect(hook, implementation.function, self._registries[hook], row)

    def _collect(self, hook: str, function: Any, registry: Registry[Any], row: PluginReport) -> None:
        if inspect.iscoroutinefunction(function):
            row.add_problem(f"{hook} is async; hooks are plain functions.", broken=True)
            return
        try:
            specs = list(function() or ())
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            row.add_problem(f"{hook} raised {error_line(error, kind=True)}", broken=True)
            return
        for spec in specs:
            if not isinstance(spec, registry.holds):
                row.add_problem(f"{hook} returned a {type(spec).__name__}; expected {registry.holds.__name__}.")
                continue
            name = cast(Spec, spec).name
            if not isinstance(cast(Any, name), str) or not NAME.fullmatch(name):
                row.add_problem(f"{hook} returned the invalid name {name!r}; use a-z, digits and dashes.")
                continue
            if isinstance(spec, Spec) and (wrong := problems_of(spec)):
                row.add_problem(f"The {registry.kind} {name!r} can't be used: {' '.join(wrong)}")
                continue
            if row.module != BUILTIN.module and registry.is_builtin(name):
                row.add_problem(f"The {registry.kind} {name!r} is built in; a plugin can't replace it.")
                continue
            registry.add(Registration(cast(Any, spec), row.name, row.distribution))
            row.provides.setdefault(registry.plural, []).append(name)
            for reference in spec.wire_types if isinstance(spec, AdapterSpec) else ():
                if isinstance(reference, str) and not _may_be_found(reference):
                    row.add_problem(f"wire_types of the game {name!r} names {reference!r}: there is no such module.")

    def _report_misspellings(self, plugin: object, row: PluginReport) -> None:
        for name in sorted(vars(plugin) if hasattr(plugin, "__dict__") else dir(plugin)):
            options = self._manager.parse_hookimpl_opts(plugin, name)
            if options is not None and name not in self._registries and not options["optionalhook"]:
                row.add_problem(str(UnknownNameError("hook", name, self._registries)))
            elif options is None and name in self._registries:
                row.add_problem(f"{name} is not marked with @hookimpl, so it is not called.")
