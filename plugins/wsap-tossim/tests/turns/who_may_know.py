"""Who may know what, written from `docs/reference/tossim-rules.md` and from nothing in the engine.

`told` watches a whole game, every choice and every event, and says of each event who may know it, and what of it.
The section "What is told" of the reference is the text to `_TO_ALL`, `_TO_ONE` and `_Watch`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wsap_tossim.engine.data.model import Choice, Event
from wsap_tossim.engine.data.rules import RuleSet
from wsap_tossim.engine.roles.listed import ROLES


class Round(NamedTuple):
    """A round of a game that was watched."""

    start: int
    """How long the log was when it was asked for."""
    phase: str
    choices: Mapping[int, Choice]


@dataclass
class Watched:
    """A game that was watched from the first to the last of its rounds."""

    roles: Sequence[str]
    """Of each player at the start."""
    rules: RuleSet
    log: Sequence[Event]
    rounds: list[Round] = field(default_factory=list)


class Told(NamedTuple):
    """Something that a player comes to know."""

    at: int
    """Where in the log; for ordering only, never compared."""
    what: str
    """Day, part of the day, kind and data, as that player may know them."""


_TO_ALL: Mapping[str, str] = {
    "begins": "players rules mode slots",
    "phase": "name",
    "over": "winners side reason",
    "truth": "roles final",
    "speech": "player text",
    "floor": "player",
    "whispered": "player to",
    "silent": "player",
    "vote": "player target weight needed",
    "unvote": "player target",
    "trial": "player number",
    "judged": "player guilty innocent condemned",
    "ballot": "counts lynched",
    "revealed": "player",
    "death": "player causes role when",
    "will": "player text cleaned",
    "note": "player text",
    "haunted": "player",
    "raised": "player",
    "remembered": "role",
}
"""What all learn: kind -> all that is told of it."""
_TO_ONE: Mapping[str, str] = {
    "role": "player role mates target",
    "blackmailed": "player",
    "bid": "player level",
    "result": "player verb target",  # and what is found, below
    "told": "player code",  # and whom or how many, below
    "chose": "player verb targets",
    "writes": "player what text",
}
"""What one learns of oneself."""
_FINDINGS: Mapping[str, str] = {
    "interrogate": "suspicious",
    "investigate": "group",
    "consult": "role",
    "watch": "visitors",
    "hunt": "vampire",
    "spy": "visits",
    "clean": "role will",
    "control": "role",
}
"""Who looked -> what it finds, and nothing more."""
_FELT: Mapping[str, str] = {
    "ordered": "target",
    "forged": "target",
    "raise_failed": "target",
    "remember_failed": "target",
    "alerted": "number",
}
"""What one feels that has somebody or a number in it; all else is felt without."""
_TO_NOBODY = frozenset(
    ("moves", "controls", "blocks", "visits", "protects", "attacks", "deceives", "forced"),
)
"""The night itself, and who missed a deadline."""
_BY_NIGHT = ("dusk", "talk at night", "night")


class _Watch:
    """What is true in a game at a moment."""

    def __init__(self, game: Watched) -> None:
        self.rules = game.rules
        self.role = list(game.roles)
        self.alive = [True] * len(game.roles)
        self.bitten = [0] * len(game.roles)
        """Of Vampires: the day on which each became one; 0 from the start."""
        self.last_bite = 0
        self.prisoner: int | None = None
        self.seances: list[tuple[int, int]] = []
        """(the dead Medium, the living one), by seat."""
        self.guilty: dict[int | None, list[int]] = {}
        """Who wanted whom lynched: by the last judgement (under None) or ballot."""

    def living(self, *names: str) -> set[int]:
        """Return the living with one of these roles."""
        return {n for n, alive in enumerate(self.alive) if alive and self.role[n] in names}

    def side(self, faction: str) -> set[int]:
        """Return the living of a faction that know one another."""
        return {n for n, alive in enumerate(self.alive) if alive and ROLES[self.role[n]].faction.value == faction}

    def in_jail(self) -> set[int]:
        """Return the prisoner and the Jailor, who talk with nobody else tonight."""
        return set() if self.prisoner is None else {self.prisoner, *self.living("Jailor")}

    def held(self) -> list[tuple[int, int]]:
        """Return tonight's séances that come about: each player is in one at most, and no prisoner in any."""
        taken, found = self.in_jail(), []
        for pair in self.seances:
            if not taken & set(pair):
                found.append(pair)
                taken |= set(pair)
        return found

    def away(self) -> set[int]:
        """Return those who talk in jail or in a séance tonight, and so with nobody else."""
        return self.in_jail().union(*self.held())

    def heard(self, channel: str, speaker: int | None) -> set[int]:
        """Return who hears what is said at night."""
        everybody = set(range(len(self.role)))
        if channel == "jail":
            return self.in_jail()
        if channel == "seance":
            return set().union(*(pair for pair in self.held() if speaker in pair))
        if channel == "mafia":
            return self.side("Mafia") - self.away()
        if channel == "vampires":
            return self.side("Vampires") - self.away()
        assert channel == "dead"
        return ({n for n in everybody if not self.alive[n]} | self.living("Medium")) - self.away()

    def takes_in(self, event: Event) -> None:
        """Let an event be true from now on."""
        data = event.data
        if event.kind == "phase" and data["name"] == "dusk":
            self.prisoner, self.seances = None, []
        elif event.kind == "death":
            self.alive[data["player"]] = False
        elif event.kind == "raised":
            self.alive[data["player"]] = True
        elif event.kind == "becomes":
            self.role[data["player"]] = data["role"]
            if data["role"] == "Vampire":
                self.bitten[data["player"]] = event.day
                self.last_bite = event.day if data["why"] == "conversion" else self.last_bite

    def takes_in_choices(self, asked: Round) -> None:
        """Let what was chosen be true from now on."""
        for player, choice in sorted(asked.choices.items()):
            if choice.verb == "jail":
                self.prisoner = choice.targets[0]
            elif choice.verb == "seance":
                self.seances.append((player, choice.targets[0]))
        if asked.phase == "judgement":
            self.guilty = {None: [p for p, choice in sorted(asked.choices.items()) if choice.verb == "guilty"]}
        elif asked.phase == "ballot":
            self.guilty = {}
            for p, choice in sorted(asked.choices.items()):
                if choice.verb == "vote":
                    self.guilty.setdefault(choice.targets[0], []).append(p)

    # --- what is told -------------------------------------------------------------------------

    def knowers(self, event: Event) -> tuple[set[int], str]:
        """Return who may know an event, and what of it."""
        kind, data = event.kind, event.data
        everybody = set(range(len(self.role)))
        if kind in _TO_ALL:
            return everybody, _TO_ALL[kind]
        if kind in _TO_NOBODY:
            return set(), ""
        if kind == "verdict":
            return everybody if self.rules.open_verdicts else set(), "player verdict weight"
        if kind == "whisper":
            return {data["player"], data["to"], *self.living("Spy", "Blackmailer")}, "player to text"
        if kind == "jailed":
            return {data["player"], *self.living("Jailor")}, "player"
        if kind == "becomes":
            faction = ROLES[data["role"]].faction.value
            mates = self.side(faction) if faction in ("Mafia", "Vampires") else set()
            return {data["player"], *mates}, "player role why"
        if kind == "said":
            return self._listeners(event)
        fields = _TO_ONE[kind]
        if kind == "result":
            fields += f" {_FINDINGS[data['verb']]}"
        elif kind == "told":
            fields += f" {_FELT.get(data['code'], '')}"
        return {data["player"]}, fields

    def _listeners(self, event: Event) -> tuple[set[int], str]:
        channel, speaker = event.data["channel"], event.data["player"]
        named = speaker == self.prisoner if channel == "jail" else channel != "dead" or not self.alive[speaker or 0]
        by_whom = "channel player text" if named else "channel text"  # the Jailor and the living Medium are not named
        if channel == "mafia" and speaker is None:  # as a Spy hears it: what, not who
            spies = self.living("Spy") - ({self.prisoner} if self.prisoner is not None else set())
            return (spies if self.rules.spy_hears_mafia else set()), "channel text"
        if channel == "vampires" and speaker is None:  # as a Vampire Hunter does
            hunters = self.living("Vampire Hunter") - ({self.prisoner} if self.prisoner is not None else set())
            return (hunters if self.rules.hunter_hears_vampires else set()), "channel text"
        return self.heard(channel, speaker), by_whom if speaker is not None else "channel text"

    def offered(self, day: int) -> dict[int, str]:
        """Return what the rules let some know by what they can do tonight, and nothing tells them besides."""
        known: dict[int, str] = {}
        vampires = self.side("Vampires") - ({self.prisoner} if self.prisoner is not None else set())
        rests = self.last_bite > 0 and day == self.last_bite + 1
        youngest = max(vampires, key=lambda n: (self.bitten[n], n), default=None)
        for n in sorted(vampires):  # "one in jail is passed over"
            known[n] = f"bites: {n == youngest and not rests}"
        listens = bool(self.living("Medium") - self.away())
        for n, alive in enumerate(self.alive):
            if (
                not alive and not self.rules.dead_talk
            ):  # "the dead and a living Medium (without one only with `dead_talk`)"
                known[n] = f"a Medium listens: {listens}"
        for pair in self.seances:  # "each in one at most: the prisoner and the Jailor; the séance"
            known[pair[0]] = f"the seance is held: {pair in self.held()}"
        return known


def told(game: Watched) -> tuple[list[tuple[set[int], str]], list[list[Told]]]:
    """Return of each event who may know it and which of its data, and for each player all that it comes to know."""
    watch = _Watch(game)
    masks: list[tuple[set[int], str]] = []
    histories: list[list[Told]] = [[] for _ in game.roles]
    rounds = list(game.rounds)
    nights = 0

    def night_falls(at: int, day: int) -> None:
        nonlocal nights
        if nights < day:
            nights = day
            for n, what in watch.offered(day).items():
                histories[n].append(Told(at, f"{day} {what}"))

    for at, event in enumerate(game.log):
        while rounds and rounds[0].start <= at:
            if rounds[0].phase in ("talk at night", "night"):
                night_falls(at, event.day)
            watch.takes_in_choices(rounds.pop(0))
        if event.kind == "phase" and event.data["name"] == "night":
            night_falls(at, event.day)
        watch.takes_in(event)
        who, fields = watch.knowers(event)
        masks.append((who, fields))
        part = "night" if event.phase in _BY_NIGHT else str(event.phase)
        data: dict[str, Any] = {name: event.data[name] for name in fields.split() if name in event.data}
        if event.kind == "told" and event.data["code"] == "may_haunt":  # "haunts one who voted guilty"
            data["whom"] = watch.guilty.get(None) or watch.guilty.get(event.data["player"], [])
        for n in sorted(who):
            histories[n].append(Told(at, json.dumps([event.day, part, event.kind, data], sort_keys=True)))
    if rounds and rounds[0].phase in ("talk at night", "night"):
        night_falls(len(game.log), game.log[-1].day)
    return masks, histories
