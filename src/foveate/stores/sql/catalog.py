"""What a tenant has set up for its agents, in the SQL store: rows to values and back, checked both ways.

A tenant's whole catalog lies under one root, the one that a conversation without a name would have, so that it lies
together. It is small: what has to be looked up is read whole. Text is kept as it is, to be read and set with SQL too.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from ...core.catalog import Action, Binding, Prompt, validated
from ...errors import Damaged
from ..catalogs import check_action_free, check_known, check_new, check_prompt_free
from ..checks import check_words
from ..lineage import root_of
from . import statements as sql
from .driver import Driver, Row, Session

__all__ = ["SqlCatalog"]

T = TypeVar("T", Action, Binding, Prompt)


class SqlCatalog:
    """The part of the SQL store that is a Catalog."""

    _driver: Driver

    def put_action(self, tenant: str, action: Action) -> None:
        validated(action)
        row = (*_key(tenant), action.name, action.description, action.parameters, action.default_compact_prompt or None)

        def work(session: Session) -> None:
            check_known(action, (), _all(session, tenant, Prompt))
            session.rows(sql.PUT_ACTION, row)

        self._driver.write(work)

    def put_binding(self, tenant: str, binding: Binding) -> None:
        validated(binding)
        *said, prompt = msgspec.structs.astuple(binding)
        row = (*_key(tenant), *said, prompt or None)

        def work(session: Session) -> None:
            check_known(binding, _all(session, tenant, Action), _all(session, tenant, Prompt))
            session.rows(sql.PUT_BINDING, row)

        self._driver.write(work)

    def put_prompt(self, tenant: str, prompt: Prompt) -> None:
        validated(prompt)
        row = (*_key(tenant), *msgspec.structs.astuple(prompt))

        def work(session: Session) -> None:
            check_new(prompt, _all(session, tenant, Prompt))
            session.rows(sql.PUT_PROMPT, row)

        self._driver.write(work)

    def actions(self, tenant: str) -> list[Action]:
        return self._driver.read(lambda session: _all(session, tenant, Action))

    def bindings(self, tenant: str, agent: str = "") -> list[Binding]:
        found = self._driver.read(lambda session: _all(session, tenant, Binding))
        return [binding for binding in found if agent in ("", binding.agent)]

    def prompts(self, tenant: str) -> list[Prompt]:
        return self._driver.read(lambda session: _all(session, tenant, Prompt))

    def drop_action(self, tenant: str, name: str) -> bool:
        def work(session: Session) -> bool:
            check_action_free(name, _all(session, tenant, Binding))
            return bool(session.rows(sql.DROP_ACTION, (*_key(tenant), name)))

        return self._driver.write(work)

    def drop_binding(self, tenant: str, agent: str, action: str) -> bool:
        row = (*_key(tenant), agent, action)
        return self._driver.write(lambda session: bool(session.rows(sql.DROP_BINDING, row)))

    def drop_prompt(self, tenant: str, name: str) -> bool:
        def work(session: Session) -> bool:
            check_prompt_free(name, _all(session, tenant, Action), _all(session, tenant, Binding))
            return bool(session.rows(sql.DROP_PROMPT, (*_key(tenant), name)))

        return self._driver.write(work)


_STATEMENTS: dict[type, str] = {Action: sql.ACTIONS, Binding: sql.BINDINGS, Prompt: sql.PROMPTS}
"""Each with the columns in the order of the fields."""


def _key(tenant: str) -> tuple[str, int]:
    check_words("catalog", tenant=tenant)
    return tenant, root_of(tenant, "")


def _all(session: Session, tenant: str, kind: type[T]) -> list[T]:
    return sorted((_value(kind, row) for row in session.rows(_STATEMENTS[kind], _key(tenant))), key=_name)


def _value(kind: type[T], row: Row) -> T:
    said = dict(zip(kind.__struct_fields__, row, strict=True))
    try:
        return msgspec.convert(said, kind)
    except msgspec.ValidationError as error:
        raise Damaged(f"The {kind.__name__.lower()} {row[0]!r} cannot be read: {error}. Set or drop it.") from error


def _name(value: Action | Binding | Prompt) -> tuple[str, str]:
    """What they are listed by, whatever order the database's language has."""
    return (value.agent, value.action) if isinstance(value, Binding) else (value.name, "")
