"""Texts of a person, read from files of any kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from wsap_core.errors import ConfigError
from wsap_core.textfile import LONGEST, read_text
from wsap_llm.prompts import Prompts


def test_a_text_is_read_without_its_mark_and_with_plain_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "anna.txt"
    path.write_bytes(b"\xef\xbb\xbfYou are Anna.\r\nYou like \xc3\xa4pples.\n")
    assert read_text(path, "The persona") == "You are Anna.\nYou like äpples.\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"ab\xff", r"is not UTF-8 text \(byte 3\)"),
        (b"ab\0cd", "it contains zero bytes"),
        (b"a" * (LONGEST + 1), "is longer than 200 kB"),
    ],
)
def test_what_is_no_text_of_a_person_is_refused(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "anna.txt"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=f"^The persona in .*{words}"):
        read_text(path, "The persona")


def test_a_file_that_is_not_there_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"The persona can't be read from .*: No such file"):
        read_text(tmp_path / "nobody.txt", "The persona")
    with pytest.raises(ConfigError, match="The persona can't be read from"):
        read_text(tmp_path, "The persona")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no endless file here")
def test_an_endless_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="is longer than"):
        read_text(Path("/dev/zero"), "The persona")


def test_a_template_that_is_no_text_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "system.j2").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"The prompt template in .*system\.j2.* is not UTF-8 text"):
        Prompts.from_folder(tmp_path)


@pytest.mark.parametrize("text", ["{{ 1 / 0 }}", "{{ 'a' + 1 }}", "{{ [][3].x }}", "{{ ().__class__.__mro__ }}"])
def test_a_template_that_can_not_be_filled_in_is_told_in_one_sentence(text: str) -> None:
    with pytest.raises(ConfigError, match=r"The prompt template 'tag_question' can't be rendered: [^\n]*[^.]\.$"):
        Prompts({"tag_question": text}).render("tag_question")
