"""Orchards with one fault each, and the checks that must find it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from keepsakes import RULES, SPEC, Orchard

from wsap_core import AdapterSpec, AvatarState, JackInResult
from wsap_core.protocol import Bonus, Entry, PortableItem, Receipt, TransferRule, TransitPackage

FAULTS: dict[str, tuple[AdapterSpec, set[str]]] = {}
"""Name -> a broken world's spec, and exactly those checks that must fail."""


def finds(*checks: str, **changes: Any) -> Any:
    """Put a broken world on the list, with the checks that must fail and what its spec says otherwise."""

    def put(game: type[Orchard]) -> type[Orchard]:
        FAULTS[game.__name__] = (replace(SPEC, factory=game, **changes), set(checks))
        return game

    return put


# --- what the spec says -----------------------------------------------------------------------


@finds("spec", skills={"farming": ("first-berry",)})
class SkillOfItsOwn(Orchard):
    """Teaches a skill that no other world knows."""


@finds("spec", skills={"exploration": ("first-bery",)})
class EvidenceOfNothing(Orchard):
    """Names evidence that nobody can ever have."""


@finds("spec", transfer_rules=(*RULES, TransferRule("free", "exploration", 0.0, Bonus("item", "berries"))))
class ThresholdOfZero(Orchard):
    """Gives something for no skill at all."""


@finds("spec", transfer_rules=(*RULES, TransferRule("lucky", "luck", 0.5, Bonus("item", "berries"))))
class RuleOfLuck(Orchard):
    """Has a rule about a skill that there is not."""


@finds("spec", transfer_rules=(*RULES, TransferRule("kind", "social", 0.5, Bonus("kindness", "berries"))))
class BonusOfNoKind(Orchard):
    """Gives a kind of bonus that there is not."""


@finds("spec", "transit-bonuses", transfer_rules=(RULES[0], replace(RULES[1], id=RULES[0].id)))
class RuleTwice(Orchard):
    """Gives two rules one name."""


@finds("spec", abilities=("seed", "snapshot", "render", "avatars"))
class RulesForNobody(Orchard):
    """Declares what skills are worth, and nobody may bring any."""


@finds("abilities")
class NoWayOut(Orchard):
    """Takes things in, and has no way to let them out."""

    release = None  # type: ignore[assignment]


FAULTS["NoWayOut"][1].update({"transit-items", "transit-release", "transit-once"})


# --- bonuses ------------------------------------------------------------------------------------


@finds("transit-bonuses")
class EmptyPromise(Orchard):
    """Says that it shows the wolf's tracks, and does not."""

    def apply(self, rule: TransferRule) -> Any:
        return "tracks" if rule.id == "scout" else super().apply(rule)


@finds("transit-bonuses")
class SilentGift(Orchard):
    """Gives what skills are worth without a word."""

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        super().bonuses(skills)
        return {}


@finds("transit-bonuses")
class GiftAgain(Orchard):
    """Gives the same avatar a bonus whenever it comes."""

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        self.used.clear()
        return super().bonuses(skills)


@finds("transit-bonuses")
class TooGenerous(Orchard):
    """Gives a bonus to whoever has any skill at all in something else."""

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        return super().bonuses({"exploration": 1.0, **skills} if skills else skills)


@finds("transit-bonuses")
class RoundsUp(Orchard):
    """Gives a bonus to whoever has nearly the level."""

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        return super().bonuses({domain: round(level, 1) for domain, level in skills.items()})


@finds("transit-bonuses")
class FreeForAll(Orchard):
    """Gives bonuses for nothing."""

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        return super().bonuses({"exploration": 1.0, "resource_management": 1.0})


@finds("transit-bonuses")
class NamelessRule(Orchard):
    """Lists a bonus under a name of its own."""

    def bonuses(self, skills: Mapping[str, float]) -> dict[str, Any]:
        return {f"the {name}": change for name, change in super().bonuses(skills).items()}


@finds("transit-bonuses")
class SilentEntry(Orchard):
    """Does not tell the agent what it was given."""

    def jack_in(self, agent_id: str, avatar_id: str) -> JackInResult:
        return replace(super().jack_in(agent_id, avatar_id), bonuses_applied={})


# --- items ----------------------------------------------------------------------------------------


@finds("transit-items")
class ForgetsToAnswer(Orchard):
    """Says nothing of what it refuses."""

    def written(self, receipt: Receipt) -> Receipt:
        return super().written(replace(receipt, refused={}))


@finds("transit-items")
class InTwoMinds(Orchard):
    """Takes an item in and says that it refuses it."""

    def written(self, receipt: Receipt) -> Receipt:
        return super().written(replace(receipt, refused={**receipt.refused, **dict.fromkeys(receipt.admitted, "no")}))


@finds("transit-items")
class WordlessRefusal(Orchard):
    """Refuses without a reason."""

    def written(self, receipt: Receipt) -> Receipt:
        return super().written(replace(receipt, refused=dict.fromkeys(receipt.refused, " ")))


@finds("transit-items")
class SomebodyElses(Orchard):
    """Answers for an item that nobody brought."""

    def written(self, receipt: Receipt) -> Receipt:
        return super().written(replace(receipt, refused={**receipt.refused, "grail": "it is elsewhere"}))


@finds("transit-items")
class Swallows(Orchard):
    """Forgets what an avatar drops."""

    def lose(self, reason: str, number: int) -> None:
        super().lose(reason, number)
        self.lost = {}


@finds("transit-items")
class LosesWithoutAWord(Orchard):
    """Tells what is lost, and not how."""

    def lose(self, reason: str, number: int) -> None:
        super().lose("", number)


@finds("transit-items")
class LostAndFound(Orchard):
    """Says of what it lets out that it is lost."""

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        self.lost.update(dict.fromkeys(self.keepsakes, "lost") if transfer_id not in self.packages else {})
        return super().release(avatar_id, transfer_id)


@finds("transit-items")
class BestOfAll(Orchard):
    """Has berries beyond the best tier."""

    def berry(self, item_id: str) -> PortableItem:
        return replace(super().berry(item_id), tier=11)


@finds("transit-items")
class CategoryOfItsOwn(Orchard):
    """Lets out items of a category that there is not."""

    def berry(self, item_id: str) -> PortableItem:
        return replace(super().berry(item_id), category="fruit")


@finds("transit-items")
class UsedIds(Orchard):
    """Gives new items ids that are not new."""

    def berry(self, item_id: str) -> PortableItem:
        return replace(super().berry(item_id), item_id="berry-" + item_id.rpartition(":")[2])


@finds("transit-items", "transit-release", "transit-once")
class Renames(Orchard):
    """Lets out what was brought in under another id."""

    def take(self, item: PortableItem) -> str:
        reason = super().take(item)
        if not reason:
            self.keepsakes[item.item_id] = replace(item, item_id=f"orchard-{item.item_id}")
        return reason


@finds("transit-release")
class KeepsWhatItGives(Orchard):
    """Lets things out and has them still."""

    def empty(self) -> None:
        pass


# --- asked again, and away ------------------------------------------------------------------------


@finds("transit-once")
class AdmitsAgain(Orchard):
    """Takes in what it is asked to take in, as often as it is asked."""

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        self.receipts.clear()
        return super().admit(avatar_id, entry)


@finds("transit-once")
class ReleasesAgain(Orchard):
    """Lets out what there is, as often as it is asked."""

    def release(self, avatar_id: str, transfer_id: str) -> TransitPackage:
        self.packages.clear()
        return super().release(avatar_id, transfer_id)


@finds("transit-once")
class ForgetfulSnapshot(Orchard):
    """Forgets with a restart what it has answered."""

    def books(self) -> dict[str, Any]:
        return {**super().books(), "receipts": [], "packages": []}


@finds("transit-once")
class LetsStrangersIn(Orchard):
    """Admits whatever avatar it is asked for."""

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        return super().admit(self.avatar().avatar_id, replace(entry, agent_id=self._body.owner or ""))


@finds("transit-sleep")
class NoSuspension(Orchard):
    """Lets time pass for bodies that are out of time."""

    def admit(self, avatar_id: str, entry: Entry) -> Receipt:
        if self._body.state is AvatarState.SUSPENDED:
            self._body = replace(self._body, state=AvatarState.DORMANT)
        return super().admit(avatar_id, entry)


@finds("transit-sleep")
class RestlessSleep(Orchard):
    """Lets chance from nowhere decide what happens to sleepers."""

    def sleep(self, steps: int) -> list[str]:
        self.place = random.Random().choice([(x, y) for x in range(7) for y in range(7)])
        return [f"You wake up at {self.place} and {random.Random().random()}."] if steps else []
