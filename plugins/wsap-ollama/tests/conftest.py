"""The server that speaks Ollama's protocol lies with the tests of wsap-llm."""

from __future__ import annotations

import sys
from pathlib import Path

if (_home := str(Path(__file__).resolve().parents[2] / "wsap-llm" / "tests")) not in sys.path:
    sys.path.append(_home)

from llm_server.fixtures import nowhere, server

__all__ = ["nowhere", "server"]
