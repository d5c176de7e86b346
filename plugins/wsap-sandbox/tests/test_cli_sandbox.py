"""`wsap sandbox`: what a person does with a story at the command line."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from wsap_core.errors import UsageError, WsapError
from wsap_core.seams.model_errors import BudgetReachedError
from wsap_nexus.cli.runs import runs
from wsap_sandbox.cli import sandbox
from wsap_sandbox.cli.common import opened
from wsap_sandbox.cli.run import Printer, _play


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the story `brod`, in Russian, two ticks old."""
    folder = tmp_path_factory.mktemp("stories")
    told(folder, "new", "brod", "--template", "village", "--language", "ru", "--cells", "1")
    told(folder, "run", "brod", "--ticks", "2")
    return folder


def call(folder: Path, *words: str) -> Result:
    return CliRunner().invoke(sandbox, [*words, "--database", str(folder / "stories.db")])


def told(folder: Path, *words: str) -> str:
    result = call(folder, *words)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def data(folder: Path, *words: str) -> Any:
    return json.loads(told(folder, *words, "--json"))


def refusal(folder: Path, *words: str) -> str:
    error = call(folder, *words).exception
    assert isinstance(error, WsapError), error
    assert "\n" not in str(error)
    return str(error)


@pytest.mark.slow
def test_a_story_is_a_run_with_its_own_id_that_is_read_back(folder: Path) -> None:
    status = data(folder, "status", "brod")
    assert status["tick"] == 2
    assert sorted(one for people in status["places"].values() for one in people) == [
        "anna", "gregory", "luke", "martha", "matt", "vera",
    ]  # fmt: skip
    assert status["calls"] == 6 + 2 * 5 + 6 + 2 * 5 + 6  # memories of one cell are full in the second tick
    story = told(folder, "watch", "brod", "--from", "1", "--to", "2", "--events")
    assert "Такт 1" in story
    assert "2.square.1" in story
    assert max(map(len, story.splitlines())) <= 80


@pytest.mark.slow
def test_a_story_that_came_to_the_end_of_its_ticks_is_not_called_interrupted(folder: Path) -> None:
    told(folder, "new", "quiet", "--template", "village")
    told(folder, "run", "quiet", "--ticks", "1")
    row = next(row for row in listed(folder) if row["run"] == "quiet")
    assert (row["status"], row["reason"], row["resumable"]) == ("stopped", "stopped", True)
    assert "stopped, tick 1" in told(folder, "status", "quiet")


def listed(folder: Path) -> Any:
    result = CliRunner().invoke(runs, ["--json", "--database", str(folder / "stories.db")])
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


@pytest.mark.slow
def test_what_does_not_exist_is_one_sentence(folder: Path) -> None:
    assert "nothing" in refusal(folder, "status", "nothing")
    assert "no tick 99" in refusal(folder, "rewind", "brod", "99")
    assert "nobody" in refusal(folder, "whisper", "brod", "nobody", "psst")
    assert "already" in refusal(folder, "new", "brod")
    assert "lower-case letters" in refusal(folder, "new", "../brod")
    assert "template" in refusal(folder, "new", "other", "--template", "nowhere")
    assert "lighthouse" in refusal(folder, "new", "ligthouse")
    assert "BACKEND/MODEL" in refusal(folder, "new", "other", "--model", "qwen3:8b")
    assert "nobody" in refusal(folder, "new", "other", "--scene-model", "nobody/qwen3:8b")
    assert "nose" in refusal(folder, "edit", "brod", "anna", "nose", "red")
    assert "before the first" in refusal(folder, "inspect", "brod", "0/intent/anna")
    assert "intent, scene, story or memory" in refusal(folder, "inspect", "brod", "2/foo/dam")


@pytest.mark.slow
def test_texts_in_another_language_than_the_worlds_are_told(folder: Path) -> None:
    told(folder, "branch", "brod", "foreign")
    said = told(folder, "event", "foreign", "dam", "A beam cracks loudly.")
    assert "The world is told in Russian, and this is not: 'A beam cracks loudly.'." in " ".join(said.split())
    assert data(folder, "whisper", "foreign", "anna", "The dam will break tonight.")["note"]
    assert data(folder, "object", "foreign", "mill", "a red lantern from the hill")["note"]
    assert data(folder, "event", "foreign", "dam", "Балка трещит.")["note"] == ""
    file = folder / "english.toml"
    file.write_text(
        '[world]\nname = "Двор"\nlanguage = "ru"\nabout = "Колодец пересох."\n'
        '[[places]]\nid = "yard"\nname = "Двор"\ndescription = "A yard of beaten earth."\n'
        'moment = "Rain on the roof."\n',
        "utf-8",
    )
    assert "(2 texts): 'A yard of beaten earth.'" in data(folder, "new", "english", "--template", str(file))["note"]
    for language in ("en", "ru"):
        name = f"own-{language}"
        assert data(folder, "new", name, "--template", "lighthouse", "--language", language)["note"] == ""


def test_an_id_comes_before_a_name_and_what_is_fixed_stays(folder: Path) -> None:
    told(folder, "new", "names", "--template", "village")
    assert "'dam' is a place, and a character or object is wanted; to name dam_wall" in refusal(
        folder, "move", "names", "dam", "mill"
    )
    assert "can't be carried" in refusal(folder, "move", "names", "dam_wall", "mill")
    assert "'anna' is a character, and a place is wanted." in refusal(folder, "event", "names", "anna", "It rains.")


@pytest.mark.slow
def test_an_influence_is_judged_with_those_that_wait_and_what_a_tick_refuses_is_told(folder: Path) -> None:
    told(folder, "new", "twins", "--template", "village", "--language", "en")
    told(folder, "edit", "twins", "anna", "name", "Nora")
    assert "of the character 'luke' looks like that of 'anna'" in refusal(
        folder, "edit", "twins", "luke", "name", "N\u043era"
    )
    told(folder, "object", "twins", "Nora", "a coin")
    assert "'\u0430 coin'" in refusal(folder, "object", "twins", "luke", "\u0430 coin")
    told(folder, "move", "twins", "a-coin", "luke")
    with opened(str(folder / "stories.db")) as stories:  # as another process that looked at an earlier state
        stories.runner.influence("twins", {"kind": "edit", "id": "vera", "field": "name", "text": "Nora"})
    said = " ".join(told(folder, "run", "twins", "--ticks", "1").split())
    assert "The influence 'edit' before this tick was refused: The name 'Nora' of the character 'vera'" in said
    assert "refused" not in told(folder, "run", "twins", "--ticks", "1")
    assert "a coin (a-coin)" in told(folder, "inspect", "twins", "luke")


@pytest.mark.slow
def test_an_influence_says_where_and_inventories_say_what(folder: Path) -> None:
    told(folder, "new", "places", "--template", "village")
    assert "tick of places in The mill: Matt is suddenly here." in told(folder, "move", "places", "matt", "mill")
    told(folder, "object", "places", "anna", "a coin")
    told(folder, "step", "places")
    assert "a coin (a-coin)" in told(folder, "inspect", "places", "anna")


def test_names_in_a_world_file_can_be_told_apart(folder: Path) -> None:
    file = folder / "alike.world.json"
    told(folder, "export", "brod", "--format", "world", "--out", str(file))
    content = json.loads(file.read_text("utf-8"))
    content["world"]["characters"][1]["name"] = content["world"]["characters"][0]["name"].upper()
    file.write_text(json.dumps(content), "utf-8")
    assert "looks like that of" in refusal(folder, "new", "alike", "--from", str(file))


@pytest.mark.slow
def test_a_branch_goes_its_own_way_and_diff_says_since_when(folder: Path) -> None:
    told(folder, "branch", "brod", "flood", "--at", "1")
    told(folder, "takeover", "flood", "Анна", "Иду на плотину.")
    told(folder, "whisper", "flood", "luke", "Засов лопнет.")
    ticks = data(folder, "step", "flood")["ticks"]
    changes = {change["id"]: change for change in ticks[0]["record"]["characters"]}
    assert changes["anna"]["decided_by"] == "outside"
    found = data(folder, "diff", "brod", "flood", "--at", "2")
    assert found["since"] == 2
    assert any(one["part"] == "luke" and one["field"] == "memory" for one in found["differences"])
    prompt = told(folder, "inspect", "flood", "2/intent/luke")
    assert "Засов лопнет." in prompt.replace("\n", " ")
    assert data(folder, "inspect", "flood", "2/intent/luke")["reply"]


@pytest.mark.slow
def test_a_rewound_story_goes_on_from_there_and_the_same_again(folder: Path) -> None:
    told(folder, "branch", "brod", "again", "--at", "2")
    first = data(folder, "run", "again", "--ticks", "2")["ticks"]
    told(folder, "rewind", "again", "3")
    assert data(folder, "status", "again")["tick"] == 3
    assert data(folder, "run", "again", "--ticks", "1")["ticks"] == first[1:]
    assert data(folder, "reset", "again")["tick"] == 2


@pytest.mark.slow
def test_an_exported_world_goes_on_byte_for_byte(folder: Path) -> None:
    world = folder / "brod.world.json"
    told(folder, "export", "brod", "--format", "world", "--out", str(world))
    told(folder, "new", "copy", "--from", str(world))
    told(folder, "branch", "brod", "original")
    ours, theirs = (data(folder, "run", name, "--ticks", "2")["ticks"] for name in ("copy", "original"))
    assert ours == theirs
    assert "not a world file" in refusal(folder, "new", "other", "--from", __file__)


@pytest.mark.slow
def test_a_story_is_written_as_files_that_hold_what_happened(folder: Path) -> None:
    told(folder, "export", "brod", "--format", "json", "--out", str(folder / "ticks"))
    tick = json.loads((folder / "ticks" / "tick-000002.json").read_text("utf-8"))
    assert tick["record"]["tick"] == 2
    assert (folder / "ticks" / "tick-000002.md").read_text("utf-8")
    for form in ("markdown", "html"):
        out = folder / f"brod.{form}"
        told(folder, "export", "brod", "--format", form, "--out", str(out))
        assert "Ольховый Брод" in out.read_text("utf-8")
        assert "already exists" in refusal(folder, "export", "brod", "--format", form, "--out", str(out))


@pytest.mark.slow
def test_an_estimate_asks_nobody_and_a_free_story_keeps_a_limit_of_cost_and_takes_no_price(folder: Path) -> None:
    estimate = data(folder, "run", "brod", "--ticks", "3", "--estimate")
    assert estimate["calls"] == 3 * (2 * 6 + 2 * 5)
    assert estimate["cost"] == 0
    assert "costs nothing" in refusal(folder, "run", "brod", "--price-in", "1", "--price-out", "2")
    told(folder, "new", "free")
    assert data(folder, "run", "free", "--ticks", "1", "--limit", "cost=1")["tick"] == 1


@pytest.mark.slow
def test_a_limit_counts_the_whole_story_over_all_commands(folder: Path) -> None:
    told(folder, "new", "short")
    for word in ("run", "step"):
        told(folder, word, "short", "--limit", "calls=60", *(["--ticks", "1"] if word == "run" else []))
    spent = data(folder, "status", "short")["calls"]
    assert 30 < spent <= 60
    said = refusal(folder, "step", "short", "--limit", "calls=30")
    assert f"the limit of 30 calls a story (spent: {spent} calls" in said
    for _ in range(3):
        assert isinstance(call(folder, "run", "short", "--limit", "calls=60").exception, BudgetReachedError)
        assert spent <= data(folder, "status", "short")["calls"] <= 60
    # A branch is a story of its own, with what it spends itself.
    told(folder, "branch", "short", "other")
    told(folder, "step", "other", "--limit", "calls=30")


def test_a_character_is_looked_at_with_its_memory_and_how_far_it_drifted(folder: Path) -> None:
    anna = data(folder, "inspect", "brod", "Анна")
    assert len(anna["character"]["memory"]["cells"]) == 1
    assert 0 <= anna["drift"]["invented"] <= 1
    assert data(folder, "inspect", "brod", "anna", "--at", "0")["tick"] == 0
    assert data(folder, "inspect", "brod", "dam")["place"]["id"] == "dam"


def test_a_name_that_a_person_wrote_can_not_draw_on_the_terminal(folder: Path) -> None:
    told(folder, "branch", "brod", "sly")
    told(folder, "event", "sly", "dam", "\x1b[31mRed\x1b[0m \u202eback")
    story = told(folder, "step", "sly", "--events")
    assert "\x1b[31m" not in story
    assert "\u202e" not in story


def test_a_template_of_ones_own_is_refused_with_the_place_of_the_fault(folder: Path) -> None:
    template = folder / "mine.toml"
    template.write_text('format = 1\n[world]\nname = "Mine"\nlanguage = "en"\nabout = "x"\n', "utf-8")
    assert "mine.toml" in refusal(folder, "new", "mine", "--template", str(template))


def test_by_hand_ends_at_the_end_of_input(folder: Path) -> None:
    told(folder, "branch", "brod", "hand")
    result = CliRunner().invoke(sandbox, ["run", "hand", "--by-hand", "--database", str(folder / "stories.db")])
    assert result.exit_code == 0
    with pytest.raises(UsageError, match="by-hand"):
        raise call(folder, "run", "hand", "--by-hand", "--ticks", "2").exception or AssertionError


def test_a_reader_gets_a_quarter_of_a_second_for_each_word_before_the_next_tick(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(folder, "new", "slow", "--template", "village")
    pauses: list[float] = []
    printed: list[int] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        printed.append(len(capsys.readouterr().out.split()))
        if len(pauses) == 3:
            raise KeyboardInterrupt

    with opened(str(folder / "stories.db")) as stories:
        printer = Printer(stories, "slow", False, False, 1)
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(_play(printer, None, None, contextlib.nullcontext, read=True, sleep=sleep))
        assert stories.runs.ticks("slow") == 3
    assert pauses == [words / 4 for words in printed]
    assert min(printed) > 20


def test_a_tick_that_comes_while_the_log_is_read_is_printed_with_its_story(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(folder, "new", "late", "--template", "village")
    told(folder, "run", "late", "--ticks", "2")
    with opened(str(folder / "stories.db")) as stories:
        one, two = stories.chapters("late")
        untold = replace(two, stories={})
        printer = Printer(stories, "late", events=False, as_json=True, next=1)
        monkeypatch.setattr(stories.runs, "ticks", lambda run: 1)  # the second has not come yet
        monkeypatch.setattr(stories, "chapters", lambda run, first: iter((one, untold)[first - 1 :]))
        printer._print(whole=True)
        assert [tick["tick"] for tick in printer.data] == [1]
        monkeypatch.undo()
        printer.rest()
    assert [tick["tick"] for tick in printer.data] == [1, 2]
    assert printer.data[1]["stories"].keys() == two.stories.keys()


@pytest.mark.slow
def test_a_story_that_is_told_beside_the_next_tick_is_told_to_its_end(folder: Path) -> None:
    told(folder, "new", "beside", "--template", "village", "--overlap")
    told(folder, "new", "within", "--template", "village")
    one, other = (data(folder, "run", name, "--ticks", "3")["ticks"] for name in ("beside", "within"))
    assert one == other
    assert data(folder, "run", "beside", "--ticks", "1") != {}
    assert data(folder, "status", "beside")["tick"] == 4
