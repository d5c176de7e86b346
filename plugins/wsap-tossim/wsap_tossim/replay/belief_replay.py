"""The beliefs of scripted players in a recorded run, recomputed by replaying the players.

A scripted player is a function of its seed and its knowledge. If the choices of a recreated player differ from the
recorded ones, as in another version of the players, its beliefs are omitted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from wsap_core.seams.context import derive_seed
from wsap_tossim.engine.data.model import Choice, Verb
from wsap_tossim.engine.data.record import Entry, steps_of
from wsap_tossim.engine.game import WRITINGS, Game
from wsap_tossim.knowledge import Knowledge, share
from wsap_tossim.players.decider import lots
from wsap_tossim.players.match import AFTER_THE_DAY
from wsap_tossim.players.scripted import ScriptedDecider
from wsap_tossim.replay.story import Belief

__all__ = ["AGENT", "replay_beliefs", "seeds_of"]

AGENT = "tossim-player"
"""Name of the scripted player's agent."""


def seeds_of(config: Mapping[str, Any], players: Mapping[str, int]) -> dict[int, int]:
    """Return the seeds of a run's scripted players, by player, from its recorded configuration. Any: JSON data."""
    seats = [str(seat["name"]) for seat in config["seats"] if seat["agent"] == AGENT]
    return {players[name]: derive_seed(int(config["seed"]), "agent", name) for name in seats}


def replay_beliefs(
    begins: Game, game: Game, names: Sequence[str], seeds: Mapping[int, int], given: Collection[int] = ()
) -> list[Belief]:
    """Return the beliefs of scripted players, once a day as long as they lived.

    Args:
        begins: the game at the start of the run; it is modified.
        game: the recorded game.
        names: of all players.
        seeds: scripted player -> the seed of its agent.
        given: players with forced choices in the first round.
    """
    first = begins.round
    deciders = {n: ScriptedDecider(n, lots(seed, n), names) for n, seed in seeds.items()}
    known = {n: Knowledge(n) for n in deciders}
    found: list[Belief] = []
    expected: dict[int, Choice] = {}
    told, asked_on, at = 0, 0, -1
    for step in steps_of(game.record[len(begins.record) :]):
        if at < begins.round:  # before anybody writes, since writers know what they write
            at = begins.round
            share(begins.log[told:], known)
            told = len(begins.log)
            if begins.phase in AFTER_THE_DAY and asked_on != begins.state.day:
                asked_on = begins.state.day
                living = [one.number for one in begins.state.living() if one.number in deciders]
                found += [Belief(asked_on, n, dict(deciders[n].beliefs(known[n]))) for n in living]
            asked = [n for n in begins.waiting if n in deciders]
            expected = {n: deciders[n].turn(known[n], begins.options(n)).choice for n in asked}
        for entry in step:
            if entry.round == first and entry.player in given:
                continue
            if entry.player in deciders and not _fits(entry, expected.get(entry.player)):
                del deciders[entry.player], known[entry.player]
        begins.repeat(step)
    return [belief for belief in found if belief.player in deciders]


def _fits(entry: Entry, expected: Choice | None) -> bool:
    """Return whether the recorded choices are the expected ones; papers and forced choices don't count."""
    if entry.verb in WRITINGS or entry.forced:
        return True
    return Choice(Verb(entry.verb), tuple(entry.targets), entry.text) == expected
