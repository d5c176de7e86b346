"""`wsap` as it is typed: in a process of its own, with plugins that are really there."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wsap_core
from wsap_core import errors
from wsap_core.cli.commands import DISTRIBUTION_OF, KERNEL_COMMANDS
from wsap_core.cli.output import print_table
from wsap_core.installing import install_line

WSAP = [sys.executable, "-c", "import sys; from wsap_core.cli import main; sys.exit(main())"]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Install = Callable[..., Path]

COMMANDS = """
    import click
    from wsap_core.hookspecs import hookimpl
    from wsap_core.specs import CommandSpec

    @hookimpl
    def wsap_commands():
        return [CommandSpec({name!r}, {summary!r}, {factory!r})]
"""


def plugin(name: str, factory: str, summary: str = "Does something.") -> str:
    return COMMANDS.format(name=name, factory=factory, summary=summary)


@pytest.fixture
def wsap(own_environment: dict[str, str]) -> Run:
    """Run `wsap` with the kernel's and this test's plugins alone, and return how it ended."""

    def run(*words: str, disable: str = "nexus,crafter", **changes: str) -> subprocess.CompletedProcess[str]:
        environment = {**own_environment, "WSAP_DISABLE_PLUGINS": disable, **changes}
        return subprocess.run([*WSAP, *words], env=environment, capture_output=True, text=True, timeout=300)

    return run


def sentence(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that was told."""
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, lines
    return lines[0]


# --- weight -------------------------------------------------------------------------------

MODULES = """
import sys
from wsap_core.cli import main
code = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""
NEVER = {"pydantic", "pydantic_core", "crafter", "numpy", "sqlmodel", "sqlalchemy", "litellm", "rich", "wsap_nexus.cli"}
NOT_WHEN_KEPT = NEVER | {
    "pluggy",
    "importlib.metadata",
    "platformdirs",
    "wsap_crafter",
    "wsap_nexus",
    "wsap_core.protocol",
}


@pytest.mark.parametrize(
    "words", [["--help"], ["plugins"], ["plugins", "--json"], ["games"], ["agents"], ["--version"]]
)
def test_listing_imports_nothing_heavy_and_from_the_second_time_on_no_plugin(
    words: list[str], own_environment: dict[str, str]
) -> None:
    command = [sys.executable, "-c", MODULES, *words]
    first, second = (
        subprocess.run(command, env=own_environment, capture_output=True, text=True, check=True) for _ in "12"
    )
    assert NEVER.isdisjoint(first.stderr.split())
    if words != ["--version"]:
        assert "wsap_core.builtin.plugin" in first.stderr.split()  # or the test would say nothing
    assert second.stdout == first.stdout
    assert NOT_WHEN_KEPT.isdisjoint(second.stderr.split())


def test_importing_the_kernel_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import wsap_core; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(Path(wsap_core.__file__).parent.parent)})  # fmt: skip
    assert {name for name in done.stdout.split() if name.startswith("wsap")} == {"wsap_core"}
    assert "dataclasses" not in done.stdout.split()


# --- what is there ------------------------------------------------------------------------


def test_the_version_is_the_kernels(wsap: Run) -> None:
    assert wsap("--version").stdout == f"wsap, version {wsap_core.__version__}\n"


def test_the_console_script_is_this() -> None:
    project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"wsap": "wsap_core.cli:main"}


@pytest.mark.slow
def test_help_lists_every_command_with_its_line(wsap: Run, install: Install) -> None:
    install("wsap-fishing", plugin("fish", "fishing:command", "Catch \x1b[31mfish\n by night."))
    text = wsap("--help").stdout
    for name, (_, summary) in KERNEL_COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(summary)}$", text, re.MULTILINE)
    assert re.search(r"^  fish +Catch +\[31mfish +by night\.$", text, re.MULTILINE)
    assert wsap("-h").stdout == text


@pytest.mark.parametrize("name", sorted(KERNEL_COMMANDS))
def test_a_kernel_command_can_be_imported_and_says_what_its_line_says(name: str, wsap: Run) -> None:
    done = wsap(name, "--help")
    assert done.returncode == 0, done.stderr
    assert KERNEL_COMMANDS[name][1] in done.stdout


def test_nothing_typed_shows_the_help(wsap: Run) -> None:
    assert "Commands:" in wsap().stdout + wsap().stderr


def test_python_m_is_the_same_program(own_environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "wsap_core", "--version"], env=own_environment, capture_output=True, text=True
    )
    assert done.stdout.startswith("wsap, version")


@pytest.mark.slow
def test_a_plugins_command_runs(wsap: Run, install: Install) -> None:
    path = install("wsap-fishing", plugin("fish", "wsap_fishing:command"))
    path.write_text(
        path.read_text()
        + "\n@click.command()\n@click.argument('n', type=int)\ndef command(n):\n    click.echo(n * 2)\n"
    )
    assert wsap("fish", "21").stdout == "42\n"
    assert wsap("fish", "21").stdout == "42\n"


@pytest.mark.slow
def test_a_command_registered_as_an_object_runs(wsap: Run, install: Install) -> None:
    path = install("wsap-fishing", plugin("fish", "X").replace("'X'", "command"))
    path.write_text(path.read_text() + "\n@click.command()\ndef command():\n    click.echo('a pike')\n")
    assert wsap("fish").stdout == "a pike\n"
    assert wsap("fish").stdout == "a pike\n"


# --- listings -----------------------------------------------------------------------------


def test_plugins_as_json_tell_all(wsap: Run, install: Install) -> None:
    install("Wsap.Fishing", plugin("fish", "wsap_fishing:command"), plugin="fishing", version="2.5")
    rows = {row["name"]: row for row in json.loads(wsap("plugins", "--json").stdout)}
    assert rows["fishing"] == {
        "name": "fishing", "distribution": "Wsap.Fishing", "version": "2.5", "module": "wsap_fishing",
        "status": "ok", "reasons": [], "provides": {"commands": ["fish"]},
    }  # fmt: skip
    assert rows["core"]["version"] == wsap_core.__version__
    assert rows["core"]["provides"]["commands"] == sorted(KERNEL_COMMANDS)
    assert rows["crafter"]["status"] == "disabled"


def test_one_plugin_can_be_asked_for_by_name(wsap: Run) -> None:
    (row,) = json.loads(wsap("plugins", "core", "--json").stdout)
    assert row["name"] == "core"
    done = wsap("plugins", "cor")
    assert done.returncode == 2
    assert sentence(done) == "Error: There is no plugin called 'cor'. Did you mean 'core'?"


def test_blocking_what_is_not_there_is_remarked_on(wsap: Run) -> None:
    done = wsap("plugins", "--json", disable="nexus,crafterr")
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert "There is no plugin called 'crafterr'. Did you mean 'crafter'?" in done.stderr


@pytest.mark.parametrize("command", ["plugins", "games", "agents"])
def test_a_listing_in_a_pipe_is_one_line_for_each_without_tabs_or_colour(command: str, wsap: Run) -> None:
    rows = json.loads(wsap(command, "--json", disable="").stdout)
    text = wsap(command, disable="").stdout
    names = [line.split()[0] for line in text.splitlines() if not line.startswith(" ")]
    assert names == [row["name"] for row in rows]
    assert not {"\t", "\x1b"} & set(text)


def test_games_and_agents_as_json_have_what_a_program_needs(wsap: Run) -> None:
    games = {row["name"]: row for row in json.loads(wsap("games", "--json").stdout)}
    assert games["matrix"]["seats"] == [2, 2]
    assert games["matrix"]["timing"] == "simultaneous"
    assert games["matrix"]["usable"] is True
    shown = {"name": "complete_quest", "description": "Complete a quest.", "rarity": "rare"}
    assert shown in games["morrowind"]["achievements"]
    assert games["morrowind"]["terms"]["spawn"] == ["challenging", "random"]
    agents = {row["name"]: row for row in json.loads(wsap("agents", "--json").stdout)}
    assert agents["random"]["games"] == []
    assert agents["tit-for-tat"]["games"]


def test_a_game_is_shown_with_its_achievements_and_the_terms_that_it_takes(wsap: Run) -> None:
    told = wsap("games", "morrowind").stdout
    assert re.search(r"^complete_quest +rare +Complete a quest\.$", told, re.M)
    assert "spawn challenging, random; loadout bare, provisioned; difficulty easy, hard" in told
    assert "terms:" not in wsap("games", "crafter").stdout


def test_a_family_is_shown_with_its_members_and_why_others_can_t_be_played(wsap: Run) -> None:
    told = wsap("games", "openspiel").stdout
    (names,) = [line.split(", ") for line in told.splitlines() if line.startswith("2048, ")]
    assert "kuhn_poker" in names
    assert "crossword" not in names
    assert re.search(r"^crossword +its moves can't be listed$", told, re.M)
    assert told.endswith("Play it: wsap play openspiel:2048\n")
    refused = wsap("games", "openspiel:crossword")
    assert refused.returncode == 2
    assert "crossword of OpenSpiel can't be played: its moves can't be listed." in refused.stderr


def test_notes_below_a_row_keep_to_the_terminals_width_though_the_row_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wsap_core.cli.output.at_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    print_table(("wide", "last"), [("w" * 50, "x")], notes=[["word " * 20]])
    assert all(len(line) <= 40 for line in capsys.readouterr().out.splitlines()[2:])


def at_terminal(environment: dict[str, str], *words: str) -> str:
    """What a person sees."""
    master, slave = pty.openpty()
    process = subprocess.Popen([*WSAP, *words], env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 65536):
            seen += chunk
    except OSError:  # how Linux says that the other end is closed
        pass
    os.close(master)
    assert process.wait() == 0
    return seen.decode()


def test_a_person_sees_a_heading_and_lines_that_fit(own_environment: dict[str, str]) -> None:
    text = at_terminal({**own_environment, "COLUMNS": "60", "TERM": "xterm"}, "plugins")
    heading, *lines = text.splitlines()
    assert heading.split() == ["PLUGIN", "PACKAGE", "STATUS", "PROVIDES"]
    assert all(len(line) <= 60 for line in lines)
    assert "\x1b" not in text  # NO_COLOR


def test_a_person_who_takes_colour_gets_a_bold_heading(own_environment: dict[str, str]) -> None:
    environment = {k: v for k, v in own_environment.items() if k != "NO_COLOR"} | {"TERM": "xterm"}
    assert at_terminal(environment, "games").startswith("\x1b[1mGAME")


# --- what goes wrong ----------------------------------------------------------------------

HOOK = "from wsap_core.hookspecs import hookimpl\n@hookimpl\n"
BROKEN = {
    "import": "import nothing_of_that_name",
    "syntax": "def (",
    "raises": "raise RuntimeError('no\\x1b[2J luck')",
    "a hook raises": f"{HOOK}def wsap_agents():\n    raise OSError('no luck')",
    "wrong spec": f"{HOOK}def wsap_agents():\n    return ['bold']",
    "misspelt": f"{HOOK}def wsap_agent():\n    return []",
}


@pytest.mark.parametrize("code", BROKEN.values(), ids=BROKEN.keys())
@pytest.mark.slow
def test_a_plugin_with_a_fault_is_listed_and_everything_else_works(code: str, wsap: Run, install: Install) -> None:
    install("wsap-faulty", code)
    install("wsap-fishing", plugin("fish", "wsap_fishing:command"))
    rows = {row["name"]: row for row in json.loads(wsap("plugins", "--json").stdout)}
    assert rows["wsap_faulty"]["status"] in ("broken", "warning")
    assert len(rows["wsap_faulty"]["reasons"]) == 1
    assert rows["wsap_fishing"]["status"] == "ok"
    text = wsap("plugins").stdout
    assert "\x1b" not in text
    assert "random" in wsap("agents").stdout
    help_text = wsap("--help").stdout
    assert "fish" in help_text
    assert "There are problems with plugin 'wsap_faulty'" in help_text


FAILING = {
    "no such module": "nowhere_at_all:command",
    "no such attribute": "wsap_fishing:nothing",
    "not a command": "wsap_fishing:wsap_commands",
    "its module raises": "wsap_fishing_broken:command",
}


@pytest.mark.parametrize("factory", FAILING.values(), ids=FAILING.keys())
@pytest.mark.slow
def test_a_command_that_can_not_be_loaded_gives_one_sentence(
    factory: str, wsap: Run, install: Install, tmp_path: Path
) -> None:
    install("wsap-fishing", plugin("fish", factory))
    (tmp_path / "site" / "wsap_fishing_broken.py").write_text("1 / 0")
    done = wsap("fish")
    assert done.returncode == errors.PluginError.exit_code
    assert sentence(done).startswith("Error: The command 'fish' of wsap-fishing ")
    assert wsap("--help").returncode == 0


@pytest.mark.parametrize("name", sorted(KERNEL_COMMANDS))
def test_a_built_in_command_can_not_be_replaced(name: str, wsap: Run, install: Install) -> None:
    path = install("wsap-greedy", plugin(name, "wsap_greedy:command"))
    path.write_text(path.read_text() + "\n@click.command()\ndef command():\n    click.echo('mine now')\n")
    assert "mine now" not in wsap(name, "--help").stdout
    rows = {row["name"]: row for row in json.loads(wsap("plugins", "--json").stdout)}
    assert rows["wsap_greedy"]["reasons"] == [f"The command {name!r} is built in; a plugin can't replace it."]
    assert rows["core"]["status"] == "ok"


def test_built_in_commands_work_with_the_kernels_plugin_blocked(wsap: Run) -> None:
    rows = json.loads(wsap("plugins", "--json", disable="core,nexus,crafter").stdout)
    assert {row["name"] for row in rows if row["status"] == "disabled"} == {"core", "nexus", "crafter"}


@pytest.mark.slow
def test_a_command_that_two_plugins_claim_names_both(wsap: Run, install: Install) -> None:
    install("wsap-a", plugin("fish", "a:b"))
    install("wsap-b", plugin("fish", "a:b"))
    done = wsap("fish")
    assert done.returncode == errors.DuplicateNameError.exit_code
    told = sentence(done)
    assert "'wsap_a' (wsap-a) and 'wsap_b' (wsap-b)" in told
    assert "WSAP_DISABLE_PLUGINS=wsap_b" in told
    assert "fish" not in wsap("--help").stdout.partition("Commands:")[2].split()
    assert all(
        "fish" in str(row["reasons"]) for row in json.loads(wsap("plugins", "--json").stdout) if "wsap_" in row["name"]
    )


@pytest.mark.parametrize(("name", "distribution"), DISTRIBUTION_OF.items())
def test_the_kernel_alone_says_what_to_install(name: str, distribution: str, own_environment: dict[str, str]) -> None:
    # As where nothing but the kernel and what it needs is installed.
    program = (
        "import sys, wsap_core.discovery as d\n"
        "find = d.find_plugins\n"
        "d.find_plugins = lambda: [f for f in find() if f.name not in ('nexus', 'check', 'mcp', 'openenv')]\n"
        "import wsap_core.host as h; h.find_plugins = d.find_plugins\n"
        "from wsap_core.cli import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", program, name], env=own_environment, capture_output=True, text=True)
    assert done.returncode == errors.MissingServiceError.exit_code
    assert sentence(done) == f"Error: `wsap {name}` needs {distribution}: {install_line(distribution)}"


def test_a_runtime_that_is_blocked_is_not_called_missing(wsap: Run) -> None:
    done = wsap("play", disable="nexus")
    assert "comes with wsap-nexus, which is disabled" in sentence(done)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["plugin"], 2, "Error: There is no command called 'plugin'. Did you mean 'plugins'?"),
        (["wibble"], 2, "Error: There is no command called 'wibble'. `wsap --help` lists all commands."),
        (["--jsn"], 2, "Error: No such option '--jsn'"),
        (["plugins", "--jsn"], 2, "Did you mean '--json'? See `wsap plugins --help`."),
        (["games", "A", "B"], 2, "See `wsap games --help`."),
        (["\x1b[2J"], 2, "Error: There is no command called '\\x1b[2J'."),
    ],
)
def test_what_makes_no_sense_gets_one_sentence(words: list[str], status: int, told: str, wsap: Run) -> None:
    done = wsap(*words)
    assert done.returncode == status
    assert told in sentence(done)


RAISING = """
import click
from wsap_core.errors import *
from wsap_core.hookspecs import hookimpl
from wsap_core.specs import CommandSpec
from wsap_core.cli.params import SEED, STEPS

@hookimpl
def wsap_commands():
    return [CommandSpec("fail", "Fails.", "wsap_failing:fail")]

@click.command()
@click.option("--seed", type=SEED)
@click.option("--steps", type=STEPS)
@click.argument("expression", default="None")
def fail(expression, seed, steps):
    value = eval(expression)
    if isinstance(value, BaseException):
        raise value
    click.echo(value)
"""


@pytest.mark.parametrize("error", [getattr(errors, name) for name in dir(errors) if name.endswith("Error")], ids=str)
def test_an_error_of_the_tree_gives_its_sentence_and_exit_status(error: Any, wsap: Run, install: Install) -> None:
    install("wsap-failing", RAISING)
    arguments = "'game', 'x', []" if error is errors.UnknownNameError else "'Bad \\x1b[2J\\nluck.'"
    done = wsap("fail", f"{error.__name__}({arguments})")
    assert done.returncode == error.exit_code
    assert sentence(done).endswith("There is no game called 'x'." if "game" in arguments else "Bad  [2J luck.")


@pytest.mark.parametrize(
    ("expression", "status", "told"),
    [
        (
            "ValueError('odd')",
            1,
            "Error: ValueError: odd. For a traceback, run `wsap --debug fail ValueError('odd')`.",
        ),
        ("ValueError()", 1, "Error: ValueError."),
        ("RecursionError()", 1, "Error: RecursionError."),
        ("BrokenPipeError(32, 'the model hung up')", 1, "Error: BrokenPipeError: [Errno 32] the model hung up."),
        ("KeyboardInterrupt()", 130, "Interrupted."),
        ("EOFError()", 1, "Aborted."),
        ("click.Abort()", 1, "Aborted."),
        ("click.ClickException('odd')", 1, "Error: odd."),
        ("SystemExit(9)", 9, ""),
    ],
)
def test_whatever_happens_nobody_sees_a_traceback(
    expression: str, status: int, told: str, wsap: Run, install: Install
) -> None:
    install("wsap-failing", RAISING)
    done = wsap("fail", expression)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stderr.strip().startswith(told)


def test_debug_shows_where_it_happened_and_still_the_sentence(wsap: Run, install: Install) -> None:
    install("wsap-failing", RAISING)
    done = wsap("--debug", "fail", "ValueError('odd \\x1b[2J')")
    assert "Traceback (most recent call last)" in done.stderr
    assert "in fail" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("Error: ValueError: odd")
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--seed", "-3"], "Invalid value for '--seed': '-3' is not a whole number from 0 to 2147483647."),
        (["--seed", "x"], "'x' is not a whole number from 0 to 2147483647."),
        (["--seed", "1e3"], "'1e3' is not a whole number"),
        (["--seed", "1_0"], "'1_0' is not a whole number"),
        (["--seed", "٣"], "is not a whole number"),
        (["--seed", "2147483648"], "is not a whole number from 0 to 2147483647."),
        (["--seed", "9" * 9999], "is not a whole number"),
        (["--steps", "0"], "'0' is not a whole number from 1 to 1000000000000."),
        (["--steps", "many"], "'many' is not a whole number from 1 to"),
        (["--steps", "9" * 22], "is not a whole number from 1 to 1000000000000."),
    ],
)
def test_a_wrong_number_is_refused_in_one_clear_sentence(
    words: list[str], told: str, wsap: Run, install: Install
) -> None:
    install("wsap-failing", RAISING)
    done = wsap("fail", *words)
    assert done.returncode == 2
    assert told in sentence(done)


def test_the_seeds_limit_is_the_kernels() -> None:
    from wsap_core.cli.params import SEED_LIMIT
    from wsap_core.seams.context import SEED_LIMIT as OF_CONTEXT

    assert SEED_LIMIT == OF_CONTEXT


def test_ctrl_c_is_quiet_and_has_its_status(own_environment: dict[str, str], install: Install) -> None:
    install("wsap-failing", RAISING)
    # A signal is handled between two short waits; one long wait could begin just after it came.
    sleeps = "[__import__('time').sleep(0.05) for _ in iter(int, 1)]"
    waits = f"[click.echo('ready'), __import__('sys').stdout.flush(), {sleeps}]"
    process = subprocess.Popen(
        [*WSAP, "fail", waits], env=own_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=300)
    assert process.returncode == 130
    assert told.strip() == "Interrupted."


@pytest.mark.slow
def test_nobody_reading_is_not_an_error_worth_words(own_environment: dict[str, str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = subprocess.Popen(
        [*WSAP, "schema"], env=own_environment, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    _, told = process.communicate(timeout=300)
    assert told == ""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_can_not_be_written_is_told(own_environment: dict[str, str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*WSAP, "plugins"], env=own_environment, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_terminal_without_the_characters_shows_their_numbers(wsap: Run, install: Install) -> None:
    install("wsap-fishing", plugin("fish", "a:b", "Лови рыбу \ud83d."))
    done = wsap("--help", PYTHONIOENCODING="latin-1:strict", PYTHONUTF8="0")
    assert done.returncode == 0, done.stderr
    assert "\\u041b" in done.stdout


# --- schema -------------------------------------------------------------------------------


@pytest.fixture
def schema(wsap: Run) -> Run:
    """Run `wsap schema`, which comes with the runtime."""
    return lambda *words: wsap("schema", *words, disable="")


@pytest.mark.slow
def test_schemas_are_printed_alone_together_and_into_a_folder(schema: Run, tmp_path: Path) -> None:
    names = schema("--list").stdout.split()
    assert "Observation" in names
    assert json.loads(schema("Goal").stdout)["$ref"] == "#/$defs/Goal"
    assert set(json.loads(schema().stdout)["$defs"]) > set(names) - {"Envelope"}
    done = schema("--output", str(tmp_path / "deep" / "folder"))
    assert done.returncode == 0
    assert {path.stem for path in (tmp_path / "deep" / "folder").iterdir()} == set(names)
    assert schema("Goal", "--output", str(tmp_path / "one")).stdout.startswith("Wrote 1 schema ")


@pytest.mark.slow
def test_a_schema_that_can_not_be_given_is_told(schema: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for words, told in (
        (["--output", str(tmp_path / "file" / "folder")], "can't be written"),
        (["Observatoin"], "Did you mean 'Observation'"),
    ):
        done = schema(*words)
        assert done.returncode == 2
        assert told in sentence(done)


# --- completion ---------------------------------------------------------------------------


def test_the_shell_completes_commands_without_importing_them(wsap: Run, install: Install) -> None:
    install("wsap-fishing", plugin("fish", "nowhere_at_all:command"))
    done = wsap(_WSAP_COMPLETE="bash_complete", COMP_WORDS="wsap fi", COMP_CWORD="1")
    assert done.stdout.splitlines() == ["plain,fish"]


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("wsap games ec", ["plain,echo"]),
        ("wsap agents alw", ["plain,always"]),
        ("wsap play ec", ["plain,echo"]),
        ("wsap play echo --agent random-", ["plain,random-legal"]),
        ("wsap play echo --seat seat-1=alw", ["plain,seat-1=always"]),
    ],
)
def test_the_shell_completes_games_and_agents(typed: str, completed: list[str], wsap: Run) -> None:
    done = wsap(_WSAP_COMPLETE="bash_complete", COMP_WORDS=typed, COMP_CWORD=str(len(typed.split()) - 1), disable="")
    assert done.stdout.splitlines() == completed


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize("breaks", ["=:", ":"])
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("play echo --seat seat-1=alw", "seat-1=always "),
        ("play echo --seat=seat-1=alw", "--seat=seat-1=always "),
        ("play echo --agent random-", "--agent random-legal "),
    ],
)
def test_tab_in_a_real_bash_completes_a_name_after_an_equals_sign(
    typed: str, completed: str, breaks: str, wsap: Run, tmp_path: Path
) -> None:
    script = tmp_path / "complete.sh"
    script.write_text(wsap(_WSAP_COMPLETE="bash_source").stdout, encoding="utf-8")
    folder = Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "INPUTRC": os.devnull,
                   "WSAP_HOME": str(tmp_path), "PS1": "> ", "TERM": "dumb", "COLUMNS": "200"}  # fmt: skip
    us, them = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-i"], stdin=them, stdout=them, stderr=them, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(them)
    try:
        os.write(us, f". {script}; COMP_WORDBREAKS=$' \\n{breaks}'; echo rea''dy\n".encode())
        _read_until(us, "ready\r")
        os.write(us, f"wsap {typed}\t".encode())
        assert completed in _read_until(us, completed)
    finally:
        shell.kill()
        shell.wait()
        os.close(us)


def _read_until(terminal: int, wanted: str) -> str:
    """Return what a terminal shows until that is in it, or for two minutes."""
    shown = ""
    while wanted not in shown and select.select([terminal], [], [], 120)[0]:
        shown += os.read(terminal, 4096).decode(errors="replace")
    return shown


# --- check --------------------------------------------------------------------------------

LIAR = """
from wsap_core import Action, ActionDef, ActionResult, ActionSpace, Observation


class Liar:
    '''Prints what nobody asked for, and says that it is over when it is not.'''

    game_description = "A game that does not keep its promises."
    action_space = ActionSpace([ActionDef("wait", "Wait.")])

    def observe(self) -> Observation:
        print("noise")
        return Observation()

    def act(self, action: Action) -> ActionResult:
        raise RuntimeError("no \x1b[2J luck")

    def reset(self) -> Observation:
        return self.observe()
"""


@pytest.mark.slow
def test_a_game_that_keeps_its_promises_passes_the_check(wsap: Run) -> None:
    done = wsap("check", "echo", "--steps", "20", "--json")
    report = json.loads(done.stdout)
    assert report["ok"] is True, done.stdout
    assert (report["steps"], report["seed"]) == (20, 0)
    assert done.returncode == 0
    assert wsap("check", "echo", "--steps", "20").returncode == 0


def test_a_game_that_does_not_is_told_and_its_own_printing_kept_out_of_the_report(wsap: Run, tmp_path: Path) -> None:
    (tmp_path / "liar.py").write_text(LIAR)
    done = wsap("check", f"{tmp_path}/liar.py:Liar", "--steps", "5", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["ok"] is False
    done = wsap("check", f"{tmp_path}/liar.py:Liar", "--steps", "5")
    assert done.returncode == 1
    assert "RuntimeError" in done.stdout
    assert "\x1b" not in done.stdout
    assert "noise" not in done.stdout


@pytest.mark.parametrize(
    ("game", "told"),
    [("ecko", "Did you mean 'echo'?"), ("./nowhere.py:Game", "nowhere.py"), ("wsap_core.version:Game", "Game")],
)
def test_a_game_that_is_not_there_is_told(game: str, told: str, wsap: Run) -> None:
    done = wsap("check", game)
    assert done.returncode == 2
    assert told in sentence(done)
