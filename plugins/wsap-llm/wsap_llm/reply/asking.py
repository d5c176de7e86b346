"""The one informed question after a reply that was not understood."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.protocol import ActionDef, ActionSpace
from wsap_core.protocol.words import ENGLISH, Words
from wsap_core.untrusted import single_line

MOST_LISTED = 60
"""Actions named in the question; a larger space is cut, and the number of the rest is told."""


def why(reason: str, words: Words = ENGLISH, *, cut: bool = False) -> str:
    """Return on one line why a reply could not be used, as it may quote the model; `cut` if it was cut off."""
    said = words.say(single_line(reason))
    return f"{words.say('The reply was cut off because it was too long.')} {said}" if cut else said


def reask(
    reason: str, actions: Sequence[ActionDef], words: Words = ENGLISH, *, cut: bool = False, question: str = ""
) -> str:
    """Return what a model is told whose reply could not be used: why, what is legal now in a numbered list, and the
    form, unless another question is asked."""
    lines = ActionSpace(tuple(actions[:MOST_LISTED])).to_text(words).splitlines()
    listed = "\n".join(f"{place}. {line.removeprefix('- ')}" for place, line in enumerate(lines, 1))
    more = f"\n{words.say(f'(and {len(actions) - MOST_LISTED} more)')}" if len(actions) > MOST_LISTED else ""
    form = 'Reply with one JSON object and nothing else: {"action": "name", "params": {}, "reasoning": "why"}'
    return (
        f"{words.say('Your reply could not be used:')} {why(reason, words, cut=cut)[:400]}\n\n"
        f"{words.say('Actions that are possible now:')}\n{listed}{more}\n\n{question or words.say(form)}"
    )
