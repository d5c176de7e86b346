"""The stage card: how good the page of a game will be, from a run that is played for it.

What a game may leave out is advice, with a sentence that says what to add. What it
says wrongly is an error or a warning.
"""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, cast

from wsap_check.checks.seats import names
from wsap_check.play import Mood, RandomPlayer, Table, own_actions
from wsap_check.raised import describe
from wsap_check.steps import Step, fresh_text
from wsap_check.subject import Fault, Notes, NothingToCheck, Subject, check, several_seats
from wsap_core.protocol import ChatBlock, GridMapBlock, ImageBlock, Observation, TimelineBlock, View

SECTION = "stage"
"""The section of these checks in a report."""

LONGEST_CAPTION = 220
"""Characters of a caption that the page shows."""

LARGEST_PICTURE = 100_000
"""Bytes of a picture that a page can be sent several times a second."""

_STEPS = 60
"""Most steps that are played for one check."""
_PLAYER = 100
"""The seed of those who play."""


@dataclass(frozen=True)
class _Shown:
    """What spectators are shown after a step."""

    step: Step
    view: View
    seconds: float
    """How long the game drew it."""


def _draws(subject: Subject) -> str:
    return "" if subject.can("render") else "there is no picture, see `stage-picture`"


async def _played(subject: Subject, each: Callable[[Table, Step], None], mood: Mood = "available") -> None:
    """Play a few steps, and call `each` after every one."""
    table = await Table(subject).begin()
    steps = min(subject.steps, _STEPS)
    try:
        await table.play(RandomPlayer(_PLAYER, mood), steps, episodes=True, each=lambda s: each(table, s), cut=True)
    except Fault:
        raise NothingToCheck("play fails, which other checks report") from None


async def _shown(subject: Subject) -> list[_Shown]:
    """Return what spectators are shown during a run."""
    found: list[_Shown] = []

    def look(table: Table, step: Step) -> None:
        begun = time.perf_counter()
        try:
            view: Any = table.world.render()
            fit = isinstance(view, View) and all(is_dataclass(block) for block in view.blocks)
        except Exception:
            fit = False
        if not fit:
            raise NothingToCheck("drawing fails, see `rendering`")
        found.append(_Shown(step, view, time.perf_counter() - begun))

    await _played(subject, look)
    return found


@check(_draws, section=SECTION)
async def stage_caption(notes: Notes, subject: Subject) -> None:
    """The picture has a caption that says what happens."""
    shown = await _shown(subject)
    told = {_told(one.view, subject) for one in shown}
    if told <= {""}:
        notes.advise("Say what happens in View.caption, in a sentence, and the page shows it below the picture.")
    elif len(told) == 1 and len(shown) > 1:
        notes.advise("The caption never changes; say in View.caption what happens at each moment.")
    for one in shown:
        if len(one.view.caption) > LONGEST_CAPTION:
            length = len(one.view.caption)
            long = f"A caption has {length} characters, and the page shows {LONGEST_CAPTION}; say it in one sentence."
            notes.advise(long, one.step.where, "long")


def _told(view: View, subject: Subject) -> str:
    """Return what the page takes as the caption of a view; see `wordsOf` in its `stage.js`."""
    story = next((b.entries[-1].text for b in view.blocks if isinstance(b, TimelineBlock) and b.entries), "")
    talk = next((b.lines[-1].text for b in view.blocks if isinstance(b, ChatBlock) and b.lines), "")
    title = "" if view.title == subject.spec.display_title else view.title
    return view.caption or story or talk or title


@check(section=SECTION)
async def stage_meters(notes: Notes, subject: Subject) -> None:
    """The amounts that matter are named, and within their range."""
    meters = subject.spec.meters
    seen: set[str] = set()

    def look(table: Table, step: Step) -> None:
        for name, value in step.result.observation.status.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            seen.add(name)
            most = meters.get(name, math.inf)
            beyond = f"AdapterSpec.meters says that {name} is 0 to {most:g}, and it is {value:g}."
            notes.expect(name not in meters or 0 <= value <= most, beyond, step, name)

    for name, most in meters.items():
        notes.expect(0 < most < math.inf, f"AdapterSpec.meters: the highest value of {name} is {most:g}.", "", name)
    await _played(subject, look)
    for name in meters:
        if name not in seen:
            notes.warn(f"AdapterSpec.meters names {name!r}, but no status has a number of that name.")
    if not meters and seen:
        named = ", ".join(sorted(seen)[:4])
        notes.advise(
            "Name the amounts that matter in AdapterSpec.meters with the highest value of each, and the page draws "
            f"them as bars; numbers of the status are {named}."
        )
    if not meters and not seen:
        raise NothingToCheck("no observation has a number in its status")


@check(_draws, section=SECTION)
async def stage_alt(notes: Notes, subject: Subject) -> None:
    """People who can't see the picture are told what is in it."""
    known = False
    for one in await _shown(subject):
        for block in one.view.blocks:
            known = known or isinstance(block, ImageBlock | GridMapBlock)
            if isinstance(block, ImageBlock) and not block.alt.strip():
                notes.advise("Say in `alt` of the ImageBlock what is in the picture, for those who can't see it.")
            elif isinstance(block, GridMapBlock):
                bare = sorted({c for row in block.rows for c in row} - {*block.legend, " "})
                if bare:
                    characters = " ".join(bare[:8])
                    notes.advise(
                        f"Name each character in the GridMapBlock's `legend`, for those who can't see it: {characters}",
                        one.step.where,
                        "legend",
                    )
    if not known:
        raise NothingToCheck("its views consist of words")


@check(section=SECTION)
async def stage_picture(notes: Notes, subject: Subject) -> None:
    """The world is drawn, in pictures that are small enough to be sent often."""
    if not subject.can("render"):
        notes.advise("Write `render()`, which returns a View of the world, and the page shows it.")
        return
    largest, slowest = 0, 0.0
    for one in await _shown(subject):
        slowest = max(slowest, one.seconds)
        for block in one.view.blocks:
            if not isinstance(block, ImageBlock):
                continue
            size = len(block.base64) * 3 // 4
            largest = max(largest, size)
            if size > LARGEST_PICTURE:
                notes.warn(
                    f"A picture has {size / 1000:.0f} kB, and pages are sent several a second; draw fewer pixels or "
                    f"colours, or a GridMapBlock, to stay below {LARGEST_PICTURE / 1000:.0f} kB.",
                    one.step.where,
                    "size",
                )
    # Told, and never judged: it depends on the machine.
    drawn = f"drawn in at most {1000 * slowest:.1f} ms here"
    notes.measured = f"the largest picture has {largest / 1000:.1f} kB, {drawn}" if largest else f"no pictures, {drawn}"


@check(section=SECTION)
async def stage_phrases(notes: Notes, subject: Subject) -> None:
    """Every offered action has a phrase of its own, which is what its button says."""
    bare: dict[str, str] = {}

    def look(table: Table, step: Step) -> None:
        seat = next(seat for seat in table.seats if seat.agent_id == step.seat)
        offered = [a.name for a in own_actions(seat) if _offers(step.before, a.name)]
        try:
            phrases = step.before.phrases()
            said = [phrases[name] for name in offered if phrases.get(name, "").strip()]
        except Exception as error:
            notes.error(f"phrases(): {describe(error)}", step, "raised")
            return
        for phrase in said:
            twice = f"Two actions have the phrase {phrase!r}; phrases are unique, so that one can be chosen."
            notes.expect(said.count(phrase) == 1, twice, step, f"twice {phrase}")
        bare.update((name, step.where) for name in offered if name not in bare and not phrases.get(name, "").strip())

    await _played(subject, look)
    if bare:
        some = ", ".join(list(bare)[:5]) + (" and others" if len(bare) > 5 else "")
        notes.advise(
            "Give each action a phrase in Observation.phrases(), such as 'go west to the tree', and the page's button "
            f"says it; without one are {some}.",
            next(iter(bare.values())),
        )


def _offers(observation: Observation, name: str) -> bool:
    told = observation.is_available(name)
    return told is None or told.available


@check(section=SECTION)
async def stage_reasons(notes: Notes, subject: Subject) -> None:
    """A refused action says why (`unavailable` checks the reasons of those that are listed)."""
    refused = False

    def look(table: Table, step: Step) -> None:
        nonlocal refused
        if step.result.success:
            return
        refused = True
        if not step.result.message.strip():
            silent = f"{step.action.name} was refused without a message; say why in ActionResult.message."
            notes.warn(silent, step.where, step.action.name)

    await _played(subject, look, "any")
    if not refused:
        raise NothingToCheck("nothing was refused")


@check(several_seats, _draws, section=SECTION)
async def stage_secrets(notes: Notes, subject: Subject) -> None:
    """Spectators are shown nothing that only one seat knows, as far as can be told."""
    latest: dict[str, Observation] = {}
    named = subject.can("snapshot") and names(type(subject.world().adapter), "vary_secret")
    copy = await Table(subject).begin() if named else None

    def look(table: Table, step: Step) -> None:
        latest[step.seat] = step.result.observation
        if len(latest) < len(table.seats) or table.over:
            return  # at the end everything may be shown
        try:
            shown = list(_texts(table.world.render()))
        except Exception:
            raise NothingToCheck("drawing fails, see `rendering`") from None
        for seat, seen in latest.items():
            others = [text for name, other in latest.items() if name != seat for text in _texts(other)]
            for what, text in _private(seen):
                if _said(text, shown) and not _said(text, [*others, *latest]):
                    notes.warn(
                        f"Spectators are shown {text[:60]!r}, which of the seats only {seat} knows (its {what}); leave "
                        "it out of the world's render() if it is secret.",
                        step.where,
                        what,
                    )
        if copy is not None:
            _vary(notes, table, copy, step)

    await _played(subject, look)


def _vary(notes: Notes, table: Table, copy: Table, step: Step) -> None:
    """Vary in a copy what only one seat knows, as the author declares it, and compare what spectators are shown."""
    saved, game = table.world.snapshot(), cast(Any, copy.world.adapter)  # Any: anything with the method
    for seat in table.seats:
        copy.world.restore(saved)
        before = fresh_text(copy.world.render())
        if game.vary_secret(seat.agent_id, random.Random(step.number)) and fresh_text(copy.world.render()) != before:
            notes.warn(
                f"Spectators are shown the secret of {seat.agent_id} that vary_secret names; leave it out of the "
                "world's render() until the game is over.",
                step.where,
                "declared",
            )


def _private(seen: Observation) -> Iterator[tuple[str, str]]:
    """Yield the words of an observation that may be for its seat alone, and where they are."""
    for name, value in seen.status.items():
        if isinstance(value, str) and len(value) > 2:
            yield f"status {name!r}", value
    for message in seen.messages:
        if message.type in ("direct", "team"):
            yield f"{message.type} message", message.content


def _said(text: str, within: Sequence[str]) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    return any(whole.search(one) for one in within)


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, but no pictures. Any: parts of views and observations."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, ImageBlock):
        yield value.alt
    elif is_dataclass(value):
        for field in fields(value):
            yield from _texts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for pair in value.items():
            yield from _texts(list(pair))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
