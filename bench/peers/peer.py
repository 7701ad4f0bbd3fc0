"""The form of the classes in `libraries/`, one file for each library. Needs only the standard library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Peer(Protocol):
    """One library with the conversation that it keeps in a folder. Each file in `libraries/` has such a class.

    Messages are dictionaries of OpenAI's chat completions. CPU time of `convert` and `calls` is not measured.
    """

    NAME: str
    """The name in the tables."""
    NEEDS: tuple[str, ...]
    """The packages to install."""
    USES: str
    """The parts of the library that are measured."""
    LACKS: str
    """What these parts do not do."""
    IS_LIMIT: bool
    """Whether this is no library, but the least work that any library does. Default: False."""
    KEEPS: bool
    """Whether the conversation survives the process. Default: True."""

    def __init__(self, folder: str, window: int, newest: int) -> None:
        """Open the conversation in the folder, or create it.

        A library that counts tokens shrinks requests to `window` tokens. One that counts messages shows the `newest`.
        """
        ...

    def convert(self, messages: list[dict[str, Any]]) -> Any:
        """Return the messages in the library's own types."""
        ...

    def append(self, messages: Any) -> None:
        """Store messages that follow the others, as the library's agent does after a reply or a tool call."""
        ...

    def request(self) -> Any:
        """Return the messages for the next model call, as the library gives them to its adapter of the model."""
        ...

    def calls(self, request: Any) -> tuple[int, list[str], list[str]]:
        """Return the number of messages of a request, the ids of the calls in it, and those that its results name."""
        ...

    def close(self) -> None: ...


def parts_of(messages: Sequence[dict[str, Any]]) -> tuple[int, list[str], list[str]]:
    """Return what `calls` returns, for dictionaries of OpenAI's chat completions."""
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    return len(messages), calls, [message["tool_call_id"] for message in messages if message["role"] == "tool"]
