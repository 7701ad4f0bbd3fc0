"""The one-line texts of entries, views, plans and contexts."""

from __future__ import annotations

from foveate.core.budget import aim_at, measure_excess
from foveate.core.call_context import NO_WINDOW, Budget
from foveate.core.context import measure_context
from foveate.core.edits import Pin, Replace, Span, Summarize, Target
from foveate.core.messages import Text
from foveate.core.planner import make_plan
from foveate.core.summaries import NeedsSummary, SummaryRequest
from foveate.core.totals import Totals
from foveate.core.view import View
from foveate.testing import answer, call, say, user

from .story import Story

LARGE = Budget(20_000, 1_000, 10**9, 9)


def test_an_entry_prints_its_handle_role_size_and_changes():
    story = Story(user("go"), call("a", "grep"), answer("a", "x" * 400), say("so"), say("then"), user("on"))
    story.edit(Replace(Target(story.id(3), (0, 0)), (Text("short"),), "prune", "old"), Pin(Target(story.id(3))))
    story.edit(Summarize(Span(story.id(4), story.id(5)), "in short"))
    assert [str(entry) for entry in story.view()] == [
        "m1 user: 5 tokens",
        "m2 assistant: 6 tokens",
        "m3 tool grep: 6 tokens, shrunk by prune, pinned",
        "m4-m5 summary: 6 tokens",
        "m6 user: 5 tokens",
    ]


def test_a_view_prints_its_turn_and_size():
    story = Story(user("go"), say("done"))
    assert str(story.view(LARGE)) == "turn 2: 2 entries, 10 of 19,000 usable tokens"
    assert repr(story.view(LARGE)) == "<View of turn 2: 2 entries, 10 of 19,000 usable tokens>"
    assert str(Story(user("go")).view(LARGE)) == "turn 1: 1 entry, 5 of 19,000 usable tokens"
    without = Budget(NO_WINDOW, 0, 10**9, 9)
    assert str(story.view(without)) == "turn 2: 2 entries, 10 tokens"
    view = story.view(LARGE)
    assert str(aim_at(view, measure_excess(view))) == str(view)


def test_a_plan_prints_its_edits_sizes_and_open_requests():
    story = Story(user("go"), call("a"), answer("a", "x" * 400), user("on"))

    def prune(view: View):
        yield Replace(Target(story.id(3), (0, 0)), (Text("short"),), "prune")
        yield NeedsSummary(SummaryRequest("compact", (), 100), lambda answer: ())

    plan = make_plan(story.projection, story.frame(LARGE), [prune])
    assert str(plan) == "turn 2: 1 edit by prune, 120 -> 22 tokens, 1 summary needed"
    assert str(make_plan(story.projection, story.frame(LARGE), [])) == "turn 2: 0 edits, 120 -> 120 tokens"
    assert repr(plan) == f"<Plan of {plan}>"


def test_a_context_prints_its_share_of_the_window():
    story = Story(user("go"), say("done"))
    context = measure_context(story.view(LARGE), Totals(), messages=7)
    assert str(context) == "10 of 20,000 tokens (0%), 2 of 7 messages visible"
    without = measure_context(story.view(Budget(NO_WINDOW, 0, 10**9, 9)), Totals(), messages=7)
    assert str(without) == "10 tokens, 2 of 7 messages visible"
