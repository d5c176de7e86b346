"""The probability that each player is an enemy of the Town, from claims, findings, votes and deaths, with reasons.

Every clue changes a player's odds; all odds are then shifted until the probabilities sum to the number of enemies left
in the role list. The weights are log-odds, tuned by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log

from wsap_tossim.knowledge import Knowledge
from wsap_tossim.players.reading.counting import HUNTER, Standing, claim_of, count_claims
from wsap_tossim.players.reading.notes import Clue, Finding, Notes
from wsap_tossim.players.reading.priors import RoleList, is_enemy, is_town, role_list

__all__ = ["Beliefs", "believe"]

SUREST = 0.99
"""Maximum certainty: even a confirmed Town player may have been bitten since."""
_VISITING = frozenset(
    {"Doctor", "Bodyguard", "Escort", "Investigator", "Sheriff", "Lookout", "Transporter", "Vampire Hunter", "Citizen"}
)
"""Claims that explain a visit."""


@dataclass(frozen=True)
class Beliefs:
    """A player's beliefs about the living."""

    enemy: dict[int, float]
    """Other living player -> probability that it is an enemy of the Town."""
    clues: list[Clue]
    """All evidence used."""
    counts: Mapping[int, Standing]
    """Other living player, except a revealed Mayor -> result of counting the claims."""

    def of(self, player: int) -> float:
        """Return the probability that a player is an enemy; 0 without a belief."""
        return self.enemy.get(player, 0.0)

    def against(self, player: int) -> list[Clue]:
        """Return the evidence against a player, strongest first."""
        found = [c for c in self.clues if c.target == player and c.weight > 0.2]
        found.sort(key=lambda c: -c.weight)
        return found


def believe(notes: Notes, knowledge: Knowledge, *, public: bool = False) -> Beliefs:
    """Return a player's beliefs, or those from public knowledge only, which include the player itself."""
    now = _grounds(notes, knowledge)
    kept = notes.kept.get(public)
    if kept is None or kept[0] != now:
        kept = notes.kept[public] = now, _believe(notes, knowledge, public)
    found: Beliefs = kept[1]
    return found


def _grounds(notes: Notes, knowledge: Knowledge) -> tuple[object, ...]:
    """Return a key that changes with the inputs of beliefs; notes only grow, except for claims."""
    return (
        len(notes.clues),
        len(notes.private),
        len(notes.results),
        len(notes.findings),
        [(by, *said) for by, said in notes.claims.items()],
        [(one.alive, one.revealed, one.role) for one in knowledge.standing],
        knowledge.role,
        knowledge.target,
    )


def _believe(notes: Notes, knowledge: Knowledge, public: bool) -> Beliefs:
    me = None if public else notes.player
    roles = role_list(tuple(knowledge.slots))
    standing = knowledge.standing
    certain = _certain(notes, knowledge, me, public)
    unknown = [s.number for s in standing if s.alive and s.number not in certain and s.number != me]
    clues = list(notes.clues)
    if me is not None:
        clues += notes.private
        clues += _own_results(notes, knowledge, roles)
    counts = _counted(notes, knowledge, me)
    clues += _claims(notes, knowledge, roles, me, counts)
    prior = _left(knowledge, roles, certain, public)
    shift = _logit(min(0.9, max(0.05, prior / max(1, len(unknown)))))
    odds = dict.fromkeys((s.number for s in standing), shift)
    for clue in clues:
        odds[clue.target] += clue.weight
    trust = _trust(odds, knowledge, certain, me)
    found = _findings(notes, knowledge, roles, trust, me, counts)
    for clue in found:
        odds[clue.target] += clue.weight
    clues += found
    enemy = {n: min(SUREST, max(1.0 - SUREST, p)) for n, p in certain.items()}
    enemy.update(_spread({n: odds[n] for n in unknown}, prior))
    return Beliefs(enemy, clues, counts)


def _certain(notes: Notes, knowledge: Knowledge, me: int | None, public: bool) -> dict[int, float]:
    """Return the living whose side is certain, with their probabilities."""
    known: dict[int, float] = {}
    for one in knowledge.standing:
        if one.alive and one.number != me:
            if one.revealed:
                known[one.number] = 0.0
            elif not public and one.role is not None:
                known[one.number] = float(is_enemy(one.role))
    if not public:
        for event in notes.results:
            role, target = event.data.get("role"), event.data.get("target")
            if role is not None and target is not None and target != me and knowledge.standing[target].alive:
                known[target] = float(is_enemy(role))
        if knowledge.target is not None and knowledge.standing[knowledge.target].alive:
            known[knowledge.target] = 0.0
    return known


def _left(knowledge: Knowledge, roles: RoleList, certain: dict[int, float], public: bool) -> float:
    """Return the expected number of enemies among players of unknown role."""
    left = roles.enemies
    share = roles.enemies / roles.players
    for one in knowledge.standing:
        if not one.alive:
            left -= share if one.role is None else float(is_enemy(one.role))
    mine = 0.0
    if not public and knowledge.role is not None and knowledge.alive:
        mine = float(is_enemy(knowledge.role))
    return max(0.6, left - sum(certain.values()) - mine)


def _claims(
    notes: Notes, knowledge: Knowledge, roles: RoleList, me: int | None, counts: Mapping[int, Standing]
) -> Iterable[Clue]:
    """Judge the claims of the living against the role list, the dead, and each other."""
    own = knowledge.role if me is not None else None
    dead = {one.role: one.number for one in knowledge.standing if not one.alive and one.role is not None}
    makers: dict[str, list[int]] = {}
    for by in counts:
        if by in notes.claims:
            makers.setdefault(claim_of(notes.claims[by]), []).append(by)
    for by, count in counts.items():
        weight = count.weight
        said = notes.claims.get(by)
        if said is None:
            yield Clue(by, weight, "unclaimed" if weight > 0 else "claimed")
            continue
        role = claim_of(said)
        if len(said) > 1 and role == said[-1]:
            yield Clue(by, 0.8, "changed", None, said[-2])
        most = roles.most.get(role, 0)
        if weight <= 0.2 and most > 1:
            yield Clue(by, weight, "claimed", None, role)
            continue
        rival = next((other for other in makers[role] if other != by), None)
        yield _judged_claim(by, role, weight, most, own == role, dead.get(role), rival)


def _judged_claim(
    by: int, role: str, weight: float, most: int, mine: bool, dead: int | None, rival: int | None
) -> Clue:
    """Return the clue that follows from a claim, with its best reason."""
    if most == 0:
        return Clue(by, max(2.2, weight), "no_such", None, role)
    if mine and most == 1:
        return Clue(by, 4.0, "mine", None, role)
    if dead is not None and most == 1:
        return Clue(by, max(2.0, weight), "dead_already", dead, role)
    if weight <= 0.2:
        return Clue(by, weight, "claimed", None, role)
    if rival is not None:
        return Clue(by, weight, "two", rival, role)
    if mine:
        return Clue(by, weight, "mine", None, role)
    if dead is not None:
        return Clue(by, weight, "dead_already", dead, role)
    return Clue(by, weight, "crowded" if is_town(role) else "odd_claim", None, role)


def _counted(notes: Notes, knowledge: Knowledge, me: int | None) -> dict[int, Standing]:
    """Return the count of claims for each living player of unknown role."""
    standing = knowledge.standing
    gone: list[str] = []
    open_to: dict[int, str] = {}
    rest: list[str] = []
    others = [claim_of(said) for by, said in notes.claims.items() if by != me and standing[by].alive]
    for one in standing:
        claim = claim_of(notes.claims.get(one.number))
        if one.revealed or (not one.alive and one.role is not None):
            hunter = one.role == "Vigilante" and claim == HUNTER
            gone.append(HUNTER if hunter else one.role or "Mayor")
        elif one.number == me and one.role in others:
            gone.append(one.role)  # one's own slot is certainly taken
        elif one.alive and one.number != me:
            open_to[one.number] = claim
        else:
            rest.append(claim)
    counts = count_claims(tuple(knowledge.slots), tuple(sorted(gone)), tuple(sorted([*open_to.values(), *rest])))
    return {player: counts[claim] for player, claim in open_to.items()}


def _own_results(notes: Notes, knowledge: Knowledge, roles: RoleList) -> Iterable[Clue]:
    for event in notes.results:
        data = event.data
        target = data.get("target")
        if target is not None:
            if "suspicious" in data:
                yield Clue(target, 3.2, "my_check") if data["suspicious"] else Clue(target, -0.9, "my_clear")
            elif "group" in data:
                yield from _group(notes, roles, target, data["group"], 1.0, "my_group", None)
            elif data.get("vampire"):
                yield Clue(target, 5.0, "my_check")
            elif "visitors" in data:
                if notes.died_at_night.get(target) == event.day:
                    for visitor in data["visitors"]:
                        yield Clue(visitor, _visit(notes, visitor, len(data["visitors"])), "my_watch", target)
                yield from _absent(notes, target, event.day, data["visitors"], 1.0, (notes.player,))
        for visited in data.get("visits") or ():
            yield Clue(visited, -1.2, "visited")  # the Mafia rarely visit each other


def _visit(notes: Notes, visitor: int, many: int) -> float:
    explained = notes.claims.get(visitor, [""])[-1] in _VISITING
    return (1.6 if explained else 3.2) / max(1.0, many / 1.5)


def _group(
    notes: Notes, roles: RoleList, target: int, group: Iterable[str], trust: float, code: str, by: int | None
) -> Iterable[Clue]:
    """Weigh an Investigator's finding: the group itself, and whether it supports the claim."""
    names = tuple(group)
    claim = notes.claims.get(target, [""])[-1]
    if claim in names:
        yield Clue(target, (-0.9 if roles.enemy_in(names) > 0 else -2.0) * trust, "borne_out")
        return
    weight = trust * (0.5 * _speaks_against(roles, names) + (1.0 if claim else 0.0))
    if code == "my_group":
        yield Clue(target, weight, "my_clash" if claim else "my_group", by, claim or names[0])
    else:
        yield Clue(target, weight, f"{code}_clash" if claim else code, by, claim or names[0])


@lru_cache(maxsize=1024)
def _speaks_against(roles: RoleList, names: tuple[str, ...]) -> float:
    """Return the log-odds, by the role list, that a player with one of some roles is an enemy, relative to anybody."""
    usual = min(0.9, max(0.1, roles.enemies / roles.players))
    return _logit(min(0.95, max(0.05, roles.enemy_in(names)))) - _logit(usual)


def _trust(odds: dict[int, float], knowledge: Knowledge, certain: dict[int, float], me: int | None) -> dict[int, float]:
    """Return the weight of each player's statements: 1 for certain Town, below 0 for a liar."""
    trust: dict[int, float] = {}
    for one in knowledge.standing:
        n = one.number
        if n == me:
            trust[n] = 0.0
        elif not one.alive:
            trust[n] = 0.4 if one.role is None else 1.0 if is_town(one.role) else -0.3 if is_enemy(one.role) else 0.0
        elif n in certain:
            trust[n] = 1.0 - 1.6 * certain[n]
        else:
            trust[n] = max(-0.2, 1.0 - 1.8 / (1.0 + exp(-max(-30.0, min(30.0, odds[n])))))
    return trust


def _findings(
    notes: Notes,
    knowledge: Knowledge,
    roles: RoleList,
    trust: dict[int, float],
    me: int | None,
    counts: Mapping[int, Standing],
) -> Iterable[Clue]:
    """Weigh the findings that others and the wills of the dead report."""
    standing = knowledge.standing
    found: list[Clue] = []
    counted: dict[tuple[int, int, str], bool] = {}
    for finding in notes.findings:
        said, by = finding.said, finding.by
        target = said.target
        if target is None or target == by or not standing[target].alive or by == me or (finding.secret and me is None):
            continue
        if said.what in ("suspicious", "clear", "role", "group"):
            if counted.get((by, target, said.what)):
                continue  # repeated findings add no evidence
            counted[by, target, said.what] = True
        word = trust[by]
        code = "will" if finding.written else "found"
        if said.what == "suspicious":
            if by in counts:
                word *= 1.0 - min(0.9, 1.5 * counts[by].executioner)  # an Executioner would say this of its target
            found.append(Clue(target, 2.0 * word, code, by))
        elif said.what == "clear":
            found.append(Clue(target, -0.8 * word, "will_clear" if finding.written else "found_clear"))
        elif said.what == "role":
            weight = (2.8 if is_enemy(said.role) else -1.5 if is_town(said.role) else 0.0) * word
            found.append(Clue(target, weight, f"{code}_role", by, said.role))
        elif said.what == "group" and word > 0:
            found.extend(_group(notes, roles, target, said.roles, word * 0.9, f"{code}_group", by))
        elif word > 0 and said.what in ("healed", "guarded", "blocked", "visitors", "watched"):
            found.extend(_against_nights(notes, finding, word, me))
    return found


def _against_nights(notes: Notes, finding: Finding, word: float, me: int | None) -> Iterable[Clue]:
    """Weigh reported visits to players who died that night."""
    said = finding.said
    if said.what != "visitors" or said.target is None or said.night is None:
        return
    if notes.died_at_night.get(said.target) == said.night:
        for visitor in said.players:
            if visitor not in (finding.by, me):
                yield Clue(visitor, word * _visit(notes, visitor, len(said.players)), "seen", finding.by)
    yield from _absent(notes, said.target, said.night, said.players, word, (finding.by, me))


def _absent(
    notes: Notes, house: int, night: int, seen: Iterable[int], word: float, but: tuple[int | None, ...]
) -> Iterable[Clue]:
    """Weigh claims of visits to a house where the player was not seen."""
    there = tuple(seen)
    for finding in notes.findings:
        said, by = finding.said, finding.by
        if said.target != house or said.night != night or said.what == "visitors":
            continue
        if by not in there and by not in but:
            yield Clue(by, 1.6 * word, "absent", house)


def _spread(odds: dict[int, float], total: float) -> dict[int, float]:
    """Return probabilities from odds, shifted so that they sum to about `total`."""
    if not odds:
        return {}
    total = min(max(total, 0.05 * len(odds)), 0.97 * len(odds))
    shift = 0.0
    bounded = [max(-20.0, min(20.0, odd)) for odd in odds.values()]
    chances: list[float] = []
    for _ in range(6):
        chances = [1.0 / (1.0 + exp(-odd - shift)) for odd in bounded]
        off = total - sum(chances)
        slope = sum(p * (1.0 - p) for p in chances)
        if abs(off) < 0.01 or slope < 1e-6:
            break
        shift += max(-2.0, min(2.0, off / slope))
    return {n: min(SUREST, max(1.0 - SUREST, p)) for n, p in zip(odds, chances, strict=True)}


def _logit(p: float) -> float:
    return log(p / (1.0 - p))
