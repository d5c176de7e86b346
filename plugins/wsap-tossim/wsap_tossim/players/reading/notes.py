"""The notes of a scripted player on its events: claims, findings, accusations, votes, and which proved true.

`Notes` are a function of the events, updated incrementally for speed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wsap_tossim.engine.data.model import Phase
from wsap_tossim.knowledge import Knowledge, Seen
from wsap_tossim.players.reading.claims import Said, clauses, read, read_will
from wsap_tossim.players.reading.priors import is_enemy, is_town

__all__ = ["Clue", "Finding", "Notes"]


class Clue(NamedTuple):
    """Evidence for or against a player."""

    target: int
    weight: float
    """Log-odds of being an enemy of the Town; negative in the player's favour."""
    code: str
    """Key of its sentence in `wsap_tossim.players.reading.phrases`."""
    other: int | None = None
    """Another player named in that sentence."""
    role: str = ""


class Finding(NamedTuple):
    """A player's report of a deed or finding at night."""

    by: int
    day: int
    """Day of the report."""
    said: Said
    written: bool
    """Whether it is from a dead player's will."""
    secret: bool = False
    """Whether it was whispered, or said on a channel."""


class Notes:
    """The notes of one player, or of the public if None."""

    def __init__(self, player: int | None, names: Sequence[str]) -> None:
        self.player = player
        self.names = tuple(names)
        self.read = 0
        """Number of events read."""
        self.claims: dict[int, list[str]] = {}
        """Player -> distinct roles claimed since it was last raised from the dead, the latest last."""
        self.findings: list[Finding] = []
        self.clues: list[Clue] = []
        """Permanent public evidence."""
        self.private: list[Clue] = []
        """Private evidence."""
        self.results: list[Seen] = []
        self.told: list[Seen] = []
        """`told` events of the night."""
        self.nights_in_jail: list[int] = []
        self.nights_blocked: list[int] = []
        self.accusers: dict[int, dict[int, int]] = {}
        """Player -> accuser -> day of the last accusation."""
        self.defenders: dict[int, dict[int, int]] = {}
        self.verdicts: list[tuple[int, int, str]] = []
        """Accused, judge, verdict, of all trials."""
        self.will_day = 0
        """Day of this player's last update of its will."""
        self.whispered: list[int] = []
        """Players to whom this one has whispered."""
        self.confided: list[int] = []
        """Players who privately told this one their role."""
        self.died_at_night: dict[int, int] = {}
        """Player -> night."""
        self.kept: dict[bool, tuple[object, Any]] = {}
        """Cache of the last beliefs, public or private, with their grounds."""
        self.heard: Counter[str] = Counter()
        """Clause -> number of times said in public."""
        self._seen: set[tuple[int, Said]] = set()
        self._accused: int | None = None
        self._new_day()

    def _new_day(self) -> None:
        self.asked: dict[int, int] = {}
        """Today: player -> number of times asked for its role."""
        self.against: dict[int, list[int]] = {}
        """Today: player -> distinct accusers and voters."""
        self.plans: dict[int, int] = {}
        """Today: player -> its last accused or vote."""
        self.reasoned: list[int] = []
        """Today: players accused by this one."""
        self.spoken: dict[int, int] = {}
        """Today: player -> number of speeches."""
        self.floors = 0
        """Today: number of times that this player won the floor by bidding."""
        self.told_findings = False
        """Today: whether this player has reported its findings."""
        self.trials = 0
        self.acquitted: list[int] = []
        """Today: acquitted players."""
        self.channel: dict[int | None, str] = {}
        """Tonight: player -> its talk on a channel; None for an anonymous speaker."""

    def update(self, knowledge: Knowledge) -> Notes:
        """Read the new events, and return self."""
        events = knowledge.events
        for at in range(self.read, len(events)):
            event = events[at]
            handler = _HANDLERS.get(event.kind)
            if handler is not None:
                handler(self, event, knowledge)
        self.read = len(events)
        return self

    @property
    def claimed(self) -> str | None:
        """The role that this player has claimed, if any."""
        said = self.claims.get(self.player) if self.player is not None else None
        return said[-1] if said else None

    # --- handlers of events ------------------------------------------------------------------

    def _on_phase(self, event: Seen, knowledge: Knowledge) -> None:
        if event.data["name"] == Phase.DISCUSSION.value:
            self._new_day()
        elif event.data["name"] == Phase.DUSK.value:
            self.channel = {}

    def _on_floor(self, event: Seen, knowledge: Knowledge) -> None:
        self.floors += event.data["player"] == self.player

    def _on_speech(self, event: Seen, knowledge: Knowledge) -> None:
        by = event.data["player"]
        self.spoken[by] = self.spoken.get(by, 0) + 1
        self.heard.update(clauses(event.data["text"]))
        self._hear(by, event.day, read(event.data["text"], self.names), written=False)

    def _on_whisper(self, event: Seen, knowledge: Knowledge) -> None:
        by, to = event.data["player"], event.data["to"]
        if by == self.player:
            self.whispered.append(to)
            return
        for said in read(event.data["text"], self.names):
            if said.kind == "finding" and (by, said) not in self._seen:
                self._seen.add((by, said))
                self.findings.append(Finding(by, event.day, said, False, True))
            elif said.kind != "role" or to != self.player or by in self.confided:
                continue
            elif is_town(said.role) and said.role != knowledge.role:
                self.confided.append(by)
                self.private.append(Clue(by, -0.3, "confided"))

    def _on_said(self, event: Seen, knowledge: Knowledge) -> None:
        by, text = event.data["player"], event.data["text"]
        self.channel[by] = text
        if event.data["channel"] in ("jail", "dead", "seance") and by is not None and by != self.player:
            for said in read(text, self.names):
                if said.kind == "finding" and (by, said) not in self._seen:
                    self._seen.add((by, said))
                    self.findings.append(Finding(by, event.day, said, False, True))
                elif said.kind == "role" and event.data["channel"] == "jail":
                    self._claim(by, said.role)

    def _hear(self, by: int, day: int, statements: Sequence[Said], *, written: bool) -> None:
        for said in statements:
            kind = said.kind
            if kind == "role":
                self._claim(by, said.role)
            elif kind == "finding":
                if by == self.player:
                    self.told_findings = True
                if (by, said) not in self._seen:
                    self._seen.add((by, said))
                    self.findings.append(Finding(by, day, said, written))
                if said.what == "suspicious" and said.target is not None:
                    self._accuse(by, said.target, day)
            elif kind == "accuse" and said.target is not None and said.target != by:
                self._accuse(by, said.target, day)
            elif kind == "trust" and said.target is not None and said.target != by:
                self.defenders.setdefault(said.target, {})[by] = day
            elif kind == "ask" and said.target is not None:
                self.asked[said.target] = self.asked.get(said.target, 0) + 1

    def _claim(self, by: int, role: str) -> None:
        before = self.claims.setdefault(by, [])
        if not before or before[-1] != role:
            if role in before:
                before.remove(role)
            before.append(role)

    def _accuse(self, by: int, target: int, day: int) -> None:
        self.accusers.setdefault(target, {})[by] = day
        against = self.against.setdefault(target, [])
        if by not in against:
            against.append(by)
        self.plans[by] = target
        if by == self.player and target not in self.reasoned:
            self.reasoned.append(target)

    def _on_vote(self, event: Seen, knowledge: Knowledge) -> None:
        by, target = event.data["player"], event.data["target"]
        self.accusers.setdefault(target, {})[by] = event.day
        against = self.against.setdefault(target, [])
        if by not in against:
            against.append(by)
        self.plans[by] = target

    def _on_unvote(self, event: Seen, knowledge: Knowledge) -> None:
        self.plans.pop(event.data["player"], None)

    def _on_trial(self, event: Seen, knowledge: Knowledge) -> None:
        self._accused = event.data["player"]
        self.trials += 1

    def _on_verdict(self, event: Seen, knowledge: Knowledge) -> None:
        if self._accused is not None:
            self.verdicts.append((self._accused, event.data["player"], event.data["verdict"]))

    def _on_judged(self, event: Seen, knowledge: Knowledge) -> None:
        accused = event.data["player"]
        if not event.data["condemned"]:
            self.acquitted.append(accused)
            self.plans = {by: target for by, target in self.plans.items() if target != accused}
        if accused not in self.claims:
            self.clues.append(Clue(accused, 0.2, "mute"))

    def _on_death(self, event: Seen, knowledge: Knowledge) -> None:
        dead = event.data["player"]
        if event.data.get("when") != "day":
            self.died_at_night[dead] = event.day
        role = event.data.get("role")
        if role is not None:
            self._test(dead, role)

    def _test(self, dead: int, role: str) -> None:
        """Weigh what the living said about a player whose role is now known."""
        enemy, town = is_enemy(role), is_town(role)
        clues = self.clues
        if enemy or town:
            pushed = [0.35, 0.25, 0.15]  # the first counts most; if all joined in, it is no evidence
            for at, by in enumerate(self.accusers.get(dead, {})):
                if enemy:
                    clues.append(Clue(by, -0.6, "caught", dead, role))
                elif at < len(pushed):
                    clues.append(Clue(by, pushed[at], "pushed", dead, role))
            guilty = sum(accused == dead and verdict == "guilty" for accused, _, verdict in self.verdicts)
            hanged = 0.25 if guilty <= 5 else 0.1
            for by in self.defenders.get(dead, {}):
                clues.append(Clue(by, 1.1, "vouched", dead, role) if enemy else Clue(by, -0.7, "stood_by", dead, role))
            for accused, judge, verdict in self.verdicts:
                if accused != dead or verdict == "abstain":
                    continue
                if (verdict == "guilty") == enemy:
                    clues.append(
                        Clue(judge, -0.5, "judged", dead, role) if enemy else Clue(judge, -0.7, "let_go", dead, role)
                    )
                else:
                    clues.append(Clue(judge, 0.7 if enemy else hanged, "spared" if enemy else "hanged", dead, role))
        for finding in self.findings:
            if finding.said.target == dead and finding.by != dead and not finding.written:
                clue = _tested(finding, role)
                if clue is not None:
                    clues.append(clue)

    def _on_will(self, event: Seen, knowledge: Knowledge) -> None:
        text = event.data.get("text")
        if text:
            self._hear_will(event.data["player"], event.day, read_will(text, self.names))

    def _hear_will(self, dead: int, day: int, statements: Sequence[Said]) -> None:
        for said in statements:
            if said.kind == "finding":
                self.findings.append(Finding(dead, day, said, True))
            elif said.kind == "role":
                self._claim(dead, said.role)

    def _on_raised(self, event: Seen, knowledge: Knowledge) -> None:
        raised = event.data["player"]
        self.clues.append(Clue(raised, -4.0, "raised"))  # only Town players are raised
        self.died_at_night.pop(raised, None)

    def _on_result(self, event: Seen, knowledge: Knowledge) -> None:
        self.results.append(event)

    def _on_told(self, event: Seen, knowledge: Knowledge) -> None:
        code = event.data["code"]
        self.told.append(event)
        if code in ("blocked", "struck_back"):
            self.nights_blocked.append(event.day)
        elif code == "target_attacked" and event.data.get("target") is not None:
            self.private.append(Clue(event.data["target"], -1.0, "attacked"))

    def _on_writes(self, event: Seen, knowledge: Knowledge) -> None:
        if event.data["what"] == "will" and event.data["player"] == self.player:
            self.will_day = event.day

    def _on_jailed(self, event: Seen, knowledge: Knowledge) -> None:
        if event.data["player"] == self.player:
            self.nights_in_jail.append(event.day)


def _tested(finding: Finding, role: str) -> Clue | None:
    """Return the clue about the finder that follows from the dead player's known role, if any."""
    said, enemy = finding.said, is_enemy(role)
    by, dead = finding.by, said.target
    if said.what == "suspicious":
        if enemy:
            return Clue(by, -2.0, "found_one", dead, role)
        return Clue(by, 0.7, "wrong", dead, role) if is_town(role) else Clue(by, 0.3, "wrong", dead, role)
    if said.what == "clear":
        hides = role in ("Godfather", "Arsonist", "Vampire", "Witch", "Werewolf", "Serial Killer")
        if enemy:
            return Clue(by, 0.3 if hides else 1.0, "cleared", dead, role)
        return Clue(by, 0.0, "found_none", dead, role)
    if said.what == "role":
        return (
            Clue(by, -1.5, "found_role_right", dead, role)
            if said.role == role
            else Clue(by, 2.0, "misfound", dead, role)
        )
    if said.what == "group":
        misled = "Framer" in said.roles or "Arsonist" in said.roles
        if role in said.roles:
            return Clue(by, -1.0, "found_group_right", dead, role)
        return Clue(by, 0.3 if misled else 1.4, "misfound", dead, role)
    return None


_Handler = Callable[[Notes, Seen, Knowledge], None]
_HANDLERS: Mapping[str, _Handler] = {
    name.removeprefix("_on_"): value for name, value in vars(Notes).items() if name.startswith("_on_")
}
