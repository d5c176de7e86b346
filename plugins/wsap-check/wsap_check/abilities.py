"""Checks of the spec, and of achievements, views and scores."""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Iterable, Set
from typing import Any

from wsap_check.play import RandomPlayer, Table, must_not_disturb, walk
from wsap_check.raised import describe
from wsap_check.steps import Step
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.errors import WireError
from wsap_core.protocol import GridMapBlock, ImageBlock, TableBlock, View
from wsap_core.protocol.transit import BONUS_KINDS, SKILL_DOMAINS
from wsap_core.protocol.views import Block
from wsap_core.protocol.wire import dumps
from wsap_core.protocol.words import WORDS
from wsap_core.seams.game import keeps_avatars
from wsap_core.specs import AdapterSpec, EpisodeSummary
from wsap_core.version import PROTOCOL_VERSION
from wsap_core.worlds import Mailbox

_PNG = b"\x89PNG\r\n\x1a\n"

_MEMBERS: dict[str, tuple[str, ...]] = {
    "seed": ("reset",),
    "snapshot": ("snapshot", "restore"),
    "render": ("render",),
    "avatars": ("list_avatars", "create_avatar", "jack_in", "jack_out", "handle_death", "respawn"),
    "multi-seat": ("seat",),
    "transit": ("admit", "release"),
    "messages": ("mailbox",),
    "lives": ("advance",),
    "influence": ("influence",),
    "live": ("act_once",),
}


@check(acts=False)
async def abilities(notes: Notes, subject: Subject) -> None:
    """Every declared ability is implemented, and every implemented ability is declared."""
    game: Any = subject.world().adapter  # whatever an author wrote
    for ability in subject.spec.abilities:
        if ability not in _MEMBERS:
            notes.error(f"There is no ability {ability!r}; there are {', '.join(_MEMBERS)}.")
    for name, members in _MEMBERS.items():
        missing = [m for m in members if getattr(game, m, None) is None]
        if name == "seed":
            missing = [] if _takes_seed(game) else ["reset(seed=...)"]
        if name == "messages" and not missing and not isinstance(game.mailbox, Mailbox):
            missing = ["mailbox (a wsap_core.Mailbox)"]
        declared = name in subject.spec.abilities
        if declared and missing:
            notes.error(f"The ability {name!r} is declared, but there is no {', '.join(missing)}.")
        if not declared and not missing and name != "live":  # a game may be live with some of its options alone
            notes.warn(f"The game has {', '.join(members)}, but the ability {name!r} is not declared.")
    if "live" in subject.spec.abilities and (rewinds := {"seed", "snapshot"} & {*subject.spec.abilities}):
        notes.error(f"A world that is 'live' can't be rewound, so it has no ability {' or '.join(sorted(rewinds))}.")
    if "avatars" not in subject.spec.abilities and keeps_avatars(game):
        notes.error("The game is an AvatarGameAdapter; declare the ability 'avatars'.")


def _takes_seed(game: Any) -> bool:
    try:
        parameters = inspect.signature(game.reset).parameters
    except (AttributeError, TypeError, ValueError):
        return False
    return "seed" in parameters and parameters["seed"].default is not inspect.Parameter.empty


@check(acts=False)
async def spec(notes: Notes, subject: Subject) -> None:
    """The spec is consistent."""
    said = subject.spec
    low, high = said.seats
    if not (0 if subject.can("lives") else 1) <= low <= high or not high:
        notes.error(f"seats is {said.seats}: the fewest come first, and there is at least one, or the world lives.")
    if (high > 1) != subject.can("multi-seat"):
        declared = "declared" if subject.can("multi-seat") else "not declared"
        notes.error(f"seats is {said.seats}, and the ability 'multi-seat' is {declared}.")
    if len(set(said.seat_names)) < len(said.seat_names) or len(said.seat_names) > high:
        notes.error(f"seat_names {said.seat_names} does not fit {high} seats with names of their own.")
    if said.protocol_version.split(".")[0] != PROTOCOL_VERSION.split(".")[0]:
        notes.error(f"The game speaks protocol {said.protocol_version}, this is {PROTOCOL_VERSION}.")
    if said.language not in WORDS:
        notes.warn(f"WSAP speaks {', '.join(WORDS)}, not {said.language!r}: titles and refusals are in English.")
    if not said.summary.strip():
        notes.warn("There is no summary; lists of games show one line about each.")
    actions = {name for seat in Table(subject).seats for name in seat.action_space.names}
    _look_at_catalogue(notes, said)
    _look_at_skills(notes, said, actions)
    _look_at_rules(notes, said)


def _repeated(names: Iterable[str]) -> list[str]:
    return [name for name, times in Counter(names).items() if times > 1]


def _look_at_catalogue(notes: Notes, said: AdapterSpec) -> None:
    for name in _repeated(a.name for a in said.achievements):
        notes.error(f"The achievement {name!r} is in the catalogue twice.")
    for achievement in said.achievements:
        if not achievement.description.strip():
            notes.warn(f"The achievement {achievement.name!r} has no description.")


def _look_at_skills(notes: Notes, said: AdapterSpec, actions: Set[str]) -> None:
    known = {*(a.name for a in said.achievements), *actions}
    for domain, evidence in (said.skills or {}).items():
        if domain not in SKILL_DOMAINS:
            notes.error(f"There is no skill {domain!r}; there are {', '.join(SKILL_DOMAINS)}.")
        for name in evidence:
            if name not in known:
                notes.error(f"The skill {domain!r} names {name!r}, which is neither an achievement nor an action.")


def _look_at_rules(notes: Notes, said: AdapterSpec) -> None:
    if "transit" in said.abilities and "avatars" not in said.abilities:
        notes.error("The ability 'transit' is about avatars; declare 'avatars', too.")
    if said.transfer_rules and "transit" not in said.abilities:
        notes.error("There are transfer_rules, but without the ability 'transit' nobody can apply them.")
    for name in _repeated(rule.id for rule in said.transfer_rules):
        notes.error(f"The transfer rule {name!r} is there twice.")
    for rule in said.transfer_rules:
        name = f"The transfer rule {rule.id!r}"
        if rule.domain not in SKILL_DOMAINS:
            notes.error(f"{name} is about {rule.domain!r}; skills are {', '.join(SKILL_DOMAINS)}.")
        if not 0 < rule.threshold <= 1:
            notes.error(f"{name} has the threshold {rule.threshold}; levels are above 0 and at most 1.")
        if rule.bonus.kind not in BONUS_KINDS:
            notes.error(f"{name} gives a {rule.bonus.kind!r}; bonuses are {', '.join(BONUS_KINDS)}.")


@check()
async def achievements(notes: Notes, subject: Subject) -> None:
    """Reported achievements are in the catalogue, each at most once per episode."""
    catalogue = {a.name for a in subject.spec.achievements}
    seen: set[tuple[int, str, str]] = set()
    for step in await walk(subject, 90, "available"):
        for name in step.result.achievements:
            if name not in catalogue:
                notes.error(f"The achievement {name!r} is not in the catalogue.", step.where, about=name)
            if (step.episode, step.seat, name) in seen:
                message = f"The achievement {name!r} is reported twice in one episode; report what is newly unlocked."
                notes.error(message, step.where, about=f"twice {name}")
            seen.add((step.episode, step.seat, name))
    if not catalogue and not seen:
        raise NothingToCheck("there are none")


@check("render")
async def rendering(notes: Notes, subject: Subject) -> None:
    """Views are well-formed, and rendering changes nothing."""
    if not callable(getattr(subject.world().adapter, "render", None)):
        raise NothingToCheck("there is nothing to call")
    every = max(1, min(subject.steps, 100) // 10)

    def draw(table: Table, count: int, step: Step) -> None:
        if count % every == 0:
            _look_at_view(notes, table.world.render(), step.where)

    await must_not_disturb(notes, subject, 91, draw, "Drawing changes")


def _look_at_view(notes: Notes, view: Any, where: str) -> None:
    # Any: the type is what is asked.
    if not isinstance(view, View):
        notes.error(f"render() returned a {type(view).__name__}, not a View.", where, about="type")
        return
    block: Any
    for block in view.blocks:
        if not isinstance(block, Block):
            notes.error(f"A View holds a {type(block).__name__}, which is not a block.", where, about="block")
        elif isinstance(block, ImageBlock) and not block.png().startswith(_PNG):
            notes.error("An ImageBlock does not hold a PNG file.", where, about="png")
        elif isinstance(block, GridMapBlock) and len({len(row) for row in block.rows}) > 1:
            notes.error("The rows of a GridMapBlock have different lengths.", where, about="rows")
        elif isinstance(block, TableBlock) and any(len(row) != len(block.columns) for row in block.rows):
            notes.error("A row of a TableBlock has more or fewer cells than there are columns.", where, about="cells")
    try:
        dumps(view)
    except WireError as error:
        notes.error(str(error), where, about="wire")


@check(acts=False)
async def score_metrics(notes: Notes, subject: Subject) -> None:
    """Each score is a finite number, even for no episodes."""
    if not subject.spec.score_metrics:
        raise NothingToCheck("there are none")
    table = await Table(subject).begin()
    trace = await table.play(RandomPlayer(92), min(subject.steps, 100))
    mine = [s for s in trace if s.seat == table.seat.agent_id]
    won = sorted({name for s in mine for name in s.result.achievements})
    reward = float(sum(s.result.reward for s in mine))
    episode = EpisodeSummary(table.seed, len(mine), reward, tuple(won), table.seat.done, table.seat.agent_id)
    for name in _repeated(m.name for m in subject.spec.score_metrics):
        notes.error(f"There are two metrics called {name!r}.")
    for metric in subject.spec.score_metrics:
        for episodes in ([], [episode], [episode, episode]):
            try:
                value = metric.of(episodes)
            except Exception as error:
                notes.error(f"The metric {metric.name!r} over {len(episodes)} episodes: {describe(error)}.")
                break
            low, high = metric.low, metric.high
            outside = (low is not None and value < low) or (high is not None and value > high)
            if not math.isfinite(value) or outside:
                notes.error(f"The metric {metric.name!r} is {value} over {len(episodes)} episodes; outside its range.")
                break
