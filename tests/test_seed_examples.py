"""The two example adapters of the protocol's seed, as they stand there, run.

Only the imports and the members that the seed leaves out (`# ...`) are added; these are marked.
"""

from __future__ import annotations

import pytest

from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    Codec,
    Entity,
    GameAdapter,
    Location,
    Observation,
    ParamDef,
    system_message,
    user_message,
)
from wsap_core.protocol.wire import dumps

# fmt: off


class CrafterAdapter(GameAdapter):

    @property
    def game_description(self) -> str:
        return """
        Crafter is a 2D survival game. You must manage health, food,
        drink, and energy while exploring, gathering resources, crafting
        tools, and defending against monsters.

        Progression: Collect wood -> Make pickaxe -> Mine stone ->
        Make better tools -> Mine iron/diamond

        Survival: Drink water regularly, eat food, sleep when tired.
        Avoid zombies at night, skeletons shoot arrows.
        """

    @property
    def action_space(self) -> ActionSpace:
        return ActionSpace(actions=[
            ActionDef("noop", "Do nothing", [], [], "wait"),
            ActionDef("move_left", "Move one tile left", [], [], "movement"),
            ActionDef("move_right", "Move one tile right", [], [], "movement"),
            # ... etc
        ])

    def observe(self) -> Observation:
        return Observation(
            status={"health": 9, "food": 8, "drink": 7, "energy": 9},
            inventory={"wood": 3, "stone": 1},
            location=Location((32, 32), "surface", "Standing on grass"),
            nearby_entities=[
                Entity("tree", None, 1, "north", None, True, "A tree to the north"),
                Entity("zombie", None, 5, "east", "hostile", False, "Zombie approaching from east"),
            ],
            # ...
        )

    # Elided in the seed:
    def act(self, action: Action) -> ActionResult:
        known = self.action_space.find(action.name) is not None
        return ActionResult(known, "", 0.0, [], False, self.observe())

    def reset(self) -> Observation:
        return self.observe()


class StarboundAdapter(GameAdapter):

    @property
    def game_description(self) -> str:
        return """
        Starbound is a 2D exploration/survival game set in space.
        You travel between planets, gather resources, build bases,
        and progress through a story involving ancient artifacts.

        Each planet has different biomes, gravity, and hazards.
        You have a ship that serves as mobile base.
        """

    @property
    def action_space(self) -> ActionSpace:
        return ActionSpace(actions=[
            ActionDef("move", "Move in direction",
                     [ParamDef("direction", "left|right")], [], "movement"),
            ActionDef("jump", "Jump upward", [], [], "movement"),
            ActionDef("interact", "Interact with nearby object", [],
                     ["Must be near interactable object"], "interaction"),
            ActionDef("use_item", "Use equipped item",
                     [ParamDef("slot", "1-10")], [], "item"),
            ActionDef("beam_up", "Teleport to ship", [],
                     ["Must be on planet surface"], "travel"),
            # ...
        ])

    # Elided in the seed:
    def observe(self) -> Observation:
        return Observation({"health": 100}, {}, Location((0.0, 812.5), "garden", "Standing near a campfire"))

    def act(self, action: Action) -> ActionResult:
        return ActionResult(True, f"You {action.name}.", 0.0, [], False, self.observe())

    def reset(self) -> Observation:
        return self.observe()


# fmt: on

ADAPTERS = [CrafterAdapter, StarboundAdapter]


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_example_plays_a_step_and_travels_without_loss(adapter: type[GameAdapter]) -> None:
    game = adapter()
    first = game.reset()
    assert first == game.observe()
    for definition in game.action_space.actions:
        result = game.act(Action(definition.name, {}, None))
        assert isinstance(result, ActionResult)
        assert result.success
        assert Codec().loads(ActionResult, dumps(result)) == result
    assert Codec().loads(ActionSpace, dumps(game.action_space)) == game.action_space


def test_the_text_of_the_crafter_example_is_in_the_seeds_layout() -> None:
    assert user_message(CrafterAdapter().observe()) == (
        "Step 0\n"
        "\n"
        "STATUS:\n"
        "health: 9\n"
        "food: 8\n"
        "drink: 7\n"
        "energy: 9\n"
        "\n"
        "INVENTORY:\n"
        "wood: 3\n"
        "stone: 1\n"
        "\n"
        "LOCATION:\n"
        "Standing on grass\n"
        "\n"
        "NEARBY:\n"
        "- A tree to the north\n"
        "- Zombie approaching from east\n"
        "\n"
        'What action do you take? Respond with JSON: {"action": "name", "params": {}, "reasoning": "why"}'
    )


def test_the_system_message_of_the_starbound_example_is_in_the_seeds_layout() -> None:
    game = StarboundAdapter()
    text = system_message("Starbound", game.game_description, game.action_space)
    assert text.splitlines()[0] == "You are an agent playing Starbound."
    assert text.splitlines()[2] == "Starbound is a 2D exploration/survival game set in space."
    assert "\nAvailable actions:\n- move(direction: left|right): Move in direction\n" in text
    assert "- interact: Interact with nearby object [requires: Must be near interactable object]\n" in text
    assert text.endswith("\n\nYour goal is to survive and accomplish objectives. Respond with a JSON action.")


def test_lists_given_as_in_the_seed_are_kept_as_tuples() -> None:
    observation = CrafterAdapter().observe()
    assert isinstance(observation.nearby_entities, tuple)
    assert observation.location.coordinates == (32, 32)


def test_the_parameters_of_the_starbound_example_become_schemas() -> None:
    space = StarboundAdapter().action_space
    move, use_item = space.find("move"), space.find("use_item")
    assert move is not None
    assert use_item is not None
    assert move.json_schema()["properties"]["direction"] == {"type": "string", "enum": ["left", "right"]}
    assert use_item.json_schema()["properties"]["slot"] == {"type": "integer", "minimum": 1, "maximum": 10}
