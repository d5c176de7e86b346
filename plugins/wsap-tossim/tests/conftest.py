"""A town to set scenes in: players by name, nights in words."""

from __future__ import annotations

from typing import Any

import pytest

from wsap_tossim.engine.data.model import Choice, Event, Phase, Verb
from wsap_tossim.engine.data.rules import CLASSIC, RuleSet
from wsap_tossim.engine.data.state import Player, State
from wsap_tossim.engine.death import die, lynch, set_up
from wsap_tossim.engine.night.abilities import dusk_options, night_options
from wsap_tossim.engine.night.resolution import resolve_night
from wsap_tossim.engine.roles.listed import ROLES


class Town:
    """A game in which players have names, and roles as told. It begins at day 2, whose night is even.

    town = Town(cop="Sheriff", boss="Godfather")
    town.night(cop="interrogate boss")
    """

    def __init__(self, *, rules: RuleSet = CLASSIC, day: int = 2, seed: int = 0, **roles: str) -> None:
        self.names = list(roles)
        self.state = State(rules, [ROLES[role] for role in roles.values()], seed)
        self.state.day = day
        self.state.phase = Phase.NIGHT
        self.start = 0
        """Where in the log the last thing began that was let happen."""

    def begin(self) -> Town:
        """Let roles be told, targets be drawn."""
        set_up(self.state)
        return self

    def seat(self, name: str) -> int:
        return self.names.index(name)

    def __getitem__(self, name: str) -> Player:
        return self.state.players[self.seat(name)]

    def named(self, seats: Any) -> list[str]:
        return [self.names[n] for n in seats]

    # --- what happens ------------------------------------------------------------------------

    def kill(self, *names: str) -> Town:
        """Let players be dead already, without anything that follows."""
        for name in names:
            die(self.state, self.seat(name), ["old age"])
        self.start = len(self.state.log)
        return self

    def lynch(self, name: str, guilty: tuple[str, ...] = ()) -> None:
        self.start = len(self.state.log)
        lynch(self.state, self.seat(name), [self.seat(n) for n in guilty])

    def choice(self, words: str) -> Choice:
        """Return what is said like "forge victim: I am the Doctor."."""
        words, _, text = words.partition(": ")
        verb, *targets = words.split()
        return Choice(Verb(verb), tuple(self.seat(t) for t in targets), text)

    def night(self, *, jail: str | None = None, **acts: str) -> Town:
        """Let a night happen, in which everybody can do what it does."""
        self.start = len(self.state.log)
        self.state.prisoner = None if jail is None else self.seat(jail)
        choices = {}
        for name, words in acts.items():
            choice = self.choice(words)
            assert self.can(name, choice), f"{name} can't {words}"
            choices[self.seat(name)] = choice
        resolve_night(self.state, choices)
        return self

    def next_night(self, *, jail: str | None = None, **acts: str) -> Town:
        self.state.day += 1
        for p in self.state.players:
            p.blackmailed = False
        return self.night(jail=jail, **acts)

    # --- what can be done --------------------------------------------------------------------

    def options(self, name: str) -> dict[str, list[list[str]]]:
        found = night_options(self.state, self[name])
        return {o.verb.value: [self.named(slot) for slot in o.slots] for o in found}

    def at_dusk(self, name: str) -> dict[str, list[list[str]]]:
        found = dusk_options(self.state, self[name])
        return {o.verb.value: [self.named(slot) for slot in o.slots] for o in found}

    def can(self, name: str, choice: Choice) -> bool:
        for option in night_options(self.state, self[name]):
            if option.verb is choice.verb and len(option.slots) == len(choice.targets):
                return all(t in slot for t, slot in zip(choice.targets, option.slots, strict=True))
        return choice.verb is Verb.WAIT

    # --- what has come of it -----------------------------------------------------------------

    @property
    def events(self) -> list[Event]:
        """What happened last, whoever knows of it."""
        return self.state.log[self.start :]

    def of_kind(self, kind: str) -> list[Event]:
        return [e for e in self.events if e.kind == kind]

    @property
    def dead(self) -> set[str]:
        """Who died last."""
        return {self.names[e.data["player"]] for e in self.of_kind("death")}

    def causes(self, name: str) -> list[str]:
        (event,) = [e for e in self.of_kind("death") if e.data["player"] == self.seat(name)]
        return list(event.data["causes"])

    def told(self, name: str) -> list[str]:
        """The codes of what a player felt last."""
        return [e.data["code"] for e in self.of_kind("told") if e.data["player"] == self.seat(name)]

    def found(self, name: str) -> Any:
        """What a player found last: the one thing learned; None if nothing."""
        results = [e.data for e in self.of_kind("result") if e.data["player"] == self.seat(name)]
        if not results:
            return None
        (data,) = results
        learned = {k: v for k, v in data.items() if k not in ("player", "verb", "target")}
        if len(learned) > 1:
            return learned
        ((kind, value),) = learned.items()
        return self.named(value) if kind in ("visitors", "visits") else value

    def became(self) -> dict[str, str]:
        return {self.names[e.data["player"]]: e.data["role"] for e in self.of_kind("becomes")}

    def knowers(self, event: Event) -> set[str]:
        return {name for n, name in enumerate(self.names) if event.known_by >> n & 1}

    def seen_by(self, name: str) -> list[Event]:
        """Everything that a player may know, from the beginning."""
        return [e for e in self.state.log if e.known_by >> self.seat(name) & 1]


@pytest.fixture
def town() -> type[Town]:
    """Towns to set scenes in."""
    return Town
