"""The catalog of a tenant's agents in the SQL store: actions, bindings and prompts.

A tenant's catalog has one root: that of a conversation without a name. It is small, so it is read whole. Its texts are
stored as text, so that they can be read and changed with SQL too.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ...core.catalog import Action, Binding, Prompt, validated
from ...errors import Damaged
from ..checks import check_action_unused, check_names_exist, check_prompt_is_new, check_prompt_unused, check_texts
from ..lineage import root_of
from . import statements as sql
from .driver import Driver, Row, Session

__all__ = ["Catalog"]

T = TypeVar("T", Action, Binding, Prompt)


class Catalog:
    """Stores and reads actions, bindings and prompts."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    def put_action(self, tenant: str, action: Action) -> None:
        validated(action)
        row = (*_key(tenant), action.name, action.description, action.parameters, action.default_compact_prompt or None)

        def work(session: Session) -> None:
            check_names_exist(action, (), _all(session, tenant, Prompt))
            session.rows(sql.PUT_ACTION, row)

        self._driver.write(work)

    def put_binding(self, tenant: str, binding: Binding) -> None:
        validated(binding)
        *fields, prompt = msgspec.structs.astuple(binding)
        row = (*_key(tenant), *fields, prompt or None)

        def work(session: Session) -> None:
            check_names_exist(binding, _all(session, tenant, Action), _all(session, tenant, Prompt))
            session.rows(sql.PUT_BINDING, row)

        self._driver.write(work)

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        validated(prompt)
        row = (*_key(tenant), *msgspec.structs.astuple(prompt))

        def work(session: Session) -> None:
            check_prompt_is_new(prompt, _all(session, tenant, Prompt))
            session.rows(sql.PUT_PROMPT, row)

        self._driver.write(work)

    def actions(self, tenant: str) -> list[Action]:
        return self._driver.read(lambda session: _all(session, tenant, Action))

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        bindings = self._driver.read(lambda session: _all(session, tenant, Binding))
        return [binding for binding in bindings if agent in ("", binding.agent)]

    def prompts(self, tenant: str) -> list[Prompt]:
        return self._driver.read(lambda session: _all(session, tenant, Prompt))

    def drop_action(self, tenant: str, name: str) -> bool:
        def work(session: Session) -> bool:
            check_action_unused(name, _all(session, tenant, Binding))
            return bool(session.rows(sql.DROP_ACTION, (*_key(tenant), name)))

        return self._driver.write(work)

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        row = (*_key(tenant), agent, action)
        return self._driver.write(lambda session: bool(session.rows(sql.DROP_BINDING, row)))

    def drop_prompt(self, tenant: str, name: str) -> bool:
        def work(session: Session) -> bool:
            check_prompt_unused(name, _all(session, tenant, Action), _all(session, tenant, Binding))
            return bool(session.rows(sql.DROP_PROMPT, (*_key(tenant), name)))

        return self._driver.write(work)


_STATEMENTS: dict[type, str] = {Action: sql.ACTIONS, Binding: sql.BINDINGS, Prompt: sql.PROMPTS}
"""Each selects the columns in the order of the fields."""


def _key(tenant: str) -> tuple[str, int]:
    check_texts("catalog", tenant=tenant)
    return tenant, root_of(tenant, "")


def _all(session: Session, tenant: str, kind: type[T]) -> list[T]:
    return sorted((_value(kind, row) for row in session.rows(_STATEMENTS[kind], _key(tenant))), key=_name)


def _value(kind: type[T], row: Row) -> T:
    fields = dict(zip(kind.__struct_fields__, row, strict=True))
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise Damaged(f"The {kind.__name__.lower()} {row[0]!r} cannot be read: {error}. Set or drop it.") from error


def _name(value: Action | Binding | Prompt) -> tuple[str, str]:
    """Return the sort key: the order does not depend on the language of the database."""
    return (value.agent, value.action) if isinstance(value, Binding) else (value.name, "")
