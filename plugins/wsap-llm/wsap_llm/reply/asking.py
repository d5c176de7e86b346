"""The one informed question after a reply that was not understood."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.protocol import ActionDef, ActionSpace
from wsap_core.untrusted import single_line

MOST_LISTED = 60
"""Actions named in the question; a larger space is cut, and the number of the rest is told."""


def reask(reason: str, actions: Sequence[ActionDef]) -> str:
    """Return what a model is told whose reply could not be used: why (on one line, as it may quote the model), what is
    legal now, and the form."""
    listed = ActionSpace(tuple(actions[:MOST_LISTED])).to_text()
    more = f"\n(and {len(actions) - MOST_LISTED} more)" if len(actions) > MOST_LISTED else ""
    return (
        f"Your reply could not be used: {single_line(reason)[:400]}\n\n"
        f"Actions that are possible now:\n{listed}{more}\n\n"
        'Reply with one JSON object and nothing else: {"action": "name", "params": {}, "reasoning": "why"}'
    )
