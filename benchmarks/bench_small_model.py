"""Measure a small model's play, compared with random choice of the same options and with itself blinded.

    python benchmarks/bench_small_model.py [--case play|speed|prompts] [--model smollm2]
                                           [--game crafter --game minigrid]
                                           [--seeds 0-11] [--steps 150] [--temperature T] [--level N]
                                           [--how chosen --how written --how tags --how calls]
                                           [--profile brief|full] [--window N] [--against uniform]
                                           [--server URL] [--parallel N] [--minutes M]

The model is one in process, or one of an OpenAI-compatible `--server`, such as llama.cpp's. That server does not let
a model choose, so there the default is that it writes JSON.

play    Achievements per episode (Crafter), levels solved and achievements (MiniGrid) within `--steps`, with the 95 % t
        interval of the mean, for four entrants with the same options: the model; the model without the observation,
        which reads only the options and their phrases ("go west to the tree"); the model without the phrases, too; and
        a uniform draw of the legal options. Then paired differences by seed, and what the model's decisions took.
        `--against` selects entrants; `--parallel` plays so many seeds at once; no seed begins after `--minutes`. Goal
        in Crafter: better than the model that sees neither, with the interval above 0.
speed   Median seconds and prompt tokens per decision over `--steps`, when the model chooses and when it writes JSON,
        tags or function calls; and counts of repaired or forced decisions and of refused or ignored constraints. Goals
        on two cores: Crafter 250 tokens and 0.5 s, MiniGrid 450 tokens and 0.4 s; writing JSON 3 s and 1.5 s; none
        repaired or forced in these two.
prompts Tokens of the prompts of an episode that an agent by rules plays, as the `--server`, which must be llama.cpp's,
        counts them, with its chat template. Nothing is generated. Goals: MiniGrid in the profile brief 320 at most;
        Crafter in the profile full 1,050 at the first decision and 1,400 at the 50th.

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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from scipy import stats
from typing_extensions import override

from wsap_core.protocol import Action, AvatarSpec, Observation
from wsap_core.protocol.wire import dumps
from wsap_core.seams.agent import DecisionInfo
from wsap_core.seams.context import Context
from wsap_core.seams.model import Abilities, Backend, Request, Sampling
from wsap_crafter import survivor
from wsap_crafter.adapter import CrafterAdapter
from wsap_crafter.plugin import wsap_adapters as crafter_specs
from wsap_llm.agent import LLMAgent
from wsap_llm.backends.openai.backend import OpenAIBackend
from wsap_llm.backends.openai.options import OpenAIOptions
from wsap_llm.decision.choosing import ChooseStyle, options_of
from wsap_llm.decision.styles import CallStyle, JsonStyle, Style, TagStyle
from wsap_llm.options.llm import LLMOptions
from wsap_llm.reply.schema import legal_actions
from wsap_llm.scripted import ScriptedBackend
from wsap_minigrid.adapter import MiniGridAdapter
from wsap_minigrid.finder import Finder
from wsap_minigrid.plugin import wsap_adapters as minigrid_specs
from wsap_outlines.backend import OutlinesBackend
from wsap_outlines.options import Options

AGAINST = {"blinded": "blinded", "no-phrases": "blinded, no phrases", "uniform": "uniform draw"}
"""Word of `--against` -> entrant."""
GAMES: dict[str, tuple[Any, Any]] = {
    "crafter": (CrafterAdapter, next(iter(crafter_specs()))),
    "minigrid": (MiniGridAdapter, next(iter(minigrid_specs()))),
}
WHY = "There is a tree two steps to the west, and I need wood for a table."
"""A reason as long as most."""
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
    achievements: int
    seconds: list[float]
    tokens: list[int]
    made: list[DecisionInfo]


async def play(
    game: str,
    seed: int,
    steps: int,
    agent: LLMAgent | None,
    show: Callable[[Observation], Observation] = lambda x: x,
    level: int | None = None,
) -> Episode:
    """Play an episode with observations passed through `show`, or by a uniform draw without an agent."""
    adapter_class, _ = GAMES[game]
    config = {"level": level} if level is not None and game == "minigrid" else {}
    adapter, generator = adapter_class(Context.create(seed, config=config)), random.Random(seed)
    adapter.reset(seed)
    avatar = adapter.create_avatar("agent", AvatarSpec(name="agent"))
    adapter.jack_in("agent", avatar.avatar_id)
    space, found = adapter.action_space, Episode(0, 0, [], [], [])
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
        found.achievements += len(result.achievements)
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


def mind(wanted: argparse.Namespace, game: str, backend: Backend, seed: int, how: str) -> LLMAgent:
    """Return the model as an agent with the wanted profile and a style of `STYLES`."""
    spec = GAMES[game][1]
    sampling = Sampling(max_tokens=150, temperature=wanted.temperature, seed=seed)
    options = LLMOptions(
        spec.title, profile=wanted.profile, window=wanted.window, brief=spec.brief, sampling=sampling, plan=False
    )
    return LLMAgent(backend, options, style=STYLES[how](), generator=random.Random(seed))


def told(name: str, values: Sequence[float]) -> tuple[float, float]:
    """Print a mean with its interval and return the interval."""
    mean, error = statistics.fmean(values), stats.sem(values) if len(values) > 1 else 0.0
    low, high = stats.t.interval(0.95, len(values) - 1, mean, error) if error else (mean, mean)
    print(f"{name:<34} {mean:6.2f}   95 % {low:6.2f} to {high:6.2f}   n = {len(values)}", flush=True)
    return low, high


def told_costs(name: str, episodes: Sequence[Episode]) -> None:
    """Print what the decisions of episodes took, and how many were not the model's own."""
    seconds = [each for episode in episodes for each in episode.seconds]
    tokens = [each for episode in episodes for each in episode.tokens]
    made = [each for episode in episodes for each in episode.made]
    ninth = statistics.quantiles(seconds, n=10)[-1] if len(seconds) > 1 else seconds[0]
    written = statistics.median(m.usage.completion_tokens for m in made)
    print(
        f"{name}: {len(made)} decisions; {statistics.median(tokens):.0f} prompt tokens, {max(tokens)} at most, "
        f"{written:.0f} written; {statistics.median(seconds):.2f} s, 90 % below {ninth:.2f} s; "
        f"{sum(m.repaired and not m.forced for m in made)} repaired, {sum(m.forced for m in made)} forced, "
        f"{sum(m.unconstrained for m in made)} not bound",
        flush=True,
    )
    for cause, times in Counter(m.cause for m in made if m.cause).most_common(5):
        print(f"  {times} x {cause}", flush=True)


SHOWS: dict[str, Callable[[Observation], Observation]] = {
    "the model": lambda seen: seen,
    "blinded": without_text,
    "blinded, no phrases": without_anything,
}
"""Entrant that is the model -> what it sees."""


async def case_play(wanted: argparse.Namespace, backend: Backend, seeds: range) -> bool:
    """Play every game with the entrants."""
    reached = True
    names = ["the model", *dict.fromkeys(AGAINST[name] for name in wanted.against or AGAINST)]
    how = (wanted.how or ["written" if wanted.server else "chosen"])[0]
    for game in wanted.game:
        played: dict[int, dict[str, Episode]] = {}
        until, waiting = time.monotonic() + wanted.minutes * 60, iter(seeds)

        async def next_seeds(game: str = game, played: dict[int, Any] = played, until: float = until,
                             waiting: Iterator[int] = waiting) -> None:  # fmt: skip
            for seed in waiting:
                if time.monotonic() > until:
                    return
                found = {}
                for name in names:
                    agent = mind(wanted, game, backend, seed, how) if name in SHOWS else None
                    found[name] = await play(
                        game, seed, wanted.steps, agent, SHOWS.get(name, SHOWS["the model"]), wanted.level
                    )
                played[seed] = found
                scores = (f"{name} {e.score} ({e.achievements})" for name, e in found.items())
                print(f"  seed {seed}: {', '.join(scores)}", flush=True)

        await asyncio.gather(*(next_seeds() for _ in range(wanted.parallel)))
        print(
            f"{game}, {wanted.steps} steps, {how}, profile {wanted.profile}, window {wanted.window}, temperature "
            f"{wanted.temperature:g}, {wanted.parallel} at once, seeds {', '.join(map(str, sorted(played)))}"
        )
        kinds = {"score": "score" if game == "crafter" else "levels"}
        kinds |= {"achievements": "achievements"} if game != "crafter" else {}
        for field, kind in kinds.items():
            scores = {n: [float(getattr(played[seed][n], field)) for seed in sorted(played)] for n in names}
            for name, found in scores.items():
                told(f"{name}, {kind}", found)
            for other in names[1:]:
                lead = [a - b for a, b in zip(scores["the model"], scores[other], strict=True)]
                low, _ = told(f"the model - {other}, {kind}", lead)
                reached = reached and (game != "crafter" or other != "blinded, no phrases" or low > 0)
        for name in (n for n in names if n in SHOWS):
            told_costs(name, [played[seed][name] for seed in sorted(played)])
    return reached


async def case_speed(wanted: argparse.Namespace, backend: Backend, seeds: range) -> bool:
    """Time decisions, chosen and written."""
    reached = True
    for game in wanted.game:
        most, *limits = LIMITS[game]
        for how in wanted.how or (("written",) if wanted.server else ("chosen", "written")):
            episodes, seed = list[Episode](), seeds[0]
            while (left := wanted.steps - sum(len(episode.made) for episode in episodes)) > 0:
                agent = mind(wanted, game, backend, seed, how)
                episodes.append(await play(game, seed, left, agent, level=wanted.level))
                seed += 1
            limit = dict(zip(("chosen", "written"), limits, strict=True)).get(how, float("inf"))
            median = statistics.median(each for episode in episodes for each in episode.seconds)
            size = statistics.median(each for episode in episodes for each in episode.tokens)
            told_costs(f"{game}, {how} (goal {limit:g} s; x {median / limit:.2f}; {most} tokens)", episodes)
            unusable = any(m.repaired or m.forced for episode in episodes for m in episode.made)
            reached = reached and median <= limit and (how != "chosen" or size <= most)
            reached = reached and not (how in ("chosen", "written") and unusable)
    return reached


PROMPT_GOALS = {("minigrid", "brief"): (320, 320, 320), ("crafter", "full"): (1050, 1400, None)}
"""Game and profile -> most tokens at the first decision, at the 50th, and at any."""


async def case_prompts(wanted: argparse.Namespace, backend: Backend, seeds: range) -> bool:
    """Count the tokens of prompts without asking for a reply."""
    rules: dict[str, Callable[[int], Any]] = {
        "crafter": lambda seed: survivor.create(Context.create(seed)),
        "minigrid": lambda seed: Finder(),
    }
    reached = True
    async with aiohttp.ClientSession(wanted.server.rstrip("/").removesuffix("/v1")) as session:

        async def count(request: Request) -> int:
            messages = [{"role": each.role, "content": each.text()} for each in request.messages]
            async with session.post("/apply-template", json={"messages": messages}) as answer:
                content = (await answer.json())["prompt"]
            body = {"content": content, "add_special": False, "parse_special": True}
            async with session.post("/tokenize", json=body) as answer:
                return len((await answer.json())["tokens"])

        for game in wanted.game:
            player, tokens = rules[game](seeds[0]), list[int]()
            decided = [Action("noop")]

            def say(request: Request, decided: list[Action] = decided) -> str:
                return dumps({"action": decided[0].name, "params": {}, "reasoning": WHY})

            class Told(LLMAgent):
                """The agent, which does what the rules decide."""

                @override
                async def decide(
                    self, observation: Observation, player: Any = player, decided: list[Action] = decided
                ) -> Action:
                    decided[0] = player.decide(observation)
                    return await super().decide(observation)

            scripted = ScriptedBackend(say, abilities=Abilities(json_schema=True))
            spec = GAMES[game][1]
            options = LLMOptions(spec.title, profile=wanted.profile, window=wanted.window, brief=spec.brief, plan=False)
            player.initialize("", GAMES[game][0].action_space)
            await play(game, seeds[0], wanted.steps, Told(scripted, options, style=JsonStyle()), level=wanted.level)
            tokens = [await count(request) for request in scripted.requests]
            at_50 = tokens[min(49, len(tokens) - 1)]
            print(
                f"{game}, {wanted.profile}, window {wanted.window}: {tokens[0]} tokens at the first decision, {at_50} "
                f"at the 50th, median {statistics.median(tokens):.0f}, at most {max(tokens)}, of {len(tokens)}",
                flush=True,
            )
            goals = PROMPT_GOALS.get((game, wanted.profile), (None, None, None)) if wanted.window is None else ()
            found = (tokens[0], at_50, max(tokens))
            reached = reached and all(most is None or size <= most for size, most in zip(found, goals, strict=False))
    return reached


CASES = {"play": case_play, "speed": case_speed, "prompts": case_prompts}


def main() -> int:
    """Run a case and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", choices=tuple(CASES), default="play")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--game", choices=tuple(GAMES), action="append")
    parser.add_argument("--level", type=int, help="the first level of MiniGrid; default: 1")
    parser.add_argument("--seeds", default="0-11", help="the first and the last")
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument(
        "--how", choices=tuple(STYLES), action="append", help="how it decides; play: the first, speed: each"
    )
    parser.add_argument("--profile", choices=("brief", "full"), default="brief")
    parser.add_argument("--window", type=int, help="past steps in the prompt; default: the profile's own")
    parser.add_argument("--against", choices=tuple(AGAINST), action="append", help="for the case play; default: all")
    parser.add_argument("--parallel", type=int, default=1, help="for the case play: seeds played at once")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for the case play: no seed begins later")
    parser.add_argument("--threads", type=int, help="of the in-process model; default: the model's own")
    parser.add_argument("--server", metavar="URL", help="the base URL of an OpenAI-compatible server")
    wanted = parser.parse_args()
    wanted.game = wanted.game or list(GAMES)
    first, _, last = wanted.seeds.partition("-")
    backend: Backend = OutlinesBackend(wanted.model, Options(threads=wanted.threads), tell=print)
    if wanted.server:
        reached = OpenAIOptions(
            wanted.server, api_key="none", server="llama.cpp", calls=True, timeout=3600, extra={"tool_choice": "auto"}
        )  # llama-cpp-python's server fails if a call is required
        backend = OpenAIBackend(wanted.model, reached, tell=print)
    elif wanted.case == "prompts":
        parser.error("the case prompts needs --server")
    case = CASES[wanted.case]

    async def measured() -> bool:
        try:
            return await case(wanted, backend, range(int(first), int(last or first) + 1))
        finally:
            await backend.aclose()

    return int(not asyncio.run(measured()))


if __name__ == "__main__":
    sys.exit(main())
