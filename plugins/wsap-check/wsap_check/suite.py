"""The list of all checks, in the order of a report, and the functions that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from wsap_check.checks import actions, agents, avatars, episodes, seats, senses, shape, snapshots, stage, transits
from wsap_check.checks.agents import AgentSubject
from wsap_check.findings import CheckOutcome, Report
from wsap_check.raised import describe
from wsap_check.subject import TOO_LONG, Check, Subject
from wsap_core.errors import PluginError, UnknownNameError, UsageError
from wsap_core.host import PluginHost
from wsap_core.references import ConstantFactory, load_adapter_spec, load_agent_spec
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options, check_used
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World

CHECKS: tuple[Check, ...] = (
    *(shape.members, shape.abilities, shape.spec),
    *(shape.play, shape.action_space, shape.values, shape.text, shape.observing, shape.state_after),
    *(actions.availability_list, actions.unavailable, actions.available),
    *(actions.tools, actions.undeclared_actions, actions.bad_parameters),
    *(episodes.done, episodes.reset, episodes.first_episode),
    *(episodes.same_seed, episodes.independent, episodes.other_process, episodes.seeds_matter),
    *(snapshots.snapshot_continues, snapshots.snapshot_elsewhere, snapshots.snapshot_silent),
    *(snapshots.snapshot_refuses, snapshots.snapshot_is_data),
    *(senses.directions, senses.vision_range, senses.vision_cone),
    *(seats.shared_world, seats.hidden_choices, episodes.arrival_order, seats.turns, seats.messages),
    *(seats.legal_moves, seats.secrets, seats.zero_sum),
    *(avatars.jack_in, avatars.jack_out, avatars.avatar_states, avatars.death, avatars.avatar_actions),
    *(transits.transit_bonuses, transits.transit_items, transits.transit_release),
    *(transits.transit_once, transits.transit_sleep),
    *(episodes.ticks, episodes.ticks_continue, episodes.refused_influence),
    *(senses.achievements, senses.rendering, senses.score_metrics),
    *(stage.stage_picture, stage.stage_alt, stage.stage_caption, stage.stage_meters, stage.stage_phrases),
    *(stage.stage_reasons, stage.stage_secrets),
)
"""The checks of games."""

AGENT_CHECKS: tuple[Check, ...] = (
    *(agents.agent_members, agents.agent_decisions, agents.agent_reflection),
    *(agents.agent_seed, agents.agent_snapshot),
)
"""The checks of agents."""


def run_checks(
    reference: object,
    *,
    seed: int = 0,
    steps: int = 300,
    config: Mapping[str, Any] | None = None,
    subprocesses: bool = True,
    text_limit: int = 8_000,
    only: Sequence[str] = (),
    seconds: float = 120.0,
    host: PluginHost | None = None,
    progress: Callable[[CheckOutcome], None] | None = None,
) -> Report:
    """Check a game against the protocol and return the report.

    Args:
        reference: a registered name, `./game.py:Game`, a class, a factory or a spec.
        seed: seed of the first world.
        steps: approximate number of steps in each check.
        config: options of every world.
        subprocesses: also compare with other processes.
        text_limit: most characters of an observation's text.
        only: names of the checks to run; all when empty.
        seconds: most seconds of one check; if one takes longer, it fails, and the others are skipped.
        host: resolves registered names.
        progress: called after each check.

    Raises:
        UsageError: there is no such game or check, or the reference is an object instead of a factory.
        ConfigError: the game has no such option, or refuses its value.
        PluginError: the game can't be created.
    """
    subject = Subject(game_spec(reference, host), seed, steps, dict(config or {}), text_limit, subprocesses, seconds)
    wanted = _chosen(only)
    # A game that can't be created, or a misspelt option, is reported once and not by every check.
    options = Options(subject.config)
    try:
        World.create(subject.spec, Context.create(seed, config=options))
    except UsageError:
        raise
    except Exception as error:
        name = subject.spec.title or subject.spec.name
        raise PluginError(f"{name} could not be created: {describe(error)}") from error
    check_used(f"The game {subject.spec.name!r}", options)
    return Report(subject.spec.name, seed, steps, _run(wanted, subject, progress))


def run_agent_checks(
    reference: object,
    game: object = "echo",
    *,
    seed: int = 0,
    steps: int = 50,
    config: Mapping[str, Any] | None = None,
    host: PluginHost | None = None,
) -> Report:
    """Check an agent against the protocol in a game that it can play, and return the report. `steps` is the number of
    rounds in each check, `config` the agent's options; see `run_checks` for the others."""
    spec = load_agent_spec(reference, host)
    subject = AgentSubject(spec, load_adapter_spec(game, host), seed, steps, dict(config or {}))
    return Report(spec.name, seed, steps, _run(AGENT_CHECKS, subject))


def game_spec(reference: object, host: PluginHost | None = None) -> AdapterSpec:
    """Return the spec of a game; `UsageError` if there is none, or it is an object instead of a factory."""
    spec = load_adapter_spec(reference, host)
    if isinstance(spec.factory, ConstantFactory):
        raise UsageError(f"The checks create many worlds of {spec.title}; pass its class or a factory, not an object.")
    return spec


def _chosen(only: Sequence[str]) -> list[Check]:
    known = {check.name for check in CHECKS}
    for name in only:
        if name not in known:
            raise UnknownNameError("check", name, known, hint=f"There are: {', '.join(sorted(known))}.")
    return [check for check in CHECKS if not only or check.name in only]


def _run(
    checks: Iterable[Check], subject: Subject | AgentSubject, progress: Callable[[CheckOutcome], None] | None = None
) -> tuple[CheckOutcome, ...]:
    outcomes: list[CheckOutcome] = []
    broken_down = ""
    for check in checks:
        if broken_down:
            outcome = CheckOutcome(check.name, check.summary, "skipped", broken_down, section=check.section)
        else:
            outcome = check.run(subject)
            if any(finding.message.startswith(TOO_LONG) for finding in outcome.findings):
                broken_down = f"a check did not end in time, see `{check.name}`"
            elif check.name == shape.play.name and outcome.status == "failed":
                broken_down = "random play fails, see `play`"
        outcomes.append(outcome)
        if progress is not None:
            progress(outcome)
    return tuple(outcomes)
