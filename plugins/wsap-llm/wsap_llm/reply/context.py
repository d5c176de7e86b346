"""Whether what stands around a call leaves in doubt that the model means it.

Nothing here makes a reply understood. An action is read only where it stands by itself: on lines of
its own, after a whole sentence, or after one of the few phrases that models announce an answer with.
Anything else, such as `Mira: {...}`, `For example, {...}` or `{...} would be wrong`, is doubt, and
what is doubtful is not read, so that the model is asked again.
"""

from __future__ import annotations

import re

from wsap_llm.reply.shapes import ACTIONS, ANSWERS, CHOSEN, HERE, WHOSE

# Only what is no word: quotes, fences, bullets, wrapping tags and template roles.
# Possessive, so that what is no word is passed over in one way alone.
_BARE = re.compile(
    r"(?:```\w{0,12}|>>>|\d{1,2}[.)]|(?:(?:const|let|var|return)\s{1,3})?[A-Za-z_][\w.]{0,40}\s?[=(]"
    r"|<\|?(?:tool_call|function_call|answer|output|response|reply|action|final|final_answer|json|result)\|?>"
    r"|[\s`~'\"“*_#({\[:,$\\-])*+",
    re.IGNORECASE,
)
_OWN = r"(?:action|answer|response|reply|json|output|choice|decision|move|object|assistant|(?:tool|function) call)"
_KIND = r"(?:(?:my|the|a|an|final|next|chosen|selected|best|valid|corrected|json) )*"
_ANNOUNCES = re.compile(
    r"[\W_]*(?:(?:so|therefore|thus|hence|then|and|now|okay|ok|sure|alright|corrected|final|json)\b[\s,]*)*"
    rf"{_KIND}(?:{_OWN}\b[\s(]*)?(?:(?:is|in|format|json|as)\b[\s)]*)*(?:(?:for )?this turn)?[\W_]*"
    rf"|[\W_]*here(?: you go|(?:['’]s| is| are) (?:what|{_KIND}{_OWN})(?: in json(?: format)?)?"
    r"(?: i(?:['’]ll| will)? (?:do|take|choose))?)[\W_]*|[\W_]*i (?:answer|reply|respond|choose)(?: with)?[\W_]*"
    r"|[\W_]*i(?:['’]ll| will)(?! not| never| tell)(?: (?!when|later|once|after|if|to)[a-z_]{1,20}){1,4}[\W_]*"
    rf"|[\W_]*(?:{HERE})?{WHOSE}(?:{ACTIONS}|{ANSWERS}){CHOSEN}[\W_]*",
    re.IGNORECASE,
)
_NEXT_KEY = re.compile(r"""[\s,}\]]{0,9}["']\w{1,20}["']\s{0,3}:""")
_SAYING = re.compile(r"\b(?:said|says|told|wrote|writes|asked|asks|wants|claims)\b", re.IGNORECASE)
# "Mira told me this." above a call.
_POINTS_ON = re.compile(_SAYING.pattern + r"[^.!?\n]{0,40}\b(?:this|that|so|following)\W{0,9}$", re.IGNORECASE)
_CLAUSE = re.compile(r"[.!?,;\n]")
_DOUBT = re.compile(
    r"\b(?:not?|never|would|could|might|should|wrong|if|unless|said|says|told|tells|wrote|writes|asked|asks|wants?"
    r"|claims?|according|pretend|example|instance|instead)\b|n['’]t\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"(?:^|[.!?\n…—–-]\s{0,5})\W{0,3}(?:actually|wait|hold on|scratch that|on second thought|correction|never ?mind"
    r"|no(?=[,.!])|oops|sorry|hmm|but|however|instead|or|alternatively|just kidding|if|unless)\b"
    r"|\bor (?:maybe|perhaps)\b|\bnot (?:really|a good idea|possible|allowed|legal|available|yet)\b"
    r"|\bon second thought\b|\bscratch that\b",
    re.IGNORECASE,
)


def stands_alone(text: str, start: int, end: int, before_it: int = 0) -> bool:
    """Return whether nothing on its line, or announcing it above, makes the call at `text[start:end]` part of a
    sentence; `before_it` is where the call before it ends."""
    line_start = max(before_it, start - 400, text.rfind("\n", max(0, start - 400), start) + 1)
    before = text[line_start:start]
    if text[start] == "(":  # the parameters of a call, as in dict(action="wait")
        before = re.sub(r"\w{1,30}$", "", before)
    if _BARE.fullmatch(before):
        above = text[max(before_it, line_start - 400) : line_start].rstrip()
        above = re.sub(r"(?:```|~~~)\w{0,12}$", "", above).rstrip()
        if above.endswith((":", "：")) and not _announced(above):
            return False
        if _POINTS_ON.search(above):
            return False
    elif (announcing := before.rstrip("*_`\"'$\\[( ")).endswith((":", "：")):
        if not _announced(announcing):
            return False
    elif text.startswith("<answer>", start) and _ANNOUNCES.fullmatch(before):
        pass
    elif before.rstrip()[-1:] not in (".", "!") or ":" in before or _SAYING.search(before):
        return False
    line_end = text.find("\n", end, end + 400)
    after = text[end : line_end if line_end >= 0 else end + 400]
    if _NEXT_KEY.match(after):
        return True
    after = after.lstrip("`~'\"”*_)}],.;$\\ \t")
    first = re.split(r"[.!?](?:\s|$)", after, maxsplit=1)[0]
    return not after[:1].islower() and not after.startswith("?") and not _DOUBT.search(first)


def _announced(text: str) -> bool:
    return _ANNOUNCES.fullmatch(_CLAUSE.split(text.rstrip(":："))[-1]) is not None


def taken_back(text: str, end: int) -> bool:
    """Return whether what follows a call may take it back."""
    return _TAKEN_BACK.search(text, end) is not None
