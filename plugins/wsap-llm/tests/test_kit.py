"""The public API for other distributions, with a description of each name."""

from __future__ import annotations

from wsap_llm import kit


def test_every_name_of_the_kit_is_explained_at_its_top() -> None:
    assert kit.__doc__ is not None
    assert [name for name in kit.__all__ if name not in kit.__doc__] == []
    assert [name for name in kit.__all__ if not hasattr(kit, name)] == []
