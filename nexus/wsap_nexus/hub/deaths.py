"""What agents are told of bodies that died: of what, and how they can live again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wsap_core.untrusted import one_line
from wsap_nexus.agents.chronicle import latest
from wsap_nexus.store.book import Book

# Any, in this module: the bodies of events, as JSON.


def respawn_words(options: list[Mapping[str, Any]]) -> str:
    """Return a sentence about the ways in which a body can live again, with what each of them costs."""
    if not options:
        return "It can't live again."
    told = []
    for option in options:
        costs = ", ".join(f"{amount} {one_line(name)}" for name, amount in sorted((option.get("cost") or {}).items()))
        terms = [f"costs {costs}"] if costs else []
        terms += [", ".join(map(one_line, option["penalties"]))] if option.get("penalties") else []
        name = one_line(option["id"])[:80]
        told.append(f"{name} ({'; '.join(terms)})" if terms else name)
    return f"It can live again: {', '.join(told)}."


def death_words(body: Mapping[str, Any]) -> str:
    """Return a sentence about a death, from the body of the event `died`."""
    killer = f", killed by {one_line(body['death_killer'])[:80]}" if body.get("death_killer") else ""
    return (
        f"{one_line(body.get('death_avatar_id', 'A body'))[:80]} died of {one_line(body['death_cause'])[:80]}{killer}."
    )


def ways_back(book: Book, agent_id: str, game: str) -> dict[str, str]:
    """Return, for an agent's dead bodies in a game, a sentence about how each can live again: avatar -> sentence."""
    found: dict[str, str] = {}
    for event in latest(book, agent_id, ("died",), limit=50):
        avatar_id = str(event.body.get("death_avatar_id", ""))
        if event.game == game and avatar_id not in found:
            found[avatar_id] = respawn_words(list(event.body.get("death_respawn_options", ())))
    return found
