"""Random commands that make sense: entities, items, topics and answers that the perception names."""

from __future__ import annotations

import random
from typing import Any

from wsap_tes3mp.protocol.perception import PerceptionOutput

Command = tuple[str, dict[str, Any]]


def random_command(seen: PerceptionOutput, chance: random.Random) -> Command:
    """Return a command that could succeed, as far as a perception tells."""
    offers: list[Command] = [("wait", {"duration_seconds": chance.choice((1, 30, 600))})]
    near = seen.nearby_entities
    if near:
        one = chance.choice(near)
        target: Command = ("move_to", {"target_entity_id": one.entity_id})
        offers += [target] * 3
        close = [other for other in near if other.distance <= 3]
        if close:
            other = chance.choice(close)
            offers += [("interact", {"entity_id": other.entity_id, "interaction_type": "activate"})] * 5
            if other.entity_type == "creature":
                action = chance.choice(("attack", "attack", "block", "flee"))
                offers += [("combat_action", {"action_type": action, "target_entity_id": other.entity_id})] * 4
    if seen.inventory:
        item = chance.choice(seen.inventory).item_id
        offers.append(("use_item", {"item_id": item}))
        offers.append(("interact", {"entity_id": item, "interaction_type": "drop"}))
        if near:
            offers.append(("use_item", {"item_id": item, "target_entity_id": near[0].entity_id}))
    width = 100
    offers.append(("move_to", {"target_x": chance.uniform(0, width), "target_y": chance.uniform(0, 50)}))
    talk = seen.dialogue
    if talk is not None and talk.choices:
        index = chance.randrange(len(talk.choices))
        offers += [("dialogue", {"entity_id": talk.entity_id, "choice_idx": index})] * 8
    elif talk is not None and talk.topics:
        offers += [("dialogue", {"entity_id": talk.entity_id, "topic": chance.choice(talk.topics)})] * 8
    return chance.choice(offers)
