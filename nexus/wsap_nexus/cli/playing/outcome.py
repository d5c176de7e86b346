"""The output of `wsap play` about a run: header, summary, and how to continue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from wsap_core.errors import CutOffError, RunInterruptedError, StorageError, UsageError, WsapError
from wsap_core.protocol.lines import plural

if TYPE_CHECKING:
    from wsap_nexus.runs.record.summary import RunSummary
    from wsap_nexus.runs.run import Run
    from wsap_nexus.runs.session import ResolvedSpecs
    from wsap_nexus.runs.store import Store


@dataclass(frozen=True)
class Original:
    """The recorded run that is replayed."""

    run_id: str
    steps: int
    """Number of recorded steps of all seats."""
    finished: bool
    """Whether it was played to its end."""


def original(name: str, store: Store) -> Original:
    """Return a recorded run for a replay.

    Raises:
        UnknownNameError: there is no such run.
        UsageError: it has no steps.
    """
    from wsap_nexus.store.records import RunStatus

    record = store.repository.get_run(name)
    steps = store.repository.count_events(record.id, "step")
    lives = bool(record.config.get("lives"))
    if not steps and not (lives and store.repository.last_event(record.id, "tick")):
        raise UsageError(f"Run {record.id!r} ended before its first step, so there is nothing to replay.")
    return Original(record.id, steps, record.status is RunStatus.FINISHED)


def header(run: Run) -> str:
    """Return the line that is printed before a run's first step."""
    plan = run.plan
    recorded = f"recorded as {run.run_id}" if run.run_id is not None else "not recorded"
    limits = ((plan.episodes, "episode"), (plan.steps, "step" if plan.seats else "tick"))
    endless = "open-ended" if plan.lives else "one episode"
    length = " or ".join(plural(limit, what) for limit, what in limits if limit is not None) or endless
    length += " and the rest of the episode" if plan.steps is not None and run.whole_episodes else ""
    played_as = f" as {' and '.join(plan.identities.values())}" if plan.identities else ""
    who = f"{plan.agent_label}{played_as}" if plan.seats else "without agents"
    return f"{run.spec.display_title}, {who}, seed {plan.seed}, {length}, {recorded}"


def add_way_on(error: WsapError, run: Run, *, resumed: bool, again: Original | None) -> None:
    """Add to the error how to resume the run, if there is something to resume."""
    from wsap_core.seams.model_errors import BackendError
    from wsap_nexus.runs.session import came_to_nothing

    if run.run_id is None or again is not None or (not resumed and came_to_nothing(run, error)):
        return
    if isinstance(error, StorageError | BackendError) or not (resumed or isinstance(error, UsageError)):
        said = str(error)
        said = said if said.endswith(("?", "!")) else f"{said.rstrip('.')}."
        error.args = (f"{said} Continue the run with: wsap play --resume {run.run_id}",)


def report(
    run: Run, parts: ResolvedSpecs, summary: RunSummary, *, interrupted: bool, as_json: bool, again: Original | None
) -> None:
    """Print the result of a run, and what to do next.

    Args:
        interrupted: whether a signal stopped it.
        again: the original run, if it was a replay.

    Raises:
        RunInterruptedError: a signal stopped it; the message says how to resume.
        CutOffError: it ended before the requested number of episodes was played.
    """
    from wsap_core.cli.output import print_json

    ended = again is not None and not again.finished and summary.steps >= again.steps
    if as_json:
        print_json({**summary.to_json(), **({"replays": again.run_id} if again is not None else {})})
    else:
        _print_summary(summary, parts, run=run, again=again)
        if ended and again is not None:
            click.echo(f"The recorded run stopped here, too; continue it with: wsap play --resume {again.run_id}")
        elif run.controls.stopping and not interrupted:
            click.echo(f"Stopped; {_way_on(run, again)}")
    if interrupted:
        length = plural(summary.steps, "step")
        if summary.world is not None and not summary.seats:
            length = plural(summary.world.steps, "tick")
        raise RunInterruptedError(f"Stopped after {length}; {_way_on(run, again)}")
    if run.plan.episodes is not None and summary.cut_off is not None and not run.controls.stopping:
        raise CutOffError(f"Not all of {plural(run.plan.episodes, 'episode')} were played: {summary.cut_off}.")


def _way_on(run: Run, again: Original | None) -> str:
    if again is not None:
        return f"no model was called; replay it again with: wsap play --replay {again.run_id}"
    return f"continue with: wsap play --resume {run.run_id}" if run.run_id else "not recorded, so it can't be continued"


def _print_summary(summary: RunSummary, parts: ResolvedSpecs, *, run: Run, again: Original | None) -> None:
    from wsap_nexus.terminal.plain import summary_lines
    from wsap_nexus.terminal.spending import planned_steps

    run_id, planned = run.run_id, planned_steps(run)
    units = {metric.name: metric.unit for metric in parts.game.score_metrics}
    told = summary.to_json()
    lines = summary_lines(
        told, units=units, catalogue=len(parts.game.achievements), again=again is not None, planned=planned
    )
    click.echo("\n".join(lines))
    if again is not None:
        as_recorded = "every step is as recorded, and no model was called"
        same = as_recorded if not run.controls.stopping or summary.steps >= again.steps else "no model was called"
        click.echo(f"Replayed {again.run_id} with its recorded choices: {same}.")
    if run_id is not None:
        click.echo(f"Show its steps: wsap replay {run_id}")
        if summary.done and parts.game.look_back:
            click.echo(f"More about it: {parts.game.look_back_at(run_id)}")
