"""The plugin's registrations. Light: neither the engine nor the worlds are imported here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Achievement, Action
from wsap_core.specs import AdapterSpec, BackendSpec, CommandSpec, OptionDef

WORLDS = {
    "village": "Six people in a village below a dam, while the water rises: a world that tells itself.",
    "lighthouse": "Five people on a rock that no boat comes to: a world that tells itself.",
}
"""The worlds that come with the plugin, each a game of its own, too, with its line of summary."""

ACHIEVEMENTS = (
    Achievement("get_your_way", "Carry out an intention with full success.", "common"),
    Achievement("keep_company", "Spend a tick with somebody else.", "common"),
    Achievement("touch_a_nerve", "Be there when a trigger of somebody else fires.", "uncommon"),
    Achievement("give", "Hand something to somebody else.", "uncommon"),
    Achievement("receive", "Be handed something.", "uncommon"),
    Achievement("travel", "Go from one place to another.", "common"),
    Achievement("recover", "Succeed right after a failure.", "uncommon"),
)
SKILLS = {
    "social": ("keep_company", "touch_a_nerve", "give", "receive"),
    "exploration": ("travel",),
    "planning": ("get_your_way", "recover"),
}
"""Skill domain -> achievements that are evidence for it."""

OPTIONS = (
    OptionDef("template", "The world: village, lighthouse, or the path of a template of your own.", "village"),
    OptionDef("language", "The language of a world that comes with the plugin.", "en", "en|ru"),
    OptionDef("world", "A world that was exported, in place of a template.", "", "a world"),
    OptionDef("cells", "Memory cells of each character.", "as in the template", "1-10"),
    OptionDef("model", "The language model that is asked, such as ollama/qwen3:8b.", "storyteller"),
    OptionDef("intent_model", "Another model for what characters mean to do.", "as model"),
    OptionDef("scene_model", "Another model for the game master.", "as model"),
    OptionDef("story_model", "Another model for the narrator.", "as model"),
    OptionDef("memory_model", "Another model that sums up memories.", "as model"),
    OptionDef("model.KEY", "An option of the models' backend, such as model.num_ctx=8192."),
    OptionDef("text", "Maximum characters of one text of a model.", "300", "40-2000"),
    OptionDef("compact", "Short prompts, for small models.", "no", "yes|no"),
    OptionDef("overlap", "Tell a tick's story while the next tick goes on.", "no", "yes|no"),
    OptionDef("concurrency", "Maximum calls to models at one time.", "16", "1-1000"),
)

_SANDBOX = AdapterSpec(
    "sandbox",
    "A world that tells itself: characters with memories, and a game master.",
    "wsap_sandbox.world:create",
    title="Sandbox",
    abilities=("seed", "snapshot", "render", "multi-seat", "lives", "influence"),
    seats=(0, 200),
    variant="wsap_sandbox.options:variant",
    family="template",
    members="wsap_sandbox.templates.loader:template_names",
    timing="simultaneous",
    default_action=Action("wait"),
    achievements=ACHIEVEMENTS,
    wire_types=("wsap_sandbox.seat:CharacterObservation",),
    skills=SKILLS,
    persistent=True,
    asks_models=True,
    complete_turns=True,
    objective="Live as your character would: pursue what it wants, among people who have aims of their own.",
    look_back="wsap sandbox watch {run} --from 1",
    run_views="wsap_sandbox.story.views:run_view",
    genre="interactive fiction",
    dimensions="text",
    options=OPTIONS,
)


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer the worlds: `sandbox` with the option `template`, `sandbox:NAME`, and each by its own name."""
    options = tuple(option for option in OPTIONS if option.name != "template")
    alone = replace(_SANDBOX, family="", members=None, title="", options=options)
    named = (replace(alone, name=name, summary=text, preset={"template": name}) for name, text in WORLDS.items())
    return [_SANDBOX, *named]


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Offer the storyteller, which tells worlds without a language model."""
    summary = "Tells worlds of wsap-sandbox without a language model."
    home = "wsap_sandbox.storyteller.backend"
    return [BackendSpec("storyteller", summary, f"{home}:create", models=f"{home}:listing")]


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer `wsap sandbox`."""
    summary = "Begin, run, read and change stories that tell themselves."
    return [CommandSpec("sandbox", summary, "wsap_sandbox.cli:sandbox")]
