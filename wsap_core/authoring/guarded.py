"""Refuses a name of a base class that a subclass uses for something else by accident."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from wsap_core.errors import PluginError


class Guarded:
    """A base of classes that authors subclass: an author's class or object that uses a name of them for anything else
    is refused, with the name.

    The classes that authors subclass give `keeps`, the attributes that an author may set, with their types (often
    none). All others that their methods set are theirs alone, and so are methods whose names start with `_`. A public
    method may be replaced by one that can be called like it.
    """

    _kit: ClassVar[Mapping[str, Any]] = {}
    """Name -> the method or property, the type of an attribute that authors may set, None for one that they may not."""
    _kit_class: ClassVar[type]

    def __init_subclass__(cls, keeps: Mapping[str, type] | None = None) -> None:
        super().__init_subclass__()
        if keeps is None:
            for name, value in vars(cls).items():
                if name in cls._kit and not _replaces(name, value, cls._kit[name]):
                    base = cls._kit_class.__name__
                    raise TypeError(f"{cls.__name__}.{name} can't stand for that of {base}; choose another name.")
            return
        own = {name: v for name, v in vars(cls).items() if hasattr(v, "__get__") and not name.startswith("__")}
        code = (line for v in vars(cls).values() if inspect.isfunction(v) for line in dis.get_instructions(v))
        stored = dict.fromkeys(line.argval for line in code if line.opname == "STORE_ATTR")
        cls._kit, cls._kit_class = {**stored, **cls._kit, **own, **keeps}, cls

    if not TYPE_CHECKING:  # type checkers would let any attribute be set

        def __setattr__(self, name: str, value: object) -> None:
            given = staticmethod(value) if inspect.isfunction(value) else value  # it is not bound to the instance
            if name in self._kit and not _replaces(name, given, self._kit[name]):
                base = self._kit_class
                setter = str(sys._getframe(1).f_globals.get("__name__"))
                if setter.partition(".")[0] != base.__module__.partition(".")[0]:
                    raise PluginError(
                        f"{type(self).__name__} sets self.{name}, a name of {base.__name__}; use another."
                    )
            object.__setattr__(self, name, value)


def _replaces(name: str, value: object, kit: Any) -> bool:
    """Return whether an author's value can stand for what the base class has under a name."""
    if isinstance(kit, type):
        return isinstance(value, kit) or hasattr(value, "dtype")  # numpy has numbers of its own
    if kit is None or name.startswith("_"):
        return False
    if not inspect.isfunction(kit):
        return hasattr(value, "__get__")
    if not inspect.isfunction(value):
        return callable(getattr(value, "__func__", value))
    wanted = inspect.signature(kit).parameters.values()
    named = {p.name: p for p in wanted if p.kind is p.KEYWORD_ONLY}
    try:
        inspect.signature(value).bind(*(p for p in wanted if p.kind <= p.POSITIONAL_OR_KEYWORD), **named)
    except TypeError:
        return False
    return True
