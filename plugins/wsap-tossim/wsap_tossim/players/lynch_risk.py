"""The risk of lynching the wrong player: a Jester, an Executioner's target, or an uncontradicted one."""

from __future__ import annotations

from wsap_tossim.players.reading.notes import Clue
from wsap_tossim.players.reading.priors import is_town, role_list
from wsap_tossim.players.reading.view import View

__all__ = ["caution", "jesters_left", "schemers_left"]

_CLASHES = frozenset({"no_such", "mine", "dead_already", "two", "crowded", "odd_claim", "changed"})
"""Evidence that a player's own claim is unlikely."""
_ACCUSED = frozenset({"found", "found_role", "found_group", "found_group_clash", "seen"})
"""Accusations by living players."""
_PROOFS = frozenset(
    {"will", "will_role", "will_group", "will_group_clash", "absent", "my_check", "my_group", "my_clash", "my_watch"}
)
"""Proof: own results, wills, or contradictory claims."""
_FOOL = 0.7
"""Additional guilt needed against a liar if it is certainly a Jester or an Executioner."""
_TURNED = 0.5
_GROUPED = 0.3
"""Additional guilt needed against a player found in the Jester's group of roles."""
_SILENT, _SINGLE, _SPOTLESS = 0.6, 0.35, 0.12
"""Additional guilt needed against a player without a claim and with at most one accuser."""


def caution(view: View, accused: int) -> float:
    """Return the additional guilt needed to condemn a player, since the accused or the accuser may want a lynching.

    A Jester wants to be lynched, so it does not defend itself. An Executioner is often the only accuser of a Town
    player with a credible claim; such an accusation counts less until it is supported, or the accuser's role is known.
    """
    notes = view.notes
    against = [c for c in view.face.clues if c.target == accused and c.weight > 0.2]
    if sum(c.weight for c in against if c.code in _PROOFS) > 0.8:
        return 0.0
    if accused not in notes.claims:
        return _SILENT * jesters_left(view)
    as_jester = max(_may_have_turned(view, against), _GROUPED * _found_beside(view, accused, against))
    if any(c.code in _CLASHES and c.weight > 0.6 for c in against):
        count = view.face.counts.get(accused)
        return as_jester if count is None else max(as_jester, _FOOL * (count.executioner + count.jester))
    accusers = sorted({c.other for c in against if c.code in _ACCUSED and c.other is not None})
    if len(accusers) > 1:
        return as_jester
    # worth the risk if there are many enemies
    late = (0.5 if view.day > 5 else 1.0) * min(1.0, 1.4 * (1.0 - view.mean))
    alone = _SINGLE * _unproven(view, accusers[0], against) if accusers else _SPOTLESS * schemers_left(view)
    return max(as_jester, late * alone)


def _found_beside(view: View, accused: int, against: list[Clue]) -> float:
    """Return the probability that a player was found in a group of roles as its Jester."""
    if any(c.code == "found_role" for c in against):
        return 0.0
    for finding in view.notes.findings:
        if finding.said.target == accused and "Jester" in finding.said.roles:
            return jesters_left(view)
    return 0.0


def jesters_left(view: View) -> float:
    """Return the probability of a living Jester."""
    return _left(view, "Jester")


def schemers_left(view: View) -> float:
    """Return the probability of a living player who wants a lynching for its own sake."""
    return min(1.0, jesters_left(view) + _left(view, "Executioner"))


def _left(view: View, role: str) -> float:
    expected = role_list(tuple(view.knowledge.slots)).expected.get(role, 0.0)
    return max(0.0, min(1.0, expected - view.graveyard.count(role))) if expected else 0.0


def _may_have_turned(view: View, against: list[Clue]) -> float:
    """Return the additional guilt needed against a player who was wrong about a victim of the night.

    It may be an Executioner who lost its target and became a Jester.
    """
    wrong = any(c.code in ("wrong", "misfound") and c.other in view.notes.died_at_night for c in against)
    if not wrong or not view.knowledge.rules.executioner_turns:
        return 0.0
    return _TURNED * _left(view, "Executioner")


def _unproven(view: View, accuser: int, against: list[Clue]) -> float:
    """Return how unsupported an accuser's statement is, from 0 to 1."""
    one = view.knowledge.standing[accuser]
    if one.revealed or (not one.alive and one.role is not None and is_town(one.role)) or accuser == view.me:
        return 0.0
    if any(c.target == accuser and c.code in ("caught", "found_one") for c in view.face.clues):
        return 0.3  # it was right before
    return max(0.5, _left(view, "Executioner"))
