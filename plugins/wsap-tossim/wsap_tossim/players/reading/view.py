"""The inputs of one decision of a scripted player: knowledge, notes, options and random numbers."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cached_property
from itertools import groupby

from wsap_tossim.engine.data.model import Choice, Faction, Option, Phase, Verb
from wsap_tossim.engine.data.tokens import CHARACTERS
from wsap_tossim.engine.roles.listed import ROLES
from wsap_tossim.knowledge import Knowledge
from wsap_tossim.players.reading.beliefs import Beliefs, believe
from wsap_tossim.players.reading.claims import named
from wsap_tossim.players.reading.notes import Clue, Notes
from wsap_tossim.players.reading.phrases import cut, reason, say
from wsap_tossim.players.reading.stories import nights_of, told_as

__all__ = ["WORTH", "Character", "View", "side_of_role"]

WORTH = {
    "Jailor": 5.0, "Mayor": 5.0, "Investigator": 4.0, "Sheriff": 4.0, "Spy": 3.5, "Lookout": 3.5, "Doctor": 3.5,
    "Vigilante": 3.0, "Medium": 2.5, "Escort": 2.5, "Bodyguard": 2.0, "Transporter": 2.0, "Retributionist": 3.0,
    "Vampire Hunter": 2.0, "Citizen": 1.5, "Veteran": -2.0, "Survivor": -0.5, "Jester": -2.0, "Executioner": 0.0,
    "Amnesiac": -0.5,
}  # fmt: skip
"""Value of a living role to the Town, and so to its killers."""
_SHORTEST = 20
"""Characters of the shortest speech; a player with fewer left today is silent."""


class Character:
    """A player's tendencies, drawn from its seed."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(f"{seed}:character")  # play, not secrets
        self.talk = 0.35 + 0.6 * rng.random()
        """Probability of an unnecessary speech."""
        self.open = rng.random()
        """How readily it claims its role."""
        self.doubt = (rng.random() - 0.5) * 0.06
        """Additional guilt that it needs to condemn."""


def side_of_role(role: str) -> str:
    """Return a role's way of playing: town, mafia, vampires, killer, witch, jester, executioner or bystander."""
    one = ROLES.get(role)
    if one is None or one.faction is Faction.TOWN:
        return "town"
    if one.faction is Faction.MAFIA:
        return "mafia"
    if one.faction is Faction.VAMPIRES:
        return "vampires"
    if role in ("Jester", "Executioner", "Witch"):
        return role.lower()
    return "bystander" if role in ("Survivor", "Amnesiac") else "killer"


class View:
    """The inputs of one decision.

    With `bidding`, the player bids for the floor rather than has it.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        notes: Notes,
        options: Sequence[Option],
        seed: int,
        character: Character,
        *,
        bidding: bool = False,
    ) -> None:
        self.knowledge = knowledge
        self.notes = notes
        self.names = notes.names
        self.seed = seed
        self.character = character
        self.me = knowledge.player if knowledge.player is not None else 0
        self.role = knowledge.role or "Citizen"
        self.side = side_of_role(self.role)
        self.day = knowledge.day
        self.options = {option.verb: option for option in options}
        now = f"{len(knowledge.events)}"
        if knowledge.rules.floor == "bids" and knowledge.phase in (Phase.DISCUSSION, Phase.NOMINATION):
            # the same draw for a bid and the turn that it wins, whoever has the floor in between
            now = f"{knowledge.phase}:{notes.floors - (not bidding)}"
        self.rng = random.Random(f"{seed}:{now}:{knowledge.day}")  # play, not secrets
        self.longest = knowledge.rules.longest_text
        left = None if knowledge.by_night else knowledge.tokens_left
        if left is not None:
            self.longest = min(self.longest, left * CHARACTERS)
            if self.longest < _SHORTEST:
                self.options = {verb: o for verb, o in self.options.items() if verb not in (Verb.SPEAK, Verb.WHISPER)}

    @cached_property
    def own(self) -> Beliefs:
        """The player's true beliefs."""
        return believe(self.notes, self.knowledge)

    @cached_property
    def public(self) -> Beliefs:
        """Beliefs from public knowledge, including the player itself."""
        return believe(self.notes, self.knowledge, public=True)

    @property
    def face(self) -> Beliefs:
        """The beliefs that it shows in public: liars pretend ignorance."""
        return self.own if self.side in ("town", "bystander") else self.public

    @cached_property
    def others(self) -> list[int]:
        """The other living players."""
        return [s.number for s in self.knowledge.standing if s.alive and s.number != self.me]

    @cached_property
    def graveyard(self) -> list[str | None]:
        """The roles of the dead; None if unknown."""
        return [s.role for s in self.knowledge.standing if not s.alive]

    @cached_property
    def mates(self) -> frozenset[int]:
        """Other living members of its side; for membership tests only."""
        standing = self.knowledge.standing
        if self.side not in ("mafia", "vampires"):
            return frozenset()
        return frozenset(
            n for n in self.others if (role := standing[n].role) is not None and side_of_role(role) == self.side
        )

    @cached_property
    def in_power(self) -> bool:
        """Whether its side is half of the living, and need not hide by day."""
        return bool(self.mates) and 2 * (len(self.mates) + 1) >= len(self.others) + 1

    @cached_property
    def mean(self) -> float:
        """Mean shown probability that a player is an enemy."""
        face = self.face.enemy
        found = [p for n, p in face.items() if n != self.me]
        return sum(found) / len(found) if found else 0.5

    def guilt(self, player: int) -> float:
        """Return how much it wants a player lynched, on the scale of `mean`."""
        face = self.face.of(player)
        side = self.side
        if side == "town":
            return face
        if player in self.mates:
            if self.in_power:
                return -1.0
            return face - 0.02 if self.hopeless(player) else face - 1.0
        if side == "executioner":
            return 1.2 if player == self.knowledge.target else face
        if side == "jester":
            return 1.0 - face
        if side == "vampires" and "Vampire Hunter" in self.notes.claims.get(player, ()):
            return face + 0.12
        return face if side == "bystander" else face + 0.03

    def hopeless(self, mate: int) -> bool:
        """Return whether a mate is so doubted that it may be better to turn against it."""
        doubt = self.public.of(mate)
        if self.in_power:
            return False
        if doubt > 0.88:
            return True
        bold = random.Random(f"{self.seed}:{mate}:{self.day}").random()  # play, not secrets
        return doubt > self.mean + 0.12 and bold < 0.45

    @cached_property
    def told_role(self) -> str:
        """The role that it claims."""
        return told_as(self.knowledge, self.notes, self.seed)

    @cached_property
    def nights(self) -> dict[int, str]:
        """Its account of its nights."""
        return nights_of(self.knowledge, self.notes, self.told_role, self.seed)

    def log(self, nights: int = 3) -> str:
        """Return the reports of the latest nights, and of earlier ones that accuse somebody."""
        told = list(self.nights.items())
        kept = [(n, t) for n, t in told[:-nights] if t.endswith(": suspicious")] + told[-nights:]
        words: list[str] = []
        for text, group in groupby(kept, key=lambda one: one[1]):
            when = [str(night) for night, _ in group]
            if len(when) > 1 and not named(text, self.names):  # merge nights without a finding
                when = [f"{when[0]} to N{when[-1]}"]
            words += [f"N{night}: {text}." for night in when]
        return " ".join(words)

    def grounds(self, player: int) -> bool:
        """Return whether there is evidence against a player."""
        if self.side == "executioner" and player == self.knowledge.target:
            return True
        return any(c.target == player and c.weight > 0.2 for c in self.face.clues)

    def clue_against(self, player: int) -> Clue:
        """Return the best reason against a player, never one that only a liar could know."""
        for clue in self.face.against(player):
            return clue
        notes = self.notes
        if len(notes.against.get(player, ())) - (self.me in notes.against.get(player, ())) > 0:
            return Clue(player, 0.0, "crowd")
        if player not in notes.claims and self.day > 1:
            return Clue(player, 0.0, "unclaimed")
        if not notes.spoken.get(player):
            return Clue(player, 0.0, "quiet")
        return Clue(player, 0.0, "hunch" if self.rng.random() < 0.6 else "odd")

    def why(self, player: int) -> str:
        """Return the best reason against a player in words."""
        return reason(self.clue_against(player), self.names)

    def name(self, player: int) -> str:
        """Return a player's name."""
        return self.names[player]

    def speak(self, key: str, **words: str) -> Choice | None:
        """Return a speech, or None if it may not speak now."""
        if Verb.SPEAK not in self.options:
            return None
        text = say(self.rng, key, self.longest, self.notes.heard, **words)
        return Choice(Verb.SPEAK, (), text) if text else None

    def say(self, text: str) -> Choice | None:
        """Return talk on a channel, or None if there is none."""
        text = cut(text, self.longest)
        return Choice(Verb.SAY, (), text) if Verb.SAY in self.options and text else None

    def worth(self, player: int) -> float:
        """Return a player's value to the Town by public knowledge."""
        standing = self.knowledge.standing[player]
        claim = "Mayor" if standing.revealed else self.notes.claims.get(player, [""])[-1]
        known = standing.role if standing.role is not None else claim
        return WORTH.get(known, 1.0) * 0.6 + 3.0 * (1.0 - self.public.of(player))
