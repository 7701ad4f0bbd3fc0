"""Letters that JSON has as escapes."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from foveate.core.json_escapes import decode_escapes


def test_escapes_of_letters_are_decoded():
    text = '{"供应商": "müde 👩🏽‍💻 क्षि مؤسّسة"}'
    assert decode_escapes(json.dumps(json.loads(text))) == text


def test_escapes_of_ascii_and_of_invisible_characters_stay():
    text = r'"\u0022 \u000a \\u4f9b \u202e \ud83d \ude00 \u0000 \u12 \n"'
    assert decode_escapes(text) == text


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6))
def test_decoded_json_has_the_same_value_on_as_many_lines(value):
    text = json.dumps(value, indent=1)
    decoded = decode_escapes(text)
    assert json.loads(decoded) == value
    assert decoded.count("\n") == text.count("\n")
