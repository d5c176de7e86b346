"""The world's options, achievements, skills and bonuses. Light: a listing of games reads this module."""

from __future__ import annotations

from collections.abc import Sequence

from wsap_core.protocol import Achievement, Bonus, TransferRule
from wsap_core.specs import EpisodeSummary, OptionDef

GAME_ID = "morrowind"
MOST_SEATS = 8
ACHIEVEMENTS = (
    Achievement("travel", "Go from one place to another.", "common"),
    Achievement("go_inside", "Enter a building or a cave.", "common"),
    Achievement("see_places", "See five places.", "uncommon"),
    Achievement("talk", "Talk to somebody.", "common"),
    Achievement("befriend", "Make somebody like you who did not: a disposition of 70.", "uncommon"),
    Achievement("take_item", "Take something.", "common"),
    Achievement("earn_gold", "Earn gold.", "common"),
    Achievement("equip", "Equip something.", "common"),
    Achievement("heal", "Restore health with an item.", "uncommon"),
    Achievement("fight", "Be in a fight.", "common"),
    Achievement("prevail", "Defeat a creature.", "uncommon"),
    Achievement("begin_quest", "Begin a quest.", "common"),
    Achievement("advance_quest", "Reach a later stage of a quest.", "uncommon"),
    Achievement("complete_quest", "Complete a quest.", "rare"),
    Achievement("complete_two_quests", "Complete two quests.", "legendary"),
)
SKILLS = {
    "exploration": ("travel", "go_inside", "see_places"),
    "social": ("talk", "befriend"),
    "resource_management": ("take_item", "earn_gold"),
    "combat": ("fight", "prevail"),
    "survival": ("equip", "heal"),
    "planning": ("begin_quest", "advance_quest", "complete_quest", "complete_two_quests"),
}
"""Skill domain -> achievements that are evidence for it."""
OPTIONS = (
    OptionDef("engine", "The game behind the bridge of its own.", "simulated", "simulated|tes3mp"),
    OptionDef("bridge", "A bridge to play through in place of one of its own.", "", "URL"),
    OptionDef("token", "The token of the bridge or, with engine=tes3mp, of the script.", "that of the local admin"),
    OptionDef("address", "Where the script of engine=tes3mp listens.", "127.0.0.1:8766", "HOST:PORT"),
    OptionDef("agent", "The agent on the bridge to play, where bodies can't be made.", "the only one"),
    OptionDef("seats", "Agents in one embedded world.", "1", f"1-{MOST_SEATS}"),
    OptionDef("length", "Commands of an episode; 0 for no limit.", "500, live 0", "0 or more"),
    OptionDef("quests", "Completed quests that end an episode; 0 for none.", "2, live 0", "0-100"),
    OptionDef("log", "The file of the command log.", "live: the usual one; else memory", "file"),
    OptionDef("episode", "The id of the episode in the command log.", "a new one"),
    OptionDef("patience", "Seconds to wait for the outcome of a command, live.", "60", "1-3600"),
)


def quests_completed(episodes: Sequence[EpisodeSummary]) -> float:
    """Return the completed quests, at most two of an episode, mean over episodes."""
    names = ("complete_quest", "complete_two_quests")
    return sum(name in e.achievements for e in episodes for name in names) / len(episodes) if episodes else 0.0


TRANSFER_RULES = (
    TransferRule("fighter", "combat", 0.3, Bonus("item", "gaff", 1), "a boat gaff: a better weapon to begin with"),
    TransferRule("survivor", "survival", 0.3, Bonus("item", "salve", 2), "two green salves more"),
    TransferRule("steward", "resource_management", 0.3, Bonus("item", "smoked_eel", 3), "provisions: three eels"),
    TransferRule("smith", "crafting", 0.5, Bonus("item", "oilskin", 1), "an oilskin coat"),
)
