"""Checks of transit: skill bonuses, and items that are neither lost nor duplicated."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from wsap_check.play import RandomPlayer, Table, refused, settle
from wsap_check.steps import fresh_text
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, check
from wsap_core.protocol import (
    Avatar,
    AvatarSpec,
    AvatarState,
    Entry,
    JackInResult,
    PortableItem,
    Receipt,
    TransitPackage,
)
from wsap_core.protocol.transit import ITEM_CATEGORIES, SKILL_DOMAINS, TOP_TIER
from wsap_core.protocol.wire import dumps

T = TypeVar("T")

_ME = "conformance-a"
_MASTER = dict.fromkeys(SKILL_DOMAINS, 1.0)
_TIERS = (1, 5, TOP_TIER)
_AWAY = 50
_STAYS = (3, 60)
"""Steps between coming and going: too few for much to happen, and enough for much to be used up or lost."""


def luggage(name: str = "item") -> list[PortableItem]:
    """Return items of every category, plain, middling and of the best, from a game that does not exist."""
    return [
        PortableItem(f"{name}-{category}-{tier}", f"{category} of tier {tier}", category, tier, {}, "elsewhere")
        for category in ITEM_CATEGORIES
        for tier in _TIERS
    ]


class Traveller:
    """An agent with an avatar in a fresh world, and a look at what the world answers."""

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
        """Return the same traveller in a fresh world that is restored from this one's snapshot."""
        return Traveller(self.notes, self.subject, self.agent, self.game.snapshot())

    def enter(self) -> JackInResult:
        """Jack in and return the result."""
        result: JackInResult = self.game.jack_in(self.agent, self.avatar_id)
        if not result.success:
            raise Fault(f"After admit() the agent could not jack in: {result.message or '(no message)'}")
        return result

    def body(self) -> Avatar | None:
        """Return the avatar as it is listed now."""
        return next((a for a in self.game.list_avatars(self.agent) if a.avatar_id == self.avatar_id), None)

    async def shown(self) -> str:
        """Return what can be seen of the avatar from outside, and from inside where there is one seat."""
        seen = "" if self.subject.can("multi-seat") else fresh_text(await settle(self.game.observe(), self.subject))
        return fresh_text(self.body()) + seen

    async def admit(
        self, number: int, items: Sequence[PortableItem] = (), skills: Mapping[str, float] | None = None, away: int = 0
    ) -> Receipt:
        """Come in with items and skills, in a transfer of that number."""
        entry = Entry(f"transfer-{number}", self.agent, skills or {}, items, away)
        receipt = await settle(self.game.admit(self.avatar_id, entry), self.subject)
        return self._of_kind(receipt, Receipt, "admit", entry.transfer_id)

    async def release(self, number: int) -> TransitPackage:
        """Go out, in a transfer of that number."""
        transfer_id = f"transfer-{number}"
        package = await settle(self.game.release(self.avatar_id, transfer_id), self.subject)
        return self._of_kind(package, TransitPackage, "release", transfer_id)

    def _of_kind(self, answer: Any, kind: type[T], name: str, transfer_id: str) -> T:
        # Any: the type is what is asked.
        if not isinstance(answer, kind):
            raise Fault(f"{name}() returned a {type(answer).__name__}, not a {kind.__name__}.")
        if getattr(answer, "transfer_id", None) != transfer_id:
            self.notes.error(f"{name}() answers with another transfer_id than it was asked with.")
        return answer


@check("transit")
async def transit_bonuses(notes: Notes, subject: Subject) -> None:
    """A bonus changes the avatar once, and the bonuses listed are those applied."""
    rules = {rule.id: rule for rule in subject.spec.transfer_rules}
    plain = await _with_skills(notes, subject, {})
    if plain.receipt.bonuses_applied:
        notes.error("admit() lists bonuses for an agent without a skill.")
    if plain.shown != (await _with_skills(notes, subject, {})).shown:
        raise NothingToCheck("two fresh worlds differ before anything is done")
    levels = [(r.domain, level) for r in rules.values() for level in (r.threshold, 0.99 * r.threshold)]
    tried: list[Mapping[str, float]] = [_MASTER, *({domain: level} for domain, level in levels)]
    for skills in tried:
        found = await _with_skills(notes, subject, skills)
        applied = dict(found.receipt.bonuses_applied)
        for name in sorted(applied):
            if name not in rules:
                notes.error(f"bonuses_applied names {name!r}, which is not one of the spec's transfer_rules.")
            elif skills.get(rules[name].domain, 0.0) < rules[name].threshold:
                notes.error(f"The bonus {name!r} was applied below its threshold.", about="below")
        if applied and found.shown == plain.shown:
            notes.error(f"bonuses_applied lists {', '.join(sorted(applied))}, and the avatar is as it was without.")
        if not applied and found.shown != plain.shown:
            notes.error("Skills changed the avatar, and bonuses_applied lists nothing.", about="silent")
        if found.entered != applied:
            listed = ", ".join(sorted(found.entered)) or "nothing"
            notes.error(f"jack_in() lists {listed} as bonuses_applied, and admit() {', '.join(sorted(applied))}.")
        if twice := sorted(applied.keys() & found.again):
            notes.error(f"The bonus {twice[0]!r} was applied to one avatar twice.", about="twice")


@dataclass(frozen=True)
class _Skilled:
    """What came of letting an agent with some skills in."""

    receipt: Receipt
    shown: str
    """Before it jacked in."""
    entered: dict[str, Any]
    """What jack_in() said was applied."""
    again: set[str]
    """What a second entry applied."""


async def _with_skills(notes: Notes, subject: Subject, skills: Mapping[str, float]) -> _Skilled:
    traveller = Traveller(notes, subject)
    receipt = await traveller.admit(1, skills=skills)
    shown = await traveller.shown()
    again = set((await traveller.admit(2, skills=skills)).bonuses_applied)
    entered = dict(traveller.enter().bonuses_applied)
    return _Skilled(receipt, shown, {k: v for k, v in entered.items() if k not in again}, again)


@check("transit")
async def transit_items(notes: Notes, subject: Subject) -> None:
    """Each item brought in is admitted or refused, and is released again or reported lost."""
    for steps in _STAYS:
        traveller = Traveller(notes, subject, agent=subject.spec.names_of_seats(1)[0])
        items = luggage()
        receipt = await traveller.admit(1, items, _MASTER)
        _look_at_receipt(notes, receipt, items)
        # The seat is opened now, so that its agent wakes in the avatar that has the items; a reset would take them.
        table = Table(subject, world=traveller.world)
        await table.play(RandomPlayer(110, "available"), steps)
        _look_at_package(notes, await traveller.release(2), set(receipt.admitted))


def _look_at_receipt(notes: Notes, receipt: Receipt, items: Sequence[PortableItem]) -> None:
    answered = [*receipt.admitted, *receipt.refused]
    for item in items:
        if (times := answered.count(item.item_id)) != 1:
            how = "neither admitted nor refused" if times == 0 else "both admitted and refused, or twice"
            notes.error(f"The item {item.item_id} is {how}; each is one or the other.", about=how)
    if strange := sorted(set(answered) - {item.item_id for item in items}):
        notes.error(f"The receipt names {strange[0]!r}, which was never brought in.")
    for item_id, reason in receipt.refused.items():
        if not _is_said(reason):
            notes.error(f"The item {item_id} is refused without a reason.", about="reason")


def _is_said(reason: Any) -> bool:
    # Any: whether it is text is what is asked.
    return isinstance(reason, str) and bool(reason.strip())


def _look_at_package(notes: Notes, package: TransitPackage, inside: set[str]) -> None:
    out = [item.item_id for item in package.items]
    if len(set(out)) < len(out):
        notes.error("release() gives one item twice.")
    for item in package.items:
        if item.tier not in range(1, TOP_TIER + 1):
            notes.error(f"The tier of {item.item_id} is {item.tier}; tiers go from 1 to {TOP_TIER}.", about="tier")
        if item.category not in ITEM_CATEGORIES:
            known = ", ".join(ITEM_CATEGORIES)
            notes.error(f"The category of {item.item_id} is {item.category!r}; there are {known}.", about="category")
        if item.item_id not in inside and not item.item_id.startswith(f"{package.transfer_id}:"):
            wrong = "was not brought in; a new one's id begins with the transfer's and a colon."
            notes.error(f"The item {item.item_id} {wrong}", about="fresh")
    for item_id in sorted(inside):
        if (item_id in out) == (item_id in package.lost):
            how = "comes out and is lost as well" if item_id in out else "neither comes out nor is in `lost`"
            notes.error(f"The item {item_id} was taken in, and {how}.", about=how)
    if strange := sorted(package.lost.keys() - inside):
        notes.error(f"release() reports {strange[0]!r} as lost, which was never brought in.")
    if not all(_is_said(reason) for reason in package.lost.values()):
        notes.error("An item is lost without a reason.")


@check("transit")
async def transit_release(notes: Notes, subject: Subject) -> None:
    """Released items are no longer in the world."""
    traveller = Traveller(notes, subject)
    await traveller.admit(1, luggage())
    traveller.enter()
    before = await traveller.shown()
    package = await traveller.release(2)
    if not package.items:
        raise NothingToCheck("nothing was taken in that could come out")
    if await traveller.shown() == before:
        notes.error(f"release() let {len(package.items)} items out, and the avatar is as it was.")
    more = await traveller.release(3)
    if more.items:
        notes.error(f"Asked at once for another package, release() lets out more: {more.items[0].item_id}.")
    back = await traveller.admit(4, package.items)
    if refusals := sorted(back.refused):
        notes.warn(f"What has just come out is not let in again: {back.refused[refusals[0]]}")
    again = sorted(item.item_id for item in (await traveller.release(5)).items)
    if again != sorted(back.admitted):
        notes.error("What comes in again and out again does not keep its ids.")


@check("transit")
async def transit_once(notes: Notes, subject: Subject) -> None:
    """A repeated transfer id changes nothing and gets the same answer."""
    traveller = Traveller(notes, subject)
    receipt = await _twice(notes, traveller, lambda who: who.admit(1, luggage(), _MASTER), "admit")
    worlds = [traveller]
    if subject.can("snapshot"):
        worlds.append(traveller.again())
        if dumps(await worlds[1].admit(1, luggage(), _MASTER)) != dumps(receipt):
            notes.error("A world restored from a snapshot answers admit() differently than before.")
        if await worlds[1].shown() != await traveller.shown():
            notes.error("A world restored from a snapshot carries out admit() once more.")
    packages = [await _twice(notes, who, lambda who: who.release(2), "release") for who in worlds]
    if dumps(packages[0]) != dumps(packages[-1]):
        notes.error("A world restored from a snapshot lets something else out.")
    if subject.can("snapshot") and dumps(await traveller.again().release(2)) != dumps(packages[0]):
        notes.error("A world restored from a snapshot answers release() differently than before.")
    stranger = Entry("transfer-9", _ME)
    if did := await refused(lambda: traveller.game.admit("no-such-avatar", stranger)):
        notes.error(f"admit() into an avatar that does not exist must raise a UsageError; {did}.")


async def _twice(notes: Notes, who: Traveller, call: Callable[[Traveller], Awaitable[T]], name: str) -> T:
    """Ask twice, and return the first answer."""
    first = await call(who)
    before, text = await who.shown(), dumps(first)
    if dumps(await call(who)) != text:
        notes.error(f"{name}() answers differently when asked again with the same transfer id.", about=name)
    if await who.shown() != before:
        notes.error(f"{name}() was carried out twice for one transfer id.", about=f"{name} twice")
    return first


@check("transit")
async def transit_sleep(notes: Notes, subject: Subject) -> None:
    """Time away passes for a dormant avatar, the same in every world, and not for a suspended one."""
    asleep = [await _away(notes, subject, "dormant", _AWAY) for _ in range(2)]
    if asleep[0] is None:
        raise NothingToCheck("no agent may leave this world at the start")
    if subject.can("seed") and asleep[0] != asleep[1]:
        notes.error(f"{_AWAY} steps away do not do the same to a dormant avatar in two worlds of one seed.")
    still = [await _away(notes, subject, "suspend", steps) for steps in (0, _AWAY)]
    if subject.can("seed") and still[0] != still[1]:
        notes.error(f"A suspended body is out of time, and {_AWAY} steps away changed it.")


async def _away(notes: Notes, subject: Subject, mode: str, steps: int) -> str | None:
    """Return what is seen after coming back, and what was told; None if the world does not let the agent go."""
    traveller = Traveller(notes, subject)
    traveller.enter()
    if not traveller.game.jack_out(_ME, mode).success:
        return None
    receipt = await traveller.admit(1, away=steps)
    entered = traveller.game.jack_in(_ME, traveller.avatar_id)
    body = traveller.body()
    dead = body is None or body.state is AvatarState.DESTROYED
    if not entered.success and not dead:
        notes.error(f"The agent can't come back to its {mode} avatar, which lives: {entered.message}", about=mode)
    if dead and body is not None and not traveller.game.handle_death(traveller.avatar_id).cause.strip():
        notes.error("An avatar died while its agent was away, and its DeathEvent has no cause.")
    return await traveller.shown() + dumps(receipt)
