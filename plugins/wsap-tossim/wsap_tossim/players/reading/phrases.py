"""The phrases of scripted players: short sentences with placeholders for names.

`wsap_tossim.players.reading.claims` parses all of them, which a test checks.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import repeat
from types import MappingProxyType

from wsap_tossim.players.reading.claims import clauses
from wsap_tossim.players.reading.notes import Clue

__all__ = ["AGAINST", "LINES", "cut", "reason", "say"]

NOTHING: Mapping[str, int] = MappingProxyType({})

LINES: Mapping[str, Sequence[str]] = {
    "claim": ("I'm the {role}.", "I am the {role}.", "Fine: I'm the {role}.", "My role is {role}."),
    "claim_log": ("I'm the {role}. {log}", "I am the {role}. {log}", "My role is {role}. {log}"),
    "accuse": (
        "I suspect {who}: {why}.",
        "I'll vote {who}: {why}.",
        "My vote goes to {who}: {why}.",
        "{who} is suspicious: {why}.",
    ),
    "agree_short": (
        "I suspect {who} too.",
        "I'd vote {who} as well.",
        "I agree, let's lynch {who}.",
        "Nothing to add: I'll vote {who}.",
        "The same from me: I suspect {who}.",
        "Count me in, we should lynch {who}.",
        "I say so, too: vote {who}.",
    ),
    "agree": ("I suspect {who} too: {why}.", "I'd vote {who} as well: {why}.", "I agree, let's lynch {who}: {why}."),
    "ask": ("{who}, who are you?", "{who}, what's your role?", "What is your role, {who}?"),
    "ask_all": ("It is day {day}. Who has something to tell?", "Anything from last night?", "Quiet so far. Speak up."),
    "hello": (
        "Good morning, all.",
        "Hello. Let's keep good wills.",
        "Hi everyone. Write your wills.",
        "Morning. Let's listen first.",
        "A new day. Who wants to begin?",
        "Hello, town.",
    ),
    "defend": (
        "I've told you: I'm the {role}. I suspect {who}: {why}.",
        "You have the wrong one, I'm the {role}. Look at {who}: {why}. I suspect {who}.",
        "Not me, I'm your {role}: I suspect {who}.",
    ),
    "defend_alone": (
        "You have the wrong one: I'm the {role}.",
        "This is a mistake. I'm the {role}.",
        "I am the {role}, as I said.",
        "Once more: I'm your {role}.",
    ),
    "defend_again": (
        "You know who I am.",
        "What I told you of me is true.",
        "Again? There is nothing new against me.",
        "Look at somebody else for once.",
        "You waste the day on me.",
    ),
    "trial": (
        "You are about to lynch one of yours: I'm the {role}. {log}",
        "I'm the {role}. {log} Think before you judge.",
        "I am your {role}, and you need me. {log}",
    ),
    "trust": ("I trust {who}: {why}.", "Leave {who} alone, I trust {who}: {why}."),
    "trust_known": (
        "I trust {who}: what we know speaks for them.",
        "Leave {who} alone, I trust {who}.",
        "I believe {who}: their story holds.",
        "Nothing that is held against {who} has been shown. I trust {who}.",
    ),
    "last_words": (
        "I was the {role}. You will see.",
        "You will regret this: I'm the {role}.",
        "My role is {role}. Remember it.",
    ),
    "last_words_against": (
        "I'm the {role}. Next, look at {who}: I suspect {who}.",
        "I was your {role}. I suspect {who}.",
        "My role is {role}. Lynch {who} next.",
    ),
    "jester_odd": (
        "I know things that I won't tell.",
        "Maybe I did it. Who knows?",
        "You'll never find me out.",
        "I visited somebody last night, and no, I won't say whom.",
        "Some of you will be sorry.",
        "Funny how quiet the night was for me.",
        "I sleep well, do you?",
    ),
    "jester_trial": ("I have nothing to say for myself.", "Do what you must.", "You can't prove anything."),
    "mafia_plan": ("Let's kill {who} tonight.", "{who} tonight: {why}.", "I go for {who}."),
    "mafia_agree": ("Fine by me: {who}.", "Agreed, {who}."),
    "jail_ask": ("Who are you, and what did you do at night?", "You are in jail. What is your role?"),
    "jail_answer": ("I'm the {role}. {log}", "Don't execute me, I'm the {role}. {log}"),
    "dead_tell": ("I was the {role}. {log}", "{log}"),
    "dead_idle": ("It's quiet here.", "Well, that's that."),
    "whisper": ("You came out clear at night. I'm the {role}; keep it to yourself.", "I trust you. I'm the {role}."),
    "nothing": ("Nothing from me.", "I slept.", "Nothing new here."),
}
"""Key -> alternative sentences."""

AGAINST: Mapping[str, str] = {
    "changed": "first said {role}, now something else",
    "no_such": "claims {role}, and there is none in this game",
    "mine": "claims {role}, but that's me",
    "dead_already": "claims {role}, but {other} was that one",
    "two": "claims {role}, and so does {other}",
    "crowded": "claims {role}, and more claim such roles than the list has room for",
    "odd_claim": "claims {role} of all things",
    "mute": "would not say who they are on trial",
    "found": "{other} found something on them",
    "found_role": "{other} says that's the {role}",
    "found_group": "what {other} found speaks against them",
    "found_group_clash": "claims {role}, but what {other} found does not fit",
    "will": "{other}'s will says so",
    "will_role": "{other}'s will names them as {role}",
    "will_group": "the group in {other}'s will speaks against them",
    "will_group_clash": "claims {role}, but {other}'s will says otherwise",
    "seen": "{other} saw them at a dead one's door",
    "absent": "says they went to {other} at night, where nobody saw them",
    "my_check": "I looked into them at night",
    "my_group": "what I found of them speaks against them",
    "my_clash": "claims {role}, but that is not what I found",
    "my_watch": "I saw them at {other}'s door the night {other} died",
    "pushed": "wanted {other} dead, who was the {role}",
    "hanged": "voted guilty on {other}, who was the {role}",
    "spared": "voted innocent on {other}, who was the {role}",
    "vouched": "spoke for {other}, who was the {role}",
    "wrong": "accused {other}, who was the {role}",
    "misfound": "told things of {other} that were not so",
    "cleared": "cleared {other}, who was the {role}",
    "quiet": "has said next to nothing",
    "unclaimed": "still has not told us a role",
    "hunch": "just a hunch so far",
    "crowd": "others doubt them as well",
    "odd": "talks in an odd way",
}
"""Code of a clue -> its reason."""


def say(rng: random.Random, key: str, longest: int, heard: Mapping[str, int] = NOTHING, **words: str) -> str:
    """Return one of the sentences for a key of `LINES`, filled in and cut to a length of at least 1.

    It is the one heard least often, of equals the first at or after a random position.
    """
    lines = LINES[key]
    first = int(rng.random() * len(lines))
    texts = [line.format(**words) for line in (*lines[first:], *lines[:first])]
    return cut(min(texts, key=lambda text: max(map(heard.get, clauses(text), repeat(0)), default=0)), longest)


def reason(clue: Clue, names: Sequence[str]) -> str:
    """Return a clue as a reason: "claims Doctor, and so does Bo"."""
    other = names[clue.other] if clue.other is not None else "somebody"
    return AGAINST.get(clue.code, AGAINST["hunch"]).format(other=other, role=clue.role)


def cut(text: str, longest: int) -> str:
    """Return a text cut to a length, at a sentence if possible."""
    text = text.strip()
    if len(text) <= longest:
        return text
    head = text[:longest]
    end = max(head.rfind(". "), head.rfind("? "), head.rfind(".\n"))
    return head[: end + 1] if end > 0 else head.rstrip()
