"""Reading a reply: strictly if it is what was asked for, tolerantly otherwise, and never by guessing.

thinking is taken out
├── one JSON object as asked for             -> understood
├── JSON, tags and labels anywhere in it     -> what they claim
│   ├── all the same                         -> understood
│   ├── differing, the last marked as final  -> the last
│   └── differing                            -> not understood
├── one call such as move(direction=north)
├── a name alone
└── one action named in a sentence
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from wsap_core.protocol import Action, ActionDef, Tool
from wsap_core.worlds.legality import check_parameters
from wsap_llm.reply.calls import read_call, undecorated
from wsap_llm.reply.candidates import Candidate, claim
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.labels import labelled, tagged
from wsap_llm.reply.mentions import mentioned
from wsap_llm.reply.objects import claims_in
from wsap_llm.reply.outcome import NotUnderstood, Reading, ToolCall, Understood
from wsap_llm.reply.prose import TAKEN_BACK, about_others, dialogue, name_alone, sentence_claim, supposed
from wsap_llm.reply.repair import Found, JsonObject, find_values
from wsap_llm.reply.words import joined
from wsap_llm.thinking import TEMPLATE_TOKEN, split_thinking

LONGEST = 50_000
"""Characters besides thinking; a longer reply is read only if it is strict JSON."""

_HEDGE = re.compile(
    r"(?:for example|\bexamples?\b|e\.g\.|for instance|such as|instead of|rather than|\bnot\b|n't\b|n’t\b"
    r"|\bnever\b|\bavoid\b"
    r"|format is|format:|expected format|required format|template|schema|\bif\b|\bsuppose\b|\bwould have\b"
    r"|\bsaid|\bsays\b|\btold\b|\btells\b|\bwrote\b|\bwrites\b|\bshout\w*|\bwhisper\w*|\basked\b|\basks\b"
    r"|\bwants? me\b)"
    r"[^.!?\n]{0,60}$",
    re.IGNORECASE,
)
_HEDGE_AFTER = re.compile(
    r"[`\s\"'”]{0,6}(?:(?:would|could|might) (?:be|have)|is (?:what|not|only|just|an example|wrong)|isn't"
    r"|was (?:what|not|my last))\b",
    re.IGNORECASE,
)
_FINAL = re.compile(
    r"\bfinal|\bactually\b|\binstead\b|\bcorrect|\bwait\b|second thought|\brevised\b|\bupdated\b|\bscratch that\b"
    r"|\bso (?:my|the) (?:action|answer|reply|response)\b|\bi(?:'ll| will) go with\b|\bbetter\b"
    r"|\btherefore\b|\bin the end\b",
    re.IGNORECASE,
)
# Where a model goes on to play the game's part.
_NEXT_TURN = re.compile(
    r"^[ \t*#_]{0,6}(?:observation|user|human|environment|game|system|### ?instruction|step \d+)[ \t*_]{0,4}(?::|$)"
    r"|<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|user\|>|<observation>|<\|start\|>user",
    re.IGNORECASE | re.MULTILINE,
)
_SHORT_LINE = re.compile(r"^[^\n]{1,80}$", re.MULTILINE)
_CALL = re.compile(r"(?<![\w.])([A-Za-z_]\w{0,60})\s?\(([^()\n]{0,300})\)")
_KEY_FIRST = re.compile(
    r"""\s{0,20}["'“]?(?:action|name|reasoning|tool|thought|params)["'”]?\s{0,5}[:：]""", re.IGNORECASE
)


def read_reply(
    text: str,
    actions: Sequence[ActionDef],
    tools: Sequence[Tool] = (),
    *,
    declared: Sequence[ActionDef] = (),
) -> Reading:
    """Return the one legal action or tool call that a reply asks for, or why there is none.

    Any text is read, in time proportional to its length. Parameters are valid as
    `wsap_core.worlds.legality.check_parameters` has it. Nothing is guessed: a reply that denies,
    supposes, quotes or lists actions, or asks for several, is not understood.

    Args:
        text: what the model replied, with its thinking where the backend leaves it in.
        actions: legal now.
        tools: that may be called instead.
        declared: all actions of the world, so that one that is not legal now is recognised as
            itself and not taken for a misspelt other.
    """
    if (quick := _as_asked(text, actions, tools)) is not None:
        return quick
    split = split_thinking(text)
    offer = LegalChoices.of(actions, tools, declared)
    if split.said:
        read = _as_asked(split.said, actions, tools) or _read(split.said, offer)
    elif split.thought:
        read = _from_thinking(split.thought, offer)
    else:
        read = NotUnderstood("The reply was empty.")
    return replace(read, thinking=split.thought)


def _as_asked(text: str, actions: Sequence[ActionDef], tools: Sequence[Tool]) -> Understood | None:
    """The fast way, for replies that are just what was asked for."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = json.loads(text, object_pairs_hook=JsonObject)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, JsonObject) or value.repeated:
        return None
    given, reasoning = value.get("params"), value.get("reasoning")
    if not isinstance(given, dict) or not isinstance(reasoning, str | None):
        return None
    if isinstance(given, JsonObject) and given.repeated:
        return None
    if value.keys() <= {"action", "params", "reasoning"}:
        action = next((a for a in actions if a.name == value.get("action")), None)
        if action is None:
            return None
        accepted, reason = check_parameters(action, given)
        return None if reason else Understood(Action(action.name, accepted, reasoning), accepted != given)
    if value.keys() <= {"tool", "params", "reasoning"}:
        tool = next((t for t in tools if t.name == value.get("tool")), None)
        if tool is None:
            return None
        accepted, reason = check_parameters(ActionDef(tool.name, "", tool.parameters), given)
        return None if reason else Understood(ToolCall(tool.name, accepted, reasoning), accepted != given)
    return None


def _from_thinking(thought: str, offer: LegalChoices) -> Reading:
    """Read a whole reply that was put into the thinking: a complete object on lines of its own at the end."""
    refused = NotUnderstood("The reply ended before the thinking did; nothing was decided.")
    tail = thought[-LONGEST:]
    values = find_values(tail)
    if not values or not values[-1].strict:
        return refused
    last = values[-1]
    line = tail[tail.rfind("\n", 0, last.start) + 1 : last.start]
    if tail[last.end :].strip("` \n") or line.strip() or not isinstance(last.value, dict) or "action" not in last.value:
        return refused
    claims = [c for v in values for c in claims_in(v.value, offer)]
    if len({c.meaning for c in claims}) != 1 or claims[-1].reason or set(last.value) == {"action"}:
        return refused
    return _understood(replace(claims[-1], how="JSON in text"), offer)


def _read(said: str, offer: LegalChoices) -> Reading:
    text = TEMPLATE_TOKEN.sub(" ", said).strip()
    if len(text) > LONGEST:
        return NotUnderstood(f"The reply is {len(text)} characters long; at most {LONGEST} are read.")
    text = _unpacked(text)
    values = find_values(text)
    claims = _claims(text, values, offer)
    if claims:
        return _decide(claims, text, offer)
    if any(v.broken for v in values):
        return NotUnderstood("The reply begins like JSON, and can't be read as such.")
    for way in (name_alone, _one_call, sentence_claim):
        if not _plain_objects(values) and (found := way(text, offer)) is not None:
            return _understood(found, offer)
    return NotUnderstood(_why(text, offer))


def _plain_objects(values: list[Found]) -> bool:
    """Whether there is JSON that asks for nothing, such as a list of actions echoed back."""
    return any(isinstance(v.value, list) and len(v.value) > 1 for v in values)


def _unpacked(text: str) -> str:
    """Undo wrappings of the whole reply: a fence, JSON inside a JSON text, escaped quotes, a lost brace."""
    if fenced := re.fullmatch(r"\s{0,20}```[\w-]{0,15}[ \t]{0,5}\n?(.*?)\n?\s{0,20}```\s{0,20}", text, re.DOTALL):
        text = fenced[1].strip()
    if text.startswith('"') and text.endswith('"') and "{" in text[:20]:
        try:
            inner = json.loads(text)
        except ValueError:
            inner = text.strip('"')
        text = inner if isinstance(inner, str) else text
    if re.match(r"\s{0,20}\{\s{0,20}(?:\\n|\s){0,20}\\\"", text):
        text = text.replace("\\n", "\n").replace('\\"', '"')
    if _KEY_FIRST.match(text) and text.lstrip()[0] in "\"'“":
        text = "{" + text
    return text


def _claims(text: str, values: list[Found], offer: LegalChoices) -> list[Candidate]:
    found = [
        replace(c.at(v.start, v.end, "JSON in text" if v.strict else "mended JSON"), mended=True)
        for v in values
        for c in claims_in(v.value, offer)
    ]
    found += tagged(text, offer, values)
    found += labelled(text, offer, values)
    found += _lines(text, found, offer) if found else []
    return sorted((c for c in found if not _hedged(text, c)), key=lambda c: c.start)


def _lines(text: str, found: list[Candidate], offer: LegalChoices) -> list[Candidate]:
    """Names on lines of their own beside other claims: with them, a list is seen for what it is."""
    lines: list[Candidate] = []
    for match in _SHORT_LINE.finditer(text):
        written = undecorated(match[0])
        name = offer.names.resolve(written) if written else None
        if name is None or joined(name) != joined(written):
            continue
        if not any(c.start < match.end() and match.start() < c.end for c in found):
            lines.append(claim(name, {}, offer).at(match.start(), match.end(), "name alone"))
    return lines


def _hedged(text: str, found: Candidate) -> bool:
    """Whether a claim is an example, a denial, a supposition, or somebody else's words."""
    line_start = text.rfind("\n", 0, found.start) + 1
    before = text[max(line_start, found.start - 160) : found.start]
    if dialogue(before) or _HEDGE.search(before) or _HEDGE_AFTER.match(text[found.end : found.end + 60]):
        return True
    if before.rstrip().endswith(('"', "“")) and about_others(before):
        return True
    above = text[max(0, line_start - 120) : line_start].rstrip().removesuffix("```json").removesuffix("```").rstrip()
    return (
        not before.strip("` ")
        and above.endswith(":")
        and (
            re.search(
                r"(?:for example|example|for instance|\bsaid|\bsays|\btold me|\bwrote)[^.!?\n]{0,60}:$",
                above,
                re.IGNORECASE,
            )
            is not None
        )
    )


def _decide(claims: list[Candidate], text: str, offer: LegalChoices) -> Reading:
    claims = _this_turn(claims, text)
    last = claims[-1]
    differing = [c for c in claims if c.meaning != last.meaning]
    if differing:
        between = text[differing[-1].end : _first_of_last(claims, last).end]
        if not _FINAL.search(between):
            names = ", ".join(dict.fromkeys(c.name for c in claims))
            return NotUnderstood(f"The reply asks for several things ({names[:200]}); ask for exactly one.")
    if TAKEN_BACK.search(text[last.end :]):
        return NotUnderstood(f"The reply asks for {last.name} and takes it back.")
    return _understood(last, offer)


def _first_of_last(claims: list[Candidate], last: Candidate) -> Candidate:
    """Return the first of the equal claims at the end."""
    first = last
    for earlier in reversed(claims):
        if earlier.meaning != last.meaning:
            break
        first = earlier
    return first


def _this_turn(claims: list[Candidate], text: str) -> list[Candidate]:
    """Leave out what follows once the model plays the game's part as well."""
    turn = _NEXT_TURN.search(text, claims[0].end)
    return [c for c in claims if turn is None or c.start < turn.start()]


def _one_call(text: str, offer: LegalChoices) -> Candidate | None:
    """Return the only call in prose: "I'll use move(direction='north') to get there."."""
    if len(text) > LONGEST // 8:
        return None
    found: dict[tuple[str, str], Candidate] = {}
    for match in _CALL.finditer(text):
        call = read_call(match[0], offer, free_text=True)
        if call is None or ("_" not in match[1] and not match[2].strip() and len(match[0]) > len(match[1]) + 2):
            continue
        made = claim(call.name, call.given, offer).at(match.start(), match.end(), "call")
        found[made.meaning] = made
    if len(found) != 1:
        return None
    only = next(iter(found.values()))
    line_end = text.find("\n", only.end)
    sentence = text[text.rfind("\n", 0, only.start) + 1 : line_end if line_end >= 0 else len(text)]
    if mentioned(text, offer) - {only.name} or _hedged(text, only) or TAKEN_BACK.search(text[only.end :]):
        return None
    before = text[text.rfind("\n", 0, only.start) + 1 : only.start]
    if about_others(sentence) or sentence.rstrip().endswith("?") or supposed(before):
        return None
    return only


def _understood(found: Candidate, offer: LegalChoices) -> Reading:
    if found.reason:
        return NotUnderstood(found.reason)
    kind = Action if found.name in offer.actions else ToolCall
    return Understood(kind(found.name, found.values, found.reasoning), found.mended, found.how)


def _why(text: str, offer: LegalChoices) -> str:
    names = sorted(mentioned(text, offer))
    if len(names) > 1:
        return f"The reply speaks of several actions ({', '.join(names)[:200]}) and chooses none of them clearly."
    if names:
        return f"The reply speaks of {names[0]}, but does not say clearly that it is to be done now."
    return "The reply names none of the possible actions."
