"""An action named in a sentence: "There is a tree to my left, so I will move left."

A sentence counts only if the speaker means to do the thing now. What is denied, asked, supposed,
quoted from somebody else, offered as one of several, or taken back afterwards does not, and where
a text speaks of two actions, none is taken.
"""

from __future__ import annotations

import re

from wsap_llm.reply.calls import read_call, undecorated
from wsap_llm.reply.candidates import Candidate, claim
from wsap_llm.reply.choices import LegalChoices
from wsap_llm.reply.mentions import Mention, mentioned, mentions
from wsap_llm.reply.words import names_of

LONGEST = 6_000
"""Characters; sentences in longer texts are not read."""

_I = r"(?:i|we)"
_INTENT = re.compile(
    r"(?:\b" + _I + r"(?:'ll|’ll|\s+will|'m going to|’m going to|\s+am going to|\s+shall|\s+should|\s+must|\s+need to"
    r"|\s+have to|\s+want to|\s+choose(?:\s+to)?|\s+chose(?:\s+to)?|\s+have chosen(?:\s+to)?"
    r"|\s+decide(?:d)?\s+(?:to|on)"
    r"|\s+have decided\s+(?:to|on)|\s+pick|\s+select|\s+opt\s+(?:for|to)|'d like to|’d like to"
    r"|\s+would like to"
    r"|’m|\s+intend to|\s+plan to|\s+go with|\s+take)"
    r"|\blet's|\blet’s|\blet me|\btime to|\bgoing with|\bgoing to"
    r"|\b(?:my|the)\s+(?:(?:next|best|final|chosen|right|optimal|most sensible|logical|correct|safest)\s+){0,2}"
    r"(?:action|move|choice|decision|option|step|course of action|thing to do)"
    r"(?:\s+(?:here|now|right now|this turn|for now|i choose|i take|to take|at this point)){0,2}\s+(?:is"
    r"|will be)(?:\s+to)?"
    r"|\bit(?:'s| is|’s) (?:best|time|better|wise|wisest) to)"
    r"(?:\s+(?:now|just|simply|first|therefore|then|go with|go ahead and|use|perform|execute|choose|pick"
    r"|take|select|do|try"
    r"|try to|call|the action|the|action|to|:))*[\s:`*\"'“‘]{0,6}$",
    re.IGNORECASE,
)
_OPENERS = re.compile(
    r"^[\s\-*•>#`(]*(?:(?:so|therefore|thus|hence|now|okay|ok|alright|right|well|then|first|and|but|next"
    r"|i think|i believe"
    r"|i guess|i suppose|i've decided|for now|this turn|in this turn|in this case|right now|at this point|here"
    r"|given this|given that|because of this|because of that|based on this|in conclusion|finally|overall"
    r"|hmm|in response"
    r"|thought|decision|answer|reasoning|response|reply|plan|conclusion|final answer|final decision|as a result)"
    r"[\s,:]*)*[\s*\"`]*$",
    re.IGNORECASE,
)
_UNSURE = re.compile(
    r"\b(?:if|unless|whether|in case|as soon as|as long as|provided|assuming|soon|would(?! like)|could"
    r"|might|may|maybe|perhaps|either|suppose|supposing|imagine|or"
    r"|not sure|unsure|wonder|hypothetically|example|e\.g|such as|instead of|rather than|mistake|pretend"
    r"|before|after|once|until then|when|whenever|next turn|next time|later|eventually|tomorrow|first)\b",
    re.IGNORECASE,
)
# What makes a thing conditional, or one of several, after it was named; a mere "until" does not.
_CONDITION = re.compile(
    r"\b(?:or|if|unless|instead of|but not|as soon as|as long as|provided|assuming|once|when|whenever"
    r"|after|in case|later"
    r"|next turn|next time|tomorrow|someday|eventually)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|never|no longer|neither|nor|avoid|cannot|without|refuse|stop|hardly|nothing)\b|n't\b|n’t\b",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    r"\b(?:said|says|saying|told|tells|telling|asked|asks|asking|wrote|writes|shouted|shouts|whispered"
    r"|whispers|suggests?"
    r"|suggested|claims?|claimed|demands?|demanded|orders?|ordered|commands?|commanded|insists?|insisted"
    r"|replied|wants? me"
    r"|wants? us|wanted me|expects?|according to|put it|as \w+(?: \d+)? (?:has|had|would|did)|quote"
    r"|begs?|begged|yells?|yelled|advises?|advised"
    r"|recommends?|announced?"
    r"|instructs?|instructed|they think|thinks|believes)\b",
    re.IGNORECASE,
)
# What takes a thing back that was said before.
TAKEN_BACK = re.compile(
    r"(?:^|[.!?\n…—–-]\s{0,5})\W{0,3}(?:actually|wait|hold on|scratch that|on second thought|correction"
    r"|never ?mind|no(?=[,.!])|oops"
    r"|sorry|hmm|but (?:actually|wait|no)|however|instead|or (?:maybe|rather)|alternatively"
    r"|just kidding)\b|\bor (?:maybe|perhaps)\b"
    r"|\bnot (?:really|a good idea|possible|allowed|legal|available|yet)\b|\bon second thought\b|\bscratch that\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\s|$|[\"'”’`*)])|[.!?]|\n|$)")
_CLAUSE = re.compile(r"[,;:—–()]|\b(?:so|and|but|therefore|thus|hence)\b", re.IGNORECASE)
_DIALOGUE = re.compile(r"^[\s\-*•>\[(]*([A-Z][\w' ]{0,30}|[\w']{1,20} ?#?\d{1,3})[\])]?[*_]*\s?:", re.MULTILINE)
_OWN_LABELS = frozenset({
    *("thought", "thoughts", "answer", "action", "final", "response", "reasoning", "decision", "assistant"),
    *("me", "i", "output", "plan", "step", "reply", "analysis", "conclusion", "result", "note"),
    *("observation", "current", "next", "move", "choice", "json", "explanation", "rationale", "summary"),
    *("agent", "reason", "my", "the", "here", "so", "therefore", "final_answer", "strategy", "goal"),
    *("situation", "okay", "ok", "sure", "well", "alright", "right", "yes", "great", "certainly", "since"),
    *("given", "first", "finally", "then"),
})  # fmt: skip
_QUOTED = re.compile(r"[\"“«]([^\"”»\n]{1,400})[\"”»]")
_FOLLOWS = re.compile(
    r"[`*\"'”’_)]{0,4}\s{0,3}(?:[.,;:!)\n]|$|[-–—]\s|\b(?:because|since|as|so|to|in order|now|here"
    r"|for now|this turn|next|until"
    r"|and see|action|this time|again|right now|given|due to|immediately|with|for|while|in|at)\b)",
    re.IGNORECASE,
)
_OBJECT_FOLLOWS = re.compile(r"\s{1,3}(?:the|a|an|this|that|it|its|his|her|my|them|him|some)\b", re.IGNORECASE)


def dialogue(line: str) -> bool:
    """Whether a line begins with the name of somebody who says it: `Player 3: attack!`."""
    match = _DIALOGUE.match(line)
    return match is not None and match[1].lower().split()[0] not in _OWN_LABELS


def about_others(text: str) -> bool:
    """Whether a text says what somebody else said, wants or thinks."""
    return _OTHERS.search(text) is not None


def supposed(text: str) -> bool:
    """Whether what follows a text is denied, conditional, or one of several things."""
    return _UNSURE.search(text) is not None or _NEGATION.search(text) is not None


def sentence_claim(text: str, offer: LegalChoices, *, alone: bool = False) -> Candidate | None:
    """Return the one action that a text says will be done, or None.

    Args:
        text: prose, without JSON.
        offer: what can be named.
        alone: True for what stands behind a label: naming is enough, no "I will" is needed.
    """
    if len(text) > LONGEST:
        return None
    spoken = list(mentions(text, offer))
    if not spoken or len({m.name for m in spoken if m.marked or not m.light}) > 1:
        return None
    for sentence in _SENTENCE.finditer(text):
        inside = [m for m in spoken if sentence.start() <= m.start < sentence.end()]
        for mention in inside:
            if _meant(text, sentence, mention, offer, alone=alone) and not _two_things(text, mention, spoken):
                return _claim(text, sentence, mention, offer)
    return None


def _meant(text: str, sentence: re.Match[str], mention: Mention, offer: LegalChoices, *, alone: bool) -> bool:
    said = sentence[0]
    before = text[sentence.start() : mention.start]
    line_start = text.rfind("\n", 0, mention.start) + 1
    if said.rstrip().endswith("?") or dialogue(text[line_start : mention.end]) or about_others(said):
        return False
    rest = said[mention.end - sentence.start() :]
    if _UNSURE.search(before) or _CONDITION.search(rest):
        return False
    if _in_longer_quote(said, mention.start - sentence.start(), mention.end - sentence.start()):
        return False
    if TAKEN_BACK.search(text[mention.end :]) or (_NEGATION.search(text[sentence.end() :]) and mention.light):
        return False
    clause = _CLAUSE.split(re.sub(r"\bgo ahead and\b", "just", before, flags=re.IGNORECASE))[-1]
    if _NEGATION.search(clause):
        return False
    intent = _INTENT.search(clause)
    if intent is None:
        starts = _OPENERS.match(before) is not None and (
            alone or (mention.marked and "_" in text[mention.start : mention.end])
        )
        return starts and _completes(text, mention, offer)
    return _OPENERS.match(clause[: intent.start()]) is not None and _completes(text, mention, offer)


def _in_longer_quote(said: str, start: int, end: int) -> bool:
    return any(
        q.start() < start and end < q.end() and len(q[1].strip()) > end - start + 3 for q in _QUOTED.finditer(said)
    )


def _choice_ahead(rest: str, mention: Mention, offer: LegalChoices) -> bool:
    """Whether the value of an enumerated parameter follows: "move north", "move to the north"."""
    definition = offer.definition(mention.name)
    words = re.match(r"\s{1,3}(?:to\s|towards?\s)?(?:the\s)?([\w\-]{1,30})", rest)
    if definition is None or words is None:
        return False
    choices = [c.casefold() for p in definition.parameters for c in p.choices() or ()]
    return words[1].casefold() in choices


def _completes(text: str, mention: Mention, offer: LegalChoices) -> bool:
    """Whether the name is all that is meant: "I will look for water" is not the action `look`."""
    rest = text[mention.end :]
    if _choice_ahead(rest, mention, offer):
        return True
    if mention.light and not mention.marked:
        return re.match(r"\s{0,2}(?:(?:here|now|again)\b)?\s{0,2}(?:[.!\n]|$)", rest) is not None
    if "_" in text[mention.start : mention.end] or mention.marked:
        return True
    return _FOLLOWS.match(rest) is not None or _OBJECT_FOLLOWS.match(rest) is not None or _value_ahead(rest)


def _value_ahead(rest: str) -> bool:
    return re.match(r"\s{1,3}[\w]{1,20}\s{0,2}(?:[.,;!\n]|$|because|since|to\b|so\b)", rest) is not None


_AND_THEN = re.compile(r"(?:\b(?:then|and|or)\s|[,/|+&;>])\s{0,2}\W{0,2}$", re.IGNORECASE)


def _two_things(text: str, mention: Mention, spoken: list[Mention]) -> bool:
    """Whether another action of an everyday name is meant as well: "I will move left, then do."."""
    rest = text[mention.end :]
    return any(
        m.name != mention.name
        and m.light
        and _AND_THEN.search(rest[: m.start - mention.end])
        and re.match(r"\W{0,2}(?:[.!\n]|$)", text[m.end :])
        for m in spoken
        if m.start > mention.end
    )


def _claim(text: str, sentence: re.Match[str], mention: Mention, offer: LegalChoices) -> Candidate | None:
    definition = offer.definition(mention.name)
    if definition is None:
        return claim(mention.name, {}, offer)
    required = [p for p in definition.parameters if not p.optional]
    if not required:
        return claim(mention.name, {}, offer).at(mention.start, mention.end, "sentence")
    rest = text[mention.end : sentence.end()]
    choices = required[0].choices()
    if len(required) == 1 and choices is not None:
        words = re.findall(r"[\w\-]+", rest)[:8]
        met = {c for w in words if (c := names_of(choices).resolve(w)) and c.casefold() == w.casefold()}
        if len(met) == 1:
            return claim(mention.name, {required[0].name: met.pop()}, offer).at(mention.start, mention.end, "sentence")
    return claim(mention.name, {}, offer).at(mention.start, mention.end, "sentence")


_NOT_OWN = re.compile(r"^\s*>")
_LIST_ITEM = re.compile(r"^\s*(?:[-*•+]|\d{1,3}[.):])\s")


def name_alone(text: str, offer: LegalChoices) -> Candidate | None:
    """Return the action whose name is all that a text says, or all that its first or last line says.

    A line that is quoted in the manner of mail (`> noop`) says nothing of its own.
    """
    if len(text) > LONGEST:
        return None
    plain = re.sub(r"```[\w-]{0,15}", "", text).strip()
    lines = [line for line in plain.split("\n") if line.strip()]
    if len(lines) > 60:
        return None
    named: dict[int, Candidate] = {}
    for index, line in enumerate(lines):
        call = (
            read_call(line, offer, free_text=len(lines) == 1)
            if len(line) < 400 and not dialogue(line) and not _NOT_OWN.match(line)
            else None
        )
        if call is not None:
            named[index] = claim(call.name, call.given, offer)
    if len(named) != 1:
        return None
    index, found = next(iter(named.items()))
    if len(lines) > 1:
        if index not in (0, len(lines) - 1) or mentioned(plain, offer) - {found.name}:
            return None
        others = "\n".join(line for i, line in enumerate(lines) if i != index)
        if (
            about_others(others)
            or _LIST_ITEM.match(lines[index])
            or others.rstrip().endswith("?")
            or TAKEN_BACK.search(others)
        ):
            return None
        if undecorated(lines[index]).endswith("?"):
            return None
    if plain.rstrip("`*\"' ").endswith("?") or (len(lines) == 1 and _UNSURE.search(re.sub(r"\bfirst\b", "", plain))):
        return None
    return found.at(0, len(text), "name alone")
