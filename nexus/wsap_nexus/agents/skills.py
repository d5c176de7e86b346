"""The growth of skills from evidence.

A world declares its achievements and actions as evidence for domains. Each repetition of the same evidence in the
same game counts half as much as the one before, so that one source adds at most twice its first gain. The gain also
shrinks as the level approaches 1: `level += rate * (1 - level) / 2**n`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wsap_nexus.store.entities import SkillGain

ACHIEVEMENT_RATE = 0.10
"""The gain of the first time of an achievement at level 0."""
ACTION_RATE = 0.01
"""The gain of the first time of an action at level 0."""
HALVINGS = 20
"""Times after which a source adds nothing."""


def skill_gains(
    declared: Mapping[str, Sequence[str]],
    done: Mapping[str, int],
    *,
    levels: Mapping[str, float],
    shown: Mapping[tuple[str, str], int],
) -> Iterator[SkillGain]:
    """Yield the gains of a session.

    Args:
        declared: domain -> achievements and actions of the game that are evidence.
        done: `achievement:NAME` and `action:NAME` -> successful times in this session.
        levels: domain -> level before, from 0 to 1.
        shown: (domain, source) -> times in this game before.
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
