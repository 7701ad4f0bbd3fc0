"""The report about a request: one line of the log, counts, and headers of the answer."""

from __future__ import annotations

import json
import logging
import uuid
from time import perf_counter
from typing import TextIO
from urllib.parse import quote

from ..requests import CONVERSATION_HEADER
from .client import ClientRequest, Header
from .metrics import Metrics
from .savings import NOTHING, Amounts

__all__ = ["RequestRecord", "write_log"]

_log = logging.getLogger("foveate.proxy.requests")


class RequestRecord:
    """The facts of one request. They never hold keys, tokens or messages."""

    def __init__(self, client: ClientRequest, api: str) -> None:
        """`api`: one of `metrics.APIS`."""
        self._client = client
        self._began = perf_counter()
        self.id = uuid.uuid4().hex[:16]
        """Names the request in the log and in the answer."""
        self.api = api
        self.outcome = "passed"
        """One of `metrics.OUTCOMES`."""
        self.reason = ""
        """Why there is no view, or no answer."""
        self.conversation = ""
        """Name of the conversation; "" for a request that is not managed."""
        self.tokens_before = 0
        """Tokens of the whole history."""
        self.tokens_after = 0
        """Tokens of the view."""
        self.bytes_before = 0
        """Bytes of the body that the client sent."""
        self.bytes_after = 0
        """Bytes of the body that the provider got."""
        self.money: Amounts | None = None
        """The bill of the request, and its bill with the whole history; None if no price is known."""
        self.seconds = 0.0
        """Time in which the request was prepared."""
        self.retries = 0
        """Number of times that the request was made smaller."""
        self.expansions = 0
        """Number of replies in this answer that only asked to expand something."""
        self.is_complete = False
        """Whether the answer had its end when the client closed the connection."""
        self._first_byte = 0.0
        self._statuses: list[int] = []
        self._bytes_answered = 0

    def add_money(self, amounts: Amounts | None) -> None:
        """Add what a reply cost: an answer with expansions has several."""
        if amounts is not None:
            before = self.money or NOTHING
            self.money = Amounts(before.spent + amounts.spent, before.whole + amounts.whole)

    def answered(self, status: int) -> None:
        """Note the status of a provider's answer."""
        self._statuses.append(status)

    def piece(self, size: int) -> None:
        """Note that bytes of the answer arrived."""
        if not self._first_byte:
            self._first_byte = perf_counter() - self._began
        self._bytes_answered += size

    def headers(self) -> list[Header]:
        """Return headers of the answer that tell the client what was saved."""
        headers = [(b"x-foveate-request-id", self.id.encode())]
        if self.outcome == "managed":
            headers.append((CONVERSATION_HEADER.encode(), quote(self.conversation, safe="/~").encode()))
            headers.append((b"x-foveate-tokens-saved", str(max(0, self.tokens_before - self.tokens_after)).encode()))
        elif self.outcome == "unchanged":
            headers.append((b"x-foveate-unchanged", quote(self.reason, safe=" ,:;()='/")[:200].encode()))
        return headers

    def finish(self, metrics: Metrics) -> None:
        """Count the request, and log it in one line."""
        metrics.add("foveate_requests_total", self.api, self.outcome)
        for status in self._statuses:
            metrics.add("foveate_answers_total", f"{min(5, max(1, status // 100))}xx")
        if self.outcome == "managed":
            metrics.add("foveate_tokens_whole_total", self.api, amount=self.tokens_before)
            metrics.add("foveate_tokens_sent_total", self.api, amount=self.tokens_after)
            metrics.add("foveate_bytes_received_total", self.api, amount=self.bytes_before)
            metrics.add("foveate_bytes_sent_total", self.api, amount=self.bytes_after)
            metrics.add("foveate_retries_total", self.api, amount=self.retries)
            metrics.add("foveate_expansions_total", self.api, amount=self.expansions)
            if self.money is not None:
                metrics.add("foveate_priced_total", self.api)
                metrics.add("foveate_dollars_whole_total", self.api, amount=self.money.whole)
                metrics.add("foveate_dollars_spent_total", self.api, amount=self.money.spent)
            metrics.observe("foveate_seconds", self.seconds)
        if self._first_byte:
            metrics.observe("foveate_first_byte_seconds", self._first_byte)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s %s", self._client.method, self._client.path, extra={"facts": self._facts()})

    def _facts(self) -> dict[str, object]:
        facts = {
            "id": self.id,
            "method": self._client.method,
            "path": self._client.path[:200],
            "status": self._client.status,
            "outcome": self.outcome,
            "conversation": self.conversation,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "dollars_whole": round((self.money or NOTHING).whole, 6),
            "dollars_spent": round((self.money or NOTHING).spent, 6),
            "bytes_before": self.bytes_before,
            "bytes_after": self.bytes_after,
            "ms_foveate": round(self.seconds * 1000, 1),
            "ms_first_byte": round(self._first_byte * 1000, 1),
            "ms": round((perf_counter() - self._began) * 1000, 1),
            "bytes_answered": self._bytes_answered,
            "retries": self.retries,
            "expansions": self.expansions,
            "reason": self.reason,
        }
        return {key: value for key, value in facts.items() if value not in ("", 0, 0.0)}


class _Lines(logging.Formatter):
    """Formats a record as `key=value` pairs, or as a JSON object."""

    def __init__(self, is_json: bool) -> None:
        super().__init__()
        self._is_json = is_json

    def format(self, record: logging.LogRecord) -> str:
        facts = getattr(record, "facts", None) or {"message": record.getMessage()}
        if record.exc_info:
            facts = {**facts, "trace": self.formatException(record.exc_info)}
        time = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        if self._is_json:
            return json.dumps({"time": time, "level": record.levelname.lower(), **facts}, ensure_ascii=False)
        words = (f"{key}={_quoted(str(value))}" for key, value in facts.items())
        return f"{time} {record.levelname.lower()} {' '.join(words)}"


def _quoted(text: str) -> str:
    is_plain = text.isprintable() and " " not in text and '"' not in text
    return text if is_plain else json.dumps(text, ensure_ascii=False)


def _is_shown(record: logging.LogRecord) -> bool:
    """Return whether to log a record, and take the query off its path: Google takes a key in it."""
    if "WebSocket" in str(record.msg) and isinstance(record.args, tuple):
        record.args = tuple(arg.partition("?")[0] if isinstance(arg, str) else arg for arg in record.args)
    return "without completing" not in str(record.msg)  # Answers that were cut or refused.


def write_log(stream: TextIO | None = None, *, is_json: bool) -> None:
    """Write the log of this process to a stream, by default to standard error. `is_json`: an object a line."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_Lines(is_json))
    handler.addFilter(_is_shown)
    for name in ("foveate", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO)
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True
