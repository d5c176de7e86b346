"""The view of the town for the terminal and the dashboard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from wsap_core.protocol import ChatBlock, ChatLine, SeatsBlock, SeatState, TextBlock, View
from wsap_tossim.engine.data.model import Phase
from wsap_tossim.engine.game import Game
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.perception.context import CHAT, private_lines, where_it_stands
from wsap_tossim.perception.event_text import CHANNELS, listed, sentence, verdicts

__all__ = ["lines_of", "town_view"]

MOST_LINES = 60
NARRATOR = "Town"
"""The speaker of events; a reserved name."""
_ALONE = frozenset({"result", "told", "becomes", "jailed", "blackmailed"})
"""Kinds of private events of one player."""
_TOLD = frozenset({*CHAT, *_ALONE, "note", "raised", "remembered", "haunted", "over"} - {"silent"})
"""Kinds of events shown as sentences among the speeches."""


def town_view(
    knows: Knowledge,
    names: Sequence[str],
    secrets: Game | None = None,
    *,
    seats: Sequence[str] = (),
    speaker: int | None = None,
) -> View:
    """Return the table, the state of the game and the talk; for a player also its private knowledge.

    Args:
        knows: what is shown.
        names: of the players.
        secrets: the game, for spectators who may see every role.
        seats: the world's names of the seats.
        speaker: who has the floor.
    """
    blocks: list[SeatsBlock | ChatBlock | TextBlock] = []
    over = knows.winners is not None
    if knows.player is not None and not over:
        blocks.append(TextBlock(_you(knows, names)))
    if over:
        won = listed([names[n] for n in knows.winners or ()])
        blocks.append(TextBlock(f"{knows.reason} Winners: {won}.", "The game is over"))
    blocks.append(_table(knows, names, secrets, seats, speaker))
    if known := _alone(knows, names):
        blocks.append(ChatBlock(known, "What you alone know"))
    lately = [event for event in knows.events if event.day >= knows.day - 1]
    blocks.append(ChatBlock(lines_of(lately, names, knows.player)[-MOST_LINES:], "Lately"))
    return View(blocks, _title(knows))


def lines_of(events: Sequence[Seen], names: Sequence[str], me: int | None) -> list[ChatLine]:
    """Return a line for each event, oldest first; `me` is the player, or None for spectators."""
    return list(_lines(events, names, me))


def _title(knows: Knowledge) -> str:
    alive = f"{len(knows.living())} of {knows.players} alive"
    if knows.winners is not None:
        return f"The game is over, {alive}"
    return f"{f'Night {knows.day}' if knows.by_night else f'Day {knows.day}, {knows.phase}'}, {alive}"


def _you(knows: Knowledge, names: Sequence[str]) -> str:
    assert knows.player is not None  # the caller asked
    alive = "" if knows.alive else " You are dead; you can still win."
    who = f"You are {names[knows.player]}, the {knows.role}.{alive} {where_it_stands(knows, names)}".rstrip()
    role = ROLES.get(knows.role or "")
    # at the start, and when it has an action
    told = knows.alive and role is not None and (knows.day == 1 or knows.by_night)
    return f"{who}\n{role.summary}" if told and role is not None else who


def _alone(knows: Knowledge, names: Sequence[str]) -> list[ChatLine]:
    """Return a player's private knowledge, oldest first, without role and mates, which the table shows."""
    if knows.player is None:
        return []
    told = [line for line in private_lines(knows, names) if not line.startswith("You are the ")]
    if knows.target is not None and not any(line.startswith("Your target") for line in told):
        told.insert(0, f"Your target is {names[knows.target]}.")
    lines = [line.partition(": ") if line.startswith("Night ") else ("You", "", line) for line in told]
    return [ChatLine(when, what) for when, _, what in lines]


def _table(
    knows: Knowledge, names: Sequence[str], secrets: Game | None, seats: Sequence[str], speaker: int | None
) -> SeatsBlock:
    accused = knows.accused if knows.accused is not None and knows.standing[knows.accused].alive else None
    badges = dict.fromkeys(knows.winners or (), "won")
    if accused is not None and knows.winners is None:
        badges[accused] = "on trial"
    told = []
    for one in knows.standing:
        number = one.number
        role = secrets.state.players[number].role.name if secrets is not None else one.role
        note = role or "" if one.alive else f"{role or 'nobody knows what'}, day {one.died}"
        told.append(
            SeatState(
                names[number],
                seats[number] if seats else "",
                "in" if one.alive else "out",
                number == speaker,
                ", ".join(filter(None, ("you" if number == knows.player else "", note))),
                badges.get(number, ""),
            )
        )
    links = [(names[voter], names[target], "vote") for voter, target in sorted(knows.votes.items())]
    return SeatsBlock(
        told,
        links,
        names[accused] if "on trial" in badges.values() and accused is not None else "",
        _phases(knows),
        "" if knows.winners is not None else "night" if knows.by_night else knows.phase,
        knows.by_night and knows.winners is None,
        _in_a_sentence(knows, names, accused),
    )


def _phases(knows: Knowledge) -> list[str]:
    """Return the phases of a day under the rules of the game, as players see them."""
    trial = (Phase.NOMINATION, Phase.DEFENSE, Phase.JUDGEMENT, Phase.LAST_WORDS)
    day = trial if knows.rules.lynching == "trial" else (Phase.BALLOT,)
    return [*([Phase.DISCUSSION.value] if knows.rules.discussion_rounds else []), *(p.value for p in day), "night"]


def _in_a_sentence(knows: Knowledge, names: Sequence[str], accused: int | None) -> str:
    told = [_title(knows)]
    if accused is not None and knows.winners is None:
        told.append(f"{names[accused]} is on trial")
    for target, against in sorted(Counter(knows.votes.values()).items()):
        told.append(f"{against} {'vote' if against == 1 else 'votes'} against {names[target]}")
    return f"{'. '.join(told)}."


def _lines(events: Sequence[Seen], names: Sequence[str], me: int | None) -> Iterator[ChatLine]:
    heard = {(e.data["player"], e.data["to"]) for e in events if e.kind == "whisper"}
    died = 0
    for kind, group in groupby(events, key=lambda event: event.kind):
        if kind == "verdict":
            yield ChatLine(NARRATOR, verdicts([event.data for event in group], names))
            continue
        for event in group:
            died = event.day if kind == "death" and event.phase == "night" else died
            if kind == "phase":
                yield from _begins(event, died)
            elif kind != "whispered" or (event.data["player"], event.data["to"]) not in heard:
                yield from _line(event, names, me)


def _begins(event: Seen, died: int) -> Iterator[ChatLine]:
    if event.data["name"] == "dusk":
        yield ChatLine(NARRATOR, f"Night {event.day} falls.")
    elif event.data["name"] == "discussion" and event.day > 1:
        nobody = "" if died == event.day - 1 else " Nobody died last night."
        yield ChatLine(NARRATOR, f"Day {event.day} begins.{nobody}")


def _line(event: Seen, names: Sequence[str], me: int | None) -> Iterator[ChatLine]:
    data = event.data
    if event.kind in ("speech", "whisper", "said"):
        speaker = data.get("player")
        channel = CHANNELS.get(data.get("channel", ""), "")
        if event.kind == "whisper":
            channel = f"to {'you' if data['to'] == me else names[data['to']]}"
        if data.get("text"):
            yield ChatLine("?" if speaker is None else names[speaker], str(data["text"]), channel)
    elif event.kind in _TOLD:
        text = sentence(event, names, me)
        if event.kind == "jailed" and me is None:
            text = f"{names[data['player']]} is taken into jail."
        if text:
            yield ChatLine(NARRATOR, text, _to_whom(event, names, me))


def _to_whom(event: Seen, names: Sequence[str], me: int | None) -> str:
    if event.kind not in _ALONE:
        return ""
    if me is not None:
        return "to you alone"
    return f"to {names[event.data['player']]} alone" if event.kind in ("result", "told") else "in secret"
