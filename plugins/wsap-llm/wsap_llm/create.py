"""Creates the agent `llm`: a language model with style, memory, tools and prompts from options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, cast

from wsap_core.errors import ConfigError, UsageError
from wsap_core.factories import build
from wsap_core.seams.context import Context
from wsap_core.seams.memory import AgentMemory
from wsap_core.seams.model import Abilities, Backend
from wsap_core.seams.options import with_prefix
from wsap_core.seams.services import Parts
from wsap_core.seams.tool import AgentTool, ToolContext, ToolSource
from wsap_core.specs import MemorySpec, ToolSpec
from wsap_llm.agent import LLMAgent, StyleFor
from wsap_llm.backends.pool import AgentModels, ModelPool
from wsap_llm.decision.choosing import ChooseStyle
from wsap_llm.decision.styles import CallStyle, JsonStyle, Style, TagStyle
from wsap_llm.decision.toolbox import RecordedSource, build_tool, recorded
from wsap_llm.journal import CallJournal
from wsap_llm.middleware import Model
from wsap_llm.middleware.show import Show, ShowsThoughts
from wsap_llm.options.llm import TINY, LLMOptions, Profile, llm_options, number, text
from wsap_llm.options.table import STYLES
from wsap_llm.prompts import Prompts
from wsap_llm.reply.tags import TagLimits
from wsap_llm.text.skin import Lexicon, Skinned

REASONING: dict[Profile, int] = {"full": 240, "brief": 120}
"""Maximum length of the reasoning before an action, in characters."""


def create(context: Context) -> LLMAgent:
    """Return an agent that asks the model in the option `model`.

    In a game with `AdapterSpec.complete_turns` the window is 0 steps and there is no plan by default.

    The options are those of `wsap_llm.options.table`; options that start with `model.`, `memory.` or the name of a tool
    and a dot are passed to that part. Raises ConfigError if an option is missing or invalid, UnknownNameError if a
    backend, memory or tool is not installed, and MissingServiceError without a runtime that provides models.
    """
    address = text(context, "model")
    if not address:
        raise ConfigError("The agent 'llm' requires a model, such as --model ollama/qwen3:8b; wsap models lists them.")
    options = llm_options(context)
    style = _style(context, options)
    folder = text(context, "prompts")
    language = "en" if context.game is None else context.game.language
    prompts = Prompts.from_folder(folder, language) if folder else Prompts(language=language)
    tools = [name.strip() for name in text(context, "tools").split(",") if name.strip()]
    pool = cast(ModelPool, context.services.require("models"))
    journal = context.services.journal if isinstance(context.services.journal, CallJournal) else None
    show: Callable[[str], Show] | None = None
    if isinstance(views := context.services.views, ShowsThoughts):
        show = partial(Show, views, context.agent_id or "", now=context.clock.now, run=context.services.run)
    models = AgentModels(pool, address, _of_part(context, "model"), journal, show=show)
    memory = _memory(context, models)
    if memory is None and "reflect" in context.config and options.reflect:
        raise ConfigError("The option reflect requires a memory: add --memory fulltext, or omit reflect.")
    model: Backend = models.decider()
    if skin := text(context, "skin"):
        model = Skinned(model, _lexicon(context, skin))
    if show is not None:
        model = Model(model, [show(address)])

    async def prepare() -> None:
        if journal is None or not journal.offline:
            await pool.ready(address, models.own)
        if journal is not None:
            journal.note_model(address, model.abilities, prompts.version)

    return LLMAgent(
        model,
        options,
        style=style,
        prompts=prompts,
        memory=memory,
        tools=_tools(context, tools, memory),
        prepare=prepare,
        tell=context.services.progress,
        generator=context.random,
        counter=models.counter,
    )


def _lexicon(context: Context, seed: str) -> Lexicon:
    words = () if context.game is None else context.game.vocabulary
    if not words:
        raise ConfigError(
            f"The option skin requires a game with a vocabulary (AdapterSpec.vocabulary), which {context.world!r} does "
            "not declare; omit skin."
        )
    return Lexicon.drawn(words, seed)


def style_that_suits(abilities: Abilities, profile: Profile) -> str:
    """Return the name of the default style for a model."""
    tiny = abilities.parameters is not None and abilities.parameters < TINY
    if abilities.choose and tiny and profile == "brief":
        return "choose"
    return "calls" if abilities.calls and not abilities.json_schema else "json"


def _style(context: Context, options: LLMOptions) -> StyleFor:
    wanted = text(context, "style", "auto")
    if wanted not in STYLES:
        raise ConfigError(f"Unknown style {wanted!r}; expected one of: {', '.join(STYLES)}.")
    steps = int(number(context, "max_steps"))

    def style_for(abilities: Abilities, profile: Profile, going_on: str) -> Style:
        name = (going_on or style_that_suits(abilities, profile)) if wanted == "auto" else wanted
        if name == "choose" and not abilities.choose:
            raise UsageError(
                "This model does not support the style choose: omit --style, or use an in-process model (outlines/...) "
                "or a server that returns log-probabilities of prompts (openai/... with --model-option choose=chatml)."
            )
        # A model that does not think by itself gives its reasoning before the action, instead of for it.
        first, most = not options.thinking, REASONING[profile]
        if name == "tags":
            return TagStyle(TagLimits(calls=options.tool_calls), steps=steps)
        written = (
            CallStyle(steps=steps)
            if name == "calls"
            else JsonStyle(steps=steps, reasoning_first=first, reasoning_limit=most if first else None)
        )
        return ChooseStyle(written) if name == "choose" else written

    return style_for


def _memory(context: Context, models: AgentModels) -> AgentMemory | None:
    name = text(context, "memory", "none")
    if name == "none":
        return None
    parts = cast(Parts, context.services.require("parts"))
    spec = cast(MemorySpec, parts.memory(name))
    services = replace(context.services, models=models)
    config = _of_part(context, "memory")
    own = Context.create(
        context.seed, "memory", config=config, clock=context.clock, services=services, game=context.game
    )
    return cast(AgentMemory, build(spec.factory, own))


def _tools(context: Context, names: list[str], memory: AgentMemory | None) -> list[AgentTool | ToolSource]:
    if not names:
        return []
    parts = cast(Parts, context.services.require("parts"))
    built: list[AgentTool | ToolSource] = []
    journal = context.services.journal.tools if isinstance(context.services.journal, CallJournal) else None
    for name in names:
        if journal is not None and journal.offline and journal.offered(name) is not None:
            _of_part(context, name)  # marks the options of a replayed source as used
            built.append(RecordedSource(name, None, journal))
            continue
        spec = cast(ToolSpec, parts.tool(name))
        config = _of_part(context, name)
        plain = Context.create(context.seed, "tools", config=config, clock=context.clock, services=context.services)
        made = build_tool(spec, ToolContext.of(plain, memory=memory, world=context.world))
        if journal is not None:
            made = RecordedSource(name, made, journal) if isinstance(made, ToolSource) else recorded(made, journal)
        built.append(made)
    return built


def _of_part(context: Context, part: str) -> dict[str, Any]:
    return {name.removeprefix(f"{part}."): value for name, value in with_prefix(context.config, f"{part}.").items()}
