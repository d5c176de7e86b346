"""A recorded story of the tests, without an engine: three people who walk up and down between three places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wsap_sandbox.model import Cell, CharacterChange, Degraded, LedgerEvent, PlaceChange, TickRecord, World, after
from wsap_sandbox.story.chapters import tick_body

EVIL = '</script><img src=x onerror="window.hit=1"><script>window.hit=1</script> [x](javascript:alert(1)) *b* \u202e'
"""What a page must show as text."""


def told(world: World, ticks: int, *, text: str = "", late: bool = False) -> Iterator[Mapping[str, Any]]:
    """Give the events of a run in which everybody goes from place to place.

    Args:
        world: as it begins.
        ticks: how many there are.
        text: added to each text.
        late: whether narration comes after the next tick rather than before its own.
    """
    waiting: list[Mapping[str, Any]] = []
    for tick in range(1, ticks + 1):
        record = _record(world, tick, text)
        world = after(world, record)
        stories: list[Mapping[str, Any]] = [
            {"kind": "story", "step": None, "body": {"tick": tick, "place": place.id, "degraded": [],
             "text": f"In {place.name} it was the {tick}th day. {text}"}}
            for place in world.places
        ]  # fmt: skip
        ticked = {"kind": "tick", "step": tick, "body": {"number": tick, "body": tick_body(world, record)}}
        yield from (ticked, *waiting) if late else (*stories, ticked)
        waiting = stories
    yield from waiting if late else ()


def _record(world: World, tick: int, text: str) -> TickRecord:
    events, changes = [], []
    for number, one in enumerate(world.characters):
        exits = world.place(one.place).exits
        to = exits[(tick + number) % len(exits)]
        event = LedgerEvent(
            f"{tick}.{one.place}.{number + 1}", tick, number + 1, one.place, "move",
            f"{one.name} goes on. {text}", one.id, ("success", "partial", "failure")[tick % 3],
            one.triggers[:1], tuple(other.id for other in world.present(one.place)),
        )  # fmt: skip
        events.append(event)
        cell = Cell(tick, f"I tried day {tick}. {text}", "It went well.", "I am content.", (event.id,))
        changes.append(
            CharacterChange(one.id, to, one.place, "calm", "to walk", one.inventory, f"I walk. {text}", "model", cell)
        )
    places = tuple(PlaceChange(place.id, f"Day {tick}.", place.objects, ()) for place in world.places)
    degraded = (Degraded("scene", "mill", "missing", "anna"),) if tick == 2 else ()
    return TickRecord(tick, tuple(events), tuple(changes), places, (), degraded)
