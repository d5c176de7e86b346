"""`wsap sandbox`: what a person does with a story at the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from wsap_core.errors import UsageError, WsapError
from wsap_sandbox.cli import sandbox


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


def test_what_does_not_exist_is_one_sentence(folder: Path) -> None:
    assert "nothing" in refusal(folder, "status", "nothing")
    assert "no tick 99" in refusal(folder, "rewind", "brod", "99")
    assert "nobody" in refusal(folder, "whisper", "brod", "nobody", "psst")
    assert "already" in refusal(folder, "new", "brod")
    assert "lower-case letters" in refusal(folder, "new", "../brod")
    assert "template" in refusal(folder, "new", "other", "--template", "nowhere")
    assert "BACKEND/MODEL" in refusal(folder, "new", "other", "--model", "qwen3:8b")
    assert "nobody" in refusal(folder, "new", "other", "--scene-model", "nobody/qwen3:8b")
    assert "nose" in refusal(folder, "edit", "brod", "anna", "nose", "red")
    assert "before the first" in refusal(folder, "inspect", "brod", "0/intent/anna")


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


def test_a_rewound_story_goes_on_from_there_and_the_same_again(folder: Path) -> None:
    told(folder, "branch", "brod", "again", "--at", "2")
    first = data(folder, "run", "again", "--ticks", "2")["ticks"]
    told(folder, "rewind", "again", "3")
    assert data(folder, "status", "again")["tick"] == 3
    assert data(folder, "run", "again", "--ticks", "1")["ticks"] == first[1:]
    assert data(folder, "reset", "again")["tick"] == 2


def test_an_exported_world_goes_on_byte_for_byte(folder: Path) -> None:
    world = folder / "brod.world.json"
    told(folder, "export", "brod", "--format", "world", "--out", str(world))
    told(folder, "new", "copy", "--from", str(world))
    told(folder, "branch", "brod", "original")
    ours, theirs = (data(folder, "run", name, "--ticks", "2")["ticks"] for name in ("copy", "original"))
    assert ours == theirs
    assert "not a world file" in refusal(folder, "new", "other", "--from", __file__)


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


def test_an_estimate_asks_nobody_and_a_free_story_keeps_a_limit_of_cost_and_takes_no_price(folder: Path) -> None:
    estimate = data(folder, "run", "brod", "--ticks", "3", "--estimate")
    assert estimate["calls"] == 3 * (2 * 6 + 2 * 5)
    assert estimate["cost"] == 0
    assert "costs nothing" in refusal(folder, "run", "brod", "--price-in", "1", "--price-out", "2")
    told(folder, "new", "free")
    assert data(folder, "run", "free", "--ticks", "1", "--limit", "cost=1")["tick"] == 1


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


def test_a_story_that_is_told_beside_the_next_tick_is_told_to_its_end(folder: Path) -> None:
    told(folder, "new", "beside", "--template", "village", "--overlap")
    told(folder, "new", "within", "--template", "village")
    one, other = (data(folder, "run", name, "--ticks", "3")["ticks"] for name in ("beside", "within"))
    assert one == other
    assert data(folder, "run", "beside", "--ticks", "1") != {}
    assert data(folder, "status", "beside")["tick"] == 4
