"""Checks of how episodes end and begin."""

from __future__ import annotations

from dataclasses import replace

from wsap_check.play import RandomPlayer, Table, baseline, own_actions, settle
from wsap_check.steps import Step, first_difference, fresh_text, without_biography
from wsap_check.subject import Notes, NothingToCheck, Subject, check
from wsap_core.protocol import AvatarState, EmbodiedObservation

_LONGER = 20
"""How many times as long as usual an episode may take to end."""

_AFTER = 20
"""Actions tried after the end, beside one for each that the game declares."""


@check()
async def done(notes: Notes, subject: Subject) -> None:
    """Done is final: nothing succeeds and nothing changes until the reset."""
    table = await play_to_the_end(subject)
    choose = RandomPlayer(21, "any")
    for seat in table.seats:
        before = await settle(seat.face.observe(), subject)
        was = fresh_text(before)
        if before is None:
            notes.error("observe() waits forever after the end of the episode.", table.where(seat))
            continue
        for action in [choose(seat, before) for _ in range(_AFTER + len(own_actions(seat)))]:
            where = table.where(seat, action)
            result = await table.tried(seat, action)
            if result is None:
                notes.error("act() waits forever after the end of the episode.", where)
                break
            if not result.done:
                notes.error("done was true, and is false after another action.", where, about="undone")
            if result.success:
                notes.error("An action succeeded after the episode was over.", where, about="success")
            if result.reward or result.achievements:
                notes.error("There was a reward or an achievement after the episode was over.", where, about="reward")
            if await table.seen(seat) != was:
                notes.error("The state changed after the episode was over.", where, about="changed")
                break


@check()
async def reset(notes: Notes, subject: Subject) -> None:
    """A reset begins a new episode that does not depend on the last one."""
    used = await Table(subject).begin()
    await used.play(RandomPlayer(22), max(20, subject.steps // 4))
    await used.begin(subject.seed + 1)
    if used.over:
        notes.error("The episode is over right after a reset.", used.where())
        return
    observation = used.seat.last_observation or (await settle(used.seat.face.observe(), subject))
    if isinstance(observation, EmbodiedObservation) and observation.avatar.state is AvatarState.DESTROYED:
        notes.error("The avatar is dead right after a reset.", used.where())
    if not subject.can("seed"):
        return
    fresh = await Table(subject).begin(subject.seed + 1)
    await baseline(subject, 23, 60)
    one = await used.play(RandomPlayer(23), 60)
    other = await fresh.play(RandomPlayer(23), 60)
    length = min(len(one), len(other))
    if found := first_difference(_without_lives(one[:length]), _without_lives(other[:length])):
        notes.error(
            f"After reset(seed={subject.seed + 1}) a world that was played differs from a fresh one: {found[0]}.",
            found[1],
        )
        return
    if len(one) != len(other):
        notes.error("After the same reset one episode is longer than the other.", used.where())


def _without_lives(trace: list[Step]) -> list[Step]:
    """Return a trace without what avatars keep of earlier lives."""
    return [
        replace(
            step,
            before=without_biography(step.before),
            result=replace(step.result, observation=without_biography(step.result.observation)),
        )
        for step in trace
    ]


@check("seed")
async def first_episode(notes: Notes, subject: Subject) -> None:
    """A fresh world with a seed is the one that reset(seed) gives."""
    if len(Table(subject).seats) > 1:
        raise NothingToCheck("worlds of several seats are begun by a reset")
    other = await baseline(subject, 24, 40)
    one = await Table(subject).play(RandomPlayer(24), 40)
    if found := first_difference(one, other):
        notes.warn(f"A world made with a seed is not the one that reset(seed) gives: {found[0]}.", found[1])


async def play_to_the_end(subject: Subject) -> Table:
    """Return a table whose episode is over for every seat.

    Raises:
        NothingToCheck: it took too long.
    """
    table = await Table(subject).begin()
    limit = _LONGER * max(subject.steps, 1)
    await table.play(RandomPlayer(20, "available"), limit)
    if not table.over:
        raise NothingToCheck(f"no episode was over within {limit} steps")
    return table
