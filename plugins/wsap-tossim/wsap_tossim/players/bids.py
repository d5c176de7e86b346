"""A scripted player's bid for the floor: the value of its next action."""

from __future__ import annotations

from wsap_tossim.engine.data.model import WAIT, Choice, Option, Phase, Verb
from wsap_tossim.players.day import Answer, by_day, must_be_heard
from wsap_tossim.players.reading.view import View

__all__ = ["bid"]


def bid(view: View) -> Answer:
    """Return the player's bid, and its reason in a sentence."""
    choice, why = by_day(_on_floor(view))
    if choice.verb is Verb.WAIT:
        return WAIT, why
    if choice.verb is Verb.REVEAL or must_be_heard(_on_floor(view)) or _decides(view, choice):
        return Choice(Verb.BID_3), why
    if choice.verb in (Verb.VOTE, Verb.UNVOTE) or view.knowledge.phase == Phase.NOMINATION:
        return Choice(Verb.BID_2), why
    return Choice(Verb.BID_1), why


def _on_floor(view: View) -> View:
    """Return the player's view if it had the floor."""
    knowledge, me, others = view.knowledge, view.me, tuple(view.others)
    found = [Option(Verb.WAIT)]
    revealed = knowledge.standing[me].revealed
    if not knowledge.blackmailed:
        found.append(Option(Verb.SPEAK, (), True))
        hearers = tuple(n for n in others if not knowledge.standing[n].revealed)
        if hearers and not revealed:
            found.append(Option(Verb.WHISPER, (hearers,), True))
    if knowledge.phase == Phase.NOMINATION:
        standing = knowledge.votes.get(me)
        found.append(Option(Verb.VOTE, (tuple(n for n in others if n != standing),)))
        if standing is not None:
            found.append(Option(Verb.UNVOTE))
    if view.role == "Mayor" and not revealed:
        found.append(Option(Verb.REVEAL))
    return View(knowledge, view.notes, found, view.seed, view.character, bidding=True)


def _decides(view: View, choice: Choice) -> bool:
    """Return whether a vote would start a trial."""
    if choice.verb is not Verb.VOTE:
        return False
    standing = view.knowledge.standing
    weight = {s.number: 3 if s.revealed else 1 for s in standing}
    against = sum(weight[by] for by, whom in view.knowledge.votes.items() if whom == choice.targets[0])
    return against + weight[view.me] > len(view.knowledge.living()) // 2
