"""The live view of a run, controlled with keys.

Only committed steps are shown: the log is flushed before each frame. Drawing takes at most a third of the time, and
slows the game down only if a pace is set.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from wsap_core.errors import WsapError
from wsap_core.protocol import Action, ActionSpace, Observation, View
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import error_line, single_line
from wsap_llm.middleware.show import Thought
from wsap_nexus.runs.play.controls import Controls
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.summary import score_so_far
from wsap_nexus.runs.run import Run
from wsap_nexus.tasks import ended
from wsap_nexus.terminal.blocks import can_decode, map_of
from wsap_nexus.terminal.keyboard import keys
from wsap_nexus.terminal.keyboard.keymap import KEYS, KEYS_OF_PLAYERS, LINE_ASKED, LINE_WAITING, LINE_WATCHING, Question
from wsap_nexus.terminal.panels import Scroll
from wsap_nexus.terminal.screen import SMALLEST, Look, compose, fits, last_picture
from wsap_nexus.terminal.spending import spending_so_far
from wsap_nexus.terminal.story import Note, SeatScene, SeatStory, Stage, Writing, note_of, writing_of

PACES: tuple[float | None, ...] = (1, 2, 5, 10, 20, 50, 100, 200, None)
"""Steps per second, for + and -; None for full speed."""

DEFAULT_PACE = 20.0
"""Default steps per second at a terminal: fast, but possible to follow."""

FRAMES = 12

SOON = 2.0
"""Seconds of waiting for other players before the duration is shown."""
SHOWN = 5.0
"""Minimum seconds for which a notice is shown."""


class LiveView:
    """Shows one run in the terminal, controlled with keys; asks people who play for their actions.

    Args:
        fps: maximum frames per second.
        pace: steps per second; None for full speed. Not used while a person plays.
        flush: returns when everything recorded so far is committed.
    """

    def __init__(
        self,
        console: Console,
        controls: Controls,
        *,
        fps: float = FRAMES,
        pace: float | None = DEFAULT_PACE,
        flush: Callable[[], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console
        self._controls = controls
        self._fps = fps
        self._flush = flush
        self._clock = clock
        self._last_pace = pace or DEFAULT_PACE
        self._stories: dict[str, SeatStory] = {}
        self._pending: deque[tuple[Note, StepTaken]] = deque()
        """Steps that were reported but not yet drawn."""
        self._run: Run | None = None
        self._spec: AdapterSpec | None = None
        self._interactive: frozenset[str] = frozenset()
        self._focus = ""
        """The seat that is shown."""
        self._frame = False
        self._help = False
        self._scroll = Scroll()
        self._remark = ""
        self._notice, self._told_at = "", 0.0
        self._question: Question | None = None
        self._held = False
        self._own: dict[str, View] = {}
        """Seat of a person -> the game's view for it."""
        self._answered: float | None = None
        """When the person at the keyboard last chose, until the next question."""
        self._thoughts: dict[Thought, None] = {}
        """The requests to models that have no whole reply yet, the oldest first."""
        self._asks = False
        """Whether a model was asked in this run."""
        self._dirty = asyncio.Event()
        controls.pace = pace

    def follow(
        self, run: Run, spec: AdapterSpec, *, past: Sequence[Note] = (), interactive: Sequence[str] = ()
    ) -> None:
        """Show a run and its last recorded steps; with several seats, people (`interactive`) see only their own."""
        self._run, self._spec = run, spec
        self._interactive = frozenset(interactive)
        self._stories = {tally.name: SeatStory(tally) for tally in run.tallies}
        self._focus = next((name for name in self._stories if name in self._interactive), next(iter(self._stories), ""))
        for note in past:
            if note.seat in self._stories:
                self._stories[note.seat].recall(note)
        if self._interactive:
            self._controls.pace = None

    # --- reported by the run --------------------------------------------------------------------

    def observe(self, step: StepTaken) -> None:
        """Add a step; called by the run for each."""
        note = note_of(step.seat, step.episode, step.step, step.action, step.result, forced=step.forced, info=step.info)
        self._pending.append((note, step))
        if self._clock() - self._told_at > SHOWN:
            self._notice = ""
        self._dirty.set()

    def tell(self, text: str) -> None:
        """Show a notice until the next step, and for at least `SHOWN` seconds."""
        self._notice, self._told_at = text, self._clock()
        self._dirty.set()

    def show(self, seat: str, observation: Observation, view: View | None) -> None:
        """Show a seat's observation, as reported by a game or agent."""
        if seat in self._stories:
            self._stories[seat].see(observation)
            self._dirty.set()

    def began(self, thought: Thought) -> bool:
        """Show what a seat's model is asked; to a person who plays, nothing of other seats."""
        if self._interactive and thought.seat not in self._interactive:
            return False
        self._thoughts[thought] = None
        self._asks = True
        self._dirty.set()
        return True

    def moved(self, thought: Thought) -> None:
        """Show what the model has written so far, or why it is waited for."""
        self._dirty.set()

    def ended(self, thought: Thought) -> None:
        """Show the request no longer."""
        self._thoughts.pop(thought, None)
        self._dirty.set()

    async def choose(self, seat: str, observation: Observation, space: ActionSpace) -> Action:
        """Return the action that the person at the keyboard chooses; called by the agent `human`."""
        question = Question(seat, observation, space)
        self._question = question
        if seat in self._stories:
            self._focus = seat
            self._stories[seat].see(observation)
        self._answered = None
        self._dirty.set()
        try:
            return await question.answer
        finally:
            self._question, self._answered = None, self._clock()
            self._dirty.set()

    # --- keys ------------------------------------------------------------------

    def press(self, key: str) -> None:
        """Handle a key."""
        self._dirty.set()
        if self._help:
            self._help = False
            return
        if (self._interactive and self._scroll.press(key)) or (self._question and self._question.press(key)):
            return
        controls = self._controls
        if key == "q":
            self._remark = "stopping"
            controls.stop()
        elif key == "?":
            self._help = True
        elif key == "tab":
            self._focus_next()
        elif key == "m":
            self._toggle_frame()
        elif self._interactive:
            return
        elif key == "space":
            self._held = not self._held
            controls.pause() if self._held else controls.resume()
        elif key in ("s", "right") and self._held:
            controls.step_once()
        elif key in ("+", "=", "-", "_"):
            self._change_pace(1 if key in "+=" else -1)
        elif key == "f":
            self._set_pace(None if controls.pace else self._last_pace)

    def _focus_next(self) -> None:
        seats = [name for name in self._stories if not self._interactive or name in self._interactive]
        if self._focus in seats:
            self._focus = seats[(seats.index(self._focus) + 1) % len(seats)]

    def _toggle_frame(self) -> None:
        if "render" not in (self._spec.abilities if self._spec else ()):
            self._remark = "this game has no picture"
        elif not can_decode():
            self._remark = "pictures need Pillow: pip install pillow"
        else:
            self._frame = not self._frame

    def _change_pace(self, by: int) -> None:
        now = self._controls.pace
        fastest = len(PACES) - 1
        index = fastest if now is None else min(range(fastest), key=lambda i: abs((PACES[i] or 0) - now))
        self._set_pace(PACES[max(0, min(index + by, len(PACES) - 1))])

    def _set_pace(self, pace: float | None) -> None:
        if pace is not None:
            self._last_pace = pace
        self._controls.pace = pace

    # --- drawing -------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Show the run on the whole screen and handle keys while the block runs."""
        with keys.whole_screen(self._console, self.press) as live:
            drawing = asyncio.create_task(self._draw(live))
            try:
                yield
            finally:
                await ended(drawing)
                await self.update_own_views()

    def print_last(self) -> None:
        """Print the last frame after the whole-screen view has ended."""
        self._flush = None  # everything is committed, or never will be
        self._take(len(self._pending))
        self._question, self._help, self._held, self._remark = None, False, False, "the end"
        self._asks = False
        width, height = self._console.size
        if not self._has_observation() or not fits(width, height):
            return
        stage = replace(self.stage(), keys="", notice="")
        rows = max(SMALLEST[1], min(height - 9, 36))
        if len(stage.seats) > 1 and (whole := last_picture(stage, width)) is not None:
            self._console.print(whole)  # all players may see how a game ended
        else:
            self._console.print(compose(stage, width, rows, self._look()), height=rows)
        for note in (seat.notes[-1] for seat in stage.seats if seat.name in self._interactive and seat.notes):
            if note.done:
                self._console.print(Text(f"{single_line(note.seat)}: {note.message}", "bold"))

    async def _draw(self, live: Live) -> None:
        size = None
        written = None
        while True:
            began = self._clock()
            # Redrawn after a resize even if nothing happens, and while seconds are counted.
            size_now = self._console.size
            written_now = self._written()
            still = size_now == size and written_now == written and self._has_observation() and self._waited() is None
            if self._dirty.is_set() or not still:
                self._dirty.clear()
                size, written = size_now, written_now
                await self.take_committed()
                await self.update_own_views()
                try:
                    picture = self.screen(size.width, size.height)
                    live.update(picture, refresh=True)
                except Exception as error:  # a failing view of a world must not end the run
                    said = f"The picture can't be drawn ({error_line(error, kind=True)})."
                    live.update(Text(f"{said} The run continues; q stops it."), refresh=True)
            spent = self._clock() - began
            await asyncio.sleep(max(1 / self._fps - spent, 2 * spent, 0.01))

    def _has_observation(self) -> bool:
        return all(story.now.observation is not None for story in self._stories.values())

    async def take_committed(self) -> None:
        """Show the steps that have been committed."""
        count = len(self._pending)
        if count and self._flush is not None:
            try:
                await asyncio.to_thread(self._flush)
            except WsapError:
                return  # the run itself raises the same error
        self._take(count)

    async def update_own_views(self) -> None:
        """With several seats, get the game's view for each person, which is not that of spectators."""
        if self._run is None or len(self._stories) < 2:
            return
        for name in self._interactive:
            with contextlib.suppress(Exception):  # must not end the run; the text is shown instead
                self._own.pop(name, None)
                if (view := await self._run.loop(name).seat.look()) is not None:
                    self._own[name] = view

    def _waited(self) -> float | None:
        """Return the seconds that the person at the keyboard has waited for others; None while not waiting."""
        if self._question is not None or self._answered is None or len(self._stories) < 2 or self._held:
            return None
        return self._clock() - self._answered

    def _take(self, count: int) -> None:
        for _ in range(count):
            note, step = self._pending.popleft()
            story = self._stories[note.seat]
            # Of several pending steps, only the last observation is shown.
            story.take(note, step.result.observation, plan=step.plan, planned=step.planned)
            if note.seat in self._interactive:
                self._scroll.at = 0

    def screen(self, width: int, height: int) -> RenderableType:
        """Return the whole screen."""
        look = self._look()
        if self._question is not None:
            look = replace(look, prompt=self._question.lines, scroll=self._scroll)
        return compose(self.stage(), width, height, look)

    def _look(self) -> Look:
        return Look(
            frame=self._frame,
            plain=self._console.no_color,
            help=(KEYS_OF_PLAYERS if self._interactive else KEYS) if self._help else (),
        )

    def stage(self) -> Stage:
        """Return the run as of the last `take_committed`."""
        run, spec = self._run, self._spec
        assert run is not None, "follow() comes first"
        assert spec is not None, "follow() comes first"
        self._look_at_world(run)
        scenes = tuple(
            SeatScene(name, story.now.agent, hidden=True)
            if self._interactive and name not in self._interactive
            else story.scene(self._view() if name == self._focus else None)
            for name, story in self._stories.items()
        )
        focused = next((seat for seat in run.tallies if seat.name == self._focus), None)
        return Stage(
            spec.display_title,
            run.run_id,
            run.plan.seed,
            run.plan.steps,
            scenes,
            list(self._stories).index(self._focus),
            spec.achievements,
            () if focused is None else score_so_far(spec, focused),
            self._state(),
            LINE_ASKED if self._question is not None else LINE_WAITING if self._interactive else LINE_WATCHING,
            spending_so_far(run),
            run.plan.episodes,
            self._notice,
            self._written(),
        )

    def _written(self) -> Writing | None:
        """Return what a model is writing, of the seat that is shown if possible; None if none was ever asked."""
        if not self._asks:
            return None
        shown = [thought for thought in self._thoughts if thought.seat == self._focus] or [*self._thoughts]
        return writing_of(shown[-1], several=len(self._stories) > 1) if shown else Writing()

    def _look_at_world(self, run: Run) -> None:
        """Before the first step, show the seats' first observations."""
        if run.world is None:
            return
        for name, story in self._stories.items():
            seat = run.world.seats.get(name)
            if story.now.observation is None and seat is not None and seat.last_observation is not None:
                story.see(seat.last_observation)

    def _view(self) -> View | None:
        """Return the world's view if it is needed, and fair to show."""
        run = self._run
        seen = self._stories[self._focus].now.observation
        own_map = seen is not None and map_of(seen.to_view()) is not None
        if run is None or run.world is None or (own_map and not self._frame):
            return None
        if self._interactive and len(self._stories) > 1:
            return self._own.get(self._focus)  # the world's view may show what a player must not know
        with contextlib.suppress(WsapError):
            if self._flush is not None:
                self._flush()
            try:
                return run.world.render()
            except Exception as error:  # must not end the run
                self._remark = f"no picture: {error_line(error, 40)}"
        return None

    def _state(self) -> str:
        if self._remark:
            remark = self._remark
            if remark != "stopping":
                self._remark = ""
            return remark
        if self._question is not None:
            return "your turn"
        if self._held:
            return "❚❚ paused"
        if (waited := self._waited()) is not None:
            return "waiting for others" if waited < SOON else f"waiting for others, {waited:.0f} s"
        pace = self._controls.pace
        return f"▶ {pace:g}/s" if pace else "▶ full speed"
