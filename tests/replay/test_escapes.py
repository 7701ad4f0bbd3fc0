"""A name behind an escape of JSON counts as readable where the name itself can be read."""

from foveate import Message, ToolCall, user
from foveate.replay.references import References


def call(arguments: str) -> Message:
    return Message("assistant", (ToolCall("c", "edit", arguments),))


def test_a_name_that_occurs_only_after_a_tab_is_escaped():
    references = References()
    references.read(call(r'{"new": "\tsourceRepo = a_name"}'))
    used = references.read(call(r'{"old": "\tsourceRepo = a_name"}'))
    assert (set(used.said), used.escaped) == ({"tsourceRepo", "a_name"}, {"tsourceRepo"})


def test_a_word_that_begins_like_an_escape_is_not_escaped():
    references = References()
    references.read(user("tests/test_it.py \\tests/test_it.py"))
    used = references.read(call('{"path": "tests/test_it.py"}'))
    assert (set(used.said), used.escaped) == ({"tests/test_it.py"}, frozenset())
