"""Tests of the capability `HasCatalog`."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from ..core.catalog import Action, Binding, Prompt
from ..errors import BadSetting, StoreError
from ..ports import Database

__all__ = ["REFUSED", "CatalogContract", "binding"]

_PROMPTS = [
    Prompt("Compact Agent Message", "Short:\n\n{{ text }}", "of the whole house"),
    Prompt("Ordre", "{{text}} — é\u2028\U0001f600"),
]
_ACTIONS = [
    Action("Add", "Adds.", '{"type": "object"}', "Ordre"),
    Action("look"),
    Action("Überblick", description="x" * 5000),
]
_BINDINGS = [
    Binding("support", "Add"),
    Binding("support", "look", 0, "remove"),
    Binding("support", "Überblick", 5, "compact", "first_chars", 500),
    Binding("writer", "Add", 3, "compact", "summary", None, "Ordre"),
    Binding("writer", "look", None, "compact", "summary", 2000),
]


def binding(**said: Any) -> Binding:
    """Return a binding of the agent `support` to the action `look`."""
    return Binding("support", "look", **said)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "turns_are_none_or_more": ({"result_expiration_turns": -1}, "result_expiration_turns .* is -1; .* 0 or more"),
    "mode_is_known": ({"result_expiration_mode": "Compact"}, "result_expiration_mode .* is 'Compact'; .* none, remove"),
    "compact_mode_is_known": (
        {"result_expiration_mode": "compact", "compact_mode": "First N Chars", "compact_length": 9},
        "compact_mode .* is 'First N Chars'; allowed: first_chars or summary",
    ),
    "compact_length_is_more_than_none": (
        {"result_expiration_mode": "compact", "compact_mode": "first_chars", "compact_length": 0},
        "compact_length .* is 0; .* 1 or more",
    ),
    "compact_says_in_which_way": ({"result_expiration_mode": "compact"}, "has no compact_mode"),
    "first_chars_says_how_many": (
        {"result_expiration_mode": "compact", "compact_mode": "first_chars"},
        "first_chars without a compact_length",
    ),
    "only_compact_says_how": (
        {"result_expiration_mode": "remove", "compact_mode": "summary"},
        "has compact_mode, without effect in its .* remove",
    ),
    "only_compact_says_how_long": ({"compact_length": 500}, "has compact_length, without effect in its .* none"),
    "only_compact_says_with_what": ({"compact_prompt": "Ordre"}, "has compact_prompt"),
}
"""Invalid bindings and their errors, by the name of the database constraint that refuses them."""


class CatalogContract:
    """Tests of actions, bindings and prompts."""

    def _again(self, store: Database) -> Any:
        raise NotImplementedError

    @pytest.fixture
    def full(self, store: Database) -> Database:
        """Return the store with actions, bindings and prompts of the tenant `acme`."""
        for prompt in reversed(_PROMPTS):
            store.put_prompt("acme", prompt)
        for action in reversed(_ACTIONS):
            store.put_action("acme", action)
        for binding in reversed(_BINDINGS):
            store.put_binding("acme", binding)
        return store

    def test_new_catalog_is_empty(self, store: Database) -> None:
        assert (store.actions("acme"), store.bindings("acme"), store.prompts("acme")) == ([], [], [])
        assert store.names("acme") == []

    def test_catalog_is_read_back_unchanged_and_in_order(self, full: Database) -> None:
        full = self._again(full)
        assert full.actions("acme") == _ACTIONS
        assert full.bindings("acme") == _BINDINGS
        assert full.prompts("acme") == _PROMPTS
        assert full.bindings("acme", "writer") == _BINDINGS[3:]
        assert full.bindings("acme", "nobody") == []

    def test_value_set_again_is_replaced(self, full: Database) -> None:
        full.put_prompt("acme", Prompt("Ordre", "New: {{ text }}"))
        full.put_action("acme", Action("look", "Looks.", "", "Ordre"))
        full.put_binding("acme", Binding("support", "look"))
        full = self._again(full)
        assert full.prompts("acme") == [_PROMPTS[0], Prompt("Ordre", "New: {{ text }}")]
        assert full.actions("acme") == [_ACTIONS[0], Action("look", "Looks.", "", "Ordre"), _ACTIONS[2]]
        assert full.bindings("acme", "support") == [_BINDINGS[0], Binding("support", "look"), _BINDINGS[2]]

    def test_tenants_do_not_share_a_catalog(self, full: Database) -> None:
        assert (full.actions("zeta"), full.bindings("zeta"), full.prompts("zeta")) == ([], [], [])
        with pytest.raises(BadSetting, match="action that does not exist"):
            full.put_binding("zeta", Binding("support", "look"))
        full.put_action("zeta", Action("look", "Theirs."))
        assert full.drop_action("zeta", "look")
        assert full.actions("acme") == _ACTIONS

    @pytest.mark.parametrize("constraint", REFUSED)
    def test_binding_that_makes_no_sense_is_refused(self, full: Database, constraint: str) -> None:
        said, answer = REFUSED[constraint]
        with pytest.raises(BadSetting, match=answer):
            full.put_binding("acme", binding(**said))
        assert full.bindings("acme") == _BINDINGS

    @pytest.mark.parametrize(
        ("prompt", "answer"),
        [
            (Prompt("new", "Sum it up."), r"prompt 'new' lacks {{ text }}"),
            (
                Prompt("new", "{% if focus %}So{% endif %} {{ text }}"),
                r"prompt 'new' has '{%', but prompts have no logic",
            ),
            (Prompt("", "{{ text }}"), "name of the prompt is empty"),
            (Prompt("a\nb", "{{ text }}"), "printable"),
            (Prompt("new", "{{ text }}\0"), "NUL"),
            (Prompt("new", "{{ text }} \ud83d"), "surrogate"),
            (Prompt("compact-agent message", "{{ text }}"), "'Compact Agent Message' already"),
        ],
    )
    def test_prompt_that_cannot_be_used_is_refused(self, full: Database, prompt: Prompt, answer: str) -> None:
        with pytest.raises(BadSetting, match=answer):
            full.put_prompt("acme", prompt)
        assert full.prompts("acme") == _PROMPTS

    def test_prompt_that_stands_before_the_others_need_not_name_a_text(self, store: Database) -> None:
        store.put_prompt("acme", Prompt("system", "You sum up."))
        assert store.prompts("acme") == [Prompt("system", "You sum up.")]

    @pytest.mark.parametrize(
        ("action", "answer"),
        [
            (Action(" look"), "spaces around"),
            (Action("x" * 501), "at most 500"),
            (Action("new", parameters="{"), "not JSON"),
            (Action("new", parameters="[]"), "not a JSON object"),
            (Action("new", default_compact_prompt="nothing"), "prompt 'nothing', which does not exist. Known: Compact"),
        ],
    )
    def test_unusable_action_is_refused(self, full: Database, action: Action, answer: str) -> None:
        with pytest.raises(BadSetting, match=answer):
            full.put_action("acme", action)
        assert full.actions("acme") == _ACTIONS

    def test_binding_needs_its_action_and_its_prompt(self, full: Database) -> None:
        with pytest.raises(BadSetting, match=r"action that does not exist\. Known: Add, look, Überblick"):
            full.put_binding("acme", Binding("support", "Look"))
        summed_up = Binding("support", "look", 1, "compact", "summary", None, "ordre")
        with pytest.raises(BadSetting, match="names the prompt 'ordre', which does not exist"):
            full.put_binding("acme", summed_up)
        full.put_binding("acme", structs.replace(summed_up, compact_prompt="Ordre"))

    def test_named_value_is_not_deleted(self, full: Database) -> None:
        with pytest.raises(BadSetting, match=r"action 'Add' is still bound to support, writer\."):
            full.drop_action("acme", "Add")
        with pytest.raises(BadSetting, match=r"still named by the action 'Add', the binding 'writer/Add'\."):
            full.drop_prompt("acme", "Ordre")
        assert (full.actions("acme"), full.prompts("acme")) == (_ACTIONS, _PROMPTS)

    def test_unnamed_value_is_deleted_once(self, full: Database) -> None:
        assert [full.drop_binding("acme", one.agent, one.action) for one in _BINDINGS] == [True] * 5
        assert [full.drop_action("acme", one.name) for one in _ACTIONS] == [True] * 3
        assert [full.drop_prompt("acme", one.name) for one in _PROMPTS] == [True] * 2
        full = self._again(full)
        assert (full.actions("acme"), full.bindings("acme"), full.prompts("acme")) == ([], [], [])
        assert not full.drop_binding("acme", "support", "look")
        assert not full.drop_action("acme", "look")
        assert not full.drop_prompt("acme", "Ordre")

    @pytest.mark.parametrize("tenant", ["a\0b", "x" * 501])
    def test_tenant_that_no_database_can_keep_is_refused(self, store: Database, tenant: str) -> None:
        with pytest.raises(BadSetting):
            store.put_action(tenant, Action("look"))
        with pytest.raises(BadSetting):
            store.prompts(tenant)

    def test_closed_store_has_no_catalog(self, store: Database) -> None:
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.put_prompt("acme", _PROMPTS[0])
        with pytest.raises(StoreError, match="closed"):
            store.actions("acme")
