"""Sanitizes untrusted text for terminals and prompts."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from traceback import walk_tb

# C0 and C1 controls, line and paragraph separators, bidirectional marks, and lone surrogates, which can't be encoded.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_UNSAFE_RUN = re.compile(f"[{_UNSAFE}]+")


def single_line(text: object) -> str:
    """Return text on one line, with control and direction-changing characters replaced by a space."""
    return _UNSAFE_RUN.sub(" ", str(text)).strip()


def error_line(error: BaseException, limit: int = 300, *, kind: bool = False) -> str:
    """Return an error's message on one line of at most `limit` characters; with `kind`, after the name of its class."""
    said = " ".join(single_line(error).split())[:limit]
    return f"{type(error).__name__}: {said or 'no message'}" if kind else said


def raised_at(error: BaseException) -> str:
    """Return " at FILE:LINE", the innermost line of the code that raised and belongs neither to the kernel, nor to the
    package that catches the error, nor to Python; "" if there is none."""
    tops = [
        (str(frame.f_globals.get("__name__")).partition(".")[0], Path(frame.f_code.co_filename), line)
        for frame, line in walk_tb(error.__traceback__)
    ]
    ours = {"wsap_core", *(top for top, _, _ in tops[:1]), *sys.stdlib_module_names}
    theirs = [(file, line) for top, file, line in tops if top not in ours]
    near = [place for place in theirs if place[0].is_relative_to(theirs[0][0].parent)]
    return f" at {near[-1][0].name}:{near[-1][1]}" if near else ""


def strip_control(text: str) -> str:
    """Return text with every control and direction-changing character except newlines replaced by a space."""
    return "\n".join(_UNSAFE_RUN.sub(" ", line) for line in text.split("\n"))


# Tokens of common chat templates without angle brackets, or that are more than a tag; all other tags (<think>, ...)
# lose their brackets.
_TOKENS = (
    r"<\s*/?\s*\|[^<>|]{0,40}(?:\|\s*)?>"  # <|im_start|>, <|eot_id|>, <|turn>, and DeepSeek's with wide bars
    r"|<[\w▁ ]{1,40}\|>"  # <turn|>
    r"|<\s*/?\s*(?:s|bos|eos|pad|unk|mask|sop|eop|start_of_turn|end_of_turn|start_of_image|end_of_image)\s*/?>"
    r"|<<\s*/?\s*SYS\s*>>"
    r"|\[\s*/?\s*(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS|CALL_ID|ARGS|IMG|IMG_BREAK"
    r"|IMG_END|PREFIX|SUFFIX|MIDDLE|THINK|MODEL_SETTINGS|AUDIO|BEGIN_AUDIO|TRANSCRIBE|BEGIN_OF_TEXT|BOS|EOS|EOT|UNK|PAD|CLS"
    r"|SEP|MASK|gMASK|sMASK|dMASK|control_\d{1,4})\s*\]"
    r"|\[\s*\|[^\[\]|]{0,40}\|\s*\]"  # EXAONE's [|system|]
    r"|\]~!?b[\[\]]|\[e~\["  # MiniMax's ]~b]system and [e~[
    r"|◁\s*/?\s*\w{0,20}\s*▷"
)
# Invisible characters that their Unicode category does not reveal: fillers, joiners, variation selectors.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\uffa0\ufe00-\ufe0f\U000e0000-\U000e0fff]"
)


@cache
def _tokens() -> re.Pattern[str]:
    return re.compile(_TOKENS, re.IGNORECASE)  # deferred for weight: `wsap --help` has no prompts


def sanitize(text: str, limit: int = 500, *, lines: bool = False) -> str:
    """Return untrusted text without anything that a prompt, a chat template or a tag parser could interpret.

    Characters are normalized (NFKC); `<` and `>` become `‹` and `›`; control, direction-changing and invisible
    characters and tokens of chat templates are removed. Text longer than `limit` is cut and ends in `...`. With
    `lines`, line breaks are kept, and each line starts with `| ` so that it can't pass for the start of a section.
    """
    text = _visible(text[: 4 * limit + 100])
    text = strip_control(text) if lines else single_line(text)
    # Twice, because removing a token can form another one.
    text = _tokens().sub(" ", _tokens().sub(" ", text)).replace("<", "‹").replace(">", "›")
    if lines:
        text = "\n".join(f"| {line.strip()}" for line in text.strip().split("\n"))
    return text if len(text) <= limit else (text[: max(0, limit - 3)] + "...")[:limit]


class _Seen(dict[int, int | None]):
    """Translation table that drops invisible characters, filled on demand."""

    def __missing__(self, code: int) -> int | None:
        import unicodedata

        hidden = unicodedata.category(chr(code)) in ("Cf", "Co", "Cn") or _IGNORABLE.match(chr(code))
        self[code] = None if hidden else code
        return self[code]


_SEEN = _Seen()


def _visible(text: str) -> str:
    if text.isascii():
        return text
    import unicodedata  # deferred for weight: most texts are ASCII

    # Twice, because characters may compose once an invisible one between them is gone.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).translate(_SEEN))
