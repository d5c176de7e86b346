"""A scripted player by day: speeches, votes and verdicts."""

from __future__ import annotations

from wsap_tossim.engine.data.model import WAIT, Choice, Phase, Verb
from wsap_tossim.players.coordination import one_short
from wsap_tossim.players.lynch_risk import caution, schemers_left
from wsap_tossim.players.reading.claims import clauses, named, read
from wsap_tossim.players.reading.phrases import cut, say
from wsap_tossim.players.reading.stories import jester_manner
from wsap_tossim.players.reading.view import View

__all__ = ["Answer", "by_day", "must_be_heard"]

Answer = tuple[Choice, str]
"""Choice and reason."""


def by_day(view: View) -> Answer:
    """Return the player's choice by day, and its reason in a sentence."""
    phase = view.knowledge.phase
    if phase == Phase.JUDGEMENT:
        return _judge(view)
    if phase == Phase.BALLOT:
        return _ballot(view)
    if phase == Phase.DEFENSE:
        return _defend(view)
    if phase == Phase.LAST_WORDS:
        return _last_words(view)
    if phase == Phase.NOMINATION:
        return _nominate(view)
    return _discuss(view)


def must_be_heard(view: View) -> bool:
    """Return whether the player must answer an accusation or has an important finding."""
    return _pressed(view) is not None or _news(view) is not None or _answer(view) is not None


# --- discussion and nomination -------------------------------------------------------------


def _doubted(view: View) -> int:
    """Return the number of other players against this one today."""
    return len([by for by in view.notes.against.get(view.me, ()) if by != view.me])


def _pressed(view: View) -> Answer | None:
    """Claim a role if asked or accused."""
    notes = view.notes
    doubted, asked = _doubted(view), notes.asked.get(view.me, 0)
    if view.side == "jester" and notes.claimed is None and jester_manner(view.seed) == "mute":
        if doubted and view.rng.random() < 0.5:
            return _said(view.speak("jester_odd"), "I want to be lynched, so I look as if I hide something.")
        return None
    if notes.claimed is not None or not (asked or doubted >= 2 or (doubted and view.character.open > 0.6)):
        return None
    if view.told_role == "Mayor" and view.role == "Mayor" and Verb.REVEAL in view.options:
        return Choice(Verb.REVEAL), "They doubt me, and I can prove who I am."
    shy = view.role in ("Jailor", "Veteran", "Mayor", "Spy") and doubted < 2
    if shy:
        return None
    why = "I am doubted, so I say who I am." if view.told_role == view.role else f"I pose as the {view.told_role}."
    return _said(view.speak("claim_log", role=view.told_role, log=view.log()), why)


def _news(view: View) -> Answer | None:
    notes = view.notes
    if notes.told_findings or view.day == 1 or (view.side == "jester" and jester_manner(view.seed) != "accuser"):
        return None
    nights = view.nights
    last = nights.get(view.day - 1, "")
    urgent = [(n, t) for n, t in nights.items() if _accuses(view, t) and not _told(view, t)]
    if urgent:
        night, text = urgent[-1]
        accused = _whom(view, text)
        words = f"I'm the {view.told_role}. " if notes.claimed is None else ""
        words += f"N{night}: {text}."
        if accused is not None:
            words += f" I suspect {view.name(accused)}."
        if Verb.SPEAK in view.options:
            return Choice(Verb.SPEAK, (), cut(words, view.longest)), "What I found must be known."
    if last and ": " in last and not _told(view, last) and (notes.claimed is not None or _open_now(view)):
        words = f"I'm the {view.told_role}. {view.log(2)}" if notes.claimed is None else f"N{view.day - 1}: {last}."
        if Verb.SPEAK in view.options:
            return Choice(Verb.SPEAK, (), cut(words, view.longest)), "I tell what I have of last night."
    return None


def _open_now(view: View) -> bool:
    return view.rng.random() < 0.12 + 0.25 * view.character.open + 0.08 * (view.day - 2)


def _accuses(view: View, text: str) -> bool:
    if text.endswith((": suspicious", ": a Vampire")):
        return True
    if "visited by" in text or text.startswith("investigated"):
        accused = _whom(view, text)
        return accused is not None and view.guilt(accused) > view.mean + 0.15
    return False


def _whom(view: View, text: str) -> int | None:
    """Return the player accused by a night's report: of visitors, the most likely enemy."""
    players = [n for n in named(text, view.names) if view.knowledge.standing[n].alive and n != view.me]
    if "visited by" in text:
        players = [n for n in players[1:] if n not in view.mates]
        return max(players, key=view.guilt, default=None)
    return players[0] if players else None


def _told(view: View, text: str) -> bool:
    mine = [f.said for f in view.notes.findings if f.by == view.me and not f.written]
    if not mine:
        return False
    return any(
        said.what == one.what and said.target == one.target and said.roles == one.roles
        for said in read(f"{text}.", view.names)
        for one in mine
    )


def _said(choice: Choice | None, why: str) -> Answer | None:
    return None if choice is None else (choice, why)


def _accusation(view: View, target: int) -> Answer | None:
    others = [by for by in view.notes.against.get(target, ()) if by != view.me]
    why = view.why(target)
    key = "agree" if others and view.rng.random() < 0.6 else "accuse"
    if max((view.notes.heard[clause] for clause in clauses(f"{why}.")), default=0) > 1:
        key = "agree_short"  # everybody has heard why
    words = {"who": view.name(target), "why": why}
    return _said(view.speak(key, **words), f"I think {view.name(target)} {_chance(view, target)}: {why}.")


def _chance(view: View, player: int) -> str:
    if view.side in ("mafia", "vampires", "killer", "witch", "executioner", "jester"):
        return "makes a good victim"
    return f"is {view.own.of(player):.0%} likely an enemy"


# --- talk ----------------------------------------------------------------------------------


def _discuss(view: View) -> Answer:
    notes = view.notes
    for step in (_pressed, _news, _answer):
        found = step(view)
        if found is not None:
            return found
    if view.day > 1:
        target = _suspect(view, 0.1)
        if target is not None and target not in notes.reasoned:
            found = _question(view, target) or _accusation(view, target)
            if found is not None:
                return found
    found = _stand_up(view) or _confide(view) or _small_talk(view)
    return found if found is not None else (WAIT, "I have nothing to say yet.")


def _question(view: View, target: int) -> Answer | None:
    """Ask a player without a claim before accusing it on little evidence."""
    notes = view.notes
    if target in notes.claims or target in notes.asked or view.clue_against(target).weight > 0.2:
        return None
    name = view.name(target)
    return _said(view.speak("ask", who=name), f"Before I accuse {name}, I want to hear who they are.")


def _answer(view: View) -> Answer | None:
    if view.notes.claimed is None or not _doubted(view) or view.notes.spoken.get(view.me, 0) > 1:
        return None
    accuser = max((by for by in view.notes.against[view.me] if by != view.me), key=view.guilt)
    role = view.notes.claimed
    if view.notes.heard[f"I'm the {role}"] > 2:
        return _said(view.speak("defend_again"), "I am accused again; they have heard who I am.")
    if view.guilt(accuser) > view.mean and accuser not in view.mates:
        words = {"role": role, "who": view.name(accuser), "why": view.why(accuser)}
        return _said(view.speak("defend", **words), f"{view.name(accuser)} accuses me, which tells more of them.")
    return _said(view.speak("defend_alone", role=role), "I am accused and must not let it stand.")


def _stand_up(view: View) -> Answer | None:
    """Defend an accused mate or cleared player."""
    notes = view.notes
    for accused, by in notes.against.items():
        spoken_for = [who for who, day in notes.defenders.get(accused, {}).items() if day == view.day]
        if accused == view.me or view.me in (*by, *spoken_for) or len(spoken_for) > 2:
            continue
        if not view.knowledge.standing[accused].alive:
            continue
        if accused in view.mates:
            if len(by) >= 2 and not view.hopeless(accused) and view.rng.random() < 0.05:
                words = {"who": view.name(accused), "why": "they have done nothing wrong"}
                return _said(view.speak("trust", **words), "That's one of ours; I stand by them as if by chance.")
        elif view.side == "town" and view.own.of(accused) < 0.5 * view.mean and view.rng.random() < 0.6:
            words = {"who": view.name(accused)}
            return _said(view.speak("trust_known", **words), f"I do not think {view.name(accused)} is an enemy.")
    return None


def _confide(view: View) -> Answer | None:
    notes = view.notes
    last = view.nights.get(view.day - 1, "")
    whisper = view.options.get(Verb.WHISPER)
    if whisper is None or notes.claimed is not None or view.rng.random() > 0.35 or view.side == "jester":
        return None
    whom = named(last, view.names) if last.endswith(": not suspicious") else ()
    if not whom or whom[0] not in whisper.slots[0] or whom[0] in notes.whispered or whom[0] in view.mates:
        return None
    text = say(view.rng, "whisper", view.longest, role=view.told_role)
    return Choice(Verb.WHISPER, (whom[0],), text), f"{view.name(whom[0])} should know that somebody trusts them."


def _small_talk(view: View) -> Answer | None:
    notes, rng = view.notes, view.rng
    if notes.spoken.get(view.me, 0):
        return None
    if view.side == "jester" and rng.random() < 0.3:
        return _said(view.speak("jester_odd"), "I want to look bad.")
    if rng.random() > view.character.talk:
        return None
    if view.day == 1:
        return _said(view.speak("hello"), "It is too early to say more.")
    asked = [n for n in view.others if n not in notes.claims and n not in notes.asked and n not in view.mates]
    if asked and rng.random() < 0.45:
        whom = max(asked, key=lambda n: (view.guilt(n) + 0.1 * rng.random(), n))
        return _said(view.speak("ask", who=view.name(whom)), f"I want to hear who {view.name(whom)} claims to be.")
    if rng.random() < 0.4:
        return _said(view.speak("ask_all", day=str(view.day)), "I listen.")
    return None


# --- votes ---------------------------------------------------------------------------------


def _bar(view: View) -> float:
    """Return how far above `mean` a player must be for a vote: less as time runs out."""
    wait = (0.14, 0.14, 0.08, 0.04)
    eager = 0.05 if view.side in ("mafia", "vampires", "killer", "witch") else 0.0
    early = wait[view.day] * (1.0 + 0.5 * schemers_left(view) * (view.day > 1)) if view.day < len(wait) else 0.0
    return early + view.character.doubt - eager


def _suspect(view: View, more: float = 0.0) -> int | None:
    """Return the player to accuse, if one stands out."""
    best = max(view.others, key=lambda n: (view.guilt(n), -n), default=None)
    if best is None or view.guilt(best) < view.mean + min(more, max(0.02, _bar(view))):
        return None
    return best


def _target(view: View) -> int | None:
    """Return the player to vote for: a suspect, preferably one with votes."""
    notes, votes = view.notes, view.knowledge.votes
    if view.in_power or one_short(view):  # the whole side takes the same target: the most doubted opponent
        others = [n for n in view.others if n not in view.mates]
        return max(others, key=lambda n: (round(view.public.of(n), 2), -n), default=None)
    best, most = None, 0.0
    bar = view.mean + _bar(view) - 0.04
    join = 0.05 if view.side in ("town", "bystander") else 0.08
    for n in view.others:
        if n in notes.acquitted and view.guilt(n) < 0.9:
            continue
        guilt = view.guilt(n)
        if guilt < bar or guilt < bar + 0.5 * caution(view, n):
            continue
        if view.day < 4 and n not in notes.reasoned and not view.grounds(n):
            continue
        with_me = sum(1 for by, whom in votes.items() if whom == n and by != view.me)
        planned = sum(1 for by, whom in notes.plans.items() if whom == n and by != view.me and by not in votes)
        value = guilt + join * with_me + 0.02 * planned + 0.03 * (n in notes.reasoned)
        if value > most:
            best, most = n, value
    return best


def _nominate(view: View) -> Answer:
    notes = view.notes
    if notes.acquitted.count(view.me) == 0:
        found = _pressed(view)
        if found is not None:
            return found
    target = _target(view)
    mine = view.knowledge.votes.get(view.me)
    if target is not None and Verb.REVEAL in view.options and (view.own.of(target) > 0.6 or view.day > 3):
        return Choice(Verb.REVEAL), f"My three votes are needed against {view.name(target)}."
    if target is None:
        if mine is not None and Verb.UNVOTE in view.options and view.guilt(mine) < view.mean:
            return Choice(Verb.UNVOTE), f"I no longer think {view.name(mine)} is the one."
        found = _news(view) or _stand_up(view)
        return found if found is not None else (WAIT, "Nobody stands out enough for a vote.")
    if mine == target:
        found = _news(view) or _stand_up(view)
        return found if found is not None else (WAIT, f"My vote on {view.name(target)} stands.")
    if target not in notes.reasoned:
        found = _accusation(view, target)
        if found is not None:
            return found
    vote = view.options.get(Verb.VOTE)
    if vote is not None and target in vote.slots[0]:
        text = f"{view.why(target)}" if vote.text else ""
        return Choice(Verb.VOTE, (target,), text), f"{view.name(target)} {_chance(view, target)}: {view.why(target)}."
    return WAIT, "I wait for the others."


def _judge(view: View) -> Answer:
    accused = view.knowledge.accused
    if accused is None:
        return Choice(Verb.ABSTAIN), "I do not know who is on trial."
    name, guilt = view.name(accused), view.guilt(accused)
    if view.in_power:
        if accused in view.mates:
            return Choice(Verb.INNOCENT), f"We are half of the town: {name} stays."
        return Choice(Verb.GUILTY), f"We are half of the town: {name} goes."
    if one_short(view) and accused not in view.mates:
        return Choice(Verb.GUILTY), f"One more of the others gone, and the town is ours: {name} goes."
    if view.side == "jester":
        return Choice(Verb.GUILTY if view.rng.random() < 0.5 else Verb.INNOCENT), "Whatever looks bad."
    if accused in view.mates and not view.hopeless(accused):
        lost = view.public.of(accused) > view.mean + 0.2
        lot = view.rng.random()
        if lot < (0.1 if lost else 0.45):
            return Choice(Verb.INNOCENT), f"{name} is one of ours."
        if lost and lot > 0.6:
            return Choice(Verb.GUILTY), f"{name} is one of ours, but lost; I had better be seen against them."
        return Choice(Verb.ABSTAIN), f"{name} is one of ours, but I had better not be seen to help."
    if guilt >= view.mean + max(0.0, _bar(view)) * 0.6 + caution(view, accused):
        return Choice(Verb.GUILTY), f"{name} {_chance(view, accused)}: {view.why(accused)}."
    if guilt > view.mean - 0.03 and view.rng.random() < 0.4:
        return Choice(Verb.ABSTAIN), f"I can't tell about {name}."
    return Choice(Verb.INNOCENT), f"There is too little against {name}."


def _ballot(view: View) -> Answer:
    slot = view.options[Verb.VOTE].slots[0] if Verb.VOTE in view.options else ()
    others = [n for n in slot if n not in view.mates] or list(slot)
    if not others:
        return WAIT, "There is nobody to vote for."
    notes = view.notes
    # Allies coordinate by following the same rule.
    spread = view.side in ("mafia", "vampires")
    best = max(
        others,
        key=lambda n: (
            round(view.guilt(n), 3) + 0.05 * sum(whom == n for whom in notes.plans.values()),
            (n * 7919 + view.day * 104729) % 1009 if spread else view.rng.random(),
        ),
    )
    return Choice(Verb.VOTE, (best,)), f"{view.name(best)} {_chance(view, best)}."


# --- on trial ------------------------------------------------------------------------------


def _defend(view: View) -> Answer:
    if view.side == "jester" and jester_manner(view.seed) == "mute":
        return _said(view.speak("jester_trial"), "They are about to do what I want.") or (WAIT, "I may not speak.")
    why = "I tell them who I am." if view.told_role == view.role else f"I go on posing as the {view.told_role}."
    found = _said(view.speak("trial", role=view.told_role, log=view.log()), why)
    return found if found is not None else (WAIT, "I may not speak.")


def _last_words(view: View) -> Answer:
    if view.side == "jester":
        return _said(view.speak("jester_trial"), "I have won.") or (WAIT, "I may not speak.")
    others = [n for n in view.others if n not in view.mates]
    target = max(others, key=lambda n: (view.guilt(n), -n), default=None)
    if target is not None and view.guilt(target) > view.mean + 0.05:
        found = _said(
            view.speak("last_words_against", role=view.told_role, who=view.name(target)),
            f"If I must go, let it be known that {view.name(target)} is next.",
        )
    else:
        found = _said(view.speak("last_words", role=view.told_role), "They will see.")
    return found if found is not None else (WAIT, "I may not speak.")
