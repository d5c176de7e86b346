"""Lets the tests import the helpers that lie beside them."""

from __future__ import annotations

import sys
from pathlib import Path

if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)
