"""The tiny model, a backend over it, and it as a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wsap_outlines.testing import tiny_model, tiny_tokenizer

if (_here := str(Path(__file__).resolve().parent)) not in sys.path:
    sys.path.append(_here)  # for gguf_kit

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    pytest.importorskip("torch", reason="needs torch: `nox -s models` runs these")
    return tiny_tokenizer()


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Tests run side by side, so each is content with one thread."""
    try:
        import torch
    except ImportError:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def model(tokenizer: Any) -> Any:
    return tiny_model(tokenizer)


@pytest.fixture
def backend(model: Any, tokenizer: Any) -> Any:
    """A backend over the tiny model."""
    from wsap_outlines.backend import OutlinesBackend
    from wsap_outlines.models.loading import adopt

    return OutlinesBackend("tiny", loader=lambda name, options: adopt(model, tokenizer, options))


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[Any, Any], Path]:
    """Saves a model with its tokenizer and returns the folder."""

    def save(model: Any, tokenizer: Any) -> Path:
        model.save_pretrained(tmp_path / "model")
        tokenizer.save_pretrained(tmp_path / "model")
        return tmp_path / "model"

    return save
