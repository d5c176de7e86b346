"""What ticks take: limits, prices, and an estimate before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wsap_core.errors import UsageError
from wsap_sandbox.cli.common import Stories, Told
from wsap_sandbox.options import PHASES, STORYTELLER, SandboxOptions

if TYPE_CHECKING:
    from wsap_core.seams.model import Price, Request, SpendingLimit
    from wsap_sandbox.model import World


def prices_of(about: Mapping[str, Any], price_in: float | None, price_out: float | None) -> dict[str, Price]:
    """Return the prices of a story's models, as given.

    Raises UsageError if only one of the two was given, or no language model is asked.
    """
    from wsap_core.seams.model import Price  # deferred for weight

    if price_in is None and price_out is None:
        return {}
    if price_in is None or price_out is None or min(price_in, price_out) < 0:
        raise UsageError("--price-in and --price-out go together, in US dollars for a million tokens, at least 0.")
    asked = addresses(about)
    if not asked:
        raise UsageError(
            "This story is told by the storyteller, which costs nothing; leave out --price-in and --price-out."
        )
    return {address: Price(price_in, price_out) for address in asked}


def addresses(about: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the language models that a story asks, each once."""
    options = SandboxOptions.read(about["config"]["options"])
    return sorted({address for address in options.models.values() if not free(address)})


def free(address: str) -> bool:
    """Return whether a model is the storyteller, which asks nobody."""
    return address.partition("/")[0] == STORYTELLER


def limits_of(about: Mapping[str, Any], words: Sequence[str], prices: Mapping[str, Price]) -> list[SpendingLimit]:
    """Return the limits that `--limit` sets.

    Raises UsageError if one has another form, or one of cost can't be kept because a price is not known.
    """
    from wsap_core.host import PluginHost
    from wsap_llm.kit import Budgets, ModelPool

    limits = Budgets.parse(words, scopes=("run",)).run
    pool = ModelPool(PluginHost.discovered(), prices=prices)
    for address in addresses(about) if limits.cost is not None else ():
        if not pool.knows_price(address):
            raise UsageError(
                f"--limit cost can't be kept: the price of {address} is not known; state it with --price-in and "
                "--price-out, or limit calls or tokens."
            )
    return [limits.budget("run")] if limits else []


def estimate(stories: Stories, name: str, ticks: int, prices: Mapping[str, Price]) -> Told:
    """Return about what so many ticks would take, from the prompts of the next one."""
    from wsap_llm.kit import estimate_request

    options = SandboxOptions.read(stories.runs.about(name)["config"]["options"])
    rows: dict[str, dict[str, Any]] = {}
    lines = []
    for phase, requests in next_requests(stories.world(name).state, options).items():
        address, calls = options.models[phase], ticks * len(requests)
        prompt = ticks * sum(map(estimate_request, requests))
        # A text is about half as long as it may be, and a token about four characters.
        reply = ticks * sum((request.sampling.max_tokens or 0) // 4 for request in requests)
        cost = prices[address].of(prompt, reply) if address in prices else None
        rows[phase] = {"model": address, "calls": calls, "prompt_tokens": prompt, "completion_tokens": reply,
                       "cost": cost}  # fmt: skip
        lines.append(f"{phase:8} {calls:>6} calls  {prompt:>9} + {reply} tokens  {address}")
    total = {key: sum(row[key] for row in rows.values()) for key in ("calls", "prompt_tokens", "completion_tokens")}
    costs = [row["cost"] for row in rows.values() if not free(row["model"])]
    cost = None if None in costs else sum(costs)
    said = "costs nothing" if not costs else "price unknown" if cost is None else f"about ${cost:.2f}"
    tokens = total["prompt_tokens"] + total["completion_tokens"]
    counted = f"{ticks} {'tick' if ticks == 1 else 'ticks'}: {total['calls']} calls, about {tokens} tokens, {said}."
    return {"run": name, "ticks": ticks, "phases": rows, **total, "cost": cost}, "\n".join((*lines, counted))


def next_requests(world: World, options: SandboxOptions) -> dict[str, list[Request]]:
    """Return the requests of the next tick by phase; where they depend on replies, with what is known before."""
    from wsap_sandbox.model import falling
    from wsap_sandbox.tick.facts import Facts, intent_facts, memory_facts, scene_facts
    from wsap_sandbox.tick.prompts import language, request_for

    spoken = language(world.language, compact=options.compact)
    intentions = {one.id: one.external_intent or one.name for one in world.characters}
    # A full memory, as it is after some ticks.
    remembering = [(one, falling(world.cells, one) or one.memory.cells[:1]) for one in world.characters]

    facts: list[Facts] = [intent_facts(world, one) for one in world.characters]
    facts += [scene_facts(world, place, intentions) for place in world.places]
    facts += [memory_facts(world, one, cells) for one, cells in remembering]
    found: dict[str, list[Request]] = {phase: [] for phase in PHASES}
    for known in facts:
        request = request_for("", known, spoken, seed=world.seed, text=options.text)
        found[request.purpose].append(request)
    found["story"] = found["scene"]  # about as long: the same place and people, and what came of it
    return found
