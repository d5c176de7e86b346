"""The legal choices of a player, and the reasons for refusals."""

from __future__ import annotations

from wsap_tossim.engine.bids import BIDS
from wsap_tossim.engine.data.model import Choice, Option, Phase, Verb
from wsap_tossim.engine.data.state import without
from wsap_tossim.engine.data.tokens import CHARACTERS, tokens
from wsap_tossim.engine.progress import Progress

__all__ = ["Offers"]

_new = tuple.__new__  # three times as fast as the constructor of the named tuple
_WAIT_ONLY = (Option(Verb.WAIT),)
_SPEAK = Option(Verb.SPEAK, (), True)
_SAY = Option(Verb.SAY, (), True)
_UNVOTE = Option(Verb.UNVOTE)
_REVEAL = Option(Verb.REVEAL)
_JUDGE = (Option(Verb.GUILTY), Option(Verb.INNOCENT), Option(Verb.ABSTAIN), *_WAIT_ONLY)
_BID = (*map(Option, BIDS), *_WAIT_ONLY)
_VOTE = Verb.VOTE
_FLOOR = {Phase.DISCUSSION: False, Phase.NOMINATION: True}
"""Phase in which a player has the floor -> whether there are votes."""
_UNSEEN = frozenset({Phase.DUSK, Phase.NIGHT})


class Offers(Progress):
    """The part of a game that computes legal choices."""

    def options(self, player: int, *, talk: bool = True) -> tuple[Option, ...]:
        """Return a player's legal options, `wait` included; empty if it is not asked.

        Without `talk`, speaking, whispering and talk at night are left out.
        """
        if player not in self.waiting:
            return ()
        talks = talk and not self.state.players[player].blackmailed
        if talks and self.rules.tokens_a_day and self.state.phase is not Phase.TALK_AT_NIGHT:
            talks = self.tokens_left(player) != 0
        key = (player, self.votes.get(player), talks)
        known = self._offered.get(key)
        if known is None:
            known = self._offered[key] = self._found(player, talks)
        return known

    def _found(self, player: int, talks: bool) -> tuple[Option, ...]:
        """Return a player's options; the key of `_offered` has all that they depend on within a phase."""
        state = self.state
        phase = state.phase
        if self._bidding:
            return _BID
        if phase in _FLOOR:
            return self._on_floor(player, talks, _FLOOR[phase])
        if phase in _UNSEEN:
            return (*self._unseen[player], *_WAIT_ONLY)
        if phase is Phase.TALK_AT_NIGHT:
            return (_SAY, *_WAIT_ONLY) if talks else _WAIT_ONLY
        if phase is Phase.JUDGEMENT:
            return _JUDGE
        if phase is Phase.BALLOT:
            return (Option(Verb.VOTE, (state.others(player),)), *_WAIT_ONLY)
        return (_SPEAK, *_WAIT_ONLY) if talks else _WAIT_ONLY

    def _on_floor(self, player: int, talks: bool, votes: bool) -> tuple[Option, ...]:
        state = self.state
        others, one = state.others(player), state.players[player]
        found: list[Option] = []
        if talks:
            found.append(_SPEAK)
            if not one.revealed:
                open_to = tuple([n for n in others if not state.players[n].revealed])
                if open_to:
                    found.append(Option(Verb.WHISPER, (open_to,), True))
        if votes:
            standing = self.votes.get(player)
            open_to = others if standing is None else without(others, standing)
            if open_to:
                found.append(_new(Option, (_VOTE, (open_to,), False)))
            if standing is not None:
                found.append(_UNVOTE)
        if one.role.name == "Mayor" and not one.revealed:
            found.append(_REVEAL)
        return (*found, *_WAIT_ONLY)

    def refusal(self, player: int, choice: Choice) -> str:
        """Return why a choice is illegal, in a sentence; empty if it is legal."""
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
        wrong = self._wrong_targets(player, choice, option) or self._wrong_words(choice, option)
        return wrong or self._too_many(player, choice)

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

    def _too_many(self, player: int, choice: Choice) -> str:
        left = self.tokens_left(player)
        if left is None or choice.verb not in (Verb.SPEAK, Verb.WHISPER) or tokens(choice.text) <= left:
            return ""
        return (
            f"That is {tokens(choice.text)} tokens, and you have {left} left today: say it in at most "
            f"{left * CHARACTERS} characters."
        )

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
