"""Gives the rows of a nexus about a game that was renamed to its present name."""

from __future__ import annotations

from collections.abc import Callable

from wsap_core.host import PluginHost
from wsap_nexus.agents.metagoals import renamed_goal
from wsap_nexus.runs.renamed import former_names
from wsap_nexus.store.nexus_store import Transaction


def take_new_names(tx: Transaction, host: PluginHost) -> list[str]:
    """Put the present name of each game in place of its former ones, and return a sentence for each that was found.

    Runs and events keep the names under which they were recorded; whoever looks for the game of a run finds it by
    either. Events are counted for goals as they happen, so that what the goals have counted is all that needs a name.
    """
    games = [host.games.get(name) for name in host.games.names()]
    former = [(old, game) for game in games for old in former_names(game, host)]
    return [game.renamed(old) for old, game in former if _renamed(tx, old, game.name)]


def _renamed(tx: Transaction, old: str, new: str) -> bool:
    """Rename a game, or the members of a family, everywhere; return whether there was anything to rename."""
    found = tx.rename_game(old, new)
    now = _now_called(old, new)
    for goal in tx.all_goals():
        data = renamed_goal(goal.data, now)
        if data != goal.data:
            tx.put_goal(goal.agent_id, goal.id, state=goal.state, since=goal.since, data=data)
            found = True
    return found


def _now_called(old: str, new: str) -> Callable[[str], str]:
    def now(name: str) -> str:
        return new + name.removeprefix(old) if name == old or name.startswith(f"{old}:") else name

    return now
