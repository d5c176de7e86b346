"""What games and agents read from their options is what `wsap games NAME` and `wsap agents NAME` list."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import pytest

from wsap_core.factories import build
from wsap_core.host import PluginHost
from wsap_core.seams.context import Context
from wsap_core.seams.options import Options
from wsap_core.seams.services import Services
from wsap_core.specs import OptionDef
from wsap_llm.backends.pool import ModelPool
from wsap_tossim.engine.rules import RULE_SETS, RuleSet
from wsap_tossim.engine.setups import MODES

HOST = PluginHost.discovered()
GIVEN = {"llm": {"model": "scripted/reply", "model.reply": "wait"}}
SWITCHES = {f.name for f in fields(RuleSet)} - {"name", "version"}


def listed(options: Iterable[OptionDef]) -> set[str]:
    """The names among them that stand for one option, not for a family of them."""
    return {o.name for o in options if o.name.islower() and "." not in o.name}


@pytest.mark.parametrize("name", HOST.games.names())
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


def test_the_values_that_are_listed_are_those_there_are() -> None:
    values = {option.name: option.values for option in HOST.games.get("tossim").options}
    assert values["mode"].split("|") == list(MODES)
    assert values["rules"].split("|") == list(RULE_SETS)
