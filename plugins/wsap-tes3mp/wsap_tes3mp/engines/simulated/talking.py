"""Dialogue: topics that open by disposition, item or stage; choices, trade, gifts, and their effects."""

from __future__ import annotations

import random
from collections.abc import Mapping

from wsap_tes3mp.engines.engine import Done
from wsap_tes3mp.engines.simulated.definitions import Needs, Topic, definitions
from wsap_tes3mp.engines.simulated.state import Body, Plan, Refused, Thing, World, move_items
from wsap_tes3mp.protocol.commands import Dialogue

_LEAVE = "leave"
_SECONDS = 4.0


def words(world: World, speaker: Thing | None = None) -> Mapping[str, str]:
    """Return the seed's names for the placeholders in texts."""
    defined = definitions()
    found = {role: world.things[thing].name for role, thing in world.cast.items()}
    for part, chosen in world.facts.items():
        if chosen in world.cast:
            found[part] = found[chosen]
            found[f"{part}_place"] = defined.cells[defined.people[chosen].cell].name
        else:
            found[part] = (defined.containers.get(chosen) or defined.items[chosen]).name
    if speaker is not None and speaker.kind == "npc":
        likes = defined.items[world.likes[speaker.base]].name
        found |= {"speaker": speaker.name, "title": defined.people[speaker.base].title, "likes": likes}
    return found


def greet(world: World, body: Body, person: Thing) -> str:
    """Open a dialogue and return the greeting."""
    body.talking, body.choices = person.id, []
    liking = body.dispositions[person.id]
    mood = "Friend!" if liking >= 60 else "Yes?" if liking >= 30 else "You."
    begins = [quest.begins for key, quest in definitions().quests.items() if not body.quests.get(key)]
    rumour = " People say: " + " ".join(begins) if begins and liking >= 20 else ""
    body.said = (mood + rumour).format_map(words(world, person))
    return body.said


def open_topics(world: World, body: Body, person: Thing) -> list[str]:
    """Return the open topics, in order."""
    open_now = [one for one in definitions().topics if person.base in one.who and _holds(world, body, one, person)]
    return list(dict.fromkeys(topic.name for topic in open_now))


def begin(world: World, body: Body, params: Dialogue) -> Plan:
    """Start a dialogue command: bring up a topic or pick a choice."""
    person, topic, index = world.person(body, params.entity_id), params.topic, params.choice_idx or 0
    if topic is None:
        _choice(body, person, index)
    else:
        _topic(world, body, person, topic)
    yield _SECONDS
    person = world.person(body, person.id)
    return _choose(world, body, person, index) if topic is None else _ask(world, body, person, topic)


def _holds(world: World, body: Body, needs: Needs, target: Thing) -> bool:
    return (
        needs.since <= body.quests.get(needs.quest, 0) < needs.below
        and all(world.facts.get(item, item) in body.items for item in needs.items)
        and (target.kind != "npc" or body.dispositions[target.id] >= needs.disposition)
        and (not needs.being or world.facts[needs.being] == target.base)
        and (not needs.without or needs.without not in body.items)
        and needs.hours[0] <= world.hour < needs.hours[1]
    )


def _topic(world: World, body: Body, person: Thing, name: str) -> Topic:
    known = [topic for topic in definitions().topics if person.base in topic.who and topic.name == name]
    if not known:
        raise Refused("UNKNOWN_TOPIC", f"That says nothing to {person.name}; open topics are in the dialogue.")
    found = next((topic for topic in known if _holds(world, body, topic, person)), None)
    if found is None:
        raise Refused("TOPIC_CLOSED", f"{person.name} does not talk about that now; it may take goodwill or progress.")
    return found


def _ask(world: World, body: Body, person: Thing, name: str) -> Done:
    topic, said = _topic(world, body, person, name), words(world, person)
    body.talking, body.choices = person.id, []
    body.said = topic.text.format_map(said)
    heard = f"{person.id}/{name}"
    if heard not in body.told:
        body.told.append(heard)
        _change_disposition(body, person.id, 1)
    _apply(world, body, topic.effects, person)
    if topic.choices:
        number = definitions().topics.index(topic)
        body.choices = [(f"{number}/{i}", one.text.format_map(said)) for i, one in enumerate(topic.choices)]
        random.Random(f"{world.seed}/choices/{number}").shuffle(body.choices)
    elif topic.trade:
        body.choices = _offers(world, body, person)
    return Done("confirmed", body.said)


def _choice(body: Body, person: Thing, index: int) -> str:
    if body.talking != person.id or not body.choices:
        raise Refused("NO_CHOICE", f"{person.name} waits for no answer; name a topic.")
    if index >= len(body.choices):
        raise Refused("NO_CHOICE", f"There are {len(body.choices)} answers; choice_idx counts from 0.")
    return body.choices[index][0]


def _choose(world: World, body: Body, person: Thing, index: int) -> Done:
    first, _, second = _choice(body, person, index).partition("/")
    if first in ("buy", "sell"):
        return _trade(world, body, person, first, second)
    if first == _LEAVE:
        body.choices, body.said = [], "Come again."
        return Done("confirmed", body.said)
    choice = definitions().topics[int(first)].choices[int(second)]
    body.choices = []
    body.said = reply = choice.reply.format_map(words(world, person))
    _apply(world, body, choice.effects, person)
    return Done("confirmed", reply)


def _offers(world: World, body: Body, trader: Thing) -> list[tuple[str, str]]:
    wares = sorted(trader.items.keys() - {"gold"})
    goods = {item_id: world.item(item_id).value // 2 for item_id in sorted(body.items.keys() - {"gold"})}
    rows = [(f"buy/{one}", f"Buy {world.item(one).name} for {world.item(one).value} gold") for one in wares]
    rows += [(f"sell/{one}", f"Sell {world.item(one).name} for {price} gold") for one, price in goods.items() if price]
    return [*rows, (_LEAVE, "That is all.")]


def _trade(world: World, body: Body, trader: Thing, deal: str, item_id: str) -> Done:
    item, buys = world.item(item_id), deal == "buy"
    buyer, seller = (body.items, trader.items) if buys else (trader.items, body.items)
    price = item.value if buys else item.value // 2
    if buyer.get("gold", 0) < price:
        raise Refused("TOO_POOR", f"{'You have' if buys else f'{trader.name} has'} less than {price} gold.")
    if item_id not in seller:
        raise Refused("NOT_CARRIED", "It is not there any more.")
    move_items(buyer, seller, "gold", price)
    move_items(seller, buyer, item_id)
    body.put_away(item_id)
    body.said, body.choices = "A fair price. What else?", _offers(world, body, trader)
    return Done("confirmed", f"You {deal} {item.name} for {price} gold.", data={"traded": deal})


def gift(world: World, body: Body, item_id: str, person: Thing) -> str:
    """Give a person a gift: their favourite raises the disposition by 12, anything else by 1."""
    item = world.item(item_id)
    if item.kind in ("quest", "junk") or not item.value:
        raise Refused("NOT_WANTED", f"{person.name} has no use for that; ask about yourself what would please.")
    move_items(body.items, person.items, item_id)
    liked = world.likes[person.base] == item_id
    _change_disposition(body, person.id, 12 if liked else 1)
    body.said = "For me? You have a good eye!" if liked else "Hm. Thanks."
    body.talking, body.choices = person.id, []
    return f"{person.name}: {body.said}"


def use(world: World, body: Body, item_id: str, target: Thing) -> str:
    """Apply the story's effect of an item ("" for a bare hand) on a target; return its text, or ""."""
    for rule in definitions().uses:
        fits = rule.item == item_id and target.base == world.facts.get(rule.on, rule.on)
        if fits and _holds(world, body, rule, target):
            _apply(world, body, rule.effects, target)
            return rule.text.format_map(words(world, target))
    return ""


def _change_disposition(body: Body, person: str, change: int) -> None:
    body.dispositions[person] = min(100, max(0, body.dispositions[person] + change))


def _apply(world: World, body: Body, effects: tuple[str, ...], target: Thing) -> None:
    for effect in effects:
        verb, *rest = effect.split()
        amount = int(rest[-1]) if rest and rest[-1].removeprefix("-").isdecimal() else 0
        name = world.facts.get(rest[0], rest[0]) if rest else ""
        match verb:
            case "stage":
                body.quests[name] = max(amount, body.quests.get(name, 0))
            case "disposition":
                _change_disposition(body, target.id, amount)
            case "disposition_of":
                _change_disposition(body, world.cast[name], amount)
            case "give":
                world.create(body.items, name)
            case "take":
                move_items(body.items, world.spent, name)
            case "gold" if amount > 0:
                world.create(body.items, "gold", amount)
            case "gold" if paid := min(-amount, body.items.get("gold", 0)):
                move_items(body.items, world.spent, "gold", paid)
            case "health":
                body.health = max(1, body.health + amount)
            case "time":
                world.time += amount
            case "close":
                body.be_silent()
