"""The builder's settings for summarization and filtering, and the conversation options they become.

There are two mechanisms: checkpoints summarize the oldest messages, and a filter replaces older tool results by
placeholders. Summaries can be written by a tool that was made for another host.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Awaitable, Mapping
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..conversation import validate
from ..core.summaries import SummaryRequest
from ..errors import BadSetting
from ..policies.checkpoints import checkpoint
from ..ports import Summarizer
from .tools import Tool

__all__ = ["InvokableTool", "ShrinkSettings", "summarizer_from"]

_OMITTED = "[Omitted]"
_IMAGE_OMITTED = "[Image omitted]"
"""Placeholders without a handle, for a model without the tool `expand`."""


class ShrinkSettings(Struct, frozen=True):
    """Summarization and filtering so far. Methods return a changed copy."""

    mechanisms: Mapping[str, Mapping[str, Any]] = {}
    """Settings by mechanism."""
    kept_results: int | None = None
    """Tool results that stay whole (0: all), from `with_tool_result_filtering`."""
    kept_results_inside: int | None = None
    """The same, from `with_summarization`."""
    summary_tool: object = None
    """Writes the summaries."""

    def with_summaries(
        self,
        trigger_at: int,
        keep_recent: int,
        tool: object,
        enabled: bool,
        kept_results: int | None,
        options: Mapping[str, Any],
    ) -> ShrinkSettings:
        """Switch summarization on or off. Raises BadSetting."""
        validate.instance("enabled=", enabled, bool, "True or False")
        numbers = {"trigger_at": trigger_at, "keep_recent": keep_recent}
        for name, number in numbers.items():
            validate.integer(f"{name}= (messages)", number, 1)
        if keep_recent >= trigger_at:
            raise BadSetting(
                f"keep_recent={keep_recent} must be less than trigger_at={trigger_at}. Otherwise there is nothing to "
                "summarize."
            )
        if kept_results is not None:
            validate.integer("tool_results_keep_recent= (tool results)", kept_results)
        inside = self.kept_results_inside if kept_results is None else kept_results
        settings = self._with_kept_results(self.kept_results, inside)
        if not enabled:
            others = {name: values for name, values in self.mechanisms.items() if name != "checkpoint"}
            return replace(settings, mechanisms=others, summary_tool=None)
        _check_checkpoint({**numbers, **options})
        settings = settings._with("checkpoint", {**numbers, **options})
        return replace(settings, summary_tool="digest" if tool is None else tool)

    def with_filter(self, kept_results: int, options: Mapping[str, Any]) -> ShrinkSettings:
        """Set how many tool results stay whole. Raises BadSetting."""
        validate.integer("keep_recent= (tool results)", kept_results)
        return self._with_kept_results(kept_results, self.kept_results_inside)._with("filter", options)

    def with_media(self, max_messages: int, options: Mapping[str, Any]) -> ShrinkSettings:
        """Set how many messages keep their media. Raises BadSetting."""
        number = validate.integer("max_messages= (messages)", max_messages)
        return self._with("filter", {"max_multimodal": number, **options})

    def conversation_options(self, others: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """Return these settings as keywords of `open_conversation`. `others`: the other keywords. Raises BadSetting."""
        mechanisms = {name: dict(values) for name, values in self.mechanisms.items()}
        kept = self.kept_results if self.kept_results is not None else self.kept_results_inside
        if kept is not None or "filter" in mechanisms:
            mechanisms["filter"] = {"keep": kept or 0, **self._placeholders(others), **mechanisms.get("filter", {})}
        if not mechanisms:
            return {}
        if not isinstance(others.get("policy", ""), str):
            raise BadSetting(
                "Policies of your own cannot be combined with the builder's summarization and filtering. Put "
                "checkpoint(...) and filter_tool_results(...) among yours, or name a preset."
            )
        options: dict[str, Any] = {}
        if "policy" not in others:
            options["policy"] = "none"
        options["settings"] = {**others.get("settings", {}), **mechanisms}
        if self.summary_tool is not None:
            conversation = others.get("conversation") or others.get("name") or kind
            options["summarizer"] = summarizer_from(self.summary_tool, conversation)
        return options

    def __str__(self) -> str:
        facts = [f"{name}={dict(values)!r}" for name, values in self.mechanisms.items()]
        kept = self.kept_results if self.kept_results is not None else self.kept_results_inside
        return ", ".join([*facts, *([] if kept is None else [f"tool results kept={kept}"])])

    def _with(self, mechanism: str, values: Mapping[str, Any]) -> ShrinkSettings:
        values = {**self.mechanisms.get(mechanism, {}), **values}
        return replace(self, mechanisms={**self.mechanisms, mechanism: values})

    def _with_kept_results(self, kept: int | None, inside: int | None) -> ShrinkSettings:
        if kept is not None and inside is not None and kept != inside:
            raise BadSetting(
                f"with_summarization(tool_results_keep_recent={inside}) and "
                f"with_tool_result_filtering(keep_recent={kept}) set two numbers for one thing. Set it once."
            )
        return replace(self, kept_results=kept, kept_results_inside=inside)

    def _placeholders(self, others: Mapping[str, Any]) -> dict[str, str]:
        if others.get("expand", True):
            return {}
        has_media = "max_multimodal" in self.mechanisms.get("filter", {})
        return {"placeholder": _OMITTED, **({"media_placeholder": _IMAGE_OMITTED} if has_media else {})}


def _check_checkpoint(values: Mapping[str, Any]) -> None:
    """Raise BadSetting at once for values that the policy would refuse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The conversation warns when it is opened.
            checkpoint(**values)
    except TypeError as error:
        raise BadSetting(f"with_summarization has no such option: {error}.") from error


# -------------------------------------------------------------------------------------------------- tools for summaries


class InvokableTool(Protocol):
    """An object that takes one JSON text, and returns text or JSON."""

    def invoke(self, arguments: str, /) -> Any:
        """Return the summary: text, `{"summary": ...}`, or an awaitable of that.

        `arguments`: a JSON object with `conversation_id`, `from_turn`, `to_turn`, `original_message_count`,
        `filtered_message_count`, `messages` (each with `role`, `text`, `has_tool_calls`, `is_tool_result`) and
        `previous_summary`.
        """
        ...


def summarizer_from(tool: object, conversation: str) -> Summarizer | str:
    """Return a value for `open_conversation(summarizer=)`.

    `tool`: the name of a summarizer, a function of a SummaryRequest, a Tool, or an InvokableTool. A Tool receives those
    of the values of `InvokableTool.invoke` that its parameters name. `conversation`: their `conversation_id`. Raises
    BadSetting for any other object.
    """
    if isinstance(tool, Tool):
        return _ToolSummarizer(tool, conversation)
    if callable(getattr(tool, "invoke", None)) and not isinstance(tool, type):
        return _InvokeSummarizer(tool, conversation)
    if isinstance(tool, str) and tool.strip():
        return tool
    if callable(tool) and not isinstance(tool, type):
        return tool
    raise BadSetting(
        "A tool for summaries must be a function of a SummaryRequest, a Tool, an object with invoke(json_text), or a "
        f"name such as digest or anthropic:claude-haiku-4-5, not {tool!r:.100}."
    )


class _ToolSummarizer(Struct, frozen=True):
    tool: Tool
    conversation: str

    @property
    def name(self) -> str:
        """Its name in receipts."""
        return self.tool.name

    def __call__(self, request: SummaryRequest) -> Any:
        values = _values(request, self.conversation)
        known = self.tool.parameters.get("properties", {})
        text = json.dumps({key: value for key, value in values.items() if key in known}, ensure_ascii=False)
        return _as_text(self.tool.call(**self.tool.arguments(text)))


class _InvokeSummarizer(Struct, frozen=True):
    tool: Any
    conversation: str

    @property
    def name(self) -> str:
        """Its name in receipts."""
        name = getattr(self.tool, "name", None)
        return name if isinstance(name, str) and name else type(self.tool).__name__

    def __call__(self, request: SummaryRequest) -> Any:
        return _as_text(self.tool.invoke(json.dumps(_values(request, self.conversation), ensure_ascii=False)))


def _values(request: SummaryRequest, conversation: str) -> dict[str, Any]:
    """Return the values for a tool. Policies other than `checkpoint` set fewer facts."""
    messages = [
        {
            "role": message.role,
            "text": message.text,
            "has_tool_calls": bool(message.calls),
            "is_tool_result": message.result is not None,
        }
        for message in request.messages
    ]
    count = len(messages)
    return {
        "conversation_id": conversation,
        "from_turn": 0,
        "to_turn": max(0, count - 1),
        "original_message_count": count,
        "filtered_message_count": count,
        "messages": messages,
        **request.facts,
        "previous_summary": request.previous,
    }


def _as_text(value: Any) -> Any:
    """Return a tool's value as a summarizer returns it: a dict becomes JSON."""
    if inspect.isawaitable(value):
        return _as_text_async(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else value


async def _as_text_async(value: Awaitable[Any]) -> Any:
    return _as_text(await value)
