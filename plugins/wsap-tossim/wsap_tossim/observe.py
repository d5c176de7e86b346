"""The observation of a player, from its knowledge and its options."""

from __future__ import annotations

from functools import partial

from wsap_core.protocol import Goal, Location
from wsap_tossim.engine.data.model import Role, Verb
from wsap_tossim.engine.game import Game
from wsap_tossim.knowledge import Knowledge
from wsap_tossim.options import TownOptions
from wsap_tossim.perception.context import turn_text
from wsap_tossim.perception.description import role_sheet
from wsap_tossim.perception.observation import TownObservation, news_of, options_of
from wsap_tossim.perception.place import Place
from wsap_tossim.tool_use import barred, hint
from wsap_tossim.verbs import DAY_VERBS, availability, deeds_of, does

__all__ = ["observed"]


def _why_not(knows: Knowledge, role: Role, verb: Verb) -> str:
    """Return why a player can't use a verb now, from its knowledge."""
    if not does(verb, knows.rules, role):
        return "no action of yours"
    if verb is Verb.WAIT or not knows.alive:
        return "not now"
    if (verb in DAY_VERBS) is knows.by_night:
        return "it is night" if knows.by_night else "only at night"
    if verb in (Verb.SPEAK, Verb.WHISPER) and knows.blackmailed:
        return "you are blackmailed"
    if verb in (Verb.VOTE, Verb.UNVOTE):
        return "you have no vote to take back" if knows.phase == "nomination" else "not in this part of the day"
    if verb in (Verb.GUILTY, Verb.INNOCENT, Verb.ABSTAIN):
        return "you judge nobody now"
    return "not now"


def observed(options: TownOptions, game: Game, place: Place, *, described: str | None = None) -> TownObservation:
    """Return the player's observation.

    Args:
        options: of the town.
        game: the game.
        place: of the player, with up-to-date knowledge.
        described: the role in the player's system prompt, by default the dealt one; the turn describes another.
    """
    player, knows, names = place.player, place.knowledge, options.names
    able = game.options(player)
    one = game.state.players[player]
    new_role = one.role.name != (described or one.first_role.name)
    today = [u for u in place.lookups if u.day == knows.day]
    not_now = barred(options, place.calls, alive=knows.alive, day=knows.day)
    return TownObservation(
        status={"day": knows.day, "phase": knows.phase, "role": knows.role or "", "alive": knows.alive},
        location=Location((), "town", "In town" if not knows.jailed else "In jail"),
        current_goals=(Goal("win", one.role.goal, "main", "done" if player in (knows.winners or ()) else ""),),
        step=place.turns,
        time_of_day="night" if knows.by_night else "day",
        available_actions=availability(able, names, not_now, options.rules, partial(_why_not, knows, one.role)),
        context=turn_text(
            knows,
            names,
            able,
            today,
            sheet=f"{role_sheet(one.role, knows.rules)}\n{deeds_of(one.role)}".rstrip() if new_role else "",
            hint=hint(options, place) if able else "",
        ),
        player=player,
        names=names,
        first_news=place.told,
        news=news_of(knows.events[place.told :]),
        options=options_of(able),
    )
