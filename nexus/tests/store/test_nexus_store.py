"""The nexus' books: what may be written in them, once, and by one writer, on SQLite and on PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import hub_kit
import pytest
import sqlalchemy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_migrations import server  # noqa: F401 (a fixture)

from wsap_core.errors import StorageError, UsageError, WsapError
from wsap_core.protocol import Avatar, AvatarState, PortableItem
from wsap_nexus.errors import AlreadyInWorldError, AvatarStateError, ConservationError, NotInWorldError
from wsap_nexus.hub.transit.entering import prepare_enter
from wsap_nexus.store.database import Database
from wsap_nexus.store.entities import EntryRequest, SessionRecord
from wsap_nexus.store.events import NexusEvent, OtherEvent
from wsap_nexus.store.nexus_store import NexusStore
from wsap_nexus.store.upkeep.prune import prune


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        with Database.open(tmp_path / "wsap.db") as opened:
            yield opened
        return
    url = request.getfixturevalue("server")
    name = "books_" + "".join(c if c.isalnum() else "_" for c in tmp_path.name)[-40:].lower()
    engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    with Database.open(url.replace("/postgres?", f"/{name}?")) as opened:
        yield opened


@pytest.fixture
def nexus_store(database: Database) -> NexusStore:
    found = NexusStore(database, wall_clock=lambda: 1_800_000_000.0)
    with found.change() as tx:
        tx.register("ada", name="Ada")
        tx.register("bob")
    return found


def enter(nexus_store: NexusStore, agent: str = "ada", *, world: str | None = None) -> SessionRecord:
    """Open a session in a world, as a transit would."""
    with nexus_store.change() as tx:
        world = world or tx.add_world("quarry", agent, 1, {}).id
        return tx.open_session(agent, "quarry", world, "digger-1", "run-1", EntryRequest())


def item(item_id: str, category: str = "tool", tier: int = 1) -> PortableItem:
    return PortableItem(item_id, "pick", category, tier)


def test_registering_a_known_id_returns_the_identity_as_it_is(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        again, new = tx.register("ada", name="Somebody else", persona="a thief")
    assert (again.name, again.persona, new) == ("Ada", "", False)


@pytest.mark.parametrize("agent_id", ["", "Ada", "../ada", "a" * 65, "-ada", "ada b", "ada\n", "ada\0"])
def test_an_id_that_could_mean_something_else_is_refused(nexus_store: NexusStore, agent_id: str) -> None:
    with pytest.raises(UsageError, match="can't be an agent's id"), nexus_store.change() as tx:
        tx.register(agent_id)


@pytest.mark.parametrize("name", ["a\x1b[31mb", "a\0b", "x" * 201, "two\nlines"])
def test_a_name_that_can_not_be_printed_is_refused(nexus_store: NexusStore, name: str) -> None:
    with pytest.raises(UsageError, match="can't be an agent's name"), nexus_store.change() as tx:
        tx.register("cyd", name=name)


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"state": "asleep"}, "its state is 'asleep'"),
        ({"place": "elsewhere"}, "its place is"),
        ({"lifetime_steps": -(2**31)}, "not a whole number"),
        ({"lifetime_steps": 1.5}, "not a whole number"),
        ({"playtime": float("nan")}, "not a finite number"),
        ({"persona": "a\0b"}, "not valid text"),
        ({"persona": "\ud800"}, "not valid text"),
        ({"persona": "x" * 200_001}, "the maximum is 200000"),
        ({"lore": {"core_memories": [float("inf")]}}, "not JSON"),
        ({"name": None}, "is missing"),
    ],
)
def test_a_value_that_a_column_is_not_for_is_refused_before_it_is_written(
    nexus_store: NexusStore, values: dict[str, object], complaint: str
) -> None:
    with pytest.raises(StorageError, match=complaint), nexus_store.change() as tx:
        tx.update_agent("ada", **values)


def test_an_agent_has_one_open_session_at_most(nexus_store: NexusStore) -> None:
    enter(nexus_store)
    with pytest.raises(AlreadyInWorldError):
        enter(nexus_store)
    with nexus_store.look() as tx:
        assert len(tx.sessions(agent_id="ada", only_open=True)) == 1


def test_a_session_is_closed_once(nexus_store: NexusStore) -> None:
    session = enter(nexus_store)
    with nexus_store.change() as tx:
        tx.close_session(session.id, reason="kicked", steps=3, stats={})
    with pytest.raises(NotInWorldError, match="already closed"), nexus_store.change() as tx:
        tx.close_session(session.id, reason="death", steps=4, stats={})
    with nexus_store.look() as tx:
        assert (tx.session(session.id).reason, tx.session(session.id).steps) == ("kicked", 3)


def test_one_of_many_who_prepare_the_same_way_at_once_gets_it(nexus_store: NexusStore) -> None:
    barrier = threading.Barrier(6)
    outcomes: list[object] = []

    def go() -> None:
        barrier.wait()
        try:
            with nexus_store.change() as tx:
                outcomes.append(prepare_enter(tx, "ada", hub_kit.QUARRY, EntryRequest()).transfer_id)
        except WsapError as error:
            outcomes.append(error)

    threads = [threading.Thread(target=go) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(o, str) for o in outcomes) == 1
    assert sum(isinstance(o, AlreadyInWorldError) for o in outcomes) == 5


def test_numbers_are_given_out_once_whoever_asks(nexus_store: NexusStore) -> None:
    given: list[int] = []

    def take() -> None:
        for _ in range(10):
            with nexus_store.change() as tx:
                given.append(tx.next_number("thing"))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(given) == list(range(1, 41))


def test_events_are_heard_in_their_order_and_only_when_they_are_committed(nexus_store: NexusStore) -> None:
    heard: list[NexusEvent] = []
    nexus_store.listen(heard.append)

    def fail() -> None:
        with nexus_store.change() as tx:
            tx.note(OtherEvent(kind="never"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with nexus_store.change() as tx:
        tx.note(OtherEvent(kind="first", agent_id="ada", data={"a": 1}))
        tx.note(OtherEvent(kind="second"))
        assert heard == []
    assert [(e.kind, e.body) for e in heard] == [("first", {"a": 1}), ("second", {})]
    with nexus_store.look() as tx:
        assert tx.events(kinds=("first", "second", "never")) == heard


def test_a_listener_that_stumbles_undoes_nothing_and_keeps_nobody_from_hearing(
    nexus_store: NexusStore, caplog: pytest.LogCaptureFixture
) -> None:
    def stumble(event: NexusEvent) -> None:
        raise ZeroDivisionError

    heard: list[NexusEvent] = []
    nexus_store.listen(stumble)
    nexus_store.listen(heard.append)
    with nexus_store.change() as tx:
        tx.note(OtherEvent(kind="told"))
    assert [e.kind for e in heard] == ["told"]
    assert "A listener failed" in caplog.text


def test_what_is_told_of_one_thing_that_moves_has_its_name(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        tx.mint_item("ada", replace(item("x"), name="iron sword"), game="quarry", session="")
        tx.move_items("ada", ["x"], from_place="escrow", to_place="lost", note="a dragon ate it")
        (told,) = tx.events(kinds=("item_moved",))
    assert (told.body["item_id"], told.body["name"]) == ("x", "iron sword")
    assert told.sentence() == "ada's iron sword was lost: a dragon ate it"


def test_an_item_can_not_leave_where_it_is_not(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        tx.mint_item("ada", item("x"), game="quarry", session="")
    for agent, place, where in (("bob", "escrow", None), ("ada", "world", "quarry-000001")):
        with pytest.raises(ConservationError), nexus_store.change() as tx:
            tx.move_items(agent, ["x"], from_place=place, from_id=where, to_place="lost")
        with pytest.raises(ConservationError), nexus_store.change() as tx:
            tx.move_items(agent, ["x", "y"], from_place=place, from_id=where, to_place="lost")
    with nexus_store.look() as tx:
        assert [(r.item.item_id, r.place) for r in tx.items("ada")] == [("x", "escrow")]


@pytest.mark.parametrize(
    "wrong", [item("elsewhere:1"), item("t:1", "magic"), item("t:1", tier=11), item("t:" + "x" * 30_000)]
)
def test_a_new_item_that_is_none_is_not_taken_in(nexus_store: NexusStore, wrong: PortableItem) -> None:
    with pytest.raises(ConservationError), nexus_store.change() as tx:
        tx.mint_item("ada", wrong, game="quarry", session="", transfer_id="t")


def test_an_item_is_found_once(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        tx.mint_item("ada", item("t:1"), game="quarry", session="", transfer_id="t")
    for agent in ("ada", "bob"):
        with pytest.raises(ConservationError, match="already"), nexus_store.change() as tx:
            tx.mint_item(agent, item("t:1"), game="quarry", session="", transfer_id="t")


def test_the_way_out_of_a_session_has_one_name_for_good(nexus_store: NexusStore) -> None:
    session = enter(nexus_store)
    with nexus_store.change() as tx:
        first = tx.prepare_leave(session)
    with nexus_store.change() as tx:
        tx.settle(first, "cancelled", why="a crash")
    with nexus_store.change() as tx:
        assert tx.prepare_leave(session) == first
        assert [row.id for row in tx.open_transfers()] == [first]
        tx.settle(first, "done")
    with pytest.raises(StorageError, match="already done"), nexus_store.change() as tx:
        tx.prepare_leave(session)


def test_a_transfer_taken_up_again_while_old_ones_are_pruned_is_kept(nexus_store: NexusStore) -> None:
    session = enter(nexus_store)
    with nexus_store.change() as tx:
        first = tx.prepare_leave(session)
        tx.settle(first, "cancelled", why="a crash")
    pruning = threading.Thread(target=prune, args=(nexus_store.database, 0))
    with nexus_store.change() as tx:
        tx.prepare_leave(session)
        pruning.start()
        if not nexus_store.database.is_sqlite:  # whose connections wait where nothing can see them
            here = "datname = current_database() AND wait_event_type = 'Lock'"
            waits = sqlalchemy.text(f"SELECT count(*) FROM pg_stat_activity WHERE {here}")
            with nexus_store.database.engine.connect() as looking:
                looking = looking.execution_options(isolation_level="AUTOCOMMIT")
                while not looking.execute(waits).scalar():
                    assert pruning.is_alive()
    pruning.join()
    with nexus_store.change() as tx:
        tx.settle(first, "done")


def test_an_unpublished_world_id_is_not_given_again(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        first = tx.add_world("quarry", "ada", 1, {}).id
        tx.drop_world(first)
    with nexus_store.change() as tx:
        assert tx.add_world("quarry", "ada", 1, {}).id != first


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=st.lists(st.sampled_from(list(AvatarState)), min_size=1, max_size=8), respawns=st.lists(st.booleans()))
@pytest.mark.slow
def test_bodies_become_only_what_they_can_become(
    tmp_path_factory: pytest.TempPathFactory, states: list[AvatarState], respawns: list[bool]
) -> None:
    legal = {
        ("unbound", "bound"), ("bound", "dormant"), ("bound", "suspended"), ("bound", "destroyed"),
        ("bound", "unbound"), ("dormant", "bound"), ("dormant", "destroyed"), ("suspended", "bound"),
        ("suspended", "destroyed"),
    }  # fmt: skip
    with Database.open(tmp_path_factory.mktemp("books") / "wsap.db") as database:
        nexus_store = NexusStore(database)
        with nexus_store.change() as tx:
            tx.register("ada")
            world = tx.add_world("quarry", "ada", 1, {}).id
            tx.put_avatar(world, "ada", Avatar("a", "quarry"))
        now = "unbound"
        for number, state in enumerate(states):
            respawning = number < len(respawns) and respawns[number]
            allowed = state.value == now or (now, state.value) in legal
            allowed |= now == "destroyed" and state is AvatarState.BOUND and respawning
            try:
                with nexus_store.change() as tx:
                    tx.put_avatar(world, "ada", Avatar("a", "quarry", None, state), respawning=respawning)
                assert allowed
                now = state.value
            except AvatarStateError:
                assert not allowed
        with nexus_store.look() as tx:
            assert tx.avatars("ada")[0].avatar.state.value == now


def test_somebody_elses_body_can_not_be_taken(nexus_store: NexusStore) -> None:
    with nexus_store.change() as tx:
        world = tx.add_world("quarry", "ada", 1, {}).id
        tx.put_avatar(world, "ada", Avatar("a", "quarry"))
    with pytest.raises(AvatarStateError, match="belongs to another agent"), nexus_store.change() as tx:
        tx.put_avatar(world, "bob", Avatar("a", "quarry", "bob", AvatarState.BOUND))


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT * FROM nexus_event WHERE seq > 5 AND agent_id = 'a' ORDER BY seq LIMIT 9", "nexus_event_agent"),
        ("SELECT * FROM nexus_event WHERE seq > 5 AND kind = 'left' ORDER BY seq LIMIT 9", "nexus_event_kind"),
        ("SELECT * FROM transfer WHERE state = 'prepared'", "transfer_open"),
        ("SELECT * FROM session WHERE agent_id = 'a' ORDER BY id DESC LIMIT 5", "session_agent"),
        ("SELECT game, count(*) FROM session WHERE agent_id = 'a' GROUP BY game", "session_visits"),
        ("SELECT id FROM session WHERE world_id = 'w' LIMIT 1", "session_world"),
    ],
)
def test_what_is_asked_often_is_looked_up_by_an_index(tmp_path: Path, query: str, index: str) -> None:
    with Database.open(tmp_path / "wsap.db") as database, database.read() as connection:
        plan = " ".join(str(row[-1]) for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}"))
    assert f"INDEX {index}" in plan


@pytest.mark.parametrize("word", ["owner", "Owner", "a person", "A-Person", "the_system", "everyone", "user", "nexus"])
def test_no_agent_is_called_like_others_who_speak_or_hear(database: Database, word: str) -> None:
    store = NexusStore(database)
    with store.change() as tx:
        tx.register("ada", name="Owner of the mill")
    with pytest.raises(UsageError, match="is reserved"), store.change() as tx:
        tx.register("cleo", name=word)
    with pytest.raises(UsageError, match="is reserved"), store.change() as tx:
        tx.update_agent("ada", name=word)
    if word == word.lower() and " " not in word:
        with pytest.raises(UsageError, match="is reserved"), store.change() as tx:
            tx.register(word)
    with store.look() as tx:
        assert [(agent.id, agent.name) for agent in tx.agents()] == [("ada", "Owner of the mill")]
