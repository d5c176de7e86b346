"""The night: choices at dusk, private talk, and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wsap_tossim.engine.data.events import bit, bits
from wsap_tossim.engine.data.model import Choice, Faction, Phase, Verb
from wsap_tossim.engine.night.abilities import dusk_options, night_options
from wsap_tossim.engine.night.resolution import resolve_night
from wsap_tossim.engine.progress import Progress

__all__ = ["Nighttime"]


class Nighttime(Progress):
    """The part of a game from dusk to the morning."""

    def _dusk(self) -> None:
        state = self.state
        self.votes.clear()
        self.accused = None
        for p in state.players:
            p.blackmailed = False
        state.prisoner = None
        state.seances.clear()
        self._enter(Phase.DUSK)
        self._unseen = {p.number: found for p in state.players if (found := dusk_options(state, p))}
        asked = tuple(self._unseen)
        if not asked:
            self._talk()
            return
        self.waiting = asked
        self._step = self._after_dusk

    def _after_dusk(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        for player in self.waiting:
            choice = choices[player]
            if choice.verb is Verb.JAIL:
                state.prisoner = choice.targets[0]
                state.tell("jailed", bit(player) | bit(state.prisoner), player=state.prisoner)
            elif choice.verb is Verb.SEANCE:
                living = choice.targets[0]
                if living not in state.seances.values():
                    state.tell_one(living, "told", code="seance")
                state.seances[player] = living
                one = state.players[player]
                one.uses[Verb.SEANCE] = one.uses.get(Verb.SEANCE, 1) - 1
        self._talk()

    def _talk(self) -> None:
        self._talk_rounds = self.rules.night_talk_rounds
        self._next_talk()

    def _next_talk(self) -> None:
        if self._talk_rounds > 0:
            channels = self.channels()
            asked = tuple(sorted({p for _, members in channels for p in members}))
            if asked:
                self._talk_rounds -= 1
                self._turn_to(Phase.TALK_AT_NIGHT)
                self.waiting = asked
                self._step = self._after_talk
                return
        self._night()

    def channels(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return tonight's channels and their speakers; each player is in at most one."""
        state = self.state
        found: list[tuple[str, tuple[int, ...]]] = []
        taken: set[int] = set()

        def add(name: str, members: Sequence[int], least: int = 2) -> None:
            free = tuple(m for m in members if m not in taken)
            if len(free) >= least:
                found.append((name, free))
                taken.update(free)

        def add_mates(name: str, faction: Faction) -> None:
            # A player whose only mate is in jail or in a seance is asked too, so that this looks like silence.
            mates = [p.number for p in state.of_faction(faction)]
            add(name, mates, 1 if len(mates) > 1 else 2)

        if state.prisoner is not None:
            jailors = [p.number for p in state.with_role("Jailor") if p.number != state.prisoner]
            add("jail", [*jailors[:1], state.prisoner])
        dead = [p.number for p in state.players if not p.alive]
        for medium, living in state.seances.items():
            if living not in taken:
                add("seance", [medium, living])
        add_mates("mafia", Faction.MAFIA)
        add_mates("vampires", Faction.VAMPIRES)
        listeners = [p.number for p in state.with_role("Medium") if p.number not in taken]
        if dead and (listeners or self.rules.dead_talk):
            add("dead", [*listeners, *dead])
        return found

    def _after_talk(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        for channel, members in self.channels():
            known_by = bits(members)
            said = [(player, choices[player].text) for player in members if choices[player].verb is Verb.SAY]
            # Anonymous messages are sorted by text, since seat order would reveal their speakers.
            for text in sorted(text for player, text in said if self._is_unseen(channel, player)):
                state.tell("said", known_by, channel=channel, player=None, text=text)
            for player, text in said:
                if not self._is_unseen(channel, player):
                    state.tell("said", known_by, channel=channel, player=player, text=text)
            listener = self._listener(channel)
            listeners = bits(p.number for p in state.with_role(listener) if p.number != state.prisoner)
            for text in sorted(text for _, text in said) if listeners else ():
                state.tell("said", listeners, channel=channel, player=None, text=text)
        self._next_talk()

    def _listener(self, channel: str) -> str:
        """Return the role that eavesdrops on a channel; empty for none."""
        if channel == "mafia" and self.rules.spy_hears_mafia:
            return "Spy"
        return "Vampire Hunter" if channel == "vampires" and self.rules.hunter_hears_vampires else ""

    def _is_unseen(self, channel: str, player: int) -> bool:
        """Return whether a speaker is anonymous: the Jailor, and a living Medium."""
        if channel == "jail":
            return player != self.state.prisoner
        return channel == "dead" and self.state.players[player].alive

    def _night(self) -> None:
        state = self.state
        self._turn_to(Phase.NIGHT)
        state.tell("phase", state.everyone, name=Phase.NIGHT.value)
        self._unseen = {p.number: found for p in state.players if (found := night_options(state, p))}
        asked = tuple(self._unseen)
        if not asked:
            self._resolve_night({})
            return
        self.waiting = asked
        self._step = self._resolve_night

    def _resolve_night(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        resolve_night(state, choices)
        if self._ended():
            return
        state.day += 1
        self._morning()
