"""`wsap tossim fork`: a game gone on with from any of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from wsap_tossim.replay.record import Record


@click.command()
@click.argument("source", metavar="FILE_OR_RUN")
@click.option("--at", type=click.IntRange(0), metavar="ROUND", help="How many rounds are kept; --rounds lists them.")
@click.option("--rounds", is_flag=True, help="List the game's rounds, and do nothing else.")
@click.option(
    "--agent", default="scripted", show_default=True, metavar="AGENT", help="Who plays on: scripted or random."
)
@click.option("--seat", "seats", multiple=True, metavar="PLAYER=AGENT",
              help="Who plays on for one player, by name or number from 1; may be repeated.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, help="Of those who play on.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="The game's record to write (town.json).")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@click.option("--database", metavar="PATH", help="For a RUN: the database, as `wsap play` takes it.")
def fork(
    source: str, *, at: int | None, rounds: bool, agent: str, seats: tuple[str, ...], seed: int, out: Path | None,
    force: bool, database: str | None,
) -> None:  # fmt: skip
    """Go on with a game from any of its rounds, otherwise than it went.

    FILE is a game's record (town.json) or an exported run; RUN is the id of a recorded run, the beginning
    or end of it, or last. What was before the round stays as it was, to the letter; from there on scripted
    or random players decide for everybody. What comes of it is a record that `wsap tossim replay`, `fork`
    and `export` read.
    """
    # Deferred for weight: the engine and the players.
    from wsap_core.errors import UsageError
    from wsap_tossim.cli.replay import record_in, record_of
    from wsap_tossim.cli.sources import is_path
    from wsap_tossim.fork import forked
    from wsap_tossim.replay.record import save_record

    record = record_in(Path(source)) if is_path(source) else record_of(source, database)
    if rounds:
        _list(record)
        return
    if at is None:
        raise UsageError(f"Say where to fork: --at 0 to --at {record.game.round}; --rounds lists the rounds.")
    stem = Path(source).with_suffix("") if is_path(source) else Path(_plain(source))
    target = out or stem.with_name(f"{stem.name}-fork-{at}.json")
    if target.exists() and not force:
        raise UsageError(f"There is a file {target} already; choose another name, or write over it with --force.")
    made = forked(record, at, _minds(seats, record.names), seed=seed, otherwise=agent)
    save_record(target, made)
    click.echo(f"{at} rounds kept, {made.game.round - at} played. {_outcome(made)}")
    click.echo(f"Wrote {target}. Look at it: wsap tossim replay {target}", err=True)


def _minds(words: Sequence[str], names: Sequence[str]) -> dict[int, str]:
    from wsap_core.errors import UsageError
    from wsap_tossim.replay.story import view_named

    found: dict[int, str] = {}
    for word in words:
        name, equals, agent = word.rpartition("=")
        player = view_named(name.removeprefix("player-"), names) if equals else None
        if not isinstance(player, int):
            raise UsageError(f"--seat takes PLAYER=AGENT, such as {names[0]}=random, not {word[:60]!r}.")
        found[player] = agent.strip()
    return found


def _list(record: Record) -> None:
    from wsap_core.untrusted import one_line
    from wsap_tossim.fork import rounds_of

    for number, day, phase, asked in rounds_of(record.game):
        who = ", ".join(one_line(record.names[p]) for p in asked)
        click.echo(f"{number:>5}  {'night' if phase == 'night' else 'day'} {day}, {phase}: {who}")
    click.echo(f"{record.game.round:>5}  {_outcome(record)}")


def _outcome(record: Record) -> str:
    from wsap_core.untrusted import one_line

    ending = record.game.ending
    if ending is None:
        return "The game has not ended."
    won = ", ".join(one_line(record.names[n]) for n in ending.winners) or "nobody"
    return f"{ending.reason} Winners: {won}."


def _plain(run: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in run)[:80] or "town"
