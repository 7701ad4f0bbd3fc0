"""The rows of a conversation's page name what was called."""

from __future__ import annotations

from clients import client_of
from prepared import kinds, play

from foveate.inspector import build_app


def test_a_row_names_the_tools_that_the_assistant_calls(tmp_path):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    play(url, "kinds", kinds())
    with client_of(build_app(url)) as client:
        text = client.get("/c/store/kinds").text
    assert '<span class="who">assistant <b>read_table</b></span>' in text
