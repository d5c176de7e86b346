"""Regular expressions as llama.cpp's grammars; a real server applies them in the tests of `nox -s models`."""

from __future__ import annotations

import pytest

from wsap_llm.backends.gbnf import grammar_of


@pytest.mark.parametrize(
    ("pattern", "grammar"),
    [
        ("red", '"red"'),
        ("colou?r", '"colo" "u"? "r"'),
        ("(?:red|blue)+", '( "red" | "blue" )+'),
        (r"a\.b\n", r'"a.b\n"'),
        (r"[0-9]{2,3}", "[0-9]{2,3}"),
        (r"[^<\x00-\x08]{0,9}", r"[^<\x00-\x08]{0,9}"),
        (r"[^\"\\]", r'[^"\\]'),
        (r"[\-a]", r"[\x2Da]"),
        (r"\d\s", r"[0-9] [ \t\n\r\x0b\x0c]"),
        (r"say \"no\"", r'"say \"no\""'),
        ("ж{2}", '"ж"{2}'),
        (".", r"[^\n]"),
        ("a\u200bb", r'"a\u200Bb"'),
        ("[\u2028\U000e0001]", r"[\u2028\U000E0001]"),
        (r"[\^\]a]", r"[\x5E\]a]"),
    ],
)
def test_an_expression_is_written_as_a_grammar(pattern: str, grammar: str) -> None:
    assert grammar_of(pattern) == f"root ::= {grammar}"


@pytest.mark.parametrize("pattern", [r"a\b", "^a", "a$", "(?=a)", r"(a)\1", "a*?", "a++", "a{2}?"])
def test_what_a_grammar_cannot_express_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="no counterpart in a grammar"):
        grammar_of(pattern)
