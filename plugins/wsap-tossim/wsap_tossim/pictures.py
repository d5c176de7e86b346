"""The town as something to look at, in the terminal and in the dashboard."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.models import ChatBlock, ChatLine, TableBlock, TextBlock, View
from wsap_tossim.context import CHAT
from wsap_tossim.engine.game import Game
from wsap_tossim.knowledge import Knowledge
from wsap_tossim.words import CHANNELS, sentence

__all__ = ["town_view"]

MOST_LINES = 60
SHOWN = frozenset({*CHAT, "note", "raised", "remembered", "over", "result", "told"} - {"silent", "whispered"})
"""Kinds of events that are told in a sentence, beside what is said."""


def town_view(knows: Knowledge, names: Sequence[str], secrets: Game | None = None) -> View:
    """Return who lives, what is being said, and what is going on.

    Args:
        knows: of the player, or of everybody.
        names: of the players.
        secrets: the game, for onlookers who may see every role.
    """
    title = f"{'Night' if knows.by_night else 'Day'} {knows.day}, {knows.phase}"
    voting = bool(knows.votes)
    rows = []
    for one in knows.standing:
        role = secrets.state.players[one.number].role.name if secrets is not None else one.role
        known = role or ("" if one.alive else "?")
        known = known if one.alive else f"died day {one.died}: {known}"
        vote = names[knows.votes[one.number]] if one.number in knows.votes else ""
        rows.append((names[one.number], known, *([vote] if voting else [])))
    # Few and narrow columns: half a small terminal is 30 characters wide.
    columns = ("player", "known of it", *(["votes for"] if voting else []))
    blocks: list[TableBlock | ChatBlock | TextBlock] = [TableBlock(columns, rows)]
    lines = []
    for event in knows.events:
        if event.day < knows.day - 1:
            continue
        if event.kind in ("speech", "whisper", "said") and event.data.get("text"):
            speaker = event.data.get("player")
            channel = CHANNELS.get(event.data.get("channel", ""), "whisper" if event.kind == "whisper" else "")
            lines.append(ChatLine("?" if speaker is None else names[speaker], str(event.data["text"]), channel))
        elif event.kind in SHOWN and (text := sentence(event, names, knows.player)):
            lines.append(ChatLine("Town", text))
    blocks.append(ChatBlock(lines[-MOST_LINES:], "Today"))
    if knows.winners is not None:
        won = ", ".join(names[n] for n in knows.winners) or "nobody"
        blocks.append(TextBlock(f"{knows.reason} Winners: {won}.", "The game is over"))
    return View(blocks, title)
