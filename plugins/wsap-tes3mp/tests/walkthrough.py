"""The embedded world's quests, walked by their documented solutions: somebody who has read how the world works."""

from __future__ import annotations

from typing import Any

from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.engines.simulated.engine import SimulatedEngine
from wsap_tes3mp.protocol.bridge import JoinRequest
from wsap_tes3mp.protocol.commands import PARAMS
from wsap_tes3mp.protocol.perception import NearbyEntity, PerceptionOutput

NEXT = {
    "Oarsend Quay": ("The Upturned Boat", "Reeve's House", "Oarsend Chandlery", "Tar Shed", "Long Causeway"),
    "Long Causeway": ("Oarsend Quay", "Stilt Hut", "Drowned Chapel", "Lamp Rock"),
    "Lamp Rock": ("Long Causeway", "Lamp Tower"),
}
"""Cell outside -> the cells that its doors lead to."""
GIFTS = ("Honey Cake", "Plum Wine", "Pouch of Pipeweed", "Carved Gull", "Blue Ribbon")


class Walker:
    """Plays one agent in an engine of its own."""

    def __init__(self, seed: int) -> None:
        self.engine = SimulatedEngine(seed=seed)
        self.commands = 0

    async def begin(self) -> None:
        await self.engine.start()
        await self.engine.join(JoinRequest(agent_id="walker"))

    async def see(self) -> PerceptionOutput:
        view = await self.engine.perceive("walker")
        return PerceptionOutput.model_validate({**view.body, "timestamp": view.timestamp, "agent_id": "walker"})

    async def do(self, command: str, **params: Any) -> Done:
        self.commands += 1
        assert self.commands < 2000, "the walker goes round in circles"
        done = await self.engine.execute("walker", f"c{self.commands}", command, PARAMS[command].model_validate(params))
        if done.code == "DEAD":
            await self.engine.respawn("walker")
        return done

    async def find(self, name: str) -> NearbyEntity | None:
        return next((one for one in (await self.see()).nearby_entities if name in one.name), None)

    async def go(self, cell: str) -> None:
        while (here := (await self.see()).location.cell) != cell:
            await self.recover()
            path = self._path(here, cell)
            while cell == "Oarsend Chandlery" and not await self.by_day():
                await self.do("wait", duration_seconds=120)
            door = await self.find(path)
            if door is not None:
                await self.to(door.entity_id, "enter")

    async def by_day(self) -> bool:
        return (await self.see()).environment.time_of_day in ("morning", "afternoon")

    @staticmethod
    def _path(here: str, there: str) -> str:
        """Return the next cell on the way."""
        graph = {cell: set(others) for cell, others in NEXT.items()}
        for cell, others in NEXT.items():
            for other in others:
                graph.setdefault(other, set()).add(cell)
        ways = [[here]]
        while ways:
            way = ways.pop(0)
            if way[-1] == there:
                return way[1]
            ways += [[*way, other] for other in sorted(graph[way[-1]] - set(way))]
        raise AssertionError(f"no way from {here} to {there}")

    async def to(self, entity_id: str, interaction: str = "activate") -> Done:
        """Walk up to something, and interact with it."""
        for _ in range(20):
            await self.defend()
            if (await self.do("move_to", target_entity_id=entity_id)).state == "confirmed":
                done = await self.do("interact", entity_id=entity_id, interaction_type=interaction)
                if done.state == "confirmed" or done.code != "OUT_OF_REACH":
                    return done
            elif not any(one.entity_id == entity_id for one in (await self.see()).nearby_entities):
                break
        return Done("failed")

    async def defend(self) -> None:
        """Fight whatever is near, eating when it hurts."""
        while True:
            seen = await self.see()
            foe = next(
                (one for one in seen.nearby_entities if one.entity_type == "creature" and one.distance < 4), None
            )
            if foe is None or seen.health.current == 0:
                return
            if seen.health.current < 45 and await self.eat(seen):
                continue
            if foe.distance > 3:
                await self.do("wait", duration_seconds=1)
                continue
            await self.do("combat_action", action_type="attack", target_entity_id=foe.entity_id)

    async def eat(self, seen: PerceptionOutput) -> bool:
        for item in seen.inventory or ():
            if item.name in ("Green Salve", "Rye Bread", "Smoked Eel"):
                await self.do("use_item", item_id=item.item_id)
                return True
        return False

    async def recover(self) -> None:
        """Rest until well where nothing disturbs it."""
        while (seen := await self.see()).health.current < 70:
            if any(one.entity_type == "creature" for one in seen.nearby_entities):
                return
            await self.do("wait", duration_seconds=60)

    async def say(self, name: str, topic: str, answer: str = "") -> Done:
        """Talk to somebody about something, and answer."""
        person = await self.find(name)
        assert person is not None, name
        await self.to(person.entity_id, "talk")
        done = await self.do("dialogue", entity_id=person.entity_id, topic=topic)
        if answer and done.state == "confirmed":
            dialogue = (await self.see()).dialogue
            assert dialogue is not None
            index = next((i for i, text in enumerate(dialogue.choices) if answer in text), None)
            if index is None:
                return Done("failed", code="NO_SUCH_ANSWER")
            done = await self.do("dialogue", entity_id=person.entity_id, choice_idx=index)
        return done

    async def ask_around(self) -> None:
        """Learn who is who and what pleases them."""
        self.cast: dict[str, str] = {}
        self.likes: dict[str, str] = {}
        titles = {
            "Reeve": "reeve",
            "Innkeeper": "host",
            "Sick Child": "patient",
            "Chandler": "trader",
            "Healer": "healer",
        }
        for cell in ("The Upturned Boat", "Reeve's House", "Oarsend Chandlery", "Stilt Hut"):
            await self.go(cell)
            for one in (await self.see()).nearby_entities:
                if one.entity_type != "npc":
                    continue
                said = (await self.say(one.name, "yourself")).message
                for title, role in titles.items():
                    if f", {title} of" in said:
                        self.cast[role] = one.name
                if "like a " in said:
                    self.likes[one.name] = said.split("like a ")[1].rstrip(".")
                elif "hot" in said:
                    self.cast["patient"] = one.name

    async def hint(self, quest: str) -> str:
        return next((one.name for one in (await self.see()).active_quests if one.quest_id == quest), "")

    async def buy(self, name: str) -> bool:
        await self.go("Oarsend Chandlery")
        while not await self.by_day():
            await self.do("wait", duration_seconds=120)
        while (await self.say(self.cast["trader"], "trade", f"Buy {name} ")).state != "confirmed":
            if not await self.earn():
                await self.do("wait", duration_seconds=600)
        return True

    async def earn(self) -> bool:
        """Sell something that is not needed."""
        for name in ("Iron Anchor", "Coil of Rope", "Marsh Hide", "Scale Vest", "Gaff", "Cutlass", "Oilskin"):
            if (await self.say(self.cast["trader"], "trade", f"Sell {name}")).state == "confirmed":
                return True
        return False

    async def befriend(self, name: str, cell: str) -> None:
        await self.go(cell)
        while True:
            person = await self.find(name)
            assert person is not None
            if (person.disposition or 0) >= 60:
                return
            if name not in self.likes:
                self.likes[name] = (await self.say(name, "yourself")).message.split("like a ")[1].rstrip(".")
            if not await self.give(self.likes[name], name):
                await self.buy(self.likes[name])
                await self.go(cell)

    async def give(self, item: str, name: str) -> bool:
        seen = await self.see()
        carried = next((one.item_id for one in seen.inventory or () if one.name == item), None)
        target = await self.find(name)
        if carried is None or target is None:
            return False
        await self.do("move_to", target_entity_id=target.entity_id)
        return (await self.do("use_item", item_id=carried, target_entity_id=target.entity_id)).state == "confirmed"

    async def has(self, name: str) -> bool:
        return any(one.name == name for one in (await self.see()).inventory or ())

    async def gather(self, name: str) -> None:
        """Find a plant on the causeway, or kill what carries an extract there."""
        source = {"Leech Oil": "Giant Leech", "Hound Gall": "Marsh Hound"}.get(name, name)
        places = [(20, 15), (20, 45), (60, 30), (100, 15), (100, 45), (130, 30)]
        while not await self.has(name):
            for x, y in places:
                await self.go("Long Causeway")
                await self.defend()
                await self.do("move_to", target_x=x, target_y=y)
                await self.defend()
                found = await self.find(source)
                if found is None:
                    continue
                await self.do("move_to", target_entity_id=found.entity_id)
                await self.defend()
                if (body := await self.find(f"Dead {source}")) is not None:
                    await self.to(body.entity_id, "open")
                elif found.entity_type == "item":
                    await self.to(found.entity_id, "take")
                if await self.has(name):
                    return
            await self.do("wait", duration_seconds=600)
            await self.go("The Upturned Boat")
            await self.recover()

    async def lighten(self) -> None:
        """Drop what weighs much."""
        for item in (await self.see()).inventory or ():
            if item.name in ("Iron Anchor", "Ballast Stone", "Scale Vest", "Coil of Rope"):
                for _ in range(item.count):
                    await self.do("interact", entity_id=item.item_id, interaction_type="drop")

    async def fever(self) -> None:
        """Walk the quest of the fever."""
        assert (
            await self.in_cell("The Upturned Boat", "host", "the fever", "I will go for help.")
        ).state == "confirmed"
        recipe = (await self.in_cell("Stilt Hut", "healer", "the fever")).message.split(" last;")[0]
        first, rest = recipe.split(" first, ")
        second, third = rest.split(" next, ")
        await self.gather(first)
        await self.gather(second)
        await self.buy(third)
        done = await self.in_cell("Stilt Hut", "healer", "the brew", f"{first} first, {second} next")
        assert done.state == "confirmed", done
        await self.go("The Upturned Boat")
        assert await self.give("Fever Draught", self.cast["patient"])
        assert (await self.in_cell("The Upturned Boat", "host", "the fever")).state == "confirmed"

    async def lamp(self) -> None:
        """Walk the quest of the lamp."""
        assert (await self.in_cell("Reeve's House", "reeve", "the dark lamp", "I will find out")).state == "confirmed"
        await self.touch("Lamp Tower", "Log Book", "lamp", 20)
        culprit, place = (await self.hint("lamp")).split("Talk to ")[1].split(" about")[0].split(" at ", 1)
        await self.go(place)
        done = await self.near(culprit)
        done = await self.say(culprit, "the missing lens", "I promise")
        assert done.state == "confirmed", done
        keeper, place = (await self.hint("lamp")).split(": ", 1)[1].split(" gives")[0].split(" at ", 1)
        await self.befriend(keeper, place)
        done = await self.say(keeper, "the chapel key")
        assert done.state == "confirmed", done
        await self.lighten()
        holder = (await self.hint("lamp")).split("from the ")[1].split(" in the")[0]
        await self.touch("Drowned Chapel", holder, "lamp", 50)
        await self.lighten()
        while (await self.see()).active_quests and not (await self.hint("lamp")).count("keep your promise"):
            await self.go("Lamp Tower")
            await self.give("Lamp Lens", "Great Lamp")
        done = await self.in_cell("Reeve's House", "reeve", "the dark lamp", "I keep my promise")
        assert done.state == "confirmed", done

    async def near(self, name: str) -> Done:
        """Look for somebody outside."""
        for x, y in ((50, 30), (20, 30), (80, 30), (50, 50), (50, 10)):
            if await self.find(name) is not None:
                break
            await self.do("move_to", target_x=x, target_y=y)
        return Done("confirmed")

    async def touch(self, cell: str, name: str, quest: str, stage: int) -> None:
        """Open something until a quest has reached a stage."""
        while not any(one.quest_id == quest and one.stage >= stage for one in (await self.see()).active_quests):
            await self.go(cell)
            target = await self.find(name)
            assert target is not None
            await self.to(target.entity_id, "open")
            await self.defend()

    async def in_cell(self, cell: str, role: str, topic: str, answer: str = "") -> Done:
        """Talk to somebody where they live."""
        await self.go(cell)
        return await self.say(self.cast[role], topic, answer)
