"""The tools with which a client plays games."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, ActionDef, ActionResult, ActionSpace, Observation
from wsap_core.protocol.wire import dumps
from wsap_core.references import load_adapter_spec
from wsap_core.seams.context import SEED_LIMIT, Context
from wsap_core.seams.options import Options
from wsap_core.specs import AdapterSpec
from wsap_core.worlds import World
from wsap_core.worlds.seat import Seat
from wsap_mcp.games import OpenGame, OpenGames
from wsap_mcp.telling import content_of, result_text, see_text, start_text
from wsap_mcp.tools import NO_ARGUMENTS, Arguments, Offered, Readable, Told, schema_of
from wsap_nexus.doors.outside import OutsideRun

# Any, in this module: JSON.

HANDLE: Mapping[str, Any] = {"type": "string", "description": "The game, as start_game returned it."}
SEED: Mapping[str, Any] = {
    "type": "integer",
    "minimum": 0,
    "maximum": SEED_LIMIT,
    "description": "The same seed and actions give the same game; drawn by chance if it is left out.",
}
OWN_TOOLS = ("start_game", "show_game", "act", "stop_game", "resume_game", "list_games")
MOST_LISTED = 100
"""Maximum number of runs in the list of runs."""


@dataclass(frozen=True)
class Terms:
    """How the games of a server are played."""

    game: str | None = None
    """The game; None to let the client choose among those installed."""
    seat: str | None = None
    opponents: Mapping[str, str] | str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    each: bool = False
    """Whether each action of the game is a tool of its own."""
    state: bool = False
    """Whether structured content has the whole observation."""


class Play:
    """Plays games for clients."""

    def __init__(self, games: OpenGames, terms: Terms, *, chance: Callable[[int], int] = random.randrange) -> None:
        self._games = games
        self._terms = terms
        self._chance = chance
        self.host = games.runs.host
        self.spec: AdapterSpec | None = None if terms.game is None else self._spec(terms.game)

    def tools(self) -> list[Offered]:
        """Return the tools."""
        start = {"seed": SEED}
        if self.spec is None:
            start = {"name": {"type": "string", "description": "The game; see list_games."}, **start}
        if self.spec is None or self.spec.seats[1] > 1:
            start["seat"] = {"type": "string", "description": "The seat that you play; by default the first."}
        needed = ("name",) if self.spec is None else ()
        what = "a game" if self.spec is None else self.spec.display_title
        found = [
            Offered("start_game", f"Start {what}. Returns its handle, the rules, and what you see.",
                    schema_of(needed, **start), self.start),
            Offered("show_game", "Show again what you see in a game. Takes no step.", schema_of(("game",), game=HANDLE),
                    self.show, reads=True),
            Offered("stop_game", "Stop a game. It can be resumed by the id of its run.",
                    schema_of(("game",), game=HANDLE), self.stop),
            Offered("resume_game", "Resume a stopped game where it was. Returns its new handle.",
                    schema_of(("run",), run={"type": "string", "description": "The id of its run, or last."}),
                    self.resume),
        ]  # fmt: skip
        if self.spec is None:
            found.insert(0, Offered("list_games", "List the games that can be played.", NO_ARGUMENTS, self.list_games,
                                    reads=True))  # fmt: skip
        space = self._space() if self._terms.each else None
        if space is not None:
            found += map(self._of_action, space.listed().actions)
            if not any(action.unlisted for action in space.actions):
                return found
        schema = schema_of(
            ("game", "action"),
            game=HANDLE,
            action={"type": "string", "description": "The name of an action."},
            parameters={"type": "object", "description": "The action's parameters by name."},
            reasoning={"type": "string", "description": "Why you do it, for the record."},
        )
        act = Offered("act", "Take an action in a game, and see what happens.", schema, self.act)
        return [*found, act]

    def resources(self) -> list[Readable]:
        """Return the resources."""
        return [
            Readable("wsap://games", "games", "The games that can be played.", self._games_text),
            Readable("wsap://games/{name}", "rules", "The rules and actions of a game.", self._rules),
            Readable("wsap://runs", "runs", "The newest recorded runs.", self._runs),
            Readable("wsap://runs/{run}", "run", "A recorded run: its game, seats, status and summary.", self._run,
                     "application/json"),
        ]  # fmt: skip

    # --- tools ------------------------------------------------------------------------------------------

    async def list_games(self, given: Arguments) -> Told:
        """List the installed games."""
        return Told(await self._games_text(""), {"games": list(self.host.games.names())})

    async def start(self, given: Arguments) -> Told:
        """Start a game."""
        name = self._terms.game or str(given["name"])
        if self._terms.game is None:
            self._check_choice(name)
        seed = given.get("seed", self._chance(SEED_LIMIT + 1))
        begin = partial(
            self._games.runs.play,
            name,
            seat=given.get("seat", self._terms.seat),
            opponents=self._terms.opponents,
            seed=seed,
            options=self._terms.options,
        )
        return await self._begun(begin, seed=seed)

    async def resume(self, given: Arguments) -> Told:
        """Resume a game."""
        return await self._begun(partial(self._games.runs.resume, str(given["run"])))

    async def show(self, given: Arguments) -> Told:
        """Show a game."""
        opened = self._games.get(given["game"])
        observation = await opened.run.observation()
        return Told(see_text(opened.run, observation), self._content(opened, observation))

    async def act(self, given: Arguments) -> Told:
        """Take an action."""
        parameters = given.get("parameters") or {}
        action = Action(str(given["action"]), dict(parameters), given.get("reasoning"))
        return await self._act(self._games.get(given["game"]), action)

    async def stop(self, given: Arguments) -> Told:
        """Stop a game."""
        opened = self._games.get(given["game"])
        over, run = opened.run.over, opened.run.run_id
        await self._games.close(opened.handle)
        how = f"Look back with: wsap replay {run}" if over else f"Resume it with resume_game and the run {run!r}."
        return Told(f"The game is {'over' if over else 'stopped'}. {how}", {"run": run, "done": over})

    # --- parts ------------------------------------------------------------------------------------------

    async def _begun(self, begin: Callable[[], OutsideRun], **more: Any) -> Told:
        opened = await self._games.add(begin)
        try:
            observation = await opened.run.observation()
        except BaseException:
            await asyncio.shield(self._games.close(opened.handle))
            raise
        text = start_text(opened.handle, opened.run, observation)
        return Told(text, self._content(opened, observation) | more)

    async def _act(self, opened: OpenGame, action: Action) -> Told:
        opened.calls += 1
        try:
            result = await opened.run.turn(action)
        finally:
            opened.calls -= 1
        text = result_text(opened.run, result, result.observation)
        return Told(text, self._content(opened, result.observation, result), failed=not result.success)

    def _content(
        self, opened: OpenGame, observation: Observation, result: ActionResult | None = None
    ) -> dict[str, Any]:
        return content_of(opened.handle, opened.run, observation, result, state=self._terms.state)

    def _of_action(self, action: ActionDef) -> Offered:
        schema = action.json_schema()
        for parameter in action.parameters:
            if parameter.description or (parameter.spec and parameter.choices() is None):
                described = parameter.description or parameter.spec
                schema["properties"][parameter.name] = {
                    **schema["properties"][parameter.name], "description": described,
                }  # fmt: skip
        if "game" in schema["properties"] or action.name in OWN_TOOLS:
            raise UsageError(f"The action {action.name!r} can't be a tool of its own; leave out --each.")
        schema["properties"] = {"game": HANDLE, **schema["properties"]}
        schema["required"] = ["game", *schema["required"]]

        async def call(given: Arguments) -> Told:
            parameters = {name: value for name, value in given.items() if name != "game"}
            return await self._act(self._games.get(given["game"]), Action(action.name, parameters))

        needs = f" Needs: {'; '.join(action.preconditions)}." if action.preconditions else ""
        return Offered(action.name, f"{action.description or action.name}.{needs}", schema, call)

    def _space(self) -> ActionSpace:
        """Return the actions of the client's seat, in a world that is made for that alone."""
        if self.spec is None:
            raise UsageError("With --each, name the game: its actions become the tools.")
        return _opened(self.spec, self._terms.seat, self._terms.options).action_space

    def _check_choice(self, name: str) -> None:
        """Raise an error unless a client may choose a game: an installed one, whose name makes it run no other code
        of this machine."""
        spec = self.host.games.get(name)  # raises, with similar names, for a file too
        if any(option.names not in ("", "model") and option.name in spec.preset for option in spec.options):
            raise UsageError(f"{name} is chosen where the server is started, with: wsap mcp {name}")

    def _spec(self, name: str) -> AdapterSpec:
        return load_adapter_spec(name, self.host).with_options(dict(self._terms.options))

    async def _games_text(self, rest: str) -> str:
        specs = [self.spec] if self.spec is not None else [self.host.games.get(n) for n in self.host.games.names()]
        return "\n".join(f"- {spec.name}: {spec.summary or spec.display_title}" for spec in specs)

    async def _rules(self, name: str) -> str:
        if self.spec is not None and name != self.spec.name:
            raise UsageError(f"This server plays {self.spec.name!r} only.")
        spec = self.spec or self.host.games.get(name).with_options({})
        seat = _opened(spec)
        return f"{seat.game_description.strip()}\n\nACTIONS:\n{seat.action_space.listed().to_text()}"

    async def _runs(self, rest: str) -> str:
        records = self._games.runs.store.repository.list_runs(limit=MOST_LISTED)
        return "\n".join(f"{r.id}  {r.game}  {r.agent}  {r.status.value}  {r.created}" for r in records) or "None yet."

    async def _run(self, name: str) -> str:
        record = self._games.runs.store.repository.get_run(name)
        seats = record.config.get("seats")
        return dumps(
            {
                "run": record.id,
                "game": record.game,
                "status": record.status.value,
                "seed": record.seed,
                "created": record.created,
                "seats": seats,
                "summary": record.summary,
            }
        )


def _opened(spec: AdapterSpec, seat: str | None = None, options: Mapping[str, Any] | None = None) -> Seat:
    """Return a seat, by default the first, of a world that is made to be asked of its rules and actions."""
    world = World.create(spec, Context.create(0, config=Options(dict(options or {}))))
    return world.open_seat(seat or spec.names_of_seats(spec.seats[1])[0])


def instructions_of(spec: AdapterSpec | None) -> str:
    """Return what a client's model is told of the server."""
    what = "Games" if spec is None else f"The game {spec.display_title}"
    return (
        f"{what} to play, one action at a time. Call start_game once; its result has a handle, which each later call "
        "takes as `game`. Read what is possible now before you act. Each game is recorded as a run and can be resumed."
    )
