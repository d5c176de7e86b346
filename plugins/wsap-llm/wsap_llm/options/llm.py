"""The options of the agent `llm`, and their parsing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from wsap_core.errors import ConfigError
from wsap_core.protocol.words import Words
from wsap_core.seams.context import Context
from wsap_core.seams.model import DEFAULT_SAMPLING, Abilities, Sampling
from wsap_core.textfile import read_text
from wsap_core.untrusted import single_line
from wsap_llm.options.table import FLAGS, LEGAL, NUMBERS
from wsap_llm.prompts import words_of

Profile = Literal["full", "brief"]
"""The level of detail in prompts."""
SMALL = 3_000_000_000
"""Models with fewer parameters have the profile `brief`."""
SMALL_CONTEXT = 8192
"""Models with a smaller context, in tokens, have the profile `brief`."""
TINY = 1_000_000_000
"""Models with fewer parameters and the profile `brief` have the style `choose`, if their backend supports it."""


def profile_for(abilities: Abilities) -> Profile:
    """Return the default profile of a model, by its size if known."""
    small = abilities.parameters is not None and abilities.parameters < SMALL
    narrow = abilities.context is not None and abilities.context < SMALL_CONTEXT
    return "brief" if small or narrow else "full"


@dataclass(frozen=True)
class LLMOptions:
    """The options of the agent `llm` for prompts and requests."""

    game_name: str = "a game"
    objective: str = "Your goal is to survive and accomplish objectives."
    """The goal in the system message."""
    persona: str = ""
    """The persona in the system message."""
    profile: Profile | None = None
    """The level of detail in prompts; None for the default of the model's size."""
    window: int | None = None
    """Past steps in the prompt, from half to twice this number; None for 2, or for 0 with `complete_turns` or the
    profile `brief`."""
    brief: str = ""
    """The game in a few sentences, for the profile `brief`; if empty, the whole description is used."""
    complete_turns: bool = False
    """Whether the game's text of a turn includes the result of the last one, unless that failed."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    """Whether the model is asked to think first; None for its default."""
    hidden: bool = False
    """Whether the legal actions are hidden from the model."""
    constrain: bool = True
    """Constrain replies if the backend can."""
    strict: bool = False
    """Refuse to play if replies can't be constrained to legal actions."""
    fallback: str | None = None
    """The action after two unreadable replies; None for the seat's default or a random legal action."""
    tool_calls: int = 3
    """Maximum tool calls in a decision."""
    recall_tokens: int = 200
    """Approximate tokens of memories in each prompt."""
    plan: bool = False
    """Ask for a plan after the first observation of an episode, and when goals change."""
    plan_lines: int = 6
    reflect: bool = True
    """With a memory, ask for lessons at the end of an episode and on a death."""
    reflect_every: int = 0
    """Number of decisions after which lessons are also asked for; 0 for never."""
    lessons: int = 3
    """Maximum number of lessons at a time."""
    pictures: int = 0
    """Number of the world's latest pictures shown to the model."""

    def window_for(self, profile: Profile) -> int:
        """Return the number of past steps in the prompt."""
        if self.window is not None:
            return self.window
        if self.complete_turns or profile == "brief":
            return 0
        return max(int(NUMBERS["window"].default), self.pictures)


PROFILES = get_args(Profile)
_STATES_A_GOAL = re.compile(r"\b(goal|objective|цель|цели|задач)", re.IGNORECASE)


def objective_beside(description: str, objective: str, words: Words) -> str:
    """Return the goal for the system message: none instead of the protocol's sentence for all games if the description
    states a goal."""
    general = objective in (LLMOptions.objective, words.say(LLMOptions.objective))
    return "" if general and _STATES_A_GOAL.search(description) else objective


def llm_options(context: Context) -> LLMOptions:
    """Return the options of a context. Raises ConfigError if one is invalid."""
    game = context.game
    complete = game is not None and game.complete_turns
    words = words_of("en" if game is None else game.language)
    legal = text(context, "legal", "bound")
    if legal not in LEGAL:
        raise ConfigError(f"The option legal={single_line(legal)[:40]!r} must be one of: {', '.join(LEGAL)}.")
    return LLMOptions(
        game_name=context.world or words.say("a game"),
        objective=(game.objective if game is not None else "") or words.say(LLMOptions.objective),
        persona=text(context, "persona"),
        profile=_profile(context),
        window=int(number(context, "window")) if "window" in context.config else None,
        brief=game.brief if game is not None else "",
        complete_turns=complete,
        sampling=Sampling(
            max_tokens=None if (most := _sampling(context, "max_tokens")) is None else int(most),
            temperature=_sampling(context, "temperature"),
            top_p=_sampling(context, "top_p"),
            seed=context.seed if flag(context, "sampling_seed", True) else None,
        ),
        thinking=flag(context, "thinking", True) if "thinking" in context.config else None,
        hidden=legal == "hidden",
        constrain=flag(context, "constrain", True) and legal == "bound",
        strict=flag(context, "strict", False),
        fallback=text(context, "fallback") or None,
        tool_calls=int(number(context, "tool_calls")),
        recall_tokens=int(number(context, "recall_tokens")),
        plan=flag(context, "plan", False),
        reflect=flag(context, "reflect", True),
        reflect_every=int(number(context, "reflect_every")),
        pictures=_pictures(context),
    )


def number(context: Context, name: str) -> float:
    """Return an option of `NUMBERS`; raise ConfigError if it is not a number or out of range."""
    allowed = NUMBERS[name]
    given = context.config.get(name, allowed.default)
    try:
        return allowed.read(given)
    except (TypeError, ValueError, OverflowError):
        raise ConfigError(f"The option {name} must be {allowed.words}, not {given!r}.") from None


def _profile(context: Context) -> Profile | None:
    given = text(context, "profile", "auto")
    if given == "auto":
        return None
    if given not in PROFILES:
        raise ConfigError(f"Unknown profile {given!r}; expected one of: auto, {', '.join(PROFILES)}.")
    return cast(Profile, given)


def _sampling(context: Context, name: str) -> float | None:
    return None if str(context.config.get(name, "")).strip().lower() == "none" else number(context, name)


def flag(context: Context, name: str, default: bool) -> bool:
    """Return an option that is yes or no; raise ConfigError if it is neither."""
    given = context.config.get(name, default)
    found = FLAGS.get(str(given).strip().lower())
    if found is None:
        raise ConfigError(f"The option {name} must be yes or no, not {given!r}.")
    return found


def text(context: Context, name: str, default: str = "") -> str:
    """Return a text option, for `@FILE` from a file; raise ConfigError if that can't be read."""
    given = str(context.config.get(name, default))
    if given.startswith("@"):
        return read_text(Path(given[1:]).expanduser(), f"The option {name}")
    return given


def _pictures(context: Context) -> int:
    given = context.config.get("pictures", False)
    if not isinstance(given, bool) and str(given).strip().isdigit():
        return int(number(context, "pictures"))
    return int(flag(context, "pictures", False))
