"""Prompts as Jinja templates: the files in `templates`, in place of each a person's file of the same name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wsap_core.errors import ConfigError
from wsap_core.protocol import ActionResult
from wsap_core.protocol.words import ENGLISH, RUSSIAN, Words
from wsap_core.textfile import read_text
from wsap_core.untrusted import single_line

if TYPE_CHECKING:
    from jinja2 import Template

FORMAT = 3
"""Counts the changes of what else prompts are made of: observations as text, what is offered, the order of parts."""


def _in_folder(folder: Path) -> dict[str, str]:
    files = sorted(folder.glob("*.j2"))
    return {file.stem: read_text(file, "The prompt template").removesuffix("\n") for file in files}


_HERE = Path(__file__).parent
LANGUAGES: Mapping[str, Mapping[str, str]] = {name: _in_folder(_HERE / "templates" / name) for name in ("en", "ru")}
"""Language -> its templates by name: the files in `templates`."""
DEFAULTS = LANGUAGES["en"]
"""The templates by name, in the seeds' wording."""
_RUSSIAN: Mapping[str, Mapping[str, str]] = json.loads((_HERE / "russian.json").read_text(encoding="utf-8"))
_SAID = {text: wording for part in _RUSSIAN.values() for text, wording in part.items()}
WORDS: Mapping[str, Words] = {"en": ENGLISH, "ru": RUSSIAN.and_also(_SAID)}
"""Language -> what else is said in it; the Russian is in `russian.json`, by what it is about."""


def words_of(language: str) -> Words:
    """Return the words of a language; the English ones where there are none."""
    return WORDS.get(language, ENGLISH)


def said_of(result: ActionResult, words: Words = ENGLISH) -> str:
    """Return in a few words whether an action worked, as far as that is known."""
    if result.outcome == "unknown":
        return words.say("nobody knows whether it was done")
    return words.say("it worked" if result.success else "it failed")


@dataclass(frozen=True)
class Prompts:
    """A set of templates, those in `overrides` in place of the default of the same name. Raises ConfigError if there is
    no template of a name, or it is not a valid template."""

    overrides: Mapping[str, str] | None = None
    language: str = "en"
    """Of the defaults, and of all else that a model is told; English where there are none in it."""

    def __post_init__(self) -> None:
        for name in self.overrides or {}:
            if name not in DEFAULTS:
                raise ConfigError(f"There is no prompt template {name!r}; there are: {', '.join(DEFAULTS)}.")
        # Compiled at once, so that a mistake in a person's template is reported before a run begins.
        assert self._templates

    @property
    def words(self) -> Words:
        """What else is said in their language."""
        return words_of(self.language)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The templates as they are written, by name; a person's own `system` stands for `brief_system`, too."""
        given = dict(self.overrides or {})
        if "system" in given:
            given.setdefault("brief_system", given["system"])
        return {**LANGUAGES.get(self.language, DEFAULTS), **given}

    @classmethod
    def from_folder(cls, folder: str | Path, language: str = "en") -> Prompts:
        """Return the defaults, each replaced by the `NAME.j2` of a folder where there is one. Raises ConfigError if the
        folder can't be read, or a file is not a template."""
        path = Path(folder)
        try:
            if not path.is_dir():
                raise ConfigError(f"There is no folder {str(path)!r} with prompt templates.")
            return cls(_in_folder(path), language)
        except OSError as error:
            raise ConfigError(f"The prompt templates in {str(path)!r} can't be read: {error}.") from error

    @cached_property
    def version(self) -> str:
        """`FORMAT` and the first 12 digits of the SHA-256 of all templates; written into the log with each run."""
        digest = hashlib.sha256("\0".join(f"{k}\0{t}" for k, t in sorted(self.texts.items())).encode()).hexdigest()
        return f"{FORMAT}-{digest[:12]}"

    def render(self, name: str, **values: Any) -> str:
        """Return a template with values filled in, which are never read as templates themselves. Raises ConfigError if
        the template uses a value that does not exist."""
        from jinja2 import TemplateError

        try:
            return self._templates[name].render(values).strip("\n")
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            why = single_line(error).rstrip(".")
            raise ConfigError(f"The prompt template {name!r} can't be filled in: {why}.") from error

    @cached_property
    def _templates(self) -> dict[str, Template]:
        from jinja2 import TemplateSyntaxError  # deferred for weight: only agents with models have prompts

        compiled: dict[str, Template] = {}
        for name, text in self.texts.items():
            try:
                compiled[name] = _compiled(text)
            except TemplateSyntaxError as error:
                raise ConfigError(
                    f"The prompt template {name!r} is wrong in line {error.lineno}: {error.message}."
                ) from error
        return compiled


@lru_cache(maxsize=256)
def _compiled(text: str) -> Template:
    """Return a compiled template; hundreds of agents share the defaults."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Sandboxed, because people exchange templates; not escaped for HTML, because prompts are text.
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )
    return environment.from_string(text)
