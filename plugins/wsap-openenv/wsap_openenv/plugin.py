"""The registration of the command and of the family of games; their implementation is imported on first use."""

from __future__ import annotations

from collections.abc import Iterable

from wsap_core.hookspecs import hookimpl
from wsap_core.specs import AdapterSpec, CommandSpec, OptionDef, ScoreMetric

DEFAULT = "http://127.0.0.1:8000"
"""The environment that is played if none is named."""
SEEDED = OptionDef("seeded", "Whether it keeps to seeds; many do not.", "no", "yes|no")
TIMEOUT = OptionDef("timeout", "Seconds to wait for its answer.", "60", "1-3600")


@hookimpl
def wsap_commands() -> Iterable[CommandSpec]:
    """Offer `wsap serve`."""
    return [CommandSpec("serve", "Serve a game to trainers, as an OpenEnv environment.", "wsap_openenv.command:serve")]


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Offer `openenv:URL`."""
    return [
        AdapterSpec(
            "openenv",
            "Any OpenEnv environment that is served somewhere: openenv:http://127.0.0.1:8000.",
            "wsap_openenv.games:create",
            title="OpenEnv",
            abilities=(),
            blocking=True,
            variant="wsap_openenv.games:variant",
            family="url",
            default_agent="random-legal",
            score_metrics=(
                ScoreMetric(
                    "return", "Mean sum of rewards of an episode.", "wsap_nexus.doors.foreign:mean_return", of_set=True
                ),
            ),
            wire_types=("wsap_openenv.telling:ForeignObservation",),
            genre="foreign",
            dimensions="text",
            options=(
                OptionDef("url", "The address of its server.", DEFAULT, names="address"),
                SEEDED,
                TIMEOUT,
            ),
        )
    ]
