"""Who agents are, who decides for them, where it is good to go, and how dead bodies live again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from life_kit import Place, at_desk, host_with, nexus_at

from wsap_core.errors import UnknownNameError, UsageError
from wsap_core.protocol import Action, Bonus, TransferRule
from wsap_core.specs import AdapterSpec
from wsap_nexus.agents.identity import seat_plan, set_persona, set_policy
from wsap_nexus.agents.metagoals import TEMPLATES, advance, own_goal, pursuits, set_goal
from wsap_nexus.agents.skills import GameEntry, suggestions
from wsap_nexus.hub.nexus import Nexus, Settings
from wsap_nexus.runs.store import open_store
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EXTERNAL, AgentIdentity, EntryRequest, Policy, SessionRecord
from wsap_nexus.store.events.sessions import Entered
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.worlds.game_info import GameInfo

pytestmark = pytest.mark.every_database

HOST = host_with()


@pytest.fixture
def nexus_store(tmp_path: Path) -> Iterator[NexusStore]:
    with Database.open(str(tmp_path / "a.db")) as database:
        found = NexusStore(database, wall_clock=lambda: 1_000_000.0)
        with found.change() as tx:
            tx.register("ida", persona="You are Ida.")
        yield found


# --- who it is, and who decides -----------------------------------------------------------------------


def test_a_persona_is_edited_and_what_it_was_is_in_the_log(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_persona(tx, "ida", " You are Ida, a sailor. ")
        assert tx.agent("ida").persona == "You are Ida, a sailor."
        set_persona(tx, "ida", "You are Ida, a sailor.")
        (event,) = tx.events(kinds=("persona_changed",))
        assert event.body["before"] == "You are Ida."
        with pytest.raises(UnknownNameError):
            set_persona(tx, "nobody", "x")


def test_who_decides_is_set_for_a_game_for_the_nexus_and_for_everywhere_else(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        set_policy(tx, "ida", "crafter", Policy("random"), HOST)
        set_policy(tx, "ida", "nexus", Policy("wanderer", {"curiosity": 0.5}), HOST)
        set_policy(tx, "ida", "*", EXTERNAL, HOST)
        agent = tx.agent("ida")
        assert [agent.policy(game) for game in ("crafter", "nexus", "echo")] == [
            Policy("random"),
            Policy("wanderer", {"curiosity": 0.5}),
            EXTERNAL,
        ]
        set_policy(tx, "ida", "crafter", None, HOST)
        assert tx.agent("ida").policy("crafter") == EXTERNAL
        assert [e.game for e in tx.events(kinds=("policy_changed",))] == ["crafter", "nexus", "*", "crafter"]


@pytest.mark.parametrize(
    ("game", "policy", "what"),
    [("atlantis", Policy("random"), "atlantis"), ("crafter", Policy("nobody-such"), "nobody-such")],
)
def test_a_game_or_a_decider_that_there_is_not_is_refused(
    nexus_store: NexusStore, game: str, policy: Policy, what: str
) -> None:
    with nexus_store.change() as tx, pytest.raises(UnknownNameError, match=what):
        set_policy(tx, "ida", game, policy, HOST)


def test_keys_are_not_kept_in_a_policy(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        options = {"model": "scripted/a", "model.api_key": "sk-123456789"}
        set_policy(tx, "ida", "*", Policy("llm", options), HOST)
        assert "sk-123456789" not in str(tx.agent("ida").policies)
        assert "sk-123456789" not in str(tx.events())


def test_a_persona_goes_to_models_unless_they_have_one_and_is_never_taken_for_a_files_name() -> None:
    def persona(own: str, **options: object) -> object:
        agent = AgentIdentity("ida", "Ida", "", persona=own, policies={"*": Policy("llm", options)})
        return seat_plan("ida", agent, "echo", "random").options.get("persona")

    assert persona("You are Ida.") == "You are Ida."
    assert persona("You are Ida.", persona="You are somebody else.") == "You are somebody else."
    assert persona("@/etc/passwd") == " @/etc/passwd"
    assert persona("") is None
    ruled = AgentIdentity("ida", "Ida", "", persona="You are Ida.", policies={"*": Policy("random")})
    assert seat_plan("ida", ruled, "echo", "echo").options == {}


# --- where it is good to go ---------------------------------------------------------------------------


def game(name: str, *domains: str) -> GameInfo:
    return GameInfo(name, name, "", skill_domains=domains)


def entry(name: str, visits: int = 0, status: str = "available", bodies: tuple[str, ...] = ()) -> GameEntry:
    return GameEntry(name, name, "", status, visits=visits, avatars=bodies)


def order(found: list[object]) -> list[str]:
    return [suggestion.game for suggestion in found]  # type: ignore[attr-defined]


def test_what_was_never_seen_comes_first_and_what_is_closed_not_at_all() -> None:
    worlds = [entry("a", 3), entry("b"), entry("c", status="offline")]
    found = suggestions(worlds, [game("a"), game("b"), game("c")], skills={})
    assert order([*found]) == ["b", "a"]
    assert found[0].reasons == ("you have never been there",)


def test_where_there_is_more_to_learn_comes_before_where_there_is_nothing() -> None:
    worlds = [entry("a", 1), entry("b", 1)]
    infos = [game("a", "combat"), game("b")]
    assert order([*suggestions(worlds, infos, skills={})]) == ["a", "b"]


def test_goals_lead_where_they_are_still_to_be_done(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        tx.note(Entered(agent_id="ida", game="x", session_id="s"))
        set_goal(tx, "ida", own_goal("both", "", "visit_game", games="a,b"), ("a", "b"))
        tx.note(Entered(agent_id="ida", game="a", session_id="s"))
        advance(tx, "ida")
        held = pursuits(tx, "ida", "active")
    worlds = [entry("a", 1, bodies=("avatar-1 (dormant)",)), entry("b", 1)]
    found = suggestions(worlds, [game("a"), game("b")], skills={}, pursuits=held)
    assert order([*found]) == ["b", "a"]
    assert found[0].reasons == ("it counts for your goal 'both'",)


def test_a_goal_of_a_skill_leads_where_it_grows(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        held = [set_goal(tx, "ida", TEMPLATES["artisan"], ("a", "b"))]
    infos = [game("a", "combat"), game("b", "crafting")]
    found = suggestions([entry("a", 1), entry("b", 1)], infos, skills={}, pursuits=held)
    assert found[0].game == "b"
    assert "your goal 'artisan' needs crafting, which you can improve there" in found[0].reasons


def test_a_skill_that_is_worth_something_there_and_where_one_just_was_count() -> None:
    rules = (TransferRule("r", "combat", 0.3, Bonus("item", "sword")),)
    specs = {"a": AdapterSpec("a", "", "", transfer_rules=rules), "b": AdapterSpec("b", "", "")}
    worlds, infos = [entry("a", 1), entry("b", 1)], [game("a"), game("b")]
    found = suggestions(worlds, infos, skills={"combat": 0.3}, specs=specs)
    assert "your combat is an advantage there" in found[0].reasons
    assert found[0].game == "a"
    before = [SessionRecord("s", "ida", "a", "w", "v", "r", "")]
    even = suggestions(worlds, infos, skills={"combat": 0.29}, specs=specs)
    after = suggestions(worlds, infos, skills={"combat": 0.29}, specs=specs, sessions=before)
    assert [s.score for s in even] == [s.score for s in even[::-1]]
    assert order([*after]) == ["b", "a"]


def test_scores_are_from_0_to_1_and_the_same_for_the_same_facts() -> None:
    worlds = [entry(name, visits) for name, visits in (("a", 0), ("b", 9), ("c", 2), ("d", 0))]
    infos = [game(name, "combat", "crafting", "survival") for name in "abcd"]
    first = suggestions(worlds, infos, skills={"combat": 0.9})
    assert first == suggestions(worlds[::-1], infos[::-1], skills={"combat": 0.9})
    assert all(0 <= s.score <= 1 for s in first)
    assert order([*first]) == ["a", "d", "c", "b"]


# --- bodies that died ---------------------------------------------------------------------------------


def test_who_died_is_told_how_to_live_again_and_does_so_on_request(tmp_path: Path) -> None:
    async def until_dead(place: Place) -> None:
        await place.nexus.enter("ida", "crafter", EntryRequest())
        (left,) = await place.until_events("left")
        assert left.body["reason"] == "death"

    async def test() -> None:
        policies = {"nexus": EXTERNAL, "crafter": Policy("random")}
        async with nexus_at(tmp_path, {"ida": policies}, host=HOST, games=("crafter",)) as place:
            await until_dead(place)
            desk = at_desk(place.nexus, "ida")
            around = desk.observe()
            (death,) = around.recent_events
            assert " died of " in death.description
            assert "It can respawn: new_world (lose_inventory" in death.description
            assert around.games[0].avatars == ("avatar-1 (destroyed)",)
            details = (await desk.act(Action("game_details", {"game": "crafter"}))).message
            assert "avatar-1" in details
            assert "is destroyed. It can respawn: new_world" in details

            with pytest.raises(UsageError, match="new_world"):
                await place.nexus.enter("ida", "crafter", EntryRequest(avatar="avatar-1", respawn="a spell"))
            terms = EntryRequest(avatar="avatar-1", respawn="new_world", exit_when="step >= 3")
            stay = await place.nexus.enter("ida", "crafter", terms)
            entered = place.events("entered")[-1]
            assert (entered.body["respawned"], entered.body["avatar"]) == (True, stay.session.avatar_id)
            await place.until_events("left", 2)
            with place.nexus.nexus_store.look() as tx:
                first, second = tx.sessions(agent_id="ida")[::-1]
                assert first.world_id == second.world_id
                assert second.steps == 3

    asyncio.run(test())


def test_a_nexus_that_was_never_started_can_be_asked_about_its_agents(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "nexus.db")) as store:
        nexus = Nexus(HOST, store, Settings(games=("echo",)))
        with nexus.nexus_store.change() as tx:
            tx.register("ida")
        assert nexus.agent_context.words.diary("ida") == []
        with pytest.raises(UnknownNameError):
            nexus.agent_context.words.diary("nobody")
        answer = asyncio.run(nexus.agent_context.words.talk("ida", "Who are you?"))
        rules = "Rules decide for ida, so it can't answer. The nexus knows: I am ida, "
        assert (answer.how, str(answer)[: len(rules)]) == ("facts", rules)
        for text in ("", "  ", "x" * 2001):
            with pytest.raises(UsageError):
                asyncio.run(nexus.agent_context.words.talk("ida", text))
