"""The plugin's registrations; imports neither the bridge nor an engine."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Action
from wsap_core.specs import AdapterSpec, AgentSpec, CommandSpec
from wsap_tes3mp.world import catalogue


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer the world `morrowind`."""
    return [
        AdapterSpec(
            catalogue.GAME_ID,
            "Talk, trade, fight and follow quests in a role-playing world behind a Perception/Command bridge.",
            "wsap_tes3mp.world.game:create",
            title="Morrowind",
            abilities=("seed", "snapshot", "render", "avatars", "transit", "multi-seat"),
            seats=(1, catalogue.MOST_SEATS),
            variant="wsap_tes3mp.world.options:variant",
            default_action=Action("noop"),
            default_agent="morrowind-wayfarer",
            score_metrics=(catalogue.SCORE,),
            achievements=catalogue.ACHIEVEMENTS,
            wire_types=("wsap_tes3mp.world.observation:MorrowindObservation",),
            skills=catalogue.SKILLS,
            transfer_rules=catalogue.TRANSFER_RULES,
            terms=catalogue.TERMS,
            genre="role-playing",
            dimensions="3D",
            objective="Find the quests of this world and bring them to their end, alive.",
            options=catalogue.OPTIONS,
        )
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer the rule-based agent."""
    return [
        AgentSpec(
            "morrowind-wayfarer",
            "Plays morrowind by rules, from perceptions alone: asks around, makes friends, follows its journal.",
            "wsap_tes3mp.agent.wayfarer:Wayfarer",
            abilities=("snapshot",),
            games=("morrowind",),
        )
    ]


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer `wsap tes3mp`."""
    summary = "Serve, check and read Perception/Command bridges to Morrowind and other engines."
    return [CommandSpec("tes3mp", summary, "wsap_tes3mp.cli:tes3mp")]
