"""What holds for all tests: property tests draw the same examples each time, so that a run can be repeated.

`pytest --hypothesis-profile=default` draws others, to look for what nobody has thought of.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
