"""A story whose process is killed again and again comes to what it would have come to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)

from kill_story import killed


@pytest.mark.slow
def test_a_killed_story_equals_an_undisturbed_one_and_pays_no_answer_twice(tmp_path: Path) -> None:
    outcome = killed(tmp_path, 6, seed=1)
    assert outcome.paid_twice == []
    assert outcome.differences == []
