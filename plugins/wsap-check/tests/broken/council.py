"""A small world of three seats that keeps every promise: simultaneous or in turn, with teams and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from wsap_core import Action, ActionDef, ActionSpace, AdapterSpec, Event, Observation
from wsap_core.authoring.rounds import RoundGame, RoundSeat
from wsap_core.protocol import TOOL
from wsap_core.protocol.values import JsonValue

SEATS = ("ann", "bob", "cid")
TEAMS = {"ann": "north", "bob": "south", "cid": "north"}
SPACE = ActionSpace(
    [ActionDef("yes", "Vote for it"), ActionDef("no", "Vote against it"), ActionDef("pass", "Do not vote")]
)
ROUNDS = 12


class Council(RoundGame):
    """Three members vote on motions; each motion is worth something to each of them."""

    game_description = "Three members of a council vote on motions. A motion is carried by more yes than no."
    action_space = SPACE
    seats = SEATS
    timing = "simultaneous"
    talks = True

    def team_of(self, agent_id: str) -> str | None:
        return TEAMS.get(agent_id)

    def begin(self) -> None:
        self.votes: dict[str, str] = {}
        self.last: list[str] = []
        self.motions = 0
        self.pay = dict.fromkeys(SEATS, 0.0)
        self.draw_motion()

    def draw_motion(self) -> None:
        self.worth = [self.random.randint(-3, 3) for _ in SEATS]

    def to_move(self) -> Sequence[str]:
        missing = [seat for seat in SEATS if seat not in self.votes]
        return () if self.motions >= ROUNDS else missing if self.timing == "simultaneous" else missing[:1]

    def legal(self, seat: str) -> Sequence[str]:
        return self.action_space.names

    def see(self, seat: str) -> Observation:
        """Return what one member knows: its own worth of the motion, and how the last ones went."""
        status = {"worth to you": self.worth[SEATS.index(seat)], "round": self.motions}
        return Observation(status=status, recent_events=[Event(text) for text in self.last[-3:]])

    def vary_secret(self, seat: str, rng: Random) -> bool:
        """Change what the motion is worth to a member."""
        self.worth[SEATS.index(seat)] += 10
        return True

    def apply(self, moves: Mapping[str, Action]) -> None:
        """Take votes; carry out the motion when all are there."""
        self.votes.update({seat: action.name for seat, action in moves.items()})
        if len(self.votes) < len(SEATS):
            return
        names = list(self.votes.values())
        if carried := names.count("yes") > names.count("no"):
            self.pay = {seat: self.pay[seat] + worth for seat, worth in zip(SEATS, self.worth, strict=True)}
        self.last = [f"The motion was {'carried' if carried else 'lost'} with {names.count('yes')} yes."]
        self.votes = {}
        self.motions += 1
        self.draw_motion()

    def hears(self) -> Sequence[str]:
        return () if self.votes else SEATS

    def message(self, seat: str, pay: float) -> str:
        return self.last[0]

    def look_up(self, seat: str, action: Action) -> tuple[bool, str]:
        return True, " ".join(self.last) or "None."

    def returns(self) -> Mapping[str, float]:
        return self.pay

    def dump(self) -> JsonValue:
        return {
            "motions": self.motions,
            "worth": self.worth,
            "last": self.last,
            "votes": self.votes,
            "pay": self.pay,
        }

    def load(self, data: JsonValue) -> None:
        self.motions, self.last = int(data["motions"]), [str(line) for line in data["last"]]
        self.worth = [int(worth) for worth in data["worth"]]
        self.votes = {seat: str(vote) for seat, vote in data["votes"].items()}
        self.pay = {seat: float(data["pay"][seat]) for seat in SEATS}


class Chair(RoundSeat):
    """The council as one member sees it."""

    game: Council


class CouncilInTurn(Council):
    """The same council, voting one after another."""

    timing = "alternating"


class Archive(Council):
    """The same council, whose members may look up how the last motions went."""

    action_space = ActionSpace([*SPACE.actions, ActionDef("minutes", "How the last motions went", category=TOOL)])


class ArchiveInTurn(Archive):
    """The same, voting one after another."""

    timing = "alternating"


def spec_of(game: type[Council]) -> AdapterSpec:
    """Return the spec of a council."""
    return AdapterSpec(
        "council",
        "Vote on motions.",
        game,
        abilities=("seed", "snapshot", "multi-seat", "messages"),
        seats=(3, 3),
        seat_names=SEATS,
        timing=game.timing,
        default_action=Action("pass"),
    )
