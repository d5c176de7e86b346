"""What a game shows of its recorded runs: ticks as they now stand, and views of them in terminals and the dashboard."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from dashboard_kit import EVIL, Served
from pond_kit import POND, record, views
from rich.console import Console

from wsap_core import Selection, TextBlock, TimelineBlock, TimelineEntry, View
from wsap_core.cli import main
from wsap_core.errors import PluginError
from wsap_core.protocol import Tick
from wsap_core.protocol.wire import dumps
from wsap_nexus.runs.store import Store, open_store
from wsap_nexus.runs.views.restoring import view_of_run
from wsap_nexus.store.upkeep.export import RecordedRuns
from wsap_nexus.terminal.look import Viewer, draw_view


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(str(tmp_path / "wsap.db")) as opened:
        yield opened


def told(store: Store, run: str, first: int = 1, last: int | None = None) -> list[str]:
    """Return what is told of ticks."""
    events = RecordedRuns(store.repository).history(run, "story", first=first, last=last)
    return [str(event["body"]["text"]).split()[-2] for event in events]


def drawn(view: View, width: int = 80) -> str:
    """Return what a terminal shows of a view."""
    out = io.StringIO()
    Console(file=out, width=width).print(draw_view(view, details=True))
    return out.getvalue()


# --- ticks as they now stand --------------------------------------------------------------------------


def test_a_run_without_ticks_has_no_history(store: Store) -> None:
    run = record(store, [])
    assert RecordedRuns(store.repository).ticks(run) == 0
    assert told(store, run) == []


def test_the_events_of_some_ticks_are_read_alone(store: Store) -> None:
    run = record(store, range(1, 21))
    assert RecordedRuns(store.repository).ticks(run) == 20
    assert told(store, run, 7, 9) == ["7th", "8th", "9th"]
    assert told(store, run, 20) == ["20th"]
    assert told(store, run, 21) == []
    assert told(store, run, 0, 0) == []
    assert told(store, run, 0, 1) == ["1th"]


@pytest.mark.parametrize(
    ("ticks", "now"),
    [
        ([1, 2, 3, "<2"], ["1th", "2th"]),
        ([1, 2, 3, "<2", 3, 4], ["1th", "2th", "5th", "6th"]),
        ([1, 2, 3, 4, "<3", 4, "<1", 2], ["1th", "8th"]),
        ([1, 2, 3, "<0", 1], ["5th"]),
        # The abandoned ticks have higher numbers than the one that is looked for, and come before it.
        ([1, 2, 3, 4, 5, 6, "<3", 4], ["1th", "2th", "3th", "8th"]),
    ],
)
def test_what_was_rewound_is_left_out(store: Store, ticks: list[int | str], now: list[str]) -> None:
    run = record(store, ticks)
    assert RecordedRuns(store.repository).ticks(run) == len(now)
    assert told(store, run) == now
    for number, text in enumerate(now, start=1):
        assert told(store, run, number, number) == [text]


def test_a_branch_begins_with_the_ticks_of_the_other_run_as_they_were_then(store: Store) -> None:
    run = record(store, [1, 2, 3, 4, "<2", 3, 4, 5])
    length = len(list(store.repository.read_events(run)))
    branch = record(store, [], branched_from={"run": run, "step": 4, "seq": length})
    assert RecordedRuns(store.repository).ticks(branch) == 4
    store.writer.append(run, "rewound", json.dumps({"to": 1}))  # which the branch does not notice
    store.writer.append(run, "tick", dumps(Tick(2)), step=2)
    store.writer.append(branch, "story", json.dumps({"tick": 5, "text": "Quax jumps for the 99th time."}))
    store.writer.append(branch, "tick", dumps(Tick(5)), step=5)
    store.writer.flush()
    assert told(store, branch) == ["1th", "2th", "6th", "7th", "99th"]
    assert told(store, branch, 2, 4) == ["2th", "6th", "7th"]
    assert told(store, branch, 5) == ["99th"]
    assert RecordedRuns(store.repository).ticks(branch) == 5
    of_branch = record(store, [6], branched_from={"run": branch, "step": 5, "seq": 2})
    assert told(store, of_branch) == ["1th", "2th", "6th", "7th", "99th", "1th"]
    store.repository.delete_run(run)
    assert told(store, branch) == ["99th"]


def test_an_event_that_says_no_tick_belongs_to_the_next_one(store: Store) -> None:
    run = record(store, [1, 2])
    store.writer.append(run, "influence", json.dumps({"kind": "whisper"}))
    store.writer.append(run, "tick", dumps(Tick(3)), step=3)
    store.writer.flush()
    reader = RecordedRuns(store.repository)
    assert [e["kind"] for e in reader.history(run, "influence", first=3)] == ["influence"]
    assert list(reader.history(run, "influence", last=2)) == []


# --- views --------------------------------------------------------------------------------------------


def test_a_failing_plugin_is_said_to_have_failed(store: Store) -> None:
    import pond_kit

    run = record(store, [1])
    with pytest.raises(PluginError, match=r"dry-pond could not show run .*: LookupError: no such frog\. Tell"):
        view_of_run(pond_kit.BROKEN, RecordedRuns(store.repository), run, {})


def test_a_replay_prints_the_view_with_what_is_selected(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WSAP_HOME", str(tmp_path / "home"))
    run = record(store, range(1, 9))

    def typed(*words: str) -> tuple[int, str, str]:
        return main(["replay", run, "--database", str(tmp_path / "wsap.db"), *words]), *capsys.readouterr()

    code, out, _ = typed()
    assert code == 0
    assert "The pond at tick 8" in out
    assert "8  water · Quax\n  Quax jumps for the 8th time.\n    · event" in out
    assert "5th" not in out
    assert "The pond at tick 4" in typed("--from", "4")[1]
    code, out, _ = typed("--select", "tick=6", "--select", "character=Brek")
    assert "5th" in out
    assert "Quax jumps" not in out
    code, _, err = typed("--select", "frog")
    assert code == 2
    assert "--select takes NAME=VALUE, not 'frog'." in err
    for words, told in {
        ("--select", "frog=Brek"): "no selection called 'frog'. There are: ",
        ("--select", "character=Nobody"): "no character called 'Nobody'. There are: ",
        ("--select", "tick=9"): "The tick is a number from 1 to 8, not 9.",
        ("--select", "tick=x"): "The tick is a number from 1 to 8, not x.",
        ("--from", "9"): "The tick is a number from 1 to 8, not 9.",
    }.items():
        code, out, err = typed(*words)
        assert (code, out, told in err) == (2, "", True), err
    code, _, err = typed("--steps", "--select", "tick=1")
    assert code == 2
    assert "--select has no effect where a run is shown by its steps" in err


def test_a_person_goes_through_ticks_and_characters(store: Store) -> None:
    run = record(store, range(1, 9))
    reader = RecordedRuns(store.repository)
    viewer = Viewer(lambda selection: views(reader, run, selection), {})

    def title(*keys: str) -> str:
        for key in keys:
            viewer.press(key)
        return viewer.view.title

    assert title() == "The pond at tick 8"
    assert title("left", "left") == "The pond at tick 6"
    assert title("right") == "The pond at tick 7"
    assert title("home", "left") == "The pond at tick 1"
    assert title("g", "5", "1", "backspace", "enter") == "The pond at tick 5"
    assert title("end") == "The pond at tick 8"
    assert viewer.selection == {}  # so that the next tick is shown when it comes
    viewer.press("c")
    assert viewer.selection == {"character": "Quax"}
    assert all(entry.who == ("Quax",) for entry in viewer.view.blocks[1].entries)  # type: ignore[union-attr]
    viewer.press("C")
    assert viewer.selection == {}
    for key in ("/", "space", *"7th", "space", "enter"):
        viewer.press(key)
    assert viewer.selection == {"find": "7th"}
    assert [entry.number for entry in viewer.view.blocks[1].entries] == [7]  # type: ignore[union-attr]
    for key in ("/", *"gone", "esc", "/", "enter"):
        viewer.press(key)
    assert viewer.selection == {}
    store.writer.append(run, "tick", dumps(Tick(9, {"where": {}})), step=9)
    store.writer.flush()
    viewer.refresh()
    assert title() == "The pond at tick 9"
    viewer.press("q")
    assert viewer.left


@pytest.mark.parametrize("size", [(60, 18), (140, 40)])
def test_a_screen_fits_and_shows_the_newest_lines(size: tuple[int, int]) -> None:
    entries = [TimelineEntry(f"Line {n} " + "word " * 40, n, "", "the mill", ("Ada",)) for n in range(1, 40)]
    view = View((TextBlock("A mill."), TimelineBlock(entries)), "The mill", (Selection("tick", "39", highest=39),))
    viewer = Viewer(lambda _: view, {})

    def lines() -> list[str]:
        out = io.StringIO()
        console = Console(file=out, width=size[0], height=size[1], color_system=None)
        console.print(viewer.screen(*size), height=size[1], end="")
        return out.getvalue().splitlines()

    shown = lines()
    assert len(shown) == size[1]
    assert max(map(len, shown)) <= size[0]
    assert any("Line 39" in line for line in shown)
    for _ in range(400):
        viewer.press("up")
    assert any("Line 1 " in line for line in lines())


def test_what_a_story_says_moves_no_cursor_of_a_terminal(store: Store) -> None:
    code = "\x1b[2J\x1b]0;title\x07\u202e"
    entry = TimelineEntry(f"{code}[bold]no markup[/bold]", 1, code, code, (code,), (code,))
    out = drawn(View((TimelineBlock((entry,), code),), code))
    assert not {"\x1b", "\x07", "\u202e"} & set(out)
    assert "[bold]no markup[/bold]" in out


# --- the dashboard ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("pond")) as nexus:
        yield nexus


def shown(served: Served, run: str, query: str = "") -> Mapping[str, object]:
    found: Mapping[str, object] = served.read(f"/nexus/runs/{run}/view{query}")
    return found


def recorded(served: Served, *ticks: int, game: str = "pond_kit:POND", text: str = "") -> str:
    with open_store(str(served.folder / "wsap.db")) as store:
        return record(store, ticks, game=game, text=text)


def test_the_dashboard_tells_a_view_of_a_run(served: Served) -> None:
    run = recorded(served, 1, 2, 3, 4)
    assert served.read(f"/nexus/runs/{run}")["views"] is True
    view = shown(served, run)["view"]
    assert isinstance(view, dict)
    assert [block["kind"] for block in view["blocks"]] == ["places", "timeline"]
    assert view["selections"][0] == {"name": "tick", "chosen": "", "choices": [], "highest": 4, "title": ""}
    assert shown(served, run, "?tick=2&character=Brek")["view"]["title"] == "The pond at tick 2"  # type: ignore[index]
    assert served.ask(f"/nexus/runs/{run}/view")[0] == 401


def test_a_view_that_did_not_change_is_not_sent_again(served: Served) -> None:
    path = f"/nexus/runs/{recorded(served, 1, 2)}/view"
    _, headers, _ = served.ask(path, headers=served.authorized)
    again, _, body = served.ask(path, headers={**served.authorized, "If-None-Match": headers["etag"]})
    assert (again, body) == (304, b"")


def test_the_dashboard_says_why_there_is_no_view(served: Served) -> None:
    broken = recorded(served, 1, game="pond_kit:BROKEN")
    assert "no such frog" in str(shown(served, broken)["remark"])
    without = recorded(served, 1, game="echo")
    assert shown(served, without) == {"view": None, "remark": "This game has no view of its runs."}
    assert served.read(f"/nexus/runs/{without}")["views"] is False


def test_a_long_text_of_a_story_is_cut(served: Served) -> None:
    view = shown(served, recorded(served, 1, text="x" * 50_000))["view"]
    assert isinstance(view, dict)
    assert len(view["blocks"][1]["entries"][0]["text"]) < 21_000
    assert POND.run_views is views


def test_markup_in_a_story_stays_text(served: Served) -> None:
    view = shown(served, recorded(served, 1, text=EVIL))["view"]
    assert isinstance(view, dict)
    assert view["blocks"][1]["entries"][0]["text"] == EVIL  # the page shows it as text: see test_dashboard
