"""The agent `llm`: a language model with its style, memory, tools and prompts, put together from options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from wsap_core.errors import ConfigError
from wsap_core.factories import build
from wsap_core.seams.context import Context
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Backend, Sampling
from wsap_core.seams.options import Options
from wsap_core.seams.services import Parts
from wsap_core.seams.tool import AgentTool, ToolContext, ToolSource
from wsap_core.specs import MemorySpec, ToolSpec
from wsap_core.textfile import read_text
from wsap_llm.account import Account
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.asked import Again, JournalledModels
from wsap_llm.backends.registry import Models
from wsap_llm.journal import CallJournal
from wsap_llm.pace import MOST_EVERY, PaceOptions, Thinking, Wake
from wsap_llm.prompts import Prompts
from wsap_llm.reply.steps import MOST_STEPS
from wsap_llm.reply.tags import TagLimits
from wsap_llm.styles import JsonStyle, Style, TagStyle
from wsap_llm.tool_journal import RecordedSource, recorded
from wsap_llm.toolbox import Toolbox, build_tool
from wsap_llm.wrappers import Recorded, Replayed

STYLES = ("json", "tags")
MOST_CALLS = 20
"""The most calls of tools that can be allowed in one turn."""


def create(context: Context) -> LLMAgent:
    """Return an agent that asks the model in the option `model`.

    In a game whose turns are complete in themselves (`AdapterSpec.complete_turns`) the window is 0
    steps and there is no plan, unless the options say otherwise.

    Options: `model` (an address, such as `ollama/qwen3:8b`), `style` (json or tags), `persona`,
    `memory` (a registered kind, none), `tools` (registered tools, separated by commas), `window`
    (16 steps), `pictures` (no; yes, or how many), `max_tokens` (300), `temperature` (0.7), `top_p`
    (0.9), `thinking` (yes, no or auto), `plan` (yes), `reflect` (yes, with a memory),
    `reflect_every` (0 steps), `strict` (no), `constrain` (yes), `fallback` (an action), `prompts` (a
    folder), `max_steps` (1; how many steps a decision may cover), `every` (1; how many it stands
    for) and `wake` (change; what has the model asked before).
    What begins with `model.`, `memory.` or the name of a tool and a dot is an option of that part:
    `model.num_ctx`, `memory.cells`, `mcp.servers`.

    Raises:
        ConfigError: an option is missing or wrong.
        UnknownNameError: no such backend, memory or tool is installed.
        MissingServiceError: there is no runtime to ask models for it.
    """
    address = _text(context, "model", "")
    if not address:
        raise ConfigError("The agent 'llm' needs a model: --model ollama/qwen3:8b, or another that wsap models lists.")
    options = _options(context)
    style = _style(context)
    folder = _text(context, "prompts", "")
    prompts = Prompts.from_folder(folder) if folder else Prompts()
    tools = [name.strip() for name in _text(context, "tools", "").split(",") if name.strip()]
    models = cast(Models, context.services.require("models"))
    journal = context.services.journal
    account = Account()
    given = _of_part(context, "model")

    def configure(name: str) -> None:
        """Give the model its options, and every other one of its backend that the agent's parts ask."""
        if given and name.partition("/")[0] == address.partition("/")[0]:
            models.configure(name, given)

    memory = _memory(context, models, account, configure)
    if memory is None and "reflect" in context.config and options.reflect:
        raise ConfigError("Lessons need a memory that keeps them: add --memory fulltext, or leave reflect out.")
    backend: Backend
    prepare = None
    if isinstance(journal, CallJournal) and journal.offline:
        kept, abilities = journal, journal.abilities(address)
        backend = Again(Replayed(address, kept, abilities), kept)

        async def prepare() -> None:
            kept.note_model(address, abilities, prompts.version)

    else:
        configure(address)
        inner = models.for_agent(address, account)
        backend = Recorded(inner, journal) if isinstance(journal, CallJournal) else inner

        async def prepare() -> None:
            await models.ready(address)
            if isinstance(journal, CallJournal):
                journal.note_model(address, inner.abilities, prompts.version)

    return LLMAgent(
        backend,
        options,
        style=style,
        prompts=prompts,
        memory=memory,
        toolbox=_toolbox(context, tools, memory),
        prepare=prepare,
        tell=context.services.progress,
        generator=context.random,
        account=account,
    )


def _options(context: Context) -> LLMOptions:
    sampling = Sampling(
        max_tokens=_whole(context, "max_tokens", 300, 1, 1_000_000),
        temperature=_number(context, "temperature", 0.7, 0, 5),
        top_p=_number(context, "top_p", 0.9, 0, 1),
        seed=context.seed if _flag(context, "sampling_seed", True) else None,
    )
    complete = context.game is not None and context.game.complete_turns
    objective = context.game.objective if context.game is not None else ""
    return LLMOptions(
        game_name=context.world or "a game",
        objective=objective or LLMOptions.objective,
        persona=_text(context, "persona", ""),
        window=_whole(context, "window", 0 if complete else 16, 0, 1000),
        sampling=sampling,
        thinking=_thinking(context),
        pace=PaceOptions(_whole(context, "every", 1, 1, MOST_EVERY), cast(Wake, _text(context, "wake", "change"))),
        constrain=_flag(context, "constrain", True),
        strict=_flag(context, "strict", False),
        fallback=_text(context, "fallback", "") or None,
        tool_calls=_whole(context, "tool_calls", 3, 0, MOST_CALLS),
        recall_tokens=_whole(context, "recall_tokens", 200, 0, 100_000),
        plan=_flag(context, "plan", not complete),
        reflect=_flag(context, "reflect", True),
        reflect_every=_whole(context, "reflect_every", 0, 0, 1_000_000),
        pictures=_pictures(context),
    )


def _thinking(context: Context) -> Thinking:
    given = context.config.get("thinking")
    if given is None or str(given).strip().lower() == "auto":
        return None if given is None else "auto"
    try:
        return _flag(context, "thinking", True)
    except ConfigError:
        raise ConfigError(f"The option thinking is yes, no or auto, not {given!r}.") from None


def _style(context: Context) -> Style:
    name = _text(context, "style", "json")
    if name not in STYLES:
        raise ConfigError(f"There is no style {name!r}; there are: {', '.join(STYLES)}.")
    steps = _whole(context, "max_steps", 1, 1, MOST_STEPS)
    if name == "json":
        return JsonStyle(steps=steps)
    return TagStyle(TagLimits(calls=_whole(context, "tool_calls", 3, 0, MOST_CALLS)), steps=steps)


def _memory(context: Context, models: Models, account: Account, configure: Callable[[str], None]) -> AgentMemory | None:
    name = _text(context, "memory", "none")
    if name == "none":
        return None
    parts = cast(Parts, context.services.require("parts"))
    spec = cast(MemorySpec, parts.memory(name))
    journal = context.services.journal if isinstance(context.services.journal, CallJournal) else None
    services = replace(context.services, models=JournalledModels(models, journal, account, configure))
    config = _of_part(context, "memory")
    own = Context.create(context.seed, "memory", config=config, clock=context.clock, services=services)
    return cast(AgentMemory, build(spec.factory, own))


def _toolbox(context: Context, names: list[str], memory: AgentMemory | None) -> Toolbox | None:
    if not names:
        return None
    parts = cast(Parts, context.services.require("parts"))
    built: list[AgentTool | ToolSource] = []
    journal = context.services.journal.tools if isinstance(context.services.journal, CallJournal) else None
    for name in names:
        if journal is not None and journal.offline and journal.offered(name) is not None:
            _of_part(context, name)  # what is for a source that is not asked is no misspelt option
            built.append(RecordedSource(name, None, journal))
            continue
        spec = cast(ToolSpec, parts.tool(name))
        config = _of_part(context, name)
        plain = Context.create(context.seed, "tools", config=config, clock=context.clock, services=context.services)
        made = build_tool(spec, ToolContext.of(plain, memory=memory, world=context.world))
        if journal is not None:
            made = RecordedSource(name, made, journal) if isinstance(made, ToolSource) else recorded(made, journal)
        built.append(made)
    return Toolbox(built)


def _of_part(context: Context, part: str) -> dict[str, Any]:
    """Return the options that are for a memory or tool, by their names there. Any: as the user gave them."""
    # Looked up by name, so that options which are for nobody are still found out.
    given = context.config.given if isinstance(context.config, Options) else context.config
    names = sorted(name for name in given if name.startswith(f"{part}."))
    return {name.removeprefix(f"{part}."): context.config[name] for name in names}


def _text(context: Context, name: str, default: str) -> str:
    value = context.config.get(name, default)
    if not isinstance(value, str):
        return str(value)
    if value.startswith("@"):
        return read_text(Path(value[1:]).expanduser(), f"The option {name}")
    return value


def _whole(context: Context, name: str, default: int, low: int, high: int) -> int:
    value = _number(context, name, default, low, high)
    if not float(value).is_integer():
        raise ConfigError(f"The option {name} must be a whole number, not {value!r}.")
    return int(value)


def _number(context: Context, name: str, default: float, low: float, high: float) -> float:
    given: Any = context.config.get(name, default)  # Any: whatever the user wrote
    try:
        value = float(given)
    except (TypeError, ValueError):
        raise ConfigError(f"The option {name} must be a number, not {given!r}.") from None
    if not low <= value <= high:
        raise ConfigError(f"The option {name} must be from {low} to {high}, not {given!r}.")
    return value


def _pictures(context: Context) -> int:
    """Return how many pictures are shown: a number, or yes for one."""
    given = context.config.get("pictures", False)
    if not isinstance(given, bool) and str(given).strip().isdigit():
        return _whole(context, "pictures", 0, 0, 100)
    return 1 if _flag(context, "pictures", False) else 0


def _flag(context: Context, name: str, default: bool) -> bool:
    given = context.config.get(name, default)
    if isinstance(given, bool):
        return given
    word = str(given).strip().lower()
    if word in ("yes", "true", "on", "1"):
        return True
    if word in ("no", "false", "off", "0"):
        return False
    raise ConfigError(f"The option {name} is yes or no, not {given!r}.")
