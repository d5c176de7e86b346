"""Constraints on tokens: which are allowed next, and whether the reply may end.

There are two engines. `llguidance` computes the allowed tokens on demand: a new expression takes about a millisecond, a
mask two or three at most. `outlines-core` computes all of them in advance: with a vocabulary of 150,000 tokens, an
expression of the JSON style takes 10 s and 0.8 GB, one of the tag style 66 s and 2.8 GB, for every new set of legal
actions. It is for small vocabularies, and a reference for tests. When only one text is possible next, llguidance allows
only the tokenizer's own tokens for it, outlines-core any that spell it. outlines-core (0.2.14) also omits valid texts:
with `ab(?:cd)?` it ends after `ab`.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from wsap_core.seams.constraints import JsonConstraint, RegexConstraint, WrittenConstraint
from wsap_core.seams.model_errors import ConstraintError
from wsap_core.untrusted import error_line
from wsap_llm.kit import json_pattern
from wsap_outlines.guiding.closing import Closing, Reserve
from wsap_outlines.options import EngineName

KEPT = 64
"""Most compiled constraints in the LRU cache."""
_SHAPE = ("type", "const", "enum", "anyOf", "properties", "required", "additionalProperties", "items", "prefixItems")
_BOUNDS = (
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
)
_REMARKS = ("title", "description", "default", "examples", "$comment")
_JSON_KEYS = frozenset((*_SHAPE, *_BOUNDS, *_REMARKS))
"""The keywords of `json_pattern`; schemas with others are compiled by the engine itself."""
# Text as in the kernel's expressions; the engine precomputes the tokens that consist of it.
_PLAIN_TEXT = r'[^<\x00-\x1F\x7F"\\]{1,30}'


class Guide(Protocol):
    """The state of one reply under a constraint."""

    def mask(self) -> Any:
        """Return the allowed tokens as bits of 32-bit words (numpy), with those that end a reply if it may end."""
        ...

    def advance(self, token: int) -> None:
        """Append a token that the mask allows."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the constraint is met and nothing can follow."""
        ...

    @property
    def accepting(self) -> bool:
        """Whether the constraint is met; more may follow."""
        ...


class Vocabulary:
    """A model's tokens for the engines; `size` is that of the model's output, which is often larger than the number of
    tokens, and `ends` are the tokens that end a reply."""

    def __init__(self, tokenizer: Any, size: int, ends: Sequence[int]) -> None:
        import llguidance.hf  # deferred for weight, here and below
        from llguidance import LLTokenizer

        made = llguidance.hf.from_tokenizer(tokenizer, n_vocab=max(size, len(tokenizer)), eos_token=list(ends))
        self.tokens: LLTokenizer = made.with_slices([_PLAIN_TEXT])
        self.size = max(size, len(tokenizer))
        self.words = (self.size + 31) // 32
        self.ends = tuple(ends)

    def bytes_of(self) -> dict[bytes, list[int]]:
        """Return the numbers of all text tokens by their bytes."""
        found: dict[bytes, list[int]] = {}
        for number in range(self.size):
            if number in self.ends or self.tokens.is_special_token(number):
                continue
            if text := self.tokens.decode_bytes([number]):
                found.setdefault(text, []).append(number)
        return found


class _LlGuide:
    def __init__(self, matcher: Any, words: int) -> None:
        self._matcher = matcher
        self._words = words

    def mask(self) -> Any:
        import numpy as np

        words = np.zeros((1, self._words), dtype=np.int32)
        self._matcher.unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)
        if self._matcher.is_error():
            raise ConstraintError(f"The constraint can't be applied any further: {self._matcher.get_error()[:300]}.")
        return words[0]

    def advance(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise ConstraintError(f"Token {token} does not fit the constraint: {self._matcher.get_error()[:300]}.")

    @property
    def complete(self) -> bool:
        return bool(self._matcher.is_stopped())

    @property
    def accepting(self) -> bool:
        return bool(self._matcher.is_accepting())


class _CoreGuide:
    def __init__(self, index: Any, vocabulary: Vocabulary) -> None:
        from outlines_core import Guide as CoreGuide

        self._index = index
        self._guide = CoreGuide(index)
        self._vocabulary = vocabulary

    def mask(self) -> Any:
        import numpy as np

        words = np.zeros(self._vocabulary.words, dtype=np.int32)
        self._guide.write_mask_into(words.ctypes.data, words.size, words.itemsize)
        if self.accepting:
            # An index has one token that ends a reply; a model may have several.
            for token in self._vocabulary.ends:
                words.view(np.uint32)[token // 32] |= np.uint32(1 << token % 32)
        return words

    def advance(self, token: int) -> None:
        if token not in self._vocabulary.ends:
            self._guide.advance(token, return_tokens=False)

    @property
    def complete(self) -> bool:
        ahead = self._index.get_transitions().get(self._guide.get_state(), {}) if self.accepting else {None: 0}
        return not set(ahead) - set(self._vocabulary.ends)

    @property
    def accepting(self) -> bool:
        return bool(self._index.is_final_state(self._guide.get_state()))


class Guides:
    """Creates guides for one model and caches compiled constraints; not thread-safe."""

    def __init__(self, vocabulary: Vocabulary, engine: EngineName = "llguidance") -> None:
        self._vocabulary = vocabulary
        self._engine = engine
        self._kept: OrderedDict[WrittenConstraint | str, Callable[[], Guide]] = OrderedDict()
        self._closings: OrderedDict[str, Closing] = OrderedDict()
        self._pieces: Mapping[bytes, Sequence[int]] | None = None

    def guide(self, constraint: WrittenConstraint) -> Guide:
        """Return a guide at the start of a reply; `ConstraintError` if the engine does not support the constraint."""
        key = constraint.pattern if isinstance(constraint, RegexConstraint) else json.dumps(dict(constraint.schema))
        key = f"{type(constraint).__name__}:{key}"
        if key not in self._kept:
            self._kept[key] = self._compile(constraint)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]()

    def reserve(self, constraint: WrittenConstraint, said: str) -> Reserve | None:
        """Return the reserve of tokens for the end of a reply after the text `said`; None if its shortest end is
        unknown."""
        pattern = pattern_of(constraint)
        if pattern is None:
            return None
        if pattern not in self._closings:
            self._closings[pattern] = Closing(pattern)
            while len(self._closings) > KEPT:
                self._closings.popitem(last=False)
        self._closings.move_to_end(pattern)
        if self._pieces is None:
            self._pieces = self._vocabulary.bytes_of()
        return Reserve(self._closings[pattern], self._pieces, said)

    def _compile(self, constraint: WrittenConstraint) -> Callable[[], Guide]:
        pattern = pattern_of(constraint)
        if self._engine == "outlines-core":
            return self._compile_core(pattern, constraint)
        from llguidance import LLMatcher

        if pattern is not None:
            grammar = LLMatcher.grammar_from_regex(pattern)
        else:
            assert isinstance(constraint, JsonConstraint)
            grammar = LLMatcher.grammar_from_json_schema(
                json.dumps(dict(constraint.schema)), overrides={"whitespace_flexible": False}
            )
        first = LLMatcher(self._vocabulary.tokens, grammar, log_level=0)
        if first.is_error():
            raise ConstraintError(f"llguidance can't constrain a reply this way: {first.get_error()[:300]}")
        return lambda: _LlGuide(first.deep_copy(), self._vocabulary.words)

    def _compile_core(self, pattern: str | None, constraint: WrittenConstraint) -> Callable[[], Guide]:
        from outlines_core import Index
        from outlines_core import Vocabulary as CoreVocabulary
        from outlines_core.json_schema import build_regex_from_schema

        try:
            if pattern is None:
                assert isinstance(constraint, JsonConstraint)
                pattern = build_regex_from_schema(json.dumps(dict(constraint.schema)))
            vocabulary = CoreVocabulary(self._vocabulary.ends[0], self._vocabulary.bytes_of())
            index = Index(pattern, vocabulary)
        except Exception as error:  # it raises ValueError and others
            raise ConstraintError(f"outlines-core can't constrain a reply this way: {error_line(error)}") from error
        return lambda: _CoreGuide(index, self._vocabulary)


def pattern_of(constraint: WrittenConstraint) -> str | None:
    """Return the regular expression of a constraint; None for a schema beyond `json_pattern`."""
    if isinstance(constraint, RegexConstraint):
        return constraint.pattern
    if not _simple(constraint.schema):
        return None
    try:
        return json_pattern(constraint.schema)
    except ValueError:
        return None


def _simple(schema: Any) -> bool:
    """Return whether a schema has only keywords of `_JSON_KEYS`."""
    if not isinstance(schema, Mapping):
        return True
    if set(schema) - _JSON_KEYS or isinstance(schema.get("additionalProperties"), Mapping):
        return False
    parts = [*schema.get("anyOf", ()), *schema.get("prefixItems", ()), *schema.get("properties", {}).values()]
    return all(_simple(part) for part in [*parts, schema.get("items")])


def most_bytes(pattern: str) -> int | None:
    """Return an upper bound of the bytes of an expression's matches, or None; `ConstraintError` if it is invalid. A
    reply has at most that many tokens (and one to end), because each token has at least one byte."""
    from wsap_outlines.guiding.lengths import most_characters

    characters = most_characters(pattern)
    return None if characters is None else 4 * characters
