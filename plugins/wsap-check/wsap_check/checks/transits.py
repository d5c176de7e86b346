"""Checks of transit: skill bonuses, and items that are neither lost nor duplicated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from wsap_check.play import RandomPlayer, Table, refused, settle
from wsap_check.steps import fresh_text
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, check
from wsap_core.protocol import AvatarSpec, AvatarState, Entry, JackInResult, PortableItem, Receipt, TransitPackage
from wsap_core.protocol.transit import ITEM_CATEGORIES, SKILL_DOMAINS, TOP_TIER
from wsap_core.protocol.wire import dumps

T = TypeVar("T")

_ME = "conformance-a"
_MASTER = dict.fromkeys(SKILL_DOMAINS, 1.0)
_AWAY = 50
_STAYS = (3, 60)
"""Steps between admit() and release(): few, and enough for items to be used up or lost."""

_LUGGAGE = [
    PortableItem(f"item-{category}-{tier}", f"{category} of tier {tier}", category, tier, {}, "elsewhere")
    for category in ITEM_CATEGORIES
    for tier in (1, 5, TOP_TIER)
]
"""Items of every category and of low, middle and high tiers, from a game that does not exist."""


class Traveller:
    """An agent with an avatar in a fresh world whose answers are checked."""

    def __init__(self, notes: Notes, subject: Subject, agent: str = _ME, snapshot: bytes | None = None) -> None:
        self.notes, self.subject, self.agent = notes, subject, agent
        self.world = subject.world()
        # Any: an AvatarGameAdapter that Transits, if it does what it declares.
        self.game = cast(Any, self.world.adapter)
        if snapshot is None:
            self.game.create_avatar(agent, AvatarSpec(name=agent))
        else:
            self.game.restore(snapshot)
        self.avatar_id: str = self.game.list_avatars(agent)[0].avatar_id

    def again(self) -> Traveller:
        """Return the same traveller in a fresh world, restored from this one's snapshot."""
        return Traveller(self.notes, self.subject, self.agent, self.game.snapshot())

    def enter(self) -> JackInResult:
        """Jack in and return the result."""
        result: JackInResult = self.game.jack_in(self.agent, self.avatar_id)
        if not result.success:
            raise Fault(f"After admit() the agent could not jack in: {result.message or '(no message)'}")
        return result

    def body(self) -> Any:
        """Return the avatar from list_avatars() (an `Avatar` or None)."""
        return next((a for a in self.game.list_avatars(self.agent) if a.avatar_id == self.avatar_id), None)

    async def shown(self) -> str:
        """Return the text of the avatar, and in a game of one seat of the observation."""
        seen = "" if self.subject.can("multi-seat") else fresh_text(await settle(self.game.observe(), self.subject))
        return fresh_text(self.body()) + seen

    async def admit(
        self, number: int, items: Sequence[PortableItem] = (), skills: Mapping[str, float] | None = None, away: int = 0
    ) -> Receipt:
        """Admit the agent with items and skills, in a transfer of that number."""
        entry = Entry(f"transfer-{number}", self.agent, skills or {}, items, away)
        return await self._answer("admit", entry.transfer_id, self.game.admit(self.avatar_id, entry), Receipt)

    async def release(self, number: int) -> TransitPackage:
        """Release the agent, in a transfer of that number."""
        id_ = f"transfer-{number}"
        return await self._answer("release", id_, self.game.release(self.avatar_id, id_), TransitPackage)

    async def _answer(self, name: str, transfer_id: str, given: object, kind: type[T]) -> T:
        answer = await settle(given, self.subject)
        if not isinstance(answer, kind):
            raise Fault(f"{name}() returned a {type(answer).__name__}, not a {kind.__name__}.")
        same = getattr(answer, "transfer_id", None) == transfer_id
        self.notes.expect(same, f"{name}() returned another transfer_id than it was passed.")
        return answer


@check("transit")
async def transit_bonuses(notes: Notes, subject: Subject) -> None:
    """A bonus changes the avatar once, and exactly the applied bonuses are listed."""
    rules = {rule.id: rule for rule in subject.spec.transfer_rules}
    plain = await _with_skills(notes, subject, {})
    notes.expect(not plain.applied, "admit() lists bonuses for an agent without a skill.")
    if plain.shown != (await _with_skills(notes, subject, {})).shown:
        raise NothingToCheck("two fresh worlds differ from the start")
    levels = [(r.domain, level) for r in rules.values() for level in (r.threshold, 0.99 * r.threshold)]
    tried: list[Mapping[str, float]] = [_MASTER, *({domain: level} for domain, level in levels)]
    for skills in tried:
        found = await _with_skills(notes, subject, skills)
        applied, changed = found.applied, found.shown != plain.shown
        for name in sorted(applied):
            if name not in rules:
                notes.error(f"bonuses_applied names {name!r}, which is not one of the spec's transfer_rules.")
            elif skills.get(rules[name].domain, 0.0) < rules[name].threshold:
                notes.error(f"The bonus {name!r} was applied below its threshold.", about="below")
        listed = ", ".join(sorted(applied))
        if applied and not changed:
            notes.error(f"bonuses_applied lists {listed}, but the avatar is the same as without.")
        if changed and not applied:
            notes.error("Skills changed the avatar, but bonuses_applied lists nothing.", about="silent")
        entered = ", ".join(sorted(found.entered)) or "nothing"
        told = f"jack_in() lists {entered} as bonuses_applied, but admit() {listed}."
        notes.expect(found.entered == applied, told)
        if twice := sorted(applied.keys() & found.again):
            notes.error(f"The bonus {twice[0]!r} was applied to one avatar twice.", about="twice")


class _Skilled(NamedTuple):
    """The outcome of admitting an agent with some skills."""

    applied: dict[str, Any]
    shown: str
    """Before jack_in()."""
    entered: dict[str, Any]
    """The bonuses_applied of jack_in()."""
    again: set[str]
    """The bonuses of a second entry."""


async def _with_skills(notes: Notes, subject: Subject, skills: Mapping[str, float]) -> _Skilled:
    traveller = Traveller(notes, subject)
    applied = dict((await traveller.admit(1, skills=skills)).bonuses_applied)
    shown = await traveller.shown()
    again = set((await traveller.admit(2, skills=skills)).bonuses_applied)
    entered = dict(traveller.enter().bonuses_applied)
    return _Skilled(applied, shown, {k: v for k, v in entered.items() if k not in again}, again)


@check("transit")
async def transit_items(notes: Notes, subject: Subject) -> None:
    """Each item brought in is admitted or refused, and is released again or reported lost."""
    for steps in _STAYS:
        traveller = Traveller(notes, subject, agent=subject.spec.names_of_seats(1)[0])
        receipt = await traveller.admit(1, _LUGGAGE, _MASTER)
        _look_at_receipt(notes, receipt)
        # The seat is opened now, so that its agent gets the avatar with the items; a reset would remove them.
        table = Table(subject, world=traveller.world)
        await table.play(RandomPlayer(110, "available"), steps)
        _look_at_package(notes, await traveller.release(2), set(receipt.admitted))


def _look_at_receipt(notes: Notes, receipt: Receipt) -> None:
    answered, known = [*receipt.admitted, *receipt.refused], [item.item_id for item in _LUGGAGE]
    for item_id in known:
        times = answered.count(item_id)
        how = "both admitted and refused, or twice" if times else "neither admitted nor refused"
        notes.expect(times == 1, f"The item {item_id} is {how}; each is one or the other.", about=how)
    if strange := sorted(set(answered) - {*known}):
        notes.error(f"The receipt names {strange[0]!r}, which was never brought in.")
    for item_id, reason in receipt.refused.items():
        notes.expect(_is_said(reason), f"The item {item_id} is refused without a reason.", about="reason")


def _is_said(reason: Any) -> bool:
    return isinstance(reason, str) and bool(reason.strip())


def _look_at_package(notes: Notes, package: TransitPackage, inside: set[str]) -> None:
    out = [item.item_id for item in package.items]
    notes.expect(len(set(out)) == len(out), "release() returns an item twice.")
    for item in package.items:
        name, known = item.item_id, ", ".join(ITEM_CATEGORIES)
        tiers = f"The tier of {name} is {item.tier}; tiers go from 1 to {TOP_TIER}."
        notes.expect(item.tier in range(1, TOP_TIER + 1), tiers, about="tier")
        categories = f"The category of {name} is {item.category!r}; there are {known}."
        notes.expect(item.category in ITEM_CATEGORIES, categories, about="category")
        fresh = f"The item {name} was not brought in; a new one's id starts with the transfer's and a colon."
        notes.expect(name in inside or name.startswith(f"{package.transfer_id}:"), fresh, about="fresh")
    for item_id in sorted(inside):
        how = "is both released and lost" if item_id in out else "is neither released nor in `lost`"
        once = (item_id in out) != (item_id in package.lost)
        notes.expect(once, f"The item {item_id} was admitted and {how}.", about=how)
    if strange := sorted(package.lost.keys() - inside):
        notes.error(f"release() reports {strange[0]!r} as lost, which was never brought in.")
    notes.expect(all(map(_is_said, package.lost.values())), "An item is lost without a reason.")


@check("transit")
async def transit_release(notes: Notes, subject: Subject) -> None:
    """Released items are no longer in the world."""
    traveller = Traveller(notes, subject)
    await traveller.admit(1, _LUGGAGE)
    traveller.enter()
    before = await traveller.shown()
    package = await traveller.release(2)
    if not package.items:
        raise NothingToCheck("no item was admitted that could be released")
    gone = await traveller.shown() != before
    notes.expect(gone, f"release() returned {len(package.items)} items, but the avatar did not change.")
    for item in (await traveller.release(3)).items[:1]:
        notes.error(f"A second release() returned more items: {item.item_id}.")
    back = await traveller.admit(4, package.items)
    if refusals := sorted(back.refused):
        notes.warn(f"An item that was just released is not admitted again: {back.refused[refusals[0]]}")
    again = sorted(item.item_id for item in (await traveller.release(5)).items)
    notes.expect(again == sorted(back.admitted), "Items that are admitted and released again do not keep their ids.")


@check("transit")
async def transit_once(notes: Notes, subject: Subject) -> None:
    """A repeated transfer id changes nothing and gets the same answer."""
    traveller, restored = Traveller(notes, subject), "A world restored from a snapshot"
    receipt = await _twice(notes, traveller, lambda who: who.admit(1, _LUGGAGE, _MASTER), "admit")
    worlds = [traveller]
    if subject.can("snapshot"):
        worlds.append(traveller.again())
        same = dumps(await worlds[1].admit(1, _LUGGAGE, _MASTER)) == dumps(receipt)
        notes.expect(same, f"{restored} answers admit() differently than before.")
        same = await worlds[1].shown() == await traveller.shown()
        notes.expect(same, f"{restored} carries out admit() again.")
    packages = [await _twice(notes, who, lambda who: who.release(2), "release") for who in worlds]
    notes.expect(dumps(packages[0]) == dumps(packages[-1]), f"{restored} releases something else.")
    if subject.can("snapshot"):
        same = dumps(await traveller.again().release(2)) == dumps(packages[0])
        notes.expect(same, f"{restored} answers release() differently than before.")
    did = await refused(lambda: traveller.game.admit("no-such-avatar", Entry("transfer-9", _ME)))
    notes.expect(not did, f"admit() into an avatar that does not exist must raise a UsageError; {did}.")


async def _twice(notes: Notes, who: Traveller, call: Callable[[Traveller], Awaitable[T]], name: str) -> T:
    """Call twice, and return the first answer."""
    first = await call(who)
    before, text = await who.shown(), dumps(first)
    differs = f"{name}() returns something else when called again with the same transfer id."
    notes.expect(dumps(await call(who)) == text, differs, about=name)
    again = f"{name}() was carried out twice for one transfer id."
    notes.expect(await who.shown() == before, again, about=f"{name} twice")
    return first


@check("transit")
async def transit_sleep(notes: Notes, subject: Subject) -> None:
    """Time away passes for a dormant avatar, identically in every world, but not for a suspended one."""
    one, other = [await _away(notes, subject, "dormant", _AWAY) for _ in range(2)]
    if one is None:
        raise NothingToCheck("no agent may leave this world at the start")
    differs = f"{_AWAY} steps away affect a dormant avatar differently in two worlds of one seed."
    notes.expect(one == other or not subject.can("seed"), differs)
    before, after = [await _away(notes, subject, "suspend", steps) for steps in (0, _AWAY)]
    changed = f"A suspended body is frozen in time, but {_AWAY} steps away changed it."
    notes.expect(before == after or not subject.can("seed"), changed)


async def _away(notes: Notes, subject: Subject, mode: str, steps: int) -> str | None:
    """Return the avatar after the return and the receipt, as text; None if the agent may not leave."""
    traveller = Traveller(notes, subject)
    traveller.enter()
    if not traveller.game.jack_out(_ME, mode).success:
        return None
    receipt = await traveller.admit(1, away=steps)
    entered = traveller.game.jack_in(_ME, traveller.avatar_id)
    body = traveller.body()
    dead = body is None or body.state is AvatarState.DESTROYED
    locked = f"The agent can't return to its {mode} avatar, which is alive: {entered.message}"
    notes.expect(entered.success or dead, locked, about=mode)
    if dead and body is not None:
        cause = traveller.game.handle_death(traveller.avatar_id).cause.strip()
        notes.expect(cause, "An avatar died while its agent was away, but its DeathEvent has no cause.")
    return await traveller.shown() + dumps(receipt)
