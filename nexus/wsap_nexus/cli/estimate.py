"""What a run with a language model will take, before it is played."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from wsap_core.untrusted import one_line
from wsap_nexus.cli.default_model import addresses
from wsap_nexus.cli.model_options import AGENT
from wsap_nexus.models import remembered
from wsap_nexus.terminal.spending import count, duration, money

if TYPE_CHECKING:
    from wsap_core.host import PluginHost
    from wsap_core.seams.model import Abilities
    from wsap_core.seams.services import CallSize
    from wsap_llm.wrappers import Price
    from wsap_nexus.cli.model_options import ModelRequest
    from wsap_nexus.models.prompt_size import PromptSize
    from wsap_nexus.models.remembered import Known
    from wsap_nexus.runs.plan import RunPlan
    from wsap_nexus.runs.session import Parts
    from wsap_nexus.services import SharedModels

LONG = 100
"""Calls from which an estimate is printed before a run."""

DEAR = 1.0
"""US dollars from which a person at a terminal is asked first."""

REPLY = 80
"""Tokens of a reply that are assumed where none was measured: an action with a sentence of reasoning."""

EPISODE = 1000
"""Steps that are assumed for one episode, whose length nobody knows before."""

SIMULATED = 2000
"""Steps whose prompts are gone through one by one; more of them are alike."""

PATIENCE = 20.0
"""Seconds that a backend has to say what its model can do; litellm alone takes several to be imported."""


@dataclass(frozen=True)
class Estimate:
    """What a run will take, as far as it can be told. Prompts' tokens are rather too many than too few."""

    model: str
    seats: int
    """How many seats ask it."""
    steps: int
    """Of each of them."""
    calls: int
    """One for each decision, one for the first plan, and those for looking back that are sure to come; questions
    asked twice, later plans and deaths are not in it."""
    prompt_tokens: int
    completion_tokens: int
    shared: float
    """The share of the prompts' tokens that repeat the beginning of the prompt before, from 0 to 1."""
    seconds: float | None
    """At the speed that was measured when it was used last; None where it never was."""
    cost: float | None
    """In US dollars, nothing taken off for prompts that repeat; None where the price is not known, never 0 for that."""
    assumed: tuple[str, ...]
    """What it rests on, in sentences."""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return asdict(self) | {"assumed": list(self.assumed)}

    def lines(self) -> list[str]:
        """Return it as lines for a person."""
        took = "unknown time" if self.seconds is None else f"about {duration(self.seconds)}"
        seats = f" for {self.seats} seats" if self.seats > 1 else ""
        head = (
            f"Estimate for {one_line(self.model)}: {self.calls} calls{seats}, "
            f"{count(self.prompt_tokens)} tokens in ({self.shared:.0%} of them repeated), "
            f"{count(self.completion_tokens)} out, {took}, {money(self.cost)}."
        )
        return [head, *(f"  {sentence}" for sentence in self.assumed)]


def reply_tokens(known: Known, size: PromptSize) -> tuple[float, str]:
    """Return how many tokens a reply is taken to have, and where that comes from."""
    if known.reply_tokens:
        return known.reply_tokens, f"{known.reply_tokens:.0f} tokens a reply, as measured over {known.calls} calls."
    assumed = min(REPLY, size.reply or REPLY)
    return assumed, f"{assumed} tokens a reply, which is assumed; a model that thinks first takes more."


def estimate(
    model: str,
    size: PromptSize,
    *,
    steps: int,
    seats: int = 1,
    known: Known | None = None,
    price: Price | None = None,
    context: int | None = None,
    assumed: tuple[str, ...] = (),
) -> Estimate:
    """Return what so many steps will take.

    Args:
        model: the address.
        size: of its prompts.
        steps: decisions of each seat.
        seats: how many seats ask it.
        known: what was measured when it was used last.
        price: what it costs; None where that is not known.
        context: the model's context, which shortens the history; None for no limit.
        assumed: more of what it rests on.
    """
    from wsap_nexus.models.remembered import Known

    known = known or Known()
    reply, source = reply_tokens(known, size)
    decisions = -(-steps // size.every)
    prompts, shared = _prompts(size, decisions, round(reply), context)
    looks = _looks_back(size, decisions)
    calls = decisions + bool(size.plan) + looks
    looking = round(looks * prompts / max(1, decisions))
    prompt_tokens, replies = seats * (prompts + size.plan + looking), round(seats * calls * reply)
    seconds = None if known.seconds_a_call is None else known.seconds_a_call * calls * seats
    seen = f", {size.pictures} for pictures in each prompt" if size.pictures else ""
    fewer = []
    if size.every > 1:
        fewer.append(f"A decision for each {size.every} steps; more where something happens in between.")
    if size.most > 1:
        fewer.append(f"The model may ask for up to {size.most} steps at once, which makes fewer calls.")
    if looks:
        fewer.append(f"{looks} of the calls{' of each seat' * (seats > 1)} look back for lessons; deaths make more.")
    step = f"{size.system} tokens of rules and {size.turn} a step{seen}, measured on the first prompt."
    pace = [] if known.seconds_a_call is None else [f"{known.seconds_a_call:.2g} s a call, as when it was used last."]
    return Estimate(
        model,
        seats,
        steps,
        seats * calls,
        prompt_tokens,
        replies,
        round(seats * shared / prompt_tokens, 4) if prompt_tokens else 0.0,
        seconds,
        None if price is None else price.of(prompt_tokens, replies),
        (step, source, *fewer, *pace, *assumed),
    )


def _looks_back(size: PromptSize, decisions: int) -> int:
    """Return how often lessons are asked for at least: at the end, and every so many decisions before it."""
    from wsap_llm.reflection import LEAST

    if size.looks_back is None or decisions < LEAST:
        return 0
    every = size.looks_back
    between = decisions // every if every else 0
    since = decisions - between * every
    return between + (since >= LEAST)


def together(found: Sequence[Estimate]) -> Estimate:
    """Return what several models take in all, each for its own seats."""
    if len(found) == 1:
        return found[0]
    prompts = sum(each.prompt_tokens for each in found)
    seconds, costs = [each.seconds for each in found], [each.cost for each in found]
    return Estimate(
        ", ".join(each.model for each in found),
        sum(each.seats for each in found),
        found[0].steps,
        sum(each.calls for each in found),
        prompts,
        sum(each.completion_tokens for each in found),
        round(sum(each.shared * each.prompt_tokens for each in found) / prompts, 4) if prompts else 0.0,
        None if None in seconds else sum(filter(None, seconds)),
        None if None in costs else sum(filter(None, costs)),
        tuple(f"{each.model}: {sentence}" for each in found for sentence in each.assumed),
    )


def _prompts(size: PromptSize, steps: int, reply: int, context: int | None) -> tuple[int, int]:
    """Return the tokens of so many prompts, and how many of them repeat the prompt before.

    The agent's own window is gone through, so that it is cut where it will be cut.
    """
    from wsap_llm.window import HistoryTurn, Window

    # A turn of the same size as those to come: a digit is a token, and each message has four more.
    turn = HistoryTurn("0" * max(0, size.turn - 4), "0" * reply)
    window = Window(size.window)
    total = shared = before = 0
    counted = min(steps, SIMULATED)
    for _ in range(counted):
        if context is not None and size.least + len(window.turns) * turn.tokens > context:
            window.fit(max(0, context - size.least))
        prompt = size.system + len(window.turns) * turn.tokens + size.turn
        # It begins with all of the one before, unless the window was cut in between.
        shared += 0 if not before else before if prompt > before else size.system
        total, before = total + prompt + size.pictures, prompt
        window.add(turn)
    return round(total * steps / max(1, counted)), round(shared * steps / max(1, counted))


# --- for a plan ----------------------------------------------------------------------------------


def estimate_plan(plan: RunPlan, parts: Parts, host: PluginHost, prices: Mapping[str, Price]) -> Estimate | None:
    """Return what a plan will take of its model, or None if no seat asks one.

    Raises:
        WsapError: the first prompt can't be made.
    """
    if not (asked := addresses(plan)):
        return None

    async def each() -> list[Estimate]:
        return [await _estimate_model(address, plan, parts, host, prices) for address in asked]

    return together(asyncio.run(each()))


async def _estimate_model(
    address: str, plan: RunPlan, parts: Parts, host: PluginHost, prices: Mapping[str, Price]
) -> Estimate:
    """Return what a plan's seats with one model take of it."""
    from wsap_core.errors import WsapError
    from wsap_llm.backends.registry import Models
    from wsap_llm.secrets import resolved
    from wsap_nexus.models.prompt_size import measure

    asking = [seat for seat in plan.seats if seat.agent == AGENT and str(seat.options.get("model", "")) == address]
    seat = asking[0]
    assumed: list[str] = []
    known = remembered.read(os.environ).known(address)
    abilities: Abilities | None = None
    price = prices.get(address)
    async with Models(host) as models:
        own = resolved(seat.options, os.environ)
        models.configure(address, {k[6:]: v for k, v in own.items() if k.startswith("model.")})
        try:
            async with asyncio.timeout(PATIENCE):
                abilities = (await models.ready(address)).abilities
        except (WsapError, TimeoutError) as error:
            said = one_line(error) or f"no answer within {PATIENCE:g} s"
            assumed.append(f"Its context could not be asked for: {said}")
        if price is None:
            price = _told_price(models, address)
    size = await measure(plan, seat, parts.game, parts.agents[seat.name], host, abilities=abilities)
    if plan.steps is None:
        assumed.append(f"One episode is taken to have {EPISODE} steps; --steps N makes it certain.")
    return estimate(
        address,
        size,
        steps=EPISODE if plan.steps is None else plan.steps,
        seats=len(asking),
        known=known,
        price=price,
        context=abilities.context if abilities is not None else None,
        assumed=tuple(assumed),
    )


def _told_price(models: Any, address: str) -> Price | None:
    """Return what the backend itself knows of the price (Any: backends of all kinds); None where it knows none."""
    from wsap_llm.wrappers import Price

    inner = models.backend(address)
    while hasattr(inner, "inner"):
        inner = inner.inner
    cost_of = getattr(inner, "cost_of", None)
    if cost_of is None:
        return None
    low, high = cost_of(1_000_000, 0), cost_of(0, 1_000_000)
    return None if low is None or high is None else Price(low, high)


async def call_size(models: SharedModels, plan: RunPlan, name: str, parts: Parts, host: PluginHost) -> CallSize:
    """Return what one decision of a seat takes of its model; the model itself is not asked to decide.

    Args:
        models: where its abilities and its price are asked for, within `PATIENCE`.
        plan: what would be played.
        name: the seat; one that decides first.
        parts: what the plan's names stand for.
        host: where tools come from.

    Raises:
        WsapError: the seat asks no model, its first prompt can't be made, or its options are wrong.
    """
    from wsap_core.errors import UsageError
    from wsap_core.seams.model_errors import BackendError
    from wsap_core.seams.services import CallSize
    from wsap_nexus.models.prompt_size import measure

    seat = next(seat for seat in plan.seats if seat.name == name)
    address = str(seat.options.get("model", ""))
    if seat.agent != AGENT or not address:
        raise UsageError(f"Seat {name!r} asks no language model, so there is nothing to estimate.")
    abilities, assumed = None, []
    try:
        async with asyncio.timeout(PATIENCE):
            abilities = (await models.open(address, seat.options)).abilities
    except (BackendError, TimeoutError) as error:
        said = one_line(error) or f"no answer within {PATIENCE:g} s"
        assumed.append(f"What it can do could not be asked for: {said}")
    known = remembered.read(os.environ).known(address)
    size = await measure(plan, seat, parts.game, parts.agents[name], host, abilities=abilities)
    reply, source = reply_tokens(known, size)
    price = models.price(address) or _told_price(models, address)
    prompt = size.system + size.turn + size.pictures
    return CallSize(address, prompt, reply, known.seconds_a_call, price, size.plan, (source, *assumed))


def measured_prompt(game: str, host: PluginHost) -> PromptSize:
    """Return how large the prompts of a game are for the agent `llm` as it is without options.

    Raises:
        WsapError: the game can't be made.
    """
    from wsap_core.references import load_adapter_spec
    from wsap_nexus.models.prompt_size import measure
    from wsap_nexus.runs.plan import RunPlan, plan_seats
    from wsap_nexus.runs.session import load_parts

    spec = load_adapter_spec(game, host)
    plan = RunPlan(game, plan_seats(spec, agent=AGENT, options={"model": "nobody/asked"}))
    parts = load_parts(plan, host)
    seat = plan.seats[0]
    return asyncio.run(measure(plan, seat, parts.game, parts.agents[seat.name], host))


# --- before a run --------------------------------------------------------------------------------


def go_ahead(request: ModelRequest, plan: RunPlan, parts: Parts, host: PluginHost, *, as_json: bool) -> bool:
    """Return whether to play, after saying what a long run will take of its model.

    Said on standard error from 100 calls on, or from a dollar on. Only a person at a terminal is
    ever asked, and only where it would cost more than a dollar and neither `--yes` nor a limit in
    money, for the run or the day, was given. With `--estimate` it is printed on standard output, and nothing is played.

    Raises:
        UsageError: an estimate is asked for, and no model plays.
        WsapError: one is asked for, and the first prompt can't be made.
    """
    from wsap_core.errors import UsageError, WsapError

    asked = addresses(plan)
    if not asked and not request.estimate:
        return True
    prices = request.prices(asked)
    if request.estimate:
        found = estimate_plan(plan, parts, host, prices)
        if found is None:
            raise UsageError("--estimate is about what a language model takes; say which, with --model ADDRESS.")
        _show(_held(found, request), as_json=as_json)
        return False
    if not (prices or plan.steps is None or plan.steps >= LONG):
        return True
    try:
        found = estimate_plan(plan, parts, host, prices)
    except WsapError:
        return True  # whatever it is, the run itself says it
    if found is None or (found.calls < LONG and (found.cost or 0.0) < DEAR):
        return True
    if not as_json or sys.stderr.isatty():
        for line in _held(found, request).lines():
            click.echo(line, err=True)
    person = sys.stdin.isatty() and sys.stderr.isatty()
    bounded = request.yes or request.max_cost is not None or request.daily_cost is not None
    if bounded or not person or found.cost is None or found.cost < DEAR:
        return True
    if click.confirm(f"It would cost about {money(found.cost)}. Play?", err=True):
        return True
    click.echo("Nothing was played.", err=True)
    return False


def _held(found: Estimate, request: ModelRequest) -> Estimate:
    """Return an estimate that says which of the limits that were typed hold the run before its end."""
    tokens = found.prompt_tokens + found.completion_tokens
    more: list[str] = []
    for name, each in (("max", "of the run"), ("daily", "of a day, which other runs share,")):
        for kind, takes in (("calls", found.calls), ("tokens", tokens), ("cost", found.cost)):
            limit = getattr(request, f"{name}_{kind}")
            if limit is not None and takes is not None and takes > limit:
                more.append(f"The limit {each} pauses it after about {limit / takes:.0%} (--{name}-{kind} {limit:g}).")
    return replace(found, assumed=(*found.assumed, *more))


def _show(found: Estimate, *, as_json: bool) -> None:
    if as_json:
        from wsap_core.cli.output import print_json

        print_json(found.to_json())
        return
    for line in found.lines():
        click.echo(line)
