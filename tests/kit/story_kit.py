"""A recorded story of the tests, without an engine: three people who walk up and down between three places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from wsap_sandbox.model import Cell, CharacterChange, Degraded, LedgerEvent, PlaceChange, TickRecord, World, after
from wsap_sandbox.story.chapters import tick_body


class Recorded:
    """A reader of one run that was recorded; `events` may be added to."""

    template = "gone.toml"
    """Where the world came from."""

    def __init__(self, events: Iterable[Mapping[str, Any]]) -> None:
        self.log: list[Mapping[str, Any]] = []
        self.add(*events)

    def add(self, *events: Mapping[str, Any]) -> None:
        """Record events."""
        self.log += [{"time": 1.0, "seq": len(self.log) + n, **event} for n, event in enumerate(events)]

    def events(self, run: str, *kinds: str, after: int = -1) -> Iterator[Mapping[str, Any]]:
        """As `RunReader.events`."""
        return (event for event in tuple(self.log) if event["seq"] > after and (not kinds or event["kind"] in kinds))

    def about(self, run: str) -> Mapping[str, Any]:
        """As `RunReader.about`."""
        config = {"options": {"template": self.template}}
        return {"created": "2026-11-22T12:00:00+00:00", "game": "sandbox", "config": config}

    def ticks(self, run: str) -> int:
        """As `RunReader.ticks`; nothing is rewound."""
        return max((event["step"] or 0 for event in self.log), default=0)

    def waiting(self, run: str) -> Sequence[Mapping[str, Any]]:
        """As `RunReader.waiting`; nothing waits."""
        return ()

    def history(self, run: str, *kinds: str, first: int = 1, last: int | None = None) -> Iterator[Mapping[str, Any]]:
        """As `RunReader.history`; nothing is rewound."""
        for event in self.events(run, *kinds):
            tick = event["step"] or event["body"]["tick"]
            if first <= tick and (last is None or tick <= last):
                yield event


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
    places = tuple(PlaceChange(place.id, f"Day {tick}.", place.objects) for place in world.places)
    degraded = (Degraded("scene", "mill", "missing", "anna"),) if tick == 2 else ()
    return TickRecord(tick, tuple(events), tuple(changes), places, (), degraded)
