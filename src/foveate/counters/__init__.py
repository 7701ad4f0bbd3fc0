"""Token counters: estimates without a package, exact counts with the extra `tokens`.

`counter_for` chooses by the model, `counter_named` by a name that the user passes as `counter=`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

from ..core.media_tokens import media_tokens, rates_for
from ..core.messages import Media
from ..core.profiles import claude_version
from ..core.sizes import estimate
from ..core.tokens import ESTIMATES, estimator
from ..errors import BadSetting, MissingExtra

__all__ = ["EXACT", "ModelCounter", "counter_for", "counter_named", "family_of"]

EXACT = {"o200k": "toktok", "cl100k": "toktok", "claude": "ctok", "claude-4.7": "ctok"}
"""Vocabularies with an exact counter, and the package that carries them. `ctok` reconstructs Claude's counts."""

_MODELS = (
    # The first pattern that matches counts. Sources: tiktoken's table of models, and the announcements of the models.
    (re.compile(r"claude"), ""),
    (re.compile(r"gpt-(?:3\.5|4(?![.o\d]))|davinci-002|babbage-002"), "cl100k"),
    (re.compile(r"(?:chat)?gpt-|o[1-9](?:-|$)"), "o200k"),
    (re.compile(r"gemini-|gemma"), "gemini"),
)
_VERSION = re.compile(r"-(\d+)(?:[-.](\d{1,2})(?!\d))?")
_NEW_CLAUDE = (4, 7)
"""Claude has a vocabulary with 17 to 37 % more tokens since this version."""


_DOUBT = 0.1
"""Estimates are at most this share below the true count; `tests/counters/test_estimates.py` checks it."""


class ModelCounter:
    """Counts text by a vocabulary, and media and tools by the formulas of a model."""

    def __init__(self, family: str, count: Callable[[str], int], model: str = "", *, is_estimate: bool) -> None:
        self.name = f"estimate of {family}" if is_estimate else family
        """Name of the vocabulary, or of its estimate."""
        self.family = family
        """Name of the vocabulary."""
        self.doubt = _DOUBT if is_estimate else 0.0
        """By which share of the true count the count of a text may be too low."""
        self._count, self._rates, self._model = count, rates_for(family, model), model

    def __call__(self, text: str) -> int:
        """Return the tokens of a text."""
        return self._count(text)

    def media(self, media: Media) -> int:
        """Return the tokens of an image, a document, a sound or a video."""
        return media_tokens(media, self._rates, self._count)

    def tools(self, tools: Sequence[Any]) -> int:
        """Return the tokens that the provider adds for these tools to their JSON text (Claude: a system prompt)."""
        return _added_by_tools(self.family, self._model, tools)


def counter_for(model: str, format: str = "") -> ModelCounter:
    """Return the counter of a model: exact if the name is known and the package of its vocabulary installed.

    Claude's counts are estimates here: the reconstruction takes 3 seconds for a million characters. Ask for it with
    `counter="claude-4.7"`. A model that is not known counts by the vocabulary that is usual for the format.
    """
    family = family_of(model)
    if EXACT.get(family) == "toktok" and find_spec("toktok") is not None:
        return counter_named(family, model)
    return _estimating(family or {"anthropic": "claude-4.7", "gemini": "gemini"}.get(format, "o200k"), model)


def counter_named(name: str, model: str = "") -> ModelCounter:
    """Return the exact counter of a vocabulary, or its estimate for a name such as `estimate:o200k`.

    `characters` counts a quarter of the characters, which is the same for every model, but wrong by a factor of 3 for
    some languages.

    Raises BadSetting for an unknown name, and MissingExtra if the package of the vocabulary is not installed.
    """
    if name == "characters":
        return _counting(name, model)
    kind, colon, family = name.partition(":")
    if colon and kind == "estimate" and family in ESTIMATES:
        return _estimating(family, model)
    if name not in EXACT:
        known = ", ".join([*EXACT, *(f"estimate:{family}" for family in ESTIMATES), "characters"])
        raise BadSetting(f"counter= is {name!r:.60}. Pass a function from text to tokens, or one of {known}.")
    if find_spec(EXACT[name]) is None:
        raise MissingExtra(f'counter="{name}"', "tokens")
    return _counting(name, model)


def family_of(model: str) -> str:
    """Return the name of a model's vocabulary; "" if the model is not known. A server's path may precede the name."""
    name = re.split("[/:]", model.lower())
    for pattern, family in _MODELS:
        if any(pattern.match(piece) or (not family and pattern.search(piece)) for piece in name):
            return family or _claude_family(model.lower())
    return ""


def _claude_family(model: str) -> str:
    found = _VERSION.search(model, model.index("claude"))
    version = (int(found[1]), int(found[2] or 0)) if found else (99, 0)
    return "claude" if version < _NEW_CLAUDE else "claude-4.7"


# Two requests of one model have the same counter, so that their messages are counted once.
@cache
def _estimating(family: str, model: str) -> ModelCounter:
    return ModelCounter(family, estimator(family), model, is_estimate=True)


@cache
def _counting(name: str, model: str) -> ModelCounter:
    return ModelCounter(name, estimate if name == "characters" else _exact(name), model, is_estimate=False)


def _exact(name: str) -> Callable[[str], int]:
    """Return the counting function of a vocabulary; it is loaded with the first count."""
    if EXACT[name] == "ctok":
        version, frame = ("4.6", 7) if name == "claude" else ("4.8", 6)

        def count_claude(text: str) -> int:
            from ctok import token_count  # type: ignore[import-not-found, unused-ignore]

            # The package counts a message, with its frame.
            return max(0, int(token_count(text, version)) - frame) if text else 0

        return count_claude

    def count(text: str) -> int:
        from toktok import batch_count  # type: ignore[import-untyped, import-not-found, unused-ignore]

        try:
            return int(batch_count([text], f"{name}_base", 1)[0])
        except UnicodeEncodeError:  # Half of a surrogate pair: providers read a replacement character.
            return int(batch_count([text.encode("utf-8", "replace").decode()], f"{name}_base", 1)[0])

    return count


_PROMPTS = (((5, 0), 474), ((4, 8), 410), ((4, 7), 804), ((4, 5), 589), ((3, 5), 355), ((0, 0), 530))
"""The first version of Claude, and tokens of its prompt for tools: the largest among the models of this version, with a
required tool call. Without one (`tool_choice` auto), the prompt is 93 to 129 tokens shorter. Sources, as of November
2026: the table in Anthropic's page "Tool use with Claude" and the pages of its client tools.
"""
_DEFINITIONS = {"bash_": 245, "text_editor_": 700, "computer_": 1_234}
"""Tokens of the definition of a tool by the beginning of its type; for computer use with its part of the prompt.

A request only names such a tool.
"""
_VERSIONS = {"claude": (4, 6), "claude-4.7": (5, 5)}
"""The version of an unknown model of a vocabulary."""


def _added_by_tools(family: str, model: str, tools: Sequence[Any]) -> int:
    """Return the tokens that the provider adds for these tools to their JSON text.

    `family`: the name of the vocabulary. 0 for other models than Claude.
    """
    if family not in _VERSIONS or not tools:
        return 0
    version = claude_version(model) or _VERSIONS[family]
    kinds = [str(tool.get("type", "")) for tool in tools if isinstance(tool, Mapping)]
    defined = sum(tokens for kind in kinds for start, tokens in _DEFINITIONS.items() if kind.startswith(start))
    return defined + next(tokens for since, tokens in _PROMPTS if version >= since)
