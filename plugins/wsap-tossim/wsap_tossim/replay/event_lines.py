"""Each event of the log as a sentence in the third person, the same for every view, with players by number."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wsap_tossim.engine.data.events import TOLD
from wsap_tossim.engine.data.model import Event
from wsap_tossim.engine.roles.listed import ROLES

__all__ = ["KINDS", "STEPS", "Line", "line"]

Part = str | int
"""Words, or a player by number."""


class Line(NamedTuple):
    """An event in words."""

    tone: str
    """Style: talk, whisper, quiet, vote, trial, verdict, death, paper, private, channel, news, trace or end."""
    parts: tuple[Part, ...]
    """The sentence; players by number."""
    text: str = ""
    """The quoted text."""
    speaker: int | None = None
    """The player whose speech or deed it is, if any."""


STEPS: Mapping[str, str] = {
    "jailed": "Jail",
    "chose": "Choices",
    "moves": "Transports",
    "controls": "Control",
    "blocks": "Roleblocks",
    "visits": "Visits",
    "protects": "Protection and deception",
    "deceives": "Protection and deception",
    "attacks": "Attacks",
    "result": "Investigations",
    "death": "Deaths, conversions, promotions",
    "becomes": "Deaths, conversions, promotions",
}
"""Kind -> its step in the resolution of the night."""

CHANNELS = {
    "mafia": "to the Mafia",
    "vampires": "to the Vampires",
    "jail": "in the jail",
    "dead": "among the dead",
    "seance": "in a séance",
}
ATTACKS = ("no", "a basic", "a powerful", "an unstoppable")
DEFENSES = ("no", "basic", "powerful", "invincible")

_Data = Mapping[str, Any]


def _listed(items: Sequence[Sequence[Part]]) -> list[Part]:
    parts: list[Part] = []
    for at, item in enumerate(items):
        if at:
            parts.append(" and " if at == len(items) - 1 else ", ")
        parts.extend(item)
    return parts


def _players(numbers: Sequence[int]) -> list[Part]:
    return _listed([[n] for n in numbers])


def _article(role: str) -> str:
    if role in ROLES and ROLES[role].unique:
        return f"the {role}"
    return f"{'an' if role[:1] in 'AEIOU' else 'a'} {role}"


# --- start and end ------------------------------------------------------------------------------


def _begins(d: _Data) -> Line:
    rules = d["rules"]
    named = f"{rules.get('name', '')} (version {rules.get('version', '')})"
    return Line(
        "news", (f"The game begins with {d['players']} players, rules {named}. Roles: {', '.join(d['slots'])}.",)
    )


def _role(d: _Data) -> Line:
    parts: list[Part] = [d["player"], f" is {_article(d['role'])}."]
    mates = [(int(n), role) for n, role in (d.get("mates") or {}).items()]
    if mates:
        parts += [" Knows: ", *_listed([[n, f" ({role})"] for n, role in mates]), "."]
    if d.get("target") is not None:
        parts += [" Must see ", d["target"], " lynched."]
    return Line("private", tuple(parts))


def _over(d: _Data) -> Line:
    side = d.get("side")
    won = f"The {side} {'win' if side == 'Vampires' else 'wins'}." if side else "It is a draw."
    parts: list[Part] = [f"The game is over. {won} {d['reason']}"]
    if d["winners"]:
        parts += [" Winners: ", *_players(d["winners"]), "."]
    return Line("end", tuple(parts))


def _truth(d: _Data) -> Line:
    rows: list[list[Part]] = []
    for n, (first, last) in enumerate(zip(d["roles"], d["final"], strict=True)):
        rows.append([n, f": {first}" + (f", then {last}" if last != first else "")])
    return Line("end", ("Who was who: ", *_listed(rows), "."))


# --- the day ------------------------------------------------------------------------------------


def _vote(d: _Data) -> Line:
    counts = f", which counts {d['weight']}" if d.get("weight", 1) != 1 else ""
    return Line("vote", (d["player"], " votes to try ", d["target"], f"{counts}."), speaker=d["player"])


def _judged(d: _Data) -> Line:
    how = "is found guilty" if d["condemned"] else "is acquitted"
    return Line("trial", (d["player"], f" {how}: {d['guilty']} guilty, {d['innocent']} innocent."))


def _ballot(d: _Data) -> Line:
    counts = sorted(((int(p), c) for p, c in d["counts"].items()), key=lambda row: (-row[1], row[0]))
    if not counts:
        return Line("trial", ("Nobody has votes.",))
    parts = ["The ballot: ", *_listed([[p, f" {c}"] for p, c in counts]), ". "]
    return Line("trial", (*parts, d["lynched"], " is lynched."))


def _verdict(d: _Data) -> Line:
    words = {"guilty": "votes guilty", "innocent": "votes innocent"}.get(d["verdict"], "abstains")
    counts = f", which counts {d['weight']}" if d.get("weight", 1) != 1 else ""
    return Line("verdict", (d["player"], f" {words}{counts}."), speaker=d["player"])


# --- death --------------------------------------------------------------------------------------


def _death(d: _Data) -> Line:
    causes: list[list[Part]] = [[str(c)] for c in d.get("causes") or ()]
    by: list[Part] = [" was killed by ", *_listed(causes), "."] if causes else [" died."]
    role = f" The role was {d['role']}." if d.get("role") else " The role is not known."
    return Line("death", (d["player"], *by, role))


def _will(d: _Data) -> Line:
    if d.get("cleaned"):
        return Line("paper", ("The last will of ", d["player"], " could not be found."))
    if not d.get("text"):
        return Line("paper", (d["player"], " left no last will."))
    return Line("paper", ("The last will of ", d["player"], ":"), d["text"])


# --- private events -----------------------------------------------------------------------------


def _result(d: _Data) -> Line:
    verb = " learns as a Spy" if d.get("verb") == "spy" else f" learns ({d['verb']})"
    about: list[Part] = [" about ", d["target"]] if d.get("target") is not None else []
    found: list[list[Part]] = []
    for key, yes, no in (("suspicious", "suspicious", "not suspicious"), ("vampire", "a Vampire", "no Vampire")):
        if d.get(key) is not None:
            found.append([yes if d[key] else no])
    if d.get("role") is not None:
        found.append([f"the role is {d['role']}"])
    if d.get("group") is not None:
        found.append([f"one of {', '.join(map(str, d['group']))}"])
    for key, nobody, words in (("visitors", "nobody came", "visited by "), ("visits", "nobody", "visited ")):
        if d.get(key) is not None:
            numbers = [int(n) for n in d[key]]
            found.append(
                [words, *_players(numbers)] if numbers else [f"visited {nobody}" if key == "visits" else nobody]
            )
    will = d.get("will")
    if will:
        found.append(["the will reads"])
    end = ":" if will else "."
    return Line("private", (d["player"], verb, *about, ": ", *(_listed(found) or ["nothing"]), end), will or "")


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _told(d: _Data) -> Line:
    code = str(d["code"])
    words = TOLD.get(code, code.replace("_", " ") + ".").replace("{number}", str(d.get("number", "")))
    parts: list[Part] = [d["player"], " is told: \u201c"]
    before, hole, after = words.partition("{target}")
    parts += [before, d["target"], after] if hole and d.get("target") is not None else [words]
    return Line("private", (*(p for p in parts if p != ""), "\u201d"))


def _said(d: _Data) -> Line:
    where = CHANNELS.get(d["channel"], str(d["channel"]))
    hidden = {"jail": "The Jailor", "dead": "The Medium", "mafia": "One of the Mafia"}
    who: Part = d["player"] if d.get("player") is not None else hidden.get(d["channel"], "A voice")
    return Line("channel", (who, f" {where}"), d["text"], d.get("player"))


def _becomes(d: _Data) -> Line:
    why = f" ({d['why']})" if d.get("why") else ""
    return Line("private", (d["player"], f" is {_article(d['role'])} now{why}."))


def _writes(d: _Data) -> Line:
    what = {"will": "a last will", "note": "a death note", "notebook": "in the notebook"}.get(d["what"], d["what"])
    return Line("private", (d["player"], f" writes {what}:"), d["text"], d["player"])


# --- the resolver's trace -----------------------------------------------------------------------


def _chose(d: _Data) -> Line:
    targets: Sequence[int] = d.get("targets") or ()
    if d["verb"] == "wait":
        return Line("trace", (d["player"], " does nothing."), speaker=d["player"])
    joined: list[Part] = [": ", *_listed([[t] for t in targets])] if targets else []
    return Line("trace", (d["player"], f" chooses to {d['verb']}", *joined, "."), speaker=d["player"])


def _moves(d: _Data) -> Line:
    rows: list[list[Part]] = [[a, " swaps places with ", b] for a, b in d["pairs"]]
    return Line("trace", (*_listed(rows), "."))


def _controls(d: _Data) -> Line:
    return Line("trace", (d["player"], " forces ", d["victim"], " to go to ", d["onto"], "."))


def _blocks(d: _Data) -> Line:
    end = "." if d.get("held", True) else ", who is immune."
    return Line("trace", (d["player"], " blocks ", d["target"], end))


def _visits(d: _Data) -> Line:
    verb = f" ({d['verb']})" if d.get("verb") else ""
    return Line("trace", (d["player"], " goes to ", d["target"], f"{verb}."))


def _protects(d: _Data) -> Line:
    words = {"alert": "is on alert", "vest": "puts on a vest"}.get(str(d.get("means")))
    if words and d.get("target") in (None, d["player"]):
        return Line("trace", (d["player"], f" {words}."))
    return Line("trace", (d["player"], " protects ", d["target"], f" ({d.get('means')})."))


def _attacks(d: _Data) -> Line:
    strength, defense = ATTACKS[int(d["attack"])], DEFENSES[int(d["defense"])]
    end = "it kills" if d["kills"] else "it does not kill"
    if d.get("player") is None:
        head: tuple[Part, ...] = (f"{str(d['how'])[:1].upper()}{str(d['how'])[1:]} strikes ", d["target"])
    else:
        head = (d["player"], " attacks ", d["target"], f" (as {d['how']})")
    return Line("trace", (*head, f": {strength} attack against {defense} defense; {end}."))


def _deceives(d: _Data) -> Line:
    words = {
        "frame": " frames ", "clean": " intends to clean up after ", "forge": " intends to forge the will of ",
        "disguise": " disguises in the image of ", "douse": " douses ", "blackmail": " blackmails ",
    }.get(str(d["how"]), f" deceives ({d['how']}) ")  # fmt: skip
    if d["how"] == "disguise" and d.get("member") is not None:
        return Line("trace", (d["player"], " disguises ", d["member"], " in the image of ", d["target"], "."))
    return Line("trace", (d["player"], words, d["target"], "."))


_WORDS: Mapping[str, Callable[[_Data], Line]] = {
    "begins": _begins,
    "role": _role,
    "over": _over,
    "truth": _truth,
    "speech": lambda d: Line("talk", (d["player"],), d["text"], d["player"]),
    "whisper": lambda d: Line("whisper", (d["player"], " whispers to ", d["to"]), d["text"], d["player"]),
    "whispered": lambda d: Line("quiet", (d["player"], " whispers to ", d["to"], "."), speaker=d["player"]),
    "bid": lambda d: Line("quiet", (d["player"], f" bids {d['level']} for the floor."), speaker=d["player"]),
    "floor": lambda d: Line("quiet", (d["player"], " has the floor."), speaker=d["player"]),
    "silent": lambda d: Line("quiet", (d["player"], " says nothing."), speaker=d["player"]),
    "forced": lambda d: Line("quiet", (d["player"], " made no valid choice in time; one was made for it.")),
    "vote": _vote,
    "unvote": lambda d: Line("vote", (d["player"], " takes back the vote for ", d["target"], "."), speaker=d["player"]),
    "trial": lambda d: Line("trial", (d["player"], f" is put on trial (number {d['number']} today).")),
    "verdict": _verdict,
    "judged": _judged,
    "ballot": _ballot,
    "revealed": lambda d: Line("news", (d["player"], " comes forward: the Mayor of the town.")),
    "blackmailed": lambda d: Line("private", (d["player"], " is blackmailed and may not speak today.")),
    "death": _death,
    "will": _will,
    "note": lambda d: Line("paper", ("A death note lay beside ", d["player"], ":"), d["text"]),
    "haunted": lambda d: Line("death", (d["player"], " is haunted by the Jester.")),
    "result": _result,
    "told": _told,
    "said": _said,
    "jailed": lambda d: Line("private", (d["player"], " is taken to jail.")),
    "raised": lambda d: Line("news", (d["player"], " is alive again.")),
    "remembered": lambda d: Line("news", (f"An Amnesiac has remembered being {_article(d['role'])}.",)),
    "becomes": _becomes,
    "writes": _writes,
    "chose": _chose,
    "moves": _moves,
    "controls": _controls,
    "blocks": _blocks,
    "visits": _visits,
    "protects": _protects,
    "attacks": _attacks,
    "deceives": _deceives,
}


KINDS = frozenset({*_WORDS, "phase"})
"""The known kinds of events."""


def line(event: Event) -> Line | None:
    """Return an event in words; None for a change of phase, which is a heading.

    An unknown kind is shown with its data, so that games of a newer engine can be read.
    """
    if event.kind == "phase":
        return None
    words = _WORDS.get(event.kind)
    if words is None:
        rest = ", ".join(f"{k} {_plain(v)}" for k, v in sorted(event.data.items()) if k != "player")
        named: tuple[Part, ...] = (event.data["player"],) if isinstance(event.data.get("player"), int) else ()
        return Line("news" if event.known_by else "trace", (*named, f" {event.kind} {rest}".rstrip() + "."))
    return words(event.data)
