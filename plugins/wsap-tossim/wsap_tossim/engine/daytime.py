"""The day: the floor, votes, trials and ballots."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wsap_tossim.engine.bids import BIDS, Bids
from wsap_tossim.engine.data.events import bit
from wsap_tossim.engine.data.model import Choice, Phase, Verb
from wsap_tossim.engine.data.tokens import tokens
from wsap_tossim.engine.death import lynch
from wsap_tossim.engine.floor import Floor
from wsap_tossim.engine.progress import Progress
from wsap_tossim.engine.victory import draw

__all__ = ["Daytime"]


class Daytime(Progress):
    """The part of a game from the morning to dusk."""

    def _morning(self) -> None:
        state = self.state
        if state.day > self.rules.longest_game:
            self._end(draw(state, f"Nobody has won in {self.rules.longest_game} days."))
            return
        if state.day - state.last_death_day > self.rules.deathless_days:
            self._end(draw(state, f"Nobody has died or been converted for {self.rules.deathless_days} days."))
            return
        self.trials_today = 0
        self._bids = Bids(state)
        self._spent.clear()
        self._enter(Phase.DISCUSSION)
        self._open(self._turns(self.rules.discussion_rounds))

    def _turns(self, rounds: int) -> int:
        """Return the length of a phase: in turns under bidding, otherwise in rounds."""
        return rounds * len(self.state.others()) if self.rules.floor == "bids" else rounds

    def _open(self, turns: int, *, until_idle: bool = False) -> None:
        """Give the floor to the living; see `_turns`."""
        self._step = self._after_floor
        if self.rules.floor == "bids":
            self._bids.turns_left = turns
        else:
            self._floor = Floor(self.state, turns, until_idle=until_idle)
        self._next_on_floor()

    def _next_on_floor(self) -> None:
        """Give the floor to the next player, ask for bids, or enter the next phase."""
        state = self.state
        if self.rules.floor == "bids":
            self.waiting = self._bids.asked(silenced=state.phase is Phase.DISCUSSION)
            if self.waiting:
                self._bid(True)
                self._step = self._after_bids
                return
        else:
            while (player := self._floor.next()) is not None:
                if not state.players[player].blackmailed or state.phase is not Phase.DISCUSSION:
                    self.waiting = (player,)
                    return
                state.tell_silent(player)
        self._all_have_talked()

    def _bid(self, bidding: bool) -> None:
        self._bidding = bidding
        self._offered.clear()

    def _after_bids(self, choices: Mapping[int, Choice]) -> None:
        """Give the floor to the highest bidder; without bids the phase ends."""
        state = self.state
        self._bid(False)
        bids = {player: BIDS[choices[player].verb] for player in self.waiting if choices[player].verb in BIDS}
        for player, level in bids.items():
            state.tell_one(player, "bid", level=level)
        if not bids:
            self._all_have_talked()
            return
        player = self._bids.give(bids)
        state.tell("floor", state.everyone, player=player)
        self.waiting = (player,)
        self._step = self._after_floor

    def _all_have_talked(self) -> None:
        state = self.state
        if state.phase is Phase.DISCUSSION and not (state.day == 1 and self.rules.first_day == "talk"):
            if self.rules.lynching == "ballot":
                self._enter(Phase.BALLOT)
                self.waiting = tuple(p.number for p in state.players if p.alive)
                self._step = self._after_ballot
                return
            self._nominate(self._turns(self.rules.nomination_rounds))
            return
        self._dusk()

    def _nominate(self, turns: int) -> None:
        self.votes.clear()
        self._enter(Phase.NOMINATION)
        self._open(turns, until_idle=True)

    def _after_floor(self, choices: Mapping[int, Choice]) -> None:
        player = self.waiting[0]
        choice = choices[player]
        act = _ON_FLOOR.get(choice.verb)
        if act is None:
            self.state.tell_silent(player)
        else:
            self._floor.idle = False
            act(self, player, choice)
            if self.accused is not None:
                return
        self._next_on_floor()

    def _spend(self, player: int, text: str) -> None:
        if self.rules.tokens_a_day:
            self._spent[player] = self._spent.get(player, 0) + tokens(text)

    def _speak(self, player: int, choice: Choice) -> None:
        state = self.state
        self._spend(player, choice.text)
        state.tell("speech", state.everyone, player=player, text=choice.text)

    def _reveal(self, player: int, choice: Choice) -> None:
        state = self.state
        state.players[player].revealed = True
        self.mayors.append(player)
        self._offered.clear()
        state.tell("revealed", state.everyone, player=player)

    def _unvote(self, player: int, choice: Choice) -> None:
        state = self.state
        state.tell("unvote", state.everyone, player=player, target=self.votes.pop(player))

    def _vote(self, player: int, choice: Choice) -> None:
        state, votes = self.state, self.votes
        target = choice.targets[0]
        votes[player] = target
        needed = self.needed
        state.tell("vote", state.everyone, player=player, target=target, weight=self.weight(player), needed=needed)
        if self.against(target) >= needed:
            self._try(target)

    def _whisper(self, player: int, choice: Choice) -> None:
        state, to, text = self.state, choice.targets[0], choice.text
        self._spend(player, text)
        heard = bit(player) | bit(to)
        for p in state.players:
            if p.alive and p.role.name in ("Spy", "Blackmailer"):
                heard |= bit(p.number)
        state.tell("whispered", state.everyone, player=player, to=to)
        state.tell("whisper", heard, player=player, to=to, text=text)

    def _try(self, target: int) -> None:
        self.trials_today += 1
        self.accused = target
        self.votes.clear()
        self.state.tell("trial", self.state.everyone, player=target, number=self.trials_today)
        self._enter(Phase.DEFENSE)
        if self.state.players[target].blackmailed:
            self.state.tell_silent(target)
            self._judge()
            return
        self.waiting = (target,)
        self._step = self._after_defense

    def _after_defense(self, choices: Mapping[int, Choice]) -> None:
        self._one_speaks(choices)
        self._judge()

    def _one_speaks(self, choices: Mapping[int, Choice]) -> None:
        player = self.waiting[0]
        choice = choices[player]
        if choice.verb is Verb.SPEAK:
            self._speak(player, choice)
        else:
            self.state.tell_silent(player)

    def _judge(self) -> None:
        self._enter(Phase.JUDGEMENT)
        self.waiting = tuple(p.number for p in self.state.players if p.alive and p.number != self.accused)
        self._step = self._after_judgement

    def _after_judgement(self, choices: Mapping[int, Choice]) -> None:
        state, accused = self.state, self.accused
        assert accused is not None, "somebody is on trial"
        guilty = innocent = 0
        voted_guilty = []
        known_by = state.everyone if self.rules.open_verdicts else 0
        for player in self.waiting:
            verb = choices[player].verb
            weight = self.weight(player)
            if verb is Verb.GUILTY:
                guilty += weight
                voted_guilty.append(player)
            elif verb is Verb.INNOCENT:
                innocent += weight
            else:
                verb = Verb.ABSTAIN
            state.tell("verdict", known_by, player=player, verdict=verb.value, weight=weight)
        condemned = guilty > innocent
        state.tell("judged", state.everyone, player=accused, guilty=guilty, innocent=innocent, condemned=condemned)
        if not condemned:
            self.accused = None
            turns = self._bids.turns_left if self.rules.floor == "bids" else self._floor.rounds_to_go
            if self.trials_today < self.rules.trials_a_day and turns > 0:
                self._nominate(turns)
            else:
                self._dusk()
            return
        self._voted_guilty = voted_guilty
        self._enter(Phase.LAST_WORDS)
        if state.players[accused].blackmailed:
            state.tell_silent(accused)
            self._lynch(accused)
            return
        self.waiting = (accused,)
        self._step = self._after_last_words

    def _after_last_words(self, choices: Mapping[int, Choice]) -> None:
        self._one_speaks(choices)
        assert self.accused is not None, "somebody is condemned"
        self._lynch(self.accused)

    def _lynch(self, player: int) -> None:
        self.accused = None
        lynch(self.state, player, self._voted_guilty)
        if not self._ended():
            self._dusk()

    def _after_ballot(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        counts: dict[int, int] = {}
        for player in self.waiting:
            choice = choices[player]
            if choice.verb is Verb.VOTE:
                counts[choice.targets[0]] = counts.get(choice.targets[0], 0) + self.weight(player)
        if not counts:
            state.tell("ballot", state.everyone, counts={}, lynched=None)
            self._dusk()
            return
        most = max(counts.values())
        first = sorted(p for p, count in counts.items() if count == most)
        lynched = first[0] if len(first) == 1 else state.public.choice(first)
        state.tell("ballot", state.everyone, counts={str(p): counts[p] for p in sorted(counts)}, lynched=lynched)
        self._voted_guilty = [
            p for p in self.waiting if choices[p].verb is Verb.VOTE and choices[p].targets[0] == lynched
        ]
        self._lynch(lynched)


_ON_FLOOR: Mapping[Verb, Callable[[Daytime, int, Choice], None]] = {
    Verb.SPEAK: Daytime._speak,
    Verb.WHISPER: Daytime._whisper,
    Verb.VOTE: Daytime._vote,
    Verb.UNVOTE: Daytime._unvote,
    Verb.REVEAL: Daytime._reveal,
}
"""Verb of the player who has the floor -> method."""
