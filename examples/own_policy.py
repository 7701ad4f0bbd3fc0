"""A policy of your own, and its tests.

python examples/own_policy.py                 # an agent whose searches leave after two turns
python -m pytest examples/own_policy.py       # the tests
"""

from collections.abc import Iterator

from foveate import Policy, View, open_conversation, user
from foveate.edits import Edit
from foveate.policies import placeholder, replacement
from foveate.testing import answer, call, say

NOTE = "[Old search: {about}{handle}]"


def expire_searches(*, turns: int) -> Policy:
    """Return a policy that replaces the result of a search by a note, after more than `turns` model calls."""

    def policy(view: View) -> Iterator[Edit]:
        for entry in view:
            age = view.turn - entry.stamp.turn
            if entry.tool == "search" and entry.is_result and not entry.shrunk and age > turns:
                yield replacement(entry, placeholder(NOTE, entry), "expire-searches", f"{age} turns old")

    return policy


def searched(count: int, turns: int):
    """Return a conversation with some searches, each with an answer of the model after it."""
    chat = open_conversation("searches", window=16_000, policy=expire_searches(turns=turns))
    chat.append(user("Find the tram."))
    for n in range(count):
        chat.prepare()
        chat.record(call(f"c{n}", "search", word=f"tram {n}"))
        chat.append(answer(f"c{n}", f"line {n}: the tram is late\n" * 50))
    chat.prepare()
    return chat


def test_only_old_searches_leave():
    assert [entry.handle for entry in searched(5, turns=2).view if entry.shrunk] == ["m3", "m5", "m7"]


def test_a_second_run_changes_nothing():
    chat = searched(5, turns=2)
    before = chat.view.tokens
    assert not chat.plan()
    assert chat.prepare().tokens == before


if __name__ == "__main__":
    chat = searched(5, turns=2)
    chat.record(say("The tram is late."))
    for entry in chat.view:
        print(entry, entry.message.text[:80].strip().replace("\n", " "))
