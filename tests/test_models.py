"""What the protocol's types mean: avatars and their states, action spaces, parameters, names that are exported."""

from __future__ import annotations

import ast
import dataclasses
import inspect
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wsap_core
from wsap_core import (
    AVATAR_ACTIONS,
    ActionAvailability,
    ActionDef,
    ActionSpace,
    Avatar,
    AvatarRoster,
    AvatarSpec,
    AvatarState,
    EmbodiedObservation,
    ImageBlock,
    Observation,
    ParamDef,
    PlaceGraphBlock,
    TableBlock,
)
from wsap_core.protocol.avatars import can_become
from wsap_core.seams import game as interfaces
from wsap_core.seams.agent import Agent
from wsap_core.seams.context import SEED_LIMIT, Context, derive_seed
from wsap_nexus.schemas import MESSAGES

UNBOUND, BOUND, DORMANT, SUSPENDED, DESTROYED = AvatarState


# --- what is exported ---------------------------------------------------------------------


def test_every_exported_name_is_there_and_every_home_is_exported() -> None:
    stub = ast.parse(Path(wsap_core.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name: node.module for node in imports for alias in node.names} == wsap_core._HOMES
    for name in wsap_core.__all__:
        assert getattr(wsap_core, name) is not None
        assert name in dir(wsap_core)


def test_a_name_that_is_not_exported_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Obserwation'"):
        wsap_core.Obserwation  # type: ignore[attr-defined]  # noqa: B018


def test_every_type_of_the_seed_has_its_name_here() -> None:
    seed = """
        Observation ActionSpace ActionDef Action ActionResult Location Entity Terrain Goal Achievement Agent GameAdapter
        Memory AgentMessage Tool AvatarState Avatar AvatarSpec AvatarGameAdapter JackInResult JackOutResult
        AVATAR_ACTIONS EmbodiedObservation DeathEvent RespawnOption AvatarRoster Event Effect ParamDef HistoryEntry
    """
    assert set(seed.split()) <= set(wsap_core.__all__)


@pytest.mark.parametrize("cls", MESSAGES.values(), ids=MESSAGES.keys())
def test_a_message_is_frozen(cls: type) -> None:
    assert cls.__dataclass_params__.frozen  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("face", "members"),
    [
        (interfaces.GameAdapter, "game_description action_space observe act reset"),
        (Agent, "initialize decide reflect plan"),
        (interfaces.AvatarGameAdapter, "list_avatars create_avatar jack_in jack_out handle_death respawn"),
    ],
)
def test_an_interface_has_the_members_that_the_seed_names(face: type, members: str) -> None:
    own = [
        name
        for name, value in vars(face).items()
        if not name.startswith("_") and (inspect.isfunction(value) or isinstance(value, property))
    ]
    assert own == members.split()


# --- avatars ------------------------------------------------------------------------------

# From the seed: jacking in binds; jacking out leaves it dormant, suspended or despawned; respawning binds again.
ALLOWED = {
    (UNBOUND, BOUND), (BOUND, DORMANT), (BOUND, SUSPENDED), (BOUND, DESTROYED), (BOUND, UNBOUND),
    (DORMANT, BOUND), (SUSPENDED, BOUND), (DORMANT, DESTROYED), (SUSPENDED, DESTROYED),
}  # fmt: skip


@pytest.mark.parametrize("new", AvatarState)
@pytest.mark.parametrize("state", AvatarState)
def test_an_avatar_goes_from_state_to_state_as_the_protocol_allows(state: AvatarState, new: AvatarState) -> None:
    assert can_become(state, new) == ((state, new) in ALLOWED)


@pytest.mark.parametrize("new", AvatarState)
def test_a_destroyed_avatar_comes_back_by_respawning_only(new: AvatarState) -> None:
    assert not can_become(DESTROYED, new)
    assert can_become(DESTROYED, new, respawning=True) == (new is BOUND)


def body(name: str, state: AvatarState) -> Avatar:
    return Avatar(name, "game", state=state)


BODIES = st.lists(st.sampled_from(AvatarState), max_size=6)


@given(BODIES, st.integers(0, 5))
def test_there_is_room_while_fewer_live_than_are_allowed(states: list[AvatarState], most: int) -> None:
    roster = AvatarRoster("ada", "game", [body(str(i), s) for i, s in enumerate(states)], None, most)
    alive = sum(state is not DESTROYED for state in states)
    assert roster.can_create_new() == (alive < most)


@given(BODIES)
def test_the_dormant_ones_are_listed_in_their_order(states: list[AvatarState]) -> None:
    roster = AvatarRoster("ada", "game", [body(str(i), s) for i, s in enumerate(states)])
    assert [a.avatar_id for a in roster.get_dormant()] == [str(i) for i, s in enumerate(states) if s is DORMANT]


def test_the_active_avatar_is_the_one_named_or_none() -> None:
    bodies = [body("a", DORMANT), body("b", BOUND)]
    assert AvatarRoster("ada", "game", bodies, "b").get_active() == bodies[1]
    assert AvatarRoster("ada", "game", bodies, "c").get_active() is None
    assert AvatarRoster("ada", "game", bodies).get_active() is None
    assert AvatarRoster("ada", "game").max_avatars == 3


def test_the_avatar_actions_are_the_seeds() -> None:
    assert AVATAR_ACTIONS.names == ("jack_out", "look", "emote", "inspect_self")
    jack_out = AVATAR_ACTIONS.find("jack_out")
    assert jack_out is not None
    assert jack_out.preconditions == ("Not in combat", "Not falling", "Safe location")
    assert jack_out.json_schema()["properties"]["mode"]["enum"] == ["dormant", "suspend", "despawn"]
    assert jack_out.json_schema()["required"] == []


def test_an_avatar_spec_has_the_seeds_defaults() -> None:
    spec = AvatarSpec()
    assert (spec.name, spec.spawn_location, spec.starting_loadout) == (None, "safe", "default")


def test_an_embodied_observation_takes_the_body_by_keyword_only() -> None:
    with pytest.raises(TypeError):
        EmbodiedObservation()  # type: ignore[call-arg]
    positional = [
        p for p in inspect.signature(EmbodiedObservation).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    assert [p.name for p in positional] == [f.name for f in dataclasses.fields(Observation) if not f.kw_only]


# --- actions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "fits", "fits_not"),
    [
        ("left|right", ["left", "right"], ["up", "", "left|right", 1, None]),
        (" a | b ", ["a", "b"], [" a "]),
        ("1-10", [1, 10, 5.0], [0, 11, "5", 2.5, True]),
        ("-3--1", [-3, -1], [0, -4, 3]),
        ("10-1", [1, 10], [0, 11]),
        ("direction or entity_id", ["north", ""], [1, None]),
        ("", ["anything"], [3]),
        ("2026-11-20", ["2026-11-20"], [3]),
    ],
)
def test_the_second_field_of_a_parameter_becomes_a_schema(spec: str, fits: list[Any], fits_not: list[Any]) -> None:
    validator = jsonschema.Draft202012Validator(ParamDef("x", spec).json_schema())
    assert [value for value in fits if not validator.is_valid(value)] == []
    assert [value for value in fits_not if validator.is_valid(value)] == []


def test_a_schema_of_its_own_takes_the_place_of_the_second_field() -> None:
    parameter = ParamDef("x", "left|right", schema={"type": "number"})
    assert parameter.json_schema() == {"type": "number"}
    assert parameter.choices() is None
    assert parameter.integer_range() is None


def test_an_actions_schema_demands_what_is_not_optional_and_nothing_else() -> None:
    action = ActionDef("aim", "", [ParamDef("at"), ParamDef("times", "1-3", optional=True)])
    validator = jsonschema.Draft202012Validator(action.json_schema())
    assert validator.is_valid({"at": "x", "times": 2})
    assert validator.is_valid({"at": "x"})
    assert not validator.is_valid({"times": 2})
    assert not validator.is_valid({"at": "x", "speed": 1})


def test_merging_keeps_what_a_world_says_of_an_action_itself() -> None:
    own = ActionSpace([ActionDef("look", "Look around, which takes a step"), ActionDef("walk")])
    merged = own.merged(AVATAR_ACTIONS)
    assert merged.names == ("look", "walk", "jack_out", "emote", "inspect_self")
    assert merged.find("look") == own.actions[0]
    assert merged.find("fly") is None
    assert merged.merged(AVATAR_ACTIONS) == merged


def test_an_observation_says_of_an_action_what_it_knows() -> None:
    no_wood = ActionAvailability("build", False, "needs 2 wood, you have 1")
    assert Observation(available_actions=[no_wood]).is_available("build") == no_wood
    assert Observation(available_actions=[no_wood]).is_available("walk") is None
    assert Observation().is_available("build") is None
    assert Observation(available_actions=[]).available_actions == ()


# --- the rest -----------------------------------------------------------------------------


def test_lists_become_tuples_and_none_becomes_empty_where_the_seed_passes_either() -> None:
    observation = Observation(None, None, nearby_entities=None)  # type: ignore[arg-type]
    assert observation == Observation()
    assert TableBlock(["a"], [["1"]]).rows == (("1",),)
    assert PlaceGraphBlock(["a"], [["a", "b"]], None, {"a": ["x"]}).occupants == {"a": ("x",)}


@given(st.binary(max_size=50))
def test_a_picture_comes_back_byte_for_byte(png: bytes) -> None:
    assert ImageBlock.from_png(png, width=1, height=1).png() == png


@given(st.integers(0, SEED_LIMIT), st.lists(st.integers() | st.text(max_size=5), max_size=3))
def test_a_derived_seed_is_a_seed_and_always_the_same(seed: int, path: list[int | str]) -> None:
    derived = derive_seed(seed, *path)
    assert 0 <= derived <= SEED_LIMIT
    assert derived == derive_seed(seed, *path)


def test_the_first_episode_has_the_seed_itself_and_the_next_another() -> None:
    assert derive_seed(7) == derive_seed(7, 0) == 7
    assert len({derive_seed(7, episode) for episode in range(50)}) == 50
    assert derive_seed(7, 1, 2) != derive_seed(7, 12)


def test_a_context_depends_on_its_seed_and_path_alone() -> None:
    one, other = Context.create(7, "seat", 1), Context.create(7, "seat", 1)
    assert [one.random.random() for _ in range(5)] == [other.random.random() for _ in range(5)]
    assert [one.new_id(), one.new_id()] == [other.new_id(), other.new_id()]
    assert Context.create(7, "seat", 2).seed != one.seed
