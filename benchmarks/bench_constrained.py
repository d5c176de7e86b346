"""Check that constrained replies of an untrained model are always readable, in real worlds and both styles.

    python benchmarks/bench_constrained.py [--decisions 10000] [--seed 0] [--engine llguidance] [--bare] [--json]

Decisions are those of `LLMAgent`, with its prompts, conversation memory, real tools and the default of 300 tokens per
reply; a decision that was repaired, forced or not bound also counts as a fault. With `--bare` the model is called
without an agent and with long limits that `outlines-core` can compile.

A tiny transformer with random weights plays Crafter and the repeated matrix game (two simultaneous seats) through the
backend `outlines`, a quarter of the decisions for each world and style. In the tag style it may call two tools per turn
and continues in its own thinking. Replies that don't parse, truncated replies, illegal actions or parameters, and
malformed tags must all be 0. Replies are read independently of the constraint: with `json.loads`, a JSON Schema
validator, and a plain list of tags.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from wsap_core import Action, Context
from wsap_core.protocol import ActionDef, ActionSpace, Observation, ParamDef, Tool
from wsap_core.seams.model import (
    Backend,
    Constraint,
    JsonConstraint,
    Message,
    OnText,
    RegexConstraint,
    Reply,
    Request,
    Sampling,
)
from wsap_llm.agent import LLMAgent
from wsap_llm.decision.styles import JsonStyle, TagStyle
from wsap_llm.options.llm import LLMOptions
from wsap_llm.reply.schema import reply_schema
from wsap_llm.reply.tags import OPENING, TagLimits, TagTurn, continue_text
from wsap_llm.tools.calculator import Calculator
from wsap_matrix.game import create_simultaneous

LIMITS = TagLimits(thinking=60, argument=20, final=40, calls=2)
TOOLS = (
    Tool("check_will", "Read a will.", (ParamDef("player", "string"),)),
    Tool("count", "Count something.", (ParamDef("what", "wood|stone|cows"), ParamDef("far", "1-12", optional=True))),
)
_TAG = re.compile(r"<(/?)([A-Za-z_][\w.\-]*)(/?)>")


@dataclass
class Tally:
    """Counts of decisions and faults."""

    decisions: int = 0
    replies: int = 0
    calls: int = 0
    """Tool calls in the tag style."""
    tokens: int = 0
    actions: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def fault(self, kind: str, text: str) -> None:
        """Count a fault."""
        self.faults[kind] += 1
        if len(self.examples) < 5:
            self.examples.append(f"{kind}: {text[:300]!r}")


def legal_now(actions: Sequence[ActionDef], observation: Observation) -> list[ActionDef]:
    """The actions that the observation itself lists as available."""
    if observation.available_actions is None:
        return list(actions)
    open_now = {entry.name for entry in observation.available_actions if entry.available}
    return [action for action in actions if action.name in open_now]


async def decide(
    backend: Backend, style: str, legal: Sequence[ActionDef], shown: str, seed: int, tally: Tally
) -> Action:
    """Return the model's decision; on a fault, count it and return the first legal action."""
    tally.decisions += 1
    messages = (Message("system", "You play a game. Answer with one action."), Message("user", shown))

    async def ask(prefill: str, constraint: Constraint) -> Reply:
        # Enough for the longest reply that fits the constraint, whatever the tokens.
        request = Request(messages, prefill, constraint=constraint, sampling=Sampling(4_000, seed=seed))
        reply = await backend.complete(request)
        tally.replies += 1
        tally.tokens += reply.usage.completion_tokens
        if reply.truncated:
            tally.fault("cut short", reply.text)
        return reply

    choose = decide_json if style == "json" else decide_tags
    action = await choose(ask, legal, tally)
    if action is None:
        action = Action(legal[0].name)
    tally.actions[action.name] += 1
    return action


async def decide_json(ask: Callable[..., Any], legal: Sequence[ActionDef], tally: Tally) -> Action | None:
    """One reply in the JSON style."""
    import jsonschema

    schema = reply_schema(legal, reasoning_limit=60, text_limit=40)
    reply = await ask("", JsonConstraint(schema))
    try:
        said = json.loads(reply.text)
    except ValueError:
        tally.fault("unparsable", reply.text)
        return None
    if next(jsonschema.Draft202012Validator(schema).iter_errors(said), None) is not None:
        tally.fault("outside the schema", reply.text)
        return None
    return checked(said["action"], said["params"], legal, reply.text, tally)


def checked(name: str, params: Any, legal: Sequence[ActionDef], text: str, tally: Tally) -> Action | None:
    """The action, if it is legal now and its parameters are as declared."""
    definition = next((action for action in legal if action.name == name), None)
    if definition is None:
        tally.fault("not legal", text)
        return None
    needed = {p.name for p in definition.parameters if not p.optional}
    if not isinstance(params, dict) or not needed <= set(params) <= {p.name for p in definition.parameters}:
        tally.fault("wrong parameters", text)
        return None
    return Action(name, params)


async def decide_tags(ask: Callable[..., Any], legal: Sequence[ActionDef], tally: Tally) -> Action | None:
    """One turn in the tag style: legs up to a tool's or the final tag."""
    turn = TagTurn(TOOLS, legal, limits=LIMITS)
    text = OPENING
    for left in range(LIMITS.calls, -1, -1):
        reply = await ask(text, RegexConstraint(turn.continuation_pattern(left)))
        tags = _TAG.findall(reply.text)
        names = [name for _, name, _ in tags]
        bare = _TAG.sub("", reply.text)
        if "<" in bare or (">" in bare and not tags) or not reply.text.endswith(">"):
            tally.fault("malformed tag", reply.text)
            return None
        if len(tags) == 2 and names[0] == names[1] and names[0] in turn.tools and left:
            if (tags[0][0], tags[1][0]) != ("", "/"):
                tally.fault("malformed tag", reply.text)
                return None
            tally.calls += 1
            text = continue_text(text + reply.text, "Player 3 says: N1 heal Player 5 </thinking> <wait/>.")
            continue
        content = bare_content(reply.text, tags, names)
        if content is None:
            tally.fault("malformed tag", reply.text)
            return None
        return read_final(names[1], content, legal, reply.text, tally)
    tally.fault("no final action", text)
    return None


def bare_content(text: str, tags: Sequence[tuple[str, str, str]], names: Sequence[str]) -> str | None:
    """The content of the final tag, if the leg is `...</thinking> <name>...</name>` or `...</thinking> <name/>`."""
    if not tags or tags[0] != ("/", "thinking", ""):
        return None
    if len(tags) == 2:
        return "" if tags[1][0] == "" and tags[1][2] == "/" else None
    if len(tags) != 3 or names[1] != names[2] or tags[1][0] or tags[1][2] or tags[2][0] != "/":
        return None
    return text[text.index(f"<{names[1]}>") + len(names[1]) + 2 : text.rindex("</")]


def read_final(name: str, content: str, legal: Sequence[ActionDef], text: str, tally: Tally) -> Action | None:
    """The action of a final tag: raw text for one parameter, an object for several."""
    definition = next((action for action in legal if action.name == name), None)
    try:
        if definition is not None and len(definition.parameters) == 1 and content:
            only = definition.parameters[0]
            value = int(content) if only.integer_range() else content
            return checked(name, {only.name: value}, legal, text, tally)
        return checked(name, json.loads(content) if content else {}, legal, text, tally)
    except ValueError:
        tally.fault("unparsable", text)
        return None


class Watched:
    """Forwards requests to a backend and reports each reply."""

    def __init__(self, inner: Backend, tell: Callable[[Request, Reply], None]) -> None:
        self._inner = inner
        self._tell = tell

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Give the reply."""
        reply = await self._inner.complete(request, on_text)
        self._tell(request, reply)
        return reply


class Player:
    """The agent of one seat; its replies are read again and counted."""

    def __init__(self, backend: Backend, style: str, seed: int, tally: Tally) -> None:
        self._tally = tally
        self._style = style
        self._agent = LLMAgent(
            cast("Backend", Watched(backend, self._look)),
            LLMOptions("a game", window=2, plan=False, strict=True, sampling=Sampling(seed=seed)),
            style=JsonStyle() if style == "json" else TagStyle(),
            tools=[Calculator()],
        )
        self._last = ""

    async def begin(self, description: str, space: ActionSpace) -> None:
        """Tell the agent of its world."""
        await self._agent.initialize(description, space)

    async def decide(self, observation: Observation, actions: Sequence[ActionDef]) -> Action:
        """Return the agent's decision, checked against what the observation says is legal."""
        tally = self._tally
        action = await self._agent.decide(observation)
        tally.decisions += 1
        tally.actions[action.name] += 1
        how = self._agent.last_decision
        assert how is not None
        for fault in ("repaired", "forced", "unconstrained", "cut"):
            if getattr(how, fault):
                tally.fault(fault, self._last)
        checked(action.name, dict(action.parameters), legal_now(actions, observation), self._last, tally)
        return action

    def _look(self, request: Request, reply: Reply) -> None:
        import jsonschema

        text, tally = reply.text, self._tally
        self._last = text
        tally.replies += 1
        tally.tokens += reply.usage.completion_tokens
        tally.calls += request.purpose == "tool"
        if reply.truncated:
            tally.fault("cut short", text)
        if isinstance(request.constraint, JsonConstraint):
            try:
                said = json.loads(text)
            except ValueError:
                tally.fault("unparsable", text)
                return
            validator = jsonschema.Draft202012Validator(request.constraint.schema)
            if next(validator.iter_errors(said), None) is not None:
                tally.fault("outside the schema", text)
        elif not well_formed(text):
            tally.fault("malformed tag", text)


def well_formed(text: str) -> bool:
    """Whether a leg is thinking followed by either a tool's element, or the end of thinking and an action's element."""
    tags = _TAG.findall(text)
    if "<" in _TAG.sub("", text) or not tags or not text.endswith(">"):
        return False
    if tags[0] == ("/", "thinking", ""):
        tags = tags[1:]
    if len(tags) == 1:
        return bool(tags[0][0] == "" and tags[0][2] == "/")
    pair = [(slash, alone) for slash, _, alone in tags] == [("", ""), ("/", "")]
    return pair and bool(tags[0][1] == tags[1][1])


async def agent_in_crafter(backend: Backend, style: str, decisions: int, seed: int, tally: Tally) -> None:
    """Play Crafter, episode after episode, by an agent, ignoring decisions to leave."""
    from wsap_crafter.adapter import CrafterAdapter

    world = CrafterAdapter(Context(seed=seed))
    player = Player(backend, style, seed, tally)
    await player.begin(world.game_description, world.action_space)
    observation: Observation = world.observe()
    for _ in range(decisions):
        action = await player.decide(observation, world.action_space.actions)
        if action.name == "jack_out":
            continue  # a matter of the runtime's
        result = world.act(action)
        observation = world.reset() if result.done else result.observation


async def agents_in_matrix(backend: Backend, style: str, decisions: int, seed: int, tally: Tally) -> None:
    """Play the matrix game with an agent in each seat, deciding simultaneously."""
    world = create_simultaneous(Context(seed=seed, config={"game": "rock-paper-scissors", "rounds": 20}))
    seats = [world.seat("one"), world.seat("two")]
    players = [Player(backend, style, seed + number, tally) for number in range(len(seats))]
    for player, seat in zip(players, seats, strict=True):
        await player.begin(seat.game_description, seat.action_space)
    while tally.decisions < decisions:
        seen = [await seat.observe() for seat in seats]
        pairs = zip(players, seen, seats, strict=True)
        actions = await asyncio.gather(*(p.decide(now, seat.action_space.actions) for p, now, seat in pairs))
        results = await asyncio.gather(*(seat.act(action) for seat, action in zip(seats, actions, strict=True)))
        if any(result.done for result in results):
            world.reset()


async def play_crafter(backend: Backend, style: str, decisions: int, seed: int, tally: Tally) -> None:
    """Play Crafter, episode after episode."""
    from wsap_crafter.adapter import CrafterAdapter

    world = CrafterAdapter(Context(seed=seed))
    observation: Observation = world.observe()
    for number in range(decisions):
        legal = legal_now(world.action_space.actions, observation)
        action = await decide(backend, style, legal, observation.to_text(), seed + number, tally)
        result = world.act(action)
        observation = world.reset() if result.done else result.observation


async def play_matrix(backend: Backend, style: str, decisions: int, seed: int, tally: Tally) -> None:
    """Play the matrix game; both seats decide simultaneously."""
    world = create_simultaneous(Context(seed=seed, config={"game": "rock-paper-scissors", "rounds": 20}))
    seats = [world.seat("one"), world.seat("two")]
    done = 0
    while done < decisions:
        now = [await seat.observe() for seat in seats]
        actions = await asyncio.gather(
            *(
                decide(
                    backend, style, legal_now(seat.action_space.actions, seen), seen.to_text(), seed + done + i, tally
                )
                for i, (seat, seen) in enumerate(zip(seats, now, strict=True))
            )
        )
        done += len(seats)
        results = await asyncio.gather(*(seat.act(action) for seat, action in zip(seats, actions, strict=True)))
        if any(result.done for result in results):
            world.reset()


async def play(backend: Backend, world: str, style: str, decisions: int, seed: int, *, bare: bool = True) -> Tally:
    """Make that many decisions in a world (`crafter`, `matrix`) and a style (`json`, `tags`)."""
    tally = Tally()
    if bare:
        await (play_crafter if world == "crafter" else play_matrix)(backend, style, decisions, seed, tally)
    else:
        await (agent_in_crafter if world == "crafter" else agents_in_matrix)(backend, style, decisions, seed, tally)
    return tally


def tiny_backend(engine: Any) -> Backend:
    """The backend over the tiny model."""
    from wsap_outlines.backend import OutlinesBackend
    from wsap_outlines.models.loading import adopt
    from wsap_outlines.options import Options
    from wsap_outlines.testing import tiny_model, tiny_tokenizer

    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    return OutlinesBackend("tiny", Options(engine=engine), loader=lambda _, options: adopt(model, tokenizer, options))


async def measure(decisions: int, seed: int, engine: str, *, bare: bool) -> list[dict[str, Any]]:
    """Play everything and return a row for each world and style."""
    backend = tiny_backend(engine)
    rows = []
    for world in ("crafter", "matrix"):
        for style in ("json", "tags"):
            began = time.perf_counter()
            tally = await play(backend, world, style, decisions // 4, seed, bare=bare)
            rows.append(
                {
                    "world": world, "style": style, "decisions": tally.decisions, "replies": tally.replies,
                    "tool calls": tally.calls, "tokens": tally.tokens, "different actions": len(tally.actions),
                    "faults": dict(tally.faults), "examples": tally.examples,
                    "seconds": round(time.perf_counter() - began, 1),
                }
            )  # fmt: skip
            print(rows[-1], file=sys.stderr, flush=True)
    await backend.aclose()
    return rows


def main() -> int:
    """Play and print a table; 1 if there is a fault."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engine", choices=("llguidance", "outlines-core"), default="llguidance")
    parser.add_argument("--bare", action="store_true", help="ask the model without an agent")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    torch.set_num_threads(1)
    rows = asyncio.run(measure(given.decisions, given.seed, given.engine, bare=given.bare))
    if given.json:
        print(json.dumps(rows, indent=2))
    else:
        for row in rows:
            print("  ".join(f"{key} {value}" for key, value in row.items() if key != "examples"))
    return 1 if any(row["faults"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
