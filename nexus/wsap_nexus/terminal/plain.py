"""A run in plain lines: for pipes, files, small terminals, and programs that read JSON."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from wsap_core.protocol import Tick
from wsap_core.protocol.lines import plural
from wsap_core.untrusted import single_line
from wsap_nexus.runs.play.observers import StepTaken
from wsap_nexus.runs.record.summary import CutOff
from wsap_nexus.terminal.panels import number
from wsap_nexus.terminal.spending import Spent, packed, parts, rate, spending_of
from wsap_nexus.terminal.story import Note

FEW = 6
"""Maximum number of seats that have a line each in a summary."""

EVERY = 5.0
"""Minimum seconds between progress lines."""


@dataclass(eq=False)
class PlainProgress:
    """Writes progress lines regularly, and achievements and ends of episodes immediately.

    Args:
        limit: maximum number of steps per seat, for the progress.
        seats: number of seats; with several, lines name the seat.
        quiet: progress only.
        header: written before the first step.
        spending: returns the model usage so far, for lines below the progress.
        width: cells of those lines.
    """

    write: Callable[[str], None]
    limit: int | None = None
    seats: int = 1
    quiet: bool = False
    header: str = ""
    spending: Callable[[], Spent] | None = None
    width: int = 100
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._said = self.clock()
        self._reward = 0.0

    def begin_with(self, reward: float) -> None:
        """Start from the reward of a resumed run."""
        self._reward = reward

    def observe(self, step: StepTaken) -> None:
        """Report a step; an observer of the run."""
        if self.header:
            self.write(self.header)
            self.header = ""
        result = step.result
        self._reward += result.reward
        who = f"{single_line(step.seat)}: " if self.seats > 1 else ""
        if not self.quiet:
            for name in result.achievements:
                self.write(f"step {step.step}: {who}achieved {single_line(name)}")
            if result.done:
                self.write(f"step {step.step}: {who}episode {step.episode + 1} is over: {single_line(result.message)}")
        now = self.clock()
        if now - self._said >= EVERY:
            self._said = now
            of = f" of {self.limit}" if self.limit is not None else ""
            self.write(f"step {step.step}{of}: {who}reward {number(self._reward)}, {single_line(step.action.name)}")
            for line in self._taken():
                self.write(f"  {line}")

    def tick(self, tick: Tick) -> None:
        """Report a tick of a world that lives."""
        if self.header:
            self.write(self.header)
            self.header = ""
        if not self.quiet:
            self.write(f"tick {tick.number}: {single_line(tick.summary)}")

    def _taken(self) -> list[str]:
        if self.spending is None:
            return []
        spent, width = self.spending(), max(20, self.width) - 2
        return packed(parts(spent), width) + packed(rate(spent), width)


def summary_lines(
    summary: Mapping[str, Any],
    *,
    units: Mapping[str, str],
    catalogue: int,
    again: bool = False,
    planned: int | None = None,
) -> list[str]:
    """Return the summary of a run as lines.

    Args:
        summary: from `RunSummary.to_json`.
        units: metric -> unit.
        catalogue: number of the game's achievements.
        again: whether the model usage is that of the original run.
        planned: planned steps of all seats, if known.
    """
    episodes = int(summary["episodes"])
    steps = int(summary["steps"])
    took = f"{plural(steps, 'step')} in {plural(episodes, 'episode')}, {number(float(summary['seconds']))} s"
    seats: Sequence[Mapping[str, Any]] = summary["seats"]
    only = seats[0] if len(seats) == 1 else None
    lines = [took if only is None else f"{took}: reward {number(float(only['reward']))}"]
    lived = summary.get("world") or {}
    if (ticks := lived.get("ticks")) is not None:
        took = plural(ticks, "tick") + (", and the world has ended" if lived["done"] else "")
        lines = [*lines, took] if seats or steps else [f"{took}, {number(float(summary['seconds']))} s"]
    if cut_off := summary.get("cut_off"):
        lines.append(str(CutOff(**cut_off)))
    if only is not None:
        lines += _scores(only["score"], units)
        lines += _left_out(only, units)
    reached: Mapping[str, int] = summary["achievements"]
    if reached or catalogue:
        of = f" of {catalogue}" if catalogue else ""
        names = ", ".join(
            single_line(name) + (f" ×{count}" if count > 1 else "") for name, count in sorted(reached.items())
        )
        lines.append(f"achievements: {len(reached)}{of}" + (f" ({names})" if names else ""))
    if outcomes := summary.get("outcomes"):
        lines.append("outcomes: " + ", ".join(f"{times} {outcome}" for outcome, times in sorted(outcomes.items())))
    lines += _how_decided(summary["decisions"])
    lines += _what_models_took(summary, planned, " (recorded)" if again else "")
    lines += _how_seats_did(seats, units) if only is None else []
    lines.append(f"trajectory {str(summary['trajectory_hash'])[:16]}")
    return lines


def _scores(score: Mapping[str, Any], units: Mapping[str, str]) -> list[str]:
    return [
        f"{single_line(name)}: {number(round(float(value), 2))}{single_line(units.get(name, ''))}"
        for name, value in score.items()
    ]


def _left_out(seat: Mapping[str, Any], units: Mapping[str, str]) -> list[str]:
    words = {"unfinished": "unfinished", "forfeited": "forfeited (most decisions forced)"}
    lines = []
    for kind, those in seat["left_out"].items():
        so_far = ", ".join([f"reward {number(float(those['reward']))}", *_scores(those["score"], units)])
        episodes = plural(those["episodes"], f"{words[kind]} episode")
        lines.append(f"not scored: {episodes} of {plural(those['steps'], 'step')}, {so_far}")
    return lines


def _what_models_took(summary: Mapping[str, Any], planned: int | None, then: str) -> list[str]:
    """Return the lines on model usage, in total and by the world itself."""
    spent, world = spending_of(summary, planned=planned), spending_of(summary.get("world") or {})
    if not world.usage.calls:
        return [f"models{then}: {', '.join(taken)}", *rate(spent)] if (taken := parts(spent)) else []
    again = summary["world"]["asked_again"]
    alone = spent.usage == world.usage
    own = parts(replace(world, tokens_per_second=spent.tokens_per_second if alone else None))
    line = f"world{then}: {', '.join([*own, f'{again} repeated'] if again else own)}"
    return [line] if alone else [f"models{then}: {', '.join(parts(spent))}", *rate(spent), line]


def _how_seats_did(seats: Sequence[Mapping[str, Any]], units: Mapping[str, str]) -> list[str]:
    """Return a line per seat or, if there are many, per reward and agent, best first."""
    if len(seats) <= FEW:
        lines = []
        for seat in seats:
            did = [f"reward {number(float(seat['reward']))}", plural(seat["steps"], "step")]
            did += [*_scores(seat["score"], units), *_left_out(seat, units)]
            lines.append(f"{single_line(seat['seat'])} ({_who(seat)}): {', '.join(did)}")
        return lines
    groups: dict[tuple[float, str], list[str]] = {}
    for seat in seats:
        groups.setdefault((float(seat["reward"]), _who(seat)), []).append(single_line(seat["seat"]))
    best_first = sorted(groups.items(), key=lambda group: -group[0][0])
    return [f"reward {number(reward)} ({agent}): {', '.join(names)}" for (reward, agent), names in best_first]


def _who(seat: Mapping[str, Any]) -> str:
    return single_line(seat["model"] or seat["agent"])


def _how_decided(decisions: Mapping[str, Any]) -> list[str]:
    rest = {"chosen": "chosen among the options", "unconstrained": "unconstrained", "cut": "with a truncated reply"}
    more = [f"{decisions[name]} {words}" for name, words in rest.items() if decisions.get(name)]
    lines: list[str] = []
    if continued := decisions.get("continued"):
        lines.append(f"decisions for several steps: {decisions['total'] - continued} for {decisions['total']} steps")
    if more or decisions["repaired"] or decisions["forced"]:
        shown = [f"{decisions['repaired']} repaired", f"{decisions['forced']} forced", *more]
        lines.append(f"decisions: {', '.join(shown)}")
    causes = sorted(decisions.get("causes", {}).items(), key=lambda cause: -cause[1])
    lines += [f"forced {plural(times, 'time')}: {single_line(cause)}" for cause, times in causes]
    return lines


def note_line(note: Note, *, several: bool) -> str:
    """Return a step as one line of tab-separated fields."""
    parts = [str(note.number)]
    if several:
        parts.append(note.seat)
    parts.append(note.action)
    parts.append((f"{note.not_done}: " if note.not_done else "") + note.message)
    if note.reward:
        parts.append(f"reward {note.reward:+.6g}")
    if note.achievements:
        parts.append("achieved " + ", ".join(note.achievements))
    if note.forced:
        parts.append("forced")
    if note.done:
        parts.append("done at a limit" if note.truncated else "done")
    if note.reasoning:
        parts.append(f"because {note.reasoning}")
    return "\t".join(parts)
