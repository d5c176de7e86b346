"""Coordination of scripted players at night: channel talk, and the common target of a side."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence

from wsap_tossim.engine.data.model import WAIT, Choice, Verb
from wsap_tossim.players.reading.claims import named
from wsap_tossim.players.reading.phrases import say
from wsap_tossim.players.reading.stories import diary
from wsap_tossim.players.reading.view import View

__all__ = ["attacked_before", "common_target", "in_secret", "leader", "one_short", "why_kill"]

Answer = tuple[Choice, str]
"""Choice and reason."""


def in_secret(view: View) -> Answer:
    """Return the player's talk on its channel at night, and the reason."""
    knowledge = view.knowledge
    if not knowledge.alive:
        return _of_the_dead(view)
    if knowledge.jailed and view.role != "Jailor":
        return _spoken(view, "jail_answer", "I must not be executed.", role=view.told_role, log=view.log())
    if view.role == "Jailor":
        return _spoken(view, "jail_ask", "I want to hear what the prisoner claims.")
    if view.side in ("mafia", "vampires") and view.mates:
        target = common_target(view)
        if target is None:
            return WAIT, "There is nobody to agree on."
        why = why_kill(view, target)
        heard = view.notes.channel
        if heard and leader(view) != view.me:
            return _spoken(view, "mafia_agree", "I go with the others.", who=view.name(target))
        return _spoken(view, "mafia_plan", f"We should agree on one: {why}.", who=view.name(target), why=why)
    return WAIT, "I listen."


def _of_the_dead(view: View) -> Answer:
    told = any(e.data["player"] == view.me and e.data["channel"] == "dead" for e in view.knowledge.of_kind("said"))
    if view.side == "town" and view.nights and not told:
        return _spoken(view, "dead_tell", "Whoever hears me may use what I know.", role=view.role, log=view.log())
    return WAIT, "I have nothing to tell the living."


def _spoken(view: View, key: str, thought: str, **words: str) -> Answer:
    choice = view.say(say(view.rng, key, view.longest, view.notes.heard, **words))
    return (choice, thought) if choice is not None else (WAIT, thought)


def leader(view: View) -> int:
    """Return the player that decides for its side tonight: Godfather, else Mafioso, else the first by seat."""
    standing = view.knowledge.standing
    own = [view.me, *(n for n in view.others if n in view.mates)]
    for role in ("Godfather", "Mafioso"):
        for n in sorted(own):
            if standing[n].role == role or (n == view.me and view.role == role):
                return n
    return min(own)


def one_short(view: View) -> bool:
    """Return whether lynching one opponent and the next night would make the player's side half of the living."""
    if view.side not in ("mafia", "vampires") or view.day < 2:
        return False
    return 2 * (len(view.mates) + 1) + 2 >= len(view.others) + 1


def common_target(view: View, allowed: Sequence[int] | None = None) -> int | None:
    """Return the common target of a side tonight; all its members compute the same.

    It is the leader's announced target, or follows from their common knowledge.
    """
    pool = [n for n in (view.others if allowed is None else allowed) if n not in view.mates and n != view.me]
    if not pool:
        return None
    said = view.notes.channel.get(leader(view))
    if said is not None:
        for n in named(said, view.names):
            if n in pool:
                return n
    together = sorted([view.me, *(n for n in view.others if n in view.mates)])
    rng = random.Random(f"{together}:{view.day}")  # play, not secrets: only they know their members
    threat = {n: _threat(view, n, together) + 1.2 * rng.random() for n in sorted(pool)}
    if len(together) == 1 or view.knowledge.rules.night_talk_rounds:
        for n in attacked_before(view, Verb.KILL, Verb.BITE):  # known to the others only if they can talk
            if n in threat:
                threat[n] -= 4.0
    return max(threat, key=lambda n: threat[n])


def _threat(view: View, player: int, together: Iterable[int]) -> float:
    """Return how much a side gains by a player's death or conversion, by the side's common knowledge."""
    own = list(together)
    claims = view.notes.claims
    claim = claims.get(player, [""])[-1]
    accused = sum(1 for by_day in (view.notes.accusers.get(n, {}) for n in own) if player in by_day)
    gain = view.worth(player) + 0.5 * accused
    if claim and any(claims.get(n, [""])[-1] == claim for n in own):
        gain -= 1.5  # its death would reveal that its role is taken
    return gain + (_BITTEN if view.side == "vampires" else _KILLED).get(claim, 0.0)


_KILLED: Mapping[str, float] = {"Investigator": 1.5, "Sheriff": 0.6}
"""Claim -> additional gain of the Mafia by killing the player, whose findings are dangerous."""


_BITTEN: Mapping[str, float] = {
    "Vampire Hunter": -8.0,  # kills who comes to bite
    "Veteran": -4.0,
    "Bodyguard": -1.0,
    "Investigator": 0.3,  # a dangerous investigator, but guarded like these:
    "Jailor": -2.0,
    "Mayor": -2.0,
    "Sheriff": -1.2,
    "Lookout": -1.0,
    "Doctor": -1.0,
    "Survivor": -0.5,
}
"""Claim -> additional gain of the Vampires by biting the player."""


def attacked_before(view: View, *verbs: Verb) -> list[int]:
    """Return the living whom the player or its side attacked before: too strong, or well guarded."""
    done = diary(view.knowledge.notebook, view.names)
    tried = [n for _, verb, targets in done if verb in verbs for n in targets]
    for event in view.knowledge.of_kind("said"):
        if event.data["channel"] in ("mafia", "vampires") and event.day < view.day:
            tried += named(event.data["text"], view.names)[:1]
    return [n for n in dict.fromkeys(tried) if view.knowledge.standing[n].alive]


def why_kill(view: View, target: int) -> str:
    """Return a reason to kill a player, as a predicate."""
    claim = view.notes.claims.get(target)
    if claim:
        return f"says they are the {claim[-1]}"
    if target in view.notes.plans.values():
        return "too many ask about that one already"
    return "the town trusts them too much"
