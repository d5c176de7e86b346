"""What differs in the conditions of episodes, so that different ones are never averaged or compared.

A record may lack most conditions; all such are of one kind, "conditions unknown".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from wsap_eval.records import EpisodeRecord

Said = Mapping[str, str]
"""Condition -> value."""
SHARED = ("game", "opponent", "wsap", "nexus", "llm")
"""Conditions that two rows must have in common to be compared, if both have them."""
OWN = ("agent", "prompts", "served")
"""Conditions that may differ between entrants, but not within a row."""
BEFORE = (*SHARED, "agent", "prompts")
"""Conditions that are known before an episode is played."""
_KNOWN = "nexus"
"""A condition of all records whose conditions are known."""
_UNKNOWN = {"": "conditions unknown"}
_OF_PARTS = ("game", "agent", "opponent")
"""Conditions that are a list of distributions with versions, or of files with hashes."""
_DISTRIBUTIONS = {"wsap": "wsap-core", "nexus": "wsap-nexus", "llm": "wsap-llm"}


@dataclass(frozen=True)
class ToldApart:
    """Records whose entrants are the labels of their rows."""

    records: tuple[EpisodeRecord, ...]
    entrants: Mapping[str, str]
    """Label of a row -> that of its entrant."""


def told_apart(records: Iterable[EpisodeRecord]) -> ToldApart:
    """Return the records with a row for each of an entrant's conditions, named by what differs.

    A condition that rows must have in common is named in all rows of a game if it differs between them, another one if
    it differs between an entrant's episodes.
    """
    given = tuple(records)
    whole = _completed(given)
    of_game: dict[str, list[Said]] = {}
    of_cell: dict[tuple[str, str], list[Said]] = {}
    for record, said in zip(given, whole, strict=True):
        of_game.setdefault(record.game, []).append(said)
        of_cell.setdefault((record.game, record.entrant), []).append(said)
    shared = {game: _varying(found, ("", *SHARED)) for game, found in of_game.items()}
    own = {cell: _varying(found, OWN) for cell, found in of_cell.items()}
    if not any(shared.values()) and not any(own.values()):
        return ToldApart(given, {record.entrant: record.entrant for record in given})
    entrants: dict[str, str] = {}
    found = []
    for record, said in zip(given, whole, strict=True):
        names = shared[record.game] | own[record.game, record.entrant]
        words = ", ".join(_word(name, said[name], common) for name, common in names.items() if name in said)
        label = f"{record.entrant} [{words}]" if words else record.entrant
        entrants[label] = record.entrant
        seats = tuple(replace(s, entrant=label) if s in record.own else s for s in record.seats)
        found.append(replace(record, entrant=label, seats=seats))
    return ToldApart(tuple(found), entrants)


def shared_words(records: Sequence[EpisodeRecord], *, but: Sequence[str] = ()) -> list[str]:
    """Return for each record what differs between them of the conditions that rows must have in common, `but` some."""
    whole = [identity(record.conditions) for record in records]
    names = _varying(whole, [name for name in ("", *SHARED) if name not in but])
    return [", ".join(_word(n, said[n], common) for n, common in names.items() if n in said) for said in whole]


def identity(conditions: Said) -> Said:
    """Return the conditions that tell rows apart; of a served model its name, since fingerprints change by the hour."""
    if _KNOWN not in conditions:
        return _UNKNOWN
    found = {name: conditions[name] for name in (*SHARED, *OWN) if conditions.get(name)}
    if "served" in found:
        found["served"] = found["served"].partition(" ")[0]
    return found


def conditions_of(records: Iterable[EpisodeRecord]) -> dict[str, str]:
    """Return the conditions of a row's episodes; several values, such as fingerprints of a server, with "|" between."""
    found: dict[str, dict[str, None]] = {}
    for record in records:
        for name, value in record.conditions.items():
            found.setdefault(name, {})[value] = None
    return {name: " | ".join(values) for name, values in found.items()}


def packages_of(conditions: Said) -> dict[str, str]:
    """Return distribution or file -> version or hash."""
    own = {said: conditions[name] for name, said in _DISTRIBUTIONS.items() if name in conditions}
    return own | {n: v for name in _OF_PARTS if name in conditions for n, v in _parts(conditions[name]).items()}


def differences(before: Said, now: Said, names: Iterable[str] = (*SHARED, *OWN)) -> list[str]:
    """Return in words how conditions differ that both have, such as "tiny 0.1.0 → tiny 0.2.0" or "game.py changed"."""
    if before.get("") != now.get(""):
        return [" → ".join(said.get("", "known") for said in (before, now))]
    words = []
    for name in names:
        if before.get(name) and now.get(name) and before[name] != now[name]:
            words += _changes(name, before[name], now[name])
    return list(dict.fromkeys(words))


def _changes(name: str, before: str, now: str) -> list[str]:
    if name not in _OF_PARTS:
        return [f"{_word(name, before)} → {_word(name, now)}"]
    old, new = _parts(before), _parts(now)
    if not old.keys() & new.keys():
        return [f"{before} → {now}"]
    words = []
    for part in sorted(old.keys() | new.keys()):
        if part not in old or part not in new:
            words.append(f"{part} {'added' if part in new else 'removed'}")
        elif old[part] != new[part]:
            words.append(f"{part} changed" if is_file(new[part]) or _plain(old[part]) == _plain(new[part])
                         else f"{part} {_plain(old[part])} → {part} {_plain(new[part])}")  # fmt: skip
    return words


def is_file(version: str) -> bool:
    """Return whether what stands after a name in a condition is the hash of a file instead of a version."""
    return re.fullmatch(r"[0-9a-f]{12}", version) is not None


def _parts(value: str) -> dict[str, str]:
    return {part.rpartition(" ")[0] or part: part.rpartition(" ")[2] for part in value.split(", ")}


def _plain(version: str) -> str:
    """Return a version without the hash of its sources."""
    return version.partition("+")[0]


def _word(name: str, value: str, common: frozenset[str] = frozenset()) -> str:
    """Return a condition in words, without the parts that all have in common."""
    if name in _OF_PARTS:
        return ", ".join(part for part in value.split(", ") if part not in common) or value
    if name in _DISTRIBUTIONS:
        return f"{_DISTRIBUTIONS[name]} {value}"
    return f"{name} {value}" if name in ("prompts", "served") else value


def _varying(found: Sequence[Said], names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the conditions of which there are several values, with what these have in common.

    That what plays a record is unknown is a condition of its own.
    """
    several = {}
    for name in names:
        values = {said.get(name, "") for said in found if name == "" or name in said}
        if len(values) > 1:
            several[name] = frozenset.intersection(*(frozenset(value.split(", ")) for value in values))
    return several


def _completed(records: Sequence[EpisodeRecord]) -> Sequence[Said]:
    """Return the identities, where episodes that got no reply are taken for those of their entrant's first model."""
    whole = [dict(identity(record.conditions)) for record in records]
    first: dict[tuple[str, str], str] = {}
    for record, said in zip(records, whole, strict=True):
        if "served" in said:
            first.setdefault((record.game, record.entrant), said["served"])
    for record, said in zip(records, whole, strict=True):
        if "" not in said and (model := first.get((record.game, record.entrant))):
            said.setdefault("served", model)
    return whole
