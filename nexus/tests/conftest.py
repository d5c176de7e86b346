"""What several test files share: the server that speaks the protocols of models."""

from __future__ import annotations

import sys
from pathlib import Path

# `llm_server` lies with the tests of wsap-llm, and the hosts of tests beside this file.
if (_models := str(Path(__file__).resolve().parents[2] / "plugins" / "wsap-llm" / "tests")) not in sys.path:
    sys.path.append(_models)
if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)

from llm_server.fixtures import nowhere, server

__all__ = ["nowhere", "server"]
