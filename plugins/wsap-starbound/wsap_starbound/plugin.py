"""The plugin's registrations; imports no engine."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Action
from wsap_core.specs import AdapterSpec, AgentSpec
from wsap_starbound import catalogue


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer the world `starbound`."""
    return [
        AdapterSpec(
            catalogue.GAME_ID,
            "Dig, build, craft and explore on three planets with a ship between them, and light an old lantern.",
            "wsap_starbound.world.game:create",
            title="Starbound",
            abilities=("seed", "snapshot", "render", "avatars", "transit", "multi-seat"),
            seats=(1, catalogue.MOST_SEATS),
            variant="wsap_starbound.catalogue:variant",
            default_action=Action("noop"),
            default_agent="starbound-settler",
            score_metrics=(catalogue.SCORE,),
            achievements=catalogue.ACHIEVEMENTS,
            wire_types=("wsap_starbound.world.observation:StarboundObservation",),
            skills=catalogue.SKILLS,
            transfer_rules=catalogue.TRANSFER_RULES,
            terms=catalogue.TERMS,
            max_avatars=1,
            genre="survival",
            dimensions="2D",
            objective="Repair the beam pad, reach the moon, and make the old lantern aboard speak, alive.",
            options=catalogue.OPTIONS,
        )
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Offer the rule-based agent."""
    return [
        AgentSpec(
            "starbound-settler",
            "Plays starbound by rules, from observations alone: gathers, crafts, digs, travels and follows its goals.",
            "wsap_starbound.agent.settler:Settler",
            abilities=("snapshot",),
            games=("starbound",),
        )
    ]
