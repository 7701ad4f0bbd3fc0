"""A final answer of a type that the program asked for: what the model is told of it, and how its words are read."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from ..errors import BadSetting

__all__ = ["Wanted", "Wrong", "with_instruction"]

_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)
_LONGEST = 500


class Wrong(ValueError):
    """The answer cannot be read. Says why, in words for the model."""


class Wanted:
    """The type of a final answer: a dataclass, a Struct, a TypedDict, or anything else that JSON can say."""

    def __init__(self, kind: Any) -> None:
        """Raises BadSetting for a type that JSON cannot say."""
        try:
            self._decoder = msgspec.json.Decoder(kind, strict=False)
            schema = msgspec.json.schema(kind)
        except Exception as error:
            raise BadSetting(f"result_type= is a type that JSON can say, not {kind!r:.80}: {error}") from error
        self.name = getattr(kind, "__name__", str(kind))
        self.instruction = (
            "When you are done, answer with one JSON value of this schema, and with nothing else:\n"
            + json.dumps(schema, ensure_ascii=False)
        )

    def read(self, text: str) -> object:
        """The value in an answer, which may stand in a fenced block. Raises Wrong."""
        fenced = _FENCED.findall(text)
        try:
            return self._decoder.decode((fenced[-1] if fenced else text).strip() or "null")
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise Wrong(
                f"Your answer cannot be read: {str(error)[:_LONGEST]}. Answer again, with the JSON value alone."
            ) from error


def with_instruction(system: object, instruction: str) -> object:
    """A system prompt, in any form that formats take, with an instruction behind it."""
    match system:
        case None | "":
            return instruction
        case str():
            return f"{system}\n\n{instruction}"
        case list() | tuple():
            return [*system, {"type": "text", "text": instruction}]
        case _:
            return [system, {"type": "text", "text": instruction}]
