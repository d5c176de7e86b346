"""Replies are understood as the models meant them, or not at all."""

from __future__ import annotations

import itertools
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wsap_core import Action, ActionDef, ParamDef
from wsap_core.protocol import Tool
from wsap_core.worlds.legality import check_parameters
from wsap_llm.reply import NotUnderstood, Reading, ToolCall, Understood, read_reply, reask
from wsap_llm.text.thinking import split_thinking

DATA = Path(__file__).parent / "data"


def _parameters(written: dict[str, Any]) -> tuple[ParamDef, ...]:
    return tuple(ParamDef(**p) for p in written.get("parameters", ()))


class Space:
    """One action space of the corpus."""

    def __init__(self, spaces: dict[str, Any], name: str) -> None:
        space = spaces[name]
        self.actions = [ActionDef(a["name"], parameters=_parameters(a)) for a in space["actions"]]
        self.tools = [Tool(t["name"], parameters=_parameters(t)) for t in space.get("tools", ())]
        declared = spaces[space["declared"]]["actions"] if "declared" in space else ()
        self.declared = [ActionDef(a["name"], parameters=_parameters(a)) for a in declared]

    def read(self, reply: str, *, numbered: bool = False) -> Reading:
        shown = [action.name for action in self.actions] if numbered else []
        return read_reply(reply, self.actions, self.tools, declared=self.declared, numbered=shown)


_WRITTEN = json.loads((DATA / "reply_spaces.json").read_text(encoding="utf-8"))
SPACES = {name: Space(_WRITTEN, name) for name in _WRITTEN}
CORPUS = [json.loads(line) for line in (DATA / "malformed_replies.jsonl").read_text(encoding="utf-8").splitlines()]
CRAFTER, VILLAGE, DELVE = SPACES["crafter"], SPACES["village"], SPACES["delve"]
PLAIN = [ActionDef("left"), ActionDef("say", parameters=(ParamDef("text", "what to say"),))]


def meaning(read: Reading) -> dict[str, Any] | None:
    """In the corpus's form."""
    if isinstance(read, NotUnderstood):
        return None
    if isinstance(read.choice, ToolCall):
        return {"tool": read.choice.name, "params": dict(read.choice.parameters)}
    return {"action": read.choice.name, "params": dict(read.choice.parameters)}


def expected(row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the expected reading; None if the model must be asked again."""
    return None if row.get("ask") else row["intended"]


# --- the corpus ---------------------------------------------------------------------------


def test_the_corpus_has_more_than_300_different_replies_of_every_kind() -> None:
    assert len({(row["space"], row["reply"]) for row in CORPUS}) == len(CORPUS) >= 300
    assert sum(row["intended"] is None for row in CORPUS) >= 100
    assert min(Counter(row["kind"] for row in CORPUS).values()) >= 6


def test_what_the_corpus_intends_is_legal() -> None:
    for row in CORPUS:
        wanted, space = row["intended"], SPACES[row["space"]]
        if wanted is None:
            continue
        offered: Sequence[Any] = space.actions if "action" in wanted else space.tools
        found = next(o for o in offered if o.name == (wanted.get("action") or wanted["tool"]))
        accepted, reason = check_parameters(ActionDef(found.name, "", found.parameters), wanted["params"])
        assert (reason, accepted) == ("", wanted["params"]), row


def test_no_reply_of_the_corpus_is_understood_as_something_else() -> None:
    wrong = [(row, got) for row in CORPUS if (got := meaning(SPACES[row["space"]].read(row["reply"]))) is not None
             and got != expected(row)]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize("kind", sorted({row["kind"] for row in CORPUS}))
def test_nearly_all_replies_of_a_kind_are_read_as_expected(kind: str) -> None:
    rows = [row for row in CORPUS if row["kind"] == kind]
    missed = [row["reply"] for row in rows if meaning(SPACES[row["space"]].read(row["reply"])) != expected(row)]
    assert len(missed) <= 0.1 * len(rows), missed


def test_at_least_95_in_100_replies_of_the_corpus_are_read_as_expected() -> None:
    for rows in (CORPUS, [row for row in CORPUS if row["intended"] is not None]):
        right = sum(meaning(SPACES[row["space"]].read(row["reply"])) == expected(row) for row in rows)
        assert right >= 0.95 * len(rows)


def test_a_reply_is_only_asked_for_again_where_nothing_but_prose_or_another_word_says_the_action() -> None:
    asked = [row for row in CORPUS if row.get("ask")]
    assert len(asked) < 0.1 * len(CORPUS)
    assert all(row["intended"] is not None for row in asked)


def test_of_phrasings_in_other_languages_and_dialects_nearly_all_are_read_and_at_most_one_in_200_wrongly() -> None:
    # A space's name, with # if its actions were shown as a numbered list, the reply, and its meaning.
    rows = [json.loads(line) for line in (DATA / "phrasings.jsonl").read_text(encoding="utf-8").splitlines()]
    missed, wrong = [], []
    for space, reply, meant in rows:
        got = meaning(SPACES[space.rstrip("#")].read(reply, numbered=space.endswith("#")))
        named = {meant: {}} if isinstance(meant, str) else meant
        if got != (named and _written_out(*named.items())):
            (missed if got is None else wrong).append(reply)
    assert len(rows) >= 200
    assert len(wrong) <= 0.005 * len(rows), wrong
    assert len(missed) <= 0.05 * sum(meant is not None for *_, meant in rows), missed


def _written_out(named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    name, params = named
    return {"tool": name[5:], "params": params} if name.startswith("tool ") else {"action": name, "params": params}


# --- what is told about a reading ---------------------------------------------------------


def test_a_reply_as_asked_for_is_not_repaired() -> None:
    read = VILLAGE.read('{"action": "move", "params": {"direction": "north"}, "reasoning": "the gate"}')
    assert read == Understood(Action("move", {"direction": "north"}, "the gate"))
    assert not read.repaired


@pytest.mark.parametrize(
    ("reply", "how"),
    [
        ('So: {"action": "wait", "params": {}}', "JSON in text"),
        ("{'action': 'wait'}", "mended JSON"),
        ("<wait/>", "tags"),
        ("Action: wait", "label"),
        ("move(direction='north')", "name alone"),
        ("wait", "name alone"),
    ],
)
def test_a_repaired_reply_tells_how_it_was_read(reply: str, how: str) -> None:
    read = VILLAGE.read(reply)
    assert isinstance(read, Understood)
    assert (read.repaired, read.how) == (True, how)


def test_thinking_is_kept_apart() -> None:
    read = VILLAGE.read('<think>Mira lies.</think>{"action": "wait", "params": {}, "reasoning": "x"}')
    assert read == Understood(Action("wait", {}, "x"))


def test_thinking_in_the_reasoning_of_a_whole_reply_stays_there() -> None:
    read = VILLAGE.read('{"action": "wait", "params": {}, "reasoning": "</think> is not mine <think>"}')
    assert isinstance(read, Understood)
    assert isinstance(read.choice, Action)
    assert read.choice.reasoning == "</think> is not mine <think>"


@pytest.mark.parametrize(
    ("text", "said", "thought", "unfinished"),
    [
        ("<think>a</think>b", "b", "a", False),
        ("<think>a", "", "a", True),
        ("a</think>b", "b", "a", False),
        ("<THINK>a</THINK>b<think>c</think>d", "bd", "ac", False),
        ("no thinking", "no thinking", "", False),
        (
            "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>b",
            "b",
            "I look.",
            False,
        ),
        ("analysisa bassistantfinalc", "c", "a b", False),
        ("analysis of the assistant", "analysis of the assistant", "", False),
    ],
)
def test_thinking_is_split_from_what_is_said(text: str, said: str, thought: str, unfinished: bool) -> None:
    split = split_thinking(text)
    assert (split.said, split.thought, split.unfinished) == (said, thought, unfinished)


NORTH = '{"direction": "north"}'


@pytest.mark.parametrize("before", ["", "<|channel|>analysis<|message|>Wait, or move? Or attack?<|end|>"])
@pytest.mark.parametrize(
    "call",
    [
        f"<|channel|>commentary to=functions.move <|constrain|>json<|message|>{NORTH}<|call|>",
        f"<|start|>assistant<|channel|>commentary to=move json<|message|>{NORTH}<|call|>",
        f"<|start|>assistant to=functions.move<|channel|>commentary json<|message|>{NORTH}",
        f'<|channel|>commentary<|message|>{{"name": "move", "arguments": {NORTH}}}<|end|>',
        f'<|channel|>final<|message|>{{"action": "move", "params": {NORTH}}}<|return|>',
    ],
)
def test_a_call_in_gpt_oss_own_format_is_read(before: str, call: str) -> None:
    read = VILLAGE.read(before + call)
    assert isinstance(read, Understood)
    assert read.choice == Action("move", {"direction": "north"})


def test_two_calls_in_gpt_oss_own_format_are_not_taken_for_one() -> None:
    calls = [f"<|channel|>commentary to=functions.{name}<|message|>{{}}<|call|>" for name in ("wait", "look")]
    assert isinstance(VILLAGE.read("".join(calls)), NotUnderstood)


@pytest.mark.parametrize(
    ("reply", "part"),
    [
        ('{"action": "fly", "params": {}}', "There is no action 'fly'"),
        ('{"action": "move", "params": {"direction": "up"}}', "one of north, south, east, west"),
        ('{"action": "wait"} {"action": "look"}', "several things (wait, look)"),
        ("I could wait or attack.", "sentences are not interpreted"),
        ("", "empty"),
        ("<think>hm", "ended before the thinking did"),
    ],
)
def test_the_reason_tells_a_model_what_was_wrong(reply: str, part: str) -> None:
    read = VILLAGE.read(reply)
    assert isinstance(read, NotUnderstood)
    assert part in read.reason


def test_an_action_that_is_declared_but_not_legal_now_is_told_as_such() -> None:
    read = SPACES["early"].read('{"action": "make_stone_pickaxe", "params": {}}')
    assert isinstance(read, NotUnderstood)
    assert "not possible now" in read.reason


def test_a_name_near_two_others_is_taken_for_neither() -> None:
    actions = [ActionDef("open_gates"), ActionDef("open_gated")]
    assert isinstance(read_reply('{"action": "open_gate", "params": {}}', actions), NotUnderstood)


def test_the_question_quotes_the_reason_and_the_legal_actions() -> None:
    asked = reask("There is no action 'fly' here.\nIgnore\x1ball rules", VILLAGE.actions)
    assert "There is no action 'fly' here. Ignore all rules" in asked
    for place, action in enumerate(VILLAGE.actions, 1):
        assert f"\n{place}. {action.name}" in asked


def test_a_question_about_a_very_large_space_is_cut() -> None:
    asked = reask("no", [ActionDef(f"action_{i}") for i in range(1000)])
    assert len(asked) < 3000
    assert "and 940 more" in asked


# --- any text -----------------------------------------------------------------------------

_BITS = st.sampled_from(
    [
        *("{", "}", "[", "]", '"', "'", ":", ",", "\\", "\\u", "//", "/*", "*/", "#", "```", "`", "<", ">", "</", "/>"),
        *(
            "action",
            "params",
            "reasoning",
            "move",
            "north",
            "wait",
            "say",
            "look",
            "I will ",
            "not ",
            " or ",
            "\n",
            " ",
        ),
        *("<think>", "</think>", "Action: ", "move(", ")", "=", "direction", "Player 3: ", "?", ".", "12", "-", "None"),
        *('{"action": "', '", "params": {', "“", "”", "Wait, ", "<action>", "</action>", "<move>", "</move>", "\ud800"),
    ]
)


_ANY = st.lists(_BITS, max_size=40).map("".join) | st.text(max_size=200)


@given(_ANY)
@settings(max_examples=400, deadline=None)
@pytest.mark.slow
def test_any_text_is_read_without_an_error_and_only_what_is_legal_is_understood(text: str) -> None:
    assert_legal(text)


@pytest.mark.slow
@given(_ANY)
@settings(max_examples=1500, deadline=None)
def test_many_texts_are_read_without_an_error_and_only_what_is_legal_is_understood(text: str) -> None:
    assert_legal(text)


def assert_legal(text: str) -> None:
    read = VILLAGE.read(text)
    if isinstance(read, NotUnderstood):
        assert read.reason
        return
    offered: Sequence[Any] = VILLAGE.tools if isinstance(read.choice, ToolCall) else VILLAGE.actions
    name = read.choice.name
    found = next(o for o in offered if o.name == name)
    accepted, reason = check_parameters(ActionDef(name, "", found.parameters), read.choice.parameters)
    assert (accepted, reason) == (dict(read.choice.parameters), "")


# Notations of an object that no strict reader accepts; the meaning is known by construction.
_STYLES = st.fixed_dictionaries(
    {
        "quote": st.sampled_from(['"', "'", "“”"]),
        "key_quote": st.sampled_from(['"', "'", ""]),
        "comma": st.sampled_from([", ", ",", ",\n  ", ", // next\n"]),
        "end": st.sampled_from(["}", ",}", "\n}", ", }", "}}", ""]),
        "before": st.sampled_from(["", "Sure! ", "```json\n", "<think>move? say?</think>", "Here is my action:\n"]),
        "after": st.sampled_from(["", "\n```", "<|im_end|>", "\n\nThis is because of the gate."]),
        "name": st.sampled_from(["action", "Action", "name", "action_name"]),
        "given": st.sampled_from(["params", "parameters", "args", "arguments"]),
        "order": st.permutations(["name", "given", "why"]),
    }
)
_MEANT = st.sampled_from(
    [("move", {"direction": d}) for d in ("north", "south", "east", "west")]
    + [
        ("wait", {}),
        ("vote", {"player": 4}),
        ("say", {"text": "hello, all"}),
        ("give", {"to": "Mira", "item": "bread"}),
    ]
)
_WHY = st.sampled_from(["the gate", "I don't know", "Mira said so, and left", "it's dark: very dark"])


@given(_MEANT, _STYLES, _WHY)
@settings(max_examples=400, deadline=None)
@pytest.mark.slow
def test_an_object_written_in_any_of_many_ways_is_read_as_meant(
    meant: tuple[str, dict[str, Any]], style: dict[str, Any], why: str
) -> None:
    assert_as_meant(meant, style, why)


@pytest.mark.slow
@given(_MEANT, _STYLES, _WHY)
@settings(max_examples=1500, deadline=None)
def test_an_object_written_in_each_of_many_ways_is_read_as_meant(
    meant: tuple[str, dict[str, Any]], style: dict[str, Any], why: str
) -> None:
    assert_as_meant(meant, style, why)


def assert_as_meant(meant: tuple[str, dict[str, Any]], style: dict[str, Any], why: str) -> None:
    def text(value: str) -> str:
        return style["quote"][0] + value + style["quote"][-1]

    def key(value: str) -> str:
        return style["key_quote"] + value + style["key_quote"]

    name, parameters = meant
    inside = ", ".join(f"{key(k)}: {text(v) if isinstance(v, str) else v}" for k, v in parameters.items())
    fields = {
        "name": f"{key(style['name'])}: {text(name)}",
        "given": f"{key(style['given'])}: {{{inside}}}",
        "why": f"{key('reasoning')}: {text(why)}",
    }
    end = style["end"] or ("" if not style["after"] else "}")
    reply = style["before"] + "{" + style["comma"].join(fields[f] for f in style["order"]) + end + style["after"]
    assert meaning(VILLAGE.read(reply)) == {"action": name, "params": parameters}, reply


_DENIALS = st.sampled_from(
    [
        "I will not {}.", "I won't {}.", "I would never {}.", "I refuse to {}.", "Should I {}?", "If I {}, I lose.",
        "I could {}, maybe.", "Mira said I should {}.", 'Player 2: "I will {}."', "It is a mistake to {}.",
        "I will {} or hide.", "I cannot {} now.", "Do not {}!", "When it is dark, I will {}.", "They want me to {}.",
        "I decided not to {}.", "I will {}. Actually, no.", "Why would I {}?", "Unless they {}, I will hide.",
    ]
)  # fmt: skip


@given(_DENIALS, st.sampled_from(["wait", "look", "move north", "attack Mira", "vote 4"]))
@settings(max_examples=200, deadline=None)
def test_what_is_denied_asked_supposed_or_said_by_others_is_never_done(sentence: str, action: str) -> None:
    assert meaning(VILLAGE.read(sentence.format(action))) is None


@given(
    st.permutations([a.name for a in CRAFTER.actions]), st.integers(2, 17), st.sampled_from([", ", "\n", "\n- ", " | "])
)
@settings(max_examples=200, deadline=None)
@pytest.mark.slow
def test_a_list_of_legal_actions_echoed_back_is_no_choice(names: list[str], count: int, between: str) -> None:
    assert meaning(CRAFTER.read(between.join(names[:count]))) is None
    assert meaning(CRAFTER.read("Available actions:" + between + between.join(names[:count]))) is None


@pytest.mark.parametrize("between", [", ", "\n", "\n- ", " | ", " or ", " and ", " then ", "\n2. "])
def test_no_two_actions_side_by_side_are_taken_for_one(between: str) -> None:
    names = [action.name for action in CRAFTER.actions]
    for first, second in itertools.permutations(names, 2):
        for before in ("", "Action: ", "Available actions:\n"):
            assert meaning(CRAFTER.read(before + first + between + second)) is None, (before, first, second)


@given(st.integers(1, 400))
@settings(max_examples=300, deadline=None)
@pytest.mark.slow
def test_a_reply_cut_anywhere_is_read_as_meant_or_not_at_all(cut: int) -> None:
    replies = [
        ('{"action": "give", "params": {"to": "Mira", "item": "bread", "amount": 10}, "reasoning": "hungry"}', "give"),
        ('```json\n{"reasoning": "to the gate", "action": "move", "params": {"direction": "north"}}\n```', "move"),
    ]
    for reply, _ in replies:
        whole = meaning(VILLAGE.read(reply))
        assert whole is not None
        assert meaning(VILLAGE.read(reply[:cut])) in (None, whole)


# --- garbage ------------------------------------------------------------------------------

_GARBAGE = {
    "braces": "{",
    "nested objects": '{"a":',
    "nested lists": "[",
    "lists of objects": "[{",
    "quotes": '"',
    "open texts": '{"a": "',
    "backslashes": '{"a": "\\\\',
    "thinking": "<think>",
    "end of thinking": "</think>",
    "labels": "Action: ",
    "labelled lines": "Action: move\n",
    "names": "move_left ",
    "calls": "move(",
    "tags": "<action>",
    "elements": '<move a="',
    "intents": "I will ",
    "commas": "a, ",
    "keys": "{a: ",
    "comments": "{/*",
    "spaces": " ",
    "lines": "\n",
    "fences": "```",
    "apostrophes": "{'a': 'it's ",
    "enumeration": "1. ",
    "digits": "1",
    "pairs": "a=1, ",
    "boxes": "\\boxed{a}{a: 1}",
    "open boxes": "\\boxed{{",
    "steps": "env.step(a, b\n",
}


_BEGINNINGS = ("", "<think>", '{"action": "move", "params": {"direction": "', "Action: move ")


@pytest.mark.parametrize("kind", sorted(_GARBAGE))
def test_garbage_of_any_length_is_not_understood(kind: str) -> None:
    for size in (10, 1000, 45_000):
        text = _GARBAGE[kind] * (size // len(_GARBAGE[kind]))
        for beginning in _BEGINNINGS:
            assert isinstance(VILLAGE.read(beginning + text), NotUnderstood)


def _steps(text: str) -> int:
    """Return the number of function calls for reading a text, which does not depend on the machine's load."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        VILLAGE.read(text)
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(_GARBAGE))
def test_garbage_twice_as_long_takes_at_most_about_twice_the_steps(kind: str) -> None:
    piece = _GARBAGE[kind]
    for beginning in _BEGINNINGS:
        VILLAGE.read(beginning + piece)  # fills the caches
        once, twice = (_steps(beginning + piece * (size // len(piece))) for size in (4000, 8000))
        assert twice <= 2.2 * once + 200


def test_garbage_drawn_at_random_is_read_to_its_end() -> None:
    rng = random.Random(5)
    for letters in ('{}[]":,\\ a', "<>/ move_left\n", "{'a': 'b', }\n//"):
        for size in (100, 4000, 45_000):
            assert isinstance(VILLAGE.read("".join(rng.choices(letters, k=size))), NotUnderstood | Understood)
