"""The nexus as a game for one agent: its observations and actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from wsap_core import protocol
from wsap_core.errors import UsageError, WsapError
from wsap_core.untrusted import single_line
from wsap_core.worlds.legality import check_action, index_actions
from wsap_nexus.agents import lore, messages, metagoals
from wsap_nexus.agents.chronicle import news, ways_back
from wsap_nexus.agents.skills import GameEntry, suggestions
from wsap_nexus.hub.agents.place import DESCRIPTION, NEXUS_ACTIONS, NexusObservation, nexus_actions
from wsap_nexus.hub.context import HubContext
from wsap_nexus.hub.lobby import Entrance
from wsap_nexus.store.entities import AvatarRecord, EntryRequest, SessionRecord

# Any, in this module: parameters of actions, checked against their declaration.

_DECLARED = index_actions(NEXUS_ACTIONS)
_MESSAGES = {"say": "broadcast", "tell": "direct", "tell_team": "team"}
MOST_ASIDE = 5
"""Looks and notes in a row, after which an agent has to go into a world, to wait or to speak.

A message begins the count anew, so that what it asks can be looked up before it is answered with `tell`. A person's
question to an agent here takes no action: it is answered in a call of its own (`AgentTalk.talk`), whatever the count.
"""
_GOES_ON = frozenset({"enter_game", "wait_for_game", *_MESSAGES})
_ASIDE = frozenset(action.name for action in NEXUS_ACTIONS.listed().actions) - _GOES_ON
_ENOUGH = f"you have looked and noted {MOST_ASIDE} times in a row; go into a world, or wait for something to happen"


class NexusAdapter:
    """The nexus as a `GameAdapter` with one seat."""

    def __init__(self, context: HubContext, entrance: Entrance, agent_id: str) -> None:
        self._context = context
        self._entrance = entrance
        self._agent_id = agent_id
        self._step = self._aside = 0
        self._leaving = False
        self._seen: NexusObservation | None = None
        self._unread: Sequence[int] = ()

    @property
    def game_description(self) -> str:
        """The nexus' description."""
        return DESCRIPTION

    @cached_property
    def action_space(self) -> protocol.ActionSpace:
        """The actions of the nexus, with those parameters of an entry that some of its games take."""
        return nexus_actions(self._entrance.specs().values())

    def observe(self) -> NexusObservation:
        """Return the agent's observation; the same one until it acts."""
        if self._seen is None:
            self._seen = self._perceive()
        return self._seen

    def reset(self) -> NexusObservation:
        """Start a visit and return its first observation."""
        self._step, self._aside, self._leaving, self._seen = 0, 0, False, None
        return self.observe()

    async def act(self, action: protocol.Action) -> protocol.ActionResult:
        """Carry out an action; messages shown before it are marked read."""
        if self._leaving:
            return protocol.ActionResult(False, "You are already on your way.", done=True, observation=self.observe())
        action, wrong = check_action(action, _DECLARED)
        if wrong:
            return protocol.ActionResult(False, wrong, observation=self.observe())
        if action.name in _ASIDE and self._aside >= MOST_ASIDE:
            return protocol.ActionResult(False, f"That does not work: {_ENOUGH}.", observation=self.observe())
        seen = self.observe()
        if self._unread:
            with self._context.nexus_store.change() as tx:
                messages.mark_read(tx, self._agent_id, self._unread)
        self._step += 1
        self._aside = 0 if action.name in _GOES_ON else self._aside + (action.name in _ASIDE)
        try:
            success, message = True, await self._carry_out(action)
        except WsapError as error:
            if self._context.storage.is_passing(error):
                raise
            success, message = False, str(error)
        leaving = success and action.name == "enter_game"  # then nobody decides on this observation
        self._seen = replace(seen, step=self._step, messages=()) if leaving else None
        return protocol.ActionResult(success, message, done=self._leaving, observation=self.observe())

    async def _carry_out(self, action: protocol.Action) -> str:
        given, own = action.parameters, self._agent_id
        match action.name:
            case "enter_game":
                message = self._entrance.request_enter(own, str(given["game"]), _terms(given))
                self._leaving = True
                return message
            case "list_games":
                return "; ".join(f"{g.game} is {g.status}" for g in self._perceive().games) or "There are no worlds."
            case "game_details":
                return self._game_details(str(given["game"]))
            case "wait_for_game":
                seconds = min(max(float(given.get("timeout") or 10), 0.0), 600.0)
                happened = await self._context.wakeups.wait(own, seconds)
                return "Something has happened." if happened else "You waited."
            case "review_self":
                return self._review_self()
            case "review_achievements":
                with self._context.nexus_store.look() as tx:
                    achieved = [f"{row.name} ({row.game})" for row in tx.achievements(own)]
                return f"You have achieved: {', '.join(map(single_line, achieved)) or 'nothing yet'}."
            case "set_meta_goal":
                return self._set_goal(given)
            case "abandon_meta_goal":
                goal = str(given["goal"])
                with self._context.nexus_store.change() as tx:
                    metagoals.abandon_goal(tx, own, goal)
                return f"You have given up {goal!r}."
            case "keep_in_mind":
                return self._keep(str(given["text"]), str(given["what"]), int(given.get("instead_of") or 0))
            case "let_go_of":
                return self._keep("", "", int(given["number"]))
        to = str(given["to"]) if action.name == "tell" else None
        with self._context.nexus_store.change() as tx:
            hearers = messages.send(tx, own, _MESSAGES[action.name], str(given["text"]), to=to)
        return f"{len(hearers) if to is None else to} will hear it."

    def _perceive(self) -> NexusObservation:
        infos, specs, own = self._entrance.games(), self._entrance.specs(), self._agent_id
        with self._context.nexus_store.look() as tx:
            agent, skills = tx.agent(own), tx.skills(own)
            sessions = tx.sessions(agent_id=own, limit=5)
            visits, bodies = tx.visits(own), tx.avatars(own)
            games = [
                GameEntry(
                    info.id,
                    info.name,
                    info.description,
                    info.status,
                    info.active_agents,
                    info.capacity,
                    visits.get(info.id, 0),
                    _told_bodies([body for body in bodies if body.game == info.id]),
                )
                for info in infos
            ]
            pursuits = metagoals.pursuits(tx, own, "active")
            letters = messages.inbox(tx, own)
            present, team = messages.present(tx, own), messages.team_of(tx, own)
            carried = [record.item.name for record in tx.items(own, place="escrow")]
            happened = news(tx, own)
        self._unread = tuple(letter.id for letter in letters)
        if letters:
            self._aside = 0
        in_mind = lore.told(agent)
        writers = (letter.message.sender for letter in letters if letter.message.sender != messages.HUMAN_SENDER)
        reachable = list(dict.fromkeys((*present, *writers)))
        kept = [str(number) for number in range(1, len(in_mind) + 1)]
        open_games = [game.game for game in games if game.status == "available"]
        worlds = {name: seats for game in open_games for name, seats in self._entrance.worlds.seats(game).items()}
        barred = {
            "enter_game": "" if open_games else "no world is available",
            "abandon_meta_goal": "" if pursuits else "you have no meta-goal",
            "game_details": "" if games else "there are no worlds",
            "let_go_of": "" if in_mind else "you keep nothing in mind",
            "say": "" if present else "nobody else is here",
            "tell": "" if reachable else "nobody else is here",
            "tell_team": "" if team else "you are in no team",
        }
        if self._aside >= MOST_ASIDE:
            barred |= dict.fromkeys(_ASIDE, _ENOUGH)
        named = [avatar_id for game in games for avatar_id in _ids(bodies, game.game)]
        choices: dict[str, dict[str, Sequence[str]]] = {
            "game_details": {"game": [game.game for game in games]},
            "enter_game": {
                "game": open_games,
                "avatar": [*named, "new"],
                "world": list(worlds),
                "seat": list(dict.fromkeys(seat for seats in worlds.values() for seat in seats)),
            },
            "abandon_meta_goal": {"goal": [pursuit.goal.id for pursuit in pursuits]},
            "keep_in_mind": {"instead_of": kept},
            "let_go_of": {"number": kept},
            "tell": {"to": reachable},
        }
        told = {a.name: {p.name for p in a.parameters} for a in self.action_space.listed().actions}
        return NexusObservation(
            step=self._step,
            current_goals=tuple(pursuit.to_goal() for pursuit in pursuits),
            recent_events=tuple(happened),
            messages=tuple(letter.message for letter in letters),
            available_actions=tuple(
                protocol.ActionAvailability(name, False, barred[name])
                if barred.get(name)
                else protocol.Possible(
                    name, choices={p: words for p, words in choices[name].items() if words and p in parameters}
                )
                if name in choices
                else protocol.ActionAvailability(name)
                for name, parameters in told.items()
            ),
            agent=agent.name,
            skills=skills,
            carried=tuple(carried),
            games=tuple(games),
            suggestions=tuple(
                suggestions(games, infos, skills=skills, pursuits=pursuits, sessions=sessions, specs=specs)
            ),
            recent=tuple(_told(session) for session in sessions),
            present=tuple(present),
            in_mind=in_mind,
        )

    def _game_details(self, game: str) -> str:
        info = self._entrance.game_info(game)
        spec = self._entrance.specs()[game]
        with self._context.nexus_store.look() as tx:
            bodies, dead = tx.avatars(self._agent_id, game), ways_back(tx, self._agent_id, game)
            skills = tx.skills(self._agent_id)
        status = f"{info.status}: {info.reason}" if info.reason else f"{info.status}."
        parts = [
            f"{info.name}: {info.description} Genre: {info.genre or 'unknown'}. Seats: {info.capacity}.",
            f"Skills used there: {', '.join(info.skill_domains) or 'none declared'}. It is {status}",
        ]
        for term, values in spec.terms.items():
            parts.append(f"You may enter it with {term}={' or '.join(values)}.")
        for rule in spec.transfer_rules:
            met = "you have it" if skills.get(rule.domain, 0.0) >= rule.threshold else f"from level {rule.threshold:g}"
            parts.append(f"{rule.domain} is worth {rule.description or rule.bonus.name} there ({met}).")
        for body in bodies:
            avatar = body.avatar
            way = f" {dead.get(avatar.avatar_id, '')}" if avatar.state is protocol.AvatarState.DESTROYED else ""
            parts.append(f"Your body {avatar.avatar_id} in {body.world_id} is {avatar.state.value}.{way}")
        return single_line(" ".join(parts))

    def _review_self(self) -> str:
        now = self._perceive()
        with self._context.nexus_store.look() as tx:
            own, team = tx.agent(self._agent_id), messages.team_of(tx, self._agent_id)
        skills = ", ".join(f"{k} {v:.2f}" for k, v in sorted(now.skills.items())) or "none yet"
        parts = [f"You are {own.name}.", own.persona, f"You have made {own.lifetime_steps} decisions in worlds."]
        parts += [f"Skills: {skills}.", f"You carry: {', '.join(now.carried) or 'nothing'}."]
        parts += [f"Your team: {team}."] if team else []
        goals = "; ".join(f"{g.id}: {g.description} ({g.progress})" for g in now.current_goals)
        parts += [f"Your goals: {goals}."] if goals else []
        parts += [f"You keep in mind: {line}" for line in lore.told(own)]
        return single_line(" ".join(part for part in parts if part))

    def _keep(self, text: str, kind: str, number: int) -> str:
        """Keep a text in mind, instead of the one with a number if that is not 0; an empty one only lets that go."""
        with self._context.nexus_store.change() as tx:
            agent = tx.agent(self._agent_id)
            memories, ways = list(agent.core_memories[: lore.MOST]), list(agent.strategies[: lore.MOST])
            if text.strip() and not memories and not ways:
                number = 0  # there is nothing to replace
            if number > len(memories) + len(ways):
                raise UsageError(f"You keep no {number} in mind; there are {len(memories) + len(ways)}.")
            if number > len(memories):
                del ways[number - len(memories) - 1]
            elif number:
                del memories[number - 1]
            if text.strip():
                (memories if kind == "memory" else ways).append(text)
            lore.keep(tx, self._agent_id, core_memories=memories, strategies=ways)
        return "You keep it in mind." if text.strip() else "You have let it go."

    def _set_goal(self, wanted: Mapping[str, Any]) -> str:
        name = str(wanted["goal"]).strip()
        goal = metagoals.TEMPLATES.get(name)
        if goal is None:
            if not wanted.get("about"):
                known = "; ".join(f"{g.id} ({g.description})" for g in metagoals.TEMPLATES.values())
                raise UsageError(
                    f"There is no goal {name[:60]!r}. There are: {known}. For a goal of your own, give `about`."
                )
            about, count = str(wanted["about"]), float(wanted.get("count") or 1)
            goal = metagoals.own_goal(
                name if name.isidentifier() and name.islower() else "",
                name,
                about,
                what=str(wanted.get("what") or ""),
                count=count / 100 if about == "reach_skill_level" else count,
                games=str(wanted.get("games") or "any"),
                worlds=int(wanted.get("worlds") or 0),
            )
        if wanted.get("about") and goal.id in metagoals.TEMPLATES:
            raise UsageError(f"There is already a goal {goal.id!r}; choose another name for your own.")
        with self._context.nexus_store.change() as tx:
            games = [info.id for info in self._entrance.games()]
            pursuit = metagoals.set_goal(tx, self._agent_id, goal, games)
        state = "you have reached it already" if pursuit.state == "reached" else f"so far {pursuit.progress}"
        return f"Your goal {goal.id!r}: {goal.description}; {state}."


def _terms(given: Mapping[str, Any]) -> EntryRequest:
    goals = str(given.get("goals") or "").strip()
    named = ("exit_when", "spawn", "loadout", "difficulty", "avatar", "respawn", "world", "seat")
    steps = int(given["steps"]) if given.get("steps") else None
    return EntryRequest(
        (goals,) if goals else (), steps=steps, **{name: str(given[name]) for name in named if given.get(name)}
    )


def _ids(bodies: Sequence[AvatarRecord], game: str) -> list[str]:
    return [body.avatar.avatar_id for body in bodies if body.game == game]


def _told_bodies(bodies: Sequence[AvatarRecord]) -> list[str]:
    ordered = sorted(bodies, key=lambda body: body.avatar.state is protocol.AvatarState.DESTROYED)
    return [f"{body.avatar.avatar_id} ({body.avatar.state.value})" for body in ordered[:10]]


def _told(session: SessionRecord) -> str:
    achieved = session.stats.get("achievements") or []
    deeds = f", achieved {', '.join(achieved)}" if achieved else ""
    return f"{session.game}: {session.steps} decisions{deeds}, ended by {session.reason or 'nothing yet'}"
