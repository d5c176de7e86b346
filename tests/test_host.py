"""The plugin host: where everything comes from, and what is wrong with it."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from wsap_core import (
    AdapterSpec,
    AgentSpec,
    BackendSpec,
    CommandSpec,
    Context,
    MemorySpec,
    PluginHost,
    ToolSpec,
    hookimpl,
    hookspecs,
)
from wsap_core.discovery import FoundPlugin
from wsap_core.errors import DuplicateNameError, PluginError, UnknownNameError
from wsap_core.factories import build, load
from wsap_core.host import BUILTIN

DOCUMENT = Path(__file__).parent.parent / "docs" / "reference" / "hooks.md"
SPECS: dict[str, tuple[Any, str]] = {
    "wsap_adapters": (AdapterSpec, "games"),
    "wsap_agents": (AgentSpec, "agents"),
    "wsap_backends": (BackendSpec, "backends"),
    "wsap_memories": (MemorySpec, "memories"),
    "wsap_tools": (ToolSpec, "tools"),
    "wsap_commands": (CommandSpec, "commands"),
}


def module(name: str = "some_plugin", **functions: Callable[[], Any]) -> ModuleType:
    """A plugin module with the given hook implementations."""
    made = ModuleType(name)
    for function_name, function in functions.items():
        function.__name__ = function_name
        setattr(made, function_name, hookimpl(function))
    return made


def offering(hook: str, *specs: Any) -> ModuleType:
    return module(**{hook: lambda: list(specs)})


def bold(name: str = "bold") -> AgentSpec:
    return AgentSpec(name, "Strides on.", "nowhere:Bold")


@pytest.fixture
def host() -> PluginHost:
    """A host without anything."""
    return PluginHost(environ={})


# --- the six hooks ------------------------------------------------------------------------


def test_there_are_six_hooks_and_each_has_its_kind_of_spec(host: PluginHost) -> None:
    assert all(getattr(host, registry).holds is kind for kind, registry in SPECS.values())
    declared = {name for name in vars(hookspecs) if name.startswith("wsap_")}
    assert declared == SPECS.keys()


@pytest.mark.parametrize("hook", SPECS)
def test_what_a_hook_offers_stands_on_its_registry_with_its_origin(hook: str, host: PluginHost) -> None:
    kind, registry_name = SPECS[hook]
    spec = kind("mine", "One line.", "nowhere:Mine")
    row = host.register(offering(hook, spec), "my-plugin", distribution="my-package", version="1.2")
    entry = getattr(host, registry_name).entry("mine")
    assert entry.spec is spec
    assert (entry.plugin, entry.distribution) == ("my-plugin", "my-package")
    assert (row.status, row.version, row.provides) == ("ok", "1.2", {registry_name: ["mine"]})


@pytest.mark.parametrize("hook", SPECS)
def test_a_hook_takes_no_argument_is_synchronous_and_shows_an_example(hook: str) -> None:
    function = getattr(hookspecs, hook)
    assert not inspect.signature(function).parameters
    assert not inspect.iscoroutinefunction(function)
    assert f"[{SPECS[hook][0].__name__}(" in (function.__doc__ or "")


@pytest.mark.parametrize("hook", SPECS)
def test_a_hook_is_documented_with_its_exact_name_and_signature(hook: str) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    signature = f"{hook}() -> Iterable[{SPECS[hook][0].__name__}]"
    assert re.search(rf"^\| `{re.escape(signature)}` \|", text, re.MULTILINE)
    assert str(inspect.signature(getattr(hookspecs, hook))) == f"() -> 'Iterable[{SPECS[hook][0].__name__}]'"


def test_no_other_hook_is_documented() -> None:
    assert set(re.findall(r"^\| `(wsap_\w+)", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)) == SPECS.keys()


def test_the_kernels_own_parts_come_through_the_same_hooks() -> None:
    host = PluginHost(environ={})
    row = host.load(BUILTIN)
    assert row.status == "ok", row.reasons
    assert host.agents.entry("random").distribution == "wsap-core"
    assert host.games.entry("echo").plugin == "core"


def test_listing_imports_no_game() -> None:
    before = set(sys.modules)
    host = PluginHost.discovered()
    assert host.games.names()
    assert {name for name in set(sys.modules) - before if name.split(".")[0] in ("crafter", "numpy")} == set()


# --- what is wrong stays where it is ------------------------------------------------------


def put(tmp_path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> FoundPlugin:
    name = f"plugin_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return FoundPlugin("faulty", name, "faulty-package", "0.1")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import nothing_of_that_name", "No module named 'nothing_of_that_name'"),
        ("def (", "SyntaxError"),
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("raise RuntimeError", "RuntimeError: no message"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("class Own(BaseException): pass\nraise Own('no luck')", "Own: no luck"),
    ],
)
def test_a_plugin_that_can_not_be_imported_becomes_a_row_with_its_reason(
    code: str, words: str, host: PluginHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = host.load(put(tmp_path, code, monkeypatch))
    assert row.status == "broken"
    assert words in row.reasons[0]
    assert host.rows == [row]
    assert host.register(offering("wsap_agents", bold()), "fine").status == "ok"
    assert host.agents.get("bold")


def raising() -> Any:
    raise OSError("no luck")


def failing_half_way() -> Any:
    yield bold("first")
    raise OSError("no luck")


@pytest.mark.parametrize("function", [raising, failing_half_way])
def test_a_hook_that_raises_breaks_its_plugin_and_no_other(function: Callable[[], Any], host: PluginHost) -> None:
    spec = CommandSpec("mine", "One line.", "nowhere:mine")
    row = host.register(module(wsap_agents=lambda: function(), wsap_commands=lambda: [spec]), "faulty")
    assert row.status == "broken"
    assert row.reasons == ["wsap_agents raised OSError: no luck"]
    assert host.agents.names() == ()
    assert host.commands.names() == ("mine",)


def test_a_hook_that_would_end_the_process_breaks_its_plugin_alone(host: PluginHost) -> None:
    row = host.register(module(wsap_agents=lambda: sys.exit(3)), "leaving")
    assert (row.status, row.reasons) == ("broken", ["wsap_agents raised SystemExit: 3"])


def test_an_interrupt_while_a_plugin_is_loaded_is_the_users(
    host: PluginHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        host.load(put(tmp_path, "raise KeyboardInterrupt", monkeypatch))

    def interrupted() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        host.register(module(wsap_agents=interrupted), "mine")


@pytest.mark.parametrize("given", [None, (), [], iter(())])
def test_a_hook_may_offer_nothing(given: Any, host: PluginHost) -> None:
    assert host.register(module(wsap_agents=lambda: given), "quiet").status == "ok"


@pytest.mark.parametrize("wrong", ["bold", None, AgentSpec, CommandSpec("x", "One line.", "a:b")])
def test_a_spec_of_the_wrong_kind_is_reported_and_the_others_are_kept(wrong: Any, host: PluginHost) -> None:
    row = host.register(offering("wsap_agents", wrong, bold()), "careless")
    assert row.status == "warning"
    assert row.reasons[0].endswith("; expected AgentSpec.")
    assert host.agents.names() == ("bold",)


@pytest.mark.parametrize("name", ["", "Bold", "bold agent", "-bold", "bold/x", "bold\n", "b\x1b[2J", "größe", 7, None])
def test_a_name_that_can_not_be_typed_is_reported(name: Any, host: PluginHost) -> None:
    row = host.register(offering("wsap_agents", bold(name)), "careless")
    assert row.status == "warning"
    assert "returned the invalid name" in row.reasons[0]
    assert row.reasons[0].isprintable()
    assert host.agents.all() == []


def test_a_misspelt_hook_is_reported_with_the_right_spelling(host: PluginHost) -> None:
    row = host.register(module(wsap_agent=lambda: [bold()]), "hasty")
    assert row.status == "warning"
    assert row.reasons == ["There is no hook called 'wsap_agent'. Did you mean 'wsap_agents'?"]


def test_a_hook_without_its_mark_is_reported(host: PluginHost) -> None:
    plugin = ModuleType("forgetful")
    plugin.wsap_agents = lambda: [bold()]  # type: ignore[attr-defined]
    row = host.register(plugin, "forgetful")
    assert row.reasons == ["wsap_agents is not marked with @hookimpl, so it is not called."]
    assert host.agents.names() == ()


def test_a_hook_that_wants_arguments_breaks_its_plugin_alone(host: PluginHost) -> None:
    plugin = ModuleType("demanding")

    @hookimpl
    def wsap_agents(config: Any) -> Any:
        return [bold()]

    plugin.wsap_agents = wsap_agents  # type: ignore[attr-defined]
    row = host.register(plugin, "demanding")
    assert row.status == "broken"
    assert host.register(offering("wsap_agents", bold()), "fine").status == "ok"
    assert host.agents.entry("bold").plugin == "fine"


def test_an_async_hook_breaks_its_plugin(host: PluginHost) -> None:
    plugin = ModuleType("hurried")

    @hookimpl
    async def wsap_agents() -> Any:
        return [bold()]

    plugin.wsap_agents = wsap_agents  # type: ignore[attr-defined]
    row = host.register(plugin, "hurried")
    assert row.status == "broken"
    assert row.reasons == ["wsap_agents is async; hooks are plain functions."]


# --- names --------------------------------------------------------------------------------


def test_a_name_that_two_plugins_claim_is_an_error_that_names_both(host: PluginHost) -> None:
    one = host.register(offering("wsap_agents", bold(), bold("meek")), "one", distribution="package-one")
    two = host.register(offering("wsap_agents", bold()), "two", distribution="package-two")
    host.note_duplicates()
    with pytest.raises(DuplicateNameError) as caught:
        host.agents.get("bold")
    assert "'one' (package-one) and 'two' (package-two)" in str(caught.value)
    assert "WSAP_DISABLE_PLUGINS=two" in str(caught.value)
    assert host.agents.names() == ("meek",)
    assert [row.status for row in (one, two)] == ["warning", "warning"]
    assert one.reasons == two.reasons
    assert "'two' (package-two)" in one.reasons[0]


def test_blocking_one_of_them_by_name_makes_the_other_usable() -> None:
    host = PluginHost(environ={"WSAP_DISABLE_PLUGINS": " two , unheard-of"})
    host.register(offering("wsap_agents", bold()), "one")
    row = host.register(offering("wsap_agents", bold()), "two")
    host.note_duplicates()
    assert row.status == "disabled"
    assert host.agents.entry("bold").plugin == "one"


def test_a_blocked_plugin_is_not_even_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = PluginHost(environ={"WSAP_DISABLE_PLUGINS": "faulty"})
    found = put(tmp_path, "raise RuntimeError", monkeypatch)
    row = host.load(found)
    assert row.status == "disabled"
    assert found.module not in sys.modules


def test_one_plugin_naming_a_thing_twice_is_told_so(host: PluginHost) -> None:
    row = host.register(offering("wsap_agents", bold(), bold()), "one")
    host.note_duplicates()
    assert row.status == "warning"
    with pytest.raises(DuplicateNameError):
        host.agents.get("bold")


def test_nobody_takes_a_name_of_the_kernels(host: PluginHost) -> None:
    host.load(BUILTIN)
    row = host.register(offering("wsap_agents", bold("random")), "greedy")
    host.note_duplicates()
    assert host.agents.entry("random").plugin == "core"
    assert row.reasons == ["The agent 'random' is built in; a plugin can't replace it."]


def test_one_name_may_be_a_game_and_an_agent(host: PluginHost) -> None:
    spec = AdapterSpec("bold", "One line.", "nowhere:Bold")
    host.register(module(wsap_agents=lambda: [bold()], wsap_adapters=lambda: [spec]), "one")
    host.note_duplicates()
    assert host.games.get("bold") is spec
    assert host.agents.get("bold") == bold()


@pytest.mark.parametrize(("typed", "meant"), [("bolt", "bold"), ("blod", "bold"), ("BOLD", None), ("zzz", None)])
def test_an_unknown_name_gets_a_suggestion_where_there_is_one(typed: str, meant: str | None, host: PluginHost) -> None:
    host.register(offering("wsap_agents", bold()), "one")
    with pytest.raises(UnknownNameError) as caught:
        host.agents.get(typed)
    expected = f"Did you mean {meant!r}?" if meant else "`wsap agents` lists what is installed."
    assert str(caught.value) == f"There is no agent called {typed!r}. {expected}"


def test_shelves_are_in_the_order_of_names_whatever_the_order_of_loading(host: PluginHost) -> None:
    host.register(offering("wsap_agents", bold("zeal"), bold("calm")), "two")
    host.register(offering("wsap_agents", bold("calm"), bold("mild")), "one")
    assert [(e.spec.name, e.plugin) for e in host.agents.all()] == [
        ("calm", "one"), ("calm", "two"), ("mild", "one"), ("zeal", "two"),
    ]  # fmt: skip


# --- factories ----------------------------------------------------------------------------


class Plain:
    """Takes nothing."""


class Given:
    """Takes the context."""

    def __init__(self, context: Context) -> None:
        self.context = context


class Optional:
    """Takes the context if there is one, by another name than it needs to have."""

    def __init__(self, size: int = 3) -> None:
        self.size = size


def failing(context: Context) -> object:
    raise ValueError("no luck")


def test_a_factory_is_given_the_context_if_it_asks_for_it() -> None:
    context = Context.create(7)
    assert isinstance(build(Plain, context), Plain)
    assert build(Given, context).context is context
    assert build(Optional, context).size == 3
    assert build(lambda context=None: context, context) is context


def test_a_factory_that_raises_is_a_plugin_error_with_its_cause() -> None:
    with pytest.raises(PluginError, match="failing could not be created: ValueError: no luck") as caught:
        build(failing, Context())
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_factory_that_would_end_the_process_is_a_plugin_error() -> None:
    with pytest.raises(PluginError, match="could not be created: SystemExit: 3"):
        build(lambda: sys.exit(3), Context())


@pytest.mark.parametrize("reference", ["nowhere_at_all:x", "wsap_core.version:nothing", "wsap_core.version", "", ":x"])
def test_a_reference_that_leads_nowhere_is_a_plugin_error(reference: str) -> None:
    with pytest.raises(PluginError, match="can't be loaded"):
        load(reference)


def test_a_module_that_fails_while_a_reference_is_followed_is_a_plugin_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = put(tmp_path, "1 / 0", monkeypatch)
    with pytest.raises(PluginError, match="can't be loaded: ZeroDivisionError"):
        load(f"{found.module}:Game")


# --- what the wire is told ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timing": "turns"}, "timing is 'turns'; it must be one of free, alternating, simultaneous, phased."),
        ({"deadline": -3.0}, "deadline is -3; it must be a number of seconds above 0, or None."),
        ({"deadline": float("nan")}, "deadline is nan; it must be a number of seconds above 0, or None."),
        (
            {"options": ("rounds",)},
            "options is ('rounds',); it must be tuple[OptionDef, ...].",
        ),
        ({"seats": (5, 2)}, "seats is (5, 2); it must be (minimum, maximum), from 1, or 0 for a world that lives."),
        ({"seats": (0, 0)}, "seats is (0, 0); it must be (minimum, maximum), from 1, or 0 for a world that lives."),
        ({"seat_names": ("ann", " ")}, "seat_names has an empty name."),
        ({"max_worlds": 0}, "max_worlds is 0; it must be at least 1."),
        ({"summary": None}, "summary is None; it must be str."),
        ({"persistent": 1}, "persistent is 1; it must be bool."),
        ({"skills": {"combat": "hit"}}, "skills is {'combat': 'hit'}; it must be Mapping[str, tuple[str, ...]] | None"),
        ({"protocol_version": "9.0"}, "It uses version 9.0 of the protocol"),
    ],
)
def test_a_game_whose_spec_has_an_impossible_value_is_reported_with_its_plugin_and_not_listed(
    given: dict[str, Any], words: str, host: PluginHost
) -> None:
    wrong = replace(AdapterSpec("odd", "One line.", "nowhere:Odd"), **given)
    row = host.register(offering("wsap_adapters", wrong, AdapterSpec("even", "One line.", "nowhere:Even")), "mine")
    assert row.status == "warning"
    assert row.reasons[0].startswith(f"The game 'odd' can't be used: {words}")
    assert host.games.names() == ("even",)


def test_a_world_that_lives_may_have_no_seat_and_new_abilities_are_kept(host: PluginHost) -> None:
    spec = AdapterSpec("still", "One line.", "nowhere:Still", abilities=("lives", "flies"), seats=(0, 0))  # type: ignore[arg-type]
    assert host.register(offering("wsap_adapters", spec), "mine").status == "ok"


def test_wire_types_and_default_agents_that_do_not_exist_are_reported(host: PluginHost) -> None:
    spec = AdapterSpec("odd", "One line.", "nowhere:Odd", wire_types=("nowhere:X",), default_agent="nobody")
    row = host.register(offering("wsap_adapters", spec), "mine")
    host.note_missing_agents()
    assert row.status == "warning"
    assert row.reasons[0] == "wire_types of the game 'odd' names 'nowhere:X': there is no such module."
    assert row.reasons[1].startswith("The game 'odd': default_agent is 'nobody'. ")
