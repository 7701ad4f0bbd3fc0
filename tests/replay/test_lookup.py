"""References of calls, looked up in their views, and fetched if the view lacks them."""

from __future__ import annotations

import pytest
from replay_values import entry

from foveate.core.call_context import Budget, Prices
from foveate.core.messages import Message, ToolCall, assistant, tool_result, user
from foveate.core.view import Entry, View
from foveate.replay.lookup import Counts, Lookup
from foveate.replay.measure import Bill

FOUND = tool_result("a", "see src/app.py\n" + "a whole line of the program")  # 11 + 4 tokens
STUB = '[Cleared; expand("m2")]'


def view(*entries: Entry) -> View:
    return View(entries, 1, Budget(10_000, 0, 10_000, 10))


def bill(tokens: int = 100, unchanged: int = 0) -> Bill:
    return Bill(tokens=tokens, cached=0, cost=0.0, rewritten=False, unchanged=unchanged)


def cleared(position: int, text: str = STUB, source: Message = FOUND) -> Entry:
    return entry(position, tool_result("a", text), source=source, shrunk=((0,),))


def opening(name: str) -> Message:
    return assistant("", ToolCall("b", "open", f'{{"path": "{name}"}}'))


def looked_up(history: list[Message], answers: list[Message], shown: View, **originals: tuple[Message, ...]) -> Lookup:
    """Return a lookup after `history`, with these answers in order, each from the view `shown`."""
    lookup = Lookup(originals.__getitem__, Prices(read=0.5, write=2.0))
    for message in history:
        lookup.read(message)
    for answer in answers:
        lookup.compare(shown, bill(), lookup.read(answer))
    return lookup


def test_content_of_the_view_is_visible():
    shown = view(entry(1, user("go")), entry(2, FOUND))
    lookup = looked_up([user("go"), FOUND], [opening("src/app.py")], shown)
    assert (lookup.recall, lookup.fetches.expansions) == (Counts(used=1, visible=1), 0)


def test_content_behind_a_handle_is_reachable():
    shown = view(entry(1, user("go")), cleared(2))
    lookup = looked_up([user("go"), FOUND], [opening("src/app.py")], shown, m2=(FOUND,))
    assert lookup.recall == Counts(used=1, visible=0, reached=1)
    assert lookup.fetches.cost == pytest.approx(0.5 * 100 + 2 * 15)


def test_a_handle_counts_only_for_content_that_it_returns():
    shown = view(entry(1, user("go")), cleared(2))
    lookup = looked_up([user("go"), FOUND], [opening("src/app.py")], shown, m2=(user("something else"),))
    assert lookup.recall == Counts(used=1, visible=0, reached=0)
    assert lookup.fetches.cost == pytest.approx(2 * 0.5 * 100 + 2 * 15)


def test_the_handle_of_a_summary_returns_its_messages():
    note = entry(1, user('[Hidden: expand("m1-m2")]'), kind="summary", shrunk=((0,),))
    lookup = looked_up([user("go"), FOUND], [opening("src/app.py")], view(note), **{"m1-m2": (user("go"), FOUND)})
    assert lookup.recall == Counts(used=1, visible=0, reached=1)


def test_one_expansion_fetches_everything_that_a_call_lacks():
    other = tool_result("b", "and src/util.py")  # 4 + 4 tokens
    shown = view(cleared(1, '[expand("m1")]'), cleared(2, '[expand("m2")]', other))
    both = assistant("", *opening("src/app.py").calls, *opening("src/util.py").calls)
    lookup = looked_up([FOUND, other], [both], shown, m1=(FOUND,), m2=(other,))
    assert (lookup.recall.reached, lookup.fetches.expansions) == (2, 1)
    assert lookup.fetches.cost == pytest.approx(0.5 * 100 + 2 * (15 + 8))


def test_fetched_content_is_not_fetched_again():
    other = tool_result("b", "the first one.txt and the second_one.txt")
    shown = view(cleared(1, '[expand("m1")]', other))
    lookup = looked_up([other], [opening("one.txt"), opening("second_one.txt")], shown, m1=(other,))
    assert (lookup.recall.reached, lookup.fetches.expansions) == (2, 1)


def test_an_expansion_follows_the_history_at_its_time():
    lookup = looked_up([user("go"), FOUND], [opening("src/app.py")], view(cleared(2)), m2=(FOUND,))
    before = lookup.fetches.cost
    lookup.fetches.carry(bill(unchanged=3))
    assert lookup.fetches.cost - before == pytest.approx(0.5 * 15)
    lookup.fetches.carry(bill(unchanged=2))
    assert lookup.fetches.cost - before == pytest.approx(0.5 * 15 + 2 * 15)


def test_content_from_a_person_is_missed_and_fetched_too():
    question = user("Look at src/app.py!")
    shown = view(entry(1, user('[cut; expand("m1")]'), source=question, shrunk=((0,),)))
    lookup = looked_up([question], [opening("src/app.py")], shown, m1=(question,))
    assert (lookup.said, lookup.fetches.expansions) == (Counts(used=1, visible=0, reached=1), 1)


def test_a_quoted_line_must_match_a_whole_line():
    edit = assistant("", ToolCall("b", "edit", '{"old": "a whole line of the program"}'))
    shown = view(cleared(1, 'program, line, whole; expand("m1")'))
    lookup = looked_up([FOUND], [edit], shown, m1=(FOUND,))
    assert lookup.quoted == Counts(used=1, visible=0, reached=1)


def test_shares_of_nothing_are_unknown():
    assert (Counts().visible_share, Counts().reachable_share) == (None, None)
    assert (Counts(4, 1, 2).visible_share, Counts(4, 1, 2).reachable_share) == (0.25, 0.75)
