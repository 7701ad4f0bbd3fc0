"""Leases of results: the override, then the binding in the catalog, then the action."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from foveate import Media, Text, open_store
from foveate.agents.agent_catalog import AgentCatalog
from foveate.agents.result_content import merged_message, result_message
from foveate.agents.tools import Tool, tool
from foveate.core.catalog import Action, Binding, Prompt
from foveate.errors import BadSetting
from foveate.policies import effective_lease
from foveate.ports import Database
from foveate.types import Lease

from .scripts import act, done, run_both, scripted_agent, texts, think


def look() -> str:
    """Look."""
    return "x" * 900


REMOVE = Lease(5, "remove")
ROW = Binding("sage", "look", 2, "compact", "first_chars", 300)
NAMED = {"message_type": "action-result", "action_id": "look"}


class Rows:
    """A catalog that holds these rows, whether or not a database would keep them."""

    def __init__(self, bindings: list[Binding], actions: list[Action], prompts: list[str]) -> None:
        self._bindings, self._actions, self._prompts = bindings, actions, prompts

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        return self._bindings

    def actions(self, tenant: str) -> list[Action]:
        return self._actions

    def prompts(self, tenant: str) -> list[Prompt]:
        return [Prompt(name, "{{ text }}") for name in self._prompts]


def of(
    *,
    override: Lease | None = None,
    row: Binding | None = None,
    own: Lease | None = None,
    action: str = "",
    prompts: list[str] | None = None,
) -> Lease:
    """Return the lease of a result of `look` without its names."""
    rows = Rows([row] if row else [], [Action("look", default_compact_prompt=action)], prompts or [])
    catalog = AgentCatalog("sage", rows, "", override, skips_unknown_prompts=prompts is not None)
    catalog.read()
    found = catalog.lease_of_action("look", tool(look, lease=own))
    assert (found.message_type, found.action_id) == ("action-result", "look")
    assert found.agent_action_id == ("sage/look" if row else "")
    return replace(found, message_type="", action_id="", agent_action_id="")


def test_the_highest_level_counts_for_each_field():
    assert of() == Lease()
    assert of(own=REMOVE) == REMOVE
    assert of(own=REMOVE, row=ROW) == Lease(2, "compact", "first_chars", 300)
    assert of(override=Lease(1), own=REMOVE) == Lease(1, "remove")
    assert of(override=Lease(1, "remove"), row=ROW) == Lease(1, "remove", "first_chars", 300)
    assert of(override=Lease(compact_length=9), row=ROW) == Lease(2, "compact", "first_chars", 9)
    assert of(override=Lease(disable_expiration=True), row=ROW).disable_expiration
    assert of(override=Lease(1, "compact"), row=Binding("sage", "look")) == Lease(1, "compact")


def test_fields_that_no_binding_has_come_from_the_action():
    """A binding must not keep originals that the action releases."""
    released = Lease(9, "compact", "summary", 80, "own", preserve_original=False)
    assert of(own=released, row=ROW) == Lease(2, "compact", "first_chars", 300, "own", preserve_original=False)
    assert of(own=Lease(disable_expiration=True), row=ROW).disable_expiration


def test_a_binding_without_turns_means_never():
    never = of(row=Binding("sage", "look", None, "remove"), own=REMOVE)
    assert (never.expiration_turns, never.expiration_mode) == (None, "none")
    assert of(override=Lease(1), row=Binding("sage", "look", None, "remove")) == Lease(1, "remove")
    assert of(override=Lease(None, "compact"), row=Binding("sage", "look")).expiration_mode == "none"


def test_a_native_result_gets_the_prompt_of_its_action():
    catalog = AgentCatalog("sage", Rows([], [Action("look", default_compact_prompt="short")], []), "")
    catalog.read()
    found = catalog.lease_of_tool(tool(look, lease=Lease(3, "compact", "summary")))
    assert found == Lease(3, "compact", "summary", None, "short", **NAMED)
    assert catalog.lease_of_tool(tool(look, name="other")) is None


@pytest.mark.parametrize(
    ("override", "row", "action", "known", "found"),
    [
        ("a", "b", "c", None, "a"),
        (None, "b", "c", None, "b"),
        (None, "", "c", None, "c"),
        ("gone", "b", "c", ["B", "c"], "b"),
        ("gone", "gone", "c", ["c"], "c"),
        ("gone", "gone", "gone", [], None),
        (None, "", "Compact Agent Message", [], "Compact Agent Message"),
    ],
)
def test_the_prompt_comes_from_the_highest_level(
    override: str | None, row: str, action: str, known: list[str] | None, found: str | None
):
    binding = Binding("sage", "look", 2, "compact", "summary", None, row)
    lease = of(override=Lease(compact_prompt_id=override), row=binding, action=action, prompts=known)
    assert lease == Lease(2, "compact", "summary", compact_prompt_id=found)


def test_a_catalog_sets_the_leases(tmp_path: Path):
    for url in ("memory:", f"sqlite:///{tmp_path}/chat.db"):
        store: Database = open_store(url)
        store.put_prompt("t", Prompt("short", "{{ text }}"))
        store.put_action("t", Action("look", default_compact_prompt="short"))
        store.put_binding("t", Binding("sage", "look", 2, "compact", "summary"))
        store.put_binding("t", Binding("other", "look", 9, "remove"))
        catalog = AgentCatalog("sage", store, "t")
        catalog.read()
        found = catalog.lease_of_action("look", None)
        assert found == Lease(2, "compact", "summary", None, "short", **NAMED, agent_action_id="sage/look")
        other = AgentCatalog("sage", store, "")
        other.read()
        assert other.lease_of_action("look", None) == Lease(**NAMED)
        store.close()


def test_a_catalog_can_be_another_store_or_none():
    store = open_store("memory:")
    store.put_action("", Action("look"))
    store.put_binding("", Binding("sage", "look", 1, "compact", "first_chars", 100))
    for catalog, is_short in ((store, True), (False, False), (True, False)):
        agent, model = scripted_agent(
            [act("look"), think(), done()], actions=[look], catalog=catalog, policy="balanced"
        )
        with agent:
            agent.run("Go.")
        assert (len(texts(model.requests[2])[2]) < 300) == is_short


def test_the_presets_lease_applies_without_any_other():
    agent, model = scripted_agent([act("look"), think(), think(), done()], actions=[look], policy="expire")
    with agent:
        agent.run("Go.")
    assert [len(texts(request)[2]) for request in model.requests[1:]] == [916, 916, 553]


def test_wrong_leases_are_refused():
    with pytest.raises(BadSetting, match="message_expiration_override: compact_length is 0"):
        AgentCatalog("sage", None, "", Lease(compact_length=0))


def test_prompt_that_does_not_exist_is_reported_once(caplog: pytest.LogCaptureFixture):
    catalog = AgentCatalog("sage", Rows([], [], []), "", Lease(compact_prompt_id="gone"), skips_unknown_prompts=True)
    for _ in range(3):
        catalog.read()
        catalog.lease_of_action("look", None)
    said = [record.getMessage() for record in caplog.records]
    assert said == ["sage: there is no prompt 'gone' in the catalog; the next one counts"]


def test_the_message_of_a_result_has_a_headline():
    image = Media("image/png", "base64", "aGk=")
    assert result_message("look", [Text("a")]).parts == (Text("Result of look:\na"),)
    assert result_message("look", [Text("a"), image], "error", 2, 3).parts == (
        Text("Result of look (2 of 3), which failed:\na"),
        image,
    )
    assert result_message("look", [image]).parts == (Text("Result of look:"), image)
    assert result_message("look", []).parts == (Text("Result of look:\nnothing"),)


def test_merged_results_without_leases_leave_it_to_the_policy():
    messages = [result_message("look", [Text("a")], "ok", n, 2) for n in (1, 2)]
    said = Lease(**NAMED)
    message, lease = merged_message(messages, [said, said], [effective_lease(said)] * 2, 1)
    assert message.text == "1 of 2 failed:\n\nResult of look (1 of 2):\na\n\nResult of look (2 of 2):\na"
    assert lease == said


def test_an_action_can_be_a_tool_created_directly():
    by_hand = Tool(name="look", call=look, lease=Lease(1, "remove"))
    agent, model = scripted_agent([act("look"), think(), done()], actions=[by_hand])
    with agent:
        agent.run("Go.")
    assert [len(texts(request)) for request in model.requests] == [1, 3, 4]


@pytest.mark.parametrize(
    ("options", "ends"),
    [
        ({"message_expiration_override": Lease(1)}, 3),  # The mode comes from the preset.
        ({"settings": {"expire": {"tools": {"other": {"expiration_turns": 1}}}}}, 3),
        ({}, 4),  # A lease of one action does not delay what the preset says of the other.
    ],
)
def test_merged_results_have_the_levels_of_the_policy_too(options: dict[str, Any], ends: int):
    look_long, other = tool(look, lease=Lease(5)), tool(look, name="other")
    _, model = run_both(
        [act("look", "other"), *[think()] * 3, done()],
        actions=[look_long, other],
        merge_results=True,
        policy="expire",
        **options,
    )
    lengths = [len(texts(request)[2]) for request in model.requests[1:]]
    whole = lengths[0]
    assert lengths == [whole] * (ends - 2) + [554] * (6 - ends)
