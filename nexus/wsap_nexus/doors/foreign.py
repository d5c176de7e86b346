"""What doors to foreign games share: their drawings as observations, the refusal of actions, and their score.

seen = TextObservation(drawing=drawn(environment.render()), available_actions=possible)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wsap_core.authoring.rules import OVER
from wsap_core.protocol import (
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    Observation,
    Possible,
    TextBlock,
    View,
)
from wsap_core.protocol.observation import render_observation
from wsap_core.specs import EpisodeSummary
from wsap_core.untrusted import strip_control
from wsap_core.worlds.legality import check_action

LONGEST = 7000
"""Maximum characters of a drawing with the list of possible actions."""
LEAST_LISTED = 1500
"""Characters of the choices of an action that are told even below the longest drawing."""
_COLOUR = re.compile(r"\x1b\[(?P<code>[\d;]*)m")
_SEQUENCE = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")


@dataclass(frozen=True, kw_only=True)
class TextObservation(Observation):
    """An observation with a text that an environment has drawn."""

    drawing: str = ""

    def to_text(self) -> str:
        """Return the observation as text; of too many choices, it tells the first and their number."""
        told = self.available_actions
        room = max(LEAST_LISTED, LONGEST - len(self.drawing))
        if told is not None and any(isinstance(each, Possible) for each in told):
            told = [_shortened(each, room) for each in told]
            return render_observation(replace(self, available_actions=told), extra_sections=[("STATE", self.drawing)])
        return render_observation(self, extra_sections=[("STATE", self.drawing)])

    def to_view(self) -> View:
        """Return the drawing as a view."""
        return View([TextBlock(self.drawing)]) if self.drawing else View()


def _shortened(offer: ActionAvailability, room: int) -> ActionAvailability:
    if not isinstance(offer, Possible):
        return offer
    return replace(offer, choices={name: _first(words, room) for name, words in offer.choices.items()})


def _first(words: Sequence[str], room: int) -> Sequence[str]:
    if sum(map(len, words)) + len(words) <= room:
        return words
    kept: list[str] = []
    for word in words:
        room -= len(word) + 1
        if room < 0:
            break
        kept.append(word)
    return [*kept, f"... and {len(words) - len(kept)} more, written alike"]


def mean_return(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean return of episodes; 0 without any."""
    return sum(episode.reward for episode in episodes) / len(episodes) if episodes else 0.0


def checked(
    action: Action, declared: Mapping[str, ActionDef], seen: Observation, *, done: bool
) -> tuple[Action, ActionResult | None]:
    """Return an action as the game has declared it, and why it can't be taken; None if it can.

    Args:
        declared: the game's actions, by name.
        seen: what is seen now, with the availability of each action.
        done: whether the episode is over.
    """
    if done:
        return action, ActionResult(False, OVER, done=True, observation=seen)
    action, why = check_action(action, declared)
    offered = {each.name: each for each in seen.available_actions or ()}
    if why or not offered[action.name].available:
        return action, ActionResult(False, why or f"{action.name}: {offered[action.name].reason}.", observation=seen)
    return action, None


def drawn(text: str) -> str:
    """Return what an environment has drawn for a terminal, with brackets in place of colours, without other control
    characters, and cut at `LONGEST`."""
    opened = False

    def bracket(match: re.Match[str]) -> str:
        nonlocal opened
        before, opened = opened, match["code"] not in ("", "0")
        return "" if before == opened else "[" if opened else "]"

    plain = _COLOUR.sub(bracket, text) + ("]" if opened else "")
    return strip_control(_SEQUENCE.sub("", plain)).rstrip()[:LONGEST]
