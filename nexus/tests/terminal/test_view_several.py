"""Games of several seats in a terminal: tables in few rows, whose seats are shown, and what a person who plays sees."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace

import pytest
from rich.console import Console, RenderableType
from rich.text import Text

from wsap_core import Action, ActionAvailability, ActionDef, ActionResult, ActionSpace, Observation, ParamDef
from wsap_core.host import PluginHost
from wsap_core.protocol import TOOL, ChatBlock, ChatLine, SeatsBlock, SeatState, TableBlock, TextBlock, View
from wsap_core.seams.services import Services
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.session import resolve_specs, unrecorded
from wsap_nexus.terminal.blocks import Stacked, draw_block
from wsap_nexus.terminal.keyboard.keymap import Question
from wsap_nexus.terminal.live import LiveView
from wsap_nexus.terminal.panels import Scroll, actions, table_of_seats
from wsap_nexus.terminal.plain import summary_lines
from wsap_nexus.terminal.screen import Look, compose, last_picture
from wsap_nexus.terminal.story import Note, SeatScene, Stage, note_of


def drawn(thing: RenderableType, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None, _environ={})
    lines = console.render_lines(thing, console.options.update(height=height), pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines][:height]


def a_table(rows: int) -> TableBlock:
    return TableBlock(("player", "known"), [(f"P{n}", "dead" if n == 2 else "") for n in range(1, rows + 1)])


def stacked(table: TableBlock, said: int = 50) -> Stacked:
    chat = ChatBlock([ChatLine("Ann", f"word {n}") for n in range(said)])
    return Stacked([("", draw_block(table), True), ("Lately", draw_block(chat), False)])


# --- tables and talk ----------------------------------------------------------------------


def test_a_table_with_room_is_a_table() -> None:
    lines = drawn(stacked(a_table(3)), 40, 12)
    assert [line.split() for line in lines[:1]] == [["player", "┃", "known"]]
    assert len(lines) == 12
    assert lines[-1] == "Ann: word 49"


def test_players_around_a_table_are_lines_that_say_who_or_what_is_in_the_middle() -> None:
    seats = [SeatState("Ann", turn=True), SeatState("Bob", state="out", note="cook"), SeatState("Cleo")]
    block = SeatsBlock(seats, [("Ann", "Cleo", "vote")], "Cleo")
    assert [line.replace("│", " ").split() for line in drawn(draw_block(block), 60, 5)][2:] == [
        ["Ann", "→", "Cleo"], ["Bob", "†", "cook"], ["Cleo", "in", "the", "middle"],
    ]  # fmt: skip
    words = drawn(draw_block(replace(block, centre="a pot of 12")), 60, 6)
    assert words[-1].replace("│", " ").split() == ["a", "pot", "of", "12"]


def test_a_long_table_is_packed_side_by_side_and_leaves_half_of_the_room_to_what_is_said() -> None:
    lines = drawn(stacked(a_table(7)), 40, 10)
    assert [line.split() for line in lines[:4]] == [["P1", "P5"], ["P2", "dead", "P6"], ["P3", "P7"], ["P4"]]
    assert lines[4] == "Lately"
    assert lines[-1] == "Ann: word 49"


def test_packed_lines_are_cut_at_their_ends_and_wide_letters_keep_the_columns_straight() -> None:
    names = ("花子とみんなの長い名前", "Frederick the Great", *"ABCDEF")
    table = TableBlock(("player",), [(name,) for name in names])
    lines = drawn(stacked(table), 30, 10)
    cells = [Text(line).cell_len for line in lines]
    assert max(cells) <= 30
    assert lines[0].startswith("花子とみんな")
    assert "…" in lines[0]
    assert Text(lines[0].split("C")[0]).cell_len == 15, "the second column begins at the middle"
    assert lines[1].startswith("Frederick the… ")


@pytest.mark.parametrize("rows", [1, 2, 15, 200])
@pytest.mark.parametrize("height", [3, 6, 15, 40])
def test_no_line_of_a_table_is_lost_while_there_is_room_for_it(rows: int, height: int) -> None:
    seen = " ".join(drawn(stacked(a_table(rows)), 60, height))
    if -(-rows // 4) <= height // 2:  # four columns of fifteen cells
        assert all(f"P{n}" in seen.split() for n in range(1, rows + 1))


def test_what_is_said_goes_on_below_its_speaker_moved_in() -> None:
    chat = draw_block(ChatBlock([ChatLine("Ann", "one two three four", "the jail")]))
    assert drawn(chat, 22, 3)[:3] == ["Ann [the jail]: one", "  two three four", ""]


# --- seats --------------------------------------------------------------------------------


def a_note(action: str, message: str = "") -> Note:
    return Note("p-1", 0, 1, action, "", True, message, 0.0, (), False)


def fifteen(focus: int = 0, *, hidden: bool = False) -> Stage:
    seats = tuple(
        SeatScene(
            f"p-{n}", "bot", Observation({"role": "Spy"}), notes=(a_note(f"look({n})"),), hidden=hidden and n != 1
        )
        for n in range(1, 16)
    )
    return Stage("Town", "run-1", 7, None, seats, focus)


@pytest.mark.parametrize("focus", [0, 1, 7, 13, 14])
def test_the_seat_that_is_looked_at_is_always_among_those_that_are_shown(focus: int) -> None:
    lines = [line.plain for line in table_of_seats(fifteen(focus), 30, 5)]
    assert len(lines) == 5
    assert sum(line.startswith("▸") for line in lines) == 1
    assert f"▸ p-{focus + 1} " in "\n".join(lines)
    assert lines[-1] == "  and 11 more: press Tab"


def test_only_those_agents_are_named_that_are_not_what_most_seats_have() -> None:
    stage = fifteen()
    one = replace(stage.seats[2], agent="human")
    lines = table_of_seats(replace(stage, seats=(*stage.seats[:2], one, *stage.seats[3:])), 30, 15)
    assert [line.plain.split()[-1] for line in lines[:2]] == ["look(1)", "look(2)"]
    assert [n for n, line in enumerate(lines) if "bot" in line.plain or "human" in line.plain] == [2]
    both = replace(stage, seats=(stage.seats[0], one))
    assert ["bot" in line.plain or "human" in line.plain for line in table_of_seats(both, 30, 15)] == [True, True]


def test_of_seats_that_are_hidden_only_who_sits_there_is_told() -> None:
    lines = [line.plain for line in table_of_seats(fifteen(hidden=True), 60, 5)]
    assert lines == ["▸ p-1 bot  step 0  reward 0  look(1)", "  with 14 bot"]


def test_a_short_status_stands_above_where_several_play() -> None:
    text = "\n".join(drawn(compose(fifteen(), 80, 24, Look()), 80, 24))
    assert "role Spy" in text.splitlines()[1]
    assert "Status" not in text


def test_who_waits_for_others_is_not_told_the_time_of_its_own_last_turn() -> None:
    stage = fifteen(hidden=True)
    mine = replace(stage.seats[0], view=View((a_table(3),), "Day 2"), observation=Observation({"day": 1}))
    text = "\n".join(drawn(compose(replace(stage, seats=(mine, *stage.seats[1:])), 80, 24, Look()), 80, 24))
    assert "Day 2" in text
    assert "day 1" not in text


def test_what_came_of_the_last_deed_is_told_whole_to_who_did_it() -> None:
    scene = SeatScene("p-1", "human", notes=(a_note("lookup", "one two three four five six"),))
    assert [line.plain for line in actions(scene, 20, 9, scroll=Scroll())][1:] == ["  one two three four", "  five six"]
    assert len(actions(scene, 20, 9)) == 2


def test_a_lookup_that_is_too_long_for_its_panel_scrolls() -> None:
    told = "\n".join(f"Player {n}: died on day {n}" for n in range(1, 31))
    note = note_of("p-1", 0, 1, Action("graveyard"), ActionResult(True, told))
    scene, scroll = SeatScene("p-1", "human", notes=(note,)), Scroll()

    def shown() -> list[str]:
        return [line.plain.strip() for line in actions(scene, 60, 8, scroll=scroll)]

    assert shown()[:2] == ["1 graveyard", "Player 1: died on day 1"]
    assert shown()[-1] == "lines 1 to 7 of 31; PgUp and PgDn scroll"
    seen = set(shown())
    for _ in range(9):
        assert scroll.press("pagedown")
        seen |= set(shown())
    assert set(told.splitlines()) <= seen
    assert shown()[-2:] == ["Player 30: died on day 30", "lines 25 to 31 of 31; PgUp and PgDn scroll"]
    assert scroll.press("pageup")
    assert shown()[-1] == "lines 18 to 24 of 31; PgUp and PgDn scroll"
    assert not scroll.press("up")


def test_the_end_of_a_game_for_several_stays_with_all_of_its_picture() -> None:
    blocks = (TextBlock("Ann won.", "The game is over"), a_table(15), ChatBlock([ChatLine("Ann", "Ha!")] * 50))
    seats = (SeatScene("p-1", "bot", Observation(), View(blocks, "The end")), SeatScene("p-2", "bot"))
    picture = last_picture(Stage("Town", "run-1", 7, None, seats), 60)
    assert picture is not None
    lines = drawn(picture, 60, 60)
    assert lines[0].startswith("╭─ Town: The end ")
    assert sum("Ha!" in line for line in lines) == 6
    assert all(any(f"P{n} " in line for line in lines) for n in range(1, 16))
    told = sum(any(c.isalnum() for c in line) for line in lines)
    assert told == 1 + 2 + 8 + 1 + 5, "title, end, packed table, last words"


def test_a_summary_tells_few_seats_one_by_one_and_many_by_what_they_won() -> None:
    def told(count: int) -> list[str]:
        same = {"agent": "bot", "model": None, "score": {"wins": 1}, "left_out": {}}
        seats = [same | {"seat": f"p-{n}", "reward": n % 2, "steps": n} for n in range(1, count)]
        seats.append(same | {"seat": "p-0", "agent": "llm", "model": "openai/x", "reward": 1, "steps": 1})
        summary = {"episodes": 1, "steps": 9, "seconds": 1, "done": True, "achievements": {},
                   "decisions": {"repaired": 0, "forced": 0}, "seats": seats, "trajectory_hash": "abc"}  # fmt: skip
        return summary_lines(summary, units={}, catalogue=0)[1:-1]

    assert told(2) == ["p-1 (bot): reward 1, 1 step, wins: 1", "p-0 (openai/x): reward 1, 1 step, wins: 1"]
    assert told(8) == [
        "reward 1 (bot): p-1, p-3, p-5, p-7",
        "reward 1 (openai/x): p-0",
        "reward 0 (bot): p-2, p-4, p-6",
    ]


# --- a person at the keyboard -------------------------------------------------------------

SPACE = ActionSpace(
    [
        ActionDef("vote", "", (ParamDef("player", "Ann|Bob"),)),
        ActionDef("look_up", "", (), (), TOOL),
        *(ActionDef(f"deed_{n}") for n in range(20)),
        ActionDef("wait"),
        ActionDef("jack_out", "", (), (), "meta"),
    ]
)
SEEN = Observation(available_actions=[ActionAvailability(f"deed_{n}", False, "not now") for n in range(20)])


def asked(question: Question, width: int = 40) -> list[str]:
    return [line.plain for line in question.lines(width)]


def test_deeds_come_first_then_tools_and_of_many_that_are_impossible_only_their_number() -> None:
    async def test() -> None:
        question = Question("p-1", SEEN, SPACE)
        assert asked(question)[1:] == [": vote   . wait", "u look_up   : jack_out", "20 more are not possible now"]

    asyncio.run(test())


def test_nobody_leaves_a_world_by_a_slip_of_one_key() -> None:
    async def test() -> None:
        question = Question("p-1", SEEN, SPACE)
        for key in "jackout":
            question.press(key)
        assert not question.answer.done() or question.answer.result().name != "jack_out"
        question = Question("p-1", SEEN, SPACE)
        for key in (":", *"jack_out", "enter"):
            question.press(key)
        assert question.answer.result() == Action("jack_out")

    asyncio.run(test())


def test_what_was_typed_wrong_stays_to_be_mended_beside_the_reason() -> None:
    async def test() -> None:
        question = Question("p-1", SEEN, SPACE)
        for key in (":", *"vote", "space", *"Anx", "enter"):
            question.press(key)
        lines = asked(question, 30)
        typed = next(n for n, line in enumerate(lines) if line.startswith(": vote Anx"))
        assert "Ann, Bob" in " ".join(lines[:typed])
        assert all(len(line) <= 30 for line in lines[:typed])
        for key in ("backspace", "n", "enter"):
            question.press(key)
        assert question.answer.result() == Action("vote", {"player": "Ann"})

    asyncio.run(test())


def test_a_person_is_shown_its_own_seat_s_picture_and_how_long_others_take() -> None:
    now = [100.0]
    console = Console(file=io.StringIO(), width=80, height=24, force_terminal=True, color_system=None, _environ={})
    controls = Controls()
    view = LiveView(console, controls, pace=None, clock=lambda: now[0])
    host = PluginHost.discovered()
    plan = RunPlan("matrix", (SeatPlan("row", "human"), SeatPlan("column", "random")), steps=3)
    parts = resolve_specs(plan, host)
    session = unrecorded(plan, host, parts=parts, controls=controls, services=Services(views=view))
    view.follow(session.run, parts.game, interactive=["row"])

    async def test() -> None:
        await session.run._set_up()
        assert session.run.world is not None
        await view.update_own_views()
        seen = view.stage().seat.view
        assert seen is not None
        assert isinstance(seen.blocks[0], TableBlock)
        space = session.run.loop("row").seat.action_space
        choosing = asyncio.create_task(view.choose("row", await session.run.loop("row").seat.observe(), space))
        await asyncio.sleep(0)
        assert view.stage().state == "your turn"
        view.press("d")
        await choosing
        assert view.stage().state == "waiting for others"
        now[0] += 12
        assert view.stage().state == "waiting for others, 12 s"

    asyncio.run(test())
