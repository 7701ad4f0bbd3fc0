"""State machine: both stores have equal catalogs after any sequence of calls, and refuse in the same words."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from foveate.core.catalog import Action, Binding, Prompt, complete_binding
from foveate.errors import BadSetting
from foveate.ports import HasCatalog
from foveate.stores.memory import MemoryStore
from foveate.stores.sqlite import SqliteStore

TENANTS, AGENTS = st.sampled_from(["", "t"]), st.sampled_from(["me", "you", ""])
ACTIONS = st.sampled_from(["look", "Look", "find", "é"])
PROMPTS = st.sampled_from(["short", "Short", "long one", "long-one", "system"])
NAMED = st.one_of(st.just(""), PROMPTS)
BINDINGS = st.builds(
    Binding,
    AGENTS,
    ACTIONS,
    st.sampled_from([None, -1, 0, 3, 2**63]),
    st.sampled_from(["none", "remove", "compact", "Compact"]),
    st.sampled_from([None, "first_chars", "summary", "Summary"]),
    st.sampled_from([None, 0, 1, 500]),
    NAMED,
)


class CatalogMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.memory = MemoryStore()
        self.sqlite = self.opened()

    def teardown(self) -> None:
        if hasattr(self, "sqlite"):
            self.sqlite.close()
            self.folder.cleanup()

    def opened(self) -> SqliteStore:
        return SqliteStore(Path(self.folder.name) / "chat.db", synchronous="normal")

    def both(self, call: Callable[[HasCatalog], Any]) -> Any:
        """The result or the error of both stores, which must be equal."""
        outcomes = []
        for store in (self.memory, self.sqlite):
            try:
                outcomes.append(call(store))
            except BadSetting as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        return outcomes[0]

    @rule(tenant=TENANTS, name=PROMPTS, text=st.sampled_from(["{{ text }}", "no place"]))
    def put_prompt(self, tenant: str, name: str, text: str) -> None:
        self.both(lambda store: store.put_prompt(tenant, Prompt(name, text)))

    @rule(tenant=TENANTS, name=ACTIONS, prompt=NAMED, parameters=st.sampled_from(["", "{}", "[]"]))
    def put_action(self, tenant: str, name: str, prompt: str, parameters: str) -> None:
        self.both(lambda store: store.put_action(tenant, Action(name, "", parameters, prompt)))

    @rule(tenant=TENANTS, binding=BINDINGS, whole=st.booleans())
    def put_binding(self, tenant: str, binding: Binding, whole: bool) -> None:
        said = complete_binding(binding) if whole else binding
        self.both(lambda store: store.put_binding(tenant, said))

    @rule(tenant=TENANTS, name=PROMPTS)
    def drop_prompt(self, tenant: str, name: str) -> None:
        self.both(lambda store: store.drop_prompt(tenant, name))

    @rule(tenant=TENANTS, name=ACTIONS)
    def drop_action(self, tenant: str, name: str) -> None:
        self.both(lambda store: store.drop_action(tenant, name))

    @rule(tenant=TENANTS, agent=AGENTS, name=ACTIONS)
    def drop_binding(self, tenant: str, agent: str, name: str) -> None:
        self.both(lambda store: store.drop_binding(tenant, agent, name))

    @rule()
    def close_and_open(self) -> None:
        self.sqlite.close()
        self.sqlite = self.opened()

    @invariant()
    def both_hold_the_same(self) -> None:
        if not hasattr(self, "sqlite"):
            return
        for tenant in ("", "t"):
            self.both(lambda store: store.prompts(tenant))  # noqa: B023
            self.both(lambda store: store.actions(tenant))  # noqa: B023
            self.both(lambda store: store.bindings(tenant))  # noqa: B023
            self.both(lambda store: store.bindings(tenant, "me"))  # noqa: B023


def test_any_sequence_of_calls_does_the_same_to_both_catalogs() -> None:
    run_state_machine_as_test(
        CatalogMachine,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        ),
    )
