"""`python -m wsap_core` is `wsap`."""

from __future__ import annotations

import sys

from wsap_core.cli import main

if __name__ == "__main__":
    sys.exit(main())
