"""The kinds of events: their data, and who may know each.

An event is known by those whose bit is set in `Event.known_by`. `everyone` is fixed when a game
begins and holds the dead too; what only the living may know names them one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["EVENTS", "HIDDEN", "TOLD", "bit", "bits"]

HIDDEN = 0
"""Known by nobody until the game is over: the resolver's trace."""

EVENTS: Mapping[str, str] = {
    # how it begins and goes on
    "begins": "To all. players: number of players; rules; mode: what is known of the role list.",
    "role": "To one. player, role, mates: numbers of those whom it knows from the start -> role; target (Executioner).",
    "phase": "To all (DUSK, TALK_AT_NIGHT, NIGHT: to all, as 'night' only once). name.",
    "over": "To all. winners: numbers; factions: names; reason.",
    "truth": "To all, at the very end. roles: role of each player at the start; final: and at the end.",
    # day
    "speech": "To all. player, text.",
    "whisper": "To sender and receiver, and to whoever overhears. player, to, text.",
    "whispered": "To all who don't know the text. player, to.",
    "bid": "To one. player, level: how much it bids for the floor, from 1 to 3.",
    "floor": "To all. player: has the floor, which was bid for.",
    "silent": "To all. player: waits when it had the floor.",
    "vote": "To all. player, target, weight, needed.",
    "unvote": "To all. player, target.",
    "trial": "To all. player, number (of today).",
    "verdict": "To all once all have judged, if verdicts are open. player, verdict: guilty|innocent|abstain, weight.",
    "judged": "To all. player, guilty, innocent: weights; condemned: bool.",
    "ballot": "To all. counts: player -> votes; lynched.",
    "revealed": "To all. player: is the Mayor.",
    "blackmailed": "To one. player: may not speak today.",
    # death
    "death": "To all. player, causes: of what, for readers, after 'killed by' (list of words); role or null if"
    " hidden or cleaned; when: day|night.",
    "will": "To all, on the morning (or lynching) it is revealed. player, text (null if none is shown); cleaned: bool.",
    "note": "To all. player: the dead; text; killer is never told.",
    "haunted": "To all. player.",
    # private results of the night
    "result": "To one. player, verb (or 'spy'), target (as named; null for a Spy), what was learned: suspicious: bool |"
    " group: role names | role | visitors: numbers | visits: numbers | vampire: bool | role and will (Janitor).",
    "told": "To one. player, code: what was felt, one of `TOLD`, with its data.",
    "said": "To a channel. channel: mafia|vampires|jail|dead|seance; player (null where the speaker is hidden, the"
    " Jailor in the jail); text.",
    "jailed": "To the Jailor and to the prisoner (who is not told by whom). player.",
    "raised": "To all. player: alive again.",
    "remembered": "To all. role: an Amnesiac has become it (not who).",
    "becomes": "To those who may know: itself, and its mates there. player, role, why: promotion|conversion|remembering"
    "|last of a kind|target died|no target. One who is new among mates gets a `role` as well, with who they are.",
    # the resolver's trace, hidden until the game is over
    "chose": "To one: what it chose at night itself. player, verb, targets.",
    "moves": "Hidden. The order of transports: list of pairs.",
    "controls": "Hidden. player, victim, onto.",
    "blocks": "Hidden. player, target, held: false if the target is immune.",
    "visits": "Hidden. player, target (where it really went), verb.",
    "protects": "Hidden. player, target, means: alert|guard|healing|vest.",
    "attacks": "Hidden. player (or null), target, attack, defense, kills, how.",
    "deceives": "Hidden. player, target, how: frame|clean|forge|disguise|douse|blackmail.",
    "forced": "Hidden. player: its choice was made for it: it came too late, or could not be read.",
    "writes": "To its writer. player, what: will|note|notebook, text.",
}
"""Kind -> who may know it, and its data."""

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
"""Code of a `told` event -> what the player is told, with {target} for a player and {number} for a count."""


def bit(player: int) -> int:
    """Return the mask of one player."""
    return 1 << player


def bits(players: Iterable[int]) -> int:
    """Return the mask of several players."""
    mask = 0
    for player in players:
        mask |= 1 << player
    return mask
