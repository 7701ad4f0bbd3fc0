"""Policies that other distributions register, and lists of policies and presets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import foveate
from foveate.errors import BadSetting
from foveate.testing import answer, call

MODULE = '''
from foveate.edits import Edit
from foveate.policies import placeholder, replacement

def shout(*, keep: int = 1, tools: tuple[str, ...] = ()):
    """Replaces all results but the newest.

    `keep`: results that stay whole.
    """
    def policy(view):
        results = [entry for entry in view if entry.is_result]
        for entry in results[: len(results) - keep]:
            if not entry.shrunk:
                yield replacement(entry, placeholder("[gone: {handle}]", entry), "shout", "old")
    return policy
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A distribution on the search path that registers the policy `shout`, and a broken one."""
    site = tmp_path / "site"
    info = site / "shouting-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[foveate.policies]\nshout = shouting:shout\nbroken = shouting:nothing\nprune = shouting:shout\n"
    )
    (site / "shouting.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.delitem(sys.modules, "shouting", raising=False)
    return site


def shown(chat: foveate.Conversation) -> list[str]:
    """The results of three calls as the next request shows them."""
    for n in range(3):
        chat.append([call(f"c{n}"), answer(f"c{n}", "x" * 400)])
    return [entry.message.text[:7] for entry in chat.prepare() if entry.is_result]


def test_a_registered_policy_is_a_table_of_a_file(loaded, installed):
    settings = loaded('policy = "none"\n[shout]\nkeep = 2\n')
    assert settings.steps == ("shout",)
    values = {name: (one.value, one.source) for name, one in settings.values.items() if name.startswith("shout")}
    assert values == {
        "shout.enabled": (True, "foveate.toml, line 2: shout"),
        "shout.keep": (2, "foveate.toml, line 3: shout.keep"),
        "shout.tools": ((), "default"),
    }
    assert settings.values["shout.keep"].description == "Results that stay whole"
    assert "line 2: shout.keep is 'x'; allowed: a whole number." in loaded.refused("[shout]\nkeep = 'x'\n")
    assert "shout.kep: there is no setting of that name. Did you mean keep?" in loaded.refused("[shout]\nkep = 1\n")


def test_a_registered_policy_is_a_variable_of_the_environment(loaded, installed):
    settings = loaded("", {"FOVEATE_SHOUT_KEEP": "2", "FOVEATE_POLICY": "shout"})
    assert (settings.values["shout.keep"].value, settings.mechanisms) == (2, ("shout",))


def test_a_registered_policy_runs_before_compaction(loaded, installed):
    assert loaded(settings={"shout": {}}).steps == ("defer(supersede, fold, shrink)", "shout", "compact")


def test_the_name_of_a_registered_policy_is_a_preset(installed):
    chat = foveate.open_conversation("c", window=100_000, policy="shout")
    assert shown(chat) == ["[gone: ", "[gone: ", "xxxxxxx"]


def test_a_registered_policy_that_cannot_be_loaded_is_named(loaded, installed):
    assert loaded.refused(policy="broken").startswith("Policy 'broken' cannot be loaded from shouting:nothing: ")


def test_a_registered_policy_does_not_take_the_name_of_a_shipped_one(loaded, installed):
    assert "prune.minimum" in loaded(policy="prune").values


def test_policies_and_presets_stand_in_one_list(loaded):
    def first(view: Any) -> Any:
        return ()

    def last(view: Any) -> Any:
        return ()

    settings = loaded(policy=[first, "prune", last])
    assert settings.steps == ("prune",)
    assert [settings.policies[0], settings.policies[2]] == [first, last]
    assert loaded(policy=["prune", "keep-last-3"]).steps == ("prune", "filter")
    assert loaded("[prune]\nprotect = 5\n", policy=[first, "prune"]).values["prune.protect"].value == 5
    assert loaded(policy=[first, "balanced"])["summarizer"] == "digest"


def test_a_list_of_a_policy_and_a_preset_opens_a_conversation():
    def never(view: Any) -> Any:
        return ()

    chat = foveate.open_conversation("c", window=100_000, policy=[never, "keep-last-1"])
    assert shown(chat) == ["[Omitte", "[Omitte", "xxxxxxx"]


@pytest.mark.parametrize("name", ["off", "none"])
def test_off_and_none_do_not_stand_among_other_presets(loaded, name):
    message = loaded.refused(policy=[name, "prune"])
    assert message == f"policy= names {name!r} among other presets. Name it alone, or leave it out."


def test_an_unknown_name_in_a_list_is_refused():
    with pytest.raises(BadSetting, match=r"There is no policy 'prnue'\. Did you mean prune\?"):
        foveate.open_conversation("c", window=100_000, policy=[lambda view: (), "prnue"])
