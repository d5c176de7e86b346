"""The built-in tools: their protocol and behavior."""

from __future__ import annotations

import asyncio
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_check.memories import ToolTests
from wsap_core.errors import ConfigError, DuplicateNameError, PluginError
from wsap_core.host import PluginHost
from wsap_core.protocol import Action, ActionResult, HistoryEntry, Observation
from wsap_core.seams.context import Context
from wsap_core.seams.tool import AgentTool, ToolContext
from wsap_core.specs import ToolSpec
from wsap_llm.decision.toolbox import Toolbox, build_tool
from wsap_llm.memory.fifo import FifoMemory
from wsap_llm.tools.calculator import Calculator
from wsap_llm.tools.notes import Notes
from wsap_llm.tools.recall import Recall


class TestCalculator(ToolTests):
    @pytest.fixture
    def tool(self) -> AgentTool:
        return Calculator()


class TestNotes(ToolTests):
    @pytest.fixture
    def tool(self) -> AgentTool:
        return Notes(FifoMemory())

    @pytest.fixture
    def calls(self) -> Sequence[Mapping[str, Any]]:
        return [
            {"do": "write", "title": "door", "text": "the code is 4711"},
            {"do": "write", "title": "cave", "text": "dark"},
            {"do": "read", "title": "door"},
            {"do": "delete", "title": "cave"},
            {"do": "list"},
        ]


class TestRecall(ToolTests):
    @pytest.fixture
    def tool(self) -> AgentTool:
        memory = FifoMemory()
        memory.note("the ford lies north", world="echo", step=3)
        return Recall(memory)


def calculate(expression: str) -> str:
    return Calculator().run({"expression": expression})


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", "14"),
        ("(2 + 3) * 4", "20"),
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("2 ** -1", "0.5"),
        ("7 / 2", "3.5"),
        ("6 / 2", "3"),
        ("7 // 2 + 7 % 2", "4"),
        ("0.1 + 0.2", "0.3"),
        ("2 ^ 10", "1024"),
        ("3 × 4 ÷ 2 − 1", "5"),
        ("sqrt(16) + max(1, 5, 3)", "9"),
        ("round(2.567, 1)", "2.6"),
        ("log(8, 2)", "3"),
        ("1e3 + .5", "1000.5"),
        ("2 * pi", "6.28318530718"),
        ("10 ** 20", "100000000000000000000"),
        ("--3", "3"),
        ("(-1) ** 1000000000001", "-1"),
        ("2 ** -5000", "0"),
    ],
)
def test_arithmetic_comes_out_right(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1 / 0", "divides by zero"),
        ("0 ** -1", "divides by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("9 ** 99999999999999999999", "too large"),
        ("1e308 * 10", "too large"),
        ("exp(1000)", "too large"),
        ("sqrt(-1)", "not defined"),
        ("(-8) ** 0.5", "not defined"),
        ("1,000 + 1", "thousands separators"),
        ("2 +", "it ends too early"),
        ("(1", "')' is missing"),
        ("1 2", "'2' is not expected"),
        ("sqrt(1, 2)", "takes 1 numbers"),
        ("__import__('os')", "not arithmetic"),
        ("eval(1)", "not known"),
        ("a.b", "not arithmetic"),
        ("'x' * 3", "not arithmetic"),
        ("", "nothing"),
        ("(" * 200 + "1" + ")" * 200, "deep"),
        ("-" * 400 + "1", "deep"),
        ("1" * 400, "too large"),
        ("1+" * 400 + "1", "characters"),
    ],
)
def test_what_can_not_be_worked_out_is_told(expression: str, why: str) -> None:
    said = calculate(expression)
    assert said.startswith("That can't be worked out: ")
    assert why in said


_OPERATIONS: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


@st.composite
def _sums(draw: st.DrawFn, depth: int = 3) -> tuple[str, Fraction]:
    if depth == 0 or draw(st.booleans()):
        number = draw(st.integers(0, 999))
        return str(number), Fraction(number)
    sign = draw(st.sampled_from(sorted(_OPERATIONS)))
    left, right = draw(_sums(depth - 1)), draw(_sums(depth - 1))
    return f"({left[0]} {sign} {right[0]})", _OPERATIONS[sign](left[1], right[1])


@settings(deadline=None)
@given(_sums())
def test_whole_numbers_are_exact(case: tuple[str, Fraction]) -> None:
    assert Fraction(calculate(case[0])) == case[1]


@settings(deadline=None)
@given(st.text(alphabet="0123456789.e+-*/%^(), sqrtmaxlogpi", max_size=500))
def test_any_text_is_answered_with_a_number_of_bounded_size_or_a_reason(text: str) -> None:
    said = calculate(text)
    assert len(said) <= 310, "no number is larger than 2 ** 1024"
    assert said.startswith("That can't be worked out: ") or math.isfinite(float(said))


def test_a_note_can_be_read_changed_and_deleted() -> None:
    notes = Notes()
    assert notes.run({"do": "list"}) == "There are no notes."
    notes.run({"do": "write", "title": "door", "text": "code 1"})
    notes.run({"do": "write", "title": "door", "text": "code 2"})
    assert notes.run({"do": "read", "title": "door"}) == "code 2"
    assert notes.run({"do": "list"}) == "Notes, oldest first: door"
    notes.run({"do": "delete", "title": "door"})
    assert "no note 'door'" in notes.run({"do": "read", "title": "door"})


def test_notes_are_bounded() -> None:
    notes = Notes()
    for number in range(60):
        said = notes.run({"do": "write", "title": f"t{number}", "text": "x" * 5000})
    assert said == "There are 50 notes already; delete one first."
    assert len(notes.run({"do": "read", "title": "t0"})) == 1000


def test_a_written_note_comes_to_mind_with_its_world() -> None:
    memory = FifoMemory()
    Notes(memory, "crafter").run({"do": "write", "title": "door", "text": "code 4711"})
    assert Recall(memory).run({"query": "door"}) == "- (crafter) door: code 4711"


def test_recall_says_where_and_when_it_was() -> None:
    memory = FifoMemory()
    step = HistoryEntry(Observation(step=4), Action("look"), ActionResult(True, "a ford"), "crafter", 4)
    memory.remember(step)
    assert Recall(memory).run({"query": "ford"}) == "- (crafter, step 4) I tried look; it worked: a ford."


def test_a_search_of_no_memory_is_a_mistake_that_is_told_at_the_start() -> None:
    with pytest.raises(ConfigError, match="fulltext or fifo"):
        build_tool(PluginHost.discovered().tools.get("recall"), ToolContext())


def test_tools_are_made_from_their_specs_and_given_the_agents_memory() -> None:
    host, memory = PluginHost.discovered(), FifoMemory()
    context = ToolContext.of(Context.create(7, "tools"), memory=memory, world="crafter")
    tools = [build_tool(host.tools.get(name), context) for name in ("calculator", "notes", "recall")]
    assert all(isinstance(tool, AgentTool) for tool in tools)
    notes = tools[1]
    assert isinstance(notes, Notes)
    notes.run({"do": "write", "title": "a", "text": "b"})
    assert [cell.world for cell in memory.notes] == ["crafter"]


def test_a_factory_that_gives_no_tool_is_named() -> None:
    with pytest.raises(PluginError, match="'odd' returned a list"):
        build_tool(ToolSpec("odd", "Odd.", list), ToolContext())


class Source:
    """Returns tools when opened, and records its calls."""

    def __init__(self, *tools: AgentTool, fails: bool = False) -> None:
        self.tools = tools
        self.fails = fails
        self.said: list[str] = []

    async def open(self) -> Sequence[AgentTool]:
        self.said.append("open")
        if self.fails:
            raise PluginError("no server")
        return self.tools

    async def aclose(self) -> None:
        self.said.append("close")


def test_sources_are_opened_and_closed_with_the_toolbox() -> None:
    async def scene() -> None:
        source = Source(Notes())
        box = Toolbox([Calculator(), source])
        async with aclosing(box):
            tools = await box.open()
            assert [tool.definition.name for tool in tools] == ["calculator", "notes"]
            assert source.said == ["open"]
            assert await box.open() is tools, "opened again, it has the same tools"
            assert source.said == ["open"]
        assert source.said == ["open", "close"]

    asyncio.run(scene())


@pytest.mark.parametrize(("last", "error"), [(Source(fails=True), PluginError), (Source(Notes()), DuplicateNameError)])
def test_what_was_opened_is_closed_when_another_fails(last: Source, error: type[Exception]) -> None:
    async def scene() -> None:
        first = Source(Notes())
        with pytest.raises(error):
            await Toolbox([first, last]).open()
        assert first.said == last.said == ["open", "close"]

    asyncio.run(scene())
