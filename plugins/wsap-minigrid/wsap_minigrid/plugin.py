"""The hooks, skills and bonuses of this package; neither the game nor numpy is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from wsap_core.hookspecs import hookimpl
from wsap_core.protocol import Achievement, Bonus, TransferRule
from wsap_core.specs import AdapterSpec, AgentSpec, EpisodeSummary, OptionDef, ScoreMetric

LEVELS: Mapping[str, str] = {
    "key": "MiniGrid-DoorKey-5x5-v0",
    "lava": "MiniGrid-LavaGapS5-v0",
    "box": "MiniGrid-UnlockPickup-v0",
    "rooms": "MiniGrid-MultiRoom-N4-S5-v1",
    "blocked": "MiniGrid-BlockedUnlockPickup-v0",
    "corridor": "MiniGrid-KeyCorridorS3R1-v0",
    "hall": "MiniGrid-DoorKey-8x8-v0",
    "maze": "MiniGrid-KeyCorridorS3R3-v0",
}
"""The levels of an episode, in order -> the id of MiniGrid's environment."""

ACHIEVEMENTS = (
    Achievement("take_key", "Pick up a key.", "common"),
    Achievement("take_ball", "Pick up a ball.", "uncommon"),
    Achievement("take_box", "Pick up a box.", "uncommon"),
    Achievement("open_door", "Open a door.", "common"),
    Achievement("unlock_door", "Open a locked door.", "common"),
    Achievement("improvise", "Open a locked door with what is not of this level.", "rare"),
    *(Achievement(f"solve_{name}", f"Solve the level {name!r}.", "rare") for name in LEVELS),
)

SKILLS: Mapping[str, tuple[str, ...]] = {
    "exploration": ("open_door", "solve_rooms", "solve_maze"),
    "resource_management": ("take_key", "take_ball", "take_box", "solve_box"),
    "survival": ("solve_lava",),
    "puzzle_solving": ("unlock_door", "solve_key", "solve_corridor"),
    "planning": ("solve_blocked", "solve_hall"),
    "adaptation": ("improvise",),
}
"""Skill domain -> the achievements that are evidence for it; none for combat, crafting and social."""

TRANSFER_RULES = (
    TransferRule("explorer", "exploration", 0.2, Bonus("stat", "sight", 2), "you see 9 by 9 cells instead of 7 by 7"),
    TransferRule("puzzler", "puzzle_solving", 0.6, Bonus("ability", "hearing", 1), "you perceive through walls"),
    TransferRule("planner", "planning", 0.2, Bonus("stat", "time", 50), "half as many steps again for each level"),
    TransferRule("crafter", "crafting", 0.2, Bonus("item", "lockpick", 1), "a lockpick: it opens one locked door"),
    TransferRule("thrifty", "resource_management", 0.3, Bonus("stat", "pack", 3), "a pack for 3 things more"),
)
TERMS: Mapping[str, tuple[str, ...]] = {
    "difficulty": ("easy", "hard"),
    "spawn": ("random",),
    "loadout": ("lockpick",),
}
"""What an entry can ask for: episodes from the first level or from `HARD_FIRST` instead of the option `level`; to begin
anywhere in the first level; a lockpick, as for a skilled crafter."""
HARD_FIRST = 5
PACK = OptionDef(
    "pack",
    "Whether keys of solved levels open doors of later ones, which MiniGrid doesn't have: figures with a pack can't be "
    "compared with its own.",
    "no",
    "yes|no",
)
VOCABULARY = (
    *("minigrid", "door", "key", "ball", "box", "lava", "wall"),
    *("goal", "room", "level", "floor", "lockpick", "maze", "corridor", "hall"),
)


def levels_solved(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the mean number of solved levels, of eight, over episodes."""
    solved = sum(name.startswith("solve_") for episode in episodes for name in episode.achievements)
    return solved / len(episodes) if episodes else 0.0


@hookimpl
def wsap_adapters() -> Iterable[AdapterSpec]:
    """Register MiniGrid."""
    return [
        AdapterSpec(
            "minigrid",
            "Find keys, open doors and fetch things in MiniGrid: eight levels of rooms, each harder than the last.",
            "wsap_minigrid.adapter:MiniGridAdapter",
            title="MiniGrid",
            brief="You are in rooms of square cells. Do what the goal says. A locked door opens with a key of its "
            "colour in your hand. Lava kills. You hold one thing at a time: stand in front of what you pick up.",
            abilities=("seed", "snapshot", "render", "avatars", "transit"),
            default_agent="minigrid-finder",
            vocabulary=VOCABULARY,
            score_metrics=(ScoreMetric("levels", "Levels solved, of eight", levels_solved, "", 0.0, 8.0),),
            achievements=ACHIEVEMENTS,
            wire_types=("wsap_minigrid.seen:GridObservation",),
            skills=SKILLS,
            transfer_rules=TRANSFER_RULES,
            terms=TERMS,
            genre="puzzle",
            dimensions="2D",
            options=(OptionDef("level", "The first level.", "1", f"1-{len(LEVELS)}"), PACK),
        )
    ]


@hookimpl
def wsap_agents() -> Iterable[AgentSpec]:
    """Register the agent that plays MiniGrid by rules."""
    return [
        AgentSpec(
            "minigrid-finder",
            "Plays MiniGrid by rules: remembers what it saw, explores, and takes the shortest path.",
            "wsap_minigrid.finder:Finder",
            games=("minigrid",),
        )
    ]
