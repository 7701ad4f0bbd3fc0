"""The names that the package exports, and policies that cannot act as they are opened."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

import foveate
from foveate import policies
from foveate.core.stamps import Lease
from foveate.policies import compact_on_overflow, expire_results, prune_tool_outputs, when_it_pays

SUMMARIES = Lease(expiration_turns=1, expiration_mode="compact", compact_mode="summary", compact_length=200)


def test_exported_names_are_no_modules_after_all_imports():
    """A module with the name of a function would replace the function once it is imported."""
    for module in pkgutil.iter_modules(policies.__path__):
        import_module(f"foveate.policies.{module.name}")
    assert [name for name in policies.__all__ if isinstance(getattr(policies, name), ModuleType)] == []
    assert set(policies.__all__) <= set(dir(policies))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="prune_everything"):
        policies.prune_everything  # noqa: B018


# ---------------------------------------------------------------------------------- policies that cannot act as opened


@pytest.mark.parametrize(
    ("options", "note"),
    [
        (
            {"policy": "prune", "window": 32_000},
            "tale: prune cannot act: it protects 40,000 tokens and then frees more than 20,000, and 28,800 tokens of "
            "the window are usable. Set protect and minimum lower, or protect to a share.",
        ),
        ({"policy": "prune", "window": 200_000}, ""),
        ({"policy": "balanced", "window": 8_000}, ""),
        ({"policy": "prune-and-compact", "window": 200_000}, ""),
        ({"policy": (when_it_pays(prune_tool_outputs()),), "window": 32_000}, "tale: prune cannot act"),
        (
            {"policy": (compact_on_overflow(optional=True),), "window": 8_000},
            "tale: compact is left out, since there is no summarizer. Pass summarizer= to let it act.",
        ),
        ({"policy": (compact_on_overflow(optional=True),), "window": 8_000, "summarizer": "digest"}, ""),
        (
            {"policy": (expire_results(tools={"look": SUMMARIES}),), "window": 8_000},
            "tale: expire shows first characters in place of summaries, since there is no summarizer. Pass summ",
        ),
        ({"policy": (expire_results(default=SUMMARIES),), "window": 8_000, "summarizer": "digest"}, ""),
    ],
)
def test_policy_that_cannot_act_says_so_in_one_sentence_when_opened(options: dict[str, Any], note: str, caplog):
    with foveate.open_conversation("tale", **options) as chat:
        chat.append("Hello.")
        chat.prepare()
    assert [message[: len(note)] for message in caplog.messages] == ([note] if note else [])
