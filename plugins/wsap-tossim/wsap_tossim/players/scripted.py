"""A scripted player: claims, doubts, checks claims, votes with reasons, and lies if its side must."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from wsap_tossim.engine.data.model import WAIT, Choice, Option, Phase, Verb
from wsap_tossim.knowledge import Knowledge
from wsap_tossim.players.bids import bid
from wsap_tossim.players.coordination import in_secret
from wsap_tossim.players.day import by_day
from wsap_tossim.players.decider import Turn
from wsap_tossim.players.night import at_night
from wsap_tossim.players.reading.notes import Notes
from wsap_tossim.players.reading.priors import is_town
from wsap_tossim.players.reading.stories import PAST, diary_line, nights_of, will_of
from wsap_tossim.players.reading.view import Character, View

__all__ = ["ScriptedDecider"]


class ScriptedDecider:
    """Plays one seat by rules of thumb.

    Every turn is a function of the player's knowledge, the options and the seed, so a decider recreated with the same
    seed, in any process and at any point of the game, plays the same.
    """

    def __init__(
        self, player: int, rng: random.Random | None, names: Sequence[str], *, seed: int | None = None
    ) -> None:
        self.player = player
        self.seed = seed if seed is not None else (rng or random.Random(0)).getrandbits(48)  # play, not secrets
        self.names = tuple(names)
        self.character = Character(self.seed)
        self._notes = Notes(player, self.names)
        self._of: Knowledge | None = None

    def turn(self, knowledge: Knowledge, options: Sequence[Option]) -> Turn:
        """Return the player's choice, papers and reason."""
        view = View(knowledge, self._noted(knowledge), options, self.seed, self.character)
        if Verb.SAY in view.options:
            choice, why = in_secret(view)
        elif knowledge.phase in (Phase.DUSK, Phase.NIGHT):
            choice, why = at_night(view)
        else:
            choice, why = bid(view) if Verb.BID_1 in view.options else by_day(view)
        choice = _legal(choice, view.options)
        return Turn(choice, self._written(view, choice), why)

    def beliefs(self, knowledge: Knowledge) -> Mapping[int, float]:
        """Return the player's true beliefs: other living player -> probability of being an enemy of the Town."""
        return View(knowledge, self._noted(knowledge), (), self.seed, self.character).own.enemy

    def _noted(self, knowledge: Knowledge) -> Notes:
        if self._of is not knowledge or self._notes.read > len(knowledge.events):
            self._notes = Notes(self.player, self.names)
            self._of = knowledge
        return self._notes.update(knowledge)

    def _written(self, view: View, choice: Choice) -> dict[str, str]:
        """Return the changed papers: the notebook with tonight's deed, and the will."""
        knowledge = view.knowledge
        rules = knowledge.rules
        longest = rules.longest_will
        papers: dict[str, str] = {}
        if not knowledge.alive:
            return papers
        acts = knowledge.phase in (Phase.DUSK, Phase.NIGHT) and choice.verb not in (Verb.WAIT, Verb.SAY)
        if acts:
            line = diary_line(knowledge.day, choice.verb, choice.targets, self.names)
            papers["notebook"] = _appended(knowledge.notebook, line, longest)
        looks = knowledge.phase in _AT_LEISURE and not view.notes.spoken.get(self.player)
        looks = looks and view.notes.will_day != knowledge.day
        differs = choice.verb is Verb.SPEAK and not knowledge.will.startswith(f"{view.told_role}.")
        if rules.wills and (acts or looks or differs):
            will = self._will(view, choice if acts else None, longest)
            if will != knowledge.will:
                papers["will"] = will
        if rules.death_notes and not knowledge.note and view.side in ("killer", "mafia") and acts:
            papers["note"] = _NOTES[self.seed % len(_NOTES)][:longest]
        return papers

    def _will(self, view: View, tonight: Choice | None, longest: int) -> str:
        role = view.told_role
        if view.side == "jester":
            return "You should have listened."[:longest]
        nights = nights_of(view.knowledge, view.notes, role, self.seed)
        if tonight is not None and role == view.role and tonight.verb in PAST and is_town(role):
            names = [self.names[t] for t in tonight.targets]
            nights[view.day] = PAST[tonight.verb].format(*names)
        return will_of(role, nights, longest)


_AT_LEISURE = (Phase.DISCUSSION, Phase.NOMINATION, Phase.BALLOT)
"""Phases in which a player updates its will, before it speaks."""
_NOTES = (
    "Nothing personal.",
    "You asked too many questions.",
    "One less.",
    "You should have locked the door.",
)


def _appended(notebook: str, line: str, longest: int) -> str:
    """Return a notebook with one more line, without its oldest lines if it gets too long."""
    text = f"{notebook}\n{line}" if notebook else line
    while len(text) > longest and "\n" in text:
        text = text.partition("\n")[2]
    return text[:longest]


def _legal(choice: Choice, options: Mapping[Verb, Option]) -> Choice:
    """Return a choice if it is legal, otherwise `WAIT`."""
    option = options.get(choice.verb)
    if option is None or len(choice.targets) != len(option.slots) or len(set(choice.targets)) < len(choice.targets):
        return WAIT
    if any(target not in slot for target, slot in zip(choice.targets, option.slots, strict=True)):
        return WAIT
    return WAIT if option.text and not choice.text.strip() else choice
