"""Choices forced by hand, as typed on the command line: `player-3=vote Player 4`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wsap_core.errors import UsageError
from wsap_core.protocol import Action
from wsap_core.untrusted import single_line
from wsap_llm.kit import typed_action
from wsap_tossim.engine.data.model import Choice
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.replay.story import view_named
from wsap_tossim.tool_use import WRITES, write_down
from wsap_tossim.verbs import TOOLS, action_space, choice_of

__all__ = ["ForcedChoice", "decided", "forced_choices_of", "player_named"]


@dataclass(frozen=True)
class ForcedChoice:
    """A forced action of one player in the round of the fork."""

    player: int
    action: Action
    """A choice, or a paper to write before it."""
    typed: str
    """As typed, for error messages."""

    @property
    def is_choice(self) -> bool:
        """Whether it ends the player's turn."""
        return self.action.name not in TOOLS


def player_named(word: str, names: Sequence[str]) -> int | None:
    """Return a player by name, by seat (`player-3`) or by number from 1; None if there is no such player."""
    plain = word.strip()
    for candidate in (plain, plain.removeprefix("player-")):
        try:
            found = view_named(candidate, names)
        except UsageError:
            continue
        if isinstance(found, int):
            return found
    return None


def forced_choices_of(words: Iterable[str], record_names: Sequence[str], game: Game) -> tuple[ForcedChoice, ...]:
    """Parse words of the form PLAYER=ACTION.

    Raises:
        UsageError: there is no such player or action, it is a lookup, or a player has two choices.
    """
    space = action_space(record_names, list(ROLES), game.rules)
    found: list[ForcedChoice] = []
    for word in words:
        name, equals, rest = word.partition("=")
        shown = single_line(word)[:80]
        player = player_named(name, record_names) if equals else None
        if player is None:
            people = ", ".join(map(single_line, record_names))
            raise UsageError(
                f"--set takes PLAYER=ACTION, such as '{single_line(record_names[0])}=wait', not {shown!r}; "
                f"the players are: {people}."
            )
        action, reason = typed_action(rest, space)
        if action is None:
            raise UsageError(f"--set {shown!r}: {reason}")
        if action.name in TOOLS and action.name not in WRITES:
            raise UsageError(
                f"--set {shown!r}: {action.name} is a lookup; --set takes a decision, or a paper to write "
                f"({', '.join(WRITES)})."
            )
        choice = ForcedChoice(player, action, shown)
        if choice.is_choice and any(p.is_choice and p.player == player for p in found):
            raise UsageError(
                f"--set {shown!r}: {single_line(record_names[player])} is given two decisions; leave one out."
            )
        found.append(choice)
    return tuple(found)


def decided(game: Game, found: Iterable[ForcedChoice], names: Sequence[str]) -> dict[int, Choice]:
    """Write the forced papers, and return the forced choices by player without carrying them out.

    Raises:
        UsageError: a player is not asked in this round, or can't do this.
    """
    choices: dict[int, Choice] = {}
    for choice in found:
        if choice.player not in game.waiting:
            asked = ", ".join(single_line(names[n]) for n in game.waiting) or "nobody, because the game is over"
            raise UsageError(
                f"--set {choice.typed!r}: {single_line(names[choice.player])} is not asked in round {game.round}; "
                f"asked are: {asked}. --list shows all rounds."
            )
        if choice.is_choice:
            choices[choice.player] = choice_of(choice.action, names)
            reason = game.refusal(choice.player, choices[choice.player])
        else:
            reason = write_down(game, choice.player, choice.action) or ""
        if reason:
            raise UsageError(f"--set {choice.typed!r}: {reason}")
    return choices
