"""Changes of the view by commits, at the calls that saw them."""

from __future__ import annotations

from foveate.core.edits import Hide, Pin, Replace, Restore, Span, Summarize, Target
from foveate.core.messages import Text
from foveate.core.receipts import Receipt
from foveate.replay.result import EditFigures
from foveate.replay.run import edit_figures

POSITIONS = {"a": 1, "b": 2, "c": 3, "d": 4}


def receipt(
    turn: int, *edits, saves: int = 10, policies: tuple[str, ...] = ("prune",), author: str = "plan"
) -> Receipt:
    return Receipt(1, len(edits), turn, 0, author, policies, edits, 100, 100 - saves, 400, 400 - 4 * saves)


def figures(*receipts: Receipt, turns: tuple[int, ...] = (1, 2, 3)) -> list[EditFigures]:
    return list(edit_figures(receipts, turns, POSITIONS))


def test_a_commit_names_the_earliest_message_it_edits():
    edits = (Replace(Target("d"), (Text("x"),)), Hide(Span("b", "c")), Replace(Target("c"), (Text("y"),)))
    assert figures(receipt(2, *edits, policies=("prune", "floor"))) == [EditFigures(2, 3, 100, 90, 2, "prune, floor")]


def test_every_kind_of_edit_names_its_message():
    edits = (
        Summarize(Span("c", "d"), "so far"),
        Hide(Target("b")),
        Restore((Span("a", "d"),)),
        Restore((Target("d"),)),
        Restore((), (1,)),
    )
    assert [figures(receipt(1, edit))[0].first_position for edit in edits] == [3, 2, 1, 4, 0]


def test_a_commit_without_effect_on_the_request_is_ignored():
    assert figures(receipt(1, Pin(Target("a")), saves=0)) == []


def test_a_commit_belongs_to_the_first_call_that_saw_it():
    edit = Hide(Target("a"))
    seen = figures(receipt(2, edit), receipt(4, edit), receipt(6, edit), turns=(2, 3, 5))
    assert [one.turn for one in seen] == [1, 3]


def test_a_commit_without_a_policy_names_its_author():
    assert figures(receipt(1, Restore((Target("a"),)), saves=-10, policies=(), author="expand")) == [
        EditFigures(1, 1, 100, 110, 1, "expand")
    ]
