"""The options of the agent `llm`, with ranges and descriptions. The plugin imports this module, so it must be light."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wsap_core.specs import OptionDef


@dataclass(frozen=True)
class Range:
    """The type of a numeric option."""

    default: float
    low: float
    high: float
    whole: bool = True
    none: bool = False
    """Whether the value `none` leaves it out of requests."""

    @property
    def words(self) -> str:
        """The description of the range in messages."""
        return f"a {'whole ' if self.whole else ''}number from {self.low:g} to {self.high:g}"

    def read(self, value: object) -> float:
        """Return a number, also from text; raise ValueError if it is not a number or out of range."""
        number = float(value) if isinstance(value, str) else value
        if not isinstance(number, int | float) or isinstance(number, bool) or not self.low <= number <= self.high:
            raise ValueError
        if self.whole and number != int(number):
            raise ValueError
        return int(number) if self.whole else float(number)


NUMBERS: Mapping[str, Range] = {
    "max_tokens": Range(300, 1, 1_000_000, none=True),
    "temperature": Range(0.7, 0, 5, whole=False, none=True),
    "top_p": Range(0.9, 0, 1, whole=False, none=True),
    "window": Range(2, 0, 1000),
    "max_steps": Range(1, 1, 64),
    "tool_calls": Range(3, 0, 20),
    "recall_tokens": Range(200, 0, 100_000),
    "reflect_every": Range(0, 0, 1_000_000),
    "pictures": Range(0, 0, 100),
}
"""The numeric options."""

FLAGS = {"yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False}
"""The values of yes-or-no options."""


def _number(name: str, summary: str) -> OptionDef:
    allowed = NUMBERS[name]
    none = "|none" if allowed.none else ""
    return OptionDef(name, summary, f"{allowed.default:g}", f"{allowed.low:g}-{allowed.high:.0f}{none}")


LEGAL = ("bound", "shown", "hidden")
"""The values of the option `legal`."""
STYLES = ("auto", "json", "tags", "calls", "choose")
"""The values of the option `style`."""
OPTIONS = (
    OptionDef("model", "The model's address, such as ollama/qwen3:8b; the same as --model.", names="model"),
    OptionDef("style", "The format of the model's replies.", "auto", "|".join(STYLES)),
    OptionDef("profile", "The level of detail in prompts.", "auto", "auto|full|brief"),
    OptionDef(
        "legal",
        "Legal actions: replies are constrained to them, they are only shown, or neither.",
        "bound",
        "bound|shown|hidden",
    ),
    OptionDef("skin", "A seed for renaming the game's vocabulary in everything the model reads.", "", "any text"),
    OptionDef("persona", "The character to play; @FILE reads it from a file."),
    OptionDef("memory", "The kind of memory.", "none", "none|fifo|facts|fulltext|..."),
    OptionDef("tools", "The model's tools, separated by commas.", "", "calculator,notes,recall,mcp,..."),
    OptionDef("thinking", "Whether the model thinks before it replies.", "the model's default", "yes|no"),
    _number("window", "Past steps in the prompt: from half to twice this number."),
    OptionDef("pictures", "Number of latest images of the game in the prompt.", "no", "yes|no|0-100"),
    _number("max_tokens", "Maximum tokens of a reply."),
    _number("temperature", "Sampling temperature."),
    _number("top_p", "Nucleus sampling: the probability mass to sample from."),
    OptionDef("sampling_seed", "Whether to send a seed with each request, derived from the agent's.", "yes", "yes|no"),
    _number("max_steps", "Maximum steps that one decision may cover."),
    OptionDef("plan", "Whether to ask for a plan after the first observation and when goals change.", "no", "yes|no"),
    OptionDef("reflect", "Whether to ask for lessons at the end of an episode; requires a memory.", "yes", "yes|no"),
    _number("reflect_every", "Number of decisions after which lessons are also asked for; 0 for never."),
    _number("tool_calls", "Maximum tool calls in a decision."),
    _number("recall_tokens", "Approximate tokens of memories in each prompt."),
    OptionDef("constrain", "Whether to constrain replies to legal actions if the backend can.", "yes", "yes|no"),
    OptionDef("strict", "Whether to refuse models that can't be constrained.", "no", "yes|no"),
    OptionDef(
        "fallback", "The action taken after two unreadable replies.", "the game's default, or random", "an action"
    ),
    OptionDef("prompts", "A folder with prompt templates.", "", "a folder", "path"),
    OptionDef("model.KEY", "An option of the model's backend, such as model.num_ctx; the same as --model-option."),
    OptionDef("memory.KEY", "An option of the memory, such as memory.keep."),
    OptionDef("TOOL.KEY", "An option of a tool, such as mcp.servers."),
)
"""The options in the order of `wsap agents llm`."""
