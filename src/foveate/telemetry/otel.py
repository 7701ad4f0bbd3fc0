"""OpenTelemetry spans and metrics of a conversation, by the conventions for generative AI.

It needs only the OpenTelemetry API; a program without an SDK pays almost nothing. The names of the conventions are
literals, since the package of conventions lacks the newest ones. Names without a convention begin with `foveate.`. No
attribute contains message content; handles, which also appear in placeholders, do occur.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple

from opentelemetry import metrics, trace
from opentelemetry.trace import Span, Status, StatusCode

from ..core.totals import Totals
from ..ports import Fact

if TYPE_CHECKING:
    from ..conversation import AsyncConversation, Conversation

__all__ = ["OpenTelemetryObserver", "instrument"]

_NAMES = {
    "input": "gen_ai.usage.input_tokens",
    "output": "gen_ai.usage.output_tokens",
    "cache_read": "gen_ai.usage.cache_read.input_tokens",
    "cache_write": "gen_ai.usage.cache_creation.input_tokens",
    "reasoning": "gen_ai.usage.reasoning.output_tokens",
    "compacted": "gen_ai.conversation.compacted",
    "tokens_before": "foveate.tokens.before",
    "tokens_after": "foveate.tokens.after",
}
"""Fact -> attribute. The attribute of any other fact is `foveate.` and its name."""

_COUNTED = {
    "tokens_saved": "Tokens saved over sending the whole history, summed over calls",
    "tokens_rebilled": "Tokens written again because of an edit, which a warm cache would have served",
    "tokens_expanded": "Tokens shown again on request",
    "tokens_refetched": "Tokens of results of repeated calls whose earlier result was shrunk or hidden",
}
"""Sums of `Totals` that become counters, such as `foveate.tokens.saved`, with their descriptions."""

_BUCKETS = [4**n for n in range(14)]
"""Bucket bounds that the conventions recommend for `gen_ai.client.token.usage`."""


def instrument(
    chat: Conversation | AsyncConversation,
    *,
    model: str = "",
    provider: str = "",
    tracer_provider: trace.TracerProvider | None = None,
    meter_provider: metrics.MeterProvider | None = None,
) -> None:
    """Report this conversation to OpenTelemetry from now on. Forks must be instrumented separately.

    `model` becomes `gen_ai.request.model`. `provider` becomes `gen_ai.provider.name`; the default is the name of the
    conversation's format. The default providers are the global ones of the program.
    """
    chat._agent.observe(
        OpenTelemetryObserver(
            chat.name,
            model=model,
            provider=provider or chat.format.name,
            tracer_provider=tracer_provider,
            meter_provider=meter_provider,
        )
    )


class _Operation(NamedTuple):
    """A begun operation: its span, and the context manager that makes the span current."""

    span: Span
    current: AbstractContextManager[Span]


class OpenTelemetryObserver:
    """The observer of one conversation.

    Spans: `foveate.plan` covers the work before a model call, including summarizers. `foveate.compact` covers a
    summary, from the begin of its plan. `foveate.expand` and `foveate.record` have no duration. Metrics: the counters
    `foveate.tokens.saved`, `.rebilled`, `.expanded` and `.refetched`, and the histogram `gen_ai.client.token.usage` of
    billed tokens.
    """

    def __init__(
        self,
        conversation: str,
        *,
        model: str = "",
        provider: str = "",
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("foveate", tracer_provider=tracer_provider)
        meter = metrics.get_meter("foveate", meter_provider=meter_provider)
        self._base_attributes = {"gen_ai.conversation.id": conversation}
        self._call_attributes = {"gen_ai.operation.name": "chat"}
        if provider:
            self._call_attributes["gen_ai.provider.name"] = provider
        if model:
            self._call_attributes["gen_ai.request.model"] = model
        self._usage = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens that model calls were billed for",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        # Only the saved tokens can go down: expansions may exceed the savings.
        self._counters = {
            name: (meter.create_up_down_counter if name == "tokens_saved" else meter.create_counter)(
                _attribute(name.replace("_", ".")), unit="{token}", description=text
            )
            for name, text in _COUNTED.items()
        }
        self._counted = Totals()
        self._start_times: list[int] = []
        """Start times of the operations in progress, in nanoseconds since 1970, as in spans."""

    def begin(self, operation: str) -> _Operation:
        span = self._tracer.start_span(f"foveate.{operation}", attributes=dict(self._base_attributes))
        current = trace.use_span(span)
        current.__enter__()
        self._start_times.append(getattr(span, "start_time", None) or 0)
        return _Operation(span, current)

    def end(self, token: object, facts: Mapping[str, Fact], error: BaseException | None) -> None:
        assert isinstance(token, _Operation), "expected the value that begin returned"
        span, current = token
        self._start_times.pop()
        current.__exit__(None, None, None)
        span.set_attributes(_attributes(facts))
        if error is not None:
            # Only the class name: the text of an error may quote messages.
            span.set_attribute("error.type", type(error).__qualname__)
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def report(self, operation: str, facts: Mapping[str, Fact]) -> None:
        attributes = self._base_attributes | _attributes(facts)
        start_time = None
        if operation == "record":
            attributes |= self._call_attributes
            self._bill(facts)
        elif operation == "compact" and self._start_times:
            start_time = self._start_times[-1] or None
        self._tracer.start_span(f"foveate.{operation}", start_time=start_time, attributes=attributes).end()

    def count(self, totals: Totals) -> None:
        for name, counter in self._counters.items():
            more = getattr(totals, name) - getattr(self._counted, name)
            if more > 0 or (more < 0 and name == "tokens_saved"):
                counter.add(more, self._call_attributes)
        self._counted = totals

    def _bill(self, facts: Mapping[str, Fact]) -> None:
        for kind in ("input", "output"):
            tokens = facts.get(kind)
            if isinstance(tokens, int):
                self._usage.record(tokens, self._call_attributes | {"gen_ai.token.type": kind})


def _attributes(facts: Mapping[str, Fact]) -> dict[str, Fact]:
    return {_attribute(name): fact for name, fact in facts.items() if fact != ()}


def _attribute(name: str) -> str:
    return _NAMES.get(name, f"foveate.{name}")
