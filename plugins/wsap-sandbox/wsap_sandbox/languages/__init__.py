"""Everything that a world says in its language: prompts, fallbacks, words of the interface."""

from __future__ import annotations

from wsap_core.errors import ConfigError
from wsap_sandbox.languages import en, ru
from wsap_sandbox.languages.prompts import Spoken

_WORDS = {words.code: words for words in (en.WORDS, ru.WORDS)}


def language(code: str, *, compact: bool = False) -> Spoken:
    """Return a language by its code, with short prompts if it is to be compact.

    Raises:
        ConfigError: there is none of that code.
    """
    if code not in _WORDS:
        raise ConfigError(f"There is no language {code!r}; choose {' or '.join(_WORDS)}.")
    return Spoken(_WORDS[code], compact)
