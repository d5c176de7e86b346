"""What a client is told of a game: texts for its model, and structured content for programs."""

from __future__ import annotations

from typing import Any

from wsap_core.protocol import ActionResult, ActionSpace, Observation
from wsap_core.protocol.wire import encode
from wsap_nexus.doors.outside import OutsideRun

# Any, in this module: JSON.


def possible_now(space: ActionSpace, observation: Observation) -> list[str]:
    """Return the names of the actions that the observation offers, or of all that are listed if it says nothing."""
    if observation.available_actions is None:
        return list(space.listed().names)
    return [each.name for each in observation.available_actions if each.available]


def start_text(handle: str, run: OutsideRun, observation: Observation) -> str:
    """Return the handle, the rules, the actions and the first observation of a game."""
    parts = [
        f"{run.spec.display_title}: your game is {handle!r}, recorded as run {run.run_id}; you play {run.seat!r}.",
        run.description.strip(),
        f"ACTIONS:\n{run.action_space.listed().to_text()}",
        see_text(run, observation),
    ]
    return "\n\n".join(part for part in parts if part)


def see_text(run: OutsideRun, observation: Observation) -> str:
    """Return an observation, and the end of the game if it is over."""
    end = f"The game is over. Look back with: wsap replay {run.run_id}" if run.over else ""
    return "\n\n".join(part for part in (observation.to_text().strip(), end) if part)


def result_text(run: OutsideRun, result: ActionResult, observation: Observation) -> str:
    """Return the result of an action, and what is seen at the next decision."""
    said = result.message or ("Done." if result.success else "It did not work.")
    gained = f" Reward: {result.reward:+g}." if result.reward else ""
    earned = f" Achieved: {', '.join(result.achievements)}." if result.achievements else ""
    return f"{said}{gained}{earned}\n\n{see_text(run, observation)}"


def content_of(
    handle: str, run: OutsideRun, observation: Observation, result: ActionResult | None = None, *, state: bool = False
) -> dict[str, Any]:
    """Return what a program needs of a game; with `state` the whole observation as JSON, too."""
    content: dict[str, Any] = {
        "game": handle,
        "run": run.run_id,
        "seat": run.seat,
        "step": observation.step,
        "done": run.over,
        "possible": [] if run.over else possible_now(run.action_space, observation),
    }
    if result is not None:
        content |= {
            "success": result.success,
            "message": result.message,
            "reward": result.reward,
            "achievements": list(result.achievements),
        }
    if run.over and run.summary is not None:
        content["summary"] = {key: run.summary.get(key) for key in ("steps", "seats", "trajectory_hash")}
    if state:
        content["state"] = encode(observation)
    return content
