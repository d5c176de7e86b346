"""The game's verbs as actions of the protocol, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache

from wsap_core.protocol import TOOL, Action, ActionAvailability, ActionDef, ActionSpace, ParamDef, Possible
from wsap_tossim.engine.bids import BIDS
from wsap_tossim.engine.data.model import Attack, Choice, Option, Role, Verb
from wsap_tossim.engine.data.rules import CLASSIC, RuleSet

__all__ = ["DAY_VERBS", "action_space", "availability", "choice_of", "deeds_of", "does", "to_action"]

_NEEDS: Mapping[Verb, tuple[str, tuple[str, ...], str]] = {
    Verb.SPEAK: ("Say something to all", (), "what to say"),
    Verb.WHISPER: ("Say something to one; all see that you whisper", ("player",), "what to say"),
    Verb.WAIT: ("Say and do nothing", (), ""),
    Verb.VOTE: ("Vote against a player", ("player",), ""),
    Verb.UNVOTE: ("Take your vote back", (), ""),
    Verb.REVEAL: ("Show all that you are the Mayor; your votes then count three", (), ""),
    Verb.GUILTY: ("Judge the accused so", (), ""),
    Verb.INNOCENT: ("Judge the accused so", (), ""),
    Verb.ABSTAIN: ("Judge neither way", (), ""),
    Verb.BID_1: ("Bid for the floor", (), ""),
    Verb.BID_2: ("You have something to say", (), ""),
    Verb.BID_3: ("You must be heard", (), ""),
    Verb.JAIL: ("Take a player into jail for the coming night", ("player",), ""),
    Verb.SEANCE: ("When dead: speak with a living player tonight", ("player",), ""),
    Verb.SAY: ("Speak to those who hear you at night", (), "what to say"),
    Verb.ALERT: ("Lie in wait for whoever visits you", (), ""),
    Verb.BITE: ("Bite a player", ("player",), ""),
    Verb.BLACKMAIL: ("Silence a player for the next day", ("player",), ""),
    Verb.BLOCK: ("Keep a player from acting tonight", ("player",), ""),
    Verb.CLEAN: ("Hide the role and will of a player who dies tonight", ("player",), ""),
    Verb.CONTROL: ("Force a player to act on another", ("player", "onto"), ""),
    Verb.CONSULT: ("Learn a player's exact role", ("player",), ""),
    Verb.DISGUISE: ("Make one of the Mafia look like another player, if it dies", ("player", "like"), ""),
    Verb.DOUSE: ("Pour petrol over a player", ("player",), ""),
    Verb.EXECUTE: ("Kill your prisoner", ("player",), ""),
    Verb.FORGE: ("Write another will for a player who dies tonight", ("player",), "the will that is found"),
    Verb.FRAME: ("Make a player look guilty", ("player",), ""),
    Verb.GUARD: ("Protect a player with your life", ("player",), ""),
    Verb.HAUNT: ("Take one along who voted you guilty", ("player",), ""),
    Verb.HEAL: ("Protect a player from attacks", ("player",), ""),
    Verb.HEAL_SELF: ("Protect yourself from attacks", (), ""),
    Verb.HUNT: ("Look for a Vampire, and stake it", ("player",), ""),
    Verb.IGNITE: ("Set fire to all you have doused", (), ""),
    Verb.INTERROGATE: ("Learn whether a player is suspicious", ("player",), ""),
    Verb.INVESTIGATE: ("Learn what group of roles a player belongs to", ("player",), ""),
    Verb.KILL: ("Name the victim of the Mafia", ("player",), ""),
    Verb.MAUL: ("Attack a player and all who visit there; at home if you choose yourself", ("player",), ""),
    Verb.RAISE: ("Bring a dead player back to life", ("player",), ""),
    Verb.REMEMBER: ("Take the role of a dead player", ("player",), ""),
    Verb.SHOOT: ("Shoot a player", ("player",), ""),
    Verb.STAB: ("Attack a player", ("player",), ""),
    Verb.TRANSPORT: ("Swap two players' places", ("first", "second"), ""),
    Verb.VEST: ("Put on your vest", (), ""),
    Verb.WATCH: ("See who visits a player", ("player",), ""),
}
"""Verb -> its description, the names of its targets, and of its text (empty for none)."""
DAY = {"type": ["integer", "string"], "minimum": 1, "maximum": 999, "maxLength": 20}
DAY_VERBS = frozenset(list(Verb)[: list(Verb).index(Verb.JAIL)])

TOOLS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "check_will": ("A dead player's will", ("player",)),
    "lookup_role": ("What a role can do", ("role",)),
    "get_role": ("The same as lookup_role", ("role",)),
    "role_details": ("All about a role", ("role",)),
    "roles": ("The role list", ()),
    "alignments": ("The roles by faction", ()),
    "phases": ("The parts of a day", ()),
    "attributes": ("Attack, defense, immunities", ()),
    "victory_conditions": ("Who wins when", ()),
    "graveyard": ("The dead, when and how", ()),
    "chat_history": ("What was said on a day", ("day",)),
    "investigation_results": ("What you found out", ()),
    "action_history": ("What you did", ()),
    "get_executable_actions": ("What you can do now, and on whom", ()),
    "view_will": ("Your own will", ()),
    "write_will": ("All read it when you die", ("text",)),
    "write_death_note": ("Left with those you kill", ("text",)),
    "view_notebook": ("Your notebook", ()),
    "notebook": ("Add a line to it", ("text",)),
    "summarise_day": ("Sum up the day before", ("text",)),
}
"""Tool -> its description and parameters. Tools take no turn."""


_PAPERS = {
    **dict.fromkeys(("check_will", "view_will", "write_will"), "wills"),
    "write_death_note": "death_notes",
}
"""Tool -> the rule switch that it requires."""
_TOLD = (
    "get_role", "lookup_role", "roles", "alignments", "attributes", "victory_conditions", "get_executable_actions"
)  # fmt: skip
"""Tools that repeat `role_details`, the description of the game, or the turn."""
_OF_ROLES = {
    Verb.REVEAL: ("Mayor", "has_floor"),
    Verb.JAIL: ("Jailor", "name"),
    Verb.SEANCE: ("Medium", "night_talk_rounds"),
}
"""Verb outside the night -> the role that has it, and the rule switch that it requires."""


def action_space(
    names: Sequence[str], roles: Sequence[str], rules: RuleSet = CLASSIC, role: Role | None = None
) -> ActionSpace:
    """Return all actions of a game with these players and rules, the same for every seat.

    With a role, actions that are never useful to its player under these rules are unlisted. Games with the same players
    and rules share it, so that its checks and its JSON are made once.
    """
    never: frozenset[str] = frozenset()
    if role is not None:
        verbs = (verb.value for verb in _NEEDS if not does(verb, rules, role))
        never = frozenset((*verbs, *(name for name in TOOLS if not _useful(name, rules, role))))
    played = tuple(verb for verb in _NEEDS if _played(verb, rules))
    return _space(tuple(names), tuple(roles), played, never, rules.longest_will, rules.longest_text)


@lru_cache(maxsize=256)
def _space(
    names: tuple[str, ...], roles: tuple[str, ...], played: tuple[Verb, ...], never: frozenset[str], longest_will: int,
    longest_text: int,
) -> ActionSpace:  # fmt: skip
    kinds = {
        "role": _one_of("role", roles),
        "day": ParamDef("day", "a day, or a day/page such as 2/3", schema=DAY, description="2, or 2/3 for a page"),
        "text": _spoken("the words", longest_will),
        "player": _one_of("player", names),
    }
    actions = []
    for verb in played:
        summary, targets, words = _NEEDS[verb]
        parameters = [_one_of(name, names) for name in targets]
        if words:
            parameters.append(_spoken(words, longest_will if verb is Verb.FORGE else longest_text))
        category = "day" if verb in DAY_VERBS else "night"
        actions.append(ActionDef(verb.value, summary, parameters, (), category, verb.value in never))
    for name, (summary, needs) in TOOLS.items():
        own = {"text": _spoken("the words", min(500, longest_will))} if name == "summarise_day" else {}
        actions.append(ActionDef(name, summary, [(kinds | own)[need] for need in needs], (), TOOL, name in never))
    return ActionSpace(actions)


def _useful(tool: str, rules: RuleSet, role: Role) -> bool:
    """Return whether a tool gives or writes more than a player with this role has in its prompt."""
    if tool == "write_death_note" and role.attack is Attack.NONE:
        return False
    return tool not in _TOLD and bool(getattr(rules, _PAPERS.get(tool, ""), True))


def _played(verb: Verb, rules: RuleSet) -> bool:
    """Return whether an action can occur under these rules, for anybody at any time."""
    return verb not in BIDS or rules.floor == "bids"


def does(verb: Verb, rules: RuleSet, role: Role) -> bool:
    """Return whether a player with this role can ever use a verb under these rules."""
    if verb in _OF_ROLES:
        name, switch = _OF_ROLES[verb]
        return role.name == name and bool(getattr(rules, switch))
    if verb in role.verbs:
        return verb is not Verb.FORGE or rules.wills
    if verb in BIDS or verb in (Verb.SPEAK, Verb.WHISPER):
        return rules.has_floor
    if verb in (Verb.UNVOTE, Verb.GUILTY, Verb.INNOCENT, Verb.ABSTAIN):
        return rules.lynching == "trial"
    return verb in (Verb.VOTE, Verb.WAIT) or (verb is Verb.SAY and rules.night_talk_rounds > 0)


@lru_cache(maxsize=256)
def _one_of(name: str, words: tuple[str, ...]) -> ParamDef:
    """Return a parameter for one of some words, shown only by name in listings."""
    return ParamDef(name, name, schema={"type": "string", "enum": list(words)})


@lru_cache(maxsize=64)
def _spoken(what: str, longest: int) -> ParamDef:
    """Return a parameter for text of limited length, shown only by name in listings."""
    schema = {"type": "string", "maxLength": longest}
    return ParamDef("text", f"{what}, at most {longest} characters", schema=schema, description="text")


def deeds_of(role: Role) -> str:
    """Return a line for each night action of a role."""
    return "\n".join(f"- {verb}: {_NEEDS[verb][0]}" for verb in role.verbs)


def availability(
    options: Sequence[Option],
    names: Sequence[str],
    barred: Mapping[str, str],
    rules: RuleSet = CLASSIC,
    why_not: Callable[[Verb], str] = lambda verb: "not now",
) -> tuple[ActionAvailability, ...]:
    """Return the available actions.

    Args:
        options: legal in the engine.
        names: of the players.
        barred: tool -> why it is unavailable; all others are available while there are options.
        rules: of the game.
        why_not: returns the reason why a verb is unavailable.
    """
    by_verb = {option.verb: option for option in options}
    found: list[ActionAvailability] = []
    for verb, (_, targets, _words) in _NEEDS.items():
        if not _played(verb, rules):
            continue
        option = by_verb.get(verb)
        if option is None:
            found.append(_told(verb.value, why_not(verb) if options else "not your turn"))
        elif option.slots:
            found.append(_possible(verb.value, targets, option.slots, tuple(names)))
        else:
            found.append(_told(verb.value))
    tools = (_told(tool, barred.get(tool, "") if options else "not your turn") for tool in TOOLS)
    return (*found, *tools)


# Made once each, since every turn of every player lists them all, and parts of the protocol keep their encoded text.
@cache
def _told(action: str, why_not: str = "") -> ActionAvailability:
    return ActionAvailability(action, not why_not, why_not)


@lru_cache(maxsize=2048)
def _possible(
    action: str, targets: Sequence[str], slots: Sequence[Sequence[int]], names: Sequence[str]
) -> ActionAvailability:
    return Possible(action, choices={t: tuple(names[p] for p in slot) for t, slot in zip(targets, slots, strict=True)})


def choice_of(action: Action, names: Sequence[str]) -> Choice:
    """Return a checked action as a choice."""
    verb = Verb(action.name)
    _, targets, words = _NEEDS[verb]
    numbers = {name: number for number, name in enumerate(names)}
    chosen = tuple(numbers[str(action.parameters[t])] for t in targets)
    return Choice(verb, chosen, str(action.parameters.get("text", "")) if words else "")


def to_action(choice: Choice, names: Sequence[str], reasoning: str | None = None) -> Action:
    """Return a choice as an action."""
    _, targets, words = _NEEDS[choice.verb]
    parameters = {t: names[p] for t, p in zip(targets, choice.targets, strict=True)}
    if words:
        parameters["text"] = choice.text
    return Action(choice.verb.value, parameters, reasoning)
