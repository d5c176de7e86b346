"""The scenes whose turns are kept as goldens; the seed's own example is the first."""

from __future__ import annotations

from turn_kit import Scene

CLAIM = "I'm the real Doctor! I healed Player 1 last night. Player 3's will is probably fake."


def investigator() -> Scene:
    """Seed 002's example: day 3, Player 3 is dead and was the Doctor, Player 4 claims to be the Doctor."""
    roles = "Sheriff, Citizen, Doctor, Serial Killer, Escort, Citizen, Investigator, Mafioso, Citizen"
    scene = Scene(*roles.split(", "))
    scene.on(1, "night", 3, "heal 5").on(1, "night", 7, "investigate 5")
    scene.on(2, "night", 3, "heal 1").on(2, "night", 7, "investigate 8")
    scene.on(2, "night", 8, "kill 1").on(2, "night", 4, "stab 3")
    scene.play(2, "discussion").write(3, "will", "I am the Doctor. N1 heal Player 5. N2 heal Player 1.")
    scene.on(3, "discussion", 5, "speak: We need to vote someone. Player 4 has been acting weird.")
    scene.on(3, "discussion", 4, "wait", f"speak: {CLAIM}")
    scene.on(3, "discussion", 7, "wait")
    return scene.play(3, "discussion", 7)


def nomination() -> Scene:
    """The same day, when votes stand against Player 4 and Player 7; Player 2 has the floor."""
    scene = investigator().on(3, "discussion", 7, "speak: Player 4 is lying.")
    for voter in (5, 7, 9, 1):
        scene.on(3, "nomination", voter, "vote 4")
    return scene.on(3, "nomination", 4, "vote 7").play(3, "nomination", 2)


def judgement() -> Scene:
    """Player 4 has spoken in its defense."""
    scene = nomination().on(3, "nomination", 2, "vote 4").on(3, "defense", 4, "speak: I am no killer.")
    return scene.play(3, "judgement", 2)


def night() -> Scene:
    """The first night's second round of talk: the Mafia has spoken, Player 4 sits in jail."""
    roles = "Godfather, Mafioso, Framer, Sheriff, Citizen, Medium, Jailor"
    scene = Scene(*roles.split(", "), night_talk_rounds=2)
    scene.on(1, "dusk", 7, "jail 4")
    scene.on(1, "talk at night", 1, "say: Kill the Sheriff.")
    scene.on(1, "talk at night", 4, "say: I am the Sheriff!")
    scene.on(1, "talk at night", 7, "say: Who are you?")
    return scene.play(1, "talk at night", 4)


def dead_medium() -> Scene:
    """The Medium died in the first night; in the second evening it may hold its seance."""
    roles = "Godfather, Mafioso, Framer, Sheriff, Citizen, Medium, Jailor"
    return Scene(*roles.split(", ")).on(1, "night", 2, "kill 6").play(2, "dusk", 6)


GOLDENS = {
    "investigator": (investigator, 7),
    "nomination": (nomination, 2),
    "judgement": (judgement, 2),
    "mafia-at-night": (night, 2),
    "prisoner": (night, 4),
    "dead-medium": (dead_medium, 6),
}
"""Golden -> the scene, and whose turn it is."""
