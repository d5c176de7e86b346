"""The check of tools: they look things up or take notes, and take no game step."""

from __future__ import annotations

import random

from wsap_check.play import Table, fill, settle, walk
from wsap_check.steps import place
from wsap_check.subject import Notes, NothingToCheck, Subject, check


@check()
async def tools(notes: Notes, subject: Subject) -> None:
    """A tool returns at once: it takes no game step and ends nothing."""
    table = await Table(subject).begin()
    names = {action.name for seat in table.seats for action in seat.action_space.actions if action.is_tool}
    if not names:
        raise NothingToCheck("it declares no actions of the category 'tool'")
    for seat in table.seats:
        default = seat.default_action()
        if default is not None and default.name in names:
            notes.error(f"The default action is the tool {default.name}, with which no turn ends.", about="default")
    last: dict[str, tuple[int, int, str]] = {}
    for step in await walk(subject, 12):
        episode, number, tool = last.get(step.seat, (-1, 0, ""))
        # With several seats others may have acted since.
        if tool and episode == step.episode and step.before.step != number and len(table.seats) == 1:
            where = place(step.seed, step.episode, step.number, step.seat)
            notes.error(f"After {tool} observation.step was {step.before.step}, before {number}.", where, about=tool)
        last[step.seat] = (step.episode, step.before.step, step.action.name if step.action.name in names else "")
        if step.action.name not in names:
            continue
        now = step.result.observation.step
        if now != step.before.step:
            notes.error(
                f"{step.action.name} is a tool, and took observation.step from {step.before.step} to {now}.",
                step.where,
                about=step.action.name,
            )
        if step.result.done:
            notes.error(f"{step.action.name} is a tool, and ended the episode.", step.where, about="done")
    if len(table.seats) > 1:
        await _at_once(notes, subject)


async def _at_once(notes: Notes, subject: Subject) -> None:
    """Use tools in one seat while all others think."""
    table = await Table(subject).begin()
    generator = random.Random(13)
    for seat in table.seats:
        observation = await settle(seat.face.observe(), subject, limit=0.1)
        if observation is None:
            continue  # it is not its turn
        closed = {a.name for a in observation.available_actions or () if not a.available}
        for definition in seat.action_space.actions:
            if not definition.is_tool or definition.name in closed:
                continue
            action = fill(definition, generator)
            if await settle(seat.face.act(action), subject, limit=0.1) is None:
                waits = f"{definition.name} is a tool, and waits for the other seats."
                notes.error(waits, table.where(seat, action), about=definition.name)
                return
