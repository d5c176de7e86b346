"""Says how our own distributions are installed."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

_PLACES = {"wsap-core": ".", "wsap-nexus": "nexus plugins/wsap-check plugins/wsap-llm plugins/wsap-matrix"}
"""Distribution -> folders of a clone to install together, for those that are not `plugins/NAME`."""


def install_line(requirement: str, *, newer: bool = False) -> str:
    """Return the command that installs a distribution of ours, such as `wsap-nexus` or `wsap-llm[mcp]`, or with `newer`
    its latest version.

    It installs from the clone if the kernel was installed from one, and else from a package index by name.
    """
    from importlib import metadata  # these are deferred for weight
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    source = json.loads(metadata.distribution("wsap-core").read_text("direct_url.json") or "{}").get("url", "")
    clone = Path(url2pathname(urlsplit(source).path))
    if not source.startswith("file:") or not (clone / "plugins").is_dir():
        return f"pip install {'-U ' * newer}{shlex.quote(requirement)}"
    name, bracket, extras = requirement.partition("[")
    places = [str(clone / place) for place in _PLACES.get(name, f"plugins/{name}").split()]
    places[0] += bracket + extras
    if newer:  # all of a clone have one version
        pull = shlex.join(["git", "-C", str(clone), "pull"])
        return f"{pull} && pip install {shlex.join(dict.fromkeys((str(clone), *places)))}"
    return f"pip install {shlex.join(places)}"
