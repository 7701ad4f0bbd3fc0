"""Errors keep their message and their facts in a copy, also in another process."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from foveate import errors
from foveate.errors import FoveateError

FACTS: dict[str, tuple[Any, ...]] = {
    "BadTranscript": ("a.jsonl", 3, "half a line", "Delete it."),
    "UnknownFormat": ("a.txt", "text", ("json",)),
    "UnknownHandle": ("m99", "There are 3."),
    "NotExpandable": ("m1", "it is shown whole"),
    "MissingKey": ("openai:gpt", ("OPENAI_API_KEY",)),
    "UnknownWindow": ("own", ""),
    "DoesNotFit": (5_000, 4_000, "tokens"),
    "NoSummary": (["model: down"],),
    "NoSuchConversation": ("trip",),
    "StoreRolledBack": ("trip", (3, 2), (1, 1)),
    "ConversationBusy": ("It is busy.", "owner"),
    "IllegalView": (["orphan"],),
    "MissingExtra": ("A tool", "mcp"),
}


@pytest.mark.parametrize("name", errors.__all__)
@pytest.mark.parametrize("copied", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copy_of_an_error_equals_it(name: str, copied: Any):
    """A pool of processes broke, because it made the copy with the message in place of the facts."""
    kind: type[FoveateError] = getattr(errors, name)
    if name == "CompactionFailed":
        error: FoveateError = errors.CompactionFailed("no summary", 2, 9_000, 8_000, is_final=True)
    else:
        error = kind(*FACTS.get(name, ("It failed.",)))
    error.add_note("A note.")
    other = copied(error)
    assert type(other) is kind
    assert (str(other), other.args, vars(other)) == (str(error), error.args, vars(error))


def test_every_error_with_facts_is_copied():
    own = [name for name in errors.__all__ if "__init__" in vars(getattr(errors, name))]
    assert sorted(own) == sorted([*FACTS, "CompactionFailed"])
