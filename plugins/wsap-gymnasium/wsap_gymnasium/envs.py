"""WSAP's games of one seat as Gymnasium environments.

import gymnasium
env = gymnasium.make("wsap_gymnasium.envs:wsap/World-v0", game="crafter", max_steps=500)
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from wsap_core.errors import UsageError
from wsap_core.protocol import Observation
from wsap_core.seams.context import SEED_LIMIT
from wsap_gymnasium.numbering import Numbering
from wsap_nexus.doors.driven import Driven

# Any, in this module: JSON and Gymnasium's own types.

WORLD = "wsap/World-v0"
"""The id of the environment."""
LONGEST = 20_000
"""Maximum characters of a text; what is longer is cut."""
_BLOCKS = (range(0xA0, 0x180), range(0x400, 0x460), range(0x2010, 0x2027), range(0x2500, 0x2600))
_LETTERS = "".join(chr(code) for block in _BLOCKS for code in block)
CHARACTERS = frozenset(string.printable + _LETTERS)
"""The characters of texts; others are replaced by `?`."""

Seen = dict[str, Any]


class WsapEnv(gymnasium.Env[Seen, np.int64]):
    """A game of one seat.

    An action is the number of one of `actions`: each declared action with each combination of its parameters. An
    observation has `action_mask`, which says for each number whether it is possible now, and with `text` also `text`,
    what a language model would read. `info["observation"]` is the whole observation as an object.

    Of an action that was refused or had no effect, `info["refused"]` says why. Each episode is a new world. It is
    `terminated` when the game is over for the seat, and `truncated` at a limit of the game's own or after `max_steps`
    actions, refused ones included.

    Args:
        game: a registered game, or `./file.py:Name`.
        options: options of the game.
        max_steps: actions after which an episode is truncated; None for the game's own limit only.
        text: whether observations have a text, which takes time to write.
        render_mode: "ansi" to have `render` return the text, or None.

    Raises:
        UsageError: the game needs several seats, or none of its actions can be numbered.
        WsapError: the game can't be created.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012  declared so in Gymnasium

    def __init__(
        self,
        game: str,
        *,
        options: Mapping[str, Any] | None = None,
        max_steps: int | None = None,
        text: bool = True,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise UsageError(f"There is no render mode {render_mode!r}; there is 'ansi'.")
        self.render_mode = render_mode
        self.driven = Driven(game, options)
        """The world, which can also be looked at, saved and restored."""
        self.numbering = Numbering(self.driven.action_space)
        if not len(self.numbering):
            raise UsageError(f"No action of {self.driven.spec.display_title} can be numbered.")
        self._max_steps, self._text = max_steps, text
        self._taken = 0
        self._observation = Observation()
        self.action_space = spaces.Discrete(len(self.numbering))
        parts: dict[str, spaces.Space[Any]] = {"action_mask": spaces.MultiBinary(len(self.numbering))}
        if text:
            parts["text"] = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        self.observation_space = spaces.Dict(parts)

    @property
    def actions(self) -> tuple[Any, ...]:
        """Number -> action."""
        return self.numbering.actions

    def action_masks(self) -> npt.NDArray[np.bool_]:
        """Return which actions are possible now, as sb3-contrib's maskable algorithms ask for it."""
        return self.numbering.mask(self._observation).astype(np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Start an episode: of a seed, or of one that is drawn from the sequence that the last seed began."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(SEED_LIMIT + 1)) if seed is None else seed % (SEED_LIMIT + 1)
        self._taken = 0
        self._observation = self.driven.reset(chosen)
        return self._seen(), {"observation": self._observation, "seed": chosen}

    def step(self, action: np.int64) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Take an action; see the class."""
        outcome = self.driven.step(self.numbering.actions[int(action)])
        result, self._observation = outcome.result, outcome.result.observation
        self._taken += 1
        info = {
            "observation": self._observation,
            "message": result.message,
            "success": result.success,
            "achievements": list(result.achievements),
        }
        if not result.success:
            info["refused"] = result.message
        terminated = self.driven.done and not result.truncated
        late = self._max_steps is not None and self._taken >= self._max_steps
        return self._seen(), float(result.reward), terminated, (late or result.truncated) and not terminated, info

    def render(self) -> str | None:
        """Return what a language model would read."""
        return spelled(self._observation.to_text()) if self.render_mode == "ansi" else None

    def close(self) -> None:
        """Close the game."""
        self.driven.close()

    def _seen(self) -> Seen:
        seen: Seen = {"action_mask": self.numbering.mask(self._observation)}
        if self._text:
            seen["text"] = spelled(self._observation.to_text())
        return seen


def spelled(text: str) -> str:
    """Return a text of at most `LONGEST` characters, with `?` in place of those that are not in `CHARACTERS`."""
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return cut if CHARACTERS.issuperset(cut) else "".join(c if c in CHARACTERS else "?" for c in cut)


gymnasium.register(WORLD, entry_point="wsap_gymnasium.envs:WsapEnv")
