"""What a game's plugin shows of a recorded run."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.errors import PluginError, WsapError
from wsap_core.factories import load
from wsap_core.host import PluginHost
from wsap_core.protocol import View
from wsap_core.seams.services import RunReader
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line
from wsap_nexus.runs.plan import game_of
from wsap_nexus.store.records import RunRecord

__all__ = ["spec_with_views", "view_of_run"]


def spec_with_views(run: RunRecord, host: PluginHost) -> AdapterSpec | None:
    """Return the game of a run if it gives views of its runs, else None; also where it is not installed."""
    try:
        spec = game_of(run, host)
    except WsapError:
        return None
    return spec if spec.run_views is not None else None


def view_of_run(spec: AdapterSpec, runs: RunReader, run: str, selection: Mapping[str, str]) -> View:
    """Return what a game shows of a run with a selection (name -> what is chosen).

    Raises:
        PluginError: the game's own code failed; the message says how.
        WsapError: the run can't be read.
    """
    assert spec.run_views is not None, "asked by spec_with_views()"
    try:
        view = load(spec.run_views)(runs, run, selection)
    except WsapError:
        raise
    except Exception as error:
        why = error_line(error, 200, kind=True).rstrip(". ")
        raise PluginError(f"{spec.name} could not show run {run!r}: {why}. Tell its author.") from error
    if not isinstance(view, View):
        raise PluginError(f"{spec.name} gave a {type(view).__name__} for a view of run {run!r}. Tell its author.")
    return view
