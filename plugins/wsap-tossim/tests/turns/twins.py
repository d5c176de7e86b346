"""Two games that are alike but for one thing, played by players who do the same as long as they are shown the same.

`play` plays a game of drawn roles, rules and habits through the world itself, and keeps all that each seat is
shown. `compared` holds two of them against each other: for each player, the first thing that differs has to be
something that it may know (`who_may_know`), never a text, a tool's answer, an option, or the fact of being asked.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from turn_kit import town_with
from who_may_know import Round, Told, Watched, told

from wsap_core.protocol import Action, ActionResult
from wsap_core.protocol.wire import encode
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.styles import JsonStyle, TagStyle
from wsap_llm.scripted import ScriptedBackend
from wsap_tossim.engine.data.model import WAIT, Choice, Option, Verb
from wsap_tossim.engine.game import Game
from wsap_tossim.options import TownOptions, seat_name
from wsap_tossim.perception.desk import look_up
from wsap_tossim.tool_use import WRITES
from wsap_tossim.verbs import TOOLS, to_action
from wsap_tossim.world import Town

LOOKS = [name for name in TOOLS if name not in WRITES and name != "summarise_day"]


@dataclass(frozen=True)
class Script:
    """What a game is drawn from."""

    roles: tuple[str, ...]
    rules: Mapping[str, Any]
    """Options of the town; the role list that all know says nothing of the roles."""
    salt: int
    """What the players' habits are drawn from."""
    seed: int = 0
    days: int = 3
    rounds: int = 120


class Turn(NamedTuple):
    """A turn of a player, its own first being 0."""

    player: int
    number: int


@dataclass(frozen=True)
class Change:
    """What is different in the second game."""

    kind: str
    """One of `KINDS`."""
    turns: tuple[Turn, ...] = ()
    """Where something else is done."""
    players: tuple[int, ...] = ()
    """Of whom something else is true."""
    role: str = ""


KINDS = {
    "choice": "One player does something else.",
    "words": "One player says or writes other words.",
    "hands": "Two players do what the other did.",
    "papers": "One player writes another will, note and notebook.",
    "deadline": "One player misses its deadline, where it waited.",
    "tools": "One player looks things up.",
    "notes": "Two players write each other's wills and notes.",
    "swap": "Two players have each other's role.",
    "role": "One player has another role.",
    "lots": "What is drawn is drawn anew.",
    "order": "All answer in the opposite order.",
}


class Asked(NamedTuple):
    """One time that a seat was asked."""

    at: int
    """How long the log was."""
    round: int
    options: Sequence[Option]
    shown: str = ""
    """The result that came with it, its observation included; in the first round the observation alone."""
    tools: str = ""
    """What all tools tell, where they were looked at."""


@dataclass
class Played:
    """A game as it was played."""

    watched: Watched
    asked: list[list[Asked]] = field(default_factory=list)
    """Of each player."""
    last: list[str] = field(default_factory=list)
    """All that each player can be shown when the play is stopped."""


def town_of(script: Script) -> Town:
    """Return the world with the roles of the script in it."""
    options = TownOptions.read({"roles": ["Any"] * len(script.roles), **script.rules})
    game = Game(options.setup, options.rules, script.seed, roles=script.roles)
    return town_with(game, options, script.seed)


def changed(script: Script, change: Change) -> Script:
    """Return a script with what a change says of roles and lots."""
    roles = list(script.roles)
    if change.kind == "swap":
        one, other = change.players
        roles[one], roles[other] = roles[other], roles[one]
    elif change.kind == "role":
        roles[change.players[0]] = change.role
    return replace(script, roles=tuple(roles), seed=script.seed + (change.kind == "lots"))


# --- habits ------------------------------------------------------------------------------------


def chosen(script: Script, day: int, player: int, turn: int, options: Sequence[Option]) -> Choice:
    """Return what a player does in its turn: a function of what it is offered, and of nothing hidden."""
    rng = random.Random(f"{script.salt}:{player}:{turn}")
    able = {o.verb: o for o in options}
    if Verb.GUILTY in able:
        return Choice(rng.choice((Verb.GUILTY, Verb.GUILTY, Verb.INNOCENT, Verb.WAIT)))
    if Verb.VOTE in able and rng.random() < 0.6:
        order = list(range(15))
        random.Random(f"{script.salt}:{day}").shuffle(order)  # most are of one mind
        return Choice(Verb.VOTE, (next(n for n in order if n in able[Verb.VOTE].slots[0]),))
    verbs = [v for v in able if v is not Verb.WAIT]
    if not verbs or rng.random() < (0.5 if Verb.SAY in able else 0.15):
        return WAIT
    return _any(able[rng.choice(verbs)], rng, f"w{player}t{turn}x" * rng.randint(1, 4))


def _any(option: Option, rng: random.Random, words: str) -> Choice:
    targets: list[int] = []
    for slot in option.slots:
        free = [n for n in slot if n not in targets]
        if not free:
            return WAIT
        targets.append(rng.choice(free))
    return Choice(option.verb, tuple(targets), words if option.text else "")


def _otherwise(played: Choice, kind: str, options: Sequence[Option], salt: int) -> Choice:
    """Return what a player does instead of what it did."""
    if kind == "words":
        return Choice(played.verb, played.targets, "something else altogether")
    rng = random.Random(f"{salt}:otherwise")
    others = [c for o in options for _ in range(3) if (c := _any(o, rng, "other words"))[:2] != played[:2]]
    return rng.choice(others) if others else played


def _papers(script: Script, change: Change | None, player: int, turn: int) -> Iterator[Action]:
    """Give what a player writes before it acts, and the tools that it looks at; with the change, if there is one."""
    rng = random.Random(f"{script.salt}:{player}:{turn}:papers")
    writer = player
    if change is not None and change.kind == "notes" and player in change.players:
        (writer,) = set(change.players) - {player}
    if turn == 0 or rng.random() < 0.2:
        for tool in WRITES:
            if turn == 0 or rng.random() < 0.5:
                yield Action(tool, {"text": f"{tool} of {writer}, {turn}"})
    if change is not None and Turn(player, turn) in change.turns:
        if change.kind == "papers":
            yield from (Action(tool, {"text": "Not what you think."}) for tool in WRITES)
        elif change.kind == "tools":
            yield from (Action(tool) for tool in ("roles", "graveyard", "view_will"))


# --- a game ------------------------------------------------------------------------------------


def play(script: Script, change: Change | None = None) -> Played:
    """Play a game, with or without a change, and keep what each seat is shown."""
    return asyncio.run(_play(script if change is None else changed(script, change), change))


async def _play(script: Script, change: Change | None) -> Played:
    town = town_of(script)
    game = town.game
    seats = [town.seat(seat_name(n)) for n in range(len(script.roles))]
    watched = Watched(script.roles, town.options.rules, game.log)
    found = Played(watched, [[] for _ in script.roles])
    acting: dict[int, asyncio.Task[ActionResult]] = {}
    while not game.over and game.state.day <= script.days and len(watched.rounds) < script.rounds:
        start, asked = len(game.log), game.waiting
        choices: dict[int, Choice] = {}
        for player in asked:
            turn = len(found.asked[player])
            done = acting.pop(player, None)
            shown = _encoded(await seats[player].observe() if done is None else await done)
            rare = random.Random(f"{script.salt}:{player}:{turn}:tools").random() < 0.06
            looked = await everything(town, player) if rare else ""
            options = game.options(player)
            found.asked[player].append(Asked(start, len(watched.rounds), options, shown, looked))
            choices[player] = chosen(script, game.state.day, player, turn, options)
            for paper in _papers(script, change, player, turn):
                await seats[player].act(paper)
        missing = _make(change, found, choices, script.salt)
        watched.rounds.append(Round(start, str(game.phase), dict(choices)))
        backwards = change is not None and change.kind == "order"
        for player in reversed(asked) if backwards else asked:
            if player != missing:
                acting[player] = asyncio.create_task(seats[player].act(to_action(choices[player], town.names)))
                await asyncio.sleep(0)  # so that it is heard before the next
        if missing is not None:
            assert town.expire() == (seat_name(missing),)
        await asyncio.sleep(0)  # so that those who are asked next have heard
    for player in range(len(script.roles)):
        found.last.append(await everything(town, player))
    for task in acting.values():
        task.cancel()
    await asyncio.gather(*acting.values(), return_exceptions=True)
    return found


def _make(change: Change | None, found: Played, choices: dict[int, Choice], salt: int) -> int | None:
    """Make the change among the choices of a round, if this is the one; return who misses its deadline."""
    if change is None:
        return None
    here = [t.player for t in change.turns if t.player in choices and len(found.asked[t.player]) == t.number + 1]
    if change.kind == "hands" and len(here) == 2:
        one, other = here
        choices[one], choices[other] = choices[other], choices[one]
    elif change.kind in ("choice", "words"):
        for player in here:
            choices[player] = _otherwise(choices[player], change.kind, found.asked[player][-1].options, salt)
    return here[0] if change.kind == "deadline" and here else None


def watch(script: Script, change: Change | None = None) -> Played:
    """Play a game by the engine alone, ten times as fast: what is asked and what can be done is kept, but no text."""
    script = script if change is None else changed(script, change)
    options = TownOptions.read({"roles": ["Any"] * len(script.roles), **script.rules})
    game = Game(options.setup, options.rules, script.seed, roles=script.roles)
    found = Played(Watched(script.roles, options.rules, game.log), [[] for _ in script.roles])
    rounds = found.watched.rounds
    while not game.over and game.state.day <= script.days and len(rounds) < script.rounds:
        start, choices = len(game.log), {}
        for player in game.waiting:
            turn = len(found.asked[player])
            able = game.options(player)
            found.asked[player].append(Asked(start, len(rounds), able))
            choices[player] = chosen(script, game.state.day, player, turn, able)
            for paper in _papers(script, change, player, turn):
                if paper.name in WRITES:
                    game.write(player, WRITES[paper.name], str(paper.parameters["text"]))
        missing = _make(change, found, choices, script.salt)
        rounds.append(Round(start, str(game.phase), choices))
        game.resolve(choices, forced=frozenset() if missing is None else frozenset((missing,)))
    found.last = [""] * len(script.roles)
    return found


def _encoded(shown: Any) -> str:
    return json.dumps(encode(shown), sort_keys=True)


async def everything(town: Town, player: int) -> str:
    """Return all that a seat can be shown now: its turn, what each tool tells it, and the whole prompt of a model."""
    seat = town.seat(seat_name(player))
    seen = town.observation(seat_name(player))
    found = [seen.to_text(), _encoded(seen), seat.game_description]
    knows, options, names = town.knowledge(player), town.game.options(player), town.names
    given: Mapping[str, Sequence[object]] = {
        "player": names,
        "role": ("Sheriff", "Jester", knows.role),
        "day": range(1, knows.day + 1),
    }
    for tool in LOOKS:
        (kind,) = TOOLS[tool][1] or ("",)
        found += [look_up(tool, {kind: value}, knows, names, options) for value in given.get(kind, ("",))]
    if options:
        for style in (TagStyle(), JsonStyle()):
            model = ScriptedBackend(["Hm.</thinking><wait/>", '{"action": "wait", "params": {}}'] * 2)
            agent = LLMAgent(model, LLMOptions("ToSSim", plan=False, window=0, constrain=False), style=style)
            await agent.initialize(seat.game_description, seat.action_space)
            await agent.decide(seen)
            found += [message.text() for request in model.requests[:1] for message in request.messages]
    return "\n".join(found)


# --- two of them -------------------------------------------------------------------------------


SECRET = ("dusk", "talk at night", "night", "ballot", "judgement")


def places(first: Played, kind: str) -> list[Change]:
    """Return where in a game something else can be done that others can't know of."""
    found = []
    turns = {(a.round, p): Turn(p, n) for p, asked in enumerate(first.asked) for n, a in enumerate(asked)}
    rounds = first.watched.rounds
    for (number, player), turn in sorted(turns.items()):
        phase, choices = rounds[number].phase, rounds[number].choices
        choice = choices[player]
        secret = phase in SECRET or choice.verb is Verb.WHISPER
        if kind == "hands":
            others = [q for q, c in sorted(choices.items()) if q > player and c.verb is choice.verb and c != choice]
            found += [
                Change(kind, (turn, turns[number, q]))
                for q in others
                if _can(first.asked[player][turn.number], choices[q])
                and _can(first.asked[q][turns[number, q].number], choice)
            ]
        elif (
            kind in ("papers", "tools")
            or (kind == "choice" and secret)
            or (kind == "words" and secret and choice.text)
            or (kind == "deadline" and choice.verb is Verb.WAIT)
        ):
            found.append(Change(kind, (turn,)))
    return found


def _can(asked: Asked, choice: Choice) -> bool:
    slots = next((o.slots for o in asked.options if o.verb is choice.verb), ())
    return len(slots) == len(choice.targets) and all(t in s for t, s in zip(choice.targets, slots, strict=True))


def compared(script: Script, change: Change, first: Played, by: Callable[[Script, Change], Played] = play) -> int:
    """Hold two games against each other; return how often a player was shown the same after they had parted.

    Args:
        script: what both are drawn from.
        change: what is different in the second.
        first: the first, as it was played.
        by: what plays the second: what has played the first.

    Raises:
        AssertionError: a player was shown something else, or asked at another time, before anything happened that it
            may know.
    """
    second = by(script, change)
    logs = zip(first.watched.log, second.watched.log, strict=False)
    shortest = min(len(first.watched.log), len(second.watched.log))
    parted = next((n for n, (a, b) in enumerate(logs) if a[1:] != b[1:]), shortest)
    histories = told(first.watched)[1], told(second.watched)[1]
    own = {turn.player for turn in change.turns}
    same = 0
    for player in range(len(script.roles)):
        if player in own:
            continue  # it knows what it did itself
        one = _lived(histories[0][player], first.asked[player])
        other = _lived(histories[1][player], second.asked[player])
        same += _alike(player, one, other, parted)
        if [e[1:] for e in one] == [e[1:] for e in other]:
            assert first.last[player] == second.last[player], f"player {player} is shown something else at the end"
            same += 1
    return same


Lived = tuple[int, str, str]
"""Where in the log; "told" or "asked"; what."""


def _lived(known: Sequence[Told], asked: Sequence[Asked]) -> list[Lived]:
    """Return everything that a player comes to know and every time that it is asked, in order."""
    # What the rules let one know by what it is offered comes before it is asked, and what happens then after it.
    found = [(t.at, 0 if t.what[0] != "[" else 2, "told", t.what) for t in known]
    found += [(a.at, 1, "asked", f"{a.options!r}\n{a.shown}\n{a.tools}") for a in asked]
    found.sort(key=lambda entry: entry[:2])
    return [(at, kind, what) for at, _, kind, what in found]


def _alike(player: int, one: Sequence[Lived], other: Sequence[Lived], parted: int) -> int:
    same = 0
    for n, (a, b) in enumerate(zip(one, other, strict=False)):
        if a[1:] == b[1:]:
            same += a[1] == "asked" and a[0] > parted
            continue
        assert (a[1], b[1]) != ("asked", "asked"), f"player {player} is shown another turn:\n{_first(a[2], b[2])}"
        if a[1] != b[1]:  # what it is told next has to differ: being asked can't be what tells the games apart
            ahead, behind = (next((e[2] for e in of[n:] if e[1] == "told"), "") for of in (one, other))
            assert ahead != behind, f"player {player} is asked in one game alone, before {ahead}"
        _in_one_order(player, [e[2] for e in _block(one, n)], [e[2] for e in _block(other, n)])
        break
    return same


def _block(lived: Sequence[Lived], at: int) -> Iterator[Lived]:
    """Give what comes to be known in one go, from a place on."""
    for entry in lived[at:]:
        if entry[1] == "asked" or '"phase"' in entry[2]:
            return
        yield entry


def _in_one_order(player: int, one: Sequence[str], other: Sequence[str]) -> None:
    night = one and one[0].startswith("[") and json.loads(one[0])[1] == "night"
    if night and sorted(one) == sorted(other):
        raise AssertionError(f"player {player} is told the same in another order:\n{_first(str(one), str(other))}")


def _first(one: str, other: str) -> str:
    at = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return f"...{one[max(0, at - 200) : at + 100]}\n--- and ---\n...{other[max(0, at - 200) : at + 100]}"
