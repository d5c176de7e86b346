"""The stage card of `wsap check`: a small game passes it, and one that lacks something is told what to add."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from wsap_check import CHECKS, CheckOutcome, Report, run_checks
from wsap_core import (
    Action,
    ActionDef,
    ActionResult,
    ActionSpace,
    AgentMessage,
    GridMapBlock,
    ImageBlock,
    Observation,
    TextBlock,
    TimelineBlock,
    TimelineEntry,
    View,
)
from wsap_core.authoring.rounds import RoundGame
from wsap_core.cli import main
from wsap_core.loading import load_object
from wsap_core.protocol.values import JsonValue

ROOT = Path(__file__).parents[3]
CARD = [check.name for check in CHECKS if check.section]
MOST_LINES = 40
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="session")
def garden_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The game of the page about checking, as a file."""
    page = (ROOT / "docs/how-to/check-your-game.md").read_text(encoding="utf-8")
    (game,) = re.findall(r"```python\n(# garden\.py\n.*?)```", page, re.DOTALL)
    path = tmp_path_factory.mktemp("garden") / "garden.py"
    path.write_text(game, encoding="utf-8")
    return path


@pytest.fixture
def garden(garden_file: Path) -> Any:
    return load_object(f"{garden_file}:Garden")


def card_of(game: object, *only: str, steps: int = 40) -> Report:
    return run_checks(game, steps=steps, only=only or CARD)


def row(game: object, name: str) -> CheckOutcome:
    (outcome,) = card_of(game, name).checks
    return outcome


def told(outcome: CheckOutcome) -> str:
    """The one finding of a row, after its severity."""
    (finding,) = outcome.findings
    return f"{finding.severity}: {finding.message}"


def drawing(game: Any, *blocks: Any, caption: str = "") -> Any:
    """The game with another view."""
    return type("Other", (game,), {"render": lambda self: View(blocks, caption=caption)})


# --- the game that has everything -------------------------------------------------------------------


def test_a_small_game_passes_every_row_with_a_caption_meters_and_phrases_alone(garden: Any, garden_file: Path) -> None:
    count = load_object(f"{ROOT / 'tools/count_lines.py'}:lines_of_code")
    text = garden_file.read_text(encoding="utf-8")
    assert count(text) <= MOST_LINES
    assert set(re.findall(r"^from (\w+)", text, re.MULTILINE)) <= {"dataclasses", "wsap_core"}
    report = card_of(garden)
    passed = {check.name: check.status for check in report.checks}
    assert passed == dict.fromkeys(CARD, "passed") | {"stage-secrets": "skipped"}  # it has one seat
    assert report.advice == ()


def test_the_card_has_a_heading_and_is_in_the_json(garden_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = ["--only", "done", "--only", "stage-caption", "--only", "stage-meters"]
    assert main(["check", f"{garden_file}:Garden", "--steps", "20", *rows]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("ok ")] == ["done", "stage-caption", "stage-meters"]
    assert lines.index("The stage card: what people get who watch and play the game on its page") == 2
    assert main(["check", f"{garden_file}:Garden", "--steps", "20", "--json", *rows]) == 0
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert [(check["name"], check["section"]) for check in checks] == [
        ("done", ""), ("stage-caption", "stage"), ("stage-meters", "stage")
    ]  # fmt: skip


def test_advice_fails_nothing_and_is_counted_apart_from_warnings(garden: Any) -> None:
    report = card_of(drawing(garden, TextBlock("A garden.")), "stage-caption")
    assert (report.ok, report.findings, [one.check for one in report.advice]) == (True, (), ["stage-caption"])
    assert report.verdict().endswith("conforms to the protocol: 1 check passed, with 1 tip.")
    assert report.to_text().splitlines()[2].startswith("tip   stage-caption ")
    assert report.to_json()["checks"][0]["findings"][0]["severity"] == "advice"


# --- each row -----------------------------------------------------------------------------------------


def test_a_game_without_a_picture_is_told_to_draw_one(garden: Any) -> None:
    bare = type("Bare", (garden,), {"render": None, "wsap_spec": {**garden.wsap_spec, "abilities": ("seed",)}})
    assert told(row(bare, "stage-picture")).startswith("advice: Write `render()`, which returns a View")
    assert row(bare, "stage-caption").reason == "there is no picture, see `stage-picture`"


def test_a_picture_is_measured_and_a_large_one_is_warned_about(garden: Any) -> None:
    pictures = [ImageBlock.from_png(PNG + bytes(size), width=8, height=8, alt="Beds") for size in (90_000, 120_000)]
    small, large = (row(drawing(garden, picture), "stage-picture") for picture in pictures)
    assert small.status == "passed"
    assert re.fullmatch(r"the largest picture has 90\.0 kB, drawn in at most \d+\.\d ms here", small.measured)
    assert told(large).startswith("warning: A picture has 120 kB, and pages are sent several a second;")


def test_a_picture_without_words_for_those_who_can_not_see_it_is_noticed(garden: Any) -> None:
    picture = ImageBlock(base64.b64encode(PNG).decode(), 8, 8)
    assert told(row(drawing(garden, picture), "stage-alt")).startswith("advice: Say in `alt` of the ImageBlock")
    assert row(drawing(garden, replace(picture, alt="Beds")), "stage-alt").status == "passed"
    unnamed = drawing(garden, GridMapBlock(["@.#"], {"@": "you", ".": "bed"}))
    assert told(row(unnamed, "stage-alt")).endswith("for those who can't see it: #")


def test_a_view_without_a_caption_gets_advice_unless_the_page_finds_other_words(garden: Any) -> None:
    assert told(row(drawing(garden, TextBlock("Beds.")), "stage-caption")).startswith(
        "advice: Say what happens in View"
    )
    assert "never changes" in told(row(drawing(garden, caption="A garden."), "stage-caption"))

    class Story(garden):  # type: ignore[misc]  # loaded from a file
        def render(self) -> View:
            return View([TimelineBlock([TimelineEntry(f"Step {self._step}.")])])

    assert row(Story, "stage-caption").status == "passed"

    class Chatter(garden):  # type: ignore[misc]
        def render(self) -> View:
            return View(caption=f"{self._step} " + "and on " * 40)

    assert told(row(Chatter, "stage-caption")).endswith("and the page shows 220; say it in one sentence.")


@pytest.mark.parametrize(
    ("meters", "said"),
    [
        ({}, "advice: Name the amounts that matter in AdapterSpec.meters with the highest value of each, and"),
        ({"food": 5}, "error: AdapterSpec.meters says that food is 0 to 5, and it is 8."),
        ({"food": 9, "mana": 3}, "warning: AdapterSpec.meters names 'mana', but no status has a number of that name."),
        ({"food": 9, "rage": -1}, "error: AdapterSpec.meters: the highest value of rage is -1."),
    ],
)
def test_meters_are_asked_for_and_have_to_be_true(garden: Any, meters: Mapping[str, float], said: str) -> None:
    other = type("Other", (garden,), {"wsap_spec": {**garden.wsap_spec, "meters": meters}})
    first = row(other, "stage-meters").findings[0]
    assert f"{first.severity}: {first.message}".startswith(said)
    assert card_of(other, "stage-meters").ok is not said.startswith("error")


def test_actions_without_phrases_get_advice_and_equal_phrases_are_errors(garden: Any) -> None:
    def saying(phrases: object) -> Any:
        @dataclass(frozen=True)
        class OtherObservation(Observation):
            def phrases(self) -> Any:
                return phrases() if callable(phrases) else phrases

        def observe(self: Any) -> Observation:
            seen = garden.observe(self)
            return OtherObservation(seen.status, step=seen.step, available_actions=seen.available_actions)

        spec = {**garden.wsap_spec, "wire_types": (OtherObservation,)}
        return type("Other", (garden,), {"observe": observe, "wsap_spec": spec})

    some = row(saying({"north": "go up", "south": "go down"}), "stage-phrases")
    assert told(some).endswith("and the page's button says it; without one are east, west.")
    same = row(saying(dict.fromkeys(("north", "south", "east", "west"), "go")), "stage-phrases")
    assert (same.status, same.findings[0].message[:35]) == ("failed", "Two actions have the phrase 'go'; p")
    raising = row(saying(lambda: 1 / 0), "stage-phrases")
    assert told(raising).startswith("error: phrases(): ")
    assert "ZeroDivisionError" in told(raising)


def test_a_refusal_without_a_message_is_warned_about(garden: Any) -> None:
    class Silent(garden):  # type: ignore[misc]
        def act(self, action: Action) -> ActionResult:
            result: ActionResult = super().act(action)
            return result if result.success else replace(result, message="")

    assert row(garden, "stage-reasons").status == "passed"  # it refuses
    silent = row(Silent, "stage-reasons")
    assert silent.status == "warned"
    assert silent.findings[0].message.endswith("was refused without a message; say why in ActionResult.message.")


class Cards(RoundGame):
    """Two seats with a card each."""

    seats = ("ann", "ben")
    game_description = "Each of you has a card. Keep it or drop it."
    action_space = ActionSpace([ActionDef("keep", "Keep it"), ActionDef("drop", "Drop it")])

    def begin(self) -> None:
        self.cards = {"ann": "the red card", "ben": "the blue card"}

    def to_move(self) -> list[str]:
        return [self.seats[self.round % 2]] if self.round < 12 else []

    def legal(self, seat: str) -> list[str]:
        return ["keep", "drop"]

    def apply(self, moves: Mapping[str, Action]) -> None:
        """Nothing but the time passes."""

    def see(self, seat: str) -> Observation:
        return Observation({"card": self.cards[seat], "phase": "choice"})

    def returns(self) -> Mapping[str, float]:
        return dict.fromkeys(self.seats, 0.0)

    def dump(self) -> JsonValue:
        return dict(self.cards)

    def load(self, data: JsonValue) -> None:
        assert isinstance(data, dict)
        self.cards = {seat: str(data[seat]) for seat in self.seats}

    def render(self) -> View:
        return View([TextBlock(f"{len(self.cards)} cards: a choice of ann or ben in the round {self.round}.")])


class OpenCards(Cards):
    def render(self) -> View:
        return View([TextBlock(f"On the table lie {' and '.join(self.cards.values())}.")])


class SeenNumber(Cards):
    """A secret that no text gives away: spectators are shown its sum of letters."""

    def vary_secret(self, seat: str, rng: Any) -> bool:
        self.cards[seat] = f"the {rng.choice(['violet', 'crimson', 'ultramarine'])} card"
        return True

    def render(self) -> View:
        return View([TextBlock(str(sum(map(len, self.cards.values()))))])


def test_spectators_who_are_shown_what_one_seat_knows_are_noticed() -> None:
    assert row(Cards, "stage-secrets").status == "passed"
    shown = row(OpenCards, "stage-secrets")
    assert shown.status == "warned"
    assert re.match(
        r"Spectators are shown 'the (red|blue) card', which of the seats only (ann|ben) knows",
        shown.findings[0].message,
    )


def test_messages_for_one_seat_that_spectators_see_are_noticed() -> None:
    class Whispers(Cards):
        def see(self, seat: str) -> Observation:
            letter = AgentMessage("ann", "meet me at noon", "direct", "ben")
            return Observation({"phase": "choice"}, messages=[letter] if seat == "ben" else [])

        def render(self) -> View:
            return View([TextBlock("ann says: meet me at noon")])

    assert "(its direct message)" in row(Whispers, "stage-secrets").findings[0].message


def test_a_secret_that_the_author_names_is_varied_before_the_eyes_of_spectators() -> None:
    finding = row(SeenNumber, "stage-secrets").findings[0]
    assert finding.severity == "warning"
    assert finding.message.startswith("Spectators are shown the secret of ann that vary_secret names;")
