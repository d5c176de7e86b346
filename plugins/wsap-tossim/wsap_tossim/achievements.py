"""Achievements of players, computed from events; the catalogue is in `wsap_tossim.plugin`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wsap_tossim.engine.data.model import Event, Faction
from wsap_tossim.engine.game import Game

__all__ = ["TELLS_NOTHING", "achievements"]

TELLS_NOTHING = frozenset({"speak_up", "night_finding", "survive_trial", "survive_attack"})
"""Achievements that reveal nothing to their player. All others are awarded at the end of the game."""

_VERDICTS = {("guilty", True): "just_verdict", ("innocent", False): "acquit_friend"}
"""Verdict, and whether the accused was an enemy -> achievement."""
_WINS = {Faction.TOWN: "win_as_town", Faction.MAFIA: "win_as_mafia"}
_SAVED = ("healed", "guarded", "defended", "fought", "behind_bars")


def achievements(game: Game, events: Sequence[Event], votes: Mapping[int, int]) -> dict[int, list[str]]:
    """Return the achievements earned in a round, by player, possibly repeatedly.

    `votes` are those for a trial before the round: voter -> target.
    """
    found: dict[int, list[str]] = {}
    standing = dict(votes)
    accused = next((e.data["player"] for e in events if e.kind == "judged"), None)

    def earn(player: int, name: str) -> None:
        found.setdefault(player, []).append(name)

    for event in events:
        kind, data = event.kind, event.data
        if kind == "vote":
            standing[data["player"]] = data["target"]
        elif kind == "trial":
            for voter, target in sorted(standing.items()):
                if target == data["player"] and _enemies(game, voter, target):
                    earn(voter, "good_vote")
        elif kind == "verdict" and accused is not None:
            against = _enemies(game, data["player"], accused)
            if name := _VERDICTS.get((data["verdict"], against)):
                earn(data["player"], name)
        elif name := _plain(event):
            earn(data["player"], name)
    for number, name in _at_the_end(game):
        earn(number, name)
    return found


def _at_the_end(game: Game) -> Iterator[tuple[int, str]]:
    if game.ending is None:
        return
    players = game.state.players
    yield from ((p.number, "see_the_end") for p in players if p.alive)
    yield from ((n, _WINS.get(players[n].role.faction, "win_alone")) for n in game.ending.winners)


def _plain(event: Event) -> str:
    """Return the achievement that an event alone earns, or an empty text."""
    if event.kind == "told":
        return "survive_attack" if event.data["code"] in _SAVED else ""
    if event.kind == "judged":
        return "" if event.data["condemned"] else "survive_trial"
    return {"speech": "speak_up", "result": "night_finding"}.get(event.kind, "")


def _enemies(game: Game, one: int, other: int) -> bool:
    """Return whether two players can't win together; a neutral role has no friends."""
    mine, theirs = game.state.players[one].role.faction, game.state.players[other].role.faction
    return Faction.NEUTRAL in (mine, theirs) or mine is not theirs
