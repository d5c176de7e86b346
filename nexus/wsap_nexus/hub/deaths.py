"""What agents are told of bodies that died: of what, and how they can live again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wsap_core.untrusted import one_line
from wsap_nexus.agents.chronicle import latest
from wsap_nexus.store.book import Book
from wsap_nexus.store.events import Died

# Any, in this module: the bodies of events, as JSON.


def respawn_words(options: Sequence[Mapping[str, Any]]) -> str:
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


def death_words(death: Died) -> str:
    """Return a sentence about the death of an avatar."""
    killer = f", killed by {one_line(death.death_killer)[:80]}" if death.death_killer else ""
    avatar = one_line(death.death_avatar_id)[:80] or "An avatar"
    return f"{avatar} died of {one_line(death.death_cause)[:80]}{killer}."


def ways_back(book: Book, agent_id: str, game: str) -> dict[str, str]:
    """Return, for an agent's dead bodies in a game, a sentence about how each can live again: avatar -> sentence."""
    found: dict[str, str] = {}
    for event in latest(book, agent_id, Died, limit=50):
        if event.game == game and event.death_avatar_id not in found:
            found[event.death_avatar_id] = respawn_words(event.death_respawn_options)
    return found
