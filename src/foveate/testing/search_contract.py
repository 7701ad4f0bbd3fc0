"""Tests of the capability `Searches`."""

from __future__ import annotations

import pytest

from ..core.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, assistant, tool_result, user
from ..errors import NoSuchConversation, StoreError
from ..ports import Database, Head, append
from .rows import chain, erased, record_after

__all__ = ["SearchContract"]

_HOSTILE = [
    '"',
    '""',
    '" OR 1 --',
    "rain OR",
    "NOT",
    "NEAR(rain wind)",
    "words : rain",
    "{words humps} : rain",
    "rain*",
    "^rain",
    "rain AND",
    "((((",
    "-rain",
    "rain + wind",
    "'; DROP TABLE message; --",
    "\\",
    "%_",
    "a\0b",
    "half \ud83d",
    "rain " * 50_000,
    "x" * 200_000,
    '"' + "rain " * 10_000 + '"',
    "a/" * 10_000,
    "?" * 100_000,
]


class SearchContract:
    """Tests of `search`."""

    def test_words_are_found_without_regard_to_case_and_accents(self, store: Database) -> None:
        head = _said(store, "Café RAIN", "rainy", "Straße nach İstanbul", "ΟΔΟΣ")
        assert [_found(store, head, word) for word in ("cafe", "CAFÉ", "rain", "strasse", "istanbul", "οδός")] == [
            [1],
            [1],
            [1],
            [3],
            [3],
            [4],
        ]

    def test_words_of_any_script_are_found(self, store: Database) -> None:
        head = _said(
            store, "数据库连接失败", "サーバーを起動", "서버를 시작했다", "เซิร์ฟเวอร์ล้ม", "हिन्दी भाषा", "ضَرَبَ", "молоко"
        )
        asked = ["连接", "数据失败", "サーバー", "서버", "ล้ม", "हिन्दी", "ضرب", "МОЛОКО"]
        assert [_found(store, head, word) for word in asked] == [[1], [], [2], [3], [4], [5], [6], [7]]

    def test_letters_that_json_has_as_escapes_are_found(self, store: Database) -> None:
        head = _said(store, '{"note": "\\u5931\\u8d25 M\\u00fcller \\ud83d\\ude00"}', "no letters: \\\\u5931")
        assert [_found(store, head, word) for word in ("失败", "müller", "muller", "u5931")] == [[1], [1], [1], [2]]

    def test_words_that_a_hyphen_of_another_script_joins_are_words(self, store: Database) -> None:
        head = _said(store, "בית־ספר חדש", "مــحــمد")
        assert [_found(store, head, word) for word in ("ספר", "בית ספר", "בית־ספר", "محمد")] == [[1], [1], [1], [2]]

    def test_identifier_is_found_whole_and_by_its_parts(self, store: Database) -> None:
        head = _said(store, "see src/foo/bar_baz.py", "src foo and py, bar baz", "call fooBar()", "getHTTPResponse")
        asked = {
            "src/foo/bar_baz.py": [1],
            "bar_baz.py": [1],
            "BAZ": [2, 1],
            "bar_baz": [2, 1],
            "fooBar": [3, 1],
            "foobar": [3],
            "foo_bar": [3, 1],
            "call foobar": [3],
            '"call foobar"': [3],
            "bar": [3, 2, 1],
            "http": [4],
            "gethttpresponse": [4],
        }
        assert {
            query: [one.position for one in store.search(head, query) if one.score == 1] for query in asked
        } == asked

    def test_words_in_quotation_marks_stand_together(self, store: Database) -> None:
        head = _said(store, "the wind and the rain", "rain wind", "wind, rain", "Wind\nRain again")
        assert _found(store, head, '"wind rain"') == [4, 3]
        assert _found(store, head, '"wind rain" again') == [4, 3]
        assert _found(store, head, '"rain wind"') == [2]

    def test_hits_with_every_word_come_first(self, store: Database) -> None:
        head = _said(store, "wind rain snow", "rain", "rain wind", "snow rain wind", "sun", "rain hail")
        found = store.search(head, "rain wind snow")
        assert [one.position for one in found] == [4, 1, 3, 6, 2]
        assert [one.score for one in found][:2] == [1, 1]
        assert sorted((one.score for one in found), reverse=True) == [one.score for one in found]

    def test_adjacent_words_rank_first(self, store: Database) -> None:
        head = _said(store, "much rain_wind", "wind and rain", "a rain wind b", *["rain, no wind"] * 3, "rain")
        assert _found(store, head, "rain wind") == [3, 1, 6, 5, 4, 2, 7]
        assert _found(store, head, "rain wind", limit=1) == [3]
        assert _found(store, head, "rain wind", limit=3) == [3, 1, 6]
        assert {found.score for found in store.search(head, "rain wind", limit=6)} == {1}

    def test_rare_word_weighs_more_than_a_common_one(self, store: Database) -> None:
        head = _said(store, "needle", *["hay"] * 9)
        assert _found(store, head, "hay needle", limit=2) == [1, 10]

    def test_search_covers_calls_and_results_not_reasoning(self, store: Database) -> None:
        head = store.open("acme", "one")
        said = [
            assistant("", ToolCall("call_1", "read_file", '{"path":"a\\nb/c.txt","deep":{"list":[4711,"inner"]}}')),
            Message("tool", tool_result("call_1", "content of it", Media("image/png", "base64", "aGVsbG8")).parts),
            assistant("aloud", reasoning=Reasoning("silently", signature="sealed")),
            assistant("", ToolCall("call_2", "run", "no json, cut sho")),
            Message("assistant", (Opaque("anthropic", "odd", '{"type":"odd"}'), Text("beside"))),
        ]
        head = append(store, head, chain(said, head))
        asked = ["read_file", "b/c.txt", "nb", "deep", "4711", "inner", "content", "aGVsbG8", "aloud", "silently"]
        assert [_found(store, head, word) for word in asked] == [[1], [1], [], [1], [1], [1], [2], [], [3], []]
        assert [_found(store, head, word) for word in ("sealed", "cut sho", "odd", "beside")] == [[], [4], [], [5]]

    def test_fork_finds_the_common_past_and_nothing_of_the_other_course(self, store: Database) -> None:
        head = _said(store, "rain one", "rain two", "rain three")
        fork = store.fork(head, "fork", 2, 0)
        fork = append(store, fork, chain([user("rain fork")], fork))
        deeper = store.fork(fork, "deeper", 3, 0)
        deeper = append(store, deeper, chain([user("rain deeper")], deeper))
        head = append(store, head, chain([user("rain four")], head))
        assert _found(store, head, "rain") == [4, 3, 2, 1]
        assert _found(store, fork, "rain") == [3, 2, 1]
        assert _found(store, deeper, "rain") == [4, 3, 2, 1]
        assert [_found(store, one, "three") for one in (head, fork, deeper)] == [[3], [], []]
        assert [_found(store, one, "deeper") for one in (head, fork, deeper)] == [[], [], [4]]

    def test_course_that_was_departed_from_is_found_under_its_new_name_only(self, store: Database) -> None:
        head = _said(store, "rain", "wind", "snow")
        assert _found(store, head, "snow") == [3]
        new = store.repoint(head, 1, 0, "kept")
        new = append(store, new, chain([user("hail")], new))
        kept = store.open("acme", "kept")
        assert [_found(store, new, word) for word in ("rain", "wind", "snow", "hail")] == [[1], [], [], [2]]
        assert [_found(store, kept, word) for word in ("rain", "wind", "snow", "hail")] == [[1], [2], [3], []]

    def test_search_reaches_no_further_than_its_head(self, store: Database) -> None:
        old = _said(store, "rain")
        new = append(store, old, chain([user("rain again")], old))
        assert (_found(store, new, "rain"), _found(store, old, "rain")) == ([2, 1], [1])

    def test_search_finds_nothing_of_other_conversations(self, store: Database) -> None:
        ours = _said(store, "rain")
        others = [store.open("acme", "two"), store.open("zeta", "one")]
        others = [append(store, head, chain([user("dry"), user(f"secret {n}")], head)) for n, head in enumerate(others)]
        assert [_found(store, head, "rain") for head in (ours, *others)] == [[1], [], []]
        assert [_found(store, head, "secret") for head in (ours, *others)] == [[], [2], [2]]

    def test_erased_message_is_never_found(self, store: Database) -> None:
        head = store.open("acme", "one")
        rows = chain([user("rain one"), user("rain two"), user("rain three")], head)
        head = append(store, head, [rows[0], erased(rows[1]), rows[2]])
        assert _found(store, head, "rain") == [3, 1]
        assert _found(store, head, "two") == []

    def test_search_returns_at_most_the_limit(self, store: Database) -> None:
        head = _said(store, *[f"rain {n}" for n in range(30)])
        assert _found(store, head, "rain", limit=3) == [30, 29, 28]
        assert len(store.search(head, "rain")) == 20
        assert len(store.search(head, "rain", limit=1000)) == 30
        assert [store.search(head, "rain", limit=limit) for limit in (0, -1)] == [[], []]
        assert _found(store, head, "rain 7 8", limit=4) == [9, 8, 30, 29]

    @pytest.mark.parametrize("query", ["", " ", "\n", "...", "?!", "_", '" "', "()"])
    def test_query_without_a_word_finds_nothing(self, store: Database, query: str) -> None:
        assert store.search(_said(store, "rain", "", "..."), query) == []

    @pytest.mark.parametrize("query", _HOSTILE, ids=range(len(_HOSTILE)))
    def test_no_query_is_taken_for_anything_but_words(self, store: Database, query: str) -> None:
        head = _said(store, "rain", "wind", "sun")
        assert {one.position for one in store.search(head, query)} <= {1, 2}
        assert _found(store, head, "sun") == [3]
        assert store.verify(head) == []

    def test_search_covers_the_beginning_of_a_giant_message(self, store: Database) -> None:
        head = _said(store, "early " + "x " * 32_000, "x " * 40_000 + "late")
        assert (_found(store, head, "early"), _found(store, head, "late")) == ([1], [])

    def test_search_is_equal_before_and_after_indexing(self, store: Database) -> None:
        head = _said(store, *[f"rain {n}" for n in range(100)])
        for n in range(3):
            head = store.commit(append(store, head, chain([user(f"wind {n}")] * 40, head)), *record_after(head))
        assert _found(store, head, "wind 2", limit=1) == [220]
        assert _found(store, head, "rain 50", limit=1) == [51]
        assert len(store.search(head, "wind", limit=500)) == 120

    def test_search_needs_an_open_store_and_a_conversation_of_it(self, store: Database) -> None:
        head = _said(store, "rain")
        with pytest.raises(NoSuchConversation):
            store.search(Head("acme", "two", 77, 1), "rain")
        store.close()
        with pytest.raises(StoreError, match="closed"):
            store.search(head, "rain")


def _said(store: Database, *texts: str) -> Head:
    """Create a conversation `one` with these user messages; return its head."""
    head = store.open("acme", "one")
    return append(store, head, chain(map(user, texts), head))


def _found(store: Database, head: Head, query: str, limit: int = 20) -> list[int]:
    return [found.position for found in store.search(head, query, limit)]
