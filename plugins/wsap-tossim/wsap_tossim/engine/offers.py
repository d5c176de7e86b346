"""What a player can do when it is asked, and why something else is refused."""

from __future__ import annotations

from wsap_tossim.engine.abilities import dusk_options, night_options
from wsap_tossim.engine.model import Choice, Option, Phase, Verb
from wsap_tossim.engine.progress import Progress

__all__ = ["Offers"]

_WAIT_ONLY = (Option(Verb.WAIT),)
_SPEAK = Option(Verb.SPEAK, (), True)
_JUDGE = (Option(Verb.GUILTY), Option(Verb.INNOCENT), Option(Verb.ABSTAIN), *_WAIT_ONLY)


class Offers(Progress):
    """The part of a game that says what can be chosen."""

    def options(self, player: int) -> tuple[Option, ...]:
        """Return everything a player can do now, `wait` included; nothing if it is not asked."""
        if player not in self.waiting:
            return ()
        state = self.state
        phase = state.phase
        if phase is Phase.NIGHT:
            return (*night_options(state, state.players[player]), *_WAIT_ONLY)
        if phase is Phase.DUSK:
            return (*dusk_options(state, state.players[player]), *_WAIT_ONLY)
        if phase is Phase.TALK_AT_NIGHT:
            return (Option(Verb.SAY, (), True), *_WAIT_ONLY)
        if phase is Phase.JUDGEMENT:
            return _JUDGE
        others = state.others(player)
        if phase is Phase.BALLOT:
            return (Option(Verb.VOTE, (others,)), *_WAIT_ONLY)
        if player in self.votes:
            return self._by_day(player, others)
        key = (player, state.players[player].blackmailed)
        known = self._offered.get(key)
        if known is None:
            known = self._offered[key] = self._by_day(player, others)
        return known

    def _by_day(self, player: int, others: tuple[int, ...]) -> tuple[Option, ...]:
        state = self.state
        one = state.players[player]
        found: list[Option] = []
        if not one.blackmailed:
            found.append(_SPEAK)
        if state.phase in (Phase.DEFENSE, Phase.LAST_WORDS):
            return (*found, *_WAIT_ONLY)
        if not one.blackmailed and not one.revealed:
            open_to = tuple([n for n in others if not state.players[n].revealed])
            if open_to:
                found.append(Option(Verb.WHISPER, (open_to,), True))
        if state.phase is Phase.NOMINATION:
            standing = self.votes.get(player)
            choice = others if standing is None else tuple([n for n in others if n != standing])
            if choice:
                found.append(Option(Verb.VOTE, (choice,)))
            if player in self.votes:
                found.append(Option(Verb.UNVOTE))
        if one.role.name == "Mayor" and not one.revealed:
            found.append(Option(Verb.REVEAL))
        return (*found, *_WAIT_ONLY)

    def refusal(self, player: int, choice: Choice) -> str:
        """Return why a player can't choose so now, in a sentence; empty if it can."""
        if self.over:
            return "The game is over."
        if not 0 <= player < len(self.state.players):
            return f"There is no player number {player}."
        if player not in self.waiting:
            return "The dead do not act." if not self.state.players[player].alive else "It is not your turn."
        options = self.options(player)
        option = next((o for o in options if o.verb == choice.verb), None)
        if option is None:
            able = ", ".join(o.verb for o in options)
            return f"You can't {choice.verb} now ({self.phase}); you can: {able}."
        return self._wrong_targets(player, choice, option) or self._wrong_words(choice, option)

    def _wrong_targets(self, player: int, choice: Choice, option: Option) -> str:
        if len(choice.targets) != len(option.slots):
            return f"{choice.verb} takes {len(option.slots)} players, not {len(choice.targets)}."
        if len(set(choice.targets)) != len(choice.targets):
            return f"{choice.verb} takes two different players."
        for target, slot in zip(choice.targets, option.slots, strict=True):
            if target not in slot:
                return self._not_allowed(player, choice.verb, target)
        return ""

    def _wrong_words(self, choice: Choice, option: Option) -> str:
        longest = self.rules.longest_will if choice.verb is Verb.FORGE else self.rules.longest_text
        if option.text and not choice.text.strip() and choice.verb is not Verb.FORGE:
            return f"{choice.verb} needs words."
        if len(choice.text) > longest:
            return f"That is too long: {len(choice.text)} characters; at most {longest}."
        return f"{choice.verb} takes no words." if choice.text and not option.text else ""

    def _not_allowed(self, player: int, verb: Verb, target: int) -> str:
        players = self.state.players
        if not 0 <= target < len(players):
            return f"There is no player number {target}."
        if target == player:
            return f"You can't {verb} yourself."
        if not players[target].alive and verb not in (Verb.RAISE, Verb.REMEMBER):
            return f"You can't {verb} the dead."
        if verb is Verb.VOTE and self.votes.get(player) == target:
            return "You vote for that player already."
        return f"You can't {verb} that player now."
