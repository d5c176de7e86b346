"""`wsap tossim fork`: continue a game differently from any of its rounds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wsap_core.cli.grouped import GroupedCommand
from wsap_core.cli.params import SEED, WholeNumber

if TYPE_CHECKING:
    from wsap_tossim.fork import Round
    from wsap_tossim.replay.record import Record

LONGEST = 60
"""Maximum characters of a speech in the list of rounds."""


@click.command(
    cls=GroupedCommand,
    examples=(
        "wsap tossim fork town.json --list",
        "wsap tossim fork town.json --at 12 --set 'player-3=vote Player 4'",
        "wsap tossim fork last --at 12 --agent ollama/qwen3:8b",
    ),
)
@click.argument("source", metavar="FILE_OR_RUN")
@click.argument("play_options", metavar="[-- PLAY_OPTION]...", nargs=-1, type=click.UNPROCESSED)
@click.option("--at", type=WholeNumber(0), metavar="ROUND", help="Number of rounds to keep; --list lists them.")
@click.option("--list", "--rounds", "rounds", is_flag=True,
              help="List the game's rounds and decisions, and exit.")  # fmt: skip
@click.option("--set", "typed", multiple=True, metavar="PLAYER=ACTION",
              help="A player's decision in round --at, typed as at the keyboard: 'player-3=vote Player 4'; "
              "may be repeated.")  # fmt: skip
@click.option("--others", type=click.Choice(["keep", "ask"]), default="keep", show_default=True,
              help="With --set: keep the others' decisions in that round, or ask them again.")  # fmt: skip
@click.option("--agent", metavar="AGENT",
              help="Who continues the game: scripted (default), random, an agent, or a model's address.")  # fmt: skip
@click.option("--seat", "seats", multiple=True, metavar="PLAYER=AGENT",
              help="Who continues for one player, by name or number from 1; human for a person; "
              "may be repeated.")  # fmt: skip
@click.option("--model", metavar="ADDRESS", help="Language model that continues for all players not named with --seat.")
@click.option(
    "--agent-option", "agent_options", multiple=True, metavar="KEY=VALUE", help="Agent option, as in `wsap play`."
)
@click.option("--run", "as_run", is_flag=True, help="Record a run, even with scripted players only.")
@click.option("--json", "as_json", is_flag=True, help="With a run: print JSON only.")
@click.option("--seed", type=SEED, default=0, show_default=True, help="Seed of the players that continue.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="Output file for the game's record (town.json), if no run is recorded.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option("--database", metavar="PATH", help="For runs: the database, as in `wsap play`.")
def fork(
    source: str, *, play_options: tuple[str, ...], at: int | None, rounds: bool, typed: tuple[str, ...], others: str,
    agent: str | None, seats: tuple[str, ...], model: str | None, agent_options: tuple[str, ...], as_run: bool,
    as_json: bool, seed: int, out: Path | None, force: bool, database: str | None,
) -> None:  # fmt: skip
    """Continue a game differently from any of its rounds.

    FILE is a game's record (town.json) or an exported run; RUN is a recorded run: its id, the beginning or end of
    the id, or last. Everything before round --at stays unchanged, and --set decides for players in that round.
    If only scripted or random players continue, the new game is written as a record. With agents, models or a
    person it is recorded as a run, and options of `wsap play` can follow after --. `wsap tossim replay`, `fork`
    and `export` read both.
    """
    # Deferred for weight: the engine and the players.
    from wsap_core.errors import UsageError
    from wsap_core.untrusted import single_line
    from wsap_tossim.cli.play_on import play_on, seating
    from wsap_tossim.cli.sources import file_name, found, is_path
    from wsap_tossim.forced_choices import forced_choices_of
    from wsap_tossim.fork import DECIDERS, forked, parted
    from wsap_tossim.replay.record import save_record

    game = found(source, database)
    record = game.record
    if rounds:
        if play_options:
            raise UsageError(
                f"--list lists the rounds of one game; leave out {single_line(' '.join(play_options))[:60]!r}."
            )
        _list(record)
        return
    if at is None:
        raise UsageError(f"Say where to fork: --at 0 to --at {record.game.round}; --list lists the rounds.")
    if others == "ask" and not typed:
        raise UsageError("--others has an effect only with --set; leave it out.")
    named = _seated(seats, record.names)
    picked, ask_others = forced_choices_of(typed, record.names, record.game), others == "ask"
    if as_run or as_json or model or agent_options or play_options or not {agent, *named.values()} <= {None, *DECIDERS}:
        if out is not None or force:
            raise UsageError(
                "--out and --force apply only to records. With agents, models or a person the game is a run in the "
                "database; leave them out (`wsap export last --output FILE` exports it)."
            )
        told = [*seating(agent, named, model), "--seed", str(seed), *(["--json"] if as_json else [])]
        told += [] if database is None else ["--database", database]
        told += [word for pair in agent_options for word in ("--agent-option", pair)]
        play_on(parted(record, at, picked, ask_others=ask_others), game.options, [*told, *play_options])
        return
    stem = Path(source).with_suffix("") if is_path(source) else Path(file_name(source))
    target = out or stem.with_name(f"{stem.name}-fork-{at}.json")
    if target.exists() and not force:
        raise UsageError(f"{target} already exists; choose another name, or overwrite it with --force.")
    from wsap_core.protocol.lines import plural  # deferred for weight

    otherwise = agent or "scripted"
    made = forked(record, at, named, seed=seed, otherwise=otherwise, forced_choices=picked, ask_others=ask_others)
    save_record(target, made)
    picking = f", {len(picked)} set by hand" if picked else ""
    kept = plural(at, "round")
    click.echo(f"{kept} kept, {made.game.round - at} played{picking}. {_outcome(made)}")
    click.echo(f"Wrote {target}. View it with: wsap tossim replay {target}", err=True)


def _seated(words: Sequence[str], names: Sequence[str]) -> dict[int, str]:
    from wsap_core.errors import UsageError
    from wsap_core.untrusted import single_line
    from wsap_tossim.forced_choices import player_named

    seated: dict[int, str] = {}
    for word in words:
        name, equals, agent = word.partition("=")
        player = player_named(name, names) if equals and agent.strip() else None
        if player is None:
            people = ", ".join(map(single_line, names))
            raise UsageError(
                f"--seat takes PLAYER=AGENT, such as '{single_line(names[0])}=random', not {single_line(word)[:60]!r}; "
                f"the players are: {people}."
            )
        if player in seated:
            raise UsageError(f"--seat names {single_line(names[player])} twice.")
        seated[player] = agent.strip()
    return seated


def _list(record: Record) -> None:
    from wsap_core.untrusted import single_line
    from wsap_tossim.fork import rounds_of

    for one in rounds_of(record.game):
        when = f"{'night' if one.phase == 'night' else 'day'} {one.day}, {one.phase}"
        click.echo(f"{one.number:>5}  {when}: {_decided(one, record.names)}")
    asked = ", ".join(single_line(record.names[n]) for n in record.game.waiting)
    click.echo(f"{record.game.round:>5}  {_outcome(record)}{f' Asked next: {asked}.' if asked else ''}")


def _decided(one: Round, names: Sequence[str]) -> str:
    """Return the decisions of a round, as typed after `--set`."""
    from wsap_core.untrusted import single_line

    found = []
    for entry in one.chosen:
        said = single_line(entry.text)
        said = f"{said[:LONGEST].rstrip()}..." if len(said) > LONGEST else said
        deed = " ".join(part for part in (entry.verb, *(single_line(names[n]) for n in entry.targets), said) if part)
        found.append(f"{single_line(names[entry.player])}={deed}{' (made for the player)' if entry.forced else ''}")
    return "; ".join(found)


def _outcome(record: Record) -> str:
    from wsap_core.untrusted import single_line

    ending = record.game.ending
    if ending is None:
        return "The game has not ended."
    won = ", ".join(single_line(record.names[n]) for n in ending.winners) or "nobody"
    return f"{ending.reason} Winners: {won}."
