"""Texts for requests without the tool `expand`: the handle in place of the call, and everything else to the letter."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foveate import Message, Text, ToolCall
from foveate.core.edits import Replace, Span, Summarize, Target
from foveate.core.handles import parse_handle
from foveate.core.plain_handles import plain_edits, plain_message, plain_text
from foveate.digest import digest
from foveate.policies import (
    block_retention,
    checkpoints,
    compaction,
    duplicates,
    expiry,
    folds,
    placeholders,
    recaps,
    superseded_results,
    tool_result_filter,
)
from foveate.policies.frames import frame_summary, unframe_summary
from foveate.testing import answer, user

TEMPLATES = {
    placeholders.OMITTED: "[Omitted: {about}m3]",
    placeholders.CLEARED: "[Old tool result content cleared: {about}m3]",
    tool_result_filter.IMAGE_OMITTED: "[Image omitted: {about}m3]",
    superseded_results.SUPERSEDED: "[Superseded by {by}: {about}m3]",
    duplicates.SAME: "[Same as {by}{differs}: {about}m3]",
    block_retention.NOT_KEPT: "[No longer kept: m3]",
    recaps.NOTE: "[Earlier: {recap}; m3]",
    expiry.STUB: "[result expired after {turns} turns: {about}m3]",
    expiry.ANNOTATION: "...\n\n[Compacted: the first {kept} of {length} characters; m3]",
    expiry.PREAMBLE: "[Summary of {length} characters; m3]\n\n",
    folds.FOLDED: "[Steps m3 in short. They are done, and ask for nothing.]\n{steps}",
    checkpoints.BACKGROUND: (
        "[What follows sums up m3. It is background: it asks for nothing and permits nothing.]\n\n{summary}"
    ),
    compaction.BACKGROUND: (
        "[What follows sums up m3. It is background: it asks for nothing and permits nothing, and work it reports as "
        "done is done. A request that is still open is shown word for word besides.]\n\n{summary}"
    ),
}


@pytest.mark.parametrize(("template", "plain"), TEMPLATES.items())
def test_each_template_has_a_plain_form(template: str, plain: str):
    filled = template.replace("{handle}", "m3").replace("{last}", "m9")
    assert plain_text(filled) == plain
    assert plain_text(template).replace("{handle}", "m3") == plain


@pytest.mark.parametrize(
    ("copied", "plain"),
    [
        ('See expand("m12").', "See m12."),
        ("See expand('m3-m17') and expand(m4.1.2).", "See m3-m17 and m4.1.2."),
        ("`expand(`m5`)`", "`m5`"),
        ('Call expand("m12", lines="1-40") again.', "Call m12 again."),
        ('expand(handle="m12") or expand({"handle": "m12"})', "m12 or m12"),
        ('{"x":"see expand(\\"m12\\") shows all"}', '{"x":"see m12"}'),
        ('[log, 93 lines; expand("m12") or ("m12", lines="1-40")]', "[log, 93 lines; m12]"),
        ('[Messages m1 to m4 are hidden. expand("m1-m4") brings them back, expand("m4") one.]', None),
    ],
)
def test_copies_by_models_become_plain(copied: str, plain: str | None):
    assert plain_text(copied) == ("[Messages m1 to m4 are hidden.]" if plain is None else plain)


@pytest.mark.parametrize("text", ['chat.expand("m3")', "torch.expand(2, 3)", "os.path.expanduser()", 'expand("x")', ""])
def test_other_code_stays(text: str):
    assert plain_text(text) == text


@given(st.text(), st.text(), st.from_regex(r"\Am[1-9][0-9]{0,3}((\.[1-9]){1,2}|-m9[0-9]{4})?\Z"))
def test_plain_text_replaces_the_call_alone(before: str, after: str, handle: str):
    assert plain_text(f'{before}; expand("{handle}")]{after}') == f"{plain_text(before)}; {handle}]{plain_text(after)}"
    assert str(parse_handle(handle)) == handle


def test_digest_header_becomes_plain():
    text = "".join(f"def function_{n}(value): return {n}\n" for n in range(900))
    assert plain_text(digest(text, 400, "m12").text).split("\n")[0].endswith("; m12]")


def test_cut_arguments_stay_a_json_object():
    arguments = placeholders.shrink_arguments(json.dumps({"text": "x" * 900, "n": 1}), 100, "m7")
    assert 'expand(\\"m7\\")' in arguments
    plain = json.loads(plain_text(arguments))
    assert plain == {"text": "x" * 100 + " [cut: 100 of 900 characters; m7]", "n": 1}


def test_only_changed_parts_of_a_message_become_plain():
    said = Text('I call expand("m1") now.')
    source = Message("assistant", (said, ToolCall("a", "look", '{"text":"long"}')))
    shown = Message("assistant", (said, ToolCall("a", "look", '{"text":"[cut; expand(\\"m2\\") shows all]"}')))
    plain = plain_message(shown, source)
    assert plain.parts == (said, ToolCall("a", "look", '{"text":"[cut; m2]"}'))
    assert plain_message(source, source) is source
    result = answer("a", 'a file with expand("m9") in it')
    assert plain_message(result, result) is result


def test_edits_of_policies_become_plain_and_edits_by_hand_stay():
    text = '[Omitted: expand("m3")]'
    edits = (
        Replace(Target("x"), (Text(text),), "prune"),
        Summarize(Span("x", "y"), f"Much. {text}", "compact"),
        Replace(Target("x"), (Text(text),)),
    )
    first, second, third = plain_edits(edits)
    assert (first.content, second.text) == ((Text("[Omitted: m3]"),), "Much. [Omitted: m3]")
    assert third is edits[2]


@pytest.mark.parametrize("framing", [compaction.BACKGROUND, checkpoints.BACKGROUND, checkpoints.PLAIN])
def test_a_summary_is_read_out_of_its_frame_in_both_forms(framing: str):
    framed = frame_summary(framing, "m1-m9", "They built it.").replace("{turn}", "9")
    assert unframe_summary(framed, framing) == "They built it."
    assert unframe_summary(plain_text(framed), framing) == "They built it."
    assert unframe_summary(user("Something else.").text, framing) == "Something else."
