"""A scripted player at dusk and at night."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from wsap_tossim.engine.data.model import WAIT, Choice, Verb
from wsap_tossim.players.coordination import attacked_before, common_target, why_kill
from wsap_tossim.players.reading.priors import is_enemy, is_town
from wsap_tossim.players.reading.stories import diary
from wsap_tossim.players.reading.view import WORTH, View

__all__ = ["at_night"]

Answer = tuple[Choice, str]
"""Choice and reason."""


def at_night(view: View) -> Answer:
    """Return the player's action at dusk or at night, and the reason."""
    for verb in sorted(view.options, key=lambda v: v not in _FIRST):
        rule = _RULES.get(verb)
        if rule is not None:
            found = rule(view, view.options[verb].slots)
            if found is not None:
                choice, why = found
                return Choice(verb, choice.targets, choice.text), why
    return WAIT, "Tonight I stay at home."


def _do(targets: Sequence[int], why: str, text: str = "") -> Answer:
    return Choice(Verb.WAIT, tuple(targets), text), why


Slots = Sequence[Sequence[int]]


def _look(view: View, slots: Slots) -> Answer | None:
    """Examine the most uncertain player not yet examined."""
    seen = [e.data.get("target") for e in view.notes.results]
    fresh = [n for n in slots[0] if n not in seen and n not in view.mates] or list(slots[0])
    best = max(fresh, key=lambda n: 0.5 - abs(view.own.of(n) - 0.55) + 0.2 * view.rng.random())
    return _do([best], f"I want to know about {view.name(best)}.")


def _consult(view: View, slots: Slots) -> Answer | None:
    seen = [e.data.get("target") for e in view.notes.results]
    fresh = [n for n in slots[0] if n not in seen and n not in view.notes.claims] or list(slots[0])
    best = max(fresh, key=lambda n: view.worth(n) + view.rng.random())
    return _do([best], f"I want to know who {view.name(best)} really is.")


def _shield(view: View, slots: Slots) -> Answer | None:
    """Visit a likely victim."""
    best = max(slots[0], key=lambda n: view.worth(n) - 3.0 * view.own.of(n) + 1.5 * view.rng.random())
    return _do([best], f"Whoever kills may go for {view.name(best)} tonight.")


def _heal_self(view: View, slots: Slots) -> Answer | None:
    if view.notes.claimed is not None and view.rng.random() < 0.35:
        return _do([], "They know who I am, so they may come for me.")
    return None


def _vest(view: View, slots: Slots) -> Answer | None:
    exposed = 0.2 + 0.3 * (view.notes.claimed is not None) + 0.3 * (len(view.others) < 7)
    if view.role == "Bodyguard":
        exposed -= 0.15
    return _do([], "It may be dangerous tonight.") if view.rng.random() < exposed else None


def _alert(view: View, slots: Slots) -> Answer | None:
    chance = 0.3 + 0.2 * (view.day > 2) - 0.1 * (view.notes.claimed is not None)
    return _do([], "I expect visitors.") if view.rng.random() < chance else None


def _doubtful(view: View, slots: Slots) -> Answer | None:
    """Visit the most likely enemy, to block or hunt it."""
    best = max(slots[0], key=lambda n: view.own.of(n) + 0.1 * view.rng.random())
    return _do([best], f"I think {view.name(best)} is the likeliest to do harm.")


def _block(view: View, slots: Slots) -> Answer | None:
    if view.side != "mafia":
        return _doubtful(view, slots)
    return _harm(view, slots, "would do us most harm tonight")


def _harm(view: View, slots: Slots, why: str) -> Answer | None:
    """Visit the player most valuable to the Town, except the kill's target."""
    victim = common_target(view)
    rest = [n for n in slots[-1] if n != victim and n not in view.mates] or list(slots[-1])
    best = max(rest, key=lambda n: view.worth(n) + view.rng.random())
    return _do([best], f"{view.name(best)} {why}.")


def _blackmail(view: View, slots: Slots) -> Answer | None:
    return _harm(view, slots, "had better be silent tomorrow")


def _frame(view: View, slots: Slots) -> Answer | None:
    victim = common_target(view)
    rest = [n for n in slots[0] if n != victim] or list(slots[0])
    best = max(rest, key=lambda n: view.public.of(n) + 0.2 * view.rng.random())
    return _do([best], f"If somebody looks at {view.name(best)}, so much the better.")


def _shoot(view: View, slots: Slots) -> Answer | None:
    best = max(slots[0], key=view.own.of)
    bar = 0.74 if view.day < 5 else 0.66
    if view.own.of(best) < bar:
        return None
    return _do([best], f"{view.name(best)} is {view.own.of(best):.0%} likely an enemy.")


def _jail(view: View, slots: Slots) -> Answer | None:
    best = max(slots[0], key=lambda n: view.own.of(n) + 0.08 * view.rng.random())
    return _do([best], f"I want to have a word with {view.name(best)}.")


def _execute(view: View, slots: Slots) -> Answer | None:
    prisoner = slots[0][0]
    guilt = view.own.of(prisoner)
    silent = prisoner not in view.notes.claims and prisoner not in view.notes.channel
    if guilt < (0.76 if view.day < 4 else 0.66) - 0.08 * silent:
        return None
    return _do([prisoner], f"{view.name(prisoner)} is {guilt:.0%} likely an enemy.")


def _seance(view: View, slots: Slots) -> Answer | None:
    if view.day < 3 and view.rng.random() < 0.6:
        return None
    best = max(slots[0], key=lambda n: view.worth(n) - 3.0 * view.own.of(n))
    return _do([best], f"I trust {view.name(best)}.")


def _raise(view: View, slots: Slots) -> Answer | None:
    standing = view.knowledge.standing
    worth = {n: WORTH.get(role, 1.0) for n in slots[0] if (role := standing[n].role) is not None and is_town(role)}
    best = max(worth, key=lambda n: worth[n], default=None)
    if best is None or (worth[best] < 3.5 and view.day < 4):
        return None
    return _do([best], f"{view.name(best)} is worth most of the dead.")


def _transport(view: View, slots: Slots) -> Answer | None:
    if view.rng.random() < 0.4 or len(view.others) < 2:
        return None
    good = max((n for n in slots[0]), key=lambda n: (n != view.me) + view.worth(n) - 3.0 * view.own.of(n))
    bad = max((n for n in slots[1] if n not in (good, view.me)), key=view.own.of, default=None)
    if bad is None:
        return None
    return _do([good, bad], f"Whoever goes for {view.name(good)} shall meet {view.name(bad)}.")


def _kill(view: View, slots: Slots) -> Answer | None:
    target = common_target(view, slots[0])
    if target is None:
        return None
    return _do([target], f"We kill {view.name(target)}: {why_kill(view, target)}.")


def _clean(view: View, slots: Slots) -> Answer | None:
    target = common_target(view, slots[0])
    if target is None or (target not in view.notes.claims and view.rng.random() < 0.4):
        return None
    return _do([target], f"Nobody shall know who {view.name(target)} was.")


def _forge(view: View, slots: Slots) -> Answer | None:
    target = common_target(view, slots[0])
    others = [n for n in view.others if n not in view.mates and n != target]
    if target is None or not others or view.day < 2:
        return None
    blamed = max(others, key=lambda n: (view.worth(n), -n))
    claim = view.notes.claims.get(target, ["Sheriff"])[-1]
    role = claim if claim in ("Sheriff", "Lookout", "Doctor") else "Sheriff"
    lines = [f"{role}."]
    if role == "Sheriff":
        lines.append(f"N{view.day - 1}: interrogated {view.name(blamed)}: suspicious.")
    else:
        lines.append(f"I suspect {view.name(blamed)}.")
    text = "\n".join(lines)[: view.knowledge.rules.longest_will]
    return _do([target], f"Their will shall point at {view.name(blamed)}.", text)


def _disguise(view: View, slots: Slots) -> Answer | None:
    mate = max(slots[0], key=lambda n: (view.public.of(n), -n))
    rest = [n for n in slots[1] if n != mate]
    if not rest:
        return None
    like = min(rest, key=lambda n: (view.public.of(n) - 0.1 * (n in view.notes.claims), n))
    return _do([mate, like], f"If {view.name(mate)} dies, it shall look like a loss of the Town.")


def _stab(view: View, slots: Slots) -> Answer | None:
    victims = [n for n in slots[0] if n not in view.mates] or list(slots[0])
    tried = attacked_before(view, Verb.STAB, Verb.MAUL)
    best = max(victims, key=lambda n: view.worth(n) + 1.5 * view.rng.random() - 4.0 * tried.count(n))
    return _do([best], f"{view.name(best)} is in my way: {why_kill(view, best)}.")


def _douse(view: View, slots: Slots) -> Answer | None:
    done = _doused(view)
    fresh = [n for n in slots[0] if n not in done]
    if not fresh:
        return None
    best = max(fresh, key=lambda n: view.worth(n) + 1.5 * view.rng.random())
    return _do([best], f"{view.name(best)} will burn with the others.")


def _doused(view: View) -> list[int]:
    """Return the living players that this one has doused, by its notebook."""
    doused: list[int] = []
    for _, verb, targets in diary(view.knowledge.notebook, view.names):
        if verb == Verb.DOUSE:
            doused.extend(targets)
        elif verb == Verb.IGNITE:
            doused.clear()
    return [n for n in doused if view.knowledge.standing[n].alive]


def _ignite(view: View, slots: Slots) -> Answer | None:
    doused = _doused(view)
    if len(doused) >= min(4, max(1, (len(view.others) + 1) // 2)):
        return _do([], f"{len(doused)} are doused: it is time.")
    return None


def _control(view: View, slots: Slots) -> Answer | None:
    victim = max(slots[0], key=lambda n: view.public.of(n) + 0.3 * view.rng.random())
    rest = [n for n in slots[1] if n not in (victim, view.me)]
    if not rest:
        return None
    onto = max(rest, key=lambda n: view.worth(n) + view.rng.random())
    return _do([victim, onto], f"If {view.name(victim)} can do harm, let it be to {view.name(onto)}.")


def _remember(view: View, slots: Slots) -> Answer | None:
    standing = view.knowledge.standing
    roles = {n: role for n in slots[0] if (role := standing[n].role) is not None}
    if not roles or (view.day < 3 and view.rng.random() < 0.5):
        return None
    enemies = sum(is_enemy(s.role) for s in standing if not s.alive and s.role is not None)
    losing = enemies < view.day - 2
    best = max(roles, key=lambda n: (is_enemy(roles[n]) == losing, WORTH.get(roles[n], 2.0), -n))
    return _do([best], f"I take up what {view.name(best)} left.")


def _haunt(view: View, slots: Slots) -> Answer | None:
    whom = list(slots[0])
    return _do([whom[int(view.rng.random() * len(whom))]], "Let one of them come with me.")


Rule = Callable[[View, Slots], Answer | None]
_RULES: Mapping[Verb, Rule] = {
    Verb.ALERT: _alert, Verb.BITE: _kill, Verb.BLACKMAIL: _blackmail, Verb.BLOCK: _block, Verb.CLEAN: _clean,
    Verb.CONSULT: _consult, Verb.CONTROL: _control, Verb.DISGUISE: _disguise, Verb.DOUSE: _douse,
    Verb.EXECUTE: _execute, Verb.FORGE: _forge, Verb.FRAME: _frame, Verb.GUARD: _shield, Verb.HAUNT: _haunt,
    Verb.HEAL: _shield, Verb.HEAL_SELF: _heal_self, Verb.HUNT: _doubtful, Verb.IGNITE: _ignite,
    Verb.INTERROGATE: _look, Verb.INVESTIGATE: _look, Verb.JAIL: _jail, Verb.KILL: _kill, Verb.MAUL: _stab,
    Verb.RAISE: _raise, Verb.REMEMBER: _remember, Verb.SEANCE: _seance, Verb.SHOOT: _shoot, Verb.STAB: _stab,
    Verb.TRANSPORT: _transport, Verb.VEST: _vest, Verb.WATCH: _shield,
}  # fmt: skip
"""Verb -> its rule, which returns None to skip it."""
_FIRST = (Verb.IGNITE, Verb.HEAL_SELF, Verb.VEST)
"""Verbs considered before a player's others."""
