"""Parses a reply: strictly if it has the requested format, otherwise by its form, without interpreting prose.

After thinking is removed, these are understood:
- one JSON object in the requested format
- JSON, tags and labels that stand alone, if they all ask for the same and do not take it back
- calls or names alone on every line, if they are all the same

For any other reply the model is asked once more: that costs one call, while a wrong action spoils a result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice

from wsap_core.protocol import Action, ActionDef, ActionSpace, Tool
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_parameters
from wsap_llm.reply.calls import labelled, read_call, tagged, undecorated
from wsap_llm.reply.candidates import Candidate, NotUnderstood, Reading, ToolCall, Understood, candidate
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.json_text.repair import Found, JsonObject, find_values
from wsap_llm.reply.objects import candidates_in
from wsap_llm.reply.shapes import rewritten, stands_alone, taken_back
from wsap_llm.reply.steps import KEYS, NOTHING_SAID, Steps, take_steps
from wsap_llm.text.thinking import TEMPLATE_TOKEN, split_thinking

LONGEST = 50_000
"""Maximum length without thinking in characters; a longer reply is read only if it is strict JSON."""
MOST_CALLS = 100
"""Number of JSON values, or of calls of one kind, at which a reply is refused."""
MOST_LINES = 60
"""Maximum number of lines of a reply that consists only of names or calls."""

# Where a model continues in the role of the game.
_NEXT_TURN = re.compile(
    r"^[ \t*#_]{0,6}(?:observation|user|human|environment|game|system|### ?instruction|step \d+)[ \t*_]{0,4}(?::|$)"
    r"|<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|user\|>|<observation>|<\|start\|>user",
    re.IGNORECASE | re.MULTILINE,
)
_SHORT_LINE = re.compile(r"^[^\n]{1,80}$", re.MULTILINE)
_FENCED = re.compile(r"\s{0,20}```[\w-]{0,15}[ \t]{0,5}\n?(.*?)\n?\s{0,20}```\s{0,20}", re.DOTALL)
_HEADING = re.compile(
    r"^#{1,6}[ \t]{1,3}((?:my |next |final |chosen ){0,2}(?:action|answer|decision))[ \t*]{0,5}$", re.I | re.M
)
_KEY_FIRST = re.compile(
    r"""[\s(]{0,20}["'“](?:action|name|reasoning|tool|thought|params)["'”]?\s{0,5}[:：]""", re.IGNORECASE
)


def read_reply(
    text: str,
    actions: Sequence[ActionDef],
    tools: Sequence[Tool] = (),
    *,
    declared: Sequence[ActionDef] = (),
    numbered: Sequence[str] = (),
    steps: int = 1,
) -> Reading:
    """Return the one legal action or tool call in a reply, or why there is none.

    Any text is accepted, and parsed in linear time. Parameters are validated by
    `wsap_core.worlds.legality.check_parameters`. Nothing is guessed: a reply that denies, supposes, quotes or lists
    actions, or asks for several, is not understood.

    Args:
        text: the model's reply, with its thinking if the backend does not remove it.
        actions: the legal actions.
        tools: the tools that may be called instead.
        declared: all actions of the world, so that one that is not legal now is not taken for a misspelt other.
        numbered: names in the order of a numbered list shown to the model; without it numbers are not accepted.
        steps: the maximum number of steps of a decision; above 1, the keys for steps in JSON are not parameters.
    """
    if not any(key in text for key in KEYS):
        steps = 1
    if (quick := _as_asked(text, actions, tools, steps)) is not None:
        return quick
    split = split_thinking(text)
    choices = LegalChoices.of(actions, tools, declared, numbered)
    if split.said:
        return _as_asked(split.said, actions, tools, steps) or _read(split.said, choices, steps)
    return _from_thinking(split.thought, choices) if split.thought else NotUnderstood("The reply was empty.")


def _as_asked(text: str, actions: Sequence[ActionDef], tools: Sequence[Tool], most: int) -> Understood | None:
    """Parse a reply in exactly the requested format, which is the fast path."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=JsonObject)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, JsonObject) or value.repeated:
        return None
    steps = take_steps([value], most, actions) if most > 1 else NOTHING_SAID
    given, reasoning = value.get("params"), value.get("reasoning")
    if not isinstance(given, dict) or not isinstance(reasoning, str | None):
        return None
    if isinstance(given, JsonObject) and given.repeated:
        return None
    kind, offered = ("action", actions) if "action" in value else ("tool", tools)
    found = next((o for o in offered if o.name == value.get(kind)), None)
    if found is None or not value.keys() <= {kind, "params", "reasoning"}:
        return None
    definition = found if isinstance(found, ActionDef) else ActionDef(found.name, "", found.parameters)
    accepted, reason = check_parameters(definition, given)
    made = (Action if kind == "action" else ToolCall)(found.name, accepted, reasoning)
    return None if reason else Understood(made, accepted != given, steps=steps)


def _from_thinking(thought: str, choices: LegalChoices) -> Reading:
    """Parse a whole reply within the thinking: a complete object on separate lines at the end."""
    refused = NotUnderstood("The reply ended before the thinking did; nothing was decided.")
    tail = thought[-LONGEST:]
    values = find_values(tail)
    if not values or not values[-1].strict:
        return refused
    last = values[-1]
    line = tail[tail.rfind("\n", 0, last.start) + 1 : last.start]
    if tail[last.end :].strip("` \n") or line.strip() or not isinstance(last.value, dict) or "action" not in last.value:
        return refused
    found = [c for v in values for c in candidates_in(v.value, choices)]
    if len({c.meaning for c in found}) != 1 or found[-1].reason or set(last.value) == {"action"}:
        return refused
    return _understood(found[-1], choices)


def _read(said: str, choices: LegalChoices, most: int) -> Reading:
    if len(said) > LONGEST:
        return NotUnderstood(f"The reply is {len(said)} characters long; at most {LONGEST} are read.")
    text = TEMPLATE_TOKEN.sub(" ", rewritten(said)).strip().strip("\ufeff")
    text = _unpacked(text)
    values = find_values(text)
    steps = take_steps((v.value for v in values), most, [*choices.actions.values()]) if most > 1 else NOTHING_SAID
    found = _candidates(text, values, choices) if len(values) < MOST_CALLS else []
    if len(values) >= MOST_CALLS or len(found) >= MOST_CALLS:
        return NotUnderstood("The reply asks for far too many things; ask for exactly one.")
    if found:
        return _decide(found, text, choices, steps)
    if any(v.broken for v in values):
        return NotUnderstood("The reply begins like JSON, and can't be read as such.")
    if not any(isinstance(v.value, list) for v in values) and (alone := _alone(text, choices)) is not None:
        return _understood(alone, choices)
    return NotUnderstood("The reply names no action in a form that can be read; sentences are not interpreted.")


def _unpacked(text: str) -> str:
    """Unwrap a reply: remove a fence, decode JSON inside a JSON text, fix escaped quotes and a lost brace."""
    if fenced := _FENCED.fullmatch(text):
        text = fenced[1].strip()
    if text.startswith('"') and text.endswith('"') and "{" in text[:20]:
        try:
            inner = json.loads(text)
        except ValueError:
            inner = text.strip('"')
        text = inner if isinstance(inner, str) else text
    if re.match(r"\s{0,20}\{\s{0,20}(?:\\n|\s){0,20}\\\"", text):
        text = text.replace("\\n", "\n").replace('\\"', '"')
    if _KEY_FIRST.match(text):
        text = "{" + text.lstrip(" (")
    return _HEADING.sub(r"\1:", text)


def _candidates(text: str, values: list[Found], choices: LegalChoices) -> list[Candidate]:
    found = [
        c.at(v.start, v.end, "JSON in text" if v.strict else "mended JSON")
        for v in values
        for c in candidates_in(v.value, choices)
    ]
    found += islice(tagged(text, choices, values), MOST_CALLS)
    found += islice(labelled(text, choices, values), MOST_CALLS)
    if found:
        found += _names_on_lines(text, found, choices)
    return sorted(found, key=lambda c: c.start)


def _names_on_lines(text: str, found: list[Candidate], choices: LegalChoices) -> list[Candidate]:
    """Return names on separate lines in addition to other candidates, to recognize lists of actions."""
    taken = sorted((c.start, c.end) for c in found)
    lines: list[Candidate] = []
    for match in _SHORT_LINE.finditer(text):
        while taken and taken[0][1] <= match.start():
            taken.pop(0)
        if taken and taken[0][0] < match.end():
            continue
        written = undecorated(match[0])
        if written and (name := choices.names.resolve(written, exactly=True)):
            lines.append(candidate(name, {}, choices).at(match.start(), match.end(), "name alone"))
    return lines


def _decide(found: list[Candidate], text: str, choices: LegalChoices, steps: Steps) -> Reading:
    turn = _NEXT_TURN.search(text, found[0].end)
    found = [c for c in found if turn is None or c.start < turn.start()]
    alone: list[Candidate] = []
    before = 0
    for one in found:
        if one.how == "name alone" or stands_alone(text, one.start, one.end, before):
            alone.append(one)
        before = one.end
    last = found[-1]
    if last not in alone:
        return NotUnderstood(f"The reply speaks of {last.name}, but not by itself as the action that is chosen.")
    if any(c.meaning != last.meaning for c in alone):
        names = ", ".join(dict.fromkeys(c.name for c in alone))
        return NotUnderstood(f"The reply asks for several things ({names[:200]}); ask for exactly one.")
    if taken_back(text, last.end):
        return NotUnderstood(f"The reply asks for {last.name} and may take it back.")
    return _understood(last, choices, steps)


def _alone(text: str, choices: LegalChoices) -> Candidate | None:
    """Return the action if a reply consists only of its name or call, once or repeated; lines quoted as in email
    (`> noop`) do not count."""
    lines = [line for line in re.sub(r"```[\w-]{0,15}", "", text).split("\n") if line.strip()]
    if not 0 < len(lines) <= MOST_LINES:
        return None
    found: list[Candidate] = []
    for line in lines:
        quoted = line.lstrip().startswith(">") and not line.lstrip().startswith(">>>")
        call = None if quoted else read_call(line, choices, marked=False)
        if call is None:
            return None
        found.append(candidate(call.name, call.given, choices))
    return found[0].at(0, len(text), "name alone") if len({c.meaning for c in found}) == 1 else None


def _understood(found: Candidate, choices: LegalChoices, steps: Steps = NOTHING_SAID) -> Reading:
    if found.reason:
        return NotUnderstood(found.reason)
    kind = Action if found.name in choices.actions else ToolCall
    return Understood(kind(found.name, found.values, found.reasoning), repaired=True, how=found.how, steps=steps)


MOST_LISTED = 60
"""Maximum number of listed actions; for others only their number is given."""


def why(reason: str, words: Words = ENGLISH, *, cut: bool = False) -> str:
    """Return a reason, which may quote the model, on one line; `cut` if the reply was cut off."""
    said = words.say(single_line(reason))
    return f"{words.say('The reply was cut off because it was too long.')} {said}" if cut else said


def reask(
    reason: str, actions: Sequence[ActionDef], words: Words = ENGLISH, *, cut: bool = False, question: str = ""
) -> str:
    """Return the message after an unreadable reply: the reason, a numbered list of legal actions, and the question, by
    default for one JSON object."""
    lines = ActionSpace(tuple(actions[:MOST_LISTED])).to_text(words).splitlines()
    listed = "\n".join(f"{place}. {line.removeprefix('- ')}" for place, line in enumerate(lines, 1))
    more = f"\n{words.say(f'(and {len(actions) - MOST_LISTED} more)')}" if len(actions) > MOST_LISTED else ""
    form = 'Reply with one JSON object and nothing else: {"action": "name", "params": {}, "reasoning": "why"}'
    return (
        f"{words.say('Your reply could not be used:')} {why(reason, words, cut=cut)[:400]}\n\n"
        f"{words.say('Actions that are possible now:')}\n{listed}{more}\n\n{question or words.say(form)}"
    )
