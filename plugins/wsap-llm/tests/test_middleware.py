"""Each middleware around a scripted backend, with an injected clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wsap_core.errors import RecordMismatchError, UsageError
from wsap_core.seams.agent import Usage
from wsap_core.seams.model import (
    Abilities,
    Backend,
    Draft,
    Finish,
    FunctionCall,
    ImagePart,
    Message,
    OnText,
    Price,
    Reply,
    Request,
    Sampling,
    TextPart,
)
from wsap_core.seams.model_errors import (
    BackendError,
    BackendTimeoutError,
    BadRequestError,
    BudgetReachedError,
    NoServerError,
    RateLimitError,
    ServerFailedError,
)
from wsap_llm.journal import CallJournal
from wsap_llm.keys import request_key
from wsap_llm.middleware import Ask, Model
from wsap_llm.middleware.budgets import Budget, CheckBudgets
from wsap_llm.middleware.record import Record, Replayed
from wsap_llm.middleware.retry import RateLimit, Retry
from wsap_llm.middleware.show import Show, Waited
from wsap_llm.middleware.slots import InTurn, Slots
from wsap_llm.scripted import ScriptedBackend
from wsap_llm.text.tokens import estimate_request


class Clock:
    """A clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0
        self.slept: list[float] = []

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


class MemoryJournal(CallJournal):
    """A journal in memory, with the outcomes written by another one."""

    def __init__(self, before: MemoryJournal | None = None) -> None:
        self.past = list(before.written) if before is not None else []
        self.written: list[tuple[str, Reply | BackendError]] = []
        self.refusals = dict(before.refusals) if before is not None else {}

    def next(self, key: str, request: Request) -> Reply | BackendError | None:
        found = next((entry for entry in self.past if entry[0] == key), None)
        if found is not None:
            self.past.remove(found)
        return found[1] if found is not None else None

    def add(self, key: str, request: Request, reply: Reply) -> None:
        self.written.append((key, reply))

    def fail(self, key: str, error: BackendError) -> None:
        self.written.append((key, error))

    def refuse(self, key: str, reason: str) -> None:
        self.refusals[key] = reason

    def refusal(self, key: str) -> str | None:
        return self.refusals.get(key)


def ask(text: str = "hello", **more: object) -> Request:
    return Request((Message("user", text),), **more)  # type: ignore[arg-type]


def reply(backend: Backend, request: Request | None = None) -> str:
    return asyncio.run(backend.complete(request or ask())).text


def test_a_passing_failure_is_tried_again_with_growing_pauses_until_the_limit() -> None:
    clock = Clock()
    backend = ScriptedBackend([ServerFailedError("no")] * 3 + ["yes"])
    assert reply(Model(backend, [Retry(first=1, clock=clock, generator=random.Random(1))])) == "yes"
    assert len(backend.requests) == 4
    # Each pause is in the upper half of 1, 2 and 4 seconds.
    for pause, full in zip(clock.slept, (1, 2, 4), strict=True):
        assert full / 2 <= pause <= full


def test_attempts_are_capped_and_the_last_error_is_told() -> None:
    clock = Clock()
    backend = ScriptedBackend([NoServerError(f"attempt {i}") for i in range(9)])
    with pytest.raises(NoServerError, match="attempt 2"):
        reply(Model(backend, [Retry(attempts=3, clock=clock)]))
    assert len(backend.requests) == 3


def test_a_bad_request_fails_at_once() -> None:
    backend = ScriptedBackend([BadRequestError("no such field"), "never"])
    with pytest.raises(BadRequestError):
        reply(Model(backend, [Retry(clock=Clock())]))
    assert len(backend.requests) == 1


def test_a_rate_limit_waits_as_told_and_gives_up_where_that_is_too_long() -> None:
    clock = Clock()
    assert (
        reply(Model(ScriptedBackend([RateLimitError("slow", retry_after=7.5), "yes"]), [Retry(clock=clock)])) == "yes"
    )
    assert clock.slept == [7.5]
    with pytest.raises(RateLimitError):
        reply(
            Model(ScriptedBackend([RateLimitError("slow", retry_after=3600), "yes"]), [Retry(longest=60, clock=clock)])
        )


class Breaking(ScriptedBackend):
    """Interrupts its first replies."""

    def __init__(self, breaks: int) -> None:
        super().__init__(lambda request: "whole reply")
        self.breaks = breaks

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        self.requests.append(request)
        assert on_text is not None
        on_text(Draft("whole "))
        if len(self.requests) <= self.breaks:
            raise ServerFailedError("connection dropped")
        on_text(Draft("whole reply"))
        return Reply("whole reply")


def test_what_was_shown_of_a_reply_that_breaks_off_is_withdrawn_before_it_is_asked_again() -> None:
    shown: list[str] = []
    model = Model(Breaking(2), [Retry(clock=Clock())])
    assert asyncio.run(model.complete(ask(), lambda draft: shown.append(draft.text))).text == "whole reply"
    assert shown == ["whole ", "", "", "whole ", "", "", "whole ", "whole reply"]


def test_what_is_waited_for_is_shown_of_every_pause_and_every_time_out_is_told() -> None:
    shown: list[str] = []
    told: list[str] = []
    late = BackendTimeoutError("There was no reply within 120 s.")
    scripted = ScriptedBackend([late, ServerFailedError("It broke"), "yes"])
    model = Model(scripted, [Retry(clock=Clock(), tell=told.append)])
    assert asyncio.run(model.complete(ask(), lambda draft: shown.append(draft.waiting))).text == "yes"
    assert [text for text in shown if text] == [
        "There was no reply within 120 s; attempt 2 of 5 follows",
        "It broke; attempt 3 of 5 follows",
    ]
    assert shown[-1] == ""
    assert told == ["There was no reply within 120 s. Waiting 0 s before attempt 2 of 5."]


@pytest.mark.parametrize("watched", [False, True])
def test_who_looks_later_is_told_why_a_request_waits_though_its_reply_is_not_streamed(watched: bool) -> None:
    views, slots, lines, streams = Waited(), Slots(), list[str](), list[bool]()
    views.shown = watched

    class Late(ScriptedBackend):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            streams.append(on_text is not None)
            return await super().complete(request, on_text)

    class Seen(Clock):
        async def sleep(self, seconds: float) -> None:
            lines.append(views.line())

    class Before(ScriptedBackend):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            await asyncio.sleep(0)  # meanwhile the other request begins to wait
            lines.append(views.line())
            return Reply("done")

    late = Late([BackendTimeoutError("There was no reply within 15 s."), "yes"])
    turn = InTurn(slots, lambda: 1)
    model = Model(late, [Show(views, "ada", "openai/x", lambda: 0.0), Retry(clock=Seen()), turn])

    async def both() -> None:
        await asyncio.gather(Model(Before([]), [turn]).complete(ask()), model.complete(ask()))

    asyncio.run(both())
    assert lines == [
        "openai/x: waiting for its turn, 0 s",
        "openai/x: There was no reply within 15 s; attempt 2 of 5 follows, 0 s",
    ]
    assert streams == [watched, watched]


@given(concurrency=st.integers(1, 5), callers=st.integers(1, 20))
def test_never_more_requests_run_at_once_than_allowed(concurrency: int, callers: int) -> None:
    running = 0
    most = 0

    class Slow(ScriptedBackend):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            running -= 1
            return Reply("")

    async def many() -> None:
        slots = Slots()
        models = [Model(Slow([]), [InTurn(slots, lambda: concurrency)]) for _ in range(2)]
        await asyncio.gather(*(models[n % 2].complete(ask()) for n in range(callers)))

    asyncio.run(many())
    assert most == min(concurrency, callers)


class Held(ScriptedBackend):
    """Answers when it is told to, and notes who was sent."""

    def __init__(self) -> None:
        super().__init__([])
        self.sent: list[str] = []
        self.go = asyncio.Semaphore(0)

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        self.sent.append(request.messages[-1].text())
        await self.go.acquire()
        return Reply("")


def test_requests_are_sent_in_order_of_arrival_and_one_that_is_given_up_holds_nobody() -> None:
    async def main() -> None:
        backend, shown, told = Held(), list[str](), list[int]()
        model = Model(backend, [InTurn(Slots(), lambda: 1, told.append)])
        tasks = [
            asyncio.create_task(model.complete(ask(name), lambda draft: shown.append(draft.waiting)))
            for name in ("a", "b", "c", "d")
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert backend.sent == ["a"]
        assert shown == ["waiting for its turn"] * 3
        assert told == [1, 1, 1]
        tasks[1].cancel()
        backend.go.release()
        await tasks[0]
        backend.go.release()
        await tasks[2]
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        backend.go.release()
        await model.complete(ask("e"))
        assert [name for name in backend.sent if name != "d"] == ["a", "c", "e"]

    asyncio.run(main())


def test_a_limit_that_is_learned_later_holds_from_then_on() -> None:
    async def main() -> None:
        backend, limit = Held(), None
        model = Model(backend, [InTurn(Slots(), lambda: limit)])
        tasks = [asyncio.create_task(model.complete(ask(str(n)))) for n in range(3)]
        await asyncio.sleep(0)
        assert len(backend.sent) == 3
        limit = 1
        tasks.append(asyncio.create_task(model.complete(ask("3"))))
        await asyncio.sleep(0)
        assert len(backend.sent) == 3
        for _ in tasks:
            backend.go.release()
        await asyncio.gather(*tasks)
        assert len(backend.sent) == 4

    asyncio.run(main())


def test_no_minute_sees_more_starts_than_allowed() -> None:
    clock = Clock()
    starts: list[float] = []

    class Timed(ScriptedBackend):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            starts.append(clock.now())
            return Reply("")

    async def many() -> None:
        limited = Model(Timed([]), [RateLimit(3, clock=clock)])
        for _ in range(10):
            await limited.complete(ask())
            clock.time += 5

    asyncio.run(many())
    for start in starts:
        assert sum(start <= other < start + 60 for other in starts) <= 3


def test_a_request_that_could_pass_a_limit_is_not_sent() -> None:
    request = ask("word " * 50, sampling=Sampling(max_tokens=100))
    prompt = estimate_request(request)
    budget = Budget("run", tokens=prompt + 100)
    backend = ScriptedBackend(["short", "again"])
    budgeted = Model(backend, [CheckBudgets([budget])])
    assert reply(budgeted, request) == "short"
    assert budget.spent.calls == 1
    with pytest.raises(BudgetReachedError, match=r"tokens a run .* raise the limit and resume"):
        reply(budgeted, request)
    assert len(backend.requests) == 1


@pytest.mark.parametrize(
    ("budget", "reason"),
    [(Budget("day", calls=0), "0 calls a day"), (Budget("decision", cost=0.000001), r"\$1e-06 a decision")],
)
def test_limits_in_calls_and_money_are_kept_too(budget: Budget, reason: str) -> None:
    with pytest.raises(BudgetReachedError, match=reason):
        reply(Model(ScriptedBackend(["x"]), [CheckBudgets([budget], cost_of=Price(3, 15).of)]))


def test_a_limit_in_money_is_refused_where_the_price_is_not_known() -> None:
    with pytest.raises(UsageError, match="price is unknown"):
        reply(Model(ScriptedBackend(["x"]), [CheckBudgets([Budget("run", cost=1)])]))


def test_a_failed_request_is_counted_at_its_worst_and_leaves_nothing_held() -> None:
    budget = Budget("run", calls=2)
    backend = ScriptedBackend([ServerFailedError("no"), "yes", "more"])
    budgeted = Model(backend, [CheckBudgets([budget], cost_of=Price(1_000_000, 1_000_000).of)])
    with pytest.raises(ServerFailedError):
        reply(budgeted, ask(sampling=Sampling(max_tokens=10)))
    # A dollar a token: the prompt, and the ten tokens of the longest reply.
    assert budget.spent.cost == estimate_request(ask()) + 10
    assert reply(budgeted, ask(sampling=Sampling(max_tokens=10))) == "yes"
    with pytest.raises(BudgetReachedError):
        reply(budgeted)


def test_requests_in_flight_count_against_the_limit() -> None:
    budget = Budget("run", calls=1)

    class Waiting(ScriptedBackend):
        async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
            await asyncio.sleep(0)
            return Reply("", finish=Finish(usage=Usage(1)))

    async def two() -> list[object]:
        budgeted = Model(Waiting([]), [CheckBudgets([budget])])
        return await asyncio.gather(budgeted.complete(ask()), budgeted.complete(ask()), return_exceptions=True)

    results = asyncio.run(two())
    assert [type(r) for r in results] == [Reply, BudgetReachedError]


def test_middlewares_are_passed_from_the_outermost_to_the_backend() -> None:
    seen: list[str] = []

    class Noting:
        def __init__(self, name: str) -> None:
            self.name = name

        async def __call__(self, request: Request, on_text: OnText | None, ask: Ask) -> Reply:
            seen.append(f"{self.name} in")
            try:
                return await ask(request, on_text)
            finally:
                seen.append(f"{self.name} out")

    inner = Model(ScriptedBackend(["yes", "no"]), [Noting("inner")])
    outer = Model(inner, [Noting("outer"), Noting("middle")])
    assert reply(outer) == "yes"
    assert seen == ["outer in", "middle in", "inner in", "inner out", "middle out", "outer out"]
    assert isinstance(outer.backend, ScriptedBackend)
    assert [m.name for m in outer.middlewares if isinstance(m, Noting)] == ["outer", "middle", "inner"]
    assert (outer.model, outer.abilities) == (inner.model, inner.abilities)


class Faulty(ScriptedBackend):
    """A backend of somebody else's, with a defect."""

    def __init__(self, does: Callable[[], object]) -> None:
        super().__init__([], model="faulty/it")
        self.does = does

    async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
        answer: Any = self.does()
        return answer


def raising(error: BaseException) -> Callable[[], object]:
    def does() -> object:
        raise error

    return does


@pytest.mark.parametrize(
    ("does", "kind", "says"),
    [
        (raising(KeyError("choices")), BackendError, "The backend of faulty/it raised KeyError: 'choices' at "),
        (raising(OSError(5, "no")), BackendError, "raised OSError: "),
        (raising(SystemExit(3)), BackendError, "raised SystemExit: 3"),
        (raising(asyncio.CancelledError()), BackendError, "raised CancelledError: no message"),
        (raising(ConnectionResetError("gone")), ServerFailedError, "raised ConnectionResetError: gone"),
        (raising(TimeoutError("slow")), BackendTimeoutError, "raised TimeoutError: slow"),
        (raising(UsageError("Say which.")), UsageError, "Say which."),
        (lambda: None, BackendError, "The backend of faulty/it returned a NoneType, not a Reply."),
        (lambda: "yes", BackendError, "The backend of faulty/it returned a str, not a Reply."),
    ],
)
def test_what_a_backend_raises_or_returns_by_mistake_is_an_error_of_the_backend(
    does: Callable[[], object], kind: type[BaseException], says: str
) -> None:
    with pytest.raises(kind) as caught:
        reply(Model(Faulty(does), []))
    assert type(caught.value) is kind
    assert str(caught.value).startswith(says) or says in str(caught.value)


def test_a_request_that_is_called_off_is_no_error_of_the_backend() -> None:
    async def call_off() -> None:
        class Waiting(ScriptedBackend):
            async def complete(self, request: Request, on_text: OnText | None = None) -> Reply:
                await asyncio.get_running_loop().create_future()
                raise AssertionError

        asked = asyncio.create_task(Model(Waiting([]), []).complete(ask()))
        await asyncio.sleep(0)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        with pytest.raises(TimeoutError) as late:
            async with asyncio.timeout(0):
                await Model(Waiting([]), []).complete(ask())
        assert type(late.value) is TimeoutError

    asyncio.run(call_off())


def test_a_connection_that_a_backend_loses_is_tried_again() -> None:
    answers = iter([raising(ConnectionResetError("gone")), lambda: Reply("here")])
    clock = Clock()
    model = Model(Faulty(lambda: next(answers)()), [Retry(clock=clock)])
    assert reply(model) == "here"
    assert len(clock.slept) == 1


def test_a_price_of_the_backends_own_serves_where_none_was_given() -> None:
    budget = Budget("run", cost=1.0)
    dear = Model(ScriptedBackend(["x"]), [CheckBudgets([budget], cost_of=lambda prompt, reply: 2.0)])
    with pytest.raises(BudgetReachedError, match=r"\$1 a run"):
        reply(dear)
    unknown = Model(ScriptedBackend(["x"]), [CheckBudgets([budget], cost_of=lambda prompt, reply: None)])
    with pytest.raises(UsageError, match="price is unknown"):
        reply(unknown)


def test_a_limit_keeps_the_probabilities_of_a_chosen_reply() -> None:
    chosen = Reply("wait", finish=Finish(usage=Usage(1, 10, 1, None), probabilities=(0.75, 0.25)))
    budgeted = Model(ScriptedBackend([chosen]), [CheckBudgets([Budget("run", calls=2)], cost_of=Price(1, 1).of)])
    finish = asyncio.run(budgeted.complete(ask())).finish
    assert finish.probabilities == (0.75, 0.25)
    assert finish.usage.cost == pytest.approx(11e-6)


def test_an_unknown_cost_stays_unknown_in_a_sum() -> None:
    assert (Usage(1, 10, 5, 0.5) + Usage(1, 10, 5, None)).cost is None
    assert Usage(1, 10, 5, 0.5) + Usage(2, 1, 1, 0.25) == Usage(3, 11, 6, 0.75)


def test_a_recorded_run_is_had_again_without_asking_anybody() -> None:
    journal = MemoryJournal()
    recorded = Model(ScriptedBackend(["one", "two", "three"], model="scripted/x"), [Record(journal, "scripted/x")])
    texts = [reply(recorded, ask(t)) for t in ("a", "a", "b")]
    replayed = Model(Replayed("scripted/x", Abilities()), [Record(MemoryJournal(journal), "scripted/x")])
    assert [reply(replayed, ask(t)) for t in ("a", "a", "b")] == texts == ["one", "two", "three"]
    with pytest.raises(RecordMismatchError, match="no further reply of scripted/x to this request"):
        reply(replayed, ask("b"))


def test_replies_that_were_journaled_are_not_bought_twice() -> None:
    journal = MemoryJournal()
    before = Model(ScriptedBackend(["one"]), [Record(journal, "scripted/list")])
    assert reply(before) == "one"
    backend = ScriptedBackend(["two"])
    after = Model(backend, [Record(MemoryJournal(journal), "scripted/list")])
    assert [reply(after), reply(after)] == ["one", "two"]
    assert len(backend.requests) == 1


def test_a_journal_is_asked_for_what_was_there_before_and_each_reply_is_new() -> None:
    before, key = MemoryJournal(), request_key("scripted/list", ask())
    for text in ("one", "two"):
        before.add(key, ask(), Reply(text))
    journal = MemoryJournal(before)
    backend = ScriptedBackend(["three", ServerFailedError("no"), "four", "five"])
    recorded = Model(backend, [Record(journal, "scripted/list")])
    assert backend.model == "scripted/list"
    assert [reply(recorded) for _ in range(3)] == ["one", "two", "three"]
    with pytest.raises(ServerFailedError):
        reply(recorded)
    assert [reply(recorded), reply(recorded)] == ["four", "five"]
    assert [entry.text for _, entry in journal.written if isinstance(entry, Reply)] == ["three", "four", "five"]


def test_failures_are_kept_where_a_caller_goes_on_from_them_and_had_again_in_order() -> None:
    journal = MemoryJournal()
    backend = ScriptedBackend(["one", ServerFailedError("no"), "two"])

    def told(model: Model) -> list[str]:
        found = []
        for _ in range(3):
            try:
                found.append(reply(model))
            except ServerFailedError as error:
                found.append(str(error))
        return found

    said = told(Model(backend, [Record(journal, "scripted/list", failures=True)]))
    again = Model(Replayed("scripted/list"), [Record(MemoryJournal(journal), "scripted/list", failures=True)])
    assert told(again) == said == ["one", "no", "two"]


@given(text=st.text(max_size=60), piece=st.integers(0, 7), stop=st.text(min_size=1, max_size=3))
@pytest.mark.slow
def test_a_stop_text_ends_a_reply_and_is_no_part_of_it(text: str, piece: int, stop: str) -> None:
    answer = asyncio.run(ScriptedBackend([text], piece=piece).complete(ask(stop=(stop,))))
    assert stop not in answer.text
    assert text.startswith(answer.text)
    assert (answer.finish.reason == "stop_sequence") == (stop in text)


@given(
    first=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=5)), max_size=4),
    second=st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=5)), max_size=4),
)
def test_requests_have_one_key_exactly_if_they_are_equal(first: list[Any], second: list[Any]) -> None:
    def request(turns: list[Any]) -> Request:
        return Request(tuple(Message(role, text) for role, text in turns))

    assert (request_key("m", request(first)) == request_key("m", request(second))) == (first == second)
    assert request_key("m", request(first)) != request_key("n", request(first))
    assert request_key("m", request(first)) != request_key("m", replace(request(first), prefill="x"))


def test_a_call_counts_for_the_key_as_its_text_and_so_do_recorded_conversations() -> None:
    call = Message("assistant", "On. ", (FunctionCall("go", {"to": "west"}),))
    text = '{"name": "go", "arguments": {"to": "west"}, "content": "On."}'
    assert call.text() == text
    typed, plain = (Request((message, Message("user", "?"))) for message in (call, Message("assistant", text)))
    assert request_key("m", typed) == request_key("m", plain)
    assert estimate_request(typed) == estimate_request(plain)


def test_parts_of_a_message_count_for_its_key() -> None:
    seen = Request((Message("user", (TextPart("a"), ImagePart("AAAA"))),))
    other = Request((Message("user", (TextPart("a"), ImagePart("BBBB"))),))
    assert request_key("m", seen) != request_key("m", other)
