"""How skills grow: by evidence, less each time, and never by doing one thing over and over.

A world declares which of its achievements and actions are evidence for which domain. The nth time
that an agent shows the same evidence in the same game, it counts half as much as the time before;
so one source adds at most twice its first gain, however often it is repeated. What is gained also
shrinks as the level nears 1: `level += rate * (1 - level) / 2**n`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wsap_nexus.store.entities import SkillGain

ACHIEVEMENT_RATE = 0.10
"""What the first time of an achievement adds to a level of 0."""
ACTION_RATE = 0.01
"""What the first time of an action adds to a level of 0."""
HALVINGS = 20
"""After so many times a source adds nothing more."""


def skill_gains(
    declared: Mapping[str, Sequence[str]],
    done: Mapping[str, int],
    *,
    levels: Mapping[str, float],
    shown: Mapping[tuple[str, str], int],
) -> Iterator[SkillGain]:
    """Give what a session adds to an agent's skills.

    Args:
        declared: domain -> names of the game's achievements and actions that are evidence for it.
        done: `achievement:NAME` and `action:NAME` -> how often, in this session, with success.
        levels: domain -> level before, from 0 to 1.
        shown: (domain, source) -> how often it was shown in this game before.
    """
    for domain in sorted(declared):
        level = levels.get(domain, 0.0)
        names = frozenset(declared[domain])
        for source in sorted(done):
            kind, _, name = source.partition(":")
            if name not in names or done[source] < 1:
                continue
            rate = ACHIEVEMENT_RATE if kind == "achievement" else ACTION_RATE
            before = shown.get((domain, source), 0)
            start = level
            for number in range(before, min(before + done[source], HALVINGS)):
                level += rate * (1 - level) / 2**number
            if level > start:
                yield SkillGain(domain, source, done[source], level - start, level)
