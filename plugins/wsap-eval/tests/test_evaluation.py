"""An evaluation from its command to its lines."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from wsap_core.errors import RunInterruptedError, StorageLockedError, UnknownNameError, UsageError
from wsap_core.host import PluginHost
from wsap_core.seams.model_errors import BackendError
from wsap_eval import frames
from wsap_eval.commands.live import Live
from wsap_eval.jobs.runner import Progress, Reports
from wsap_eval.planning.plan import Plan, games_of
from wsap_eval.planning.suite import (
    Entrant,
    GameEntry,
    Seeds,
    Suite,
    composed,
    folder_of,
    load_suite,
    read_entrant,
    shipped_suites,
)
from wsap_eval.records import SCORE_COLUMNS, EpisodeKey, EpisodeRecord
from wsap_eval.results import Results, read_results
from wsap_eval.run import Evaluation, evaluate

ROOMS = GameEntry(game="minigrid", steps=200, metric="levels")


def suite(*agents: str, seeds: int = 2, **changes: object) -> Suite:
    entrants = tuple(Entrant(agent=agent) for agent in agents)
    return Suite(name="rooms", games=(ROOMS,), seeds=Seeds(count=seeds)).model_copy(
        update={"entrants": entrants, **changes}
    )


def scores(records: Sequence[EpisodeRecord]) -> list[list[object]]:
    return [[getattr(record, column) for column in SCORE_COLUMNS] for record in records]


@pytest.mark.slow
def test_the_finder_solves_what_random_play_does_not_and_nothing_is_played_twice(tmp_path: Path) -> None:
    told: list[Progress] = []
    one = suite("minigrid-finder", seeds=1)
    first = evaluate(Evaluation(one, one.entrants), tmp_path, Reports(progress=told.append)).records
    assert [(r.value, r.outcome) for r in first] == [(8.0, "finished")]
    more = suite("minigrid-finder", "random")
    second = evaluate(Evaluation(more, more.entrants), tmp_path, Reports(progress=told.append)).records
    assert [(p.played, p.of) for p in told] == [(1, 1), (2, 4), (3, 4), (4, 4)]
    assert second[0] == first[0]  # the seconds, too
    by_entrant = {r.key: (r.value, r.outcome) for r in second}
    assert by_entrant[EpisodeKey("minigrid", "minigrid-finder", 1)] == (8.0, "finished")
    assert by_entrant[EpisodeKey("minigrid", "random", 0)] == (0.0, "step_limit")
    kept, episodes = read_results(tmp_path)
    assert kept.digest == more.digest
    assert sorted(by_entrant) == list(episodes)


@pytest.mark.slow
def test_a_line_that_was_cut_off_is_played_again_to_the_same_scores(tmp_path: Path) -> None:
    both = suite("random")
    before = evaluate(Evaluation(both, both.entrants), tmp_path).records
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    after = evaluate(Evaluation(both, both.entrants), tmp_path).records
    assert scores(after) == scores(before)


@pytest.mark.slow
def test_results_of_another_suite_are_refused(tmp_path: Path) -> None:
    with Results(tmp_path, suite("random")), pytest.raises(StorageLockedError, match="wait for it"):
        Results(tmp_path, suite("random"))
    with Results(tmp_path, suite("random", forfeit=0.5)):
        pass  # nothing was played of the first
    one = suite("random", seeds=1)
    evaluate(Evaluation(one, one.entrants), tmp_path)
    with pytest.raises(
        UsageError, match="earlier form of the suite 'rooms' with another value for forfeit; their scores"
    ):
        Results(tmp_path, suite("random", forfeit=0.5))
    with pytest.raises(UsageError, match="version 1 of the suite 'rooms', and this is version 2"):
        Results(tmp_path, suite("random", version=2))


@pytest.mark.slow
def test_results_of_another_agent_under_the_same_label_are_refused_and_left_as_they_are(tmp_path: Path) -> None:
    one = suite("random", seeds=1)
    evaluate(Evaluation(one, one.entrants), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.json*")}
    posing = suite("random", seeds=1, entrants=(Entrant(agent="minigrid-finder", label="random"),))
    with pytest.raises(UsageError, match="of 'random' in 'minigrid' played by another agent"):
        evaluate(Evaluation(posing, posing.entrants), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.json*")} == before


def test_the_seat_of_each_follows_from_the_seed_wherever_the_seeds_begin() -> None:
    host = PluginHost.discovered()
    entry = GameEntry(game="matrix", against="tit-for-tat", seat="each")
    who = (Entrant(agent="random"),)

    def seats(first: int) -> dict[int, str]:
        given = Suite(name="each", games=(entry,), entrants=who, seeds=Seeds(first=first, count=3))
        jobs = Plan(given, games_of(given, host), who, host)
        return {job.key.seed: next(name for name, sits in job.seats.items() if sits == who[0]) for job in jobs}

    assert seats(0) == {0: "row", 1: "column", 2: "row"}
    assert seats(1) == {1: "column", 2: "row", 3: "column"}


def test_nobody_can_be_played_against_in_a_game_of_one_seat() -> None:
    given = suite("random", games=(GameEntry(game="minigrid", against="random"),))
    with pytest.raises(UsageError, match="'minigrid' has only one seat, so it takes no opponent"):
        games_of(given, PluginHost.discovered())


def test_shipped_suites_load_and_a_private_range_draws_its_own_seeds() -> None:
    assert all(load_suite(name).name == name for name in shipped_suites())
    drawn = Seeds(count=100, salt="ours").numbers()
    assert len(set(drawn)) == 100
    assert drawn != Seeds(count=100, salt="theirs").numbers()


def test_a_private_range_has_as_many_seeds_as_asked_for_though_two_numbers_draw_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("wsap_eval.planning.suite._salted", lambda salt, index: index // 2)
    assert Seeds(count=5, salt="ours").numbers() == (0, 1, 2, 3, 4)
    assert Seeds(count=9, salt="ours").numbers()[:5] == (0, 1, 2, 3, 4)


def test_spaces_around_a_label_make_no_other_row() -> None:
    assert read_entrant("random,label= R ").name == "R"
    with pytest.raises(UsageError, match="two entrants are called 'random'"):
        composed(None, games=["minigrid"], entrants=[read_entrant("random"), read_entrant("random,label=random ")])


@pytest.mark.parametrize(
    ("suites_name", "folder"),
    [
        ("my suite", "my suite"),
        ("../../x", "x"),
        ("/etc/x", "etc-x"),
        ("a+b", "a+b"),
        ("./a.py:B", "a.py-B"),
        ("..", "suite"),
    ],
)
def test_results_stay_in_their_folder_whatever_a_suite_is_called(suites_name: str, folder: str) -> None:
    assert folder_of(Suite(name=suites_name, games=(ROOMS,)), suites_name) == Path("wsap-eval", folder)


def test_an_entrant_is_read_with_its_options() -> None:
    entrant = read_entrant("ollama/qwen3:8b,temperature=0,label=Qwen")
    assert (entrant.name, entrant.agent, entrant.options) == ("Qwen", "ollama/qwen3:8b", {"temperature": "0"})
    with pytest.raises(UsageError, match="expected for example random or"):
        read_entrant("random,oops")
    with pytest.raises(UsageError, match="gives an option twice"):
        read_entrant("random,label=a,label=b")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("format = 7", "has format 7; this version reads 1"),
        ("wat = 3", "is invalid at wat: there is no such key"),
        ('name = "a\\u001bb"', "invalid at name: it has a forbidden character"),
        ("forfeit = 2", "invalid at forfeit: Input should be less than or equal to 1"),
        ("games =", "is not valid TOML|is no TOML"),
        ("forfeit = inf", "has a number that is not finite"),
        ("summary = " + 5000 * "[" + 5000 * "]", "is nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_suite_is_told_with_its_place(tmp_path: Path, line: str, told: str) -> None:
    given = {"format": "1", "name": '"mine"'}
    name, _, value = line.partition(" =")
    given[name] = value.strip()
    file = tmp_path / "mine.toml"
    file.write_text("\n".join(f"{key} = {one}" for key, one in given.items()) + '\n[[games]]\ngame = "minigrid"\n')
    with pytest.raises(UsageError, match=told):
        load_suite(str(file))


@pytest.mark.slow
def test_the_agent_of_one_game_is_left_out_of_others(tmp_path: Path) -> None:
    games = (ROOMS, GameEntry(game="matrix", against="tit-for-tat"))
    several = suite("random", "minigrid-finder", seeds=1, games=games)
    found = evaluate(Evaluation(several, several.entrants), tmp_path)
    assert [(r.game, r.entrant) for r in found.records] == [
        ("minigrid", "random"),
        ("minigrid", "minigrid-finder"),
        ("matrix", "random"),
    ]
    assert found.missing == 0
    alone = suite("minigrid-finder", seeds=1, games=games[1:], version=2)
    with pytest.raises(UsageError, match="The agent 'minigrid-finder' plays only minigrid, none of these games"):
        evaluate(Evaluation(alone, alone.entrants), tmp_path / "alone")


def test_conditions_say_how_the_entrant_itself_was_given_legal_actions(tmp_path: Path) -> None:
    options = {"model": "scripted/x", "model.reply": '{"action": "forward"}', "plan": "no", "legal": "hidden"}
    short = GameEntry(game="minigrid", steps=2, metric="levels")
    models = suite("random", seeds=1, games=(short,), entrants=(Entrant(agent="llm", label="m", options=options),))
    (record,) = evaluate(Evaluation(models, models.entrants), tmp_path).records
    assert (record.conditions["legal"], record.conditions["models"]) == ("hidden", "scripted/x")


@pytest.mark.slow
def test_one_model_with_other_options_of_its_backend_is_an_entrant_of_its_own(tmp_path: Path) -> None:
    def saying(label: str, action: str) -> Entrant:
        own = {"model": "scripted/x", "model.reply": f'{{"action": "{action}"}}', "plan": "no"}
        return Entrant(agent="llm", label=label, options=own)

    short = GameEntry(game="minigrid", steps=6, metric="levels")
    entrants = (saying("goes", "forward"), saying("turns", "left"), saying("goes again", "forward"))
    models = suite("random", seeds=1, games=(short,), entrants=entrants)
    goes, turns, again = (
        record.trajectory for record in evaluate(Evaluation(models, models.entrants), tmp_path).records
    )
    assert goes == again != turns


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    def interrupt(so_far: Progress) -> None:
        live(so_far)
        signal.raise_signal(signal.SIGINT)

    rooms = suite("random", seeds=3)
    with (
        pytest.raises(RunInterruptedError, match=r"Finished episodes are in .*; the same command continues"),
        Live(tmp_path, quiet=True) as live,
    ):
        evaluate(Evaluation(rooms, rooms.entrants), tmp_path, Reports(progress=interrupt))
    assert len(read_results(tmp_path)[1]) >= 1
    assert evaluate(Evaluation(rooms, rooms.entrants), tmp_path).missing == 0


def test_one_name_in_place_of_a_list_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r'Games and entrants are lists: games=\["minigrid"\]'):
        frames.evaluate(games="minigrid", entrants=["random"], out=tmp_path)


def test_a_place_that_is_no_cluster_is_refused_before_ray_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--on takes ray or ray://HOST:PORT, not 'moon'"):
        evaluate(Evaluation(suite("random"), (Entrant(agent="random"),), on="moon"), tmp_path)


def test_a_model_that_can_not_be_asked_is_told_of_before_anything_is_played(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    both = suite("random", "openai/some-model")
    with pytest.raises(BackendError, match="set OPENAI_API_KEY"):
        evaluate(Evaluation(both, both.entrants), tmp_path)
    assert read_results(tmp_path)[1] == {}
    nobody = suite("random", "randon")
    with pytest.raises(UnknownNameError, match="Did you mean 'random'"):
        evaluate(Evaluation(nobody, nobody.entrants), tmp_path / "other")
    assert not (tmp_path / "other").exists()
