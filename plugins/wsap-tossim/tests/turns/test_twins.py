"""For every hidden fact: what those are shown who can't know it is the same, byte by byte, when it changes.

`many_twins.py` does the same for as many games as one likes: `nox -s secrets`.
"""

from __future__ import annotations

from collections import Counter

import drawn
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from twins import KINDS, compared, play, watch
from who_may_know import Watched, told

from wsap_tossim.engine.data.events import EVENTS
from wsap_tossim.engine.data.model import Event, Faction
from wsap_tossim.engine.roles.listed import ROLES

SALTS = st.integers(0, 2**24)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_player_cannot_know_changes_nothing_that_it_is_shown(kind: str) -> None:
    same = 0

    @settings(max_examples=3)
    @given(SALTS)
    def holds(salt: int) -> None:
        nonlocal same
        script = drawn.script(salt)
        first = play(script)
        change = drawn.change(kind, script, first)
        assume(change is not None)
        assert change is not None
        same += compared(script, change, first)

    holds()
    assert same >= 10, "the games part, and go on to be the same for some"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("tools", "order")])
@pytest.mark.slow
def test_what_a_player_cannot_know_changes_nothing_that_it_is_asked_or_can_do(kind: str) -> None:
    """The same without a word of text: what is told in what order, who is asked when, and what each can do."""
    same = 0

    @settings(max_examples=25)
    @given(SALTS)
    def holds(salt: int) -> None:
        nonlocal same
        script = drawn.script(salt, most=12)
        first = watch(script)
        change = drawn.change(kind, script, first)
        assume(change is not None)
        assert change is not None
        same += compared(script, change, first, watch)

    holds()
    assert same >= 100


def mates(game: Watched, event: Event) -> dict[str, str]:
    """Return whom a player may know from the moment on that it is told its role, with their roles."""
    before = [e for e in game.log[: event.number] if e.kind in ("becomes", "death", "raised")]
    role, alive = dict(enumerate(game.roles)), dict.fromkeys(range(len(game.roles)), True)
    for e in before:
        if e.kind == "becomes":
            role[e.data["player"]] = e.data["role"]
        else:
            alive[e.data["player"]] = e.kind == "raised"
    side = ROLES[event.data["role"]].faction
    if side not in (Faction.MAFIA, Faction.VAMPIRES):
        return {}
    me = event.data["player"]
    return {str(n): role[n] for n in role if alive[n] and n != me and ROLES[role[n]].faction is side}


@pytest.mark.slow
def test_everybody_may_know_what_the_reference_says_and_nothing_more() -> None:
    kinds: Counter[str] = Counter()

    @settings(max_examples=70)
    @given(SALTS)
    def holds(salt: int) -> None:
        game = watch(drawn.script(salt, most=15)).watched
        masks, _ = told(game)
        for event, (who, fields) in zip(game.log, masks, strict=True):
            kinds[event.kind] += 1
            if event.kind == "role":
                assert event.data["mates"] == mates(game, event)
            assert {n for n in range(15) if event.known_by >> n & 1} == who, (event, sorted(who))
            if who:
                assert set(event.data) <= set(fields.split()) | {"player", "target", "number"}, event
                hidden = [n for n in ("player", "target", "number") if n in event.data and n not in fields.split()]
                assert all(event.data[n] is None for n in hidden), f"{hidden} of {event} is told"

    holds()
    assert len(kinds) >= len(EVENTS) - 4, f"nearly all that can happen has happened, but for {set(EVENTS) - set(kinds)}"
