"""TextArena's games by name: creating one, and why some can't be played."""

from __future__ import annotations

import contextlib
import io
from typing import Any

from wsap_core.errors import MissingServiceError, UsageError
from wsap_core.installing import install_line
from wsap_core.untrusted import error_line
from wsap_textarena.reasons import REASONS

# Any, in this module: TextArena's environments.

RAW = "-raw"
"""The ending of the names without wrappers, which are for models that are given one text."""


def arena() -> Any:
    """Return the module `textarena`; MissingServiceError if it can't be imported."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            import textarena  # deferred: an extra, and seconds
    except (ImportError, SyntaxError) as error:
        raise MissingServiceError(
            f"TextArena's games need the package textarena ({error_line(error, 200)}); install it with: "
            f"{install_line('wsap-textarena')}"
        ) from error
    return textarena


def games() -> dict[str, str]:
    """Return each of TextArena's games -> why it can't be played, empty if it can."""
    return {name.removesuffix(RAW): why_not(name.removesuffix(RAW)) for name in _registry() if name.endswith(RAW)}


def why_not(name: str) -> str:
    """Return why a game can't be played, by its name or that of its kind; empty if it can."""
    return REASONS.get(kind_of(name), "")


def kind_of(name: str) -> str:
    """Return the name of the environment's package, such as Sudoku for Sudoku-v0-hard."""
    spec = _registry().get(name + RAW)
    return "" if spec is None else str(spec.entry_point).partition(":")[0].split(".")[2]


def made(name: str) -> Any:
    """Return a new environment; UsageError if there is none, or it can't be played."""
    if name + RAW not in _registry():
        raise UsageError(f"TextArena has no game {name!r}; `wsap games textarena` lists them.")
    if why := why_not(name):
        raise UsageError(f"{name} of TextArena can't be played: {why}.")
    try:
        return arena().make(name + RAW)
    except Exception as error:
        raise UsageError(f"{name} of TextArena can't be created: {error_line(error, 300, kind=True)}") from error


def _registry() -> dict[str, Any]:
    arena()
    from textarena.envs.registration import ENV_REGISTRY  # deferred, as above

    return ENV_REGISTRY  # type: ignore[no-any-return]  # it may be installed or not
