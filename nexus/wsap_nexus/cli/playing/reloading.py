"""`wsap play --reload`: the game is started anew whenever one of its files is saved."""

from __future__ import annotations

import contextlib
import importlib.util
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from wsap_core.errors import UsageError
from wsap_core.loading import names_file, source_files
from wsap_core.untrusted import single_line

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

_GLANCE = 0.2
"""Seconds between two looks at the files."""
_PATIENCE = 5.0
"""Seconds that a run has to stop before it is asked more firmly."""


def play_anew(game: str, words: Sequence[str]) -> int:
    """Play in another process with these arguments of `wsap`, and anew whenever a file of the game is saved.

    It goes on until Ctrl-C, and returns the exit status: 130.

    Raises:
        UsageError: the game has no files that could be saved.
    """
    command = [sys.executable, "-P", "-m", "wsap_core", *words]
    with _Ended.told() as ended:
        while not ended.asked():
            files = files_of(game)
            before = _stamps(files)
            run = subprocess.Popen(command)
            while run.poll() is None and not ended.asked() and not _changed(before):
                time.sleep(_GLANCE)
            _stop(run, interrupted=ended.asked())
            if not ended.asked() and not _changed(before):
                click.echo(f"Waiting until {_shown(files)} is saved; Ctrl-C ends this.", err=True)
            while not ended.asked() and not _changed(before):
                time.sleep(_GLANCE)
            if not ended.asked():
                click.echo(f"\n{_shown(files)} was saved; the game starts anew.", err=True)
    return INTERRUPTED


def files_of(game: str) -> tuple[Path, ...]:
    """Return the Python files of a game, the most important first; `UsageError` if there are none."""
    if names_file(game):
        place, _, attribute = game.rpartition(":")
        path = Path(place if place and not attribute.endswith(".py") else game).expanduser()
        if not path.is_file():
            raise UsageError(f"There is no file {single_line(game)[:100]!r}, whose changes --reload could wait for.")
        return source_files(path)
    from wsap_core.references import load_adapter_spec  # deferred for weight

    factory = load_adapter_spec(game).factory
    module = factory.partition(":")[0] if isinstance(factory, str) else getattr(factory, "__module__", "")
    own, package = _origin(module), _origin(module.partition(".")[0])
    if own is None or package is None:
        raise UsageError(f"The game {single_line(game)[:60]!r} has no file whose changes --reload could wait for.")
    beside = sorted(package.parent.rglob("*.py")) if package.name == "__init__.py" else source_files(own)
    return (own, *(each for each in beside if each != own))


def _origin(module: str) -> Path | None:
    """Return the file of an importable module; None if it has none."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return Path(found.origin).resolve() if found and found.origin and found.origin.endswith(".py") else None


class _Ended:
    """Whether a signal has asked for the end; the run at the same terminal hears Ctrl-C itself."""

    def __init__(self) -> None:
        self._asked = False

    def __call__(self, number: int, frame: object) -> None:
        self._asked = True

    def asked(self) -> bool:
        """Return whether it has."""
        return self._asked

    @classmethod
    @contextlib.contextmanager
    def told(cls) -> Iterator[_Ended]:
        """Handle signals while the block runs."""
        ended = cls()
        numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
        before = {number: signal.signal(number, ended) for number in numbers}
        try:
            yield ended
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _stop(run: subprocess.Popen[bytes], *, interrupted: bool) -> None:
    """Have a run end as after Ctrl-C, so that it is recorded and the terminal is as before; at last, kill it."""
    if interrupted:  # by the terminal, which told the run, too, or else by a signal for this process alone
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(_PATIENCE / 5)
    for _ in range(2):
        if run.poll() is None:
            with contextlib.suppress(OSError):
                run.terminate() if sys.platform == "win32" else run.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(_PATIENCE)
    if run.poll() is None:
        run.kill()
    run.wait()


def _stamps(files: Sequence[Path]) -> Mapping[Path, tuple[int, int] | None]:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> tuple[int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _changed(before: Mapping[Path, tuple[int, int] | None]) -> bool:
    """Return whether a file was saved; one that is not there is being saved."""
    now = ((stamp, _stamp(file)) for file, stamp in before.items())
    return any(then != stamp and stamp is not None for then, stamp in now)


def _shown(files: Sequence[Path]) -> str:
    more = len(files) - 1
    return single_line(files[0].name) + (f" or {more} other file{'s' if more > 1 else ''}" if more else "")
