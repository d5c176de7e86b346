"""A player's account of its nights: the truth from its results and notebook, or a cover story.

A cover is a Town role that the list has room for, with invented nights: they contain no visits to the dead, report
nights in jail or blocked truthfully, since others may know of them, and stay the same when told again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from wsap_tossim.engine.data.model import Verb
from wsap_tossim.engine.night.findings import GROUPS
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.perception.event_text import listed
from wsap_tossim.players.reading.claims import named
from wsap_tossim.players.reading.counting import claim_of, count_claims
from wsap_tossim.players.reading.notes import Notes
from wsap_tossim.players.reading.priors import is_enemy, is_town, role_list

__all__ = ["cover_role", "diary", "diary_line", "nights_of", "told_as", "will_of"]

PAST: Mapping[str, str] = {
    Verb.HEAL: "healed {0}",
    Verb.HEAL_SELF: "healed myself",
    Verb.GUARD: "guarded {0}",
    Verb.VEST: "wore a vest",
    Verb.BLOCK: "blocked {0}",
    Verb.INVESTIGATE: "investigated {0}",
    Verb.INTERROGATE: "interrogated {0}",
    Verb.WATCH: "watched {0}",
    Verb.JAIL: "jailed {0}",
    Verb.EXECUTE: "executed {0}",
    Verb.SHOOT: "shot {0}",
    Verb.ALERT: "was on alert",
    Verb.HUNT: "hunted {0}",
    Verb.RAISE: "raised {0}",
    Verb.TRANSPORT: "swapped {0} and {1}",
}
"""Verb -> its report by the Town."""
COVERS: Mapping[str, str] = {
    "Doctor": "healed {0}",
    "Bodyguard": "guarded {0}",
    "Escort": "blocked {0}",
    "Lookout": "watched {0}: nobody came",
    "Sheriff": "interrogated {0}: not suspicious",
    "Investigator": "investigated {0}: {group}",
    "Vigilante": "kept my bullets",
    "Medium": "listened for the dead",
    "Vampire Hunter": "hunted {0}: no Vampire",
    "Spy": "heard nothing worth telling",
    "Citizen": "slept",
}
"""Cover role -> its nightly reports."""
ACCUSING = ("Sheriff", "Investigator")


def diary_line(night: int, verb: str, targets: Sequence[int], names: Sequence[str]) -> str:
    """Return a notebook line for a night's deed: "N2 heal Bo"."""
    return " ".join([f"N{night}", verb, " & ".join(names[t] for t in targets)]).rstrip()


def diary(notebook: str, names: Sequence[str]) -> list[tuple[int, str, tuple[int, ...]]]:
    """Return night, verb and targets of each such line of a notebook, skipping other lines."""
    numbers = {name: number for number, name in enumerate(names)}
    found: list[tuple[int, str, tuple[int, ...]]] = []
    for line in notebook.split("\n"):
        word, _, rest = line.partition(" ")
        verb, _, whom = rest.partition(" ")
        if word[:1] == "N" and word[1:].isdecimal() and len(word) < 6 and verb:
            if whom in numbers:
                found.append((int(word[1:]), verb, (numbers[whom],)))
                continue
            parts = whom.split(" & ") if whom else []
            if all(part in numbers for part in parts):
                found.append((int(word[1:]), verb, tuple(numbers[part] for part in parts)))
    return found


def told_as(knowledge: Knowledge, notes: Notes, seed: int) -> str:
    """Return the role that the player claims: the Town tells the truth, others may lie."""
    role = knowledge.role or "Citizen"
    if honest(role):
        return role
    if role == "Vampire" and notes.claimed is None and honest(former_role(knowledge)):
        return former_role(knowledge)  # supported by all its deeds and findings
    if role == "Jester" and notes.claimed is None and jester_manner(seed) != "mute":
        return _found_out(knowledge, notes, seed)
    return cover_role(knowledge, notes, seed)


def honest(role: str) -> bool:
    """Return whether players with a role have no reason to hide it."""
    return is_town(role) or role in ("Survivor", "Amnesiac")


def former_role(knowledge: Knowledge) -> str:
    """Return the player's initial role."""
    for event in knowledge.events:
        if event.kind == "role" and event.data["player"] == knowledge.player:
            return str(event.data["role"])
    return knowledge.role or "Citizen"


def jester_manner(seed: int) -> str:
    """Return a Jester's strategy: `mute`, obvious `liar`, or false `accuser`."""
    return ("mute", "liar", "accuser")[seed % 3]


def _found_out(knowledge: Knowledge, notes: Notes, seed: int) -> str:
    """Return a claim with which a Jester gets caught: another player's role, or an accuser's."""
    roles = role_list(tuple(knowledge.slots))
    if jester_manner(seed) == "accuser":
        return next((name for name in ACCUSING if name in roles.most), "Sheriff")
    taken = [said[-1] for by, said in notes.claims.items() if by != notes.player and said[-1] in COVERS]
    taken += [one.role for one in knowledge.standing if not one.alive and one.role and one.role in COVERS]
    return max(taken, key=lambda name: (-roles.expected.get(name, 0.0), name), default="Doctor")


def cover_role(knowledge: Knowledge, notes: Notes, seed: int) -> str:
    """Return the player's cover role: the claimed one, or one that the role list has room for."""
    if notes.claimed is not None and is_town(notes.claimed):
        return notes.claimed
    roles = role_list(tuple(knowledge.slots))
    dead = [one.role for one in knowledge.standing if not one.alive and one.role is not None]
    taken = {role: dead.count(role) for role in dead}
    for by, said in notes.claims.items():
        if by != notes.player and knowledge.standing[by].alive:
            taken[said[-1]] = taken.get(said[-1], 0) + 1
    rng = random.Random(f"{seed}:cover")  # play, not secrets
    ours = _share(knowledge)
    beside = next((g for g in GROUPS if knowledge.role in g), ())  # an Investigator's finding would support it
    doubt = _doubt_of(knowledge, notes)
    looked = 0.9 if roles.most.get("Investigator", 0) > dead.count("Investigator") else 0.3
    best, most = "Citizen", -9.0
    for name in COVERS:
        lot = 0.3 + rng.random()
        if roles.most.get(name, 0) <= taken.get(name, 0) or (name == "Vampire Hunter" and knowledge.role == "Vampire"):
            continue  # no room for one more, or the real one hunts it
        left = roles.expected[name] - taken.get(name, 0)  # negative if one more is possible but unlikely
        worth = lot * min(1.0, 0.15 + left) if left > 0 else 0.3 * lot * left
        if name in ACCUSING:
            # claimed findings can be refuted, but an accuser needs one
            worth = worth + 3.0 if knowledge.role == "Executioner" else 0.6 * worth
        worth += looked * (name in beside) + 0.8 * (name in ours) - 0.5 * doubt(name)
        if worth > most:
            best, most = name, worth
    if most == -9.0:
        town = [name for name in roles.most if is_town(name) and not ROLES[name].unique]
        best = town[0] if town else "Citizen"
    return best


def _doubt_of(knowledge: Knowledge, notes: Notes) -> Callable[[str], float]:
    """Return a function: claim -> weight of the count of claims against the player if it made it, in log-odds."""
    slots = tuple(knowledge.slots)
    gone: list[str] = []
    claims: list[str] = []
    for one in knowledge.standing:
        if not one.alive and one.role is not None:
            gone.append(one.role)
        elif one.revealed:
            gone.append("Mayor")
        elif one.number != notes.player:
            claims.append(claim_of(notes.claims.get(one.number)))
    dead = tuple(sorted(gone))

    def doubt(role: str) -> float:
        return count_claims(slots, dead, tuple(sorted([*claims, role])))[role].weight

    return doubt


def _share(knowledge: Knowledge) -> tuple[str, ...]:
    """Return the player's share of the covers, which its side divides so that no two members take the same."""
    me = knowledge.player or 0
    together = tuple(sorted([me, *knowledge.mates]))
    return _shared_out(together)[together.index(me) :: len(together)] if len(together) > 1 else ()


@lru_cache(maxsize=256)
def _shared_out(together: tuple[int, ...]) -> tuple[str, ...]:
    covers = list(COVERS)
    random.Random(f"{list(together)}:covers").shuffle(covers)  # play, not secrets
    return tuple(covers)


def nights_of(knowledge: Knowledge, notes: Notes, role: str, seed: int) -> dict[int, str]:
    """Return the player's report of each night so far: true for its own role, otherwise invented."""
    last = knowledge.day if knowledge.phase in ("dusk", "night") else knowledge.day - 1
    nights: dict[int, str] = {}
    if role != knowledge.role and role in COVERS:
        nights = _cover_nights(knowledge, notes, role, last, seed)
    if role == knowledge.role or (knowledge.role == "Vampire" and role == former_role(knowledge)):
        nights.update(_true_nights(knowledge, notes))
    for night in notes.nights_in_jail:
        nights[night] = "sat in jail"
    for night in notes.nights_blocked:
        nights[night] = "was kept busy by somebody"
    return {night: nights[night] for night in sorted(nights) if night <= last}


def _true_nights(knowledge: Knowledge, notes: Notes) -> dict[int, str]:
    nights: dict[int, str] = {}
    for night, verb, targets in diary(knowledge.notebook, notes.names):
        form = PAST.get(verb)
        if form is not None and form.count("{") <= len(targets):
            text = form.format(*[notes.names[t] for t in targets])
            nights[night] = f"{nights[night]} and {text}" if verb == Verb.EXECUTE and night in nights else text
    for event in notes.results:
        line = _result(event, notes.names)
        if line:
            nights[event.day] = line
    return nights


def _cover_nights(knowledge: Knowledge, notes: Notes, role: str, last: int, seed: int) -> dict[int, str]:
    before = _lines(knowledge.will) if knowledge.will.startswith(f"{role}.") else {}
    nights: dict[int, str] = {}
    for night in range(1, last + 1):
        line = before.get(night, "")
        if not line or any(knowledge.standing[n].died == night for n in named(line, notes.names)[:1]):
            line = _invented(knowledge, notes, role, night, seed)  # nobody visits a publicly dead player
        nights[night] = line
    return nights


def will_of(role: str, nights: Mapping[int, str], longest: int) -> str:
    """Return a will: the role, and a line for each night, without the oldest nights if it gets too long."""
    lines = [f"N{night}: {text}." for night, text in nights.items()]
    while lines and len(role) + 1 + sum(len(line) + 1 for line in lines) > longest:
        lines.pop(0)
    return "\n".join([f"{role}.", *lines])[:longest]


def _lines(will: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for line in will.split("\n")[1:]:
        word, _, text = line.partition(": ")
        if word[:1] == "N" and word[1:].isdecimal() and len(word) < 6 and text:
            found[int(word[1:])] = text.removesuffix(".")
    return found


def _result(event: Seen, names: Sequence[str]) -> str:
    data = event.data
    target = data.get("target")
    if data.get("verb") == "spy":
        visits = data.get("visits") or ()
        return f"saw the Mafia go to {listed([names[v] for v in visits])}" if visits else "saw no Mafia about"
    if target is None:
        return ""
    name = names[target]
    if "suspicious" in data:
        return f"interrogated {name}: {'suspicious' if data['suspicious'] else 'not suspicious'}"
    if "group" in data:
        return f"investigated {name}: {listed(list(data['group']), 'or')}"
    if "visitors" in data:
        came = [names[v] for v in data["visitors"]]
        return f"watched {name}: {'visited by ' + listed(came) if came else 'nobody came'}"
    if "vampire" in data:
        return f"hunted {name}: {'a Vampire' if data['vampire'] else 'no Vampire'}"
    return ""


def _invented(knowledge: Knowledge, notes: Notes, role: str, night: int, seed: int) -> str:
    rng = random.Random(f"{seed}:{role}:{night}")  # play, not secrets
    around = [s.number for s in knowledge.standing if s.number != notes.player and (s.alive or s.died > night)]
    if not around:
        return COVERS["Citizen"]
    mates = knowledge.mates
    blames = knowledge.target if knowledge.role == "Executioner" else None
    target = around[int(rng.random() * len(around))]
    accuses = False
    told = any(": suspicious" in line for line in knowledge.will.split("\n"))
    if role in ACCUSING and not told:
        if knowledge.role == "Jester":
            accuses = True
        elif blames in around and blames is not None:
            accuses = night >= 2 or rng.random() < 0.3
            target = blames if accuses else target
        elif night >= 2 and rng.random() < 0.15:
            others = [n for n in around if n not in mates]
            if others:
                accuses = True
                target = others[int(rng.random() * len(others))]
    name = notes.names[target]
    if accuses:
        if role == "Sheriff":
            return f"interrogated {name}: suspicious"
        return f"investigated {name}: {listed(_group_for(notes, target, rng, enemy=True), 'or')}"
    if role == "Investigator":
        return f"investigated {name}: {listed(_group_for(notes, target, rng, enemy=False), 'or')}"
    return COVERS[role].format(name)


def _group_for(notes: Notes, target: int, rng: random.Random, *, enemy: bool) -> list[str]:
    """Return a group of roles that suits the intended report."""
    claim = notes.claims.get(target, [""])[-1]
    if enemy:
        fit = [g for g in GROUPS if claim not in g and sum(map(is_enemy, g)) > 0]
    else:
        fit = [g for g in GROUPS if claim in g] or [g for g in GROUPS if sum(map(is_town, g)) > 1]
    return list(fit[int(rng.random() * len(fit))])
