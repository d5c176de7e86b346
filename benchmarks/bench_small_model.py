"""Measure a small in-process model's play, compared with random choice of the same options and with itself blinded.

    python benchmarks/bench_small_model.py [--case play|speed] [--model smollm2] [--game crafter --game minigrid]
                                           [--seeds 0-11] [--steps 150] [--temperature T]
                                           [--how chosen --how written --how tags --how calls] [--server URL]

play    Achievements per episode (Crafter) and levels solved (MiniGrid) within `--steps`, with the 95 % t interval of
        the mean, for four entrants with the same options: the model; the model without the observation, which reads
        only the options and their phrases ("go west to the tree"); the model without the phrases, too; and a uniform
        draw. Then paired differences by seed. Goal in Crafter: better than the model that sees neither, with the
        interval above 0.
speed   Median seconds and prompt tokens per decision over `--steps`, when the model chooses and when it writes JSON,
        tags or function calls, in the profile `brief`; and counts of repaired or forced decisions and of refused or
        ignored constraints. Function calls need an OpenAI-compatible `--server` with the model `--model`. Goals on
        two cores: Crafter 250 tokens and 0.5 s, MiniGrid 450 tokens and 0.4 s; writing JSON 3 s and 1.5 s; none
        repaired or forced in these two.

The exit status is 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy import stats
from typing_extensions import override

from wsap_core.protocol import Action, AvatarSpec, Observation
from wsap_core.seams.agent import DecisionInfo
from wsap_core.seams.context import Context
from wsap_core.seams.model import Backend, Sampling
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.plugin import wsap_adapters as crafter_specs
from wsap_llm.agent import LLMAgent
from wsap_llm.backends.openai import OpenAIBackend
from wsap_llm.backends.openai_options import OpenAIOptions
from wsap_llm.decision.choosing import ChooseStyle, options_of
from wsap_llm.decision.styles import CallStyle, JsonStyle, Style, TagStyle
from wsap_llm.options.llm import LLMOptions
from wsap_llm.reply.schema import legal_actions
from wsap_minigrid.adapter import MiniGridAdapter
from wsap_minigrid.plugin import wsap_adapters as minigrid_specs
from wsap_outlines.backend import OutlinesBackend
from wsap_outlines.options import Options

GAMES: dict[str, tuple[Any, Any]] = {
    "crafter": (CrafterAdapter, next(iter(crafter_specs()))),
    "minigrid": (MiniGridAdapter, next(iter(minigrid_specs()))),
}
LIMITS = {"crafter": (250, 0.5, 3.0), "minigrid": (450, 0.4, 1.5)}
"""Prompt tokens, seconds of a choice, seconds of a written reply."""
STYLES: dict[str, Callable[[], Style]] = {
    "chosen": lambda: ChooseStyle(JsonStyle()),
    "written": lambda: JsonStyle(reasoning_first=True),
    "tags": TagStyle,
    "calls": CallStyle,
}
"""How decisions are made -> style; when writing JSON, small models explain first."""


@dataclass
class Episode:
    """The result of an episode."""

    score: int
    seconds: list[float]
    tokens: list[int]
    made: list[DecisionInfo]


async def play(
    game: str, seed: int, steps: int, agent: LLMAgent | None, show: Callable[[Observation], Observation] = lambda x: x
) -> Episode:
    """Play an episode with observations passed through `shown`, or by a uniform draw without an agent."""
    adapter_class, _ = GAMES[game]
    adapter, generator = adapter_class(Context.create(seed)), random.Random(seed)
    adapter.reset(seed)
    avatar = adapter.create_avatar("agent", AvatarSpec(name="agent"))
    adapter.jack_in("agent", avatar.avatar_id)
    space, found = adapter.action_space, Episode(0, [], [], [])
    if agent is not None:
        await agent.initialize(adapter.game_description, space)
    for _ in range(steps):
        seen = adapter.observe()
        if agent is None:
            action: Action = generator.choice(list(options_of(legal_actions(space, seen), seen.phrases()).values()))
        else:
            began = time.perf_counter()
            action = await agent.decide(show(seen))
            found.seconds.append(time.perf_counter() - began)
            assert agent.last_decision is not None
            found.tokens.append(agent.last_decision.usage.prompt_tokens)
            found.made.append(agent.last_decision)
        result = adapter.act(action)
        names = [name for name in result.achievements if game == "crafter" or name.startswith("solve_")]
        found.score += len(names)
        if agent is not None:
            await agent.reflect(result)
        if result.done:
            break
    return found


class Blank(Observation):
    """An observation with nothing but the actions."""

    @override
    def to_brief(self) -> str:
        return "(You can't see anything.)"


def without_text(seen: Observation) -> Observation:
    """Return an observation with only the options and their phrases."""

    class Phrased(Blank):
        @override
        def phrases(self) -> Any:
            return seen.phrases()

    return Phrased(step=seen.step, available_actions=seen.available_actions)


def without_anything(seen: Observation) -> Observation:
    """Return an observation with only the names of the options."""
    return Blank(step=seen.step, available_actions=seen.available_actions)


def mind(game: str, backend: Backend, seed: int, temperature: float, how: str = "chosen") -> LLMAgent:
    """Return the model as an agent in the profile `brief` and a style of `STYLES`."""
    spec = GAMES[game][1]
    sampling = Sampling(max_tokens=150, temperature=temperature, seed=seed)
    options = LLMOptions(spec.title, profile="brief", brief=spec.brief, sampling=sampling)
    return LLMAgent(backend, options, style=STYLES[how](), generator=random.Random(seed))


def told(name: str, values: Sequence[float]) -> tuple[float, float]:
    """Print a mean with its interval and return the interval."""
    mean, error = statistics.fmean(values), stats.sem(values)
    low, high = stats.t.interval(0.95, len(values) - 1, mean, error) if error else (mean, mean)
    print(f"{name:<34} {mean:6.2f}   95 % {low:6.2f} to {high:6.2f}   n = {len(values)}", flush=True)
    return low, high


async def case_play(wanted: argparse.Namespace, backend: Backend, seeds: range) -> bool:
    """Play every game with the four entrants."""
    reached = True
    for game in wanted.game:
        shows = {"the model": lambda seen: seen, "blinded": without_text, "blinded, no phrases": without_anything}
        scores: dict[str, list[float]] = {name: [] for name in (*shows, "uniform draw")}
        for seed in seeds:
            for name, found in scores.items():
                agent = None if name == "uniform draw" else mind(game, backend, seed, wanted.temperature)
                episode = await play(game, seed, wanted.steps, agent, *([shows[name]] if agent else []))
                found.append(episode.score)
            print(f"  seed {seed}: " + ", ".join(f"{name} {found[-1]:g}" for name, found in scores.items()), flush=True)
        print(f"{game}, {wanted.steps} steps, temperature {wanted.temperature:g}")
        for name, found in scores.items():
            told(name, found)
        for other in list(scores)[1:]:
            low, _ = told(
                f"the model - {other}", [a - b for a, b in zip(scores["the model"], scores[other], strict=True)]
            )
            reached = reached and (game != "crafter" or other != "blinded, no phrases" or low > 0)
    return reached


async def case_speed(wanted: argparse.Namespace, backend: Backend, seeds: range) -> bool:
    """Time decisions, chosen and written."""
    reached = True
    for game in wanted.game:
        most, *limits = LIMITS[game]
        for how in wanted.how or ("chosen", "written"):
            seconds, tokens, made, seed = list[float](), list[int](), list[DecisionInfo](), seeds[0]
            while len(made) < wanted.steps:
                agent = mind(game, backend, seed, wanted.temperature, how)
                episode = await play(game, seed, wanted.steps - len(made), agent)
                seconds, tokens, made = seconds + episode.seconds, tokens + episode.tokens, made + episode.made
                seed += 1
            limit = dict(zip(("chosen", "written"), limits, strict=True)).get(how, float("inf"))
            median, size = statistics.median(seconds), statistics.median(tokens)
            repaired, forced = sum(m.repaired and not m.forced for m in made), sum(m.forced for m in made)
            print(
                f"{game}, {how}: {median:.2f} s (goal {limit:g}; x {median / limit:.2f}), 90 % below "
                f"{statistics.quantiles(seconds, n=10)[-1]:.2f} s; {size:.0f} tokens (goal {most}), "
                f"{max(tokens)} at most, {statistics.median(m.usage.completion_tokens for m in made):.0f} written; of "
                f"{len(made)}: {repaired} repaired, {forced} forced, {sum(m.unconstrained for m in made)} not bound",
                flush=True,
            )
            for cause, times in Counter(m.cause for m in made if m.cause).most_common(5):
                print(f"  {times} x {cause}", flush=True)
            reached = reached and median <= limit and (how != "chosen" or size <= most)
            reached = reached and not (how in ("chosen", "written") and repaired + forced)
    return reached


def main() -> int:
    """Run a case and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=("play", "speed"), default="play")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--game", choices=tuple(GAMES), action="append")
    parser.add_argument("--seeds", default="0-11", help="the first and the last")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument(
        "--how", choices=tuple(STYLES), action="append", help="for the case speed; default: chosen and written"
    )
    parser.add_argument("--threads", type=int, help="of the in-process model; default: the model's own")
    parser.add_argument("--server", metavar="URL", help="the base URL of an OpenAI-compatible server")
    wanted = parser.parse_args()
    wanted.game = wanted.game or list(GAMES)
    first, _, last = wanted.seeds.partition("-")
    backend: Backend = OutlinesBackend(wanted.model, Options(threads=wanted.threads), tell=print)
    if wanted.server:
        reached = OpenAIOptions(
            wanted.server, api_key="none", server="llama.cpp", calls=True, timeout=600, extra={"tool_choice": "auto"}
        )  # llama-cpp-python's server fails if a call is required
        backend = OpenAIBackend(wanted.model, reached, tell=print)
    case = case_play if wanted.case == "play" else case_speed

    async def measured() -> bool:
        try:
            return await case(wanted, backend, range(int(first), int(last or first) + 1))
        finally:
            await backend.aclose()

    return int(not asyncio.run(measured()))


if __name__ == "__main__":
    sys.exit(main())
