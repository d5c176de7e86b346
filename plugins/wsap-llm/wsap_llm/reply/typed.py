"""Parses actions that a person types: a name, and parameters by position or name."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from wsap_core.protocol import Action, ActionDef, ActionSpace, ParamDef
from wsap_core.protocol.values import validate_value
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions

_WORD = re.compile(r"""("[^"]*"|'[^']*'|\S+)(?:\s+|$)""")


def typed_action(text: str, space: ActionSpace) -> tuple[Action | None, str]:
    """Return the typed action, or None and why it is invalid. The forms are `name`, `name key=value ...`, and by
    position, as in `whisper Player 2 hello there`: the last free text takes the rest of the line, any other one word;
    the last parameters may be `key=value`. Numbers, truth values, lists and objects are typed as JSON."""
    line = single_line(text)
    if not line:
        return None, "Type the name of an action."
    name, _, rest = line.partition(" ")
    definition = meant(name, space)
    if definition is None:
        _, reason = check_action(Action(name), index_actions(space))
        return None, reason
    declared, known = {p.name: p for p in definition.parameters}, index_actions(space)
    refused = ""
    for typed in _readings(definition, rest.strip()):
        values = {key: _value(word, declared[key]) if key in declared else word for key, word in typed.items()}
        action, reason = check_action(Action(definition.name, values), known)
        if not reason:
            return action, ""
        refused = refused or reason
    return None, refused or _unread(definition, rest.strip())


def meant(name: str, space: ActionSpace) -> ActionDef | None:
    """Return the action of a typed name, in any case, or of the beginning of one name alone; None for others."""
    same = [a for a in space.actions if a.name.lower() == name.lower()]
    begin_so = [a for a in space.actions if a.name.lower().startswith(name.lower())]
    return space.find(name) or next((some[0] for some in (same, begin_so) if len(some) == 1), None)


def _readings(definition: ActionDef, rest: str) -> Iterator[dict[str, str]]:
    """Yield what the parameters may be that a person typed, the likeliest first."""
    parameters = definition.parameters
    if not rest:
        yield {}
    if not rest or not parameters:
        return
    if (given := named(parameters, rest)) is not None:
        yield given
        return
    if (given := _ended_by_names(parameters, rest)) is not None:
        yield given
        return
    needed = [p for p in parameters if not p.optional]
    optional = [p for p in parameters if p.optional]
    some = [[p for p in parameters if not p.optional or p is one] for one in optional]
    for order in [needed or list(parameters), list(parameters), *some]:
        found, left = in_order(order, rest)
        if not left:
            yield found
    if len(needed or parameters) == 1 and not in_order(parameters, rest)[0]:
        yield {(needed or parameters)[0].name: rest}


def _ended_by_names(parameters: Sequence[ParamDef], rest: str) -> dict[str, str] | None:
    """Return the values of a text whose first ones stand in order, and whose last ones are optional and named."""
    optional = [p for p in parameters if p.optional]
    for match in re.finditer(r"(?<=\s)([^\s=]+)=", rest):
        if match[1] in {p.name for p in optional} and (last := named(optional, rest[match.start() :])) is not None:
            others = [p for p in parameters if p.name not in last]
            first, left = in_order(others, rest[: match.start()].rstrip())
            return None if left else {**first, **last}
    return None


def _unread(definition: ActionDef, rest: str) -> str:
    """Return why a text can't be read as parameters."""
    if not definition.parameters:
        return f"{definition.name} takes no parameters."
    found, left = in_order(definition.parameters, rest)
    missing = next((p for p in definition.parameters if p.name not in found), None)
    if missing is not None and (choices := missing.choices()) is not None and "=" not in left.partition(" ")[0]:
        return f"{definition.name}: {left!r} is not a {missing.name} (expected one of {', '.join(choices)})."
    return f"{definition.name} takes KEY=VALUE; there is no = in {left.partition(' ')[0]!r}."


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
        found = [(c, rest[len(c) :].lstrip()) for c in sorted(fits, key=len, reverse=True)]
        quoted = _WORD.match(rest) if rest[:1] in ("'", '"') else None
        same = [] if quoted is None else [c for c in choices if c.lower() == _unquoted(quoted[1]).lower()]
        return found + [(c, rest[quoted.end() :]) for c in same if quoted is not None]
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
