"""What several test files share: the server that speaks the protocols of models, and new databases at little cost."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wsap_nexus.store.database import Database

# `llm_server` lies with the tests of wsap-llm, and the hosts of tests beside this file.
if (_models := str(Path(__file__).resolve().parents[2] / "plugins" / "wsap-llm" / "tests")) not in sys.path:
    sys.path.append(_models)
if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)

from llm_server.fixtures import nowhere, server

__all__ = ["nowhere", "server"]


@pytest.fixture(scope="session", autouse=True)
def new_databases_are_copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let a new database in this process begin as a copy of an empty one; migrations take ten times as long.

    Other processes, and the tests of the storage itself, set theirs up by the migrations.
    """
    folder, opened, one_at_a_time = tmp_path_factory.mktemp("databases"), Database.open, threading.Lock()
    opened(template := folder / "template.db").close()

    def copied(location: str | os.PathLike[str], **options: Any) -> Database:
        path = Path(location)
        wanted = options.get("create", True) and not options.get("read_only", False)
        if wanted and path.suffix == ".db" and "test_storage" not in os.environ.get("PYTEST_CURRENT_TEST", ""):
            with one_at_a_time:
                if path.parent.is_dir() and not os.path.lexists(path):
                    copy = Path(shutil.copy(template, folder / "copy.db"))
                    copy.chmod(0o600)
                    shutil.move(copy, path)
        return opened(location, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Database, "open", copied)
        yield
