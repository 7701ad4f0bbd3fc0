"""The list, a conversation's page, errors, and the files that pages load."""

from __future__ import annotations


def test_list_links_to_a_conversation_whose_name_has_a_slash(client):
    text = client.get("/").text
    assert 'href="/c/store/a~2Fb"' in text
    assert client.get("/c/store/a~2Fb").status_code == 200


def test_error_for_a_script_is_its_text_alone(client):
    """A script shows the answer to a person: the words of a whole page do not belong there."""
    answer = client.get("/c/store/none", headers={"x-part": "1"})
    assert (answer.status_code, answer.text) == (404, "There is no conversation 'none'.")


def test_missing_conversation_is_a_page_with_status_404(client):
    answer = client.get("/c/store/none")
    assert answer.status_code == 404
    assert "There is no conversation &#39;none&#39;." in answer.text
