"""Meta-goals: counted from the nexus' log and never away from it, granted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from life_kit import recounted

from wsap_core.errors import UsageError
from wsap_core.protocol import PortableItem
from wsap_nexus.agents import metagoals
from wsap_nexus.agents.metagoals import TEMPLATES, MetaGoal, Requirement, Reward, advance, own_goal, pursuits, set_goal
from wsap_nexus.agents.requirements import TYPES
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import SkillGain
from wsap_nexus.store.events.sessions import Entered, Left
from wsap_nexus.store.nexus_store import NexusStore, Transaction

pytestmark = pytest.mark.every_database

GAMES = ("crafter", "echo", "matrix")


@pytest.fixture
def nexus_store(tmp_path: Path) -> Iterator[NexusStore]:
    with Database.open(str(tmp_path / "a.db")) as database:
        found = NexusStore(database, wall_clock=lambda: 1_000_000.0)
        with found.change() as tx:
            tx.register("ida")
            tx.register("udo")
        yield found


def left(tx: Transaction, game: str, steps: int = 10, agent: str = "ida", **done: int) -> None:
    """Write what leaving a world writes."""
    named = {key.replace("_", ":", 1): times for key, times in done.items()}
    tx.note(Left(agent_id=agent, game=game, session_id="s", steps=steps, done=named))


def entered(tx: Transaction, game: str, agent: str = "ida") -> None:
    tx.note(Entered(agent_id=agent, game=game, session_id="s"))


def progress(nexus_store: NexusStore, goal_id: str, agent: str = "ida") -> str:
    with nexus_store.look() as tx:
        return next(p for p in pursuits(tx, agent) if p.goal.id == goal_id).progress


def state(nexus_store: NexusStore, goal_id: str, agent: str = "ida") -> str:
    with nexus_store.look() as tx:
        return next(p for p in pursuits(tx, agent) if p.goal.id == goal_id).state


def test_surviving_counts_the_longest_stay_and_never_several_together(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_goal(tx, "ida", TEMPLATES["endurance"], GAMES)
        for steps in (60, 60, 99):
            left(tx, "crafter", steps)
        advance(tx, "ida")
    assert progress(nexus_store, "endurance") == "0/3"
    with nexus_store.change() as tx:
        for game in GAMES:
            left(tx, game, 100)
        assert [goal.id for goal in advance(tx, "ida")] == ["endurance"]
    assert state(nexus_store, "endurance") == "reached"
    assert progress(nexus_store, "endurance") == "3/3"


def test_every_world_means_those_that_there_were_when_the_goal_was_set(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        entered(tx, "crafter")
        pursuit = set_goal(tx, "ida", TEMPLATES["traveller"], GAMES[:2])
        assert (pursuit.progress, pursuit.missing()) == ("0/2", ["crafter", "echo"])
        entered(tx, "matrix")
        entered(tx, "echo")
        assert not advance(tx, "ida")
        assert pursuits(tx, "ida")[0].missing() == ["crafter"]
        entered(tx, "crafter")
        assert advance(tx, "ida")


def test_a_level_that_one_has_already_reaches_the_goal_at_once(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        tx.add_gain("ida", "crafter", "s", SkillGain("crafting", "action:x", 1, 0.85, 0.85))
        pursuit = set_goal(tx, "ida", TEMPLATES["artisan"], GAMES)
    assert (pursuit.state, pursuit.progress) == ("reached", "0.8/0.8")


def test_a_level_on_the_way_is_shown_as_it_is(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_goal(tx, "ida", TEMPLATES["artisan"], GAMES)
        tx.add_gain("ida", "crafter", "s", SkillGain("crafting", "action:x", 1, 0.25, 0.25))
        tx.add_gain("ida", "crafter", "s", SkillGain("combat", "action:y", 1, 0.9, 0.9))
        advance(tx, "ida")
    assert progress(nexus_store, "artisan") == "0.25/0.8"


def test_different_achievements_are_counted_once_each_and_a_named_one_each_time(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_goal(tx, "ida", own_goal("many", "", "earn_achievement", count=3), GAMES)
        set_goal(tx, "ida", own_goal("wood", "", "earn_achievement", what="wood", count=5), GAMES)
        left(tx, "crafter", achievement_wood=4, achievement_stone=1, action_wood=9)
        left(tx, "echo", achievement_wood=1)
        reached = advance(tx, "ida")
    assert [goal.id for goal in reached] == ["many", "wood"]


def test_actions_in_a_list_of_games_take_the_count_in_each_of_them(nexus_store: NexusStore) -> None:
    goal = own_goal("dig", "", "complete_action", what="dig", count=3, games="crafter, echo")
    with nexus_store.change() as tx:
        set_goal(tx, "ida", goal, GAMES)
        left(tx, "crafter", action_dig=9)
        left(tx, "echo", action_dig=2)
        left(tx, "matrix", action_dig=9)
        advance(tx, "ida")
        assert pursuits(tx, "ida")[0].progress == "1/2"
        left(tx, "echo", action_dig=1)
        assert advance(tx, "ida") == [goal]


def test_things_are_counted_by_category_or_name_and_rewards_are_not(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_goal(tx, "ida", own_goal("tools", "", "collect_items", what="tool", count=2), GAMES)
        tx.mint_item("ida", PortableItem("t:1", "pick", "tool"), game="crafter", session="s")
        tx.mint_item("ida", PortableItem("t:2", "gem", "material"), game="crafter", session="s")
        tx.mint_item("ida", PortableItem("t:3", "prize", "tool"), game="nexus", session="")
        advance(tx, "ida")
    assert progress(nexus_store, "tools") == "1/2"


def test_what_others_do_and_what_was_before_counts_for_nothing(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        left(tx, "crafter", 500, action_dig=5)
        set_goal(tx, "ida", own_goal("dig", "", "complete_action", what="dig", count=5), GAMES)
        left(tx, "crafter", 500, agent="udo", action_dig=5)
        advance(tx, "ida")
    assert progress(nexus_store, "dig") == "0/5"


def test_a_reward_is_granted_once_however_often_and_by_whomever_it_is_counted(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_goal(tx, "ida", TEMPLATES["traveller"], ("echo",))
        entered(tx, "echo")
        advance(tx, "ida")
        advance(tx, "ida")
    for _ in range(3):
        with nexus_store.change() as tx:
            entered(tx, "echo")
            advance(tx, "ida")
    with nexus_store.look() as tx:
        assert [r.item.name for r in tx.items("ida", place="escrow")] == ["Token of travel"]
        assert [(row.game, row.name, row.times) for row in tx.achievements("ida")] == [("nexus", "well-travelled", 1)]
        assert len(tx.events(kinds=("meta_goal_reached",))) == 1


def test_a_reward_is_not_granted_where_the_transaction_comes_to_nothing(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_goal(tx, "ida", TEMPLATES["traveller"], ("echo",))

    def go_down() -> None:
        with nexus_store.change() as tx:
            entered(tx, "echo")
            assert advance(tx, "ida")
            raise RuntimeError("the power went")

    with pytest.raises(RuntimeError):
        go_down()
    with nexus_store.look() as tx:
        assert not tx.items("ida")
        assert pursuits(tx, "ida")[0].state == "active"
    with nexus_store.change() as tx:
        entered(tx, "echo")
        assert advance(tx, "ida")
    with nexus_store.look() as tx:
        assert len(tx.items("ida")) == 1


def test_a_goal_that_was_reached_cannot_be_set_again_and_one_that_was_given_up_begins_anew(
    nexus_store: NexusStore,
) -> None:
    dig = own_goal("dig", "", "complete_action", what="dig", count=2)
    with nexus_store.change() as tx:
        set_goal(tx, "ida", dig, GAMES)
        left(tx, "crafter", action_dig=1)
        advance(tx, "ida")
        metagoals.abandon_goal(tx, "ida", "dig")
        assert set_goal(tx, "ida", dig, GAMES).progress == "0/2"
        left(tx, "crafter", action_dig=2)
        advance(tx, "ida")
        with pytest.raises(UsageError, match="already reached 'dig'"):
            set_goal(tx, "ida", dig, GAMES)
        with pytest.raises(UsageError, match="You have no goal 'dig'"):
            metagoals.abandon_goal(tx, "ida", "dig")


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        (own_goal("x", "", "win"), "Unknown type of meta-goal: 'win'"),
        (own_goal("x", "", "complete_action"), "needs the name of an action"),
        (own_goal("x", "", "reach_skill_level", what="juggling", count=0.5), "needs one of exploration"),
        (own_goal("x", "", "reach_skill_level", what="combat", count=80), "at most 1"),
        (own_goal("x", "", "visit_game", count=0), "above 0"),
        (own_goal("x", "", "visit_game", count=float("nan")), "above 0"),
        (own_goal("x", "", "visit_game", games="atlantis"), "no world 'atlantis'"),
        (own_goal("x", "", "visit_game", games="echo,echo"), "each game only once"),
        (own_goal("x", "", "visit_game", games="echo", worlds=2), "more worlds than it names"),
        (own_goal("Not A Name", "", "visit_game"), "Invalid name of a meta-goal"),
    ],
)
def test_a_goal_that_cannot_be_counted_is_refused_with_the_reason(
    nexus_store: NexusStore, goal: MetaGoal, why: str
) -> None:
    with pytest.raises(UsageError, match=why), nexus_store.change() as tx:
        set_goal(tx, "ida", goal, GAMES)


def test_one_has_at_most_ten_goals_at_a_time(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        for number in range(metagoals.MOST_ACTIVE):
            set_goal(tx, "ida", own_goal(f"g{number}", "", "visit_game", count=9), GAMES)
        with pytest.raises(UsageError, match="which is the limit"):
            set_goal(tx, "ida", own_goal("one-more", "", "visit_game"), GAMES)
        metagoals.abandon_goal(tx, "ida", "g3")
        set_goal(tx, "ida", own_goal("one-more", "", "visit_game", count=9), GAMES)


def test_several_requirements_have_to_be_met_all(nexus_store: NexusStore) -> None:
    parts = (Requirement("visit_game"), Requirement("complete_action", "dig", 2))
    with nexus_store.change() as tx:
        set_goal(tx, "ida", MetaGoal("both", "Both", parts), GAMES)
        entered(tx, "echo")
        assert not advance(tx, "ida")
        assert pursuits(tx, "ida")[0].progress == "1/2 (1/1; 0/2)"
        left(tx, "echo", action_dig=2)
        assert advance(tx, "ida")


# --- never away from the log ------------------------------------------------------------------------

_requirements = st.builds(
    Requirement,
    st.sampled_from([t for t in TYPES if t != "reach_skill_level"]),
    st.sampled_from(["dig", "wood", "tool"]),
    st.integers(1, 12),
    st.sampled_from(["any", "all", ("crafter",), ("crafter", "echo")]),
    st.integers(0, 1),
) | st.builds(Requirement, st.just("reach_skill_level"), st.just("combat"), st.sampled_from([0.1, 0.5, 0.9]))

_happenings = st.lists(
    st.one_of(
        st.tuples(st.just("entered"), st.sampled_from(GAMES), st.sampled_from(["ida", "udo"])),
        st.tuples(st.just("left"), st.sampled_from(GAMES), st.integers(0, 12), st.integers(0, 3), st.integers(0, 2)),
        st.tuples(st.just("gain"), st.sampled_from(["combat", "crafting"]), st.floats(0.01, 1.0)),
        st.tuples(st.just("item"), st.sampled_from(["tool", "weapon"]), st.sampled_from([*GAMES, "nexus"])),
        st.tuples(st.just("advance")),
        st.tuples(st.just("commit")),
    ),
    max_size=25,
)


def reference(requirement: Requirement, since: int, log: list[tuple[int, tuple[object, ...]]]) -> bool:
    """Say whether a requirement is met, by looking at everything that happened, in another way than the code does."""
    mine = [(seq, what) for seq, what in log if what[0] != "entered" or what[2] == "ida"]
    if requirement.type == "reach_skill_level":
        levels = [what[2] for _, what in mine if what[0] == "gain" and what[1] == requirement.what]
        return bool(levels) and float(str(levels[-1])) >= requirement.count
    after = [what for seq, what in mine if seq > since]
    per: dict[str, int] = {}
    for game in GAMES:
        stays = [w for w in after if w[0] == "left" and w[1] == game]
        per[game] = {
            "survive_steps": max((int(str(w[2])) for w in stays), default=0),
            "visit_game": sum(1 for w in after if w[0] == "entered" and w[1] == game),
            "earn_achievement": sum(int(str(w[4])) for w in stays) if requirement.what == "wood" else 0,
            "complete_action": sum(int(str(w[3])) for w in stays) if requirement.what == "dig" else 0,
            "collect_items": sum(1 for w in after if w[0] == "item" and w[1] == requirement.what and w[2] == game),
        }[requirement.type]
    where = GAMES if isinstance(requirement.games, str) else requirement.games
    if requirement.games == "any" and not requirement.worlds:
        total = max(per.values()) if requirement.type == "survive_steps" else sum(per.values())
        return total >= requirement.count
    met = sum(1 for game in where if per[game] >= requirement.count)
    return met >= (requirement.worlds or len(where))


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requirement=_requirements, before=_happenings, after=_happenings)
def test_progress_is_what_the_whole_log_gives_whenever_it_was_counted(
    tmp_path_factory: pytest.TempPathFactory,
    requirement: Requirement,
    before: list[tuple[object, ...]],
    after: list[tuple[object, ...]],
) -> None:
    log: list[tuple[int, tuple[object, ...]]] = []
    items = 0

    def happen(tx: Transaction, what: tuple[object, ...]) -> None:
        nonlocal items
        if what[0] == "entered":
            entered(tx, str(what[1]), str(what[2]))
        elif what[0] == "left":
            left(tx, str(what[1]), int(str(what[2])), action_dig=int(str(what[3])), achievement_wood=int(str(what[4])))
        elif what[0] == "gain":
            tx.add_gain("ida", "crafter", "s", SkillGain(str(what[1]), "action:x", 1, 0.01, float(str(what[2]))))
        elif what[0] == "item":
            items += 1
            item = PortableItem(f"t:{items}", "thing", str(what[1]))
            tx.mint_item("ida", item, game=str(what[2]), session="")
        elif what[0] == "advance":
            advance(tx, "ida")
        log.append((tx.last_seq(), what))

    with Database.open(str(tmp_path_factory.mktemp("goals") / "a.db")) as database:
        nexus_store = NexusStore(database, wall_clock=lambda: 0.0)
        with nexus_store.change() as tx:
            tx.register("ida")
            tx.register("udo")
            for what in before:
                happen(tx, what)
        goal = MetaGoal("it", "It", (requirement,), Reward("title", "prize"))
        with nexus_store.change() as tx:
            since = set_goal(tx, "ida", goal, GAMES).since
        batch: list[tuple[object, ...]] = []
        met = reference(requirement, since, log)
        for what in [*after, ("commit",)]:
            batch.append(what)
            if what[0] != "commit":
                continue
            with nexus_store.change() as tx:
                for one in batch:
                    happen(tx, one)
                    met = met or (one[0] == "advance" and reference(requirement, since, log))
                advance(tx, "ida")
                met = met or reference(requirement, since, log)
            batch = []
            with nexus_store.look() as tx:
                (pursuit,) = pursuits(tx, "ida")
                assert recounted(tx, "ida", pursuit) == pursuit.tallies
                assert (pursuit.state == "reached") is met
                assert len([r for r in tx.items("ida") if r.item.name == "prize"]) == int(met)


def test_what_is_kept_of_a_goal_comes_back_as_it_was(nexus_store: NexusStore) -> None:
    goal = replace(
        TEMPLATES["collector"], requirements=(Requirement("collect_items", "tool", 3, ("echo", "matrix"), 1),)
    )
    with nexus_store.change() as tx:
        set_goal(tx, "ida", goal, GAMES)
        found = pursuits(tx, "ida")[0]
    assert (found.goal, found.games, found.state) == (goal, GAMES, "active")
