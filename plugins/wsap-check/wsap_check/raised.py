"""Describes exceptions of games: the call that raised, the file and the line."""

from __future__ import annotations

import contextlib
import inspect
import linecache
import reprlib
import sysconfig
import traceback
from pathlib import Path
from types import FrameType

import wsap_core
from wsap_core.errors import WsapError
from wsap_core.protocol import Action
from wsap_core.untrusted import error_line, single_line

_KERNEL = Path(wsap_core.__file__).parent
_OURS = (Path(__file__).parent, _KERNEL)
_STDLIB = Path(sysconfig.get_path("stdlib"))

Place = tuple[FrameType, int]
"""A frame of a traceback, and its line."""


def describe(error: BaseException, call: str = "") -> str:
    """Return a sentence about an exception of a game or agent (or the `WsapError` that it became), with the call (by
    default from the traceback) and the author's file and line. If only our code is on the stack, because it could not
    handle what the author's code returned, the sentence says so and names the class."""
    cause = error.__cause__ if isinstance(error, WsapError) else None
    root = error if cause is None or isinstance(cause, WsapError) else cause
    said = error_line(root, kind=True)
    places = list(traceback.walk_tb(root.__traceback__))
    if isinstance(root, NotImplementedError) and places and _file(places[-1]).is_relative_to(_KERNEL):
        return f"{_author(places)} has no {places[-1][0].f_code.co_name}() of its own, and needs one"
    own = [place for place in places if _is_author(_file(place))]
    if own := [place for place in own if not _file(place).is_relative_to(_KERNEL)] or own:
        frame, line = _innermost(own)
        entry = next(p for p in places if _is_author(_file(p)) or _file(p).is_relative_to(_KERNEL / "authoring"))
        return f"{call or _call(entry[0])} raised {said} at {_shown(_file((frame, line)))}:{line}"
    if isinstance(root, WsapError) or not places:
        return single_line(root) if isinstance(root, WsapError) else f"It raised {said}."
    doing = next(place for place in reversed(places) if any(map(_file(place).is_relative_to, _OURS)))
    source = linecache.getline(str(_file(doing)), doing[1]).strip()
    return f"{call or 'The check'} can't go on with what {_author(places)} returned: {said}, in `{source}`"


def called(name: str, *arguments: object) -> str:
    """Return a call in source form, shortened: `act(Action('move', {'to': 'north'}))`."""
    return f"{name}({', '.join(map(_short, arguments))})"


def _is_author(file: Path) -> bool:
    """Return whether a file is neither ours (except the kernel's own games) nor Python's."""
    if file.is_relative_to(_STDLIB) and "site-packages" not in file.parts:
        return False
    return file.is_relative_to(_KERNEL / "builtin") or not any(file.is_relative_to(place) for place in _OURS)


def _innermost(places: list[Place]) -> Place:
    # The last one in the package or folder of the first, rather than in a library.
    first = _file(places[0])
    home = _home(first)
    folder = first.parent if home == first and first.parent.name != "site-packages" else home
    near = (place for place in places if _file(place).is_relative_to(folder))
    return [p for p in near if "site-packages" not in _file(p).relative_to(folder).parts][-1]


def _author(places: list[Place]) -> str:
    """Return the author's class on the stack and its place, or "the game" if there is none."""
    for frame, _ in places:
        for value in frame.f_locals.values():
            with contextlib.suppress(Exception):  # of a class without a file
                source = Path(inspect.getfile(type(value)))
                if hasattr(value, "action_space") and _is_author(source):
                    return f"{type(value).__name__} at {_shown(source)}:{inspect.getsourcelines(type(value))[1]}"
    return "the game"


def _home(file: Path) -> Path:
    """Return the top folder of the package that a file belongs to, or the file itself."""
    home = file
    while (home.parent / "__init__.py").exists():
        home = home.parent
    return home


def _shown(file: Path) -> str:
    for top in (Path.cwd(), _home(file).parent):
        if file.is_relative_to(top):
            return file.relative_to(top).as_posix()
    return file.name


def _file(place: Place) -> Path:
    return Path(place[0].f_code.co_filename)


def _call(frame: FrameType) -> str:
    code, local = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = type(local["self"]).__name__ if code.co_name == "__init__" and "self" in local else code.co_name
    return called(name, *(local[n] for n in names if n in local and n not in ("self", "cls")))


def _short(value: object) -> str:
    if isinstance(value, Action):
        given = f", {_short(dict(value.parameters))}" if value.parameters else ""
        return f"Action({_short(value.name)}{given})"
    try:
        return single_line(reprlib.repr(value))[:80]
    except Exception:  # a game's own __repr__
        return f"<{type(value).__name__}>"
