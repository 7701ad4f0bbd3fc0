"""OpenTelemetry of a conversation: spans, attributes and counters, without any effect on the conversation."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from foveate import Conversation, Options, Usage, View, open_async_conversation, open_conversation
from foveate.core.messages import ToolCall, assistant, tool_result
from foveate.edits import Edit, Span, Summarize
from foveate.errors import BadSetting, MissingExtra
from foveate.open import grouped
from foveate.policies import compact_on_overflow
from foveate.stores.memory import MemoryStore
from foveate.telemetry import instrument

SECRET = "the password is swordfish"


class Exported:
    """An SDK with exporters in memory."""

    def __init__(self) -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.tracers, self.meters = TracerProvider(), MeterProvider([self._reader])
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))

    def observe(self, chat: Any, **options: Any) -> Any:
        instrument(chat, tracer_provider=self.tracers, meter_provider=self.meters, **options)
        return chat

    def spans(self, name: str = "") -> list[ReadableSpan]:
        return [span for span in self._spans.get_finished_spans() if name in ("", span.name)]

    def facts(self, name: str) -> list[dict[str, Any]]:
        """Return the attributes of the spans with this name."""
        return [dict(span.attributes or {}) for span in self.spans(name)]

    def points(self, name: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        results = [
            metric
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
        ]
        return [point for metric in results for point in metric.data.data_points]

    def counted(self) -> dict[str, int]:
        names = ("saved", "rebilled", "expanded", "refetched")
        return {name: sum(point.value for point in self.points(f"foveate.tokens.{name}")) for name in names}


@pytest.fixture
def seen() -> Iterator[Exported]:
    result = Exported()
    yield result
    result.meters.shutdown()


def opened(**options: Any) -> Conversation:
    return open_conversation("trip", policy="keep-last-1", window=100_000, **grouped(options))


def step(chat: Conversation, n: int, path: str = "") -> None:
    """Make one model call that reads a file, and append its result."""
    chat.prepare()
    chat.record(assistant("", ToolCall(f"c{n}", "read", f'{{"path":"{path or n}"}}')), usage=Usage(50, 900, 20, 7, 3))
    chat.append(tool_result(f"c{n}", f"{SECRET} {n}\n" * 200))


def run(chat: Conversation) -> Conversation:
    chat.append(f"Where is the file? {SECRET}")
    for n in range(4):
        step(chat, n)
    chat.expand("m3")
    step(chat, 4, "1")
    chat.prepare()
    return chat


def test_a_plan_is_a_span_with_its_figures(seen: Exported) -> None:
    chat = run(seen.observe(opened()))
    plans = seen.facts("foveate.plan")
    assert [plan["foveate.turn"] for plan in plans] == [1, 2, 3, 4, 5, 6]
    receipt = next(receipt for receipt in chat.journal.receipts() if receipt.author == "plan")
    done = next(plan for plan in plans if plan["foveate.edits"])
    assert done == {
        "gen_ai.conversation.id": "trip",
        "gen_ai.conversation.compacted": False,
        "foveate.turn": receipt.turn,
        "foveate.tokens.before": receipt.tokens_before,
        "foveate.tokens.after": receipt.tokens_after,
        "foveate.edits": 1,
        "foveate.policies": receipt.policies,
    }


def test_usage_is_a_span_and_a_histogram_with_cached_input(seen: Exported) -> None:
    chat = seen.observe(opened(), model="model-of-yours")
    chat.append("Hello.")
    step(chat, 1)
    asked = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "model-of-yours",
    }
    assert seen.facts("foveate.record") == [
        {
            "gen_ai.conversation.id": "trip",
            "gen_ai.usage.input_tokens": 970,
            "gen_ai.usage.cache_read.input_tokens": 900,
            "gen_ai.usage.cache_creation.input_tokens": 20,
            "gen_ai.usage.output_tokens": 7,
            "gen_ai.usage.reasoning.output_tokens": 3,
            "foveate.turn": 1,
            **asked,
        }
    ]
    points = {point.attributes["gen_ai.token.type"]: point for point in seen.points("gen_ai.client.token.usage")}
    assert {kind: (point.sum, point.count) for kind, point in points.items()} == {"input": (970, 1), "output": (7, 1)}
    assert dict(points["input"].attributes) == asked | {"gen_ai.token.type": "input"}
    assert points["input"].explicit_bounds[:4] == (1, 4, 16, 64)


def test_late_usage_is_reported_like_usage_of_a_reply(seen: Exported) -> None:
    chat = seen.observe(opened())
    chat.append("Hello.")
    reply = chat.record(assistant("Hi."))
    assert seen.facts("foveate.record") == []
    chat.bill(reply, Usage(50, 900, 20, 7))
    chat.bill(reply, Usage(50, 900, 20, 7))
    (facts,) = seen.facts("foveate.record")
    assert (facts["gen_ai.usage.input_tokens"], facts["gen_ai.usage.output_tokens"]) == (970, 7)
    points = {point.attributes["gen_ai.token.type"]: point for point in seen.points("gen_ai.client.token.usage")}
    assert {kind: point.sum for kind, point in points.items()} == {"input": 970, "output": 7}


def test_the_counters_equal_the_totals(seen: Exported) -> None:
    chat = run(seen.observe(opened()))
    totals = chat.totals()
    assert min(totals.tokens_saved, totals.tokens_rebilled, totals.tokens_expanded, totals.tokens_refetched) > 0
    # The last view belongs to a call without an answer: it counts here, but not in the totals.
    view = chat.view
    last = sum(row.stamp.tokens for row in chat.history()) - view.tokens
    counted = seen.counted()
    assert counted["saved"] == totals.tokens_saved + last
    assert counted["expanded"] == totals.tokens_expanded
    assert counted["refetched"] == totals.tokens_refetched
    assert counted["rebilled"] >= totals.tokens_rebilled


def test_a_resumed_conversation_continues_its_savings(seen: Exported) -> None:
    store = MemoryStore()
    run(opened(store=store))
    again = seen.observe(opened(store=store))
    again.append("And now?")
    view = again.prepare()
    assert seen.counted()["saved"] == sum(row.stamp.tokens for row in again.history()) - view.tokens > 0


def test_a_summary_is_a_span_inside_its_plan(seen: Exported) -> None:
    def summarize(request: object) -> str:
        with trace.get_tracer("reader", tracer_provider=seen.tracers).start_as_current_span("chat cheap-model"):
            return "They looked for the file."

    chat = open_conversation(
        "trip", policy=[compact_on_overflow()], window=6_000, summarizer=summarize, options=Options(background=False)
    )
    seen.observe(chat)
    chat.append("Where is it?")
    for n in range(12):
        chat.append(assistant("", ToolCall(f"c{n}", "read", f'{{"n":{n}}}')))
        chat.append(tool_result(f"c{n}", "line\n" * 500))
    chat.prepare()
    (plan,), (model,) = seen.spans("foveate.plan"), seen.spans("chat cheap-model")
    compact = seen.spans("foveate.compact")[0]
    assert model.parent == compact.parent == plan.get_span_context()
    assert compact.start_time == plan.start_time
    facts = dict(compact.attributes or {})
    assert facts["foveate.tokens.before"] > facts["foveate.tokens.after"]  # type: ignore[operator]
    assert dict(plan.attributes or {})["gen_ai.conversation.compacted"] is True


@pytest.mark.parametrize("background", [False, True])
def test_an_async_summarizer_runs_inside_its_plan(seen: Exported, background: bool) -> None:
    async def summarize(request: object) -> str:
        with trace.get_tracer("reader", tracer_provider=seen.tracers).start_as_current_span("chat cheap-model"):
            await asyncio.sleep(0)
        return "They looked for the file."

    async def main() -> None:
        options = Options(background=background)
        chat = await open_async_conversation(
            "trip", policy=[compact_on_overflow()], window=6_000, summarizer=summarize, options=options
        )
        async with chat:
            seen.observe(chat)
            await chat.append("Where is it?")
            for n in range(12):
                await chat.append(assistant("", ToolCall(f"c{n}", "read", "{}")))
                await chat.append(tool_result(f"c{n}", "line\n" * 500))
            await chat.prepare()

    asyncio.run(main())
    (plan,), (model,) = seen.spans("foveate.plan"), seen.spans("chat cheap-model")
    assert model.parent == plan.get_span_context()


def test_an_expansion_is_a_span(seen: Exported) -> None:
    chat = run(seen.observe(opened()))
    (shown,) = seen.facts("foveate.expand")
    assert (shown["foveate.form"], shown["foveate.turn"]) == ("view", 5)
    assert shown["foveate.tokens.after"] > shown["foveate.tokens.before"]
    chat.expand("m5", where="tail")
    appended = seen.facts("foveate.expand")[1]
    assert (appended["foveate.form"], appended["foveate.handle"]) == ("whole", "m5")


def test_an_expansion_by_the_model_is_reported_once(seen: Exported) -> None:
    chat = seen.observe(opened(expand=True, expand_where="view"))
    chat.append("Where is it?")
    for n in range(3):
        step(chat, n)
    chat.prompt()
    chat.record(assistant("", ToolCall("e1", "expand", '{"handle":"m3"}')))
    chat.prompt()
    assert [receipt.author for receipt in chat.journal.receipts()].count("expand") == 1
    assert [span["foveate.form"] for span in seen.facts("foveate.expand")] == ["view"]


def test_no_attribute_contains_message_content(seen: Exported) -> None:
    chat = run(seen.observe(opened()))
    rows = chat.history()
    chat.edit(Summarize(Span(rows[1].id, rows[4].id), f"in short: {SECRET}"))
    chat.prepare()
    assert len(seen.spans()) > 10
    assert "swordfish" not in repr([span.to_json() for span in seen.spans()])
    assert {name.split(".")[0] for span in seen.spans() for name in span.attributes or {}} == {"gen_ai", "foveate"}


def test_an_error_is_reported_by_its_class_only(seen: Exported) -> None:
    def fails(view: View) -> list[Edit]:
        raise BadSetting(SECRET)

    chat = seen.observe(open_conversation("trip", window=9_000, policy=fails))
    chat.append(SECRET)
    with pytest.raises(BadSetting):
        chat.prepare()
    (plan,) = seen.spans("foveate.plan")
    assert dict(plan.attributes or {}) == {"gen_ai.conversation.id": "trip", "error.type": "BadSetting"}
    assert (plan.status.status_code, plan.status.description, plan.events) == (trace.StatusCode.ERROR, None, ())


def test_the_callers_span_is_current_again_after_a_plan(seen: Exported) -> None:
    chat = seen.observe(opened())
    chat.append("Hello.")
    tracer = trace.get_tracer("reader", tracer_provider=seen.tracers)
    with tracer.start_as_current_span("outer") as outer:
        chat.prepare()
        assert trace.get_current_span() is outer
    (plan,) = seen.spans("foveate.plan")
    assert plan.parent == outer.get_span_context()


def test_an_async_conversation_is_reported_the_same_way(seen: Exported) -> None:
    async def talk(name: str) -> None:
        async with await open_async_conversation(name, window=100_000) as chat:
            seen.observe(chat)
            await chat.append("Hello.")
            for _ in range(5):
                await chat.prepare()
            await chat.record(assistant("Hi."), usage=Usage(5))

    async def main() -> None:
        await asyncio.gather(*(talk(f"trip {n}") for n in range(3)))

    asyncio.run(main())
    assert [len(seen.spans(f"foveate.{name}")) for name in ("plan", "record")] == [15, 3]
    assert all(span.parent is None for span in seen.spans())


def test_a_fork_is_reported_only_if_instrumented(seen: Exported) -> None:
    fork = run(seen.observe(opened())).fork("branch")
    before = len(seen.spans())
    fork.prepare()
    assert len(seen.spans()) == before
    seen.observe(fork).prepare()
    assert seen.facts("foveate.plan")[-1]["gen_ai.conversation.id"] == "branch"


# ------------------------------------------------------------------------------------------------ disturbing nothing


class Broken:
    """An observer that raises in one of its methods after some calls."""

    def __init__(self, where: str) -> None:
        self.where, self.calls = where, 0

    def begin(self, operation: str) -> object:
        return self._do("begin")

    def end(self, token: object, facts: object, error: object) -> None:
        self._do("end")

    def report(self, operation: str, facts: object) -> None:
        self._do("report")

    def count(self, totals: object) -> None:
        self._do("count")

    def _do(self, what: str) -> None:
        self.calls += 1
        if what == self.where:
            raise ValueError("no network")


@pytest.mark.parametrize("where", ["begin", "end", "report", "count"])
def test_a_failing_observer_is_logged_once_and_skipped(where: str, caplog: Any) -> None:
    chat, plain = opened(), run(opened())
    observer = Broken(where)
    chat._agent.observe(observer)
    run(chat)
    assert [row.message for row in chat.history()] == [row.message for row in plain.history()]
    assert [record.edits for record in chat.journal.records()] == [record.edits for record in plain.journal.records()]
    lines = [line.getMessage() for line in caplog.records if line.levelno >= logging.WARNING]
    assert lines == ["trip: its observer failed and gets no more reports"]
    calls = observer.calls
    chat.prepare()
    assert observer.calls == calls


def test_an_invalid_observer_is_refused() -> None:
    with pytest.raises(BadSetting, match="an Observer, such as"):
        opened()._agent.observe(print)  # type: ignore[arg-type]


def test_without_an_sdk_nothing_is_reported_and_nothing_fails() -> None:
    chat = opened()
    instrument(chat)
    run(chat)


def test_a_missing_package_is_named_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import foveate.telemetry

    for name in [name for name in sys.modules if name.startswith(("opentelemetry", "foveate.telemetry."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(vars(foveate.telemetry), "instrument")  # As in a program that has not used it yet.
    with pytest.raises(MissingExtra, match=r'pip install "foveate\[otel\]"'):
        foveate.telemetry.instrument  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        foveate.telemetry.other  # type: ignore[attr-defined]  # noqa: B018
