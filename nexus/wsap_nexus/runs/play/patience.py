"""Ends calls of games and agents that do not return, and names them.

Their code runs in the event loop, which can do nothing else until a call returns. Signal handlers of Python run between
any two instructions, also in a game's endless loop, so one is called now and then to see whether the event loop still
answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import reprlib
import signal
import sysconfig
import threading
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from wsap_core.errors import AgentError, WorldError
from wsap_core.protocol import Action
from wsap_core.untrusted import single_line
from wsap_nexus.runs.play import asking

MOST = 120.0
"""Most seconds of processor time for one call, which do not depend on how busy the machine is; as in `wsap check`."""
PARTS = 8
"""How often the event loop is asked in that time."""

_STDLIB = Path(sysconfig.get_path("stdlib"))
_OURS = ("wsap_core", "wsap_nexus", "wsap_eval")
_LOOP = ("asyncio", "selectors", "contextlib")


class CallTooLong(BaseException):
    """Raised where a call is that does not return; no game's `except Exception` catches it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"a call took more than {seconds:g} s of processor time")
        self.seconds = seconds

    def as_error(self, game: str) -> WorldError | AgentError:
        """Return the error of the agent or game whose call it was, with the call, its file and its line."""
        places = list(traceback.walk_tb(self.__traceback__))
        code = asking.ask.__code__
        asked = next((frame.f_locals for frame, _ in places if frame.f_code is code), None)
        who = f"The game {game!r}" if asked is None else str(asked["who"])
        said = f"{who} did not return{_where(places)} within {self.seconds:g} s of processor time."
        return WorldError(said) if asked is None else AgentError.of(str(asked["seat"]), said)


class _Watch:
    """A handler of SIGPROF that raises `CallTooLong` if the event loop has not answered for some calls."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self.loop, self._seconds = loop, seconds
        self.runs = 0
        """The number of runs in play that it watches."""
        self._waited = 0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self._waited += 1
        if self._waited == 1:
            self.loop.call_soon_threadsafe(self._answered)
        elif self._waited > PARTS and frame is not None and _package(frame) not in _LOOP:
            raise CallTooLong(self._seconds)

    def _answered(self) -> None:
        self._waited = 0


@contextlib.contextmanager
def watched(seconds: float | None = None) -> Iterator[None]:
    """Raise `CallTooLong` in a call that keeps the running event loop busy for so many seconds of processor time.

    Only in the main thread, and where signals allow it.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return
    loop, before = asyncio.get_running_loop(), signal.getsignal(signal.SIGPROF)
    if isinstance(before, _Watch):
        watch = before
    elif signal.getitimer(signal.ITIMER_PROF)[0]:
        yield  # `wsap check` or a profiler uses the timer
        return
    else:
        seconds = MOST if seconds is None else seconds
        watch = _Watch(loop, seconds)
        signal.signal(signal.SIGPROF, watch)
        signal.setitimer(signal.ITIMER_PROF, seconds / PARTS, seconds / PARTS)
    watch.runs += 1
    try:
        yield
    finally:
        watch.runs -= 1
        if not watch.runs:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, signal.SIG_IGN)  # one may still be on its way
            signal.signal(signal.SIGPROF, signal.SIG_DFL if before is watch else before)


def _where(places: list[tuple[FrameType, int]]) -> str:
    """Return the author's call, and where it was: " from act(Action('ring')), at game.py:7,"."""
    own = [place for place in places if _is_author(place[0])]
    if not own:
        return ""
    entry = own[0][0]
    near = [place for place in own if _file(place[0]).parent == _file(entry).parent]
    names = entry.f_code.co_varnames[: entry.f_code.co_argcount]
    given = (_short(entry.f_locals[name]) for name in names if name not in ("self", "cls") and name in entry.f_locals)
    frame, line = near[-1]
    return f" from {entry.f_code.co_name}({', '.join(given)}), at {_shown(_file(frame))}:{line},"


def _is_author(frame: FrameType) -> bool:
    file = _file(frame)
    if file.is_relative_to(_STDLIB) and "site-packages" not in file.parts:
        return False
    return _package(frame) not in _OURS or ".builtin." in frame.f_globals["__name__"]


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _file(frame: FrameType) -> Path:
    return Path(frame.f_code.co_filename)


def _shown(file: Path) -> str:
    return file.relative_to(Path.cwd()).as_posix() if file.is_relative_to(Path.cwd()) else file.name


def _short(value: object) -> str:
    if isinstance(value, Action):
        given = f", {_short(dict(value.parameters))}" if value.parameters else ""
        return f"Action({value.name!r}{given})"
    try:
        return single_line(reprlib.repr(value))[:60]
    except Exception:  # a game's own __repr__
        return f"<{type(value).__name__}>"
