"""The scorer of the benchmark of retention, judged with texts written by hand, and the conversations it builds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from retention.conversations import Sample, length_of, samples, text_of
from retention.dialogues import dialogues
from retention.foreign import foreign_samples, parse_script
from retention.report import BLIND, FOREIGN, HELD_OUT, SHAPES
from retention.scoring import Score, Verdict, count_cut_lines, judge
from retention.shapes import KINDS, NOT, Fact

RULE = Fact("rule", "rule", "start", ("Never touch src/db.",), (NOT, "src/db"))
PORT = Fact("port", "change", "end", ("Port 8437.", "Port 9120."), ("port", "9120"), ("8437",))
PAIR = Fact("pair", "pair", "end", ("a-eu on 4001.", "a-us on 4002."), ("a-eu", "4001"), (), ("a-us", "4002"))
HEDGE = Fact("hedge", "hedge", "end", ("Probably the cache.",), ("probably", "cache"), hedge="probably")


def verdict(fact: Fact, text: str, later: str = "") -> Verdict:
    return judge([fact], text, later)[0]


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("- Never touch src/db.", True),
        ("The user said so. You do not touch SRC/DB", True),
        ("- It matters. Never touch it: src/db.", True),
        ("Touch src/db.", False),
        ("Never mind.\nsrc/db was read.", False),
        ("Never mind. It is late. We read src/db.", False),
        ("never, src/db, main.py, test_a", False),
        ("Never touch src/dbx.", False),
        ("", False),
    ],
)
def test_a_rule_is_kept_only_with_its_negation(text: str, is_kept: bool):
    assert verdict(RULE, text).kept is is_kept


@pytest.mark.parametrize(
    ("text", "is_stale"),
    [
        ("The port is 9120.", False),
        ("The port is 9120.\n- The port is 8437.", True),
        ("The port is 8437.", True),
        ("Port 9120 instead of 8437.", False),
        ("Port 8437 instead of 9120.", True),
        ("Move the port from 8437 to 9120.", False),
        ("The port is 9120, not 8437.", False),
        ("Port 8437 -> 9120", False),
        ("Port 8437 is replaced by port 9120.", False),
        ("Port 8437, no longer blocked by the firewall", False),
        ("- Port 9120\n- Replaced: port 8437", False),
        ("## Replaced\n- port 8437\n## Values\n- port 9120", False),
        ("## Replaced\n- port 80\n## Values\n- port 8437", True),
        ("port 84370", False),
        ("- The port is 8437 (later: The port is 9120.)", False),
        ("- The port is 8437 · Use port 8437 (replaced by: port 9120)", False),
        ("- The port is 8437 (later: The host is opal.)", True),
        ("- The port is 9120 (later: The port is 8437.)", True),
        ("- The port is 8437 (later: The port is 9120.)\n- Use port 8437.", True),
    ],
)
def test_an_old_value_is_stale_unless_marked(text: str, is_stale: bool):
    assert verdict(PORT, text).stale is is_stale


def test_the_words_of_a_correction_are_not_stale():
    fact = PORT._replace(says=("Port 8437.", "Take port 9120, since 8437 is in use."))
    assert not verdict(fact, "- Take port 9120, since 8437 is in use.").stale
    assert verdict(fact, "- 8437 is in use by port 9120.").stale


def test_a_change_is_resolved_by_the_new_value_without_the_old():
    assert verdict(PORT, "The port is 9120.").is_resolved
    assert not verdict(PORT, "Nothing of it.").is_resolved
    assert not verdict(PORT, "The port is 9120. The port is 8437.").is_resolved


def test_later_messages_show_the_order_of_values():
    assert not verdict(PORT, "The port is 8437.", "Port 9120, please.").stale
    assert verdict(PORT, "The port is 8437.", "Hello.").stale


@pytest.mark.parametrize(
    ("text", "is_merged"),
    [("a-eu: 4001\na-us: 4002", False), ("a-us: 4002", True), ("a-eu: 4002", False), ("a-eu: 4001", True)],
)
def test_a_pair_is_merged_if_one_of_both_is_missing(text: str, is_merged: bool):
    assert verdict(PAIR, text).is_merged is is_merged


@pytest.mark.parametrize(
    ("text", "is_bare"), [("Probably the cache.", False), ("It is the cache.", True), ("The disk.", False)]
)
def test_a_claim_is_bare_without_its_hedge(text: str, is_bare: bool):
    assert verdict(HEDGE, text).bare is is_bare


def test_a_score_counts_both_of_a_pair_and_leaves_out_missing_kinds():
    score = Score.of(judge([RULE, PAIR], "Never touch src/db.\na-us: 4002"))
    assert (score.facts, score.kept, score.rules_kept, score.merged) == (3, 2 / 3, 1.0, 1.0)
    assert (score.resolved, score.stale, score.bare) == (None, None, None)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("- Never touch the old tables, please.", (0, 1)),
        ("Never touch the old tables", (0, 1)),
        ("Never touch the old", (1, 1)),
        ("ouch the old tables, please.", (1, 1)),
        ("… touch the old tables, please.", (1, 1)),
        ("They are in use, all of them.", (0, 1)),
        ("Words of another text altogether.", (0, 0)),
        ("## Never touch the old tables", (0, 0)),
    ],
)
def test_a_line_is_cut_if_it_ends_inside_a_sentence(line: str, counts: tuple[int, int]):
    source = "Never touch the old tables, please. They are in use, all of them.\nGo on."
    assert count_cut_lines(line, source) == counts


def test_there_are_enough_shapes_of_each_kind_with_different_names():
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) >= 60
    assert {shape.kind for shape in SHAPES} == set(KINDS)


def test_the_held_out_shapes_are_others_than_those_of_development():
    names = {shape.name for shape in HELD_OUT}
    assert len(names) == len(HELD_OUT) >= 60
    assert names.isdisjoint(shape.name for shape in SHAPES)
    assert {shape.kind for shape in HELD_OUT} == set(KINDS)


def test_the_shapes_of_other_authors_have_names_of_their_own():
    names = {shape.name for shape in BLIND}
    assert len(names) == len(BLIND) >= 120
    assert names.isdisjoint(shape.name for shape in (*SHAPES, *HELD_OUT))


def said_text(text: str) -> str:
    """Return a text of a shape as its message says it."""
    for mark in ("next:", "tool:", "assistant:", "system:"):
        text = text.removeprefix(mark)
    return text.strip().replace("<long>", "").strip()


@pytest.fixture(scope="module")
def drawn() -> list[Sample]:
    return [*samples(SHAPES, range(1, 4)), *samples(HELD_OUT, range(1, 4)), *samples(BLIND, range(1, 4))]


@pytest.mark.slow
def test_every_fact_is_kept_by_its_own_conversation(drawn: list[Sample]):
    """Otherwise a shape could not survive, and its tokens would be wrong."""
    for sample in drawn:
        text = "\n".join(map(text_of, sample.messages))
        lost = [v.fact for v in judge(sample.facts, text) if not v.kept or (v.fact.other and not v.other_kept)]
        assert lost == []


def test_every_foreign_fact_is_kept_by_its_own_conversation():
    for sample in foreign_samples(FOREIGN, [1, 2]):
        text = "\n".join(map(text_of, sample.messages))
        lost = [v.fact for v in judge(sample.facts, text) if not v.kept or (v.fact.other and not v.other_kept)]
        assert lost == []


def test_foreign_changes_are_resolved_by_their_last_statement():
    """Each old statement is stale in its own conversation, and none is stale in the last statements alone."""
    assert len(FOREIGN) >= 20
    for sample in foreign_samples(FOREIGN, [1, 2]):
        changes = [fact for fact in sample.facts if fact.old]
        text = "\n".join(fact.says[-1] for fact in changes)
        assert [v.fact for v in judge(changes, text) if not v.is_resolved] == []
        whole = "\n".join(map(text_of, sample.messages))
        assert [v.fact for v in judge(changes, whole) if not v.stale] == []


def test_every_fact_of_a_dialogue_can_be_kept_and_every_change_resolved():
    """By the texts that state the facts last. The whole dialogue keeps all facts, and shows each old one as current."""
    assert len(list(dialogues())) == 12
    for sample in dialogues():
        whole = "\n".join(map(text_of, sample.messages))
        assert all(fact.says[0] in whole for fact in sample.facts)
        stated = "\n".join(fact.says[0] for fact in sample.facts)
        for verdicts in (judge(sample.facts, whole), judge(sample.facts, stated)):
            assert [v.fact for v in verdicts if not v.kept or (v.fact.other and not v.other_kept)] == []
        assert [v.fact for v in judge(sample.facts, stated) if v.stale] == []
        assert [v.fact for v in judge(sample.facts, whole) if v.fact.old and not v.stale] == []


@pytest.mark.parametrize("line", ["x hello", "= wish keep", "hello"])
def test_a_script_with_an_unknown_line_is_refused(line: str):
    with pytest.raises(ValueError, match="Use"):
        parse_script(f"name\nu hello\n{line}")


@pytest.mark.slow
def test_no_conversation_without_its_facts_keeps_one(drawn: list[Sample]):
    """Small talk and results must not say by chance what a fact says."""
    for sample in drawn:
        says = [said_text(text) for fact in sample.facts for text in fact.says]
        rest = [text for text in map(text_of, sample.messages) if not any(said in text for said in says)]
        assert [v.fact for v in judge(sample.facts, "\n".join(rest)) if v.kept] == []


def test_the_newest_statement_of_a_change_is_not_stale(drawn: list[Sample]):
    """A summary that quotes only the last statement of each change is perfect."""
    for sample in drawn:
        changes = [fact for fact in sample.facts if fact.old]
        text = "\n".join(said_text(fact.says[-1]) for fact in changes)
        assert [v.fact for v in judge(changes, text) if not v.is_resolved] == []


def test_the_statement_before_a_change_is_stale(drawn: list[Sample]):
    """A summary that quotes only the statement before the last shows an old value as current."""
    for sample in drawn:
        changes = [fact for fact in sample.facts if fact.old]
        text = "\n".join(said_text(fact.says[-2]) for fact in changes)
        assert [v.fact for v in judge(changes, text) if not v.stale or v.kept] == []


def test_the_same_seed_gives_the_same_conversation(drawn: list[Sample]):
    first = list(samples(SHAPES, [1]))
    assert first == drawn[: len(first)]


def test_rounds_spread_the_same_facts_over_more_text(drawn: list[Sample]):
    longer = next(samples(SHAPES, [1], rounds=5))
    sizes = [sum(map(length_of, sample.messages)) for sample in (drawn[0], longer)]
    assert sizes[1] == pytest.approx(5 * sizes[0], rel=0.15)
    assert [fact.keep for fact in longer.facts] == [fact.keep for fact in drawn[0].facts]
    parts = longer.segments(5)
    assert [message for part in parts for message in part] == longer.messages
    assert len(parts) == 5
