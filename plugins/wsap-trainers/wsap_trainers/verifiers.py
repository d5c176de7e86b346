"""Games as environments of verifiers, in which language models play all seats.

    # my_matrix.py
    from wsap_trainers.verifiers import WsapHarness, env_for

    MatrixTaskset, MatrixEnv = env_for("matrix")
    __all__ = ["MatrixEnv", "MatrixTaskset", "WsapHarness"]

verifiers loads this by the name of the module: `eval my-matrix`, `--env.taskset.id my-matrix`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any, ClassVar, Literal, TypeVar

import httpx
import verifiers.v1 as vf
from pydantic import Field, create_model
from verifiers.v1.dialects.chat import message_to_wire

from wsap_core.errors import UsageError
from wsap_core.protocol import Action, Observation
from wsap_core.untrusted import single_line
from wsap_llm.kit import NotUnderstood, legal_actions, read_reply
from wsap_nexus.doors.driven import DrivenTable
from wsap_trainers.names import python_name

# Any, in this module: verifiers' types, which are not installed where types are checked.

T = TypeVar("T")

TRAIN_FROM = 1_000_000
"""The first seed of the split `train`; those of `test` begin at 0."""
TESTS = 200
"""Number of tasks of the split `test`."""
FORM = 'Reply with one JSON object and nothing else: {"action": "name", "params": {}, "reasoning": "why"}'


class GameData(vf.TaskData):  # type: ignore[misc]  # it may be installed or not
    """An episode of a game."""

    game: str
    seed: int
    options: dict[str, Any] = Field(default_factory=dict)
    seats: int | None = None
    max_steps: int | None = None
    patience: int = 3


class GameTask(vf.Task[GameData]):  # type: ignore[misc]  # as above
    """An episode of a game; its rewards are those of the game."""

    @property
    def key(self) -> str:
        """The game, the seed and the options."""
        given = json.dumps([self.data.options, self.data.seats], sort_keys=True)
        return f"{self.data.game}:{self.data.seed}:{hashlib.sha256(given.encode()).hexdigest()[:12]}"


class GameTasksetConfig(vf.TasksetConfig):  # type: ignore[misc]  # as above
    """Which episodes are played."""

    split: Literal["train", "test"] = "train"
    """`train` has a task for each seed from 1,000,000 on and never ends, `test` those of the seeds 0 to 199."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the game."""
    max_steps: int | None = Field(None, ge=1)
    """Decisions of a seat after which an episode ends; None for the game's own limit only."""
    patience: int = Field(3, ge=1)
    """Replies in a row that can't be used, after which a seat takes the game's default action."""


class WsapTaskset(vf.Taskset[GameTask, GameTasksetConfig]):  # type: ignore[misc]  # as above
    """Episodes of a game, one for each seed; `env_for` makes a subclass for a game."""

    game: ClassVar[str]
    seats: ClassVar[int | None] = None

    def __init__(self, config: GameTasksetConfig) -> None:
        super().__init__(config)
        self.INFINITE = config.split == "train"

    def load(self) -> Iterator[GameTask]:
        """Yield a task for each seed."""
        chosen = self.config
        for seed in count(TRAIN_FROM) if chosen.split == "train" else range(TESTS):
            yield GameTask(
                GameData(
                    name=f"{self.game} #{seed}", game=self.game, seed=seed, options=chosen.options, seats=self.seats,
                    max_steps=chosen.max_steps, patience=chosen.patience,
                ),
                chosen.task,
            )  # fmt: skip


class WsapHarness(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc]  # as above
    """Asks the model once a turn, from this process: a game needs no program, and nothing that a model says is run."""

    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_RESUME = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self, ctx: Any, trace: Any, runtime: Any, endpoint: str, secret: str, mcp_urls: Any, data: Any
    ) -> vf.ProgramResult:
        """Send the conversation to the model, and let verifiers record the reply."""
        system, said = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        body = {"model": ctx.model, "messages": messages + [message_to_wire(each) for each in said]}
        try:
            async with httpx.AsyncClient(timeout=None) as client:  # noqa: S113  verifiers has the limits of time
                answer = await client.post(
                    f"{endpoint}/chat/completions", json=body, headers={"Authorization": f"Bearer {secret}"}
                )
        except httpx.TransportError as error:
            raise vf.InterceptionError(f"the model could not be asked: {single_line(error)[:300]}") from error
        return vf.ProgramResult(0 if answer.is_success else 1, "", "" if answer.is_success else answer.text[-2000:])


@dataclass
class _Player:
    """A seat, and the model that plays it."""

    interaction: Any
    told: str = ""
    """What it was told since it was asked last."""
    decisions: int = 0
    useless: int = 0
    """Replies in a row that could not be used."""
    reward: float = 0.0
    counts: dict[str, float] = field(default_factory=lambda: {"refused": 0.0, "repaired": 0.0, "forfeits": 0.0})


class WsapEnv(vf.Env[vf.EnvConfig]):  # type: ignore[misc]  # as above
    """A game whose seats are played by one agent each; `env_for` makes a subclass for a game.

    Seats that decide at the same time are asked together (`--env.max-concurrent-agents`), and their actions carried
    out together. A trace has one reward, the sum of what its seat was paid, and the metrics `refused` (replies that
    could not be used), `repaired` (those that were mended), `forfeits` (decisions taken by default) and `truncated`.

    A failure of the game or of a model is raised: the episode fails, has no reward, and is played anew.
    """

    roles: ClassVar[Mapping[str, str]]
    """Name of a seat -> name of its agent."""

    async def run(self, task: Any, agents: Any) -> None:
        """Play an episode."""
        data = task.data
        with ThreadPoolExecutor(1, thread_name_prefix="wsap-game") as aside:

            async def call(what: Callable[..., T], *given: Any) -> T:
                return await asyncio.get_running_loop().run_in_executor(aside, what, *given)

            table = await call(lambda: DrivenTable(data.game, data.options, seats=data.seats))
            try:
                await call(table.reset, data.seed)
                await self._played(task, agents, table, call)
            finally:
                await call(table.close)

    async def _played(self, task: Any, agents: Any, table: DrivenTable, call: Any) -> None:
        cut: set[str] = set()
        async with AsyncExitStack() as seated:
            players: dict[str, _Player] = {}
            for seat in table.seats:
                agent = getattr(agents, self.roles[seat])
                own = task.with_system_prompt(f"{table.description(seat)}\n\n{FORM}")
                players[seat] = _Player(await seated.enter_async_context(agent.interaction(own)))
            while table.ready and not self._late(task.data, players):
                asked = dict(table.ready)
                deciding = [self._decided(task.data, table, s, players[s], seen) for s, seen in asked.items()]
                chosen = await asyncio.gather(*deciding, return_exceptions=True)
                for failure in chosen:
                    if isinstance(failure, BaseException):
                        raise failure  # within the block, so that no seat's trace counts
                if None in chosen:
                    cut = set(table.seats)
                    break
                for seat, outcome in (await call(table.step, dict(zip(asked, chosen, strict=True)))).items():
                    self._tell(players[seat], outcome.result)
                    cut |= {seat} if outcome.result.truncated else set()
        late = self._late(task.data, players)
        for seat, player in players.items():
            trace = player.interaction.trace
            trace.record_reward("reward", player.reward)
            trace.record_metrics({**player.counts, "truncated": float(late or seat in cut)})

    def _late(self, data: Any, players: Mapping[str, _Player]) -> bool:
        return data.max_steps is not None and any(each.decisions >= data.max_steps for each in players.values())

    async def _decided(
        self, data: Any, table: DrivenTable, seat: str, player: _Player, seen: Observation
    ) -> Action | None:
        """Ask a seat's model until a reply can be used, and return its action; None if the model reached a limit of
        verifiers, or has no usable reply where the game has no default action."""
        space = table.action_space(seat)
        possible, asked = legal_actions(space, seen), f"{player.told}\n\n{seen.to_text()}".strip()
        player.decisions += 1
        while player.useless < data.patience:
            segment = await player.interaction.turn(asked)
            if segment.terminated:
                if player.interaction.trace.errors:
                    raise RuntimeError(f"the model of {seat} failed; its trace has the reason")
                return None
            reading = read_reply(segment.last_reply, possible, declared=space.actions)
            if not isinstance(reading, NotUnderstood) and isinstance(reading.choice, Action):
                player.counts["repaired"] += reading.repaired
                return reading.choice
            why = reading.reason if isinstance(reading, NotUnderstood) else "That is no action."
            player.useless += 1
            player.counts["refused"] += 1
            asked = f"Your reply could not be used: {single_line(why)[:400]}\n{FORM}"
        player.counts["forfeits"] += 1
        player.useless = 0
        return table.default_action(seat)

    def _tell(self, player: _Player, result: Any) -> None:
        player.told = result.message
        player.reward += float(result.reward)
        if result.success:
            player.useless = 0
        else:
            player.useless += 1
            player.counts["refused"] += 1


def env_for(
    game: str, *, options: Mapping[str, Any] | None = None, seats: int | None = None
) -> tuple[type[WsapTaskset], type[WsapEnv]]:
    """Return a taskset and an environment of a game, for a module that verifiers loads by its name.

    The environment has an agent for each seat, named like it as far as Python allows: `--env.row.model`. By default an
    agent is the model that is trained or evaluated.

    Args:
        game: a registered game, or `./file.py:Name`.
        options: options of the game.
        seats: the number of players; None for the fewest.

    Raises:
        UsageError: two seats would have the same name, or the game goes on by itself.
        WsapError: the game can't be created.
    """
    table = DrivenTable(game, options, seats=seats)
    taken = tuple(vf.EnvConfig.model_fields)
    roles = {seat: python_name(seat, taken) for seat in table.seats}
    title = table.spec.display_title
    name = "".join(part.capitalize() for part in python_name(table.spec.name).split("_"))
    count_of_seats = len(table.seats)
    table.close()
    if len(set(roles.values())) < len(roles):
        raise UsageError(f"Two seats of {single_line(title)[:60]} would have the same name as agents.")
    agent = vf.AgentConfig(runtime=vf.SubprocessConfig())
    given: dict[str, Any] = dict.fromkeys(roles.values(), (vf.AgentConfig, agent))
    config = create_model(f"{name}EnvConfig", __base__=vf.EnvConfig, **given)
    chosen: dict[str, Any] = {"options": (dict[str, Any], Field(default_factory=lambda: dict(options or {})))}
    tasks = create_model(f"{name}TasksetConfig", __base__=GameTasksetConfig, **chosen)

    class OwnTaskset(WsapTaskset, vf.Taskset[GameTask, tasks]):  # type: ignore[misc]  # made above
        pass

    class OwnEnv(WsapEnv, vf.Env[config]):  # type: ignore[misc]  # made above
        pass

    OwnTaskset.__doc__, OwnEnv.__doc__ = f"Episodes of {title}.", f"{title}, with an agent for each seat."
    OwnTaskset.game, OwnTaskset.seats, OwnEnv.roles = game, count_of_seats, roles
    OwnTaskset.__name__, OwnEnv.__name__ = f"{name}Taskset", f"{name}Env"
    return OwnTaskset, OwnEnv
