"""Properties of every digest of a history: no words end it with an error, and it keeps to its room."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from foveate import assistant, system, tool_result, user
from foveate.core.messages import Message, ToolCall
from foveate.digest.history import digest_messages

WORDS = st.sampled_from(
    [
        *("code", "push", "pushed", "Tom", "Jane", "src/kestrel/sync", "release-77", "port", "7001", "7005", "40 GB"),
        *("the", "of", "is", "was", "for", "and", "in", "we", "It is", "They are", "use", "rollup", "Monday", "12 May"),
        *("not", "never", "must", "only", "until", "may", "now", "instead", "no longer", "Scratch that.", "make it 40"),
        *(
            "nicht",
            "nie mehr",
            "Es ist",
            "它是",
            "不再",
            "改为",
            "端口",
            "он",
            "больше не",
            ".",
            "?",
            "!",
            ",",
            ":",
            "=",
        ),
        *("key=5", 'rule="x"', "status: ,", "\n", "\n\n", "| a | b |", "- ", " · ", "(later: ", "(replaced by: ", ")"),
        *("[no longer: ", "]", "## Rules\n- ", "## Goal\n", "## Values\n- "),
    ]
)
SUBJECTS = st.sampled_from(["The code", "It", "They", "Tom", "src/kestrel/sync", "The push", "The port", "We"])
VERBS = st.sampled_from(["is", "was pushed for", "pushed", "is not", "must never be", "moved to", "is now", "uses"])
OBJECTS = st.sampled_from(["Tom", "Jane", "src/kestrel/sync", "release-77", "7001", "7005", "Monday", "the code", ""])
SENTENCES = st.lists(st.tuples(SUBJECTS, VERBS, OBJECTS).map(" ".join), min_size=1, max_size=3).map(". ".join)
TEXTS = st.one_of(st.lists(WORDS, min_size=1, max_size=14).map(" ".join), SENTENCES)
PAIRS = st.tuples(st.sampled_from(["status", "code", "src/kestrel/sync"]), OBJECTS).map(": ".join)
RESULTS = st.one_of(TEXTS, st.lists(PAIRS, min_size=1, max_size=3).map(", ".join))


def step(result: str) -> list[Message]:
    return [assistant("", ToolCall("c1", "read", '{"path": "src/kestrel/sync"}')), tool_result("c1", result)]


MESSAGES = st.one_of(
    TEXTS.map(lambda text: [user(text)]),
    TEXTS.map(lambda text: [assistant(text)]),
    RESULTS.map(step),
    TEXTS.map(lambda text: [system(text)]),
)
HISTORIES = st.lists(MESSAGES, min_size=2, max_size=9).map(lambda groups: [one for group in groups for one in group])


@settings(max_examples=10 * settings.default.max_examples)
@given(history=HISTORIES, rounds=st.integers(1, 3), room=st.sampled_from([150, 400, 2_000]))
def test_no_words_end_a_digest_of_a_history_with_an_error(history: list[Message], rounds: int, room: int):
    text = ""
    for _ in range(rounds):
        text = digest_messages(history, room, previous=text)
        assert 0 < len(text) <= room
