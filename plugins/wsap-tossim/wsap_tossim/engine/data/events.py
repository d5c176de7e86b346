"""The kinds of events: their data, and who may know each.

An event is known to the players whose bit is set in `Event.known_by`. `everyone` includes the dead; events for the
living alone list their bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["EVENTS", "HIDDEN", "TOLD", "bit", "bits"]

HIDDEN = 0
"""Known to nobody until the game is over: the resolver's trace."""

EVENTS: Mapping[str, str] = {
    # start, phases and end
    "begins": "To all. players: number of players; rules; mode: public part of the role list.",
    "role": "To one. player, role, mates: numbers of known mates -> role; target (Executioner).",
    "phase": "To all (DUSK, TALK_AT_NIGHT, NIGHT: to all, as 'night' only once). name.",
    "over": "To all. winners: numbers; factions: names; reason.",
    "truth": "To all, at the end. roles: role of each player at the start; final: at the end.",
    # day
    "speech": "To all. player, text.",
    "whisper": "To sender, receiver and eavesdroppers. player, to, text.",
    "whispered": "To all others. player, to.",
    "bid": "To one. player, level: its bid for the floor, from 1 to 3.",
    "floor": "To all. player: has won the floor by bidding.",
    "silent": "To all. player: waits while it has the floor.",
    "vote": "To all. player, target, weight, needed.",
    "unvote": "To all. player, target.",
    "trial": "To all. player, number (of today).",
    "verdict": "To all once all have judged, if verdicts are open. player, verdict: guilty|innocent|abstain, weight.",
    "judged": "To all. player, guilty, innocent: weights; condemned: bool.",
    "ballot": "To all. counts: player -> votes; lynched.",
    "revealed": "To all. player: is the Mayor.",
    "blackmailed": "To one. player: may not speak today.",
    # death
    "death": "To all. player, causes: list of words that follow 'killed by'; role or null if"
    " hidden or cleaned; when: day|night.",
    "will": "To all, in the morning or at a lynching. player, text (null if none is shown); cleaned: bool.",
    "note": "To all. player: the dead; text; without the killer.",
    "haunted": "To all. player.",
    # private results of the night
    "result": "To one. player, verb (or 'spy'), target (null for a Spy), and the result: suspicious: bool |"
    " group: role names | role | visitors: numbers | visits: numbers | vampire: bool | role and will (Janitor).",
    "told": "To one. player, code: one of `TOLD`, with its data.",
    "said": "To a channel. channel: mafia|vampires|jail|dead|seance; player (null for a hidden speaker, such as"
    " the Jailor); text.",
    "jailed": "To the Jailor and the prisoner (without the Jailor's number). player.",
    "raised": "To all. player: alive again.",
    "remembered": "To all. role: new role of an Amnesiac (without its number).",
    "becomes": "To the player and its mates. player, role, why: promotion|conversion|remembering|last of a kind"
    "|target died|no target. A new mate also gets a `role` event, with its mates.",
    # the resolver's trace, hidden until the game is over
    "chose": "To one: its own choice at night. player, verb, targets.",
    "moves": "Hidden. The order of transports: list of pairs.",
    "controls": "Hidden. player, victim, onto.",
    "blocks": "Hidden. player, target, held: false if the target is immune.",
    "visits": "Hidden. player, target (the actual host), verb.",
    "protects": "Hidden. player, target, means: alert|guard|healing|vest.",
    "attacks": "Hidden. player (or null), target, attack, defense, kills, how.",
    "deceives": "Hidden. player, target, how: frame|clean|forge|disguise|douse|blackmail.",
    "forced": "Hidden. player: its choice was late or unreadable, and was made for it.",
    "writes": "To its writer. player, what: will|note|notebook, text.",
}
"""Kind -> audience and data."""

TOLD: Mapping[str, str] = {
    "alerted": "You were on alert, and shot at {number} who came.",
    "behind_bars": "You were attacked in jail, and the bars held.",
    "block_resisted": "Somebody tried to keep you busy, in vain.",
    "blocked": "Somebody kept you busy all night: you could do nothing.",
    "control_failed": "You could not control that player.",
    "control_resisted": "A Witch tried to control you, in vain.",
    "controlled": "You were controlled by a Witch.",
    "defended": "You were attacked, and your defense was too strong.",
    "doused": "You were doused with gasoline.",
    "forfeited": "You have executed a member of the Town: you can execute nobody any more.",
    "forged": "{target} was found with the will that you forged.",
    "fought": "You fought off an attacker.",
    "guarded": "You were attacked, and a Bodyguard fought for you.",
    "guilt": "You have killed a member of the Town: you can't live with it beyond the next night.",
    "healed": "You were attacked, and healed.",
    "hunted_at_home": "A Vampire came to bite you, and you attacked it.",
    "may_haunt": "You were lynched, as you wanted: tonight you may haunt one of those who wanted it too.",
    "ordered": "The Godfather sends you to kill {target}.",
    "raise_failed": "You could not raise {target}: it was not of the Town.",
    "remember_failed": "You could not remember what {target} was: there can be only one.",
    "seance": "A dead Medium speaks with you tonight.",
    "struck_back": "Somebody tried to keep you busy, and you attacked them.",
    "target_attacked": "The player that you healed was attacked.",
    "target_lynched": "Your target was lynched: you have won.",
    "too_strong": "Your attack was not strong enough.",
    "transport_failed": "You could not transport them: one of them was in jail.",
    "transported": "You were transported to another house.",
    "washed": "You washed off the gasoline.",
}
"""Code of a `told` event -> its text, with {target} for a player and {number} for a count."""


def bit(player: int) -> int:
    """Return the mask of one player."""
    return 1 << player


def bits(players: Iterable[int]) -> int:
    """Return the mask of several players."""
    mask = 0
    for player in players:
        mask |= 1 << player
    return mask
