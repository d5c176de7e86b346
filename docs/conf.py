"""How the documentation is built: MyST pages, the reference from docstrings, nothing fetched."""

from __future__ import annotations

import importlib.metadata
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "WSAP"
author = "The WSAP authors"
copyright = "The WSAP authors"
version = release = importlib.metadata.version("wsap-core")

extensions = ["myst_parser", "sphinx.ext.autodoc", "plain_docstrings"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
root_doc = "index"

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
suppress_warnings = ["ref.python"]  # a public name is reachable at wsap_core and where it is defined

html_theme = "furo"
html_title = f"WSAP {version}"
