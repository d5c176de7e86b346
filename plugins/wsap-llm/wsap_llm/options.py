"""How an agent asks its model, and how that is read from what a user gave."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from wsap_core.errors import ConfigError
from wsap_core.seams.context import Context
from wsap_core.seams.model import DEFAULT_SAMPLING, Abilities, Sampling
from wsap_core.textfile import read_text
from wsap_core.untrusted import single_line
from wsap_llm.option_table import FLAGS, LEGAL, NUMBERS
from wsap_llm.prompts import words_of

Profile = Literal["full", "brief"]
"""How much a model is told."""
SMALL = 3_000_000_000
"""Parameters below which a model is told little."""
SMALL_CONTEXT = 8192
"""Tokens of context below which a model is told little."""
TINY = 1_000_000_000
"""Parameters below which a model that is told little chooses, where its backend can, instead of writing."""


def profile_for(abilities: Abilities) -> Profile:
    """Return how much a model is told unless the user says: what suits its size, where that is known."""
    small = abilities.parameters is not None and abilities.parameters < SMALL
    narrow = abilities.context is not None and abilities.context < SMALL_CONTEXT
    return "brief" if small or narrow else "full"


@dataclass(frozen=True)
class LLMOptions:
    """How a model is asked."""

    game_name: str = "a game"
    objective: str = "Your goal is to survive and accomplish objectives."
    """What the agent is told its goal is; part of the system message."""
    persona: str = ""
    """Who the agent is, in a person's words; part of the system message."""
    profile: Profile | None = None
    """How much the model is told; None for what suits its size."""
    window: int | None = None
    """About how many steps of the conversation are sent along: from half to twice as many. None for 16, or for 0 where
    the game's turns are complete or the profile is brief."""
    brief: str = ""
    """The game in a few sentences, for the brief profile; the whole description for none."""
    complete_turns: bool = False
    """Whether the game's own text of a turn tells what came of the last one, unless that failed."""
    sampling: Sampling = DEFAULT_SAMPLING
    thinking: bool | None = None
    """Whether the model is asked to think first; None for its default."""
    hidden: bool = False
    """Whether the model is not told which actions are legal now."""
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
    plan: bool | None = None
    """Ask for a plan at the start of an episode, and when goals change; None for yes, unless the game's turns are
    complete or the profile is brief."""
    plan_lines: int = 6
    reflect: bool = True
    """Ask for lessons at the end of an episode and on a death, where there is a memory to keep them."""
    reflect_every: int = 0
    """Ask for lessons after so many decisions, too; 0 for never."""
    lessons: int = 3
    """Most lessons at a time."""
    pictures: int = 0
    """How many of the newest pictures that the world draws the model is shown; 0 for none."""

    def window_for(self, profile: Profile) -> int:
        """Return how many steps of the conversation are sent along."""
        if self.window is not None:
            return self.window
        return 0 if self.complete_turns or profile == "brief" else int(NUMBERS["window"].default)

    def plans_for(self, profile: Profile) -> bool:
        """Return whether plans are asked for."""
        return self.plan if self.plan is not None else not self.complete_turns and profile == "full"


PROFILES = get_args(Profile)


def llm_options(context: Context) -> LLMOptions:
    """Return how the model is asked, as the user said. Raises ConfigError if an option has a value that it can't
    have."""
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
        plan=flag(context, "plan", True) if "plan" in context.config else None,
        reflect=flag(context, "reflect", True),
        reflect_every=int(number(context, "reflect_every")),
        pictures=_pictures(context),
    )


def number(context: Context, name: str) -> float:
    """Return an option of `NUMBERS`; a ConfigError if it is no number, or not in its range."""
    allowed = NUMBERS[name]
    given = context.config.get(name, allowed.default)
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise ConfigError(f"The option {name} must be a number, not {given!r}.") from None
    if not allowed.low <= value <= allowed.high:
        raise ConfigError(f"The option {name} must be from {allowed.low} to {allowed.high}, not {given!r}.")
    if allowed.whole and not value.is_integer():
        raise ConfigError(f"The option {name} must be a whole number, not {value!r}.")
    return value


def _profile(context: Context) -> Profile | None:
    given = text(context, "profile", "auto")
    if given == "auto":
        return None
    if given not in PROFILES:
        raise ConfigError(f"There is no profile {given!r}; there are: auto, {', '.join(PROFILES)}.")
    return cast(Profile, given)


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
