"""Games as environments of TRL, by what its trainer asks of an environment (`GRPOTrainer`, trl 1.16)."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

from wsap_core.errors import UnknownNameError, UsageError, WorldError
from wsap_trainers.trl import factory

CLERK = '''"""A clerk."""
from __future__ import annotations
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation, ParamDef


class Clerk:
    """Stamps forms."""

    game_description = "Stamp forms."
    action_space = ActionSpace([
        ActionDef("stamp-form", "Stamp a form", [
            ParamDef("colour", "red|blue", description="The ink"), ParamDef("times", "1-9", optional=True),
        ]),
        ActionDef("reset", "Begin the day again"),
        ActionDef("class", "Go to school"),
        ActionDef("burn", "Burn the office"),
    ])

    def reset(self, seed: int | None = None) -> Observation:
        self.step = 0
        return self.observe()

    def observe(self) -> Observation:
        return Observation(status={"stamped": self.step}, step=self.step)

    def act(self, action: Action) -> ActionResult:
        if action.name == "burn":
            raise RuntimeError("The office is gone.")
        self.step += 1
        return ActionResult(True, f"{action.name} {dict(action.parameters)}", 1.0, (), self.step == 3, self.observe())
'''


@pytest.fixture
def clerk(tmp_path: Path) -> str:
    path = tmp_path / "clerk.py"
    path.write_text(CLERK, encoding="utf-8")
    return f"{path}:Clerk"


def tools_of(instance: Any) -> dict[str, Any]:
    """The methods that TRL's trainer offers to the model, found as it finds them."""
    members = inspect.getmembers(type(instance), predicate=inspect.isfunction)
    names = [name for name, _ in members if name not in ("reset", "get_reward") and not name.startswith("_")]
    return {name: getattr(instance, name) for name in names}


def test_each_action_is_a_method_with_its_parameters(clerk: str) -> None:
    environment = factory(clerk)()
    tools = tools_of(environment)
    assert set(tools) == {"stamp_form", "do_reset", "do_class", "burn"}
    signature = inspect.signature(tools["stamp_form"])
    assert {name: parameter.annotation for name, parameter in signature.parameters.items()} == {
        "colour": str,
        "times": int | None,
    }
    assert 'colour: The ink (choices: ["red", "blue"])' in inspect.getdoc(tools["stamp_form"])


def test_a_game_is_played_to_its_end_and_paid_once(clerk: str) -> None:
    environment = factory(clerk)()
    tools = tools_of(environment)
    assert "Stamp forms." in environment.reset(seed=3, prompt="Work.", other=7)
    assert tools["stamp_form"](colour="red").startswith("stamp-form {'colour': 'red'}\n\n")
    assert tools["do_reset"]().startswith("reset {}")
    refused = tools["stamp_form"](colour="green")
    assert "green" in refused
    assert environment.get_reward() == 2.0
    assert tools["stamp_form"](colour="blue", times=2).endswith("The game is over.")
    assert tools["do_class"]() == "The game is over."
    assert environment.get_reward() == 3.0
    environment.reset(seed=3)
    assert environment.get_reward() == 0.0


def test_an_outage_is_no_reward_at_all_not_a_zero(clerk: str) -> None:
    environment = factory(clerk)()
    environment.reset()
    tools = tools_of(environment)
    tools["stamp_form"](colour="red")
    with pytest.raises(WorldError, match="The office is gone"):
        tools["burn"]()
    with pytest.raises(WorldError, match="The office is gone"):  # the model can't play on in a broken game
        tools["stamp_form"](colour="red")
    assert environment.get_reward() is None
    environment.reset()
    assert environment.get_reward() == 0.0


def test_the_same_seed_is_the_same_game_and_without_one_the_next_comes() -> None:
    create = factory("crafter", seed=5)
    first, second = create(), create()
    assert first.reset(seed=7) == second.reset(seed=7)
    assert first.reset() != second.reset()
    again = factory("crafter", seed=5)()
    again.reset()
    assert type(again).__name__ == "WsapCrafter"
    assert again.get_reward() == 0.0


def test_it_ends_after_the_most_steps(clerk: str) -> None:
    environment = factory(clerk, max_steps=1)()
    environment.reset()
    tools = tools_of(environment)
    tools["stamp_form"](colour="red")
    assert tools["stamp_form"](colour="red") == "No step is left: the game ends after 1."
    assert environment.get_reward() == 1.0


def test_what_can_not_be_trained_on_is_refused_at_once() -> None:
    with pytest.raises(UsageError, match="needs 2 players"):
        factory("matrix")
    with pytest.raises(UnknownNameError, match="crafter"):
        factory("craftr")
    with pytest.raises(UsageError, match="not from 0 to"):
        factory("echo")().reset(seed=-1)


@pytest.mark.parametrize("game", ["crafter", "echo", ""], ids=lambda game: game or "a game with many kinds of names")
def test_transformers_takes_every_method_as_a_tool(game: str, clerk: str) -> None:
    utils = pytest.importorskip("transformers.utils", reason="it is in the stage of models")
    for name, method in tools_of(factory(game or clerk)()).items():
        told = utils.get_json_schema(method)["function"]
        assert told["name"] == name
        assert told["description"]
        assert set(told["parameters"]["properties"]) == set(inspect.signature(method).parameters)
