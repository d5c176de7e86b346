"""A game: asks players, carries out what they choose, and ends.

    game = Game(setup("classic"), CLASSIC, seed=1)
    while not game.over:
        game.resolve({player: choose(game.options(player)) for player in game.waiting})

A game is a function of its set-up, its rules, its seed and what was chosen (`Game.record`), so it can be
played again from these and gone on with differently from any point (`Game.fork`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from wsap_core.errors import SnapshotError, UsageError
from wsap_tossim.engine.abilities import dusk_options, night_options
from wsap_tossim.engine.death import lynch, set_up
from wsap_tossim.engine.events import bit, bits
from wsap_tossim.engine.floor import Floor
from wsap_tossim.engine.model import Choice, Event, Faction, Option, Phase, Verb
from wsap_tossim.engine.night import resolve_night
from wsap_tossim.engine.roles import ROLES
from wsap_tossim.engine.rules import RuleSet
from wsap_tossim.engine.setups import Setup, deal
from wsap_tossim.engine.state import State
from wsap_tossim.engine.victory import Ending, draw, ending

__all__ = ["Entry", "Game", "Writing"]

Writing = str
"""What a player writes without taking a turn: "will", "note" or "notebook"."""
WRITINGS = ("will", "note", "notebook")
_WAIT_ONLY = (Option(Verb.WAIT),)
_SPEAK = Option(Verb.SPEAK, (), True)
_JUDGE = (Option(Verb.GUILTY), Option(Verb.INNOCENT), Option(Verb.ABSTAIN), *_WAIT_ONLY)


class Entry(NamedTuple):
    """One line of a game's record: a player's choice, or something written down."""

    round: int
    """The round that it was made in; see `Game.round`."""
    player: int
    verb: str
    """A `Verb`, or "will", "note" or "notebook"."""
    targets: tuple[int, ...] = ()
    text: str = ""
    forced: bool = False
    """Whether it was taken for a player who missed the deadline."""


class Game:
    """One game, from the dealing of roles to its end.

    Args:
        setup: the role list.
        rules: the rule set.
        seed: of the roles and of every lot.
        roles: the role of each player by name, in place of dealing them (for tests and studies).

    Raises:
        ConfigError: the list can't be played.
    """

    def __init__(self, setup: Setup, rules: RuleSet, seed: int, *, roles: Sequence[str] | None = None) -> None:
        self.setup = setup
        self.rules = rules
        self.seed = seed
        self.fixed_roles = tuple(roles) if roles is not None else None
        dealt = [ROLES[name] for name in roles] if roles is not None else deal(setup, seed)
        self.state = State(rules, dealt, seed)
        self.round = 0
        """How many rounds have been resolved."""
        self.waiting: tuple[int, ...] = ()
        """Who is asked now, by number; nobody when the game is over. A round is resolved with all of their choices."""
        self.ending: Ending | None = None
        self.record: list[Entry] = []
        self.starts: list[int] = []
        """For each resolved round, how long the log was when its choices were carried out."""
        self.trials_today = 0
        self.accused: int | None = None
        """Who is on trial."""
        self.votes: dict[int, int] = {}
        """Standing votes for a trial: who -> whom."""
        self._offered: dict[tuple[int, bool], tuple[Option, ...]] = {}
        """What those without a vote can do, in this phase."""
        self._floor = Floor(self.state, 0)
        self._talk_rounds = 0
        self._step: Callable[[Mapping[int, Choice]], None] = self._after_floor
        self._begin()

    # --- what is asked ---------------------------------------------------------------------

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return self.ending is not None

    @property
    def log(self) -> list[Event]:
        """Everything that has happened, oldest first."""
        return self.state.log

    @property
    def phase(self) -> Phase:
        """Where in a day the game is."""
        return self.state.phase

    @property
    def needed(self) -> int:
        """The weight of votes that puts somebody on trial: more than half of the living."""
        return len(self.state.others()) // 2 + 1

    def weight(self, player: int) -> int:
        """Return how much a player's vote counts: three for a revealed Mayor."""
        return 3 if self.state.players[player].revealed else 1

    def options(self, player: int) -> tuple[Option, ...]:
        """Return everything a player can do now, `wait` included; nothing if it is not asked."""
        if player not in self.waiting:
            return ()
        state = self.state
        phase = state.phase
        if phase is Phase.NIGHT:
            return (*night_options(state, state.players[player]), *_WAIT_ONLY)
        if phase is Phase.DUSK:
            return (*dusk_options(state, state.players[player]), *_WAIT_ONLY)
        if phase is Phase.TALK_AT_NIGHT:
            return (Option(Verb.SAY, (), True), *_WAIT_ONLY)
        if phase is Phase.JUDGEMENT:
            return _JUDGE
        others = state.others(player)
        if phase is Phase.BALLOT:
            return (Option(Verb.VOTE, (others,)), *_WAIT_ONLY)
        if player in self.votes:
            return self._by_day(player, others)
        key = (player, state.players[player].blackmailed)
        known = self._offered.get(key)
        if known is None:
            known = self._offered[key] = self._by_day(player, others)
        return known

    def _by_day(self, player: int, others: tuple[int, ...]) -> tuple[Option, ...]:
        state = self.state
        one = state.players[player]
        found: list[Option] = []
        if not one.blackmailed:
            found.append(_SPEAK)
        if state.phase in (Phase.DEFENSE, Phase.LAST_WORDS):
            return (*found, *_WAIT_ONLY)
        if not one.blackmailed and not one.revealed:
            open_to = tuple([n for n in others if not state.players[n].revealed])
            if open_to:
                found.append(Option(Verb.WHISPER, (open_to,), True))
        if state.phase is Phase.NOMINATION:
            standing = self.votes.get(player)
            choice = others if standing is None else tuple([n for n in others if n != standing])
            if choice:
                found.append(Option(Verb.VOTE, (choice,)))
            if player in self.votes:
                found.append(Option(Verb.UNVOTE))
        if one.role.name == "Mayor" and not one.revealed:
            found.append(Option(Verb.REVEAL))
        return (*found, *_WAIT_ONLY)

    def refusal(self, player: int, choice: Choice) -> str:
        """Return why a player can't choose so now, in a sentence; empty if it can."""
        if self.over:
            return "The game is over."
        if not 0 <= player < len(self.state.players):
            return f"There is no player number {player}."
        if player not in self.waiting:
            return "The dead do not act." if not self.state.players[player].alive else "It is not your turn."
        options = self.options(player)
        option = next((o for o in options if o.verb == choice.verb), None)
        if option is None:
            able = ", ".join(o.verb for o in options)
            return f"You can't {choice.verb} now ({self.phase}); you can: {able}."
        return self._wrong_targets(player, choice, option) or self._wrong_words(choice, option)

    def _wrong_targets(self, player: int, choice: Choice, option: Option) -> str:
        if len(choice.targets) != len(option.slots):
            return f"{choice.verb} takes {len(option.slots)} players, not {len(choice.targets)}."
        if len(set(choice.targets)) != len(choice.targets):
            return f"{choice.verb} takes two different players."
        for target, slot in zip(choice.targets, option.slots, strict=True):
            if target not in slot:
                return self._not_allowed(player, choice.verb, target)
        return ""

    def _wrong_words(self, choice: Choice, option: Option) -> str:
        longest = self.rules.longest_will if choice.verb is Verb.FORGE else self.rules.longest_text
        if option.text and not choice.text.strip() and choice.verb is not Verb.FORGE:
            return f"{choice.verb} needs words."
        if len(choice.text) > longest:
            return f"That is too long: {len(choice.text)} characters; at most {longest}."
        return f"{choice.verb} takes no words." if choice.text and not option.text else ""

    def _not_allowed(self, player: int, verb: Verb, target: int) -> str:
        players = self.state.players
        if not 0 <= target < len(players):
            return f"There is no player number {target}."
        if target == player:
            return f"You can't {verb} yourself."
        if not players[target].alive and verb not in (Verb.RAISE, Verb.REMEMBER):
            return f"You can't {verb} the dead."
        if verb is Verb.VOTE and self.votes.get(player) == target:
            return "You vote for that player already."
        return f"You can't {verb} that player now."

    # --- what is chosen --------------------------------------------------------------------

    def resolve(self, choices: Mapping[int, Choice], *, forced: frozenset[int] = frozenset()) -> None:
        """Carry out a round.

        Args:
            choices: of everybody in `waiting`, and of nobody else.
            forced: those for whom nothing was chosen in time.

        Raises:
            UsageError: somebody is missing, is not asked, or can't choose so; nothing has happened.
        """
        for player in self.waiting:
            if player not in choices:
                raise UsageError(f"Player {player} has not chosen; the round waits for {list(self.waiting)}.")
        for player, choice in choices.items():
            reason = self.refusal(player, choice)
            if reason:
                raise UsageError(f"Player {player}: {reason}")
        self.carry_out(choices, forced)

    def carry_out(self, choices: Mapping[int, Choice], forced: frozenset[int] = frozenset()) -> None:
        """Do as `resolve`, for choices that are known to be possible."""
        if self.over:
            return
        number, record = self.round, self.record
        self.starts.append(len(self.state.log))
        for player in self.waiting:
            choice = choices[player]
            record.append(Entry(number, player, choice.verb, choice.targets, choice.text, player in forced))
            if forced and player in forced:
                self.state.tell("forced", player=player)
        self._step(choices)
        self.round += 1

    def write(self, player: int, what: Writing, text: str) -> str:
        """Write a will, a death note or into the notebook, which takes no turn; return why not, or an empty text."""
        if self.over:
            return "The game is over."
        if not 0 <= player < len(self.state.players):
            return f"There is no player number {player}."
        if what not in WRITINGS:
            return f"There is no {what!r} to write; there are: {', '.join(WRITINGS)}."
        one = self.state.players[player]
        if not one.alive:
            return "The dead write no more."
        if (what == "will" and not self.rules.wills) or (what == "note" and not self.rules.death_notes):
            return f"There is no {what} in this game's rules."
        if len(text) > self.rules.longest_will:
            return f"That is too long: {len(text)} characters; at most {self.rules.longest_will}."
        setattr(one, what, text)
        self.record.append(Entry(self.round, player, what, (), text))
        self.state.tell_one(player, "writes", what=what, text=text)
        return ""

    # --- from the beginning to the end -----------------------------------------------------

    def _begin(self) -> None:
        state = self.state
        state.tell(
            "begins",
            state.everyone,
            players=len(state.players),
            rules=self.rules.to_json(),
            mode=self.setup.name,
            slots=list(self.setup.slots),
        )
        set_up(state)
        if self._ended():
            return
        if self.rules.first_day == "none":
            self._dusk()
        else:
            self._morning()

    def _enter(self, phase: Phase, known_by: int | None = None) -> None:
        self.state.phase = phase
        self._offered.clear()
        self.state.tell("phase", self.state.everyone if known_by is None else known_by, name=phase.value)

    def _ended(self) -> bool:
        found = ending(self.state)
        if found is None:
            return False
        self._end(found)
        return True

    def _end(self, found: Ending) -> None:
        state = self.state
        self.ending = found
        self.waiting = ()
        state.phase = Phase.OVER
        everyone = state.everyone
        state.tell("over", everyone, winners=list(found.winners), side=found.side, reason=found.reason)
        state.tell(
            "truth",
            everyone,
            roles=[p.first_role.name for p in state.players],
            final=[p.role.name for p in state.players],
        )

    # --- the day ---------------------------------------------------------------------------

    def _morning(self) -> None:
        state = self.state
        if state.day > self.rules.longest_game:
            self._end(draw(state, f"Nobody has won in {self.rules.longest_game} days."))
            return
        if state.day - state.last_death_day > self.rules.deathless_days:
            self._end(draw(state, f"Nobody has died or been converted for {self.rules.deathless_days} days."))
            return
        self.trials_today = 0
        self._enter(Phase.DISCUSSION)
        self._step = self._after_floor
        self._floor = Floor(state, self.rules.discussion_rounds)
        self._next_on_floor()

    def _next_on_floor(self) -> None:
        """Give the floor to the next one, or go on to the next part of the day."""
        state = self.state
        while True:
            if state.phase is Phase.NOMINATION and self._floor.round_is_over and self._floor.idle:
                self._floor.end()
            player = self._floor.next()
            if player is None:
                break
            if state.phase is Phase.DISCUSSION and state.players[player].blackmailed:
                state.tell("silent", state.everyone, player=player)
                continue
            self.waiting = (player,)
            return
        if state.phase is Phase.DISCUSSION and not (state.day == 1 and self.rules.first_day == "talk"):
            if self.rules.lynching == "ballot":
                self._enter(Phase.BALLOT)
                self.waiting = tuple(p.number for p in state.players if p.alive)
                self._step = self._after_ballot
                return
            self._nominate(self.rules.nomination_rounds)
            return
        self._dusk()

    def _nominate(self, rounds: int) -> None:
        self.votes.clear()
        self._enter(Phase.NOMINATION)
        self._step = self._after_floor
        self._floor = Floor(self.state, rounds)
        self._floor.idle = False
        self._next_on_floor()

    def _after_floor(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        ((player, choice),) = choices.items()
        verb = choice.verb
        if verb is not Verb.WAIT:
            self._floor.idle = False
        if verb is Verb.SPEAK:
            state.tell("speech", state.everyone, player=player, text=choice.text)
        elif verb is Verb.WHISPER:
            self._whisper(player, choice.targets[0], choice.text)
        elif verb is Verb.REVEAL:
            state.players[player].revealed = True
            self._offered.clear()
            state.tell("revealed", state.everyone, player=player)
        elif verb is Verb.UNVOTE:
            state.tell("unvote", state.everyone, player=player, target=self.votes.pop(player))
        elif verb is Verb.VOTE:
            target = choice.targets[0]
            self.votes[player] = target
            needed = self.needed
            state.tell("vote", state.everyone, player=player, target=target, weight=self.weight(player), needed=needed)
            if sum(self.weight(p) for p, t in self.votes.items() if t == target) >= needed:
                self._try(target)
                return
        else:
            state.tell("silent", state.everyone, player=player)
        self._next_on_floor()

    def _whisper(self, player: int, to: int, text: str) -> None:
        state = self.state
        heard = bit(player) | bit(to)
        for p in state.players:
            if p.alive and p.role.name in ("Spy", "Blackmailer"):
                heard |= bit(p.number)
        state.tell("whispered", state.everyone, player=player, to=to)
        state.tell("whisper", heard, player=player, to=to, text=text)

    def _try(self, target: int) -> None:
        self.trials_today += 1
        self.accused = target
        self.votes.clear()
        self.state.tell("trial", self.state.everyone, player=target, number=self.trials_today)
        self._enter(Phase.DEFENSE)
        if self.state.players[target].blackmailed:
            self.state.tell("silent", self.state.everyone, player=target)
            self._judge()
            return
        self.waiting = (target,)
        self._step = self._after_defense

    def _after_defense(self, choices: Mapping[int, Choice]) -> None:
        self._one_speaks(choices)
        self._judge()

    def _one_speaks(self, choices: Mapping[int, Choice]) -> None:
        ((player, choice),) = choices.items()
        state = self.state
        if choice.verb is Verb.SPEAK:
            state.tell("speech", state.everyone, player=player, text=choice.text)
        else:
            state.tell("silent", state.everyone, player=player)

    def _judge(self) -> None:
        self._enter(Phase.JUDGEMENT)
        self.waiting = tuple(p.number for p in self.state.players if p.alive and p.number != self.accused)
        self._step = self._after_judgement

    def _after_judgement(self, choices: Mapping[int, Choice]) -> None:
        state, accused = self.state, self.accused
        assert accused is not None, "somebody is on trial"
        guilty = innocent = 0
        voted_guilty = []
        known_by = state.everyone if self.rules.open_verdicts else 0
        for player in self.waiting:
            verb = choices[player].verb
            weight = self.weight(player)
            if verb is Verb.GUILTY:
                guilty += weight
                voted_guilty.append(player)
            elif verb is Verb.INNOCENT:
                innocent += weight
            else:
                verb = Verb.ABSTAIN
            state.tell("verdict", known_by, player=player, verdict=verb.value, weight=weight)
        condemned = guilty > innocent
        state.tell("judged", state.everyone, player=accused, guilty=guilty, innocent=innocent, condemned=condemned)
        if not condemned:
            self.accused = None
            rounds = self._floor.rounds_left + (0 if self._floor.round_is_over else 1)
            if self.trials_today < self.rules.trials_a_day and rounds > 0:
                self._nominate(rounds)
            else:
                self._dusk()
            return
        self._voted_guilty = voted_guilty
        self._enter(Phase.LAST_WORDS)
        if state.players[accused].blackmailed:
            state.tell("silent", state.everyone, player=accused)
            self._lynch(accused)
            return
        self.waiting = (accused,)
        self._step = self._after_last_words

    def _after_last_words(self, choices: Mapping[int, Choice]) -> None:
        self._one_speaks(choices)
        assert self.accused is not None, "somebody is condemned"
        self._lynch(self.accused)

    def _lynch(self, player: int) -> None:
        self.accused = None
        lynch(self.state, player, self._voted_guilty)
        if not self._ended():
            self._dusk()

    def _after_ballot(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        counts: dict[int, int] = {}
        for player in self.waiting:
            choice = choices[player]
            if choice.verb is Verb.VOTE:
                counts[choice.targets[0]] = counts.get(choice.targets[0], 0) + self.weight(player)
        if not counts:
            state.tell("ballot", state.everyone, counts={}, lynched=None)
            self._dusk()
            return
        most = max(counts.values())
        first = sorted(p for p, count in counts.items() if count == most)
        lynched = first[0] if len(first) == 1 else state.public.choice(first)
        state.tell("ballot", state.everyone, counts={str(p): counts[p] for p in sorted(counts)}, lynched=lynched)
        self._voted_guilty = [
            p for p in self.waiting if choices[p].verb is Verb.VOTE and choices[p].targets[0] == lynched
        ]
        self._lynch(lynched)

    # --- the night -------------------------------------------------------------------------

    def _dusk(self) -> None:
        state = self.state
        self.votes.clear()
        self.accused = None
        for p in state.players:
            p.blackmailed = False
        state.prisoner = state.seance = None
        self._enter(Phase.DUSK)
        asked = tuple(p.number for p in state.players if dusk_options(state, p))
        if not asked:
            self._talk()
            return
        self.waiting = asked
        self._step = self._after_dusk

    def _after_dusk(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        for player in self.waiting:
            choice = choices[player]
            if choice.verb is Verb.JAIL:
                state.prisoner = choice.targets[0]
                state.tell("jailed", bit(player) | bit(state.prisoner), player=state.prisoner)
            elif choice.verb is Verb.SEANCE:
                state.seance = choice.targets[0]
                one = state.players[player]
                one.uses[Verb.SEANCE] = one.uses.get(Verb.SEANCE, 1) - 1
                state.tell("told", bit(state.seance), player=state.seance, code="seance")
        self._talk()

    def _talk(self) -> None:
        self._talk_rounds = self.rules.night_talk_rounds
        self._next_talk()

    def _next_talk(self) -> None:
        state = self.state
        if self._talk_rounds > 0:
            channels = self.channels()
            asked = tuple(sorted({p for _, members in channels for p in members}))
            if asked:
                self._talk_rounds -= 1
                state.phase = Phase.TALK_AT_NIGHT
                self.waiting = asked
                self._step = self._after_talk
                return
        self._night()

    def channels(self) -> list[tuple[str, tuple[int, ...]]]:
        """Return tonight's channels and who speaks in each: everybody in at most one."""
        state = self.state
        found: list[tuple[str, tuple[int, ...]]] = []
        taken: set[int] = set()

        def add(name: str, members: Sequence[int], least: int = 2) -> None:
            free = tuple(m for m in members if m not in taken)
            if len(free) >= least:
                found.append((name, free))
                taken.update(free)

        if state.prisoner is not None:
            jailors = [p.number for p in state.with_role("Jailor") if p.number != state.prisoner]
            add("jail", [*jailors[:1], state.prisoner])
        dead = [p.number for p in state.players if not p.alive]
        if state.seance is not None:
            mediums = [p.number for p in state.players if not p.alive and p.role.name == "Medium"]
            add("seance", [*mediums[:1], state.seance])
        add("mafia", [p.number for p in state.of_faction(Faction.MAFIA)])
        add("vampires", [p.number for p in state.of_faction(Faction.VAMPIRES)])
        listeners = [p.number for p in state.with_role("Medium") if p.number not in taken]
        if dead and (listeners or self.rules.dead_talk):
            add("dead", [*listeners, *dead])
        return found

    def _after_talk(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        for channel, members in self.channels():
            known_by = bits(members)
            spies = bits(p.number for p in state.with_role("Spy")) if channel == "mafia" else 0
            for player in members:
                choice = choices[player]
                if choice.verb is not Verb.SAY:
                    continue
                shown: int | None = player
                if channel == "jail" and player != state.prisoner:
                    shown = None  # the prisoner is not told who the Jailor is
                elif channel == "dead" and state.players[player].alive:
                    shown = None  # nor are the dead told who the Medium is
                state.tell("said", known_by, channel=channel, player=shown, text=choice.text)
                if spies and self.rules.spy_hears_mafia:
                    state.tell("said", spies, channel=channel, player=None, text=choice.text)
        self._next_talk()

    def _night(self) -> None:
        state = self.state
        state.phase = Phase.NIGHT
        state.tell("phase", state.everyone, name=Phase.NIGHT.value)
        asked = tuple(p.number for p in state.players if p.number != state.prisoner and night_options(state, p))
        if not asked:
            self._resolve_night({})
            return
        self.waiting = asked
        self._step = self._resolve_night

    def _resolve_night(self, choices: Mapping[int, Choice]) -> None:
        state = self.state
        resolve_night(state, choices)
        if self._ended():
            return
        state.day += 1
        state.prisoner = state.seance = None
        self._morning()

    # --- again, and otherwise --------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return all that is needed to play the game again; JSON-ready."""
        return {
            "format": 1,
            "mode": self.setup.name,
            "slots": list(self.setup.slots),
            "rules": self.rules.to_json(),
            "seed": self.seed,
            "roles": list(self.fixed_roles) if self.fixed_roles is not None else None,
            "record": [[e.round, e.player, str(e.verb), list(e.targets), e.text, e.forced] for e in self.record],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], *, rounds: int | None = None) -> Game:
        """Return a game played again from its record.

        Args:
            data: what `to_json` gave.
            rounds: how many rounds to play; all when None.

        Raises:
            SnapshotError: the record is damaged, or does not fit the rules: it is of another version.
        """
        try:
            if data["format"] != 1:
                raise SnapshotError(f"The game's record has the format {data['format']!r}; this package reads 1.")
            rules = RuleSet.from_json(data["rules"])
            setup = Setup(str(data["mode"]), tuple(str(s) for s in data["slots"]))
            roles = None if data["roles"] is None else [str(r) for r in data["roles"]]
            entries = [
                Entry(int(n), int(p), str(v), tuple(int(t) for t in targets), str(text), bool(forced))
                for n, p, v, targets, text, forced in data["record"]
            ]
            game = cls(setup, rules, int(data["seed"]), roles=roles)
            game.repeat(entries, rounds)
        except SnapshotError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, UsageError, RecursionError) as error:
            raise SnapshotError(f"The game's record is damaged: {error}.") from error
        return game

    def repeat(self, entries: Sequence[Entry], rounds: int | None = None) -> None:
        """Carry out what is recorded.

        Raises:
            SnapshotError: it does not fit this game.
        """
        at = 0
        while at < len(entries) and (rounds is None or entries[at].round < rounds):
            entry = entries[at]
            if entry.round != self.round:
                raise SnapshotError(f"The record has no choices for round {self.round}.")
            if entry.verb in WRITINGS:
                if self.write(entry.player, entry.verb, entry.text):
                    raise SnapshotError(f"The record does not fit in round {self.round}: nobody could write there.")
                at += 1
                continue
            choices: dict[int, Choice] = {}
            forced: set[int] = set()
            written: list[Entry] = []
            while at < len(entries) and entries[at].round == self.round:
                entry = entries[at]
                at += 1
                if entry.verb in WRITINGS:
                    written.append(entry)
                    continue
                choices[entry.player] = Choice(Verb(entry.verb), entry.targets, entry.text)
                if entry.forced:
                    forced.add(entry.player)
            if written:
                raise SnapshotError(f"The record of round {self.round} is out of order.")
            try:
                self.resolve(choices, forced=frozenset(forced))
            except UsageError as error:
                raise SnapshotError(f"The record does not fit in round {self.round}: {error}") from error

    def fork(self, rounds: int | None = None) -> Game:
        """Return a game of its own with the same past, up to a round; what follows can be chosen otherwise.

        Args:
            rounds: how many rounds of this game to keep; all when None.

        Raises:
            UsageError: there are not so many.
        """
        if rounds is not None and not 0 <= rounds <= self.round:
            raise UsageError(f"This game has had {self.round} rounds; it can be forked at 0 to {self.round}.")
        copy = Game(self.setup, self.rules, self.seed, roles=self.fixed_roles)
        copy.repeat(self.record, rounds)
        return copy
