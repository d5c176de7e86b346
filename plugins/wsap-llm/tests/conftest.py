"""The model server, which the tests of other distributions use, too."""

from __future__ import annotations

import sys
from pathlib import Path

if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)

from llm_server.fixtures import nowhere, server

__all__ = ["nowhere", "server"]
