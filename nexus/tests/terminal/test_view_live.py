"""The live view and the replay, driven by keys: what they hold, stop and show."""

from __future__ import annotations

import asyncio
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from rich.console import Console
from rich.text import Text

from wsap_core import Action, ActionSpace, Observation
from wsap_core.host import PluginHost
from wsap_core.seams.agent import DecisionInfo
from wsap_core.seams.model import Draft, Message, Request
from wsap_core.seams.services import Services
from wsap_llm.kit import ModelPool
from wsap_llm.middleware.show import Thought
from wsap_nexus.runs.plan import RunPlan, SeatPlan, plan_seats
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.session import RunHandle, resolve_specs, run_to_end, start, unrecorded
from wsap_nexus.runs.store import open_database, open_store
from wsap_nexus.store.repository import Repository
from wsap_nexus.terminal.browser import LEAP, Browser
from wsap_nexus.terminal.live import LiveView
from wsap_nexus.terminal.recorded import Recording
from wsap_nexus.terminal.spending import spending_so_far


def a_terminal(width: int = 100, height: int = 30) -> Console:
    return Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None, _environ={})


def text_of(view: LiveView) -> str:
    console = a_terminal()
    console.print(view.screen(100, 30), height=30)
    out = console.file
    assert isinstance(out, io.StringIO)
    return out.getvalue()


async def until(condition: Callable[[], bool]) -> None:
    """Let the run go on until the condition holds, or fail."""
    for _ in range(200_000):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


def watched(
    game: str = "echo",
    *,
    agent: str = "random",
    seats: dict[str, str] | None = None,
    steps: int | None = 400,
    options: dict[str, int] | None = None,
    episodes: int | None = None,
) -> tuple[RunHandle, LiveView]:
    """A run without a record, and the view that follows it at full speed."""
    host = PluginHost.discovered()
    controls = Controls()
    view = LiveView(a_terminal(), controls, pace=None)
    seats = plan_seats(host.games.get(game), agent=agent, seats=seats)
    plan = RunPlan(game, seats, seed=1, steps=steps, options=options or {}, episodes=episodes)
    parts = resolve_specs(plan, host)
    session = unrecorded(plan, host, parts=parts, controls=controls, services=Services(views=view))
    people = [name for name, spec in parts.agents.items() if spec.interactive]
    view.follow(session.run, parts.game, interactive=people)
    session.run.observe(view.observe)
    return session, view


# --- live ---------------------------------------------------------------------------------


def test_a_wait_a_forced_decision_s_cause_and_the_step_of_the_plan_are_shown_while_a_run_is_played() -> None:
    session, view = watched(steps=3)
    taken: list[StepTaken] = []
    session.run.observe(taken.append)
    asyncio.run(session.play())

    def shown() -> str:
        console = a_terminal(120, 40)
        console.print(view.screen(120, 40), height=40)
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    view.tell("Busy. Waiting 6 s before attempt 2 of 5.")
    assert "Waiting 6 s" in shown()
    forced = DecisionInfo(forced=True, cause="the model refused")
    view.observe(replace(taken[-1], step=4, info=forced, plan=("find water",), planned=2))
    view._take(len(view._pending))
    assert "Waiting 6 s" in shown(), "five seconds at least"
    assert "(forced)" in shown()
    assert "the model refused" in shown()
    assert "Plan, made before step 2" in shown()
    assert "find water" in shown()


def test_a_world_that_can_t_draw_itself_is_told_and_the_run_goes_on() -> None:
    session, view = watched(steps=30)
    failed = asyncio.Event()

    def broken(width: int, height: int) -> Text:
        failed.set()
        raise RuntimeError("no paint left")

    view.screen = broken  # type: ignore[method-assign]  # what a world's own to_view or render does wrong ends up here

    async def play() -> int:
        async with view.shown():
            summary = await session.play()
            view._dirty.set()
            await asyncio.wait_for(failed.wait(), 300)
            return summary.steps

    assert asyncio.run(play()) == 30
    out = view._console.file
    assert isinstance(out, io.StringIO)
    assert "RuntimeError: no paint left" in out.getvalue()


def test_an_agent_s_plan_is_shown_live_and_in_the_replay(tmp_path: Path) -> None:
    (tmp_path / "planner.py").write_text(
        "from wsap_core import Action\n"
        "class Planner:\n"
        "    def initialize(self, game_desc, action_space): pass\n"
        "    def decide(self, observation): return Action('wait')\n"
        "    def reflect(self, result): pass\n"
        "    def plan(self, goals): return ['First listen', 'Then leave']\n",
        encoding="utf-8",
    )
    host = PluginHost.discovered()
    path = str(tmp_path / "wsap.db")
    plan = RunPlan("echo", (SeatPlan("seat-1", f"{tmp_path / 'planner.py'}:Planner"),))
    controls = Controls()
    view = LiveView(a_terminal(), controls, pace=None)
    with open_store(path) as store, start(plan, host, store, controls=controls) as session:
        view.follow(session.run, host.games.get("echo"))
        session.run.observe(view.observe)
        run_to_end(session)
        asyncio.run(view.take_committed())
        assert "Then leave" in text_of(view)
    with open_database(path, read_only=True) as database:
        repository = Repository(database)
        recording = Recording(repository, repository.get_run("last"), host)
        assert recording.stage(1).seat.plan == ("First listen", "Then leave")


def test_while_held_each_s_takes_one_step_and_q_stops() -> None:
    session, view = watched()
    taken: list[int] = []
    third = asyncio.Event()

    def count(step: StepTaken) -> None:
        taken.append(step.step)
        if len(taken) == 3:
            third.set()

    session.run.observe(count)

    async def play() -> int:
        view.press("space")
        playing = asyncio.create_task(session.play())
        for _ in range(3):
            view.press("s")
        await asyncio.wait_for(third.wait(), 300)
        assert "paused" in text_of(view)
        view.press("q")
        return (await asyncio.wait_for(playing, 300)).steps

    assert asyncio.run(play()) == 3
    assert taken == [1, 2, 3]


def test_space_goes_on_to_the_end() -> None:
    session, view = watched(steps=45)

    async def play() -> int:
        view.press("space")
        playing = asyncio.create_task(session.play())
        view.press("space")
        return (await asyncio.wait_for(playing, 300)).steps

    assert asyncio.run(play()) == 45


def test_the_keys_change_the_pace() -> None:
    _, view = watched()
    controls = view._controls
    view.press("f")
    assert controls.pace == 20
    view.press("+")
    assert controls.pace == 50
    for _ in range(9):
        view.press("+")
    assert controls.pace is None
    view.press("-")
    assert controls.pace == 200
    for _ in range(20):
        view.press("-")
    assert controls.pace == 1


def test_help_covers_the_screen_until_a_key_is_pressed() -> None:
    session, view = watched()
    view.press("?")
    assert "full speed, and back" in text_of(view)
    view.press("q")
    assert "full speed, and back" not in text_of(view)
    assert not session.run.controls.stopping, "the key only closed the help"


def test_only_what_is_committed_is_shown(tmp_path: Path) -> None:
    host = PluginHost.discovered()
    spec = host.games.get("echo")
    plan = RunPlan("echo", (SeatPlan("seat-1", "random"),), seed=1, steps=30)
    shown: list[tuple[int, int]] = []
    with open_store(str(tmp_path / "wsap.db")) as store:
        controls = Controls()
        view = LiveView(a_terminal(), controls, pace=None, flush=store.writer.flush)
        with start(plan, host, store, controls=controls) as session:
            view.follow(session.run, spec)
            session.run.observe(view.observe)

            async def play() -> None:
                playing = asyncio.create_task(session.play())
                while not playing.done():
                    await view.take_committed()
                    steps = view.stage().seat.steps
                    run_id = session.run.run_id or ""
                    shown.append((steps, store.repository.count_events(run_id, "step")))
                    await asyncio.sleep(0)
                await playing

            asyncio.run(play())
    assert all(steps <= committed for steps, committed in shown)


def test_a_person_plays_by_keys_and_typed_actions_and_is_told_what_is_impossible() -> None:
    session, view = watched("matrix", agent="tit-for-tat", seats={"row": "human"}, steps=2, options={"rounds": 2})

    async def question() -> None:
        await until(lambda: view._question is not None)

    async def answered(keys: str) -> None:
        await question()
        asked = view._question
        for key in keys.split():
            view.press(key)
        await until(lambda: view._question is not asked)

    async def play() -> list[float]:
        playing = asyncio.create_task(session.play())
        await question()
        assert "cooperate" in text_of(view)
        for key in (":", "x", "y", "enter"):
            view.press(key)
        assert "There is no action 'xy' here" in " ".join(text_of(view).split())
        assert view._question is not None
        assert view._question.line.text == "xy", "what was typed is there to be mended"
        view.press("esc")
        await answered("c")
        await answered(": d e f tab enter")
        summary = await asyncio.wait_for(playing, 300)
        return [seat.reward for seat in summary.seats]

    # Both cooperate; then the person defects, and tit for tat is still friendly: 3 + 5 and 3 + 0.
    assert asyncio.run(play()) == [8, 3]


def test_who_plays_does_not_see_the_world_s_own_picture_of_a_game_for_several() -> None:
    _, watching = watched("matrix")
    session, playing = watched("matrix", agent="random", seats={"row": "human"})
    assert watching._interactive == frozenset()
    assert playing._interactive == {"row"}
    asyncio.run(session.run._set_up())
    assert session.run.world is not None
    assert session.run.world.render() is not None, "there is something to see"
    assert playing._view() is None


def test_who_plays_sees_nothing_of_what_the_other_seats_see_and_do() -> None:
    session, playing = watched("matrix", agent="random", seats={"column": "human"})
    asyncio.run(session.run._set_up())
    stage = playing.stage()
    assert stage.seat.name == "column"
    other = next(seat for seat in stage.seats if seat.name == "row")
    assert (other.hidden, other.observation, other.notes) == (True, None, ())
    for _ in range(3):
        playing.press("tab")
        assert playing.stage().seat.name == "column"


def test_an_impossible_action_is_not_taken() -> None:
    from wsap_core import ActionAvailability, ActionDef
    from wsap_nexus.terminal.keyboard.keymap import Question

    space = ActionSpace([ActionDef("dig"), ActionDef("wait")])
    seen = Observation(available_actions=[ActionAvailability("dig", False, "you have no spade")])

    async def ask() -> Action:
        question = Question("seat-1", seen, space)
        assert question.press("d")
        assert question.reason == "dig is not possible now: you have no spade."
        assert not question.answer.done()
        assert question.press("w") or question.press(".")
        return await question.answer

    assert asyncio.run(ask()) == Action("wait")


# --- replay -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    """A run of the matrix game, 15 rounds over three episodes, with two seats."""
    path = str(tmp_path_factory.mktemp("replay") / "wsap.db")
    host = PluginHost.discovered()
    plan = RunPlan("matrix", plan_seats(host.games.get("matrix")), seed=3, steps=15, options={"rounds": 5})
    with open_store(path) as store, start(plan, host, store) as session:
        run_to_end(session)
    with open_database(path, read_only=True) as database:
        repository = Repository(database)
        yield Recording(repository, repository.get_run("last"), host)


def test_any_moment_is_as_it_was_recorded(recording: Recording) -> None:
    assert len(recording) == 30
    read = recording._repository.read_events
    steps = {(event.seat, event.step): event for event in read(recording.run.id, kinds=("step",))}
    events = [steps[event.seat, event.step] for event in read(recording.run.id, kinds=("chosen",))]
    totals = {"row": 0.0, "column": 0.0}
    for position, event in enumerate(events, start=1):
        line = json.loads(event.body)["step"]
        totals[line["seat"]] += line["result"]["reward"]
        stage = recording.stage(position, focus=0 if line["seat"] == "row" else 1)
        assert {seat.name: seat.reward for seat in stage.seats} == pytest.approx(totals)
        assert stage.seat.observation is not None
        assert stage.seat.observation.to_structured() == line["observation"]
        assert stage.seat.notes[-1].action == line["action"]["name"]
        assert stage.seat.episode == event.episode
    means = [recording.stage(30, focus=seat).scores[0][1] for seat in (0, 1)]
    assert means == pytest.approx([reward / 15 for reward in totals.values()], abs=1e-4)


def test_the_figures_say_how_many_episodes_there_will_be() -> None:
    session, view = watched("echo", steps=None, episodes=3)
    assert "episode 1/3" in text_of(view)
    assert spending_so_far(session.run).progress == 0
    asyncio.run(session.play())
    assert spending_so_far(session.run).progress == 1


def test_before_the_first_step_one_sees_what_was_seen_first(recording: Recording) -> None:
    stage = recording.stage(0)
    assert stage.seat.steps == 0
    assert stage.seat.observation is not None
    assert stage.seat.observation.status["round"] == 1


def test_a_step_can_be_typed(recording: Recording) -> None:
    browser = Browser(recording)
    for key in ("g", "1", "9", "x", "backspace", "2", "enter"):
        browser.press(key)
    assert browser.position == 12
    for key in ("g", "9", "9", "9", "enter"):
        browser.press(key)
    assert browser.position == 30
    browser.press("g")
    browser.press("esc")
    assert not browser.left, "Esc leaves the number, not the replay"
    browser.press("q")
    assert browser.left


def test_running_by_itself_it_holds_at_the_end_and_begins_anew(recording: Recording) -> None:
    browser = Browser(recording, 28)
    browser.press("space")
    assert browser.running
    browser.advance()
    browser.advance()
    assert (browser.position, browser.running) == (30, False)
    browser.press("space")
    assert (browser.position, browser.running) == (0, True)


def test_achievements_are_found_forth_and_back(tmp_path: Path) -> None:
    (tmp_path / "dig.py").write_text(
        "from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation\n"
        "class Dig:\n"
        "    game_description = 'Dig.'\n"
        "    action_space = ActionSpace([ActionDef('dig')])\n"
        "    def reset(self):\n"
        "        self.n = 0\n"
        "        return self.observe()\n"
        "    def observe(self):\n"
        "        return Observation(step=self.n)\n"
        "    def act(self, action):\n"
        "        self.n += 1\n"
        "        names = ['gold'] if self.n in (4, 9) else []\n"
        "        return ActionResult(True, '', 0.0, names, self.n == 12, self.observe())\n",
        encoding="utf-8",
    )
    host = PluginHost.discovered()
    path = str(tmp_path / "wsap.db")
    plan = RunPlan(f"{tmp_path / 'dig.py'}:Dig", (SeatPlan("seat-1", "random"),))
    with open_store(path) as store, start(plan, host, store) as session:
        run_to_end(session)
    with open_database(path, read_only=True) as database:
        repository = Repository(database)
        browser = Browser(Recording(repository, repository.get_run("last"), host))
        visited = []
        for key in "nnnppp":
            browser.press(key)
            visited.append(browser.position)
        assert visited == [4, 9, 9, 4, 4, 4]


class Wandering(RuleBasedStateMachine):
    """Whatever is pressed, one stays inside the run, and leaps are as long as they say."""

    recording: Recording

    @initialize(position=st.integers(-5, 60))
    def begin(self, position: int) -> None:
        self.browser = Browser(self.recording, position)
        self.expected = max(0, min(30, position))
        assert self.browser.position == self.expected

    @rule(key=st.sampled_from(["left", "right", "pageup", "pagedown", "home", "end"]))
    def jump(self, key: str) -> None:
        by = {"left": -1, "right": 1, "pageup": -LEAP, "pagedown": LEAP, "home": -1000, "end": 1000}[key]
        self.expected = max(0, min(30, self.expected + by))
        self.browser.press(key)
        assert self.browser.position == self.expected
        assert not self.browser.running

    @rule(key=st.sampled_from(["+", "-", "tab"]))
    def change(self, key: str) -> None:
        self.browser.press(key)
        assert self.browser.position == self.expected
        assert self.browser.pace > 0
        assert self.browser.stage().seat in self.browser.stage().seats


@pytest.mark.slow
def test_whatever_is_pressed_one_stays_inside_the_run(recording: Recording) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    Wandering.recording = recording
    run_state_machine_as_test(Wandering, settings=settings(max_examples=25, stateful_step_count=20, deadline=None))


# --- what models write ----------------------------------------------------------------------


def thought_of(seat: str, model: str, now: list[float] | None = None, prompt: str = "") -> Thought:
    """Return a request of a seat to a model; `now` holds the time."""
    return Thought(seat, model, Request([Message("user", prompt)]), lambda: 0.0 if now is None else now[0])


def test_what_a_model_is_writing_is_shown_until_its_reply_is_there() -> None:
    seen: list[str] = []

    class Seen(LiveView):
        def moved(self, thought: Thought) -> None:
            super().moved(thought)
            seen.append(text_of(self))

    host = PluginHost.discovered()
    controls = Controls()
    view = Seen(a_terminal(), controls, pace=None)
    model = {"model": "scripted/reply", "model.reply": '{"action": "wait", "params": {}}', "plan": False}
    plan = RunPlan("echo", (SeatPlan("seat-1", "llm", model),), seed=1, steps=2)
    parts = resolve_specs(plan, host)
    services = Services(views=view, models=ModelPool(host))
    session = unrecorded(plan, host, parts=parts, controls=controls, services=services)
    view.follow(session.run, parts.game)
    session.run.observe(view.observe)
    assert asyncio.run(session.play()).steps == 2
    assert "scripted/reply is writing: action: wait" in seen[0]
    assert "is writing" not in text_of(view)


def test_a_model_that_is_waited_for_is_shown_with_what_it_reads_and_for_how_long() -> None:
    session, view = watched(steps=2)
    asyncio.run(session.play())
    now = [100.0]
    thought = thought_of("seat-1", "openai/qwen", now, "What now? " * 500)
    assert view.began(thought)
    assert "openai/qwen" not in text_of(view), "most replies come at once"
    now[0] += 1
    assert re.search(r"openai/qwen: reading 1,\d\d\d tokens, 1 s", text_of(view))
    now[0] += 42
    assert " tokens, 43 s" in text_of(view)
    thought.move(Draft(waiting="no reply within 120 s; attempt 2 of 5 in 4 s"))
    now[0] += 2
    assert "openai/qwen: no reply within 120 s; attempt 2 of 5 in 4 s, 2 s" in text_of(view)
    thought.move(Draft())
    now[0] += 3
    assert " tokens, 3 s" in text_of(view)
    thought.move(Draft("I dig."))
    assert "openai/qwen is writing: I dig." in text_of(view)
    view.ended(thought)
    assert "openai/qwen" not in text_of(view)


def test_the_end_of_a_long_text_is_shown_without_what_could_move_the_cursor() -> None:
    session, view = watched(steps=2)
    asyncio.run(session.play())
    before = text_of(view)
    thought = thought_of("seat-1", "ollama/qwen3:8b\x1b[2J")
    view.began(thought)
    thought.move(Draft(thinking="Hm. " * 100 + "\x1b[2J\r\nWhere \u202eam I?"))
    (line,) = [line for line in text_of(view).splitlines() if "qwen3:8b" in line]
    assert "is thinking: …" in line
    assert line.rstrip().endswith("am I?")
    assert not {"\x1b", "\r", "\u202e"} & set(line)
    thought.move(Draft("I wait.", "Hm."))
    assert "is writing: I wait." in text_of(view)
    view.ended(thought)
    assert "qwen3:8b" not in text_of(view)
    assert "qwen3:8b" not in before


def test_a_person_who_plays_does_not_see_what_others_write() -> None:
    session, view = watched("matrix", agent="random", seats={"row": "human"})
    assert not view.began(thought_of("column", "ollama/qwen3:8b"))
    assert view._written() is None
    assert session.run.tallies
