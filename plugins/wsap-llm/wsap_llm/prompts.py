"""Prompts as Jinja templates: the files in `templates`, which user files of the same name override."""

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

FORMAT = 8
"""The version of the other parts of requests: observations as text, listed options, the order of parts, seeds."""


def _in_folder(folder: Path) -> dict[str, str]:
    files = sorted(folder.glob("*.j2"))
    return {file.stem: read_text(file, "The prompt template").removesuffix("\n") for file in files}


_HERE = Path(__file__).parent
LANGUAGES: Mapping[str, Mapping[str, str]] = {name: _in_folder(_HERE / "templates" / name) for name in ("en", "ru")}
"""Language -> its templates by name."""
DEFAULTS = LANGUAGES["en"]
"""The templates by name, in the seeds' wording."""
_RUSSIAN: Mapping[str, Mapping[str, str]] = json.loads((_HERE / "russian.json").read_text(encoding="utf-8"))
_SAID = {text: wording for part in _RUSSIAN.values() for text, wording in part.items()}
WORDS: Mapping[str, Words] = {"en": ENGLISH, "ru": RUSSIAN.and_also(_SAID)}
"""Language -> its other texts; the Russian ones are in `russian.json`, by subject."""


def words_of(language: str) -> Words:
    """Return the texts of a language; English if there are none."""
    return WORDS.get(language, ENGLISH)


def said_of(result: ActionResult, words: Words = ENGLISH) -> str:
    """Return in a few words whether an action succeeded, if known."""
    if result.outcome == "unknown":
        return words.say("nobody knows whether it was done")
    return words.say("it worked" if result.success else "it failed")


@dataclass(frozen=True)
class Prompts:
    """A set of templates, in which `overrides` replace the defaults. Raises ConfigError if a name is unknown or a
    template is invalid."""

    overrides: Mapping[str, str] | None = None
    language: str = "en"
    """The language of the defaults and of other texts for the model; English if there are none."""

    def __post_init__(self) -> None:
        for name in self.overrides or {}:
            if name not in DEFAULTS:
                raise ConfigError(f"Unknown prompt template {name!r}; expected one of: {', '.join(DEFAULTS)}.")
        # Compiled at once, so that errors in user templates are reported before a run.
        assert self._templates

    @property
    def words(self) -> Words:
        """The other texts in their language."""
        return words_of(self.language)

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """The sources of the templates, by name; an override of `system` also replaces `brief_system`."""
        given = dict(self.overrides or {})
        if "system" in given:
            given.setdefault("brief_system", given["system"])
        return {**LANGUAGES.get(self.language, DEFAULTS), **given}

    @classmethod
    def from_folder(cls, folder: str | Path, language: str = "en") -> Prompts:
        """Return the defaults, overridden by the files `NAME.j2` of a folder. Raises ConfigError if the folder can't be
        read, or a template is invalid."""
        path = Path(folder)
        try:
            if not path.is_dir():
                raise ConfigError(f"The folder {str(path)!r} for prompt templates does not exist.")
            return cls(_in_folder(path), language)
        except OSError as error:
            raise ConfigError(f"The prompt templates in {str(path)!r} can't be read: {error}.") from error

    @cached_property
    def version(self) -> str:
        """`FORMAT` and the first 12 digits of the SHA-256 of all templates; logged with each run."""
        digest = hashlib.sha256("\0".join(f"{k}\0{t}" for k, t in sorted(self.texts.items())).encode()).hexdigest()
        return f"{FORMAT}-{digest[:12]}"

    def render(self, name: str, **values: Any) -> str:
        """Return a template filled with values, which are not treated as templates. Raises ConfigError if the template
        uses an undefined value."""
        from jinja2 import TemplateError

        try:
            return self._templates[name].render(values).strip("\n")
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
            why = single_line(error).rstrip(".")
            raise ConfigError(f"The prompt template {name!r} can't be rendered: {why}.") from error

    @cached_property
    def _templates(self) -> dict[str, Template]:
        from jinja2 import TemplateSyntaxError  # deferred: only agents with models use prompts

        compiled: dict[str, Template] = {}
        for name, text in self.texts.items():
            try:
                compiled[name] = _compiled(text)
            except TemplateSyntaxError as error:
                raise ConfigError(
                    f"The prompt template {name!r} is invalid in line {error.lineno}: {error.message}."
                ) from error
        return compiled


@lru_cache(maxsize=256)
def _compiled(text: str) -> Template:
    """Return a compiled template, cached because hundreds of agents share the defaults."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    # Sandboxed because templates may come from others; not escaped because prompts are not HTML.
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=False
    )
    return environment.from_string(text)
