"""The backend `outlines/<model>`: transformers in process, or llama.cpp."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from wsap_core.seams.model import Abilities, Chunk, Request
from wsap_core.seams.model_errors import BackendError
from wsap_core.untrusted import error_line
from wsap_outlines.cached import Cancelled
from wsap_outlines.generate import Generator, Work
from wsap_outlines.llama import by_llama, load_llama
from wsap_outlines.loading import Loaded, load
from wsap_outlines.options import Options, read_context


def _load(name: str, options: Options, *, tell: Callable[[str], None]) -> Loaded:
    return load_llama(name, options) if by_llama(name, options) else load(name, options, tell)


class OutlinesBackend:
    """A model in this process, on its CPU or GPU. It is loaded when it is first asked.

    One reply is made at a time, in a thread of its own; further requests wait their turn. The
    key-value cache is kept after a reply: a request that begins with the text of the one before,
    its reply included, computes only what was added. So a tool's result costs what it is long,
    however long the conversation before it is:

        first = Request(messages, prefill="<thinking>\\n", constraint=RegexConstraint(turn.pattern()))
        ...                                                  # the reply ends in </check_will>
        so_far = first.prefill + reply.text
        second = replace(first, prefill=continue_text(so_far, observation), constraint=...)

    Args:
        name: a folder, a GGUF file, `smollm2`, or a name on the Hugging Face hub.
        options: how it is loaded and run.
        loader: gives the model, in the backend's own thread; for a model that is in memory already.
        tell: told what takes long, and how the model runs.
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
        """What it can do; how many parameters it has is known once it is loaded."""
        return self._abilities

    async def prepare(self) -> None:
        """Load the model, unless it is loaded already.

        Raises:
            BackendError: it can't be loaded.
        """
        self._check_open()
        await asyncio.wrap_future(self._thread.submit(self._load))

    @property
    def work(self) -> Work | None:
        """What the last request took, and how much of it was kept from the one before."""
        return None if self._generator is None else self._generator.work

    async def stream(self, request: Request) -> AsyncGenerator[Chunk, None]:
        """Give the reply as it comes; the last chunk is a `Finish`.

        Closing it early ends the generation after the token in the making.

        Raises:
            BackendError: by class; raised while iterating.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        chunks: asyncio.Queue[Chunk | Exception | None] = asyncio.Queue()
        cancel = threading.Event()

        def put(item: Chunk | Exception | None) -> None:
            try:
                loop.call_soon_threadsafe(chunks.put_nowait, item)
            except RuntimeError:
                cancel.set()  # the event loop is gone, and with it whoever waited

        task = self._thread.submit(self._run, request, cancel, put)
        try:
            while (item := await chunks.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            cancel.set()
            if not task.cancel() and not task.done():
                await asyncio.shield(asyncio.wrap_future(task))

    async def aclose(self) -> None:
        """Give the model's memory back; nothing can be asked afterwards."""
        self._closed = True
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)
        self._generator = None

    def _check_open(self) -> None:
        if self._closed:
            raise BackendError(f"{self.model} is closed.")

    def _load(self) -> Generator:
        """Return what makes the replies; runs in the backend's thread."""
        if self._generator is None:
            try:
                loaded = self._loader(self._name, self._options)
            except BackendError:
                raise
            except Exception as error:  # torch raises RuntimeError for nearly everything, out of memory too
                raise self._failure(error) from error
            parameters, dtype = loaded.parameters, loaded.dtype
            self._abilities = replace(self._abilities, context=loaded.context, parameters=parameters, dtype=dtype)
            self._tell(f"{self.model}: {parameters / 1e6:.0f}M parameters in {dtype} on {loaded.device}.")
            self._generator = Generator(loaded, self._options)
        return self._generator

    def _run(self, request: Request, cancel: threading.Event, put: Callable[[Chunk | Exception | None], None]) -> None:
        """Make one reply; runs in the backend's thread."""
        try:
            for chunk in self._load().reply(request, cancel):
                put(chunk)
                if cancel.is_set():
                    break
            put(None)
        except Cancelled:
            put(None)
        except BackendError as error:
            put(error)
        except Exception as error:
            if self._generator is not None:
                self._generator.clear()
            failure = self._failure(error)
            failure.__cause__ = error
            put(failure)

    def _failure(self, error: Exception) -> BackendError:
        return BackendError(f"{self.model} failed: {error_line(error, kind=True)}")
