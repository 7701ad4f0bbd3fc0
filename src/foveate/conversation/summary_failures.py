"""Warnings in the log about summaries that failed: one for each cause, once for a conversation.

A summary fails in three ways: the summarizer has no answer, an earlier one of several fails and a later one answers, or
the policy refuses the text. The conversation goes on in all of them, so the log is where people learn of it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from ..core.edits import Edit, Replace, Summarize, Task
from ..core.summaries import Answer, SummaryRequest

__all__ = ["SummaryFailures"]

_log = logging.getLogger("foveate")

_CAUSES_MAX = 100
"""Causes that are logged for one conversation, at most."""
_LONGEST = 400
"""Characters of a cause in the log, at most."""
_SAME = 100
"""Characters by which two causes are compared."""
_BEGIN = re.compile(r"(?:no summary was accepted: |the summarizer |[^\s:]+(?::[^\s:]+)*: )+")
"""Names of writers, and words around a cause. The same cause is reported with and without them."""
_NUMBERED = re.compile(r"(?<!\S)(?!\d{1,3}\W*(?!\S))\S*\d\S*")
"""Words with digits, such as ids of requests and counts, which differ from one failure to the next. A number of up to
three digits stays: it may be a status of HTTP.
"""
_AFTER = "This cause is logged once."


class SummaryFailures:
    """The causes that were logged for one conversation."""

    def __init__(self) -> None:
        self._logged: set[str] = set()

    def log_answer(self, conversation: str, request: SummaryRequest, answer: Answer) -> None:
        """Log why a request has no answer, or why the first summarizers that were asked have none."""
        causes = _failures(answer.by, answer.refused) or ([answer.error] if answer.error else [])
        if not (new := self._new(causes)):
            return
        policy = request.policy
        if answer.error:
            _log.warning("%s: %s has no summary: %s. %s", conversation, policy, new, _AFTER)
        else:
            _log.warning("%s: %s wrote the summary for %s, since %s. %s", conversation, answer.by, policy, new, _AFTER)
        self._new([answer.error])  # A policy reports it again, as the reason of its attempt.

    def log_edits(self, conversation: str, edits: Iterable[Edit]) -> None:
        """Log why policies refused summaries, as far as these edits say so."""
        for edit in edits:
            match edit:
                case Task(state="failed", reason=reason):
                    causes = [reason]
                case Replace(by=by, refused=refused) | Summarize(by=by, refused=refused):
                    causes = _failures(by, refused)
                case _:
                    continue
            if new := self._new(causes):
                _log.warning("%s: %s did not use a summary: %s. %s", conversation, edit.policy, new, _AFTER)

    def _new(self, causes: Iterable[str]) -> str:
        """Return the causes that were not logged yet, as one text, and note that they are."""
        new = []
        for cause in causes:
            key = _NUMBERED.sub("#", _BEGIN.sub("", cause, count=1) or cause)[:_SAME]
            if cause and key not in self._logged and len(self._logged) < _CAUSES_MAX:
                self._logged.add(key)
                new.append(" ".join(cause.split())[:_LONGEST].rstrip(". "))
        return "; ".join(new)


def _failures(by: str, refused: Iterable[str]) -> list[str]:
    """Return the refusals that are failures: the writer of the text also reports the sentences it dropped."""
    return [why for why in refused if not (by and why.startswith(f"{by}: dropped "))]
