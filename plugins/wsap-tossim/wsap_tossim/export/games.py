"""Games as lines of the two export formats."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any, Literal

from wsap_core.errors import UsageError
from wsap_llm.export import Dialect, TurnMessages, system_prompts, turn_messages
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.export.lines import ChatLine, Decision, Done, EpisodeLine, Message
from wsap_tossim.export.walk import Source, Turn, Walked, walk
from wsap_tossim.plugin import wsap_adapters

__all__ = ["Advantage", "Tally", "Wanted", "chat_lines", "episode_lines", "with_advantage"]

Advantage = Literal["none", "faction", "role"]


@dataclass(frozen=True)
class Wanted:
    """Which turns are exported, and how."""

    dialect: Dialect = "tags"
    inline: bool = True
    """See `wsap_llm.export.turn_messages`."""
    winners: bool = False
    """Only players who won."""
    roles: Sequence[str] = ()
    """Final roles; all if empty."""
    factions: Sequence[str] = ()
    """Final factions; all if empty."""
    played_by: Sequence[str] = ()
    """Models or agents that played the seat; all if empty."""
    forced: bool = False
    """Whether to keep turns that were decided for the player."""
    sent: bool = True
    """Whether turns start with the recorded prompt, if there is one in this dialect, rather than the standard one."""

    def __post_init__(self) -> None:
        known = {role.faction.value for role in ROLES.values()}
        for role in self.roles:
            if role not in ROLES:
                raise UsageError(f"There is no role {role[:40]!r}; there are: {', '.join(ROLES)}.")
        for faction in self.factions:
            if faction not in known:
                raise UsageError(f"There is no faction {faction[:40]!r}; there are: {', '.join(sorted(known))}.")

    def takes(self, role: str, mind: str, *, won: bool | None) -> bool:
        """Return whether a player is wanted."""
        return not (
            (self.winners and not won)
            or (self.roles and role not in self.roles)
            or (self.factions and ROLES[role].faction.value not in self.factions)
            or (self.played_by and mind not in self.played_by)
        )


@dataclass
class Tally:
    """Counts of an export."""

    games: int = 0
    lines: int = 0
    turns: int = 0
    forced: int = 0
    """Turns omitted because they were decided for the player."""
    unreadable: int = 0
    """Turns omitted because they would not parse to the recorded action."""
    sent: int = 0
    """Turns that start with the recorded prompt."""
    translated: int = 0
    """Turns whose models were asked in the other dialect."""
    unfinished: list[str] = field(default_factory=list)
    """Games omitted because they are unfinished."""
    rewards: dict[str, list[float]] = field(default_factory=dict)
    """Final faction or role -> the rewards of all such players in all finished games, exported or not."""


@dataclass(frozen=True)
class _Player:
    walked: Walked
    source: Source
    number: int
    system: str
    dialect: Dialect
    sent: bool
    """Whether its turns start with the recorded prompt."""

    @property
    def role(self) -> str:
        return self.walked.game.state.players[self.number].role.name

    @property
    def won(self) -> bool | None:
        ending = self.walked.game.ending
        return None if ending is None else self.number in ending.winners

    @property
    def mind(self) -> str:
        return self.source.played_by[self.number]

    def head(self) -> dict[str, Any]:
        """Return the fields that every line has."""
        return {
            "game": self.source.id,
            "player": self.number,
            "name": self.source.options.names[self.number],
            "mind": self.mind,
            "role": self.role,
            "faction": ROLES[self.role].faction.value,
            "dialect": self.dialect,
        }


def _players(source: Source, wanted: Wanted, tally: Tally) -> Iterator[_Player]:
    walked = walk(source)
    tally.games += 1
    (spec,) = wsap_adapters()
    told = zip(walked.descriptions, walked.spaces, strict=True)
    systems = asyncio.run(system_prompts(tuple(told), wanted.dialect, game_name=spec.name, objective=spec.objective))
    for number, system in enumerate(systems):
        style = source.styles[number] if source.styles else ""
        sent = [turn.sent for turn in walked.turns if turn.player == number and turn.sent]
        own = wanted.sent and style == wanted.dialect and bool(sent)
        player = _Player(walked, source, number, sent[0][0][1] if own else system, wanted.dialect, own)
        if player.won is not None:
            for group in (player.role, f"faction {ROLES[player.role].faction.value}"):
                tally.rewards.setdefault(group, []).append(float(player.won))
        if wanted.takes(player.role, player.mind, won=player.won):
            yield player


def _turns(player: _Player, wanted: Wanted, tally: Tally) -> Iterator[tuple[Turn, TurnMessages]]:
    for turn in player.walked.turns:
        if turn.player != player.number:
            continue
        if turn.forced and not wanted.forced:
            tally.forced += 1
            continue
        sent = player.sent and bool(turn.sent)
        begins = turn.sent[1:] if sent else None
        said = turn_messages(turn, wanted.dialect, inline=wanted.inline, begins=begins)
        if said is None:
            tally.unreadable += 1
            continue
        tally.turns += 1
        tally.sent += sent
        tally.translated += wanted.sent and bool(turn.sent) and not sent
        yield turn, said


def _messages(said: TurnMessages) -> list[Message]:
    return [Message(role=role, content=text) for role, text in said.messages]  # type: ignore[arg-type]  # checked there


def chat_lines(sources: Iterable[Source], wanted: Wanted, tally: Tally) -> Iterator[ChatLine]:
    """Yield one line for each turn, and count the omitted ones.

    Raises:
        SnapshotError: a game can't be replayed.
    """
    for source in sources:
        for player in _players(source, wanted, tally):
            for turn, said in _turns(player, wanted, tally):
                tally.lines += 1
                yield ChatLine(
                    **player.head(),
                    turn=turn.number,
                    day=turn.day,
                    phase=turn.phase,
                    won=player.won,
                    forced=turn.forced,
                    messages=[Message(role="system", content=player.system), *_messages(said)],
                    observations=list(said.observations),
                )


def episode_lines(sources: Iterable[Source], wanted: Wanted, tally: Tally) -> Iterator[EpisodeLine]:
    """Yield one line for each player of each finished game, without advantages, and count the omitted ones.

    Raises:
        SnapshotError: a game can't be replayed.
    """
    for source in sources:
        for player in _players(source, wanted, tally):
            if player.won is None:
                if source.id not in tally.unfinished:
                    tally.unfinished.append(source.id)
                continue
            decisions = [
                Decision(
                    turn=turn.number, day=turn.day, phase=turn.phase, forced=turn.forced, messages=_messages(said),
                    observations=list(said.observations),
                    action=Done(name=turn.action.name, parameters=dict(turn.action.parameters)),
                )
                for turn, said in _turns(player, wanted, tally)
            ]  # fmt: skip
            if not decisions:
                continue  # it was never asked, or none of its turns can be shown
            tally.lines += 1
            yield EpisodeLine(
                **player.head(),
                first_role=player.walked.game.state.players[player.number].first_role.name,
                reward=1 if player.won else 0,
                advantage=None,
                system=player.system,
                decisions=decisions,
            )


def with_advantage(line: EpisodeLine, by: Advantage, rewards: Mapping[str, Sequence[float]]) -> EpisodeLine:
    """Return a line with its advantage: (reward - mean) / standard deviation over its group.

    A group is all players with the same final faction, or role, in all finished games read, exported or not. The
    deviation is the population's (divided by n). If all rewards of a group are equal, the advantage is 0.
    """
    if by == "none":
        return line
    group = rewards[line.role if by == "role" else f"faction {line.faction}"]
    mean = sum(group) / len(group)
    deviation = sqrt(sum((r - mean) ** 2 for r in group) / len(group))
    return line.model_copy(update={"advantage": round((line.reward - mean) / deviation, 6) if deviation else 0.0})
