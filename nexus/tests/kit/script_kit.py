"""Runs Python files as programs in processes of their own, for tests of what is left when such a process is killed.

The processes come from the warm one of `warm.py`, because these tests begin dozens, and are not about how one begins.
"""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import warm

RUN = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
sys.path.insert(0, sys.argv.pop(1))
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


def run_script(script: Path, *words: str, timeout: float = 600.0) -> subprocess.CompletedProcess[str]:
    """Run a Python file to its end, with its folder and that of the kit on the path; killed after `timeout` seconds."""
    process = warm.begin_python(RUN, str(Path(warm.__file__).parent), str(script.parent), str(script), *words)
    late = threading.Timer(timeout, process.kill)
    late.start()
    try:
        out, err = process.communicate()
    finally:
        late.cancel()
    assert process.returncode is not None
    return subprocess.CompletedProcess([str(script), *words], process.returncode, out, err)
