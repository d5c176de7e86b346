"""Keys: what a terminal sends becomes names of keys, and keys become actions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core import Action, ActionAvailability, ActionDef, ActionSpace, Observation, ParamDef, Possible
from wsap_core.worlds.mailbox import Mailbox
from wsap_llm.reply.schema import legal_actions
from wsap_llm.reply.typed import typed_action
from wsap_nexus.terminal.keyboard.keymap import RESERVED, Line, completions, keymap, typed_choice, why_not
from wsap_nexus.terminal.keyboard.keys import KeyDecoder

ROOM = ActionSpace(
    (
        ActionDef("speak", "Say something", (ParamDef("text", "what to say"),)),
        ActionDef("tell", "Say it to one", (ParamDef("to", "who"), ParamDef("text", "what"))),
        ActionDef("lean", "Lean somewhere", (ParamDef("way", "left|right"),)),
        ActionDef("roll", "Roll a die", (ParamDef("sides", "2-20", optional=True),)),
        ActionDef("wait", "Listen"),
    )
)


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"a", ["a"]),
        (b" ", ["space"]),
        (b"\r", ["enter"]),
        (b"\x7f", ["backspace"]),
        (b"\x1b[A\x1b[B", ["up", "down"]),
        (b"\x1bOC", ["right"]),
        (b"\x1b[5~\x1b[6~", ["pageup", "pagedown"]),
        (b"\x1b[1~\x1b[F", ["home", "end"]),
        (b"\x1b", ["esc"]),
        (b"\x1b[1;5C", []),
        (b"s\x1b[Ds", ["s", "left", "s"]),
        ("ж".encode(), ["ж"]),
        (b"\x00\x01", []),
    ],
)
def test_a_terminal_s_bytes_are_read_as_keys(sent: bytes, keys: list[str]) -> None:
    assert KeyDecoder().feed(sent) == keys


def test_a_character_that_arrives_in_two_parts_is_one_key() -> None:
    decoder = KeyDecoder()
    first, second = "é".encode()[:1], "é".encode()[1:]
    assert decoder.feed(first) == []
    assert decoder.feed(second) == ["é"]


@given(st.lists(st.binary(max_size=12), max_size=6))
def test_whatever_a_terminal_sends_gives_printable_keys(parts: list[bytes]) -> None:
    decoder = KeyDecoder()
    for part in parts:
        assert all(key and key.isprintable() for key in decoder.feed(part))


@given(st.lists(st.from_regex(r"[a-z]{1,6}(_[a-z]{1,6}){0,2}", fullmatch=True), unique=True, max_size=45))
@pytest.mark.slow
def test_every_key_means_one_action_and_none_takes_a_key_of_the_view(names: list[str]) -> None:
    keys = keymap(ActionSpace([ActionDef(name) for name in names]))
    assert len(set(keys.values())) == len(keys)
    assert not RESERVED & set(keys)
    # The view leaves 9 digits and 49 letters, and the arrows and the like take none of them away.
    assert set(keys.values()) == set(names)


def test_the_arrows_move_and_space_does_the_usual_deed() -> None:
    names = ("noop", "move_left", "move_right", "move_up", "move_down", "do", "sleep", "place_stone", "place_table")
    keys = keymap(ActionSpace([ActionDef(name) for name in names]))
    assert keys == {
        "left": "move_left", "right": "move_right", "up": "move_up", "down": "move_down",
        "space": "do", "z": "sleep", ".": "noop", "s": "place_stone", "t": "place_table",
    }  # fmt: skip


def test_an_action_that_needs_something_has_no_key() -> None:
    assert set(keymap(ROOM).values()) == {"roll", "wait"}


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        ("wait", Action("wait")),
        ("wa", Action("wait")),
        ("speak hello there", Action("speak", {"text": "hello there"})),
        ("speak text=hello", Action("speak", {"text": "hello"})),
        ("speak a=b", Action("speak", {"text": "a=b"})),
        ("lean LEFT", Action("lean", {"way": "left"})),
        ("roll 6", Action("roll", {"sides": 6})),
        ("roll", Action("roll")),
        ("tell to=Ann text='good day'", Action("tell", {"to": "Ann", "text": "good day"})),
        ("tell to=Ann text=good day", Action("tell", {"to": "Ann", "text": "good day"})),
        ("tell text=I'm here, x=2 to=Ann", Action("tell", {"to": "Ann", "text": "I'm here, x=2"})),
        ("tell Ann I'm here", Action("tell", {"to": "Ann", "text": "I'm here"})),
        ("tell 'Bob Fox' to=me", Action("tell", {"to": "Bob Fox", "text": "to=me"})),
        ("LEAN left", Action("lean", {"way": "left"})),
        ("lean 'left'", Action("lean", {"way": "left"})),
    ],
)
def test_a_typed_line_is_an_action(typed: str, action: Action) -> None:
    assert typed_action(typed, ROOM) == (action, "")


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("", "Type the name"),
        ("wiat", "Did you mean wait"),
        ("lean up", "one of left, right"),
        ("roll 99", "2 to 20"),
        ("tell Ann", "needs 'text'"),
        ("tell to=Ann", "needs 'text'"),
        ("tell to='Ann", "needs 'text'"),
        ("roll side=6", "expected a whole number from 2 to 20"),
        ("lean way=left wya=right", "no parameter 'wya'"),
        ("speak", "needs 'text'"),
        ("wait now", "takes no parameters"),
    ],
)
def test_a_typed_line_that_is_no_action_is_answered_with_the_reason(typed: str, reason: str) -> None:
    action, said = typed_action(typed, ROOM)
    assert action is None
    assert reason in said


TOWN = ActionSpace(
    (
        ActionDef("whisper", "Say it to one", (ParamDef("player", "Player 1|Player 10|Ann"), ParamDef("text"))),
        ActionDef(
            "control",
            "Force one onto another",
            (ParamDef("player", "Ann|Bob Fox|Cid"), ParamDef("onto", "Ann|Bob Fox|Cid")),
        ),
    )
)


@pytest.mark.parametrize(
    ("typed", "parameters"),
    [
        ("whisper Player 1 hello there", {"player": "Player 1", "text": "hello there"}),
        ("whisper player 10 0 votes", {"player": "Player 10", "text": "0 votes"}),
        ("whisper Ann player=Ann is it", {"player": "Ann", "text": "player=Ann is it"}),
        ("control bob fox Cid", {"player": "Bob Fox", "onto": "Cid"}),
        ("control player=Ann onto='Bob Fox'", {"player": "Ann", "onto": "Bob Fox"}),
    ],
)
def test_what_an_action_needs_is_typed_in_its_order(typed: str, parameters: dict[str, str]) -> None:
    action, reason = typed_action(typed, TOWN)
    assert reason == ""
    assert action is not None
    assert dict(action.parameters) == parameters


@pytest.mark.parametrize("typed", ["whisper Zoe hello", "control Ann", "control Ann Zoe", "whisper Ann"])
def test_what_is_missing_or_unknown_is_not_guessed(typed: str) -> None:
    action, reason = typed_action(typed, TOWN)
    assert action is None
    assert reason


def test_tab_completes_one_thing_after_the_other() -> None:
    assert completions("whisper p", TOWN) == ["whisper Player 1", "whisper Player 10"]
    assert completions("whisper Ann ", TOWN) == []
    assert completions("control ", TOWN) == ["control Ann", "control Bob Fox", "control Cid"]
    assert completions("control Bob Fox ", TOWN) == ["control Bob Fox Ann", "control Bob Fox Cid"]
    assert completions("control bob fox c", TOWN) == ["control bob fox Cid"]


def test_the_cursor_moves_in_a_typed_line() -> None:
    line = Line()
    line.begin("speak Helo, Ann")
    for key in (*("left",) * 6, "l"):
        line.press(key, ROOM)
    assert line.text == "speak Hello, Ann"
    for key in ("home", "delete", "S", "end", "!", "right"):
        line.press(key, ROOM)
    assert line.text == "Speak Hello, Ann!"
    assert line.at == len(line.text)
    for key in ("home", "left", "backspace"):
        line.press(key, ROOM)
    assert (line.text, line.at) == ("Speak Hello, Ann!", 0)
    assert line.press("enter", ROOM) == "Speak Hello, Ann!"
    assert (line.text, line.at, line.open) == ("", 0, False)


@given(st.lists(st.sampled_from(["a", "space", "left", "right", "home", "end", "backspace", "delete", "esc", "tab"])))
def test_whatever_is_pressed_the_cursor_stays_in_the_line(keys: list[str]) -> None:
    line = Line(open=True)
    for key in keys:
        line.press(key, ROOM)
        assert 0 <= line.at <= len(line.text)


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("whisper Player 1 hi", "expected one of Ann"),
        ("control Ann Cid", "control is not possible now: you are no Witch."),
        ("contro Ann", "There is no action 'contro' here. There are: whisper."),
    ],
)
def test_a_refusal_names_only_what_can_be_chosen_now(typed: str, reason: str) -> None:
    now = [Possible("whisper", choices={"player": ("Ann",)}), ActionAvailability("control", False, "you are no Witch")]
    action, said = typed_choice(typed, TOWN, Observation(available_actions=now))
    assert action is None
    assert reason in said
    assert "Player 10" not in said


def test_tab_goes_through_what_fits() -> None:
    assert completions("l", ROOM) == ["lean"]
    assert completions("lean ", ROOM) == ["lean left", "lean right"]
    line = Line(open=True)
    for key in ("l", "tab", "space", "tab"):
        line.press(key, ROOM)
    assert line.text == "lean left"
    line.press("tab", ROOM)
    assert line.text == "lean right"
    assert line.press("enter", ROOM) == "lean right"
    assert (line.text, line.open) == ("", False)


def test_an_impossible_action_is_refused_with_the_game_s_reason() -> None:
    seen = Observation(available_actions=[ActionAvailability("wait", False, "the bell rings")])
    assert why_not(Action("wait"), seen) == "wait is not possible now: the bell rings."
    assert why_not(Action("speak"), seen) == ""


def test_an_unlisted_action_of_the_runtime_is_not_offered_and_accepted_all_the_same() -> None:
    space = ROOM.merged(Mailbox(("row", "column")).actions_of("row"))
    tell = Action("tell", {"to": "column", "text": "hi"})
    space = ActionSpace([a for a in space.actions if a.name != "tell" or a.category == "message"]).merged(
        Mailbox(("row", "column")).actions_of("row")
    )
    assert typed_choice("tell to=column text=hi", space, Observation()) == (tell, "")
    assert typed_choice("tell column hi", space, Observation()) == (tell, "")
    refused = Observation(available_actions=[ActionAvailability("tell", False, "the line is dead")])
    assert typed_choice("tell column hi", space, refused) == (None, "tell is not possible now: the line is dead.")
    assert "tell" not in completions("te", ActionSpace(legal_actions(space, Observation())))


class Named(Observation):
    """Shows the words of choices by other names."""

    def typed_names(self) -> dict[str, str]:
        return {"iron sword": "w1", "Kwama": "w2", "2": "w2"}


@pytest.mark.parametrize(
    ("typed", "what"),
    [
        ("take IRON SWORD", "w1"),
        ("take what=2", "w2"),
        ("TAKE 2", "w2"),
        ("ta 'Iron Sword'", "w1"),
        ("take \u212awama", "w2"),
        ("take \u0131ron sword", None),
        ("take \u0130RON SWORD", None),
    ],
)
def test_names_are_typed_in_any_case_and_letters_that_only_look_so_are_no_error(typed: str, what: str | None) -> None:
    space = ActionSpace((ActionDef("take", "Take", (ParamDef("what", "something in sight"),)),))
    seen = Named(available_actions=[Possible("take", choices={"what": ["w1", "w2"]})])
    action, reason = typed_choice(typed, space, seen)
    assert (action and action.parameters["what"]) == what
    assert bool(reason) == (what is None)


NUMBER, WORDS_LIST = {"type": "number"}, {"type": "array", "items": {"type": "string"}}
MACHINE = ActionSpace(
    (
        ActionDef("aim", "Aim", (ParamDef("x", schema={"type": "number"}), ParamDef("y", schema={"type": "number"}))),
        ActionDef("arm", "Arm", (ParamDef("on", schema={"type": "boolean"}),)),
        ActionDef("path", "Go along", (ParamDef("steps", schema={"type": "array", "items": {"type": "string"}}),)),
        ActionDef(
            "dig", "Dig", (ParamDef("depth", "1-9"), ParamDef("way", "up|down"), ParamDef("note", optional=True))
        ),
        ActionDef(
            "go",
            "Go",
            (
                *(ParamDef(name, schema=NUMBER) for name in "xy"),
                ParamDef("z", schema=NUMBER, optional=True),
                ParamDef("cell", "a place", optional=True),
            ),
        ),
        ActionDef("note", "Write", (ParamDef("text", "words"), ParamDef("tags", schema=WORDS_LIST, optional=True))),
    )
)


@pytest.mark.parametrize(
    ("typed", "parameters"),
    [
        ("aim 1.5 -2", {"x": 1.5, "y": -2}),
        ("aim y=3 x=0.5", {"x": 0.5, "y": 3}),
        ("arm true", {"on": True}),
        ('path ["a", "b c"]', {"steps": ["a", "b c"]}),
        ('path steps=["a", "b c"]', {"steps": ["a", "b c"]}),
        ("dig 3 up", {"depth": 3, "way": "up"}),
        ("dig 3 up for gold", {"depth": 3, "way": "up", "note": "for gold"}),
        ("dig way=up depth=3", {"depth": 3, "way": "up"}),
        ("dig 3 up note=for gold", {"depth": 3, "way": "up", "note": "for gold"}),
        ("go 30 30", {"x": 30, "y": 30}),
        ("go 30 30 5", {"x": 30, "y": 30, "z": 5}),
        ("go 30 30 5 Long Causeway", {"x": 30, "y": 30, "z": 5, "cell": "Long Causeway"}),
        ("go 30 30 Long Causeway", {"x": 30, "y": 30, "cell": "Long Causeway"}),
        ("go 30 30 cell=Long Causeway", {"x": 30, "y": 30, "cell": "Long Causeway"}),
        ("go 30 30 cell=Long Causeway z=5", {"x": 30, "y": 30, "z": 5, "cell": "Long Causeway"}),
        ('note hello there tags=["a"]', {"text": "hello there", "tags": ["a"]}),
        ("note tags are=fun", {"text": "tags are=fun"}),
    ],
)
def test_numbers_truth_values_and_lists_can_be_typed(typed: str, parameters: dict[str, object]) -> None:
    action, reason = typed_action(typed, MACHINE)
    assert (reason, action and dict(action.parameters)) == ("", parameters)


@pytest.mark.parametrize(
    "typed", ["dig --5 up", "dig \u00b2 up", "dig 3 upp", "go 30 x", "note hello tags=a", "aim 1 2 3"]
)
def test_what_is_no_number_or_word_of_a_parameter_is_refused_with_its_name(typed: str) -> None:
    action, reason = typed_action(typed, MACHINE)
    assert action is None
    assert any(name in reason for name in ("depth", "way", "'y'", "tags")), reason


WORDS = st.from_regex(r"[A-Za-z]{1,6}('s)?( [A-Za-z0-9]{1,5}){0,2}", fullmatch=True)


@given(st.data())
@pytest.mark.slow
def test_whatever_tab_completes_is_accepted(data: st.DataObject) -> None:
    choices = st.lists(WORDS, min_size=1, max_size=4, unique_by=str.lower)
    parameters = [
        ParamDef(name, schema={"type": "string", "enum": words}, optional=optional)
        for name, words, optional in data.draw(
            st.lists(st.tuples(st.sampled_from(["to", "at", "way"]), choices, st.booleans()), min_size=1, max_size=3,
                     unique_by=lambda drawn: drawn[0])
        )
    ]  # fmt: skip
    space = ActionSpace([ActionDef("do", "Do", parameters)])
    if data.draw(st.booleans()):
        text = "do"
        for parameter in parameters:
            text = data.draw(st.sampled_from(completions(f"{text} {parameter.name}=", space)))
    else:
        text = "do "
        for _ in parameters:  # one after the other, as Tab and a blank give them
            text = data.draw(st.sampled_from(completions(text, space) or [text.rstrip()])) + " "
    action, reason = typed_action(text, space)
    assert action is not None, (text, reason)
