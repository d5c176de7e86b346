"""Lets the tests import the server of models that lies beside those of `wsap-llm`."""

from __future__ import annotations

import sys
from pathlib import Path

if (_there := str(Path(__file__).resolve().parents[2] / "wsap-llm" / "tests")) not in sys.path:
    sys.path.append(_there)
