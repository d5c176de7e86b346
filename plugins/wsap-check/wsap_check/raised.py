"""Describes an exception of a game: the call that raised it, the file and the line."""

from __future__ import annotations

import reprlib
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import wsap_core
from wsap_core.errors import WsapError
from wsap_core.protocol import Action
from wsap_core.untrusted import single_line

_KERNEL = Path(wsap_core.__file__).parent
_RUNTIME = (Path(__file__).parent, _KERNEL / "worlds", _KERNEL / "seams", _KERNEL / "factories.py")
"""Code that calls games. The kernel's own games and its authoring kit count as games."""
_STDLIB = Path(sysconfig.get_path("stdlib"))


def describe(error: BaseException, call: str = "") -> str:
    """Return what an exception of a game or an agent says, in one sentence.

    Args:
        error: the exception, or the `WsapError` that it became.
        call: the call that was made; read from the traceback when empty.
    """
    cause = error.__cause__ if isinstance(error, WsapError) else None
    root = error if cause is None or isinstance(cause, WsapError) else cause
    frames = [place for place in traceback.walk_tb(root.__traceback__) if _is_author(Path(_file(place[0])))]
    if not frames:
        return single_line(error) if isinstance(error, WsapError) else f"It raised {_said(root)}."
    frame, line = _innermost(frames)
    return f"{call or _call(frames[0][0])} raised {_said(root)} at {_shown(Path(_file(frame)))}:{line}"


def called(name: str, *arguments: object) -> str:
    """Return a call as its author would write it, shortened: `act(Action('move', {'to': 'north'}))`."""
    return f"{name}({', '.join(map(_argument, arguments))})"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {single_line(error)[:300] or 'no message'}"


def _is_author(file: Path) -> bool:
    if file.is_relative_to(_STDLIB) and "site-packages" not in file.parts:
        return False
    return not any(file.is_relative_to(place) for place in _RUNTIME)


def _innermost(frames: list[tuple[FrameType, int]]) -> tuple[FrameType, int]:
    """Return the last frame in the author's own code: that, and not a library, is where to look."""
    first = next((f for f, _ in frames if not Path(_file(f)).is_relative_to(_KERNEL)), frames[0][0])
    home = _home(Path(_file(first)))
    return [place for place in frames if Path(_file(place[0])).is_relative_to(home)][-1]


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


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename


def _call(frame: FrameType) -> str:
    code, local = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    name = type(local["self"]).__name__ if code.co_name == "__init__" and "self" in local else code.co_name
    return called(name, *(local[n] for n in _given(names) if n in local))


def _given(names: tuple[str, ...]) -> Iterator[str]:
    yield from (name for name in names if name not in ("self", "cls"))


def _argument(value: object) -> str:
    if isinstance(value, Action):
        given = f", {_short(dict(value.parameters))}" if value.parameters else ""
        return f"Action({_short(value.name)}{given})"
    return _short(value)


def _short(value: object) -> str:
    try:
        return single_line(reprlib.repr(value))[:80]
    except Exception:  # a game's own __repr__
        return f"<{type(value).__name__}>"
