"""Parses actions that a person types: a name, and parameters by position or name."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from wsap_core.protocol import Action, ActionDef, ActionSpace, ParamDef
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions


def typed_action(text: str, space: ActionSpace) -> tuple[Action | None, str]:
    """Return the typed action, or None and why it is invalid. The forms are `name`, `name key=value ...`, and by
    position, as in `whisper Player 2 hello there`: words of enumerations first, then at most one free text."""
    line = single_line(text)
    if not line:
        return None, "Type the name of an action."
    name, _, rest = line.partition(" ")
    begin_so = [action for action in space.actions if action.name.startswith(name)]
    definition = space.find(name) or (begin_so[0] if len(begin_so) == 1 else None)
    if definition is None:
        _, reason = check_action(Action(name), index_actions(space))
        return None, reason
    parameters, reason = _parameters(definition, rest.strip())
    if reason:
        return None, reason
    action, reason = check_action(Action(definition.name, parameters), index_actions(space))
    return (None, reason) if reason else (action, "")


def _parameters(definition: ActionDef, rest: str) -> tuple[dict[str, object], str]:
    if not rest:
        return {}, ""
    names = {p.name for p in definition.parameters}
    if rest.partition("=")[0] not in names and len(definition.parameters) >= 1:
        needed = [p for p in definition.parameters if not p.optional] or list(definition.parameters)
        if len(needed) == 1:
            return {needed[0].name: rest}, ""
        found, left = in_order(needed, rest)
        if found and not left:
            return dict(found), ""
        missing = next((p for p in needed if p.name not in found), None)
        if missing is not None and (choices := missing.choices()) is not None and "=" not in left.partition(" ")[0]:
            return {}, f"{definition.name}: {left!r} is not a {missing.name} (expected one of {', '.join(choices)})."
    try:
        words = shlex.split(rest)
    except ValueError as error:
        return {}, f"The parameters of {definition.name} can't be parsed: {error}."
    given: dict[str, object] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            return {}, f"{definition.name} takes KEY=VALUE; there is no = in {word!r}."
        given[key] = value
    return given, ""


def in_order(parameters: Sequence[ParamDef], rest: str) -> tuple[dict[str, str], str]:
    """Return the values of positional parameters as far as they can be recognized, and the rest of the text. Words of
    an enumeration may contain blanks; a free text takes all of the rest, if it is the last parameter."""
    given: dict[str, str] = {}
    for number, parameter in enumerate(parameters):
        choices = parameter.choices()
        if choices is None:
            if number + 1 == len(parameters) and rest:
                given[parameter.name], rest = rest, ""
            break
        low = rest.lower()
        fits = [c for c in choices if low == c.lower() or low.startswith(f"{c.lower()} ")]
        if not fits:
            break
        found = max(fits, key=len)
        given[parameter.name], rest = found, rest[len(found) :].lstrip()
    return given, rest
