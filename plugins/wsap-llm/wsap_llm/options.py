"""How an agent asks its model, and how that is read from what a user gave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wsap_core.errors import ConfigError
from wsap_core.seams.context import Context
from wsap_core.seams.model import DEFAULT_SAMPLING, Sampling
from wsap_core.textfile import read_text
from wsap_llm.option_table import NUMBERS
from wsap_llm.prompts import words_of


@dataclass(frozen=True)
class LLMOptions:
    """How a model is asked."""

    game_name: str = "a game"
    objective: str = "Your goal is to survive and accomplish objectives."
    """What the agent is told its goal is; part of the system message."""
    persona: str = ""
    """Who the agent is, in a person's words; part of the system message."""
    window: int = 16
    """About how many steps of the conversation are sent along: from half to twice as many."""
    complete_turns: bool = False
    """Whether the game's own text of a turn tells what came of the last one, unless that failed."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    """Whether the model is asked to think first; None for its default."""
    provider: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Provider options by backend name."""
    constrain: bool = True
    """Constrain replies where the backend can."""
    strict: bool = False
    """Refuse to play where replies can't be constrained to what is legal."""
    fallback: str | None = None
    """The action taken when a reply can't be understood twice; when None the seat's default, or a random legal one."""
    tool_calls: int = 3
    """Most tool calls in a decision."""
    recall_tokens: int = 200
    """About how many tokens of memories are shown with each observation."""
    plan: bool = True
    """Ask for a plan at the start of an episode, and when goals change."""
    plan_lines: int = 6
    reflect: bool = True
    """Ask for lessons at the end of an episode and on a death, where there is a memory to keep them."""
    reflect_every: int = 0
    """Ask for lessons after so many decisions, too; 0 for never."""
    lessons: int = 3
    """Most lessons at a time."""
    pictures: int = 0
    """How many of the newest pictures that the world draws the model is shown; 0 for none."""


FLAGS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}


def llm_options(context: Context) -> LLMOptions:
    """Return how the model is asked, as the user said. Raises ConfigError if an option has a value that it can't
    have."""
    game = context.game
    complete = game is not None and game.complete_turns
    words = words_of("en" if game is None else game.language)
    return LLMOptions(
        game_name=context.world or words.say("a game"),
        objective=(game.objective if game is not None else "") or words.say(LLMOptions.objective),
        persona=text(context, "persona"),
        window=int(number(context, "window", 0 if complete else None)),
        complete_turns=complete,
        sampling=Sampling(
            max_tokens=None if (most := _sampling(context, "max_tokens")) is None else int(most),
            temperature=_sampling(context, "temperature"),
            top_p=_sampling(context, "top_p"),
            seed=context.seed if flag(context, "sampling_seed", True) else None,
        ),
        thinking=flag(context, "thinking", True) if "thinking" in context.config else None,
        constrain=flag(context, "constrain", True),
        strict=flag(context, "strict", False),
        fallback=text(context, "fallback") or None,
        tool_calls=int(number(context, "tool_calls")),
        recall_tokens=int(number(context, "recall_tokens")),
        plan=flag(context, "plan", not complete),
        reflect=flag(context, "reflect", True),
        reflect_every=int(number(context, "reflect_every")),
        pictures=_pictures(context),
    )


def number(context: Context, name: str, default: float | None = None) -> float:
    """Return an option of `NUMBERS`; a ConfigError if it is no number, or not in its range."""
    allowed = NUMBERS[name]
    given = context.config.get(name, allowed.default if default is None else default)
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise ConfigError(f"The option {name} must be a number, not {given!r}.") from None
    if not allowed.low <= value <= allowed.high:
        raise ConfigError(f"The option {name} must be from {allowed.low} to {allowed.high}, not {given!r}.")
    if allowed.whole and not value.is_integer():
        raise ConfigError(f"The option {name} must be a whole number, not {value!r}.")
    return value


def _sampling(context: Context, name: str) -> float | None:
    """Return a number of `NUMBERS`, or None for `none`: it is left out of requests."""
    return None if str(context.config.get(name, "")).strip().lower() == "none" else number(context, name)


def flag(context: Context, name: str, default: bool) -> bool:
    """Return an option that is yes or no; a ConfigError if it is neither."""
    given = context.config.get(name, default)
    found = FLAGS.get(str(given).strip().lower())
    if found is None:
        raise ConfigError(f"The option {name} is yes or no, not {given!r}.")
    return found


def text(context: Context, name: str, default: str = "") -> str:
    """Return an option that is text, or the text of the file in `@FILE`; a ConfigError if that can't be read."""
    given = str(context.config.get(name, default))
    if given.startswith("@"):
        return read_text(Path(given[1:]).expanduser(), f"The option {name}")
    return given


def _pictures(context: Context) -> int:
    given = context.config.get("pictures", False)
    if not isinstance(given, bool) and str(given).strip().isdigit():
        return int(number(context, "pictures"))
    return int(flag(context, "pictures", False))
