"""Parser of speeches: role claims, findings, accusations and questions.

It knows the sentences of the scripted players and common equivalents of people and models. It skips everything else,
and never fails.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from wsap_tossim.engine.data.model import Faction
from wsap_tossim.engine.roles.listed import ROLES

__all__ = ["Said", "clauses", "named", "read", "read_will"]

LONGEST = 2000
"""Maximum characters read of a text."""
MOST = 40
"""Maximum statements per text."""


class Said(NamedTuple):
    """One statement."""

    kind: str
    """`role`: the speaker claims `role`. `finding`: it reports a deed or finding, see `what`. `accuse`, `trust`: it
    calls `target` evil, or good. `ask`: it asks `target` (None: everybody) to claim."""
    target: int | None = None
    role: str = ""
    """The role claimed or found."""
    night: int | None = None
    what: str = ""
    """Of a finding: the verb, in the speaker's past tense ("healed"), or `suspicious`, `clear`, `group`, `role`,
    `visitors`, `visits`."""
    roles: tuple[str, ...] = ()
    """The roles of a group."""
    players: tuple[int, ...] = ()
    """Players of visitors or visits."""


class _Token(NamedTuple):
    kind: str
    value: object
    start: int
    end: int


_ALIASES = {
    "doc": "Doctor", "invest": "Investigator", "inv": "Investigator", "gf": "Godfather", "sk": "Serial Killer",
    "ww": "Werewolf", "bg": "Bodyguard", "exe": "Executioner", "vet": "Veteran", "vig": "Vigilante",
    "vigi": "Vigilante", "arso": "Arsonist", "consig": "Consigliere", "retri": "Retributionist",
    "ret": "Retributionist", "surv": "Survivor", "amne": "Amnesiac", "villager": "Citizen",
}  # fmt: skip
_WORDS = {
    "me": r"i am|i'm|im|i was|i've been|my role is|my role's|call me|i claim|i do claim|i am claiming|i'm claiming"
    r"|i claim to be|as the|as a|as your",
    "i": r"i|we|my",
    "claim": r"claims?|claiming|claimed|says?|said|saying|pretends?|pretending|calls",
    "be": r"is|are|was|were|'s|must be|might be|could be|can be|looks like|seems|looks|isn't|wasn't|aren't",
    "if": r"if|unless|suppose|imagine|would|whether",
    "by": r"visited by|visitors were|visitors?|came to|were there",
    "nobody": r"nobody|no one|no-one|none|no visitors?",
    "not": r"not|no|never|n't|isn't|wasn't|aren't|don't|doesn't|didn't|no longer",
    "evil": r"suspicious|evil|mafia|mafioso team|scum|scummy|liar|lying|lies|fake|faking|guilty|a killer|the killer"
    r"|bad|fishy|shady|sus",
    "good": r"innocent|clear|cleared|clean|town|townie|trustworthy|confirmed|legit|honest|telling the truth",
    "accuse": r"suspect|lynch|hang|vote|voting|accuse|accusing|don't trust|do not trust|distrust",
    "trust": r"trust|vouch for|vouch|believe",
    "ask": r"who are you|what are you|what is your role|what's your role|your role|please claim|claim now"
    r"|tell us your role|claim|roleclaim",
    "quiet": r"will you|would you",
}
_ACTS = {
    "investigated": "investigated|investigate|checked|check|looked at|looked into|interrogated|interrogate|consulted",
    "watched": "watched|watch",
    "healed": "healed|heal|saved|protected",
    "guarded": "guarded|guard",
    "blocked": "blocked|block|roleblocked|roleblock|escorted|distracted",
    "shot": "shot|shoot",
    "jailed": "jailed|jail",
    "executed": "executed|execute",
    "swapped": "swapped|transported|swap|transport",
    "hunted": "hunted|hunt|staked",
    "raised": "raised|raise|revived",
}
_ACT_OF = {word: act for act, words in _ACTS.items() for word in words.split("|")}
_ROLE_OF = {name.casefold(): name for name in ROLES} | _ALIASES
_COMMON_WORDS = frozenset({"will", "may", "mark", "grace", "hope", "art", "rose", "bill", "pat", "sue", "guy", "ray"})
_FILLERS = re.compile(
    r"[\s,:'\"]*(?:(?:the|a|an|your|our|real|true|actual|only|actually|really|just|in fact|indeed|to be|being|role"
    r"|town|:)[\s,:]*){0,4}\Z",
    re.IGNORECASE,
)


def read(text: str, names: Sequence[str]) -> tuple[Said, ...]:
    """Return the recognized statements of an untrusted text; `names` are those of all players, by number."""
    return _read(text, tuple(names), False)


def read_will(text: str, names: Sequence[str]) -> tuple[Said, ...]:
    """Return the statements of a will, where a role alone on a line is a claim."""
    return _read(text, tuple(names), True)


def named(text: str, names: Sequence[str]) -> tuple[int, ...]:
    """Return the players named in a text, in order."""
    return _named(text[:LONGEST], tuple(names))


@lru_cache(maxsize=4096)
def clauses(text: str) -> tuple[str, ...]:
    """Return the clauses of a text."""
    return tuple(part for part in re.split(r"[.!?;:]+\s*|,\s+", text) if " " in part)


@lru_cache(maxsize=8192)
def _named(text: str, names: tuple[str, ...]) -> tuple[int, ...]:
    found = [t.value for t in _tokens(text, names) if t.kind == "name"]
    return tuple(dict.fromkeys(n for n in found if isinstance(n, int)))


@lru_cache(maxsize=8192)
def _read(text: str, names: tuple[str, ...], will: bool) -> tuple[Said, ...]:
    found: list[Said] = []
    sentence: list[_Token] = []
    for token in (*_tokens(text[:LONGEST].replace("’", "'"), names), _Token("stop", "", 0, 0)):
        if token.kind != "stop":
            sentence.append(token)
            continue
        if sentence:
            _sentence(sentence, text, will, found)
            sentence = []
        if len(found) >= MOST:
            break
    return tuple(found[:MOST])


@lru_cache(maxsize=64)
def _pattern(names: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, int]]:
    numbers: dict[str, int] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, number)
        low = name.casefold()
        if len(low) > 2 and low not in _COMMON_WORDS and low not in _ROLE_OF:
            numbers.setdefault(low, number)
    known = sorted((name for name in numbers if name), key=lambda name: (-len(name), name))
    parts = [rf"(?P<name>(?<!\w)(?:{'|'.join(map(re.escape, known))})(?!\w))"] if known else []
    parts.append(r"(?P<seat>(?i:\bplayer\s?#?\d{1,2}\b))")
    parts.append(rf"(?P<role>(?i:\b(?:{'|'.join(sorted(map(re.escape, _ROLE_OF), key=len, reverse=True))})\b))")
    parts.append(r"(?P<night>(?i:\bn(?:ight)?\s?\d{1,2}\b))")
    parts.append(rf"(?P<act>(?i:\b(?:{'|'.join(sorted(_ACT_OF, key=len, reverse=True))})\b))")
    for kind in ("me", "ask", "if", "by", "nobody", "accuse", "trust", "not", "evil", "good", "claim", "be", "i"):
        words = "|".join(sorted(_WORDS[kind].split("|"), key=len, reverse=True))
        parts.append(rf"(?P<{kind}>(?i:(?<![\w'])(?:{words})(?!\w)))")
    parts.append(r"(?P<neg>(?i:n't\b))")
    parts.append(r"(?P<stop>[.!?;\n]+)")
    return re.compile("|".join(parts)), numbers


def _tokens(text: str, names: tuple[str, ...]) -> list[_Token]:
    pattern, numbers = _pattern(names)
    found = []
    for match in pattern.finditer(text):
        kind = match.lastgroup or ""
        word = match.group()
        value: object = word.casefold()
        if kind == "name":
            value = numbers[word] if word in numbers else numbers[word.casefold()]
        elif kind == "seat":
            kind, value = "name", int("".join(c for c in word if c.isdecimal())) - 1
            if not 0 <= value < len(names):
                continue
        elif kind == "role":
            value = _ROLE_OF[word.casefold()]
        elif kind == "night":
            value = int("".join(c for c in word if c.isdecimal()))
        elif kind == "act":
            value = _ACT_OF[word.casefold()]
        elif kind == "neg":
            kind = "not"
        found.append(_Token(kind, value, match.start(), match.end()))
    return found


def _sentence(tokens: list[_Token], text: str, will: bool, found: list[Said]) -> None:
    kinds = [t.kind for t in tokens]
    supposed = "if" in kinds
    if not supposed:
        _own_role(tokens, text, will, found)
        if "act" in kinds and _finding(tokens, found):
            return
    _opinions(tokens, kinds, found)


def _own_role(tokens: list[_Token], text: str, will: bool, found: list[Said]) -> None:
    for at, token in enumerate(tokens):
        if token.kind != "role":
            continue
        role = str(token.value)
        after = text[token.end : token.end + 6].casefold()
        before = tokens[at - 1] if at else None
        if before is None:
            if after.startswith((" here", ", here")) or (will and len(tokens) == 1):
                found.append(Said("role", role=role))
            continue
        starts = before.kind == "me" or (before.kind == "claim" and at == 1 and before.value == "claiming")
        if starts and _FILLERS.match(text[before.end : token.start]):
            spoken_for = at > 1 and tokens[at - 2].kind in ("claim", "name") and before.value in ("as the", "as a")
            if not spoken_for:
                found.append(Said("role", role=role))


def _finding(tokens: list[_Token], found: list[Said]) -> bool:
    """Parse a report of a night ("N2: investigated Dana: suspicious"); return whether the sentence is one."""
    at = next(i for i, t in enumerate(tokens) if t.kind == "act")
    act = str(tokens[at].value)
    before = tokens[:at]
    if before and before[-1].kind == "not":
        return True  # negated
    if any(t.kind in ("name", "ask") for t in before) and not any(t.kind in ("i", "me") for t in before[-2:]):
        return False  # about somebody else
    rest = tokens[at + 1 :]
    whom = next((i for i, t in enumerate(rest) if t.kind == "name"), None)
    if whom is None:
        return False
    target = rest[whom].value
    assert isinstance(target, int)
    night = next((int(str(t.value)) for t in tokens if t.kind == "night"), None)
    rest = rest[whom + 1 :]
    kinds = [t.kind for t in rest]
    roles = tuple(dict.fromkeys(str(t.value) for t in rest if t.kind == "role"))
    others = tuple(t.value for t in rest if t.kind == "name" and isinstance(t.value, int))
    what = act
    if act == "watched":
        what = "visitors" if others or "nobody" in kinds else act
    elif act in ("investigated", "hunted"):
        if len(roles) == 1:
            what = act if "not" in kinds else "role"
        elif roles:
            what = "group"
        elif "evil" in kinds:
            what = "clear" if "not" in kinds else "suspicious"
        elif "good" in kinds:
            what = "suspicious" if "not" in kinds else "clear"
    role = roles[0] if what == "role" else ""
    found.append(Said("finding", target, role, night, what, roles if what == "group" else (), others))
    return True


def _opinions(tokens: list[_Token], kinds: list[str], found: list[Said]) -> None:
    for at, token in enumerate(tokens):
        kind = token.kind
        if kind == "ask":
            whom = next((t.value for t in tokens if t.kind == "name"), None)
            if token.value != "claim" or (whom is not None and not _said_of(tokens, at)):
                found.append(Said("ask", whom if isinstance(whom, int) else None))
            return
        if kind in ("accuse", "trust"):
            whom = next((t.value for t in tokens[at + 1 :] if t.kind == "name"), None)
            if isinstance(whom, int):
                against = (kind == "accuse") != ("not" in kinds[max(0, at - 2) : at])
                found.append(Said("accuse" if against else "trust", whom))
                return
        if kind in ("evil", "good"):
            subject = next((t for t in reversed(tokens[:at]) if t.kind in ("name", "i", "me")), None)
            if subject is None or subject.kind != "name":
                continue
            against = (kind == "evil") != ("not" in kinds[:at])
            found.append(Said("accuse" if against else "trust", int(str(subject.value))))
            return
        if kind == "role" and at > 1 and tokens[at - 1].kind == "be" and tokens[at - 2].kind == "name":
            good = ROLES[str(token.value)].faction is Faction.TOWN
            whom = tokens[at - 2].value
            found.append(Said("trust" if good else "accuse", int(str(whom)), str(token.value)))
            return


def _said_of(tokens: list[_Token], at: int) -> bool:
    """Return whether "claim" reports a claim rather than asks for one: a role follows it."""
    return any(t.kind == "role" for t in tokens[at + 1 :]) or any(t.kind in ("i", "me") for t in tokens[:at])
