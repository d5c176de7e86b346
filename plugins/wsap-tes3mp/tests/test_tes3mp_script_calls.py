"""The server-side script: no call that would end a server, no line of it untested."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import test_tes3mp_script
import test_tes3mp_script_commands
import test_tes3mp_script_json
import test_tes3mp_script_transports
import test_tes3mp_script_wire
from lua_server import HERE, LUA, SIGNATURES, LuaServer, ServerDiedError

SHARED = HERE.parents[3] / "shared" / "tes3mp" / "functions-0.8.1.json"
LETTERS = {
    "unsigned short": "p",
    "unsigned int": "u",
    "int": "i",
    "double": "n",
    "string": "s",
    "bool": "b",
    "ScriptFunc": "f",
}


def test_the_scripts_know_the_signatures_of_the_functions_that_they_call() -> None:
    known = dict(LuaServer().lua.eval("require('lua.api').SIGNATURES").items())
    known = {name: kinds.replace("e", "p").replace("d", "s") for name, kinds in known.items()}
    assert known == {name: "".join(LETTERS[kind] for kind in SIGNATURES[name][1]) for name in known}
    used = {name for path in LUA.glob("*.lua") for name in re.findall(r"\bapi\.([A-Z]\w+)", path.read_text())}
    assert used - {"SIGNATURES"} == set(known)
    direct = [path.name for path in LUA.glob("*.lua") if "tes3mp." in re.sub(r"--.*|\"[^\"]*\"", "", path.read_text())]
    assert direct == []


@pytest.mark.skipif(not SHARED.exists(), reason="the table of all functions lies in another repository")
def test_the_signatures_of_the_tests_are_those_of_the_server() -> None:
    functions = json.loads(SHARED.read_text())

    def kind(text: str) -> str:
        text = text.split("=")[0].strip()
        return "string" if "char" in text and "const" in text else text.rsplit(" ", 1)[0].strip()

    for name, (result, kinds) in SIGNATURES.items():
        signature = functions[name]["sig"]
        assert (kind(f"{signature[0]} x"), [kind(text) for text in signature[1]]) == (result, kinds)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("tes3mp.GetPosX('0')", "GetPosX got 0 as argument 1"),
        ("tes3mp.GetPosX()", "GetPosX got 0 arguments"),
        ("tes3mp.GetPosX(0, 1)", "GetPosX got 2 arguments"),
        ("tes3mp.SetPos(0, 0/0, 1, 2)", "SetPos got"),
        ("tes3mp.SetActorRefNum(2^40)", "SetActorRefNum got"),
        ("tes3mp.ReadCellActorList('9, 9')", "the server does not have"),
        ("tes3mp.GetActorListSize()", "no actor list was read"),
        ("tes3mp.SendObjectActivate(false, false)", "without a player"),
        ("tes3mp.SetCell(0, '99999999999, 0')", "too large"),
        ("tes3mp.EquipItem(0, 19, 'x', 1, -1, -1)", "memory beyond"),
    ],
)
def test_the_fake_server_dies_where_the_real_one_does_and_no_pcall_hides_it(call: str, reason: str) -> None:
    server = LuaServer()
    server.lua.execute(f"pcall(function() {call} end)")
    with pytest.raises(ServerDiedError, match=reason):
        server.step()


def test_the_fake_server_dies_of_errors_in_timers_and_handlers_and_of_timers_in_timers() -> None:
    for body in ("error('x')", "tes3mp.CreateTimer('WsapTick', 1)", "nothing.at_all()"):
        server = LuaServer()
        server.lua.execute(f"function WsapTick() {body} end")
        with pytest.raises(ServerDiedError):
            server.step(50, 3)
    server = LuaServer()
    server.lua.execute("customEventHooks.registerHandler('OnPlayerDeath', function() error('x') end)")
    with pytest.raises(ServerDiedError, match="OnPlayerDeath"):
        server.event("OnPlayerDeath", 0)


def test_the_timer_after_a_freed_one_never_fires() -> None:
    server = LuaServer()
    server.lua.execute(
        "count = 0 function Later() count = count + 1 end "
        "tes3mp.FreeTimer(tes3mp.CreateTimer('Later', 10)) tes3mp.StartTimer(tes3mp.CreateTimer('Later', 10))"
    )
    server.step(50, 3)
    assert server.lua.globals().count == 0


def test_the_fake_server_can_end_its_process() -> None:
    code = (
        "from lua_server import LuaServer\ns = LuaServer(before='fake.hard = true')\n"
        "s.lua.execute('pcall(tes3mp.GetPosX, nil)')\nprint('alive')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (70, "")
    assert "SERVER DIED" in done.stderr


def test_a_wrong_call_of_the_scripts_is_an_error_before_the_server_sees_it() -> None:
    server = LuaServer()
    api = server.lua.eval("require('lua.api')")
    calls: list[Callable[[], object]] = [
        lambda: api.GetPosX("0"), lambda: api.GetPosX(), lambda: api.SetPos(0, float("nan"), 0, 0),
        lambda: api.SetActorRefNum(2**40), lambda: api.SendActorAI(1, 0), lambda: api.SetCell(0, "a\0b"),
        lambda: api.SetCell(0, "99999999999, 0"),
        lambda: api.CreateTimer("NoSuchFunction", 50), lambda: api.SetActorAIAction(-1),
        lambda: api.SetObjectRefNum(1.5),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(Exception, match=r"can't be|takes"):
            call()
    server.lua.execute("tes3mp.GetLevel = nil")
    with pytest.raises(Exception, match="this server has no"):
        api.GetLevel(0)
    server.step()


EXECUTABLE = """
function(path)
    local util, lines = require("jit.util"), {}
    local function visit(fn)
        local info = util.funcinfo(fn)
        for at = 1, info.bytecodes - 1 do lines[util.funcinfo(fn, at).currentline] = true end
        for at = -1, -info.gcconsts, -1 do
            local child = util.funck(fn, at)
            if type(child) == "proto" then visit(child) end
        end
    end
    visit(assert(loadfile(path)))
    return lines
end
"""


@pytest.mark.slow
def test_every_path_of_the_scripts_is_run_without_a_wrong_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All tests again with every line noted: what they never run, no test has seen the calls of."""
    covered: dict[str, set[int]] = {}
    monkeypatch.setattr(LuaServer, "covered", covered)
    for module in (
        test_tes3mp_script, test_tes3mp_script_commands, test_tes3mp_script_json, test_tes3mp_script_transports,
        test_tes3mp_script_wire,
    ):  # fmt: skip
        for name, test in list(vars(module).items()):
            if name.startswith("test_") and not hasattr(test, "hypothesis"):
                _run(test, tmp_path / name)
    missed, total = [], 0
    executable = LuaServer().lua.eval(EXECUTABLE)
    for path in sorted(LUA.glob("*.lua")):
        lines = {line for line in executable(path.as_posix()) if line > 0}
        total += len(lines)
        missed += [f"{path.name}:{line}" for line in sorted(lines - covered.get(path.name, set()))]
    print(f"covered {total - len(missed)} of {total} lines; not {missed}")
    assert len(missed) / total < 0.02, missed


def _run(test: object, tmp_path: Path) -> None:
    """Run a test with each of its parameters, in LuaJIT."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    cases: list[dict[str, object]] = [{}]
    for mark in marks:
        names = [mark.args[0]] if isinstance(mark.args[0], str) and "," not in mark.args[0] else list(mark.args[0])
        rows = [(value,) if len(names) == 1 else value for value in mark.args[1]]
        cases = [{**case, **dict(zip(names, row, strict=True))} for case in cases for row in rows]
    for number, case in enumerate(cases):
        if case.get("lua") == "lua51":
            continue
        if "tmp_path" in test.__code__.co_varnames[: test.__code__.co_argcount]:  # type: ignore[attr-defined]
            case["tmp_path"] = tmp_path / str(number)
            (tmp_path / str(number)).mkdir(parents=True)
        test(**case)  # type: ignore[operator]
