"""Descriptions of the settings of the shipped mechanisms, one line each, for `foveate policy show`."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["DESCRIPTIONS"]

_PLACEHOLDER = "Text that stands for a replaced result"
_TOKENS = "tokens, or a share of the usable ones below 1.0"

DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    "retain": {
        "plugins": "Retention of each plugin's parts, in place of the plugin's own",
        "placeholder": "Text that stands for a tool result of which nothing is left",
    },
    "expire": {
        "tools": "Lease of each tool's results",
        "actions": "Lease of each action's results",
        "default": "Lease of all other results",
        "override": "Lease that overrides all others",
        "prompts": "Names of the summary prompts that exist; none: any",
        "system_prompt": "Summary prompt of leases that name none",
        "annotation": "Text after the kept beginning of a result",
        "preamble": "Text before the summary of a result",
        "bare_annotation": "The same as annotation, if the model may not expand",
        "bare_preamble": "The same as preamble, if the model may not expand",
        "stub": "Text that stands for a removed result",
        "bare_stub": "The same as stub, if the model may not expand",
        "stable_prefix": "Whether messages before the first result stay, for the provider's cache",
        "min_gain": "Tokens that all due results must free together before any is changed",
    },
    "supersede": {
        "reads": "Tools that show a file",
        "writes": "Tools that change a file",
        "looks": "Tools that show a page or a screen",
        "asks": "Tools that run commands, list or search",
        "keep": "Newest pages and newest screenshots that stay",
        "grace": "Turns after a change until older reads of the file are replaced; none: only if read again",
        "placeholder": _PLACEHOLDER,
    },
    "dedupe": {
        "least": "Characters of the shortest result that is compared",
        "most_told": "Characters in which a repeated result may differ",
        "placeholder": _PLACEHOLDER,
    },
    "pins": {
        "tools": "Tools whose newest results are pinned",
        "keep": "Newest results of each tool that are pinned",
    },
    "prune": {
        "protect": f"Newest part of the view that stays: {_TOKENS}",
        "minimum": "Tokens that must be due before any result is cleared",
        "part_max": "Tokens that one result counts at most",
        "protected_tools": "Tools whose results stay: names, or patterns such as memory_*",
        "protect_counts": "Whether everything or only tool outputs count as protected",
        "protect_current_turn": "Whether everything after the last user input stays",
        "protect_reads": f"The same as protect, for results that show a file: {_TOKENS}",
        "placeholder": _PLACEHOLDER,
    },
    "filter": {
        "keep": "Newest tool results that stay whole; 0: all",
        "batch": "Results that must be due before any is replaced",
        "placeholder": _PLACEHOLDER,
        "max_multimodal": "Newest messages that keep their images, documents and sounds; none: all",
        "media_placeholder": "Text that stands for an image, a document or a sound",
    },
    "fold": {
        "protect": f"Newest part of the view that stays: {_TOKENS}",
        "stretch": "Tokens of the shortest stretch of steps that is folded",
        "min_share": "Share of a stretch that folding must save",
        "framing": "Text around the folded steps",
        "by_worth": "Whether steps stay while their results are worth their place",
    },
    "shrink": {
        "protect": f"Newest part of the view whose results stay whole: {_TOKENS}",
        "protect_reads": f"The same for results that show a file: {_TOKENS}",
        "protect_said": f"The same for texts and call arguments of the model: {_TOKENS}; none: never shrunk",
        "share": "Share of a result's characters that its digest may have",
        "share_said": "Share of the characters of a model's text that its digest may have",
        "least": "Characters of the shortest text that shrinks",
        "least_said": "Characters of the shortest string in call arguments that shrinks",
        "stay_if_used": "Turns for which a result stays whole after the model used its names; 0: never",
        "protected_tools": "Tools whose results stay: names, or patterns such as memory_*",
        "by_worth": "Whether results stay while they are worth their place, in place of protect and protect_reads",
    },
    "defer": {
        "prices": "Relative prices of the model; default: those of the conversation",
        "threshold": "Share of the usable tokens above which nothing waits",
        "patience": "How many times an edit must have paid back before it is made",
        "partly": "Whether the newer part of the deferred edits may be made alone",
    },
    "recap": {
        "min_preserved_assistant_messages": "Newest turns of the assistant that stay whole",
        "batch_size": "Turns that are replaced at once",
        "recap_prefix": "Beginning of the line that recaps a turn",
        "keep_first_user": "Whether the first user input stays",
        "hide_users": "Whether user inputs before the newest recap are hidden",
        "as_note": "Whether every recap becomes a note of the user",
        "template": "Text of a recap without tool calls",
        "note": "Text of a recap with tool calls",
        "compact": "Function that returns the short text of an entry",
    },
    "checkpoint": {
        "trigger_at": "Messages at which the first summary is due",
        "keep_recent": "Newest messages that stay whole",
        "retrigger": "Which number of new messages makes the next summary due",
        "template": "Text around the summary",
        "role": "Role of the summary: user, assistant or system",
        "tool_results_keep": "Newest tool results that stay whole; 0: all",
        "prompt": "Name of the summary prompt",
        "target": "Characters of a summary at most",
        "ahead": "Messages before it is due at which a summary is written in the background; 0: never",
    },
    "compact": {
        "threshold": "Share of the usable tokens above which the oldest messages are summarised",
        "keep_recent": "Newest part that stays word for word: tokens, or a share of those at which it acts",
        "summary_tokens": "Tokens of the summary that is requested",
        "max_attempts": "Failures in a row until the next user input",
        "min_progress": "Share by which a summary must make the view smaller",
        "strict": "Whether a failure raises CompactionFailed instead of using a digest",
        "optional": "Whether it does nothing without a summarizer",
        "order": "Whether it runs after the mechanisms that need no model, or before them",
        "framing": "Text around the summary",
        "role": "Role of the summary: user, assistant or system",
        "prompt": "Name of the summary prompt",
        "input_max": "Tokens that the summarizer reads at most; none: what fits the window",
        "refuses": "Function that returns the reason to refuse a summary",
        "ahead": "Share of the threshold at which a summary is written in the background; 0: never",
        "digest": "Whether a digest takes the place of a summary that fails",
    },
}
"""By mechanism and setting."""
