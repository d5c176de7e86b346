"""What somebody who sits in a character achieves in a tick."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_sandbox.model import TickRecord, World

_FAILED = "_failed"
"""Not an achievement: the character has failed once, which `recover` needs."""


def achieved(before: World, record: TickRecord, character: str, earned: Sequence[str]) -> list[str]:
    """Return the achievements that a tick brings a character for the first time; `earned` is what it had before."""
    one = before.character(character)
    present = {other.id for other in before.present(one.place) if other.id != character}
    acts = [event for event in record.events if event.actor == character and event.kind in ("act", "move")]
    won = any(event.outcome == "success" for event in acts)
    change = next(change for change in record.characters if change.id == character)
    had = {other.id: set(other.inventory) for other in before.characters}
    has = {other.id: set(other.inventory) for other in record.characters}
    found = {
        "get_your_way": won,
        "keep_company": bool(present),
        "touch_a_nerve": any(event.triggers and event.actor in present for event in record.events),
        "give": any((had[character] - has[character]) & has.get(other, set()) for other in present),
        "receive": any((has[character] - had[character]) & had[other] for other in present),
        "travel": change.place != one.place,
        "recover": won and _FAILED in earned,
        _FAILED: any(event.outcome == "failure" for event in acts),
    }
    return [name for name, there in found.items() if there and name not in earned]
