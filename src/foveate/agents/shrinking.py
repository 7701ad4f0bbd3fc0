"""Summarization and filtering as a builder is told of them, and the keywords of `open_conversation` they come to.

Two mechanisms that stay out of each other's way: checkpoints of the oldest messages, and placeholders for the older
tool results. What each does is the affair of its policy.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .. import given
from ..errors import BadSetting
from ..policies.checkpoints import checkpoint
from .summary_tools import summarizer_of

__all__ = ["Shrinking"]

_OMITTED = "[Omitted]"
_IMAGE_OMITTED = "[Image omitted]"
"""Placeholders without a handle, for where the model has no tool that would take one."""


class Shrinking(Struct, frozen=True):
    """What was said so far. Its methods return another one."""

    mechanisms: Mapping[str, Mapping[str, Any]] = {}
    """Settings, by mechanism."""
    kept: int | None = None
    """Tool results that stay whole (0: all), as said of filtering."""
    kept_inside: int | None = None
    """The same, as said inside of summarization."""
    writer: object = None
    """Who writes the summaries."""

    def summarized(
        self,
        trigger_at: int,
        keep_recent: int,
        writer: object,
        enabled: bool,
        kept: int | None,
        more: Mapping[str, Any],
    ) -> Shrinking:
        """With summarization, or without where it is not enabled. Raises BadSetting."""
        given.instance("enabled=", enabled, bool, "True or False")
        numbers = {"trigger_at": trigger_at, "keep_recent": keep_recent}
        for what, number in numbers.items():
            given.whole(f"{what}= (messages)", number, 1)
        if keep_recent >= trigger_at:
            raise BadSetting(
                f"keep_recent={keep_recent} is not less than trigger_at={trigger_at}: there would be nothing to "
                "summarise."
            )
        if kept is not None:
            given.whole("tool_results_keep_recent= (tool results)", kept)
        made = self._keeping(self.kept, self.kept_inside if kept is None else kept)
        if not enabled:
            others = {name: told for name, told in self.mechanisms.items() if name != "checkpoint"}
            return replace(made, mechanisms=others, writer=None)
        _try({**numbers, **more})
        return replace(made._with("checkpoint", {**numbers, **more}), writer="digest" if writer is None else writer)

    def filtered(self, kept: int, more: Mapping[str, Any]) -> Shrinking:
        """With so many tool results that stay whole. Raises BadSetting."""
        given.whole("keep_recent= (tool results)", kept)
        return self._keeping(kept, self.kept_inside)._with("filter", more)

    def with_media(self, most: int, more: Mapping[str, Any]) -> Shrinking:
        """With media in so many messages. Raises BadSetting."""
        return self._with("filter", {"max_multimodal": given.whole("most= (messages)", most), **more})

    def keywords(self, said: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """What of this `open_conversation` is told, beside the keywords that are `said`. Raises BadSetting."""
        told = {name: dict(arguments) for name, arguments in self.mechanisms.items()}
        kept = self.kept if self.kept is not None else self.kept_inside
        if kept is not None or "filter" in told:
            told["filter"] = {"keep": kept or 0, **self._placeholders(said), **told.get("filter", {})}
        if not told:
            return {}
        if not isinstance(said.get("policy", ""), str):
            raise BadSetting(
                "Policies of your own do not go with summarization and filtering as the builder says them. Put "
                "checkpoint(...) and filter_tool_results(...) among yours, or name a preset."
            )
        made: dict[str, Any] = {}
        if "policy" not in said:
            made["policy"] = "none"
            if kind == "loop":  # Results of its actions expire, as in any other loop agent.
                told["expire"] = {}
        made["settings"] = {**said.get("settings", {}), **told}
        if self.writer is not None:
            made["summarizer"] = summarizer_of(self.writer, said.get("conversation") or said.get("name") or kind)
        return made

    def __str__(self) -> str:
        told = [f"{name}={dict(arguments)!r}" for name, arguments in self.mechanisms.items()]
        kept = self.kept if self.kept is not None else self.kept_inside
        return ", ".join([*told, *([] if kept is None else [f"tool results kept={kept}"])])

    def _with(self, mechanism: str, arguments: Mapping[str, Any]) -> Shrinking:
        told = {**self.mechanisms.get(mechanism, {}), **arguments}
        return replace(self, mechanisms={**self.mechanisms, mechanism: told})

    def _keeping(self, kept: int | None, inside: int | None) -> Shrinking:
        if kept is not None and inside is not None and kept != inside:
            raise BadSetting(
                f"with_summarization(tool_results_keep_recent={inside}) and "
                f"with_tool_result_filtering(keep_recent={kept}) say two numbers for one thing. Say one, once."
            )
        return replace(self, kept=kept, kept_inside=inside)

    def _placeholders(self, said: Mapping[str, Any]) -> dict[str, str]:
        if said.get("expand", True):
            return {}
        has_media = "max_multimodal" in self.mechanisms.get("filter", {})
        return {"placeholder": _OMITTED, **({"media_placeholder": _IMAGE_OMITTED} if has_media else {})}


def _try(arguments: Mapping[str, Any]) -> None:
    """Refuse at once what the policy would refuse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # The conversation warns when it is opened.
            checkpoint(**arguments)
    except TypeError as error:
        raise BadSetting(f"Summarization cannot be told this: {error}.") from error
