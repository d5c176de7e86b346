"""Tools of a world: a model looks something up within a turn and continues the same thought."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from wsap_core.errors import SnapshotError
from wsap_core.protocol import (
    TOOL,
    Action,
    ActionAvailability,
    ActionDef,
    ActionResult,
    ActionSpace,
    AgentMessage,
    Event,
    Goal,
    Observation,
    ParamDef,
    Tool,
)
from wsap_core.seams.model import Abilities, ImagePart, JsonConstraint, Message, OnText, RegexConstraint, Reply, Request
from wsap_core.seams.model_errors import BadRequestError
from wsap_llm.agent import LLMAgent, LLMOptions
from wsap_llm.decision.styles import JsonStyle, Style, TagStyle
from wsap_llm.decision.turn import PausedTurn
from wsap_llm.scripted import Answer, ScriptedBackend

CHECK = ActionDef("check_will", "A dead player's will", [ParamDef("player", "a name")], category=TOOL)
NOTE = ActionDef("notebook", "Write a note", [ParamDef("text", "the note")], category=TOOL)
GRAVEYARD = ActionDef("graveyard", "Who is dead", category=TOOL)
SPEAK = ActionDef("speak", "Say something", [ParamDef("text", "what to say")])
WAIT = ActionDef("wait", "Stay silent")
SPACE = ActionSpace([GRAVEYARD, CHECK, NOTE, SPEAK, WAIT])

PREFILL, RESUME, TURNS = Abilities(prefill=True), Abilities(prefill=True, resume=True), Abilities()


class Ask:
    """An agent's own tool."""

    definition = Tool("add", "Adds", [ParamDef("numbers", "such as 2+3")])

    def __init__(self) -> None:
        self.asked: list[str] = []

    def run(self, parameters: Mapping[str, Any]) -> str:
        self.asked.append(parameters["numbers"])
        return "five"


def agent_of(
    answers: list[Answer], style: Style | None, abilities: Abilities, tools: tuple[Any, ...] = (), **options: Any
) -> tuple[LLMAgent, ScriptedBackend]:
    backend = ScriptedBackend(answers, abilities=abilities)
    return LLMAgent(backend, LLMOptions("Town", plan=False, **options), style=style, tools=tools), backend


def at(step: int, *closed: str, **more: Any) -> Observation:
    """An observation at which everything except `closed` is possible."""
    barred = [ActionAvailability(a.name, a.name not in closed, "not now") for a in SPACE.actions]
    return Observation(step=step, available_actions=barred, **more)


def run(agent: LLMAgent, play: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        await agent.initialize("A town of hidden roles.", SPACE)
        await play()

    asyncio.run(whole())


def info(agent: LLMAgent) -> tuple[int, str | None, bool, bool]:
    told = agent.last_decision
    assert told is not None
    return told.usage.calls, told.resumption, told.repaired, told.forced


def roles(request: Request) -> list[str]:
    return [message.role for message in request.messages]


def said(request: Request, role: str = "user") -> str:
    return [m for m in request.messages if m.role == role][-1].text()


# --- the seed's example ------------------------------------------------------------------------------

THOUGHT = (
    "Player 4 is claiming to be the Doctor and says they healed Player 1. This contradicts the fact that Player 3 was "
    "revealed as Doctor. Player 4 claims Player 3's will is fake. I need to see that will to be sure.\n"
)
WILL = 'Player 3\'s Will: "I am the Doctor. N1 heal Player 5. N2 heal Player 1."'
GOES_ON = (
    "The will confirms Player 3 healed Player 1 on Night 2, which is when the attack happened. Player 4 is lying. This "
    "makes them extremely suspicious. They could be the Serial Killer or a member of the Mafia trying to sow discord. "
    "I need to state this clearly to the town.\n"
)
SPEECH = (
    "Player 4 is lying. I have checked Player 3's will, and it confirms they healed Player 1 on Night 2. Player 4's "
    "claim is a direct contradiction. I strongly recommend we vote to put Player 4 on trial."
)


def test_the_investigator_on_day_3_looks_the_will_up_in_the_world_and_goes_on_thinking() -> None:
    legs: list[Answer] = [
        f"{THOUGHT}<check_will>Player 3</check_will>\nmade up",
        f"{GOES_ON}</thinking>\n<speak>{SPEECH}</speak>",
    ]
    agent, backend = agent_of(legs, TagStyle(), PREFILL)

    async def play() -> None:
        first = await agent.decide(at(7))
        assert first == Action("check_will", {"player": "Player 3"}, THOUGHT.strip())
        assert info(agent) == (1, None, False, False)
        await agent.reflect(ActionResult(True, WILL, observation=at(7)))
        second = await agent.decide(at(7))
        assert second == Action("speak", {"text": SPEECH}, GOES_ON.strip())
        assert info(agent) == (1, "prefill", False, False)

    run(agent, play)
    one, two = backend.requests
    assert two.messages == one.messages, "the prompt is the same: the turn goes on"
    assert one.prefill == "<thinking>\n"
    assert two.prefill == (
        f"<thinking>\n{THOUGHT}<check_will>Player 3</check_will>\n<observation>{WILL}</observation>\n"
    )
    whole = two.prefill + f"{GOES_ON}</thinking>\n<speak>{SPEECH}</speak>"
    assert whole.count("<thinking>") == whole.count("</thinking>") == 1
    assert (one.purpose, two.purpose) == ("decide", "tool")


def test_the_window_keeps_one_turn_for_the_whole_thought() -> None:
    legs: list[Answer] = [
        "a <graveyard/>",
        "b <check_will>P</check_will>",
        "c</thinking><wait/>",
        "d</thinking><wait/>",
    ]
    agent, backend = agent_of(legs, TagStyle(), PREFILL)

    async def play() -> None:
        for answer in ("Player 3", WILL, ""):
            await agent.decide(at(1))
            await agent.reflect(ActionResult(True, answer))
        await agent.decide(at(2))

    run(agent, play)
    assert roles(backend.requests[3]) == ["system", "user", "assistant", "user"]
    assert said(backend.requests[3], "assistant") == "<wait/>"


@pytest.mark.parametrize(("abilities", "way"), [(PREFILL, "prefill"), (RESUME, "resume"), (TURNS, "turns")])
def test_own_tools_and_those_of_the_world_are_used_in_one_thought(abilities: Abilities, way: str) -> None:
    opening = "" if abilities.prefill else "<thinking>\n"
    legs: list[Answer] = [
        f"{opening}one <add>2+3</add>",
        "two <graveyard/>",
        "three <add>2+3</add>",
        "four</thinking><wait/>",
    ]
    tool = Ask()
    agent, backend = agent_of(legs, TagStyle(), abilities, (tool,))

    async def play() -> None:
        assert (await agent.decide(at(1))).name == "graveyard"
        assert info(agent) == (2, way, False, False)
        await agent.reflect(ActionResult(True, "Player 3 <wait/> lies here"))
        assert (await agent.decide(at(1))).name == "wait"
        assert info(agent) == (2, way, False, False)

    run(agent, play)
    assert tool.asked == ["2+3"], "the same call again is answered from the first time"
    last = backend.requests[3]
    if way == "turns":
        assert roles(last) == ["system", "user", *["assistant", "user"] * 3]
        assert said(backend.requests[2]) == "<observation>Player 3 ‹wait/› lies here</observation>\nGo on thinking."
    else:
        assert roles(last) == ["system", "user"]
        assert last.prefill == (
            "<thinking>\none <add>2+3</add>\n<observation>five</observation>\n"
            "two <graveyard/>\n<observation>Player 3 ‹wait/› lies here</observation>\n"
            "three <add>2+3</add>\n<observation>(The last call of this turn: now act.) five</observation>\n"
        )


def test_a_tool_in_json_is_an_action_whose_result_is_told_in_the_same_turn() -> None:
    replies: list[Answer] = [
        '{"action": "check_will", "params": {"player": "Player 3"}, "reasoning": "verify"}',
        '{"action": "speak", "params": {"text": "liar"}, "reasoning": "sure"}',
        '{"action": "wait", "params": {}, "reasoning": ""}',
    ]
    agent, backend = agent_of(replies, JsonStyle(), TURNS)

    async def play() -> None:
        assert await agent.decide(at(1)) == Action("check_will", {"player": "Player 3"}, "verify")
        assert info(agent) == (1, None, False, False)
        await agent.reflect(ActionResult(True, WILL))
        assert await agent.decide(at(1)) == Action("speak", {"text": "liar"}, "sure")
        assert info(agent) == (1, "turns", False, False)
        await agent.reflect(ActionResult(True, "Said."))
        await agent.decide(at(2))

    run(agent, play)
    one, two, three = backend.requests
    assert two.messages[: len(one.messages)] == one.messages
    assert roles(two) == ["system", "user", "assistant", "user"]
    assert json.loads(said(two, "assistant"))["action"] == "check_will"
    assert said(two).startswith(f"Result of check_will: {WILL}\n\nWhat action do you take?")
    assert roles(three) == ["system", "user", "assistant", "user"], "one turn for the whole thought"
    assert json.loads(said(three, "assistant"))["action"] == "speak"


def test_the_system_message_tells_of_the_worlds_tools_apart_and_has_a_real_one_for_an_example() -> None:
    agent, _ = agent_of([], TagStyle(), PREFILL)
    asyncio.run(agent.initialize("A town.", SPACE))
    actions, tools = agent.system_prompt.split("To look things up before you act:\n")
    assert "- speak" in actions
    assert "check_will" not in actions
    assert tools.startswith("- graveyard: Who is dead\n- check_will(player: a name): A dead player's will\n- notebook")
    assert "writing its tag, for example <graveyard/>;" in tools
    assert "action tag, such as <speak>...</speak>." in tools
    agent, _ = agent_of([], JsonStyle(), PREFILL)
    asyncio.run(agent.initialize("A town.", SPACE))
    assert agent.system_prompt.endswith("respond with that action: you are told and asked again.")


# --- what is legal, and how often -----------------------------------------------------------------------


def test_each_leg_is_bound_to_what_is_legal_then() -> None:
    legs: list[Answer] = ["a <graveyard/>", "b</thinking><wait/>"]
    agent, backend = agent_of(legs, TagStyle(), Abilities(prefill=True, regex=True))

    async def play() -> None:
        await agent.decide(at(1))
        await agent.reflect(ActionResult(True, "nobody"))
        await agent.decide(at(1, "speak", "graveyard", "check_will"))

    run(agent, play)
    one, two = (r.constraint for r in backend.requests)
    assert isinstance(one, RegexConstraint)
    assert isinstance(two, RegexConstraint)
    for text, before, after in (
        ("x<check_will>Player 3</check_will>", True, False),
        ("x<graveyard/>", True, False),
        ("x<notebook>n</notebook>", True, True),
        ("x</thinking><speak>hi</speak>", True, False),
        ("x</thinking><wait/>", True, True),
        ("x</thinking><graveyard/>", False, False),
        ("x<wait/>", False, False),
    ):
        assert bool(re.fullmatch(one.pattern, text)) is before, text
        assert bool(re.fullmatch(two.pattern, text)) is after, text


def test_when_the_calls_are_used_up_only_what_ends_the_turn_is_offered_in_tags() -> None:
    legs: list[Answer] = ["a <add>2+3</add>", "b <graveyard/>", "c</thinking><wait/>"]
    agent, backend = agent_of(legs, TagStyle(), Abilities(prefill=True, regex=True), (Ask(),), tool_calls=2)

    async def play() -> None:
        await agent.decide(at(1))
        await agent.reflect(ActionResult(True, "nobody"))
        assert (await agent.decide(at(1))).name == "wait"

    run(agent, play)
    last = backend.requests[2].constraint
    assert isinstance(last, RegexConstraint)
    assert re.fullmatch(last.pattern, "c</thinking><wait/>")
    assert not re.search("graveyard|check_will|notebook|add", last.pattern)


def names_in(constraint: object) -> set[str]:
    """Return all actions and tools that a schema allows."""
    assert isinstance(constraint, JsonConstraint)
    found: set[str] = set()
    for branch in constraint.schema.get("anyOf", [constraint.schema]):
        for kind in ("action", "tool"):
            name = branch["properties"].get(kind, {})
            found.update([name["const"]] if "const" in name else name.get("enum", ()))
    return found


def test_when_the_calls_are_used_up_only_what_ends_the_turn_is_offered_in_json() -> None:
    replies: list[Answer] = [
        '{"tool": "add", "params": {"numbers": "2+3"}}',
        '{"action": "graveyard", "params": {}, "reasoning": ""}',
        '{"action": "wait", "params": {}, "reasoning": ""}',
    ]
    agent, backend = agent_of(replies, JsonStyle(), Abilities(json_schema=True), (Ask(),), tool_calls=2)

    async def play() -> None:
        assert (await agent.decide(at(1, "notebook"))).name == "graveyard"
        await agent.reflect(ActionResult(True, "nobody"))
        assert (await agent.decide(at(1))).name == "wait"

    run(agent, play)
    asked = [names_in(request.constraint) for request in backend.requests]
    assert asked[0] == asked[1] == {"graveyard", "check_will", "speak", "wait", "add"}
    assert asked[2] == {"speak", "wait"}


@pytest.mark.parametrize("style", [TagStyle(), JsonStyle()])
def test_the_same_call_twice_in_a_row_is_made_once_and_can_not_go_on_for_ever(style: Style) -> None:
    tags = isinstance(style, TagStyle)
    again = "a <graveyard/>" if tags else '{"action": "graveyard", "params": {}}'
    end = "b</thinking><wait/>" if tags else '{"action": "wait", "params": {}}'
    # Three calls in a turn: one is executed, two are answered from it, the fourth is refused.
    agent, backend = agent_of([again, again, again, again, end], style, PREFILL)

    async def play() -> None:
        assert (await agent.decide(at(1))).name == "graveyard"
        await agent.reflect(ActionResult(True, "Player 3"))
        assert (await agent.decide(at(1))).name == "wait"
        assert info(agent)[2:] == (True, False)

    run(agent, play)
    assert len(backend.requests) == 5


def test_a_call_is_made_again_after_another_that_may_have_changed_what_it_tells() -> None:
    legs: list[Answer] = ["a <graveyard/>", "b <notebook>x</notebook>", "c <graveyard/>", "d</thinking><wait/>"]
    agent, _ = agent_of(legs, TagStyle(), PREFILL)
    done: list[str] = []

    async def play() -> None:
        for _ in legs:
            done.append((await agent.decide(at(1))).name)
            await agent.reflect(ActionResult(True, "so"))

    run(agent, play)
    assert done == ["graveyard", "notebook", "graveyard", "wait"]


def test_a_result_that_says_nothing_and_a_refusal_are_told() -> None:
    legs: list[Answer] = ["a <graveyard/>", "b <check_will>me</check_will>", "c</thinking><wait/>"]
    agent, backend = agent_of(legs, TagStyle(), PREFILL)

    async def play() -> None:
        await agent.decide(at(1))
        await agent.reflect(ActionResult(True, ""))
        await agent.decide(at(1))
        await agent.reflect(ActionResult(False, "me is not dead"))
        await agent.decide(at(1))

    run(agent, play)
    assert "<graveyard/>\n<observation>(no result)</observation>" in backend.requests[2].prefill
    assert backend.requests[2].prefill.endswith("<observation>me is not dead</observation>\n")


@pytest.mark.parametrize("style", [TagStyle(), JsonStyle()])
@pytest.mark.parametrize("fallback", [None, "graveyard"])
def test_the_fallback_is_never_a_tool(style: Style, fallback: str | None) -> None:
    agent, _ = agent_of(["?", "?"], style, PREFILL, fallback=fallback)

    async def play() -> None:
        assert (await agent.decide(at(1, "wait"))).name == "speak"
        assert info(agent)[3]

    run(agent, play)


@pytest.mark.parametrize("style", [TagStyle(), JsonStyle()])
def test_where_nothing_but_tools_is_legal_one_of_them_is_an_action_like_any_other(style: Style) -> None:
    final = "a</thinking><graveyard/>" if isinstance(style, TagStyle) else '{"action": "graveyard", "params": {}}'
    agent, backend = agent_of([final, final], style, PREFILL)

    async def play() -> None:
        for _ in range(2):
            assert (await agent.decide(at(1, "wait", "speak"))).name == "graveyard"
            await agent.reflect(ActionResult(True, "Player 3"))

    run(agent, play)
    assert roles(backend.requests[1]) == ["system", "user", "assistant", "user"], "a turn of its own each time"


def test_a_tool_is_for_one_step_whatever_number_of_steps_is_allowed() -> None:
    agent, _ = agent_of(
        ['{"action": "graveyard", "params": {}, "times": 5}', '{"action": "wait", "params": {}}'],
        JsonStyle(steps=8),
        TURNS,
    )

    async def play() -> None:
        assert (await agent.decide(at(1))).name == "graveyard"
        await agent.reflect(ActionResult(True, "Player 3"))
        assert (await agent.decide(at(1))).name == "wait"

    run(agent, play)


# --- turns that end differently --------------------------------------------------------------------------


def test_when_the_game_has_moved_on_a_new_turn_begins_and_nothing_that_was_said_is_lost() -> None:
    legs: list[Answer] = ["a <graveyard/>", "b</thinking><wait/>"]
    agent, backend = agent_of(legs, TagStyle(), PREFILL)
    hello = AgentMessage("Player 5", content="hello all")

    async def play() -> None:
        await agent.decide(at(1, messages=[hello], recent_events=[Event("A bell rings")]))
        await agent.reflect(ActionResult(True, "Player 3"))
        await agent.decide(at(2, recent_events=[Event("A bell rings")]))
        assert info(agent) == (1, None, False, False)

    run(agent, play)
    second = backend.requests[1]
    assert second.prefill == "<thinking>\n"
    assert roles(second) == ["system", "user"], "the open thought is nowhere"
    assert "Step 2" in said(second)
    assert "hello all" in said(second)
    assert said(second).count("A bell rings") == 1


def test_what_is_said_while_a_thought_is_open_is_told_in_the_next_turn() -> None:
    legs: list[Answer] = ["a <graveyard/>", "b</thinking><wait/>", "c</thinking><wait/>"]
    agent, backend = agent_of(legs, TagStyle(), PREFILL)
    early, late = (AgentMessage("Player 5", content=text) for text in ("hello all", "one more thing"))

    async def play() -> None:
        await agent.decide(at(1, messages=[early]))
        await agent.reflect(ActionResult(True, "Player 3"))
        await agent.decide(at(1, messages=[early, late]))
        await agent.reflect(ActionResult(True))
        await agent.decide(at(2))

    run(agent, play)
    assert "one more thing" not in said(backend.requests[1])
    assert "one more thing" in said(backend.requests[2])
    assert "hello all" not in said(backend.requests[2])


@pytest.mark.parametrize("how", ["done", "plan", "initialize"])
def test_an_open_turn_ends_with_its_episode(how: str) -> None:
    agent, backend = agent_of(["a <graveyard/>", "b</thinking><wait/>"], TagStyle(), PREFILL)

    async def play() -> None:
        await agent.decide(at(0))
        await agent.reflect(ActionResult(True, "Player 3", done=how == "done"))
        if how == "plan":
            await agent.plan([Goal("g", "win")])
        if how == "initialize":
            await agent.initialize("A town.", SPACE)
        await agent.decide(at(0))

    run(agent, play)
    assert backend.requests[1].prefill == "<thinking>\n"


def test_a_deadline_missed_in_mid_thought_ends_the_turn() -> None:
    class Slow(ScriptedBackend):
        def __init__(self, answers: list[Answer]) -> None:
            super().__init__(answers, abilities=PREFILL)
            self.asked = asyncio.Event()

        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            if len(self.requests) == 1:
                self.requests.append(request)
                self.asked.set()
                await asyncio.Event().wait()
            return await super().complete(request)

    backend = Slow(["a <graveyard/>", "b</thinking><wait/>"])
    agent = LLMAgent(backend, LLMOptions("Town", plan=False), style=TagStyle())

    async def play() -> None:
        await agent.decide(at(1))
        await agent.reflect(ActionResult(True, "Player 3"))
        thinking = asyncio.create_task(agent.decide(at(1)))
        await backend.asked.wait()
        thinking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await thinking
        assert info(agent)[3]
        await agent.reflect(ActionResult(True, "You waited."))
        # The world is still at the same step, but something else was done in the agent's place.
        await agent.decide(at(1))

    run(agent, play)
    assert backend.requests[2].prefill == "<thinking>\n"
    assert "You waited" not in backend.requests[2].prefill


def test_a_model_that_fails_in_mid_thought_can_be_asked_again() -> None:
    legs: list[Answer] = ["a <graveyard/>", BadRequestError("no"), "b</thinking><wait/>"]
    agent, backend = agent_of(legs, TagStyle(), PREFILL)

    async def play() -> None:
        await agent.decide(at(1))
        await agent.reflect(ActionResult(True, "Player 3"))
        with pytest.raises(BadRequestError):
            await agent.decide(at(1))
        assert (await agent.decide(at(1))).name == "wait"

    run(agent, play)
    assert backend.requests[2].prefill == backend.requests[1].prefill
    assert "Player 3" in backend.requests[2].prefill


# --- snapshots -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("style", "abilities"),
    [(TagStyle, PREFILL), (TagStyle, TURNS), (JsonStyle, TURNS)],
    ids=["prefill", "turns", "json"],
)
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_an_open_turn_survives_being_saved(style: Callable[[], Style], abilities: Abilities, cut: int) -> None:
    if style is JsonStyle:
        legs: list[Answer] = [
            '{"tool": "add", "params": {"numbers": "2+3"}}',
            '{"action": "graveyard", "params": {}}',
            '{"action": "check_will", "params": {"player": "Player 3"}}',
            '{"tool": "add", "params": {"numbers": "2+3"}}',
            '{"action": "wait", "params": {}}',
        ]
        options = {"tool_calls": 5}
    else:
        opening = "" if abilities.prefill else "<thinking>"
        legs = [
            f"{opening}a <add>2+3</add>",
            "b <graveyard/>",
            "c <check_will>P</check_will>",
            "d</thinking><wait/>",
            "",
        ]
        options = {}
    legs.append("e</thinking><wait/>" if style is TagStyle else '{"action": "wait", "params": {}}')
    legs = [leg for leg in legs if leg]

    def moments() -> list[Observation]:
        late = AgentMessage("Player 5", content="one more thing")
        return [at(1), at(1, messages=[late]), at(1, "speak"), at(2)]

    def whole(saved_after: int | None) -> tuple[list[Request], list[Action]]:
        first, backend = agent_of(list(legs), style(), abilities, (Ask(),), **options)
        made: list[Action] = []
        requests = backend.requests

        async def play() -> None:
            agent = first
            await agent.initialize("A town.", SPACE)
            for number, moment in enumerate(moments()):
                if number == saved_after:
                    other = LLMAgent(backend, agent.options, style=style(), tools=(Ask(),))
                    await other.initialize("A town.", SPACE)
                    other.restore(agent.snapshot())
                    agent = other
                made.append(await agent.decide(moment))
                await agent.reflect(ActionResult(True, f"result {number}"))

        asyncio.run(play())
        return requests, made

    plain, resumed = whole(None), whole(cut)
    assert resumed == plain
    assert [action.name for action in plain[1]] == ["graveyard", "check_will", "wait", "wait"]
    assert "one more thing" in said(plain[0][-1])


def test_a_damaged_snapshot_of_an_open_turn_is_told() -> None:
    agent, _ = agent_of(["a <graveyard/>"], TagStyle(), PREFILL)

    async def play() -> None:
        await agent.decide(at(1))
        await agent.reflect(ActionResult(True, "Player 3"))

    run(agent, play)
    saved = json.loads(agent.snapshot())
    damages: list[dict[str, Any]] = [
        {"thought": {}},
        {"step": "x"},
        {"told": {"events": [{"no": 1}], "messages": []}},
    ]
    for damage in damages:
        broken = {**saved, "open": {**saved["open"], **damage}}
        with pytest.raises(SnapshotError, match="damaged"):
            agent.restore(json.dumps(broken).encode())


def test_a_paused_turn_is_read_from_the_form_that_snapshots_have_had_since_the_first() -> None:
    written: dict[str, Any] = {
        "shown": "You see a door.",
        "step": 3,
        "picture": ["aGk=", "image/png", "a door"],
        "thought": {
            "name": "look_up",
            "key": 'look_up {"what":"door"}',
            "messages": [["assistant", "Looking."], ["user", "Result of add: 5"]],
            "so_far": "<thinking>\n",
            "calls": 2,
            "answered": {"add {}": "5"},
            "result": None,
        },
        "told": {"events": [], "messages": [], "left_out": 0},
        "late": {"events": [], "messages": [], "left_out": 1},
        "dropped": True,
    }
    turn = PausedTurn.from_json(written)
    assert turn.pending is not None
    assert turn.pending.said == [Message("assistant", "Looking."), Message("user", "Result of add: 5")]
    assert (turn.picture, turn.late.left_out) == (ImagePart("aGk=", "image/png", "a door"), 1)
    assert turn.to_json() == {**written, "kept": ""}
