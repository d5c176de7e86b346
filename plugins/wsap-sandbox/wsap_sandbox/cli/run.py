"""`wsap sandbox run` and `step`: continue a story, or estimate the cost of doing so."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import click

from wsap_core.cli.output import print_json
from wsap_core.cli.params import FiniteRange, WholeNumber
from wsap_core.errors import ConfigError, UsageError
from wsap_core.paths import home
from wsap_sandbox.cli.common import (
    Stories,
    Told,
    chapter_data,
    chapter_text,
    opened,
    print_told,
    story_command,
    width,
    wrapped,
)
from wsap_sandbox.options import PHASES, SandboxOptions

if TYPE_CHECKING:
    from wsap_core.seams.model import Price, Request
    from wsap_sandbox.model import World

_POLL = 0.15
"""Seconds between polls of the log."""
_WORDS_A_SECOND = 4.0
"""How fast a story is told to a person: adults read 238 words of English prose a minute (Brysbaert 2019)."""
_LIMITS = (
    click.Option(["--events"], is_flag=True, help="Also print the ledger's events."),
    click.Option(["--limit", "limits"], multiple=True, metavar="KIND=N",
                 help="Stop before calls, tokens or cost (US dollars) of the whole story, earlier commands included, "
                 "exceed N: cost=2, calls=100, tokens=500000; may be repeated."),
    click.Option(["--price-in"], type=FiniteRange(0), metavar="FLOAT", help="US dollars per million prompt tokens."),
    click.Option(["--price-out"], type=FiniteRange(0), metavar="FLOAT", help="US dollars per million reply tokens."),
)  # fmt: skip


@story_command(
    "wsap sandbox run village --ticks 10",
    "wsap sandbox run village --every 30",
    "wsap sandbox run village --ticks 100 --limit cost=2 --estimate",
    sections={"Ticks": ("ticks", "every", "by_hand"), "Limits": ("estimate_only", "limits", "price_in", "price_out")},
    params=_LIMITS,
    opens=False,
)
@click.option("--ticks", type=WholeNumber(1), help="Number of ticks. Default: until Ctrl-C.")
@click.option("--every", type=FiniteRange(0, min_open=True), metavar="SECONDS",
              help="Minimum seconds from one tick to the next. Default: none; at a terminal, without --ticks, the time "
              "to read a tick.")  # fmt: skip
@click.option("--by-hand", is_flag=True, help="Run one tick each time Enter is pressed.")
@click.option("--webhook", metavar="URL", envvar="WSAP_SANDBOX_WEBHOOK",
              help="Also send the story to this address, signed with the key in WSAP_SANDBOX_WEBHOOK_SECRET; "
              "default: WSAP_SANDBOX_WEBHOOK.")  # fmt: skip
@click.option("--estimate", "estimate_only", is_flag=True, help="Only estimate calls, tokens and cost.")
def run(ticks: int | None, every: float | None, by_hand: bool, **given: Any) -> None:
    """Continue the STORY, and print it as it is told.

    Ctrl-C stops it with exit status 130. The next run completes the interrupted tick and reuses replies that
    have already arrived.
    """
    if by_hand and (ticks is not None or every is not None or given["as_json"]):
        raise UsageError("--by-hand waits for Enter; leave out --ticks, --every and --json.")
    read = ticks is None and every is None and not by_hand and not given["as_json"] and sys.stdout.isatty()
    _go_on(ticks=ticks, pace=None if every is None else 1 / every, by_hand=by_hand, read=read, **given)


@story_command("wsap sandbox step village", params=_LIMITS, opens=False)
def step(**given: Any) -> None:
    """Run one tick of the STORY, and print it."""
    _go_on(ticks=1, **given)


def _go_on(
    story: str, *, ticks: int | None, events: bool, limits: Sequence[str], price_in: float | None,
    price_out: float | None, as_json: bool, database: str | None, pace: float | None = None, by_hand: bool = False,
    read: bool = False, webhook: str | None = None, estimate_only: bool = False,
) -> None:  # fmt: skip
    from wsap_llm.kit import ModelPool, prices_for  # deferred for weight

    with opened(database) as stories:
        name, options = stories.find(story), stories.options(story)
        prices = prices_for(options.asked, price_in, price_out)
        if (price_in, price_out) != (None, None) and not prices:
            raise UsageError("The storyteller costs nothing; leave out --price-in and --price-out.")
        if estimate_only:
            print_told(estimate(stories, name, ticks or 1, options, prices), as_json)
            return
        most = ModelPool(prices=prices).run_limits(limits, options.asked, "--price-in and --price-out")
        budgets = [most.budget("story", stories.spent(name))] if most else []
    with opened(database, budgets=budgets, prices=prices) as stories:
        printer = Printer(stories, name, events, as_json, stories.runs.ticks(name) + 1)
        sending = _sending(stories, name, webhook)
        summary: dict[str, Any] | None = None
        with contextlib.suppress(KeyboardInterrupt):
            summary = asyncio.run(_play(printer, ticks, pace, sending, by_hand=by_hand, read=read))
        printer.rest()
        now = stories.runs.ticks(name)
        if as_json:
            print_json({"run": name, "tick": now, "interrupted": summary is None, "ticks": printer.data,
                        "usage": (summary or {}).get("usage")})  # fmt: skip
        elif summary is None:
            click.echo(f"\nStopped after tick {now}. Continue: wsap sandbox run {name}", err=True)
    if summary is None:
        click.get_current_context().exit(130)


def _sending(stories: Stories, name: str, address: str | None) -> Callable[[], AbstractAsyncContextManager[None]]:
    """Return a context manager that sends the story to a webhook. Raises ConfigError, also without a secret."""
    if not address:
        return contextlib.nullcontext
    from wsap_nexus.http.webhook import Webhook
    from wsap_sandbox.story.webhook import StorySender

    secret = os.environ.get("WSAP_SANDBOX_WEBHOOK_SECRET", "")
    if not secret:
        raise ConfigError("A webhook needs a secret for its signatures; set WSAP_SANDBOX_WEBHOOK_SECRET.")
    webhook = Webhook(address, secret, "the story", "wsap-sandbox", tell=lambda said: click.echo(said, err=True))
    return StorySender(stories.runs, name, webhook, home() / "webhooks", since=stories.runs.ticks(name)).sending


async def _play(
    printer: Printer, ticks: int | None, pace: float | None,
    sending: Callable[[], AbstractAsyncContextManager[None]], *, by_hand: bool = False, read: bool = False,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> dict[str, Any]:  # fmt: skip
    stories, name, models = printer.stories, printer.name, cast(Any, printer.stories.services.models)
    game = stories.runs.about(name)["game"]

    async def play(steps: int | None) -> dict[str, Any]:
        following = asyncio.create_task(printer.follow())
        try:
            return dict(await stories.runner.play(game, {}, run=name, steps=steps, pace=pace))
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)

    try:
        async with sending():
            summary: dict[str, Any] = {}
            if read:
                click.echo("Told at a reading pace: --every 1 is faster, and --ticks does not wait.\n", err=True)
                before = None
                while (now := stories.runs.ticks(name)) != before:  # the last play came to no tick: the story is over
                    before, told = now, printer.words
                    summary = await play(1)
                    printer.rest()
                    await sleep((printer.words - told) / _WORDS_A_SECOND)
                return summary
            if not by_hand:
                return await play(ticks)
            while await _enter():
                summary = await play(1)
                printer.rest()
            return summary
    finally:
        with contextlib.suppress(Exception):
            await models.aclose()


async def _enter() -> bool:
    """Wait for Enter; return False at the end of input or for q."""
    click.echo(click.style("\nEnter: next tick · q: stop", dim=True), err=True)
    loop = asyncio.get_running_loop()
    line = await loop.run_in_executor(None, sys.stdin.readline)
    return bool(line) and line.strip().casefold() not in ("q", "quit")


@dataclass
class Printer:
    """Prints a story as its log grows, whichever process runs it."""

    stories: Stories
    name: str
    events: bool
    as_json: bool
    next: int
    data: list[Any] = field(default_factory=list)
    """Collects ticks as JSON-ready data if `as_json`."""
    words: int = 0
    """The number of words printed."""

    async def follow(self) -> None:
        """Print new ticks until cancelled, and at a terminal which model is waited for."""
        waited = self.stories.services.require("models").waited if sys.stderr.isatty() else None
        if waited is not None:
            waited.shown = True
        try:
            while True:
                if waited is not None:
                    click.echo(f"\r{waited.line()[: width() - 1]}\033[K", err=True, nl=False)
                self._print(whole=True, live=waited is not None)
                await asyncio.sleep(_POLL)
        finally:
            if waited is not None:
                click.echo("\r\033[K", err=True, nl=False)

    def rest(self) -> None:
        """Print the remaining ticks, including one whose story is incomplete."""
        self._print(whole=False)

    def _print(self, *, whole: bool, live: bool = False) -> None:
        newest = self.stories.runs.ticks(self.name)
        if newest < self.next - 1:
            self.next = newest + 1  # the story was rewound
        if newest < self.next:
            return
        chapters = list(self.stories.chapters(self.name, self.next))  # a tick may have come since `newest` was read
        for chapter in chapters:
            if whole and chapter is chapters[-1] and len(chapter.stories) < len(chapter.places):
                return  # still being told
            self.next = chapter.tick + 1
            if live:
                click.echo("\r\033[K", err=True, nl=False)
            refused = list(self._refused(chapter.tick))
            if self.as_json:
                self.data.append(chapter_data(chapter) | {"refused": refused})
                continue
            text = chapter_text(chapter, events=self.events)
            self.words += len(text.split())
            click.echo(text)
            for one in refused:
                said = wrapped(f"! The influence {one['kind']!r} before this tick was refused: {one['why']}")
                click.echo(click.style(f"\n{said}", fg="yellow"))

    def _refused(self, tick: int) -> Iterator[dict[str, str]]:
        """Yield the influences before a tick that its world refused, with the reasons."""
        for event in self.stories.runs.history(self.name, "influence", first=tick, last=tick):
            if why := event["body"].get("refused"):
                yield {"kind": str(event["body"]["body"].get("kind")), "why": str(why)}


# --- estimates -----------------------------------------------------------------------------------


def estimate(stories: Stories, name: str, ticks: int, options: SandboxOptions, prices: Mapping[str, Price]) -> Told:
    """Estimate calls, tokens and cost of `ticks` ticks from the prompts of the next one."""
    from wsap_llm.kit import estimate_request

    rows: dict[str, dict[str, Any]] = {}
    lines = []
    for phase, requests in next_requests(stories.world(name).state, options).items():
        address, calls = options.models[phase], ticks * len(requests)
        prompt = ticks * sum(map(estimate_request, requests))
        # Assumes texts of half the maximum length, and four characters a token.
        reply = ticks * sum((request.sampling.max_tokens or 0) // 4 for request in requests)
        cost = prices[address].of(prompt, reply) if address in prices else None
        rows[phase] = {"model": address, "calls": calls, "prompt_tokens": prompt, "completion_tokens": reply,
                       "cost": cost}  # fmt: skip
        lines.append(f"{phase:8} {calls:>6} calls  {prompt:>9} + {reply} tokens  {address}")
    total = {key: sum(row[key] for row in rows.values()) for key in ("calls", "prompt_tokens", "completion_tokens")}
    costs = [row["cost"] for row in rows.values() if row["model"] in options.asked]
    cost = None if None in costs else sum(costs)
    said = "costs nothing" if not costs else "price unknown" if cost is None else f"about ${cost:.2f}"
    tokens = total["prompt_tokens"] + total["completion_tokens"]
    counted = f"{ticks} {'tick' if ticks == 1 else 'ticks'}: {total['calls']} calls, about {tokens} tokens, {said}."
    return {"run": name, "ticks": ticks, "phases": rows, **total, "cost": cost}, "\n".join((*lines, counted))


def next_requests(world: World, options: SandboxOptions) -> dict[str, list[Request]]:
    """Return the requests of the next tick by phase; where they depend on replies, with what is known now."""
    from wsap_sandbox.model import falling
    from wsap_sandbox.tick.facts import Facts, intent_facts, memory_facts, scene_facts
    from wsap_sandbox.tick.prompts import request_for

    intentions = {one.id: one.external_intent or one.name for one in world.characters}
    # As with a full memory.
    remembering = [(one, falling(world.cells, one) or one.memory.cells[:1]) for one in world.characters]

    facts: list[Facts] = [intent_facts(world, one) for one in world.characters]
    facts += [scene_facts(world, place, intentions) for place in world.places]
    facts += [memory_facts(world, one, cells) for one, cells in remembering]
    found: dict[str, list[Request]] = {phase: [] for phase in PHASES}
    for known in facts:
        request = request_for(world, known, "", options)
        found[request.purpose].append(request)
    found["story"] = found["scene"]  # of similar length
    return found
