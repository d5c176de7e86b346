"""Parses actions that a person types: a name, and parameters by position or name."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from typing import Any

from wsap_core.protocol import Action, ActionDef, ActionSpace, ParamDef
from wsap_core.protocol.values import validate_value
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions

_WORD = re.compile(r"""("[^"]*"|'[^']*'|\S+)(?:\s+|$)""")


def typed_action(text: str, space: ActionSpace) -> tuple[Action | None, str]:
    """Return the typed action, or None and why it is invalid. The forms are `name`, `name key=value ...`, and by
    position, as in `whisper Player 2 hello there`: the last free text takes the rest of the line, any other one word.
    Numbers, truth values, lists and objects are typed as JSON."""
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
    declared = {p.name: p for p in definition.parameters}
    values = {key: _value(typed, declared[key]) if key in declared else typed for key, typed in parameters.items()}
    action, reason = check_action(Action(definition.name, values), index_actions(space))
    return (None, reason) if reason else (action, "")


def _parameters(definition: ActionDef, rest: str) -> tuple[dict[str, str], str]:
    if not rest:
        return {}, ""
    if not definition.parameters:
        return {}, f"{definition.name} takes no parameters."
    if (given := named(definition.parameters, rest)) is not None:
        return given, ""
    needed = [p for p in definition.parameters if not p.optional] or list(definition.parameters)
    found, left = in_order(needed, rest)
    if not left:
        return found, ""
    every, beyond = in_order(definition.parameters, rest)
    if not beyond:
        return every, ""
    if len(needed) == 1:
        return {needed[0].name: rest}, ""
    missing = next((p for p in needed if p.name not in found), None)
    if missing is not None and (choices := missing.choices()) is not None and "=" not in left.partition(" ")[0]:
        return {}, f"{definition.name}: {left!r} is not a {missing.name} (expected one of {', '.join(choices)})."
    return {}, f"{definition.name} takes KEY=VALUE; there is no = in {left.partition(' ')[0]!r}."


def named(parameters: Sequence[ParamDef], rest: str) -> dict[str, str] | None:
    """Return the values of a text that begins with `key=`, or None for others. A value ends where the next parameter
    begins, so that it may contain blanks; it may be quoted."""
    known = {p.name: p for p in parameters}
    marks: list[tuple[str, int, int]] = []
    for match in re.finditer(r"(?<!\S)([^\s=]+)=", rest):
        parameter = known.get(match[1])
        before = known.get(marks[-1][0]) if marks else None
        unknown_key = before is not None and (before.choices() or before.integer_range()) is not None
        if (parameter is not None and match[1] not in [name for name, _, _ in marks]) or unknown_key:
            marks.append((match[1], match.start(), match.end()))
        elif not marks:
            return None
    if not marks or marks[0][1] > 0:
        return None
    ends = [start for _, start, _ in marks[1:]] + [len(rest)]
    return {name: _unquoted(rest[begin:end].strip()) for (name, _, begin), end in zip(marks, ends, strict=True)}


def in_order(parameters: Sequence[ParamDef], rest: str) -> tuple[dict[str, str], str]:
    """Return the values of positional parameters as far as they can be recognized, and the rest of the text. Words of
    an enumeration may contain blanks; a free text takes all of the rest if it is the last parameter, else a word or
    what is quoted."""
    if not parameters or not rest:
        return {}, rest
    first, others = parameters[0], parameters[1:]
    best: tuple[dict[str, str], str] | None = None
    for value, left in _beginnings(first, rest, last=not others):
        given, beyond = in_order(others, left)
        whole = not beyond and all(p.optional or p.name in given for p in others)
        if best is None or whole:
            best = {first.name: value, **given}, beyond
        if whole:
            break
    return best or ({}, rest)


def _beginnings(parameter: ParamDef, rest: str, *, last: bool) -> list[tuple[str, str]]:
    """Return the values of a parameter with which a text may begin, longest first, each with what follows it."""
    if (choices := parameter.choices()) is not None:
        low = rest.lower()
        fits = [c for c in choices if low == c.lower() or low.startswith(f"{c.lower()} ")]
        return [(c, rest[len(c) :].lstrip()) for c in sorted(fits, key=len, reverse=True)]
    if last:
        return [(rest, "")]
    word = _WORD.match(rest)
    return [] if word is None else [(_unquoted(word[1]), rest[word.end() :])]


def _unquoted(text: str) -> str:
    if text[:1] not in ("'", '"'):
        return text
    try:
        words = shlex.split(text)
    except ValueError:  # an apostrophe
        return text
    return words[0] if len(words) == 1 else text


def _value(typed: str, parameter: ParamDef) -> Any:
    """Return what a person typed as the parameter takes it, if it is no text."""
    schema = parameter.json_schema()
    if validate_value(typed, schema) is None:
        return typed
    try:
        value = json.loads(typed)
    except (ValueError, RecursionError):
        return typed
    return value if validate_value(value, schema) is None else typed
