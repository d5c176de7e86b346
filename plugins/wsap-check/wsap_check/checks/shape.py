"""Checks of a game's declarations, of its five members, and of what they return."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from wsap_check.play import RandomPlayer, Table, must_repeat, settle, undisturbed, walk
from wsap_check.steps import Step, first_difference, fresh_text, place, text_of
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.authoring.rounds import RoundGame
from wsap_core.errors import PluginError, WireError
from wsap_core.factories import load
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation, ParamDef, Part
from wsap_core.protocol.base import wire_type
from wsap_core.protocol.subset import check_schema
from wsap_core.protocol.transit import BONUS_KINDS, SKILL_DOMAINS
from wsap_core.protocol.wire import Codec, dumps
from wsap_core.protocol.words import WORDS
from wsap_core.seams.game import MEMBERS, has_methods
from wsap_core.specs import AdapterSpec, problems_of
from wsap_core.untrusted import strip_control
from wsap_core.worlds import Mailbox, Seat
from wsap_core.worlds.legality import check_action, index_actions, wrong_parameter

_MEMBERS = ("game_description", "action_space", "observe", "act", "reset")
_RESULT = (("success", bool, "true or false"), ("done", bool, "true or false"), ("message", str, "text"))
_KEPT = 50


@check(acts=False)
async def members(notes: Notes, subject: Subject) -> None:
    """The five members exist and return the right types."""
    table = Table(subject)
    face: Any = table.seat.face
    for name in _MEMBERS:
        if not notes.expect(hasattr(face, name), f"There is no member {name!r}; a game has {', '.join(_MEMBERS)}."):
            return
    for name in ("game_description", "action_space"):
        called = inspect.isawaitable(getattr(face, name)) or inspect.isroutine(getattr(face, name))
        notes.expect(not called, f"{name} is a method; it must be a property or an attribute.")
    description = face.game_description
    if not isinstance(description, str) or not description.strip():
        notes.error("game_description is empty; describe the game and its goals.")
    elif len(description) > 4 * subject.text_limit:
        notes.warn(f"game_description has {len(description)} characters; it is part of every prompt.")
    _expect_type(notes, "action_space is", face.action_space, ActionSpace)
    if not subject.can("multi-seat"):
        _expect_type(notes, "reset() returned", await settle(table.world.adapter.reset(), subject), Observation)
    await table.begin()
    mover = await table.ready() or table.seat  # another seat than the first may move first
    _expect_type(notes, "observe() returned", await settle(mover.face.observe(), subject), Observation)


def _expect_type(notes: Notes, what: str, value: Any, kind: type) -> None:
    article = "an" if kind.__name__[0] in "AO" else "a"
    notes.expect(isinstance(value, kind), f"{what} a {type(value).__name__}, not {article} {kind.__name__}.")


@check(acts=False)
async def abilities(notes: Notes, subject: Subject) -> None:
    """Every declared ability is implemented, and every implemented ability is declared."""
    game: Any = subject.world().adapter
    declared = {*subject.spec.abilities}
    for ability in subject.spec.abilities:
        known = ability in MEMBERS
        notes.expect(known, f"There is no ability {ability!r}; there are {', '.join(MEMBERS)}.")
    for name, needed in MEMBERS.items():
        missing = [m for m in needed if getattr(game, m, None) is None]
        if name == "seed":
            missing = [] if _takes_seed(game) else ["reset(seed=...)"]
        if name == "messages" and not missing and not isinstance(game.mailbox, Mailbox):
            missing = ["mailbox (a wsap_core.Mailbox)"]
        if name in declared and missing:
            notes.error(f"The ability {name!r} is declared, but there is no {', '.join(missing)}.")
        only_with_options = name == "irreversible"
        if name not in declared and not missing and not only_with_options:
            notes.warn(f"The game has {', '.join(needed)}, but the ability {name!r} is not declared.")
    if "irreversible" in declared and (rewinds := {"seed", "snapshot"} & declared):
        no_ability = " or ".join(sorted(rewinds))
        notes.error(f"A world that is 'irreversible' can't be rewound, so it has no ability {no_ability}.")
    if "avatars" not in declared and has_methods(game, "avatars"):
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
    _look_at_values(notes, said)
    high = said.seats[1]
    if high > 1 and not subject.can("multi-seat"):
        notes.error(f"seats is {said.seats}, and the ability 'multi-seat' is not declared.")
    if len(set(said.seat_names)) < len(said.seat_names) or len(said.seat_names) > high:
        notes.error(f"seat_names {said.seat_names} does not give {high} seats different names.")
    if said.language not in WORDS:
        notes.warn(f"WSAP has texts in {', '.join(WORDS)}, not {said.language!r}: titles and refusals are in English.")
    if not said.summary.strip():
        notes.warn("There is no summary for lists of games.")
    evidence = {name for seat in Table(subject).seats for name in seat.action_space.names}
    for name in repeated(a.name for a in said.achievements):
        notes.error(f"The achievement {name!r} is in the catalogue twice.")
    for achievement in said.achievements:
        evidence.add(achievement.name)
        if not achievement.description.strip():
            notes.warn(f"The achievement {achievement.name!r} has no description.")
    for domain, names in (said.skills or {}).items():
        notes.expect(domain in SKILL_DOMAINS, f"There is no skill {domain!r}; there are {', '.join(SKILL_DOMAINS)}.")
        for name in names:
            strange = f"The skill {domain!r} names {name!r}, which is neither an achievement nor an action."
            notes.expect(name in evidence, strange)
    _look_at_rules(notes, subject)


def _look_at_values(notes: Notes, said: AdapterSpec) -> None:
    for problem in problems_of(said):
        notes.error(problem)
    for reference in said.wire_types:
        try:
            load(reference)
        except PluginError as error:
            notes.error(f"wire_types can't be used: {error}")


def repeated(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once."""
    return [name for name, times in Counter(names).items() if times > 1]


def _look_at_rules(notes: Notes, subject: Subject) -> None:
    rules, transit = subject.spec.transfer_rules, subject.can("transit")
    if transit and not subject.can("avatars"):
        notes.error("The ability 'transit' requires 'avatars'; declare it, too.")
    if rules and not transit:
        notes.error("There are transfer_rules, which have no effect without the ability 'transit'.")
    for name in repeated(rule.id for rule in rules):
        notes.error(f"The transfer rule {name!r} is defined twice.")
    for rule in rules:
        name, kind = f"The transfer rule {rule.id!r}", rule.bonus.kind
        skill = f"{name} has the domain {rule.domain!r}; there are {', '.join(SKILL_DOMAINS)}."
        notes.expect(rule.domain in SKILL_DOMAINS, skill)
        level = f"{name} has the threshold {rule.threshold}; levels are above 0 and at most 1."
        notes.expect(0 < rule.threshold <= 1, level)
        notes.expect(kind in BONUS_KINDS, f"{name} gives a {kind!r}; the bonuses are {', '.join(BONUS_KINDS)}.")


@check()
async def play(notes: Notes, subject: Subject) -> None:
    """Random play completes: nothing raises, no seat waits forever, and nothing is printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        steps = await walk(subject, 1)
    notes.expect(steps, "No seat could take a single step.", place(subject.seed, 0, 0))
    if said := printed.getvalue().strip():
        notes.warn(f"The game prints, for example {said.splitlines()[0][:60]!r}; use the module logging instead.")


@check()
async def action_space(notes: Notes, subject: Subject) -> None:
    """The action space is well-formed and never changes."""
    table = await Table(subject).begin()
    for seat in table.seats:
        space = seat.face.action_space
        notes.expect(space.actions, "The action space is empty.")
        for name in sorted(repeated(space.names)):
            notes.error(f"The action {name!r} is declared twice.")
        for definition in space.actions:
            _look_at_action(notes, definition)
    before = {seat.agent_id: text_of(seat.face.action_space) for seat in table.seats}
    await table.play(_Defaults(notes, table), subject.steps, cut=True)
    for seat in table.seats:
        changed = "The action space changed during play; it is declared once. "
        changed += "Use available_actions for what is possible now."
        notes.expect(text_of(seat.face.action_space) == before[seat.agent_id], changed, table.where(seat))


class _Defaults(RandomPlayer):
    """Picks random actions, and looks at the default action of each seat that decides."""

    def __init__(self, notes: Notes, table: Table) -> None:
        super().__init__(2)
        self.notes, self.table = notes, table

    def __call__(self, seat: Seat, observation: Observation) -> Action:
        """Return the seat's next action."""
        default, game = seat.default_action(), self.table.world.adapter
        if default is not None:
            reason = check_action(default, index_actions(seat.action_space))[1]
            if not reason and isinstance(game, RoundGame) and seat.agent_id in game.seats:
                reason = game.refusal(seat.agent_id, default)
            told = observation.is_available(default.name)
            if not reason and told is not None and not told.available:
                reason = told.reason or f"{default.name} is not available."
            where = self.table.where(seat, default)
            self.notes.expect(not reason, f"The default action is not legal: {reason}", where, "default")
        return super().__call__(seat, observation)


def _look_at_action(notes: Notes, definition: ActionDef) -> None:
    name = definition.name
    if not name or name != name.strip() or len(name.split()) > 1 or strip_control(name) != name:
        notes.error(f"The action name {name!r} contains spaces or control characters, or is empty.")
    if not definition.description.strip():
        notes.warn(f"The action {name!r} has no description; agents see only its name.")
    twice = repeated(p.name for p in definition.parameters)
    for parameter in definition.parameters:
        notes.expect(parameter.name not in twice, f"{name} declares the parameter {parameter.name!r} twice.")
        if problem := _wrong_parameter(parameter):
            notes.error(f"{name}, parameter {parameter.name!r}: {problem}")


def _wrong_parameter(parameter: ParamDef) -> str | None:
    if typo := wrong_parameter(parameter):
        return typo
    if parameter.schema is not None:
        return check_schema(parameter.schema)
    choices = parameter.choices()
    if choices is not None and ("" in choices or len(set(choices)) < len(choices)):
        return f"the enumeration {parameter.spec!r} has an empty or repeated word."
    return None if parameter.name.strip() else "it has no name."


@check()
async def values(notes: Notes, subject: Subject) -> None:
    """Observations and results have the right types, are finite, and are unchanged by encoding and decoding."""
    codec = subject.codec()
    for step in await walk(subject, 3):
        for problem in _wrong_result(step.result):
            notes.error(problem, step)
        _travel(notes, codec, step.before, step)
        _travel(notes, codec, step.result, step)


def _wrong_result(result: Any) -> Iterator[str]:
    for name, kind, what in _RESULT:
        if not isinstance(value := getattr(result, name), kind):
            yield f"result.{name} is a {type(value).__name__}, not {what}."
    reward = result.reward
    if isinstance(reward, bool) or not (isinstance(reward, int | float) or hasattr(reward, "dtype")):
        yield f"result.reward is a {type(reward).__name__}, not a number."
    elif not math.isfinite(reward):
        yield f"result.reward is {reward}; rewards are finite numbers."
    if not all(isinstance(name, str) for name in result.achievements):
        yield "result.achievements contains something other than names."
    if not isinstance(result.observation, Observation):
        yield f"result.observation is a {type(result.observation).__name__}, not an Observation."


def _travel(notes: Notes, codec: Codec, value: Observation | ActionResult, step: Step) -> None:
    base: type = Observation if isinstance(value, Observation) else ActionResult
    for part in _parts(value):
        tag, name = wire_type(type(part)), type(part).__name__
        if tag is not None and codec.lookup(tag) is not type(part):
            unknown = f"{name} is not among the spec's wire_types, so that its additional fields can't be decoded."
            notes.error(unknown, step, name)
            return
    try:
        text = dumps(value)
        again: Any = codec.loads(base, text)
    except WireError as error:
        notes.error(str(error), step, str(error)[:60])
        return
    lossy = f"A {type(value).__name__} is not the same after encoding and decoding."
    notes.expect(dumps(again) == text and type(again) is type(value), lossy, step, "lossy")


def _parts(value: Any) -> Iterator[Part]:
    inside: Iterable[Any] = ()
    if isinstance(value, Part):
        yield value
    if is_dataclass(value) and not isinstance(value, type):
        inside = (getattr(value, f.name) for f in fields(value))
    elif isinstance(value, Mapping):
        inside = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    for item in inside:
        yield from _parts(item)


@check()
async def text(notes: Notes, subject: Subject) -> None:
    """Every observation has a text within the limit and without control characters, and so have messages."""
    for step in await walk(subject, 4):
        message: Any = step.result.message
        if isinstance(message, str) and len(message) > subject.text_limit:
            much = f"A result's message has {len(message)} characters, and the limit is {subject.text_limit}"
            notes.error(f"{much}; say in it what the action did.", step, "long message")
        shown: Any = step.result.observation.to_text()
        if not isinstance(shown, str) or not shown.strip():
            notes.error("to_text() returns nothing.", step, "empty")
        elif len(shown) > subject.text_limit:
            much = f"to_text() returns {len(shown)} characters, and the limit is {subject.text_limit}"
            notes.error(f"{much}; omit or summarize the least important parts.", step, "long")
        elif strip_control(shown) != shown:
            notes.error("to_text() returns control characters; use single_line() for text from others.", step, "raw")


@check()
async def observing(notes: Notes, subject: Subject) -> None:
    """Observing changes nothing, and past observations never change."""
    kept: list[tuple[Observation, str, Step]] = []
    table = await Table(subject).begin()

    def keep(step: Step) -> None:
        if len(kept) < _KEPT:
            kept.extend((o, fresh_text(o), step) for o in (step.before, step.result.observation))

    once = await table.play(RandomPlayer(5), subject.steps, each=keep, cut=True)
    shared = "An observation changed after it was returned: it shares mutable state with the game. "
    shared += "Give each observation its own dicts and lists."
    for observation, before, step in kept:
        notes.expect(fresh_text(observation) == before, shared, step, "shared")
    if len(table.seats) > 1:
        return  # other seats may act between two observations
    table = await Table(subject).begin()
    observed: list[Step] = []
    player = RandomPlayer(5)
    while len(observed) < len(once) and not table.seat.done:
        looks = {fresh_text(await table.seat.observe()) for _ in range(3)}
        twice = "observe() twice in a row returns two different observations."
        if not notes.expect(len(looks) == 1, twice, table.where()):
            return
        observed += await table.play(player, 1)
    if subject.can("seed"):
        difference = first_difference(await undisturbed(subject, 5, len(once)), observed)
        if difference is not None:
            await must_repeat(subject, 5, len(once))
        notes.expect_same(difference, "Observing more often changes the game: {}.")


@check()
async def state_after(notes: Notes, subject: Subject) -> None:
    """The observation in a result is what observe() returns next."""
    if len((table := await Table(subject).begin()).seats) > 1:
        raise NothingToCheck("with several seats, others may act in between")
    player, highest = RandomPlayer(6), -1
    for _ in range(min(subject.steps, 200)):
        if not (trace := await table.play(player, 1)):
            break
        step, now = trace[-1], await table.seat.observe()
        same = text_of(now) == text_of(step.result.observation)
        back = f"observation.step went back from {highest} to {now.step} within an episode."
        if not notes.expect(same, "The result's observation is not the state after the action.", step):
            return
        if not notes.expect(now.step >= highest, back, step):
            return
        highest = now.step
