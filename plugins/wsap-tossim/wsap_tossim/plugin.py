"""The plugin's registrations, without importing the engine or the players."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Achievement, Action
from wsap_core.specs import AdapterSpec, AgentSpec, CommandSpec, EpisodeSummary, OptionDef, ScoreMetric

ACHIEVEMENTS = (
    Achievement("speak_up", "Say something to the town.", "common"),
    Achievement("good_vote", "Vote for the trial of an enemy, and see it happen.", "common"),
    Achievement("just_verdict", "Judge an enemy of your side guilty.", "uncommon"),
    Achievement("acquit_friend", "Judge somebody on your side innocent.", "uncommon"),
    Achievement("night_finding", "Learn something true about somebody at night.", "common"),
    Achievement("survive_trial", "Be acquitted.", "uncommon"),
    Achievement("survive_attack", "Survive an attack.", "uncommon"),
    Achievement("see_the_end", "Be alive at the end of the game.", "uncommon"),
    Achievement("win_as_town", "Win with the Town.", "uncommon"),
    Achievement("win_as_mafia", "Win with the Mafia.", "uncommon"),
    Achievement("win_alone", "Win as a neutral role or a Vampire.", "rare"),
)
SKILLS = {
    "social": ("speak_up", "good_vote", "survive_trial", "win_as_mafia"),
    "planning": ("night_finding", "just_verdict", "win_as_town", "win_alone"),
    "puzzle_solving": ("just_verdict", "acquit_friend"),
    "survival": ("survive_attack", "see_the_end"),
}
"""Skill domain -> achievements that count for it."""

OPTIONS = (
    OptionDef("mode", "The role list.", "classic", "classic|ranked|any|vampires|twelve|nine|seven|five|lesson"),
    OptionDef("roles", "A custom role list, separated by commas, instead of a mode."),
    OptionDef("rules", "The rule set.", "classic", "classic|parity|quick|older"),
    OptionDef("names", "Names of the players, separated by commas."),
    OptionDef("tool_calls", "Maximum tool calls of a player in one turn.", "8", "0-50"),
    OptionDef("watch", "What spectators see.", "public", "public|all"),
    OptionDef("own_summaries", "Whether players are reminded to sum up each day.", "no", "yes|no"),
    OptionDef("past", "The history of a game to continue, from `wsap tossim fork`.", "", "a history"),
    OptionDef("SWITCH", "Any switch of the rule set by its name, such as nomination_rounds=2.", "as in the rule set"),
)


def share_of_wins(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the share of seats that won, from 0 to 1; 0 without seats."""
    return sum(e.reward > 0 for e in episodes) / len(episodes) if episodes else 0.0


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer the town."""
    return [
        AdapterSpec(
            "tossim",
            "A town of hidden roles: talk, doubt, vote, and survive the night.",
            "wsap_tossim.world:create",
            title="ToSSim",
            abilities=("seed", "snapshot", "render", "multi-seat"),
            seats=(5, 15),
            seat_names=tuple(f"player-{i + 1}" for i in range(15)),
            variant="wsap_tossim.options:variant",
            timing="phased",
            deadline=300.0,
            default_action=Action("wait"),
            default_agent="tossim-player",
            score_metrics=(
                ScoreMetric("share_of_wins", "Seats that won", "wsap_tossim.plugin:share_of_wins", "", 0, 1),
            ),
            achievements=ACHIEVEMENTS,
            wire_types=("wsap_tossim.perception.observation:TownObservation",),
            skills=SKILLS,
            complete_turns=True,
            objective="Your goal is to win as your role does.",
            look_back="wsap tossim replay {run}",
            genre="social deduction",
            dimensions="text",
            options=OPTIONS,
        )
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer players that need no model."""
    return [
        AgentSpec(
            "tossim-player",
            "Plays ToSSim without a model: claims, doubts, votes with reasons, and lies for the Mafia.",
            "wsap_tossim.players.agent:create",
            abilities=("seed", "snapshot"),
            games=("tossim",),
        ),
        AgentSpec(
            "tossim-random",
            "Plays ToSSim at random and silently: a baseline.",
            "wsap_tossim.players.agent:create_random",
            abilities=("seed", "snapshot"),
            games=("tossim",),
        ),
    ]


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer tournaments, replays and exports."""
    return [CommandSpec("tossim", "Replay, export, fork and rate games of ToSSim.", "wsap_tossim.cli:tossim")]
