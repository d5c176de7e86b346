"""The nexus as a world: its observations, actions and spec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from wsap_core import protocol
from wsap_core.protocol.lines import bullets, plural
from wsap_core.protocol.observation import render_brief, render_observation
from wsap_core.specs import AdapterSpec
from wsap_core.untrusted import single_line
from wsap_core.worlds.mailbox import MESSAGE_ACTIONS
from wsap_nexus.agents.skills import GameEntry, Suggestion
from wsap_nexus.store.entities import USUAL_TERMS

GAME = "nexus"
"""The nexus' name as a game."""


@dataclass(frozen=True)
class NexusObservation(protocol.Observation):
    """An agent's observation in the nexus: itself, the worlds, and suggestions.

    `current_goals` are its meta-goals, `recent_events` what happened since it last entered a world, and `messages`
    what others said to it.
    """

    agent: str = field(default="", kw_only=True)
    skills: Mapping[str, float] = field(default_factory=dict, kw_only=True)
    """Domain -> level from 0 to 1."""
    carried: Sequence[str] = field(default=(), kw_only=True)
    """The names of its items in escrow."""
    games: Sequence[GameEntry] = field(default=(), kw_only=True)
    suggestions: Sequence[Suggestion] = field(default=(), kw_only=True)
    """Best first."""
    recent: Sequence[str] = field(default=(), kw_only=True)
    """Its last sessions, newest first."""
    present: Sequence[str] = field(default=(), kw_only=True)
    """Other agents in the nexus."""
    in_mind: Sequence[str] = field(default=(), kw_only=True)
    """What it keeps in mind in every world: core memories, then strategies."""

    def to_text(self) -> str:
        """Return the observation in the protocol's message layout, with sections for the worlds."""
        worlds = []
        for entry in self.games:
            where = f", {plural(entry.visits, 'visit')}" if entry.visits else ", never visited"
            bodies = f"; your bodies: {', '.join(entry.avatars)}" if entry.avatars else ""
            worlds.append(f"{entry.game} ({entry.status}{where}): {entry.summary}{bodies}")
        suggestions = (f"{s.game} ({s.score:.2f}): {'; '.join(s.reasons)}" for s in self.suggestions)
        sections = [
            ("WORLDS", bullets(worlds)),
            ("SUGGESTIONS", bullets(suggestions)),
            ("SKILLS", ", ".join(f"{k} {v:.2f}" for k, v in sorted(self.skills.items()))),
            ("YOU CARRY", ", ".join(map(single_line, self.carried))),
            ("YOU KEEP IN MIND", "\n".join(f"{n}. {line}" for n, line in enumerate(self.in_mind, 1))),
            ("BEFORE", bullets(self.recent)),
            ("HERE", ", ".join(map(single_line, self.present))),
        ]
        return render_observation(self, extra_sections=sections)

    def to_brief(self) -> str:
        """Return a short text for small models: the open worlds, the best suggestion, and what the agent has."""
        lines = (
            *(f"{entry.game}: {single_line(entry.summary)}" for entry in self.games if entry.status == "available"),
            *(f"Suggestion: {best.game}, as {'; '.join(best.reasons)}" for best in self.suggestions[:1]),
            f"You carry: {', '.join(map(single_line, self.carried))}" if self.carried else "",
            *(f"You keep in mind: {number}. {line}" for number, line in enumerate(self.in_mind, 1)),
            f"Here: {', '.join(map(single_line, self.present))}" if self.present else "",
        )
        return render_brief(self, extra_lines=lines)


_GOAL_TYPES = "survive_steps|visit_game|earn_achievement|reach_skill_level|complete_action|collect_items"

NEXUS_ACTIONS = protocol.ActionSpace(
    (
        # The observation shows what it returns, so that no observation offers it.
        protocol.ActionDef("list_games", "List all worlds and their status", (), (), "nexus", unlisted=True),
        protocol.ActionDef(
            "game_details", "Read more about one world", (protocol.ParamDef("game", "a world's name"),), (), "nexus"
        ),
        protocol.ActionDef(
            "enter_game",
            "Go into a world; your body there is woken, or a new one is made",
            (
                protocol.ParamDef("game", "a world's name"),
                protocol.ParamDef("spawn", "safe|challenging|random", optional=True),
                protocol.ParamDef("loadout", "what a new body carries, in the world's own words", optional=True),
                protocol.ParamDef("difficulty", "easy|normal|hard|adaptive", optional=True),
                protocol.ParamDef("goals", "what you want to do there", optional=True),
                protocol.ParamDef(
                    "exit_when", "when to come back by itself, such as: health < 10% or step >= 500", optional=True
                ),
                protocol.ParamDef("steps", "1-1000000", optional=True, description="maximum number of decisions"),
                protocol.ParamDef("avatar", "the id of one of your bodies or new", optional=True),
                protocol.ParamDef("respawn", "how a dead body respawns, in the world's own words", optional=True),
                protocol.ParamDef("world", "which of the game's worlds that live", optional=True),
                protocol.ParamDef("seat", "which character to be, in a world that has characters", optional=True),
            ),
            ("The world is available",),
            "nexus",
        ),
        protocol.ActionDef(
            "wait_for_game",
            "Wait here until a world opens, someone speaks to you, or the time is up",
            (protocol.ParamDef("timeout", "1-600", optional=True, description="seconds"),),
            (),
            "nexus",
        ),
        # The prompt shows the persona, and the observation the rest.
        protocol.ActionDef("review_self", "Look at who you are and what you can do", (), (), "nexus", unlisted=True),
        protocol.ActionDef("review_achievements", "Look at what you have achieved", (), (), "nexus"),
        protocol.ActionDef(
            "set_meta_goal",
            "Set yourself a goal that spans worlds: endurance, traveller, artisan, achiever, collector, or your own",
            (
                protocol.ParamDef("goal", "one of these, or a name for your own"),
                protocol.ParamDef("about", _GOAL_TYPES, optional=True),
                protocol.ParamDef("what", "which achievement or action or skill or kind of item", optional=True),
                protocol.ParamDef("count", "1-1000000", optional=True, description="how many; for a skill, percent"),
                protocol.ParamDef("games", "any or all or names of worlds with commas between them", optional=True),
                protocol.ParamDef("worlds", "1-1000", optional=True, description="in how many different worlds"),
            ),
            (),
            "nexus",
        ),
        protocol.ActionDef(
            "abandon_meta_goal", "Give up a meta-goal", (protocol.ParamDef("goal", "its name"),), (), "nexus"
        ),
        protocol.ActionDef(
            "keep_in_mind",
            "Keep a core memory or a strategy for every world, in one sentence",
            (
                protocol.ParamDef("what", "memory|strategy"),
                protocol.ParamDef("text", "one sentence of at most 200 characters"),
                protocol.ParamDef("instead_of", "1-16", optional=True, description="the number of what it replaces"),
            ),
            (),
            "nexus",
        ),
        protocol.ActionDef(
            "let_go_of", "Keep something in mind no longer", (protocol.ParamDef("number", "1-16"),), (), "nexus"
        ),
        *MESSAGE_ACTIONS.actions,
    )
)

_OF_LIVING_WORLDS = ("world", "seat")


def _limited(parameter: protocol.ParamDef, words: Sequence[str] | None) -> protocol.ParamDef:
    if words is None:
        return parameter
    return replace(parameter, spec="|".join(words), schema={"type": "string", "enum": list(words)})


def nexus_actions(games: Iterable[AdapterSpec]) -> protocol.ActionSpace:
    """Return `NEXUS_ACTIONS` with those parameters and words of `enter_game` that some of these games take; the nexus
    accepts the others too, and says why they are refused."""
    specs = list(games)
    words = {
        term: list(dict.fromkeys((usual, *(word for spec in specs for word in spec.terms.get(term, ())))))
        for term, usual in USUAL_TERMS.items()
    }
    live = any("lives" in spec.abilities for spec in specs)
    useless = {term for term, some in words.items() if len(some) == 1} | (set() if live else {*_OF_LIVING_WORLDS})
    actions = []
    for action in NEXUS_ACTIONS.actions:
        if action.name == "enter_game":
            taken = [_limited(p, words.get(p.name)) for p in action.parameters if p.name not in useless]
            action = replace(action, parameters=taken)
        actions.append(action)
    return protocol.ActionSpace(actions)


DESCRIPTION = """\
You are in the nexus, the place between the worlds. Here you have no body. You keep who you are,
what you can do, what you carry and what you remember; the bodies that you have in worlds sleep
there until you come back to them. Look at the worlds, choose one, and enter it. Your skills are
worth something there, and what you learn there stays with you."""

NEXUS_SPEC = AdapterSpec(
    GAME,
    "The place between the worlds.",
    "wsap_nexus.hub.agents.desk:NexusAdapter",
    title="the nexus",
    default_agent="wanderer",
    wire_types=(NexusObservation,),
    genre="hub",
    objective="Choose what you do next, and where you go.",
    dimensions="text",
    persistent=True,
)
