"""Prompts for summaries: Markdown files with placeholders, shipped or a user's own.

`{{ name }}` is replaced by a value of the request. A paragraph whose placeholders are all empty is left out. Text from
a conversation is fenced by a pair of tags that do not occur in it, so that nothing in it can end the fence: the model
reads it as material.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..core.catalog import prompt_key as _key
from ..core.catalog import template_fault
from ..core.summaries import SummaryRequest
from ..errors import BadSetting

__all__ = ["SHIPPED", "SYSTEM", "Templates", "fenced"]

_log = logging.getLogger("foveate")

SYSTEM = "system"
"""Name of the prompt before each of the others."""
HISTORY, CHECKPOINT, MESSAGE, REPAIR = "history", "checkpoint", "compact-agent-message", "repair"
SHIPPED = (HISTORY, CHECKPOINT, MESSAGE, REPAIR, SYSTEM)
"""Names of the prompts that are shipped as files."""

_PLACE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_PLAIN = frozenset(("target", "focus", "required", "part"))
"""Values from the program or from code: inserted unfenced, in one line."""


class Templates:
    """The prompts of one summarizer."""

    def __init__(self, prompts: Mapping[str, str] | str | Path | None = None) -> None:
        """Read a mapping of names to texts, or a folder of `.md` files; all other prompts are the shipped ones.

        Raises BadSetting if the folder is missing, and for a text without `{{ text }}` or with logic.
        """
        own = _of_folder(Path(prompts)) if isinstance(prompts, str | Path) else dict(prompts or {})
        for name, text in own.items():
            if not isinstance(text, str) or not text.strip():
                raise BadSetting(f"The prompt {name!r} is no text. Pass a string.")
            if fault := template_fault(name, text):
                raise BadSetting(f"The prompt {name!r} {fault}")
        self._own = {_key(name): text for name, text in own.items()}
        self._reported: set[str] = set()

    def system(self) -> str:
        """Return the system prompt of every request."""
        return self._text(SYSTEM).strip()

    def fill(self, request: SummaryRequest, text: str, **more: str) -> str:
        """Return the prompt of a request, with its facts and the text to summarise. `more`: further values."""
        values: dict[str, Any] = {
            "conversation": request.conversation,
            "tenant": request.tenant,
            "user": request.user,
            **request.facts,
            "target": str(request.target),
            "previous": request.previous,
            "required": ", ".join(request.required),
            "binding": "\n".join(request.binding),
            "values": "\n".join(request.values),
            "focus": request.focus,
            **more,
            "text": text,
            "originalContent": text,
        }
        return _filled(self._text(self.name_for(request)), values)

    def fill_repair(self, request: SummaryRequest, text: str, missing: Sequence[str]) -> str:
        """Return the prompt that asks to add what is missing in a written summary."""
        values = {"target": str(request.target), "missing": "\n".join(missing), "text": text}
        return _filled(self._text(REPAIR), values)

    def key_for(self, request: SummaryRequest) -> str:
        """Return a key of the texts that `fill` and `system` use for a request: another text has another key."""
        texts = "\0".join([self.system(), self._text(self.name_for(request)), self._text(REPAIR)])
        return blake2b(texts.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def name_for(self, request: SummaryRequest) -> str:
        """Return the name of the prompt of a request: the one that it names, else that of its kind."""
        if request.prompt:
            if (key := _key(request.prompt)) in self._own or key in SHIPPED:
                return key
            if request.prompt not in self._reported:
                self._reported.add(request.prompt)
                _log.warning("there is no prompt %r; the usual one is used", request.prompt)
        if "originalLength" in request.facts:
            return MESSAGE
        return CHECKPOINT if "from_turn" in request.facts else HISTORY

    def _text(self, name: str) -> str:
        return self._own[name] if name in self._own else _shipped(name)


def fenced(text: str) -> str:
    """Return a text between two tags that do not occur in it; the same text gives the same tags."""
    number = 0
    while True:
        seal = blake2b(f"{number}\n{text}".encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
        if seal not in text:
            return f"<text-{seal}>\n{text}\n</text-{seal}>"
        number += 1


def _filled(template: str, values: Mapping[str, Any]) -> str:
    def place(match: re.Match[str]) -> str:
        name, value = match[1], values.get(match[1])
        return _render(name, value)

    kept: list[str] = []
    for paragraph in re.split(r"\n{2,}", template.strip()):
        named = _PLACE.findall(paragraph)
        is_empty = bool(named) and not any(_render(name, values.get(name)) for name in named)
        if is_empty:
            if kept and named == [_only(paragraph)]:
                kept.pop()  # A placeholder that stands alone belongs to the paragraph before it.
        else:
            kept.append(_PLACE.sub(place, paragraph))
    return "\n\n".join(kept)


def _only(paragraph: str) -> str | None:
    alone = _PLACE.fullmatch(paragraph.strip())
    return alone[1] if alone and alone[1] != "part" else None


def _render(name: str, value: Any) -> str:
    if value is None or value == "":
        return ""
    if name in _PLAIN or isinstance(value, int | float):
        return " ".join(str(value).split())
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_word = name not in (
        "text",
        "originalContent",
        "previous",
        "request",
        "binding",
        "values",
        "missing",
    ) and re.fullmatch(r"[\w .:-]{1,60}", text)
    return text if is_word else fenced(text)


def _of_folder(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        raise BadSetting(f"There is no folder {str(folder)!r} with prompts. Name a folder of .md files.")
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}


@cache
def _shipped(name: str) -> str:
    return (files(__package__) / "prompts" / f"{name}.md").read_text(encoding="utf-8")
