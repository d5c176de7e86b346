"""Tool use: availability and execution. The results of lookups are in `wsap_tossim.perception.desk`."""

from __future__ import annotations

from collections.abc import Mapping

from wsap_core.protocol import Action
from wsap_tossim.engine.game import Game, Writing
from wsap_tossim.options import TownOptions
from wsap_tossim.perception.context import LONGEST_SUMMARY, Lookup
from wsap_tossim.perception.desk import look_up, noted
from wsap_tossim.perception.place import Place
from wsap_tossim.verbs import TOOLS

__all__ = ["WRITES", "barred", "hint", "use", "write_down"]

WRITES: Mapping[str, Writing] = {"write_will": "will", "write_death_note": "note", "notebook": "notebook"}
"""Tool -> the paper that it writes."""
_SUM_UP = "summarise_day"


def barred(options: TownOptions, calls: int, *, alive: bool, day: int) -> Mapping[str, str]:
    """Return the tools that are unavailable to a player, each with the reason, after some calls in this turn."""
    if calls >= options.tool_calls:
        return dict.fromkeys(TOOLS, "you have used enough tools for this turn")
    found: dict[str, str] = {}
    if not options.rules.wills:
        found |= dict.fromkeys(("check_will", "view_will", "write_will"), "there are no wills in this game")
    if not options.rules.death_notes:
        found["write_death_note"] = "there are no death notes in this game"
    if not alive:
        found |= dict.fromkeys((*WRITES, _SUM_UP), "the dead write no more")
    elif day < 2:
        found[_SUM_UP] = "no day is past"
    return found


def write_down(game: Game, player: int, action: Action) -> str | None:
    """Write the paper of a checked tool call; return the refusal, empty if it was written, or None for other tools."""
    what = WRITES.get(action.name)
    if what is None:
        return None
    text = str(action.parameters["text"])
    if what == "notebook":
        text = noted(game.state.players[player].notebook, text, game.rules.longest_will)
    return game.write(player, what, text)


def use(options: TownOptions, game: Game, place: Place, action: Action) -> tuple[bool, str]:
    """Use a tool by a checked call in a player's turn; return whether it succeeded, and its result for the player."""
    knows = place.knowledge
    if reason := barred(options, place.calls, alive=knows.alive, day=knows.day).get(action.name, ""):
        return False, f"You can't use {action.name} now: {reason}."
    place.calls += 1
    given = action.parameters
    argument = ", ".join(str(value) for name, value in given.items() if name != "text")
    place.lookups = [u for u in place.lookups if u.day == knows.day and (u.tool, u.argument) != (action.name, argument)]
    if action.name == _SUM_UP:
        return _sum_up(place, str(given["text"]))
    refused = write_down(game, place.player, action)
    if refused is not None:
        return not refused, refused or "Written."
    result = look_up(action.name, given, knows, options.names, game.options(place.player))
    place.lookups.append(Lookup(knows.day, action.name, argument, result))
    return True, result


def hint(options: TownOptions, place: Place) -> str:
    """Return a reminder to summarise the day before, if it is due."""
    day = place.knowledge.day - 1
    if not options.own_summaries or not place.knowledge.alive or day < 1 or day in place.summed_up:
        return ""
    return (
        f"Day {day} is past: with the tool {_SUM_UP} you can put it into your own words, "
        "which then stand in place of its summary."
    )


def _sum_up(place: Place, text: str) -> tuple[bool, str]:
    """Store the player's summary of the day before; return whether it was accepted, and a message."""
    if len(text) > LONGEST_SUMMARY:
        return False, f"That is too long: {len(text)} characters; at most {LONGEST_SUMMARY}."
    place.sum_up(place.knowledge.day - 1, text)
    return True, "Written."
