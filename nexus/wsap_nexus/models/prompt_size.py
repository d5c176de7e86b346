"""How large the prompts of a game are, measured by making the first one without asking any model."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wsap_core.errors import UsageError
from wsap_core.factories import build
from wsap_core.seams.context import Context, derive_seed
from wsap_core.seams.memory import estimate_tokens
from wsap_core.seams.model import Abilities, Backend, ImagePart, Request
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_core.worlds import World
from wsap_llm.agent import LLMAgent
from wsap_llm.backends.registry import Models
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.tokens import estimate_picture, estimate_request
from wsap_nexus.runs.plan import RunPlan, SeatPlan
from wsap_nexus.runs.session import Installed

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.specs import AdapterSpec, AgentSpec

PATIENCE = 10.0
"""Seconds that a game has to show a seat its first observation."""


@dataclass(frozen=True)
class PromptSize:
    """About how many tokens the parts of a seat's prompts have; rather too many than too few."""

    system: int
    """The system message: rules and actions, the same in every request."""
    turn: int
    """What is shown each step, as it is in the first one."""
    plan: int
    """The request for a plan at the start of an episode; 0 where none is made."""
    window: int
    """About how many steps of the conversation go along: from half to twice as many."""
    reply: int
    """Most tokens of a reply."""
    first: Request
    """The first request for a decision."""
    pictures: int = 0
    """What the newest pictures take in every request; no request has them in common with the one before."""
    every: int = 1
    """Steps that each decision stands for, where nothing happens."""
    most: int = 1
    """Steps that the model may ask for at once."""
    looks_back: int | None = None
    """Decisions after which lessons are asked for; 0 for only at the end, None for never."""

    @property
    def least(self) -> int:
        """The context without which there is no decision: rules, one step, the pictures, and the longest reply."""
        return self.system + self.turn + self.pictures + self.reply

    def whole(self, reply: int) -> int:
        """Return the context that holds the conversation at its longest, when replies have so many tokens."""
        return self.least + 2 * self.window * (self.turn + reply)


async def measure(
    plan: RunPlan,
    seat: SeatPlan,
    game: AdapterSpec,
    agent: AgentSpec,
    host: PluginHost,
    *,
    abilities: Abilities | None = None,
) -> PromptSize:
    """Return how large a seat's prompts are.

    The game is made and reset, and the agent is made as for a run, but with a model that is never
    sent anything, and without a memory, which may be kept in files.

    Args:
        plan: what would be played.
        seat: one of its seats, whose agent asks a model.
        game: the game's spec.
        agent: the agent's spec.
        host: where tools come from.
        abilities: what the model can do; nothing in particular when None.

    Raises:
        UsageError: the agent asks no model, or the game shows the seat nothing before others have acted.
        WsapError: the game or the agent can't be made.
    """
    models = _Nobody(host, str(seat.options.get("model", "nobody/asked")), abilities or Abilities(images=None))
    services = Services(models=models, parts=Installed(host), progress=_say_nothing)
    world = World.create(game, Context.create(plan.seed, config=Options(plan.options), services=services))
    await world.reset(derive_seed(plan.seed, 0))
    places = {place.name: world.open_seat(place.name) for place in plan.seats}
    remembers = seat.options.get("memory", "none") != "none"
    # Without a memory there is no looking back, and asking for it is refused.
    left_out = ("memory", "reflect") if remembers else ("memory",)
    own = {name: value for name, value in seat.options.items() if name not in left_out and name[:7] != "memory."}
    context = Context.create(plan.seed, "agent", seat.name, config=own, services=services, agent_id=seat.name)
    made = build(agent.factory, replace(context, world=game.display_title, game=game))
    if not isinstance(made, LLMAgent):
        raise UsageError(f"The agent {seat.agent!r} asks no language model, so there is nothing to estimate.")
    place = places[seat.name]
    made.see_with(place.look)
    try:
        await made.initialize(place.game_description, place.action_space)
        try:
            async with asyncio.timeout(PATIENCE):
                observation = await place.observe()
        except TimeoutError:
            raise UsageError(f"{game.name!r} shows seat {seat.name!r} nothing before others have acted.") from None
        lines = made.plan(list(observation.current_goals))
        if inspect.isawaitable(lines):
            await lines
        asked = models.requests
        planned = len(asked)
        await made.decide(observation)
    finally:
        await made.aclose()
    first = asked[planned]
    system = estimate_tokens(first.messages[0].text()) + 4
    parts = [part for message in first.messages if not isinstance(message.content, str) for part in message.content]
    seen = sum(estimate_picture(part) for part in parts if isinstance(part, ImagePart))
    recall = made.options.recall_tokens if remembers else 0
    silent = str(seat.options.get("reflect", "yes")).strip().lower() in ("no", "false", "off", "0")
    return PromptSize(
        system,
        estimate_request(first) - system - seen + recall,
        sum(estimate_request(request) for request in asked[:planned]),
        made.options.window,
        made.options.sampling.max_tokens or 0,
        first,
        seen * made.options.pictures,
        made.options.pace.every,
        int(seat.options.get("max_steps", 1)),
        made.options.reflect_every if remembers and not silent else None,
    )


def _say_nothing(sentence: str) -> None:
    """Keep quiet: what is to be said about a model is said when it is asked."""


class _Nobody(Models):
    """Models that are asked and never sent anything."""

    def __init__(self, host: PluginHost, address: str, abilities: Abilities) -> None:
        super().__init__(host)
        # Any abilities but no limit: what does not fit is what is to be found out.
        self._probe = ScriptedBackend(lambda _: "{}", model=address, abilities=replace(abilities, context=None))

    @property
    def requests(self) -> list[Request]:
        return self._probe.requests

    def backend(self, name: str) -> Backend:
        """Return what nobody is behind, whatever the address."""
        return self._probe
