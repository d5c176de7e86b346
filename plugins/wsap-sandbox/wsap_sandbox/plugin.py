"""The plugin's registrations; imports neither the engine nor the worlds."""

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
"""Bundled worlds, each also a game of its own -> summary."""

ACHIEVEMENTS = (
    Achievement("get_your_way", "Carry out an intention with full success.", "common"),
    Achievement("keep_company", "Spend a tick with somebody else.", "common"),
    Achievement("touch_a_nerve", "Be present when another character's trigger fires.", "uncommon"),
    Achievement("give", "Hand something to another character.", "uncommon"),
    Achievement("receive", "Receive something from another character.", "uncommon"),
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
    OptionDef("template", "The world: village, lighthouse, or the path of your own template.", "village", "", "path"),
    OptionDef("language", "Language of a bundled world.", "en", "en|ru"),
    OptionDef("world", "An exported world to use instead of a template.", "", "a world"),
    OptionDef("cells", "Memory cells of each character.", "as in the template", "1-10"),
    OptionDef("model", "The language model, such as ollama/qwen3:8b.", "storyteller", "", "model"),
    OptionDef("intent_model", "A different model for the characters' intentions.", "as model", "", "model"),
    OptionDef("scene_model", "A different model for the game master.", "as model", "", "model"),
    OptionDef("story_model", "A different model for the narrator.", "as model", "", "model"),
    OptionDef("memory_model", "A different model for summarizing memories.", "as model", "", "model"),
    OptionDef("model.KEY", "An option of the model backend, such as model.num_ctx=8192."),
    OptionDef("text", "Maximum characters of each text in a reply.", "300", "40-2000"),
    OptionDef("compact", "Use short prompts, for small models.", "no", "yes|no"),
    OptionDef("overlap", "Tell a tick's story while the next tick runs.", "no", "yes|no"),
    OptionDef("concurrency", "Maximum concurrent model calls.", "16", "1-1000"),
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
    """Register `sandbox` with the option `template`, `sandbox:NAME`, and each world by its own name."""
    options = tuple(option for option in OPTIONS if option.name != "template")
    alone = replace(_SANDBOX, family="", members=None, title="", options=options)
    named = (replace(alone, name=name, summary=text, preset={"template": name}) for name, text in WORLDS.items())
    return [_SANDBOX, *named]


@hookimpl
def wsap_backends() -> Iterable[BackendSpec]:
    """Register the storyteller, which needs no language model."""
    summary = "Tells the stories of wsap-sandbox without a language model."
    home = "wsap_sandbox.storyteller.backend"
    material = OptionDef("model", "Whose material it tells with: default, or the path of a template.", names="path")
    return [BackendSpec("storyteller", summary, f"{home}:create", models=f"{home}:listing", options=(material,))]


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Register `wsap sandbox`."""
    summary = "Start, run, read and change stories that tell themselves."
    return [CommandSpec("sandbox", summary, "wsap_sandbox.cli:sandbox")]
