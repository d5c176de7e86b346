"""What games and agents read from their options is what `wsap games NAME` and `wsap agents NAME` list."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields

import pytest

from wsap_core.errors import ConfigError
from wsap_core.factories import build
from wsap_core.host import PluginHost
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_core.specs import OptionDef, part_options
from wsap_llm.backends.pool import ModelPool
from wsap_tossim.engine.data.rules import RULE_SETS, RuleSet
from wsap_tossim.engine.setups import MODES

HOST = PluginHost.discovered()
GIVEN = {"llm": {"model": "scripted/reply", "model.reply": "wait"}}
SWITCHES = {f.name for f in fields(RuleSet)} - {"name", "version"}


def listed(options: Iterable[OptionDef]) -> set[str]:
    """The names among them that stand for one option, not for a family of them."""
    return {o.name for o in options if o.name.islower() and "." not in o.name}


ELSEWHERE = {"openenv"}
"""Games that need a server; their own tests start one."""


@pytest.mark.parametrize("name", [n for n in HOST.games.names() if n not in ELSEWHERE])
def test_a_game_declares_the_options_that_it_reads(name: str) -> None:
    spec = HOST.games.get(name)
    options = Options({})
    build(spec.factory, Context.create(0, name, config=options))
    switches = SWITCHES if "SWITCH" in {o.name for o in spec.options} else set()
    assert options.asked == listed(spec.options) | set(spec.preset) | switches
    assert not listed(spec.options) & switches


@pytest.mark.parametrize("name", [n for n in HOST.agents.names() if not HOST.agents.get(n).interactive])
def test_an_agent_declares_the_options_that_it_reads(name: str) -> None:
    spec = HOST.agents.get(name)
    options = Options(GIVEN.get(name, {}))
    build(spec.factory, Context.create(0, name, config=options, services=Services(models=ModelPool(HOST))))
    assert {asked for asked in options.asked if "." not in asked} == listed(spec.options)


PARTS = [
    *(("game", spec.name, {o.name: o for o in spec.options}) for spec in map(HOST.games.get, HOST.games.names())),
    *(("agent", spec.name, {o.name: o for o in spec.options}) for spec in map(HOST.agents.get, HOST.agents.names())),
    *(
        (registry.kind, name, part_options(registry.get(name)))
        for registry in (HOST.backends, HOST.memories, HOST.tools)
        for name in registry.names()
    ),
]
OF_A_MACHINE = {
    "game gymnasium": {"id": "program", "kwargs": "program"},
    "game openenv": {"url": "address"},
    "game textarena": {"id": "program"},
    "game pettingzoo": {"id": "program", "kwargs": "program"},
    "game openspiel": {"game": "program"},
    "game sandbox": {"template": "path"},
    "game morrowind": {"bridge": "address", "token": "secret", "address": "address", "log": "path"},
    "agent llm": {"prompts": "path"},
    "backend openai": {"base_url": "address", "api_key": "secret", "key_variable": "secret", "headers": "secret"},
    "backend inspect": {"args": "address", "base_url": "address"},
    "backend litellm": {"api_base": "address", "api_key": "secret", "extra": "address"},
    "backend ollama": {"host": "address"},
    "backend outlines": {"model": "path"},
    "backend storyteller": {"model": "path"},
    "memory fulltext": {"path": "path"},
    "tool mcp": {
        "command": "program", "url": "address", "cwd": "path", "env": "secret", "headers": "secret",
        "servers": "program",
    },
}  # fmt: skip
"""Every option of everything installed that names what belongs to a machine."""
SUSPECT = re.compile(
    r"\b(path|file|folder|director|program|command|url|uri|host|address|server|key|token\b|secret|password|variable)s?\b"
)
HARMLESS = {
    ("backend", "openai"): {"server", "first_token_timeout"},
}


def test_options_that_name_something_of_a_machine_say_so() -> None:
    named = {
        f"{kind} {name}": {o.name: o.names for o in options.values() if o.names not in ("", "model")}
        for kind, name, options in PARTS
    }
    assert {part: found for part, found in named.items() if found} == OF_A_MACHINE


@pytest.mark.parametrize(("kind", "name"), [part[:2] for part in PARTS])
def test_an_option_whose_words_tell_of_files_or_keys_names_them(kind: str, name: str) -> None:
    options = next(found for k, n, found in PARTS if (k, n) == (kind, name))
    silent = {
        o.name
        for o in options.values()
        if not o.names and o.name.islower() and SUSPECT.search(f"{o.name.replace('_', ' ')} {o.values}".lower())
    }
    assert silent <= HARMLESS.get((kind, name), set())


@pytest.mark.parametrize("name", [n for n in HOST.memories.names() if n != "none"])
def test_a_memory_declares_the_options_that_it_reads(name: str) -> None:
    spec = HOST.memories.get(name)
    with pytest.raises(ConfigError) as unknown:
        build(spec.factory, Context.create(0, name, config={"no_such_option": 1}))
    told = str(unknown.value).partition("It takes: ")[2].rstrip(".")
    assert {*filter(None, told.replace("none", "").split(", "))} == set(part_options(spec))


def test_the_values_that_are_listed_are_those_there_are() -> None:
    values = {option.name: option.values for option in HOST.games.get("tossim").options}
    assert values["mode"].split("|") == list(MODES)
    assert values["rules"].split("|") == list(RULE_SETS)
