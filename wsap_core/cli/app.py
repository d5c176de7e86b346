"""The `wsap` group: finds and runs the command that was typed, and reports errors in one sentence."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import wsap_core
from wsap_core.cli.cache import Catalogue
from wsap_core.cli.commands import DISTRIBUTION_OF, KERNEL_COMMANDS
from wsap_core.cli.grouped import Commands, GroupedCommand, LazyGroup, load_command
from wsap_core.untrusted import single_line, strip_control

if TYPE_CHECKING:
    from wsap_core.cli.rows import CommandRow

PROGRAM = "wsap"
INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells: 128 + SIGINT."""
BROKEN_PIPE = 141
"""Exit status after a broken output pipe, as in shells: 128 + SIGPIPE."""


class State:
    """The state shared by the commands of one invocation, as click's `obj`."""

    def __init__(self) -> None:
        self.debug = False
        """Whether `--debug` was given."""
        self._catalogue: Catalogue | None = None

    def catalogue(self, *, refresh: bool = False) -> Catalogue:
        """Return what is installed, read once per invocation or to `refresh`."""
        if self._catalogue is None or refresh:
            self._catalogue = Catalogue.current(refresh=refresh)
        return self._catalogue


class RootGroup(LazyGroup):
    """`wsap` itself, with the commands of the kernel and of the installed plugins."""

    def commands_of(self, ctx: click.Context) -> Commands:
        """Return all usable commands, sorted by name."""
        plugins = {name: (row["factory"], single_line(row["summary"])) for name, row in _from_plugins(ctx).items()}
        return dict(sorted({**plugins, **KERNEL_COMMANDS}.items()))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import and return a command; `WsapError` if there is none, it is not installed, or it can't be loaded."""
        if cmd_name in KERNEL_COMMANDS:
            return load_command(KERNEL_COMMANDS[cmd_name][0])
        row = _from_plugins(ctx).get(cmd_name)
        return _load(row) if row else _missing(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands into the help, and name plugins with problems."""
        super().format_commands(ctx, formatter)
        rows = _state(ctx).catalogue().plugins
        troubled = [row["name"] for row in rows if row["reasons"] and row["status"] != "disabled"]
        if troubled:
            formatter.write_paragraph()
            named = ", ".join(f"plugin {single_line(name)!r}" for name in troubled)
            formatter.write_text(f"There are problems with {named}; see `wsap plugins`.")


def _state(ctx: click.Context) -> State:
    return ctx.find_root().ensure_object(State)


def _from_plugins(ctx: click.Context) -> dict[str, CommandRow]:
    entries = _state(ctx).catalogue().commands
    return {e["name"]: e for e in entries if e["usable"] and e["name"] not in KERNEL_COMMANDS}


def _load(entry: CommandRow) -> click.Command:
    """Import and return a plugin's command; `PluginError` if that fails."""
    from wsap_core.errors import PluginError, WsapError  # deferred for weight
    from wsap_core.factories import load

    origin = f"The command {entry['name']!r} of {entry['distribution']}"
    try:
        command = load(entry["factory"]) if entry["factory"] else _registered(entry["name"])
        if not isinstance(command, click.Command) and callable(command):
            command = command()
    except WsapError as error:
        raise PluginError(f"{origin} can't be loaded: {error}") from error
    except Exception as error:
        raise PluginError(f"{origin} can't be loaded: {type(error).__name__}: {error}.") from error
    if not isinstance(command, click.Command):
        raise PluginError(f"{origin} is a {type(command).__name__}, not a click command.")
    return command


def _registered(name: str) -> Any:
    # Any: a plugin may have registered anything.
    from wsap_core.host import PluginHost

    return PluginHost.discovered().commands.get(name).factory


def _missing(ctx: click.Context, name: str) -> click.Command:
    from wsap_core.errors import MissingServiceError, PluginError, UnknownNameError
    from wsap_core.installing import install_line

    catalogue = _state(ctx).catalogue()
    if any(entry["name"] == name for entry in catalogue.commands):
        _registered(name)  # raises: several plugins claim it
    if distribution := DISTRIBUTION_OF.get(name):
        rows = [row for row in catalogue.plugins if row["distribution"] == distribution and row["status"] != "ok"]
        if rows:
            fault = f"which is {rows[0]['status']}: {rows[0]['reasons'][0]}"
            raise PluginError(f"`wsap {name}` comes with {distribution}, {fault}")
        raise MissingServiceError(f"`wsap {name}` needs {distribution}: {install_line(distribution)}")
    known = {*KERNEL_COMMANDS, *_from_plugins(ctx), *DISTRIBUTION_OF}
    raise UnknownNameError("command", name, known, hint="`wsap --help` lists all commands.")


def _set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    _state(ctx).debug = value


@click.group(
    cls=RootGroup,
    name=PROGRAM,
    context_settings={"help_option_names": ["-h", "--help"]},
    examples=("wsap play crafter", "wsap help nexus agents", "wsap games crafter"),
)
@click.version_option(wsap_core.__version__, "-V", "--version", prog_name=PROGRAM)
@click.option(
    "--debug", is_flag=True, is_eager=True, expose_value=False, callback=_set_debug,
    help="Show a traceback if there is an error.",
)  # fmt: skip
def wsap() -> None:
    """Let agents play games through the Wild Spaces Agent Protocol."""


@click.command("help", cls=GroupedCommand, examples=("wsap help play", "wsap help nexus agents"))
@click.argument("words", metavar="[COMMAND]...", nargs=-1)
@click.pass_context
def help_command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command."""
    here = ctx.find_root()
    for word in words:
        group = here.command
        found = group.resolve_command(here, [word])[1] if isinstance(group, click.Group) else None
        if found is None:
            raise click.UsageError(f"`{here.command_path}` has no command {word!r}.", here)
        here = click.Context(found, parent=here, info_name=word)
    click.echo(here.get_help())


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; raises nothing but SystemExit."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    state = State()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a character gets its code instead.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _invoke(typed, state)
        sys.stdout.flush()
        return code
    except (Exception, KeyboardInterrupt) as error:
        return _report(error, state, typed)


def _invoke(typed: list[str], state: State) -> int:
    if f"_{PROGRAM.upper()}_COMPLETE" in os.environ:
        from click.shell_completion import BashComplete

        BashComplete.source_template = Path(__file__).with_name("complete.bash").read_text("utf-8")
        wsap.main(prog_name=PROGRAM, obj=state)  # answers the shell and exits
    try:
        with wsap.make_context(PROGRAM, typed, obj=state) as ctx:
            wsap.invoke(ctx)
    except click.exceptions.Exit as done:
        return done.exit_code
    return 0


def _report(error: BaseException, state: State, typed: list[str]) -> int:
    if isinstance(error, OSError) and error.errno == errno.EPIPE and _nobody_reads():
        # Otherwise Python fails to flush the buffered output at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if state.debug:
        import traceback  # deferred for weight

        click.echo(strip_control("".join(traceback.format_exception(error))), err=True, nl=False)
    sentence, code = _told(error, typed)
    click.echo(sentence, err=True)
    return code


def _nobody_reads() -> bool:
    """Return whether the broken pipe was that of the output, rather than one of the command's."""
    import select  # deferred for weight

    if not hasattr(select, "poll"):
        return True  # Windows, where this can't be determined
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def _told(error: BaseException, typed: list[str]) -> tuple[str, int]:
    from wsap_core.errors import RunInterruptedError, WsapError  # deferred for weight

    if isinstance(error, KeyboardInterrupt):
        return "Interrupted.", INTERRUPTED
    if isinstance(error, click.Abort | EOFError):
        return "Aborted.", 1
    if isinstance(error, RunInterruptedError):
        return single_line(error), error.exit_code
    if isinstance(error, WsapError):
        return f"Error: {single_line(error)}", error.exit_code
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else PROGRAM
        return f"Error: {_sentence(error.format_message())} See `{where} --help`.", error.exit_code
    if isinstance(error, click.ClickException):
        return f"Error: {_sentence(error.format_message())}", error.exit_code
    what = _sentence(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    return f"Error: {what} For a traceback, run `{PROGRAM} --debug {single_line(' '.join(typed))}`.", 1


def _sentence(text: str) -> str:
    line = single_line(text)
    return line if line.endswith((".", "!", "?")) else line + "."
