"""The adapter's protocol: episodes, bodies, pictures, refusals."""

from __future__ import annotations

import io
import subprocess
import sys

import crafter
import numpy as np
import pytest
from crafter import constants
from PIL import Image

from wsap_core import Action, Context
from wsap_core.errors import ConfigError, UsageError
from wsap_core.protocol import AvatarSpec, AvatarState, GridMapBlock, ImageBlock
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.catalogue import ACHIEVEMENTS, PREREQUISITES, SKILLS


def jacked_in(scene, **items):
    """Return a scene on even grass with the agent Ann in the body."""
    made = scene(0).empty().stand(32, 32).carry(**items)
    avatar = made.adapter.create_avatar("ann", AvatarSpec(name="Ann"))
    assert made.adapter.jack_in("ann", avatar.avatar_id).success
    made.look()
    return made


def killed_by(made, kind, x, y, **attributes):
    """Let something kill the player, and return the last result."""
    made.carry(health=1)
    made.put(kind, x, y, **attributes)
    made.look()
    for _ in range(40):
        result = made.adapter.act(Action("noop"))
        if result.done:
            return result
    raise AssertionError("it lived")


def test_an_episode_is_over_after_its_length_and_stays_over(scene):
    made = scene(0, length=3)
    results = [made.adapter.act(Action("noop")) for _ in range(3)]
    assert [(result.done, result.truncated) for result in results] == [(False, False), (False, False), (True, True)]
    after = made.adapter.act(Action("noop"))
    assert (after.success, after.done, after.observation) == (False, True, results[-1].observation)
    assert made.adapter.reset().step == 0
    assert made.adapter.act(Action("noop")).success


def test_a_death_in_the_last_step_is_no_end_by_a_limit(scene):
    dies_at = killed_by(scene(0).empty().stand(32, 32), "Zombie", 33, 32).observation.step
    last = killed_by(scene(0, length=dies_at).empty().stand(32, 32), "Zombie", 33, 32)
    assert (last.observation.step, last.truncated) == (dies_at, False)


def test_reset_with_a_seed_gives_the_same_world_again_and_without_one_the_next():
    world = CrafterAdapter(Context(seed=4))
    first = world.observe()
    assert world.reset() != first
    assert world.reset(seed=4) == first
    assert CrafterAdapter(Context(seed=4)).observe() == first


@pytest.mark.parametrize("config", [{"length": -1}, {"length": "long"}, {"length": True}, {"frame_size": 2.5}])
def test_a_wrong_option_is_told_in_one_sentence(config):
    with pytest.raises(ConfigError, match="whole number"):
        CrafterAdapter(Context(config=config))


def test_reward_is_health_and_achievements_as_in_the_game(scene):
    made = scene(0).empty().stand(32, 32)
    made.put("tree", 32, 33)
    made.look()
    result = made.adapter.act(Action("do"))
    assert (result.reward, result.achievements, result.message) == (
        1.0,
        ("collect_wood",),
        "You collect 1 wood and have 1.",
    )
    assert result.observation.inventory == {"wood": 1}


def test_messages_tell_what_came_of_an_action(scene):
    made = scene(0).empty().stand(32, 32)
    made.put("Cow", 32, 33, health=2)
    cow = made.world[32, 33][1]
    cow.update = lambda: None
    made.carry(food=2)
    made.look()
    assert made.adapter.act(Action("do")).message == "You hit the cow."
    assert made.adapter.act(Action("do")).message == "You kill the cow and eat it."
    made.world.remove(cow)
    made.put("water", 33, 32)
    made.look()
    assert made.adapter.act(Action("move_right")).message == "You turn east; the way is blocked."
    assert made.adapter.act(Action("do")).message == "You drink."
    assert made.adapter.act(Action("move_left")).message == "You walk west."
    made.carry(wood=2)
    made.look()
    assert made.adapter.act(Action("place_table")).message == "You place a table."


def test_a_body_is_made_entered_left_and_entered_again(scene):
    made = scene(0).empty().stand(32, 32)
    adapter = made.adapter
    assert adapter.list_avatars("ann") == []
    avatar = adapter.create_avatar("ann", AvatarSpec(name="Ann", appearance={"hair": "red"}))
    assert (avatar.state, avatar.name, avatar.bound_agent) == (AvatarState.UNBOUND, "Ann", None)
    entered = adapter.jack_in("ann", avatar.avatar_id)
    assert entered.success
    assert entered.initial_observation is adapter.observe()
    assert entered.avatar.bound_agent == "ann"
    assert adapter.list_avatars("ann") == [adapter.observe().avatar]
    made.look()
    adapter.act(Action("move_left"))
    left = adapter.jack_out("ann", "dormant")
    assert (left.success, left.avatar_state) == (True, AvatarState.DORMANT)
    assert left.session_stats == {"playtime": 1, "reward": 0.0, "achievements": []}
    refused = adapter.act(Action("noop"))
    assert not refused.success
    assert "dormant" in refused.message
    again = adapter.jack_in("ann", avatar.avatar_id)
    assert again.success
    assert again.avatar.avatar_id == avatar.avatar_id
    assert adapter.act(Action("noop")).success


def test_a_world_holds_one_body(scene):
    made = jacked_in(scene)
    with pytest.raises(UsageError, match="has one body"):
        made.adapter.create_avatar("bob", AvatarSpec())
    assert not made.adapter.jack_in("bob", "avatar-1").success
    assert not made.adapter.jack_in("ann", "avatar-1").success
    assert not made.adapter.jack_out("bob").success
    assert not made.adapter.jack_out("ann", "teleport").success


@pytest.mark.parametrize(
    ("kind", "x", "y", "allowed"),
    [
        ("Zombie", 33, 32, False),
        ("Zombie", 34, 33, False),
        ("Zombie", 36, 34, True),
        ("Arrow", 31, 32, False),
        ("Cow", 33, 32, True),
        ("lava", 33, 33, False),
        ("lava", 34, 34, True),
    ],
)
def test_one_leaves_only_where_it_is_safe(kind, x, y, allowed, scene):
    made = jacked_in(scene)
    made.put(kind, x, y, **({"facing": (1, 0)} if kind == "Arrow" else {}))
    made.look()
    result = made.adapter.jack_out("ann", "suspend")
    assert result.success is allowed
    if not allowed:
        assert result.message.startswith("You can't leave now")
        assert made.adapter.jack_out("ann", "suspend", force=True).success


@pytest.mark.parametrize(
    ("kind", "x", "y", "attributes", "cause", "killer"),
    [
        ("Zombie", 33, 32, {}, "combat", "zombie"),
        ("Arrow", 31, 32, {"facing": (1, 0)}, "combat", "skeleton"),
    ],
)
def test_a_death_in_combat_is_told_and_the_body_lives_again_in_another_world(
    kind, x, y, attributes, cause, killer, scene
):
    made = jacked_in(scene, wood=4)
    last = killed_by(made, kind, x, y, **attributes)
    told = f"You died: a{'n arrow' if kind == 'Arrow' else ' zombie'} killed you."
    assert last.message.endswith(f" {told}")
    assert [event.description for event in last.observation.recent_events if event.type == "death"] == [told]
    assert last.observation.avatar.state is AvatarState.DESTROYED
    death = made.adapter.handle_death("avatar-1")
    assert (death.cause, death.killer) == (cause, killer)
    assert death.items_dropped == {"wood": 4}
    assert death.location == last.observation.location.coordinates
    assert not made.adapter.jack_in("ann", "avatar-1").success
    (option,) = death.respawn_options
    assert not made.adapter.respawn("avatar-1", "bed").success
    back = made.adapter.respawn("avatar-1", option)
    assert back.success
    assert (back.avatar.state, back.avatar.death_count, back.avatar.bound_agent) == (AvatarState.BOUND, 1, "ann")
    assert back.initial_observation.step == 0
    assert back.initial_observation.inventory == {}
    assert made.adapter.act(Action("noop")).success


def test_lava_and_want_kill_too(scene):
    made = jacked_in(scene)
    made.put("lava", 33, 32)
    assert "lava beside you" in [effect.name for effect in made.look().active_effects]
    result = made.adapter.act(Action("move_right"))
    assert (result.done, result.observation.status["health"]) == (True, 0)
    assert result.message == "You walk east. You died in the lava."
    assert made.adapter.handle_death("avatar-1").cause == "lava"
    # The option's id works as well.
    assert made.adapter.respawn("avatar-1", "new_world").success
    made.empty().carry(health=1, drink=0)
    made.player._recover = -15
    result = made.adapter.act(Action("noop"))
    assert result.done
    assert result.message.endswith(" You died of thirst.")
    assert made.adapter.handle_death("avatar-1").cause == "thirst"


def test_a_reset_after_death_brings_the_body_back_to_its_agent(scene):
    made = jacked_in(scene)
    killed_by(made, "Zombie", 33, 32)
    seen = made.adapter.reset()
    assert (seen.avatar.state, seen.avatar.bound_agent, seen.avatar.death_count) == (AvatarState.BOUND, "ann", 1)


def test_a_despawned_body_is_gone_and_makes_room_for_another(scene):
    made = jacked_in(scene)
    assert made.adapter.jack_out("ann", "despawn").avatar_state is AvatarState.DESTROYED
    death = made.adapter.handle_death("avatar-1")
    assert (death.cause, death.respawn_options) == ("despawned", ())
    assert not made.adapter.respawn("avatar-1", "new_world").success
    other = made.adapter.create_avatar("bob", AvatarSpec(name="Bob"))
    assert (other.avatar_id, other.death_count) == ("avatar-2", 0)
    assert made.adapter.list_avatars("ann") == []
    assert made.adapter.jack_in("bob", "avatar-2").success


def test_a_living_body_has_no_death(scene):
    made = jacked_in(scene)
    for wrong in ("avatar-1", "avatar-9"):
        with pytest.raises(UsageError):
            made.adapter.handle_death(wrong)


def test_looking_tells_what_is_in_view_and_takes_no_step(scene):
    made = scene(0).empty().stand(32, 32)
    made.put("tree", 32, 30)
    made.put("Zombie", 35, 32)
    made.look()
    look = lambda target: made.adapter.act(Action("look", {"target": target}))  # noqa: E731
    assert look("north").message == "To the north, without turning: grass, then tree, then grass."
    assert look("zombie").message == "In view: zombie (hostile), 3 east."
    assert look("tree").message == "In view: tree, the nearest 2 north."
    assert not look("diamond").success
    assert not made.adapter.act(Action("emote", {"emote": "wave"})).success
    assert "health 9" in made.adapter.act(Action("inspect_self")).message
    assert made.adapter.observe().step == 0


@pytest.mark.slow
def test_a_frame_by_day_is_the_one_that_the_original_draws(scene, original):
    made, theirs = scene(3, frame_size=180), original(3)
    theirs.reset()
    for action in ("move_left", "move_left", "move_up", "do", "sleep"):
        made.carry(energy=8, wood=4)
        theirs.player.inventory.update(energy=8, wood=4)
        made.adapter.act(Action(action))
        theirs.act(action)
    frame, chart = made.adapter.render().blocks
    assert isinstance(frame, ImageBlock)
    assert isinstance(chart, GridMapBlock)
    assert chart.rows == made.adapter.observe().local_map
    with Image.open(io.BytesIO(frame.png())) as picture:
        pixels = np.asarray(picture)
    theirs._size = np.array((180, 180))
    expected = crafter.Env.render(theirs)
    assert pixels.shape == expected.shape == (180, 180, 3)
    assert (pixels == expected).all()


def test_a_night_frame_is_the_same_twice_and_draws_nothing_from_the_game(scene):
    made = scene(3)
    made.game._step = 205
    made.game._update_time()
    before = made.adapter.snapshot()
    first = made.adapter.render().blocks[0].png()
    assert made.adapter.render().blocks[0].png() == first
    assert made.adapter.snapshot() == before


def test_without_frames_there_is_still_a_map(scene):
    (chart,) = scene(0, frame_size=0).adapter.render().blocks
    assert chart.legend["@"] == "you"


def test_the_catalogue_is_the_games():
    assert [a.name for a in ACHIEVEMENTS] == constants.achievements
    names = set(constants.achievements)
    assert set(PREREQUISITES) <= names
    assert {p for needed in PREREQUISITES.values() for p in needed} <= names
    evidence = [name for listed in SKILLS.values() for name in listed]
    assert set(evidence) <= names
    assert len(evidence) == len(set(evidence))


def test_listing_the_plugin_imports_neither_the_game_nor_numpy():
    program = (
        "import sys, wsap_crafter.plugin as p; a = list(p.wsap_adapters()); b = list(p.wsap_agents());"
        "print(a[0].name, b[0].name, sorted({'crafter', 'numpy', 'PIL', 'opensimplex'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "crafter crafter-survivor []"


def test_the_description_leaves_the_costs_to_the_actions_and_names_the_tools(scene):
    text = scene(0).adapter.game_description
    assert "make_" not in text
    assert "place_" not in text
    for rule in constants.collect.values():
        assert all(tool in text for tool in rule["require"] if tool.endswith("pickaxe"))
    assert constants.collect["tree"]["leaves"] == "grass"
    assert constants.collect["grass"]["probability"] == 0.1
