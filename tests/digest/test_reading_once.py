"""The digest of a long history reads words, replies and paragraphs no more often than it needs to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from foveate import Message, assistant, user
from foveate.core.caches import clear_caches
from foveate.digest import names
from foveate.digest.history import confirmations, digest_messages, reading, terms, weights

NOUNS = ["cache", "index", "parser", "queue", "router", "schema", "socket", "thread", "worker", "folder", "ledger"]
ROOM = 1_500


def calls_of(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[str]:
    """Return a list that grows with the first argument of each call of a function."""
    calls: list[str] = []
    function: Callable[..., object] = getattr(module, name)

    def call(text: str, *rest: object) -> object:
        calls.append(text)
        return function(text, *rest)

    monkeypatch.setattr(module, name, call)
    return calls


def small_talk(count: int) -> Sequence[Message]:
    """Return a user's remarks and replies that ask. Nothing in them binds or has a value."""
    talk: list[Message] = []
    for n in range(count):
        one, other = NOUNS[n % 11], NOUNS[n // 11 % 11]
        talk += [user(f"The {one} looks a bit like the {other} today."), assistant(f"Shall I go on with the {other}?")]
    return talk


def test_each_word_is_read_once_for_all_sentences():
    clear_caches()
    sentences = [f"The {one} of the {other} grew in spring." for one in NOUNS for other in NOUNS]
    for sentence in sentences:
        terms.terms_of(sentence)
    assert terms.terms_of.cache_info().misses == len(sentences) == 121
    assert terms._read_word.cache_info().misses == len({*NOUNS, "The", "of", "the", "grew", "in", "spring"})


def test_a_user_is_compared_only_with_replies_that_may_confirm(monkeypatch):
    read = calls_of(monkeypatch, confirmations, "terms_of")
    digest_messages([*small_talk(20), user("The limit is 40."), assistant("The limit is 40 for now.")], ROOM)
    assert read == ["The limit is 40.", "The limit is 40 for now."]


def test_no_paragraph_is_sieved_if_any_statement_may_count(monkeypatch):
    sieved = calls_of(monkeypatch, reading, "possible_signs")
    history = small_talk(3_000)
    assert sum(len(message.text) for message in history) > 2 * reading._HELD * reading._HELD_LEAST
    digest_messages(history, ROOM)
    assert sieved == []


def test_the_question_of_a_reply_is_cut_only_for_a_short_answer(monkeypatch):
    asked = calls_of(monkeypatch, reading, "_last_question")
    digest_messages([*small_talk(20), assistant("Which port?"), user("8080")], ROOM)
    assert asked == ["Which port?"]


@given(st.text("abXYZ019_./-#@ ,’éж×\ud800\n\x1f", max_size=80))
def test_names_are_the_same_with_the_pattern_for_all_scripts(text: str):
    wide = [names._name_in(run) for run, _ in names._wide_run().findall(text)]
    assert list(names.names_in(text)) == list(filter(None, wide))


@example("C# costs $5,000 = 5%, it's for a/b.c: €7€ → b-2.")
@given(st.text("abXY09_./:@#&+%'’,- $€=→é\"", max_size=40))
def test_terms_without_wide_letters_are_found_by_the_shorter_pattern(text: str):
    found = [[match.group("word", "link") for match in one.finditer(text)] for one in (terms._NARROW_TERM, terms._TERM)]
    assert found[0] == found[1]


@example('Ask Bob. The "new limit" of 5,000 is for Ann! Éva «a b» 7.')
@given(st.text('abXY09,:!?. %"“”`«»é', max_size=40))
def test_specifics_without_identifiers_are_found_by_the_shorter_pattern(text: str):
    if not weights._JOINED.search(text, 1):
        found = [
            [match.span() for match in one.finditer(text, 1)] for one in (weights._SPECIFIC, weights._SPECIFIC_UNJOINED)
        ]
        assert found[0] == found[1]
