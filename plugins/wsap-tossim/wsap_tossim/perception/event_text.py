"""Events as sentences for a player, with sanitized quotations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from wsap_core.untrusted import sanitize
from wsap_tossim.engine.data.events import TOLD
from wsap_tossim.knowledge import Seen

__all__ = ["listed", "quoted", "sentence", "verdicts"]

LONGEST = 1000

Data = Mapping[str, Any]
CHANNELS: Mapping[str, str] = {
    "mafia": "the Mafia",
    "vampires": "the Vampires",
    "jail": "the jail",
    "dead": "the dead",
    "seance": "the seance",
}
_HIDDEN_SPEAKER: Mapping[str, str] = {"jail": "The Jailor", "dead": "The Medium", "mafia": "Somebody of the Mafia",
                                       "vampires": "One of the Vampires"}  # fmt: skip


_QUOTES = str.maketrans(
    dict.fromkeys('"\u201c\u201d\u201e\u201f\u00ab\u00bb\u2036\u275d\u275e\u275f\u301d\u301e\u301f', "'")
)
"""Quotation marks -> their replacement, so that quoted text can't end its quotation."""


@lru_cache(maxsize=4096)  # the same speech is shown to many players, many times
def quoted(text: str, limit: int = LONGEST) -> str:
    """Return sanitized text on one line in quotation marks."""
    return '"' + sanitize(text, limit).translate(_QUOTES) + '"'


def listed(words: Sequence[str], last: str = "and") -> str:
    """Return words joined by commas and `last`; "nobody" if there are none."""
    if len(words) < 2:
        return words[0] if words else "nobody"
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def sentence(event: Seen, names: Sequence[str], me: int | None) -> str:
    """Return an event as a sentence, empty if it needs none, that calls the player `me` "you" if given."""
    words = _SENTENCES.get(event.kind)
    return words(event.data, names, me) if words is not None else ""


def _who(number: int, names: Sequence[str], me: int | None) -> str:
    return "You" if number == me else names[number]


def _whom(number: int, names: Sequence[str], me: int | None) -> str:
    return "you" if number == me else names[number]


def _speech(data: Data, names: Sequence[str], me: int | None) -> str:
    return f"{names[data['player']]}: {quoted(str(data['text']))}"


def _whisper(data: Data, names: Sequence[str], me: int | None) -> str:
    return f"{names[data['player']]} (whispering to {_whom(data['to'], names, me)}): {quoted(str(data['text']))}"


def _said(data: Data, names: Sequence[str], me: int | None) -> str:
    speaker = data["player"]
    who = _HIDDEN_SPEAKER.get(data["channel"], "Somebody") if speaker is None else names[speaker]
    return f"{who} (to {CHANNELS.get(data['channel'], data['channel'])}): {quoted(str(data['text']))}"


def _vote(data: Data, names: Sequence[str], me: int | None) -> str:
    weight = " (three votes)" if data["weight"] == 3 else ""
    return f"{names[data['player']]} votes to try {names[data['target']]}{weight}; {data['needed']} votes are needed."


def _verdict(data: Data, names: Sequence[str], me: int | None) -> str:
    how = {"guilty": "votes guilty", "innocent": "votes innocent"}.get(data["verdict"], "abstains")
    return f"{names[data['player']]} {how}."


def verdicts(given: Sequence[Data], names: Sequence[str]) -> str:
    """Return all verdicts of a trial in one sentence, given the data of their events."""
    sides = {"guilty": "Guilty", "innocent": "innocent", "abstain": "abstaining"}
    found = [
        f"{word}: {listed([names[d['player']] for d in given if d['verdict'] == verdict])}"
        for verdict, word in sides.items()
        if any(d["verdict"] == verdict for d in given)
    ]
    text = "; ".join(found)
    return f"{text[:1].upper()}{text[1:]}."


def _judged(data: Data, names: Sequence[str], me: int | None) -> str:
    outcome = "condemned" if data["condemned"] else "acquitted"
    return f"{names[data['player']]} is {outcome}: {data['guilty']} guilty, {data['innocent']} innocent."


def _ballot(data: Data, names: Sequence[str], me: int | None) -> str:
    counts = [f"{names[int(p)]} {n}" for p, n in data["counts"].items()]
    return f"The ballot: {', '.join(counts) or 'nobody voted'}."


def _death(data: Data, names: Sequence[str], me: int | None) -> str:
    how = listed([str(c) for c in data.get("causes") or ()])
    role = data.get("role")
    shown = f" Role: {role}." if role else " The role could not be found out."
    if data.get("when") == "day":
        return f"{names[data['player']]} died by {how}.{shown}"
    died = "died of guilt" if how == "guilt" else f"was attacked and killed by {how}"
    return f"Last night, {names[data['player']]} {died}.{shown}"


def _will(data: Data, names: Sequence[str], me: int | None) -> str:
    owner = names[data["player"]]
    if data.get("cleaned"):
        return f"{owner}'s will could not be found."
    text = data.get("text")
    return f"{owner} left the will: {quoted(text)}" if text else f"{owner} left no will."


def _result(data: Data, names: Sequence[str], me: int | None) -> str:
    target = names[data["target"]] if data.get("target") is not None else ""
    if data["verb"] == "spy":
        return f"The Mafia visited {listed([names[n] for n in data['visits']])}."
    if "suspicious" in data:
        return f"{target} is {'suspicious' if data['suspicious'] else 'not suspicious'}."
    if "group" in data:
        return f"{target} is one of these: {listed([str(r) for r in data['group']], 'or')}."
    if "visitors" in data:
        return f"{target} was visited by {listed([names[n] for n in data['visitors']])}."
    if "vampire" in data:
        return f"{target} is {'a Vampire' if data['vampire'] else 'no Vampire'}."
    if "will" in data:
        return f"You hid that {target} was the {data['role']}, with the will {quoted(data['will'] or '')}."
    return f"{target} is the {data['role']}." if "role" in data else f"You learned something about {target}."


def _told(data: Data, names: Sequence[str], me: int | None) -> str:
    text = TOLD.get(data["code"], "")
    target = names[data["target"]] if data.get("target") is not None else ""
    return text.format(target=target, number=data.get("number", ""))


def _role(data: Data, names: Sequence[str], me: int | None) -> str:
    mates = [f"{names[int(n)]} ({role})" for n, role in (data.get("mates") or {}).items()]
    target = data.get("target")
    wanted = f" Your target is {names[target]}." if target is not None else ""
    return f"You are the {data['role']}.{f' With you: {listed(mates)}.' if mates else ''}{wanted}"


def _becomes(data: Data, names: Sequence[str], me: int | None) -> str:
    verb = "are" if data["player"] == me else "is"
    return f"{_who(data['player'], names, me)} {verb} the {data['role']} now ({data['why']})."


def _over(data: Data, names: Sequence[str], me: int | None) -> str:
    side = data.get("side")
    return f"The game is over{f': {side} wins' if side else ': a draw'}. {data['reason']}"


_SENTENCES: Mapping[str, Callable[[Data, Sequence[str], int | None], str]] = {
    "role": _role,
    "speech": _speech,
    "whisper": _whisper,
    "whispered": lambda d, n, me: f"{n[d['player']]} whispers to {_whom(d['to'], n, me)}.",
    "bid": lambda d, n, me: f"{n[d['player']]} bids {d['level']} for the floor.",
    "floor": lambda d, n, me: f"{n[d['player']]} has the floor.",
    "silent": lambda d, n, me: f"{n[d['player']]} says nothing.",
    "vote": _vote,
    "unvote": lambda d, n, me: f"{n[d['player']]} takes the vote against {n[d['target']]} back.",
    "trial": lambda d, n, me: f"{n[d['player']]} is put on trial.",
    "verdict": _verdict,
    "judged": _judged,
    "ballot": _ballot,
    "revealed": lambda d, n, me: f"{n[d['player']]} is the Mayor; that vote counts three from now on.",
    "blackmailed": lambda d, n, me: "You are blackmailed: you can't speak today." if d["player"] == me else "",
    "death": _death,
    "will": _will,
    "note": lambda d, n, me: f"A death note was found beside {n[d['player']]}: {quoted(d['text'])}",
    "haunted": lambda d, n, me: f"{n[d['player']]} was haunted.",
    "result": _result,
    "told": _told,
    "said": _said,
    "jailed": lambda d, n, me: (
        "You sit in jail tonight." if d["player"] == me else f"{n[d['player']]} sits in your jail."
    ),
    "raised": lambda d, n, me: f"{_who(d['player'], n, me)} came back to life.",
    "remembered": lambda d, n, me: f"An Amnesiac has remembered to be a {d['role']}.",
    "becomes": _becomes,
    "over": _over,
}
