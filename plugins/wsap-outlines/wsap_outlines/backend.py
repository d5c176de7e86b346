"""The backend `outlines/<model>`: transformers in process, or llama.cpp."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from wsap_core.seams.model import Abilities, Draft, OnText, Reply, Request
from wsap_core.seams.model_errors import BackendError
from wsap_core.untrusted import error_line
from wsap_outlines.generate import Generator, Work
from wsap_outlines.models.cached import Cancelled
from wsap_outlines.models.llama import by_llama, load_llama
from wsap_outlines.models.loading import Loaded, load
from wsap_outlines.options import Options, read_context


def _load(name: str, options: Options, *, tell: Callable[[str], None]) -> Loaded:
    return load_llama(name, options) if by_llama(name, options) else load(name, options, tell)


class OutlinesBackend:
    """A model in this process, on a CPU or GPU, loaded on its first use. Arguments as for `loading.load`; `loader`
    replaces it for a model that is already in memory.

    One reply is generated at a time, in the backend's thread; further requests wait. The key-value cache is kept after
    a reply: a request that starts with the text of the previous one, including its reply, computes only the rest.
    """

    def __init__(
        self,
        name: str,
        options: Options | None = None,
        *,
        loader: Callable[[str, Options], Loaded] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._tell = tell or (lambda words: None)
        self._name = name
        self._options = options or Options()
        self._loader = loader or functools.partial(_load, tell=self._tell)
        self._generator: Generator | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="wsap-outlines")
        self._closed = False
        context = read_context(name)
        limits = [limit for limit in (context, self._options.context) if limit]
        self._abilities = Abilities(
            json_schema=True,
            regex=True,
            choose=True,
            prefill=True,
            resume=True,
            thinking=True,
            context=min(limits) if limits else None,
        )

    @property
    def model(self) -> str:
        """The full address."""
        return f"outlines/{self._name}"

    @property
    def abilities(self) -> Abilities:
        """Its abilities; the number of parameters is known once the model is loaded."""
        return self._abilities

    async def prepare(self) -> None:
        """Load the model, unless it is loaded; `BackendError` if that fails."""
        self._check_open()
        await asyncio.wrap_future(self._thread.submit(self._load))

    @property
    def work(self) -> Work | None:
        """The work of the last request."""
        return None if self._generator is None else self._generator.work

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        """Return the reply (see `Backend`); cancelling stops the generation after the current token."""
        self._check_open()
        loop = asyncio.get_running_loop()
        cancel = threading.Event()

        def show(draft: Draft) -> None:
            if on_text is not None and not cancel.is_set():
                on_text(draft)

        def written(draft: Draft) -> None:
            try:
                loop.call_soon_threadsafe(show, draft)
            except RuntimeError:
                cancel.set()  # the event loop is closed

        task = self._thread.submit(self._run, request, cancel, None if on_text is None else written)
        try:
            return await asyncio.wrap_future(task)
        finally:
            cancel.set()
            if not task.cancel() and not task.done():
                with suppress(BackendError, Cancelled):
                    await asyncio.shield(asyncio.wrap_future(task))

    async def aclose(self) -> None:
        """Release the model's memory; the backend can't be used afterwards."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._generator = None

    def _check_open(self) -> None:
        if self._closed:
            raise BackendError(f"{self.model} is closed.")

    def _load(self) -> Generator:
        """Return the generator; runs in the backend's thread."""
        if self._generator is None:
            try:
                loaded = self._loader(self._name, self._options)
            except BackendError:
                raise
            except Exception as error:  # torch raises RuntimeError for nearly everything
                raise self._failure(error) from error
            parameters, dtype = loaded.parameters, loaded.dtype
            self._abilities = replace(self._abilities, context=loaded.context, parameters=parameters, dtype=dtype)
            self._tell(f"{self.model}: {parameters / 1e6:.0f}M parameters in {dtype} on {loaded.device}.")
            self._generator = Generator(loaded, self._options)
        return self._generator

    def _run(self, request: Request, cancel: threading.Event, on_text: OnText | None) -> Reply:
        """Generate one reply; runs in the backend's thread."""
        try:
            return self._load().reply(request, cancel, on_text)
        except (BackendError, Cancelled):
            raise
        except Exception as error:
            if self._generator is not None:
                self._generator.clear()
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> BackendError:
        return BackendError(f"{self.model} failed: {error_line(error, kind=True)}")
