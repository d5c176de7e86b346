"""The data of a page: the part of a game that its view may show, with thoughts and beliefs in place.

A page for one view contains nothing else. A page for all views contains everything, with who may know each event, and
shows in each view what `knowledge.seen_by` yields.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from wsap_core.errors import UsageError
from wsap_tossim.engine.data.model import Event, Phase
from wsap_tossim.engine.game import Entry, Game
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.knowledge import as_seen
from wsap_tossim.replay.event_lines import STEPS, line

__all__ = ["Belief", "Story", "Thought", "View", "page_data", "view_named"]

View = int | Literal["public"]
"""A player's number, or the public view."""


class Thought(NamedTuple):
    """A player's thought before a choice."""

    round: int
    """The round of the choice; see `Game.round`."""
    player: int
    text: str


class Belief(NamedTuple):
    """A player's estimate of who is evil."""

    day: int
    player: int
    evil: Mapping[int, float]
    """Player -> probability, from 0 to 1."""


@dataclass(frozen=True)
class Story:
    """The parts of a game that a page needs."""

    log: Sequence[Event]
    names: Sequence[str]
    mode: str = ""
    rules: str = ""
    starts: Sequence[int] = ()
    """The length of the log when each round was resolved."""
    record: Sequence[Entry] = ()
    thoughts: Sequence[Thought] = ()
    beliefs: Sequence[Belief] = ()
    played_by: Sequence[str] = field(default=())
    """Who played each seat: a scripted player, a model, a person; empty if unknown."""
    found_out: Sequence[int] = ()
    """Players whose beliefs were recomputed after the game."""
    called: str = ""
    """The game's name for `wsap tossim fork`; empty if unknown."""

    @classmethod
    def of(
        cls,
        game: Game,
        names: Sequence[str],
        thoughts: Iterable[tuple[int, int, str]] = (),
        beliefs: Iterable[tuple[int, int, Mapping[int, float]]] = (),
        played_by: Sequence[str] = (),
    ) -> Story:
        """Return the story of a game, finished or not, with the fields of `Thought` and `Belief` as tuples.

        Raises:
            UsageError: the number of names (or of a non-empty `played_by`) is wrong.
        """
        count = len(game.state.players)
        if len(names) != count or (played_by and len(played_by) != count):
            raise UsageError(
                f"The game has {count} players; there are {len(names)} names and {len(played_by)} who played them."
            )
        rules = f"{game.rules.name} (version {game.rules.version})"
        return cls(
            game.log, tuple(names), game.setup.name, rules, tuple(game.starts), tuple(game.record),
            tuple(Thought(*t) for t in thoughts if t[2]), tuple(Belief(*b) for b in beliefs), tuple(played_by),
        )  # fmt: skip


def view_named(text: str, names: Sequence[str]) -> View | None:
    """Return a view by "all", "public", a player's name or, failing that, number from 1; None for all.

    Raises:
        UsageError: there is no such view.
    """
    wanted = text.strip()
    if wanted == "all":
        return None
    if wanted == "public":
        return "public"
    same = [n for n, name in enumerate(names) if name == wanted] or [
        n for n, name in enumerate(names) if name.casefold() == wanted.casefold()
    ]
    if len(same) == 1:
        return same[0]
    if wanted.isascii() and wanted.isdigit() and 1 <= int(wanted[:6]) <= len(names):
        return int(wanted) - 1
    raise UsageError(f"There is no view {text[:40]!r}; there are: all, public, {', '.join(names)}.")


def page_data(story: Story, view: View | None = None) -> dict[str, Any]:
    """Return the data of a page, JSON-ready: only what the view may know, or everything if it is None.

    Raises:
        UsageError: there is no such player.
    """
    if isinstance(view, int) and not 0 <= view < len(story.names):
        raise UsageError(f"There is no player number {view}; the game has {len(story.names)} players.")
    kept = [n for n, event in enumerate(story.log) if _may_see(event, view, story.log)]
    place = _places(kept, len(story.log))
    tallies = dict(_tallies(story.log))
    speakers = {n: who for n, who in _speakers(story).items() if view in (None, who)}
    events = []
    for n in kept:
        row = _event(story.log[n], tallies.get(n))
        if view is None:
            row["known"] = story.log[n].known_by
            row["round"] = _round(story, n)
            if n in speakers:
                row["speaker"] = speakers[n]
        events.append(row)
    return {
        "format": 1,
        "view": "all" if view is None else view,
        "names": list(story.names),
        "minds": [mind if view in (None, n) else "" for n, mind in enumerate(story.played_by)],
        "mode": story.mode,
        "rules": story.rules,
        "factions": {role.name: role.faction.value for role in ROLES.values()},
        "outcome": _outcome(story),
        "events": events,
        "thoughts": [_thought(story, t, place, speakers) for t in _own(story.thoughts, view)],
        "beliefs": [
            [b.day, b.player, {str(p): round(float(e), 4) for p, e in sorted(b.evil.items())}]
            for b in _own(story.beliefs, view)
        ],
        "found_out": [n for n in story.found_out if view in (None, n)],
        # Round numbers count hidden choices, so only the view of all has them.
        "fork": {"called": story.called, "rounds": len(story.starts)} if view is None and story.starts else None,
    }


def _round(story: Story, n: int) -> int:
    """Return the round of an event; papers belong to the round after the last one."""
    return max(0, bisect_right(story.starts, n) - (story.log[n].kind != "writes"))


def _may_see(event: Event, view: View | None, log: Sequence[Event]) -> bool:
    """Return whether an event belongs to a view, as in `knowledge.seen_by`."""
    if view is None:
        return True
    if view == "public":
        return event.known_by == log[0].known_by
    return bool(event.known_by >> view & 1)


def _own(rows: Sequence[Any], view: View | None) -> list[Any]:
    # Any: thoughts and beliefs alike have a player.
    return [row for row in rows if view is None or row.player == view]


def _places(kept: Sequence[int], count: int) -> list[int]:
    """Return the number of kept events before each place in the log and its end."""
    shown = set(kept)
    return list(accumulate((n in shown for n in range(count)), initial=0))


def _event(event: Event, tally: Mapping[str, Any] | None) -> dict[str, Any]:
    seen = as_seen(event)
    row: dict[str, Any] = {"day": seen.day, "phase": seen.phase, "kind": seen.kind}
    said = line(event)
    if said is None:
        return row
    row["tone"], row["parts"] = said.tone, list(said.parts)
    if said.text:
        row["text"] = said.text
    if said.speaker is not None:
        row["by"] = said.speaker
    if event.phase is Phase.NIGHT and event.kind in STEPS:
        row["step"] = STEPS[event.kind]
    if tally is not None:
        row["tally"] = tally
    if event.kind in _TELLING:
        row["data"] = {key: event.data[key] for key in _TELLING[event.kind] if key in event.data}
    return row


_TELLING: Mapping[str, Sequence[str]] = {
    "role": ("player", "role", "mates"),
    "becomes": ("player", "role"),
    "revealed": ("player",),
    "death": ("player", "role"),
    "raised": ("player",),
    "jailed": ("player",),
    "blackmailed": ("player",),
    "whispered": ("player", "to"),
    "whisper": ("player", "to"),
    "over": ("winners",),
    "truth": ("roles", "final"),
}
"""Kind -> the fields from which the page builds its list of players."""


def _outcome(story: Story) -> dict[str, Any] | None:
    for event in reversed(story.log):
        if event.kind == "over":
            return {"side": event.data.get("side"), "winners": event.data["winners"], "reason": event.data["reason"]}
    return None


def _tallies(log: Sequence[Event]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the vote counts after each event that changes them."""
    votes: dict[int, int] = {}
    mayor: set[int] = set()
    needed = 0
    for n, event in enumerate(log):
        kind, data = event.kind, event.data
        if kind == "revealed":
            mayor.add(data["player"])
            if not votes:
                continue
        elif kind == "vote":
            votes[data["player"]] = data["target"]
            needed = data["needed"]
        elif kind == "unvote":
            votes.pop(data["player"], None)
        else:
            if kind == "trial" or (kind == "phase" and data["name"] in (Phase.NOMINATION, Phase.DUSK)):
                votes.clear()
            continue
        counts: dict[int, int] = {}
        for player, target in votes.items():
            counts[target] = counts.get(target, 0) + (3 if player in mayor else 1)
        rows = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
        yield n, {"needed": needed, "counts": [list(row) for row in rows]}


# --- thoughts -----------------------------------------------------------------------------------

_DEEDS = ("speech", "whisper", "vote", "unvote", "revealed", "silent", "verdict", "said", "chose", "bid")


def _span(story: Story, number: int) -> tuple[int, int]:
    """Return the start and end of a round's events in the log."""
    if number >= len(story.starts):
        return len(story.log), len(story.log)
    end = story.starts[number + 1] if number + 1 < len(story.starts) else len(story.log)
    return story.starts[number], end


def _thought(story: Story, thought: Thought, place: Sequence[int], speakers: Mapping[int, int]) -> dict[str, Any]:
    """Return a thought beside the event that it led to, or before it if the view does not show that event."""
    start, end = _span(story, thought.round)
    at, beside = start, False
    for n in range(start, end):
        if _is_deed(story.log[n], thought.player, speakers.get(n)):
            at, beside = n, place[n + 1] > place[n]
            break
    context = as_seen(story.log[max(0, start - 1)])
    return {
        "player": thought.player,
        "text": thought.text,
        "beside": place[at] if beside else None,
        "before": place[start],
        "day": context.day,
        "phase": context.phase,
    }


def _is_deed(event: Event, player: int, speaker: int | None) -> bool:
    return event.kind in _DEEDS and (event.data.get("player") == player or speaker == player)


def _speakers(story: Story) -> dict[int, int]:
    """Return the real speakers of anonymous messages: the Jailor, a Medium, or the Mafia as heard by a Spy."""
    found: dict[int, int] = {}
    by_round: dict[int, list[Entry]] = {}
    for entry in story.record:
        if entry.verb == "say":
            by_round.setdefault(entry.round, []).append(entry)
    for number, entries in by_round.items():
        start, end = _span(story, number)
        for n in range(start, end):
            event = story.log[n]
            if event.kind != "said" or event.data.get("player") is not None:
                continue
            said = [e.player for e in entries if e.text == event.data["text"]]
            own = [p for p in said if event.known_by >> p & 1]  # speakers hear themselves, but not a Spy's copy
            if own or said:
                found[n] = (own or said)[0]
    return found
