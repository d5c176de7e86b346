"""The tools of a player: lookups in its knowledge, and notes. None takes a turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.untrusted import sanitize
from wsap_tossim.engine.data.model import Faction, Option, Role
from wsap_tossim.engine.night.findings import GROUPS
from wsap_tossim.engine.roles.listed import role_named
from wsap_tossim.engine.setups import roles_of
from wsap_tossim.knowledge import Knowledge
from wsap_tossim.perception.description import phases_of, role_sheet
from wsap_tossim.perception.event_text import listed, quoted, sentence
from wsap_tossim.perception.text_budget import newest

__all__ = ["look_up", "noted"]

LONGEST = 2000


def look_up(
    tool: str, parameters: Mapping[str, Any], knowledge: Knowledge, names: Sequence[str], options: Sequence[Option]
) -> str:
    """Return the result of a tool that writes nothing, which depends only on the player's knowledge."""
    return _LOOKS[tool](parameters, knowledge, names, options)[:LONGEST]


Given = Mapping[str, Any]
Look = Callable[[Given, Knowledge, Sequence[str], Sequence[Option]], str]


def noted(notebook: str, text: str, longest: int) -> str:
    """Return a notebook with one more line, dropping its first lines if it exceeds `longest` characters.

    A line that is too long by itself is kept, so that the game refuses it.
    """
    whole = f"{notebook}\n{text}" if notebook else text
    while len(whole) > longest and "\n" in whole and len(text) <= longest:
        whole = whole.partition("\n")[2]
    return whole


def _check_will(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    name = str(given["player"])
    one = knows.standing[list(names).index(name)]
    if one.alive:
        return f"{name} is alive; a will is read when its writer is dead."
    if not one.will:
        return f"{name} left no will that could be read."
    return f"{name}'s Will: {quoted(one.will, LONGEST - 100)}"


def _role(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    role = _named(given)
    return (
        f"{role.name} ({role.category or role.faction}): {role_sheet(role, knows.rules)}" if role else _unknown(given)
    )


def _details(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    role = _named(given)
    if role is None:
        return _unknown(given)
    group = next((g for g in GROUPS if role.name in g), ())
    uses = [f"{verb.value}: {count} times" for verb, count in (role.uses or {}).items()]
    more = [
        f"Attack: {role.attack.name.lower()}, defense: {role.defense.name.lower()}.",
        f"Seen by an Investigator as one of: {', '.join(group)}." if group else "",
        f"At most one in a game{'' if role.unique else ': no, there can be several'}.",
        f"Limits: {', '.join(uses)}." if uses else "",
    ]
    return "\n".join([_role(given, knows, names, options), *(line for line in more if line)])


def _named(given: Given) -> Role | None:
    try:
        return role_named(str(given["role"]))
    except ConfigError:
        return None


def _unknown(given: Given) -> str:
    return f"There is no role called {sanitize(str(given['role']), 40)!r}; the tool roles lists all of them."


def _roles(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    return f"The role list of this game: {', '.join(knows.slots)}."


def _alignments(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    kinds: dict[str, list[str]] = {}
    for role in roles_of(knows.slots):
        kinds.setdefault(str(role.category or role.faction), []).append(role.name)
    return "\n".join(f"{kind}: {', '.join(roles)}" for kind, roles in kinds.items())


def _phases(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    return phases_of(knows.rules)


def _attributes(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    return (
        "Attacks are basic, powerful or unstoppable; defenses are basic, powerful or invincible. An attack kills when "
        "it is stronger than the defense. Some roles can't be blocked or controlled; role_details says which."
    )


def _victory(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    goals: dict[str, None] = {}
    for role in roles_of(knows.slots):
        goals[f"{role.name if role.faction is Faction.NEUTRAL else role.faction}: {role.goal}"] = None
    return "\n".join(goals)


def _graveyard(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    lines = [
        f"{names[s.number]}: died on day {s.died}, by {listed([str(c) for c in s.causes])}; role: {s.role or 'unknown'}"
        for s in knows.standing
        if not s.alive
    ]
    return "\n".join(lines) or "Nobody is dead."


def _history(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    asked = _PAGE.fullmatch(str(given["day"]).strip().casefold())
    if asked is None:
        return "Ask for a day, such as 2, or for a day and a page of it, such as 2/3."
    day, page = int(asked[1]), int(asked[2] or 1)
    lines = [
        sentence(e, names, knows.player)
        for e in knows.events
        if e.day == day and e.kind in ("speech", "whisper", "said")
    ]
    if not lines:
        return f"You heard nothing on day {day}."
    pages = _pages(lines, LONGEST - 100)
    if not 1 <= page <= len(pages):
        return f"What you heard on day {day} has {len(pages)} pages; there is no page {page}."
    if len(pages) == 1:
        return pages[0]
    more = f"; ask for {day}/{page + 1} to read on" if page < len(pages) else ""
    return f"{pages[page - 1]}\n(page {page} of {len(pages)} of day {day}{more})"


_PAGE = re.compile(r"(?:day\s*)?([0-9]{1,3})(?:\s*(?:/|,?\s*page)\s*([0-9]{1,3}))?")


def _pages(lines: Sequence[str], budget: int) -> list[str]:
    pages = [""]
    for line in lines:
        whole = f"{pages[-1]}\n{line}" if pages[-1] else line
        if len(whole) <= budget:
            pages[-1] = whole
        else:
            pages.append(line[:budget])
    return pages


def _results(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    lines = [f"Night {e.day}: {sentence(e, names, knows.player)}" for e in knows.events if e.kind in ("result", "told")]
    return "\n".join(newest(lines, LONGEST - 100)) or "You have found out nothing so far."


def _actions(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    own = [
        f"Day {e.day}: {sentence(e, names, None)}"
        for e in knows.events
        if e.data.get("player") == knows.player
        and e.kind in ("speech", "whisper", "vote", "unvote", "said", "revealed")
    ]
    acts = [
        f"Night {e.day}: {e.data['verb']} {listed([names[t] for t in e.data['targets']])}"
        for e in knows.events
        if e.kind == "chose" and e.data.get("player") == knows.player
    ]
    # deeds of the night are short, and complete; of the speeches only the newest fit
    budget = max(400, LONGEST - 100 - sum(len(line) + 3 for line in acts))
    return "\n".join([*newest(own, budget), *acts]) or "You have done nothing so far."


def _able(given: Given, knows: Knowledge, names: Sequence[str], options: Sequence[Option]) -> str:
    lines = []
    for option in options:
        slots = "; ".join(", ".join(names[n] for n in slot) for slot in option.slots)
        lines.append(f"{option.verb.value}{f': {slots}' if slots else ''}{' (with words)' if option.text else ''}")
    return "\n".join(lines)


_LOOKS: Mapping[str, Look] = {
    "check_will": _check_will,
    "lookup_role": _role,
    "get_role": _role,
    "role_details": _details,
    "roles": _roles,
    "alignments": _alignments,
    "phases": _phases,
    "attributes": _attributes,
    "victory_conditions": _victory,
    "graveyard": _graveyard,
    "chat_history": _history,
    "investigation_results": _results,
    "action_history": _actions,
    "get_executable_actions": _able,
    "view_will": lambda given, knows, names, options: (
        f"Your will: {quoted(knows.will, LONGEST - 100)}" if knows.will else "Your will is empty."
    ),
    "view_notebook": lambda given, knows, names, options: (
        f"Your notebook: {quoted(knows.notebook, LONGEST - 100)}" if knows.notebook else "Your notebook is empty."
    ),
}
