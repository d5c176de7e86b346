"""Drawing games in which much is hidden: roles that keep secrets from one another, and rules that let them."""

from __future__ import annotations

import random

from twins import KINDS, Change, Played, Script, places

from wsap_tossim.engine.roles.listed import ROLES

CORES = (
    ("Jailor", "Godfather", "Mafioso"),
    ("Jailor", "Vampire", "Vampire", "Vampire"),
    ("Amnesiac", "Amnesiac", "Amnesiac", "Vigilante"),
    ("Medium", "Medium", "Vigilante", "Jailor"),
    ("Spy", "Mafioso", "Framer", "Janitor"),
    ("Blackmailer", "Spy", "Consort", "Escort"),
    ("Executioner", "Consigliere", "Framer", "Jester"),
    ("Jester", "Jester", "Jester", "Janitor"),
    ("Vigilante", "Vigilante", "Serial Killer", "Serial Killer"),
    ("Witch", "Witch", "Veteran", "Mayor"),
    ("Transporter", "Transporter", "Doctor", "Lookout"),
    ("Retributionist", "Disguiser", "Mafioso", "Forger"),
    ("Bodyguard", "Werewolf", "Arsonist", "Vampire Hunter", "Vampire"),
    (),
)
"""What a game is drawn around."""
PLACED = ("choice", "words", "hands", "papers", "deadline", "tools")
"""Changes that are made at a turn of a player."""


def script(salt: int, *, most: int = 9) -> Script:
    """Return a game drawn by lot, of 5 to so many players."""
    rng = random.Random(f"{salt}:script")
    players = rng.randint(5, most)
    roles = list(rng.choice(CORES))
    while len(roles) < players:
        role = rng.choice(list(ROLES))
        if not ROLES[role].unique or role not in roles:
            roles.append(role)
    rng.shuffle(roles)
    rules = {
        "discussion_rounds": rng.choice((0, 1, 1)),
        "nomination_rounds": rng.choice((1, 1, 2)),
        "first_day": rng.choice(("none", "none", "talk", "vote")),
        "lynching": rng.choice(("trial", "trial", "ballot")),
        "night_talk_rounds": rng.choice((1, 1, 2)),
        **{name: rng.random() < 0.5 for name in ("open_verdicts", "dead_talk", "spy_hears_mafia", "frame_lasts")},
        "hunter_hears_vampires": random.Random(f"{salt}:hunter").random() < 0.5,
        "floor": random.Random(f"{salt}:floor").choice(("round robin", "round robin", "round robin", "bids")),
        **{name: rng.random() < 0.8 for name in ("roles_on_death", "wills", "death_notes", "jester_haunts")},
    }
    return Script(tuple(roles), rules, salt, salt, rng.choice((2, 2, 3)))


def change(kind: str, of: Script, first: Played) -> Change | None:
    """Return a change of a kind, drawn by lot; None where there is nothing of that kind to change."""
    rng = random.Random(f"{of.salt}:{kind}")
    if kind in PLACED:
        found = places(first, kind)
        return rng.choice(found) if found else None
    assert kind in KINDS
    one, other = rng.sample(range(len(of.roles)), 2)
    same = of.roles[one] == of.roles[other]
    plain = rng.choice(("Citizen", "Doctor", "Escort", "Survivor"))
    return None if kind == "swap" and same else Change(kind, (), (one, other), plain)
