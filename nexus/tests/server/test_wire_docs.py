"""The page for those who write in other languages: its commands are run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from wire_server import serving

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "use-the-nexus-over-http.md"
BLOCKS = re.findall(r"^```bash\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="there is no curl here")
def test_an_agent_lives_in_the_nexus_by_the_commands_of_the_page(tmp_path: Path) -> None:
    with serving(tmp_path / "nexus") as served:
        environment = {**os.environ, "NEXUS": served.url, "TOKEN": served.token}
        printed = [
            subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block],
                cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=True,
            ).stdout
            for block in BLOCKS
        ]  # fmt: skip
    registered, seen, arrived, acted, events, joined = printed
    assert '"token":' in registered
    assert '"place":"nexus"' in seen
    assert '"bridge_url":' in arrived
    assert '"result":' in acted
    assert '"reason":"jack_out"' in acted
    assert "event: entered" in events
    # Nothing serves a game there, and that is said.
    assert '"code":"WORLD_FAILED"' in joined
