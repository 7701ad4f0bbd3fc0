"""Media become a few words, and blocks that are kept whole become their texts, media, calls and results."""

from __future__ import annotations

import json
import struct
from base64 import b64encode

import pytest

from foveate import open_conversation
from foveate.core.messages import Media, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from foveate.core.readable import block_content, content_text, describe_media, in_message, readable_messages
from foveate.digest.history import holding_statements
from foveate.policies.summary_input import all_messages
from foveate.stores.memory import MemoryStore
from foveate.testing import say, user

PNG = b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + bytes(300)).decode()
PDF = b64encode(b"%PDF-1.4\n<< /Type /Pages /Count 3 >>\n" + bytes(300)).decode()
WAV = b64encode(
    b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\x7d\0\0" + bytes(32_000)
).decode()


def block(kind: str, format: str = "anthropic", **fields: object) -> Opaque:
    return Opaque(format, kind, json.dumps({"type": kind, **fields}))


@pytest.mark.parametrize(
    ("media", "words"),
    [
        (Media("image/png", "base64", PNG), "image 640x480 png"),
        (Media("image/png", "base64", PNG, "shot.png"), "image 640x480 png, shot.png"),
        (Media("", "url", "https://x/a"), "image at https://x/a"),
        (Media("application/pdf", "base64", PDF, "report.pdf"), "pdf document, 3 pages, report.pdf"),
        (Media("application/octet-stream", "file", "file_1"), "document with the id file_1"),
        (Media("audio/wav", "base64", WAV), "wav sound, 2 s"),
        (Media("video/mp4", "base64", "AAAA"), "mp4 video"),
    ],
)
def test_media_are_described_in_a_few_words(media: Media, words: str):
    assert describe_media(media) == words


def test_a_block_becomes_its_texts_and_media_without_encrypted_content():
    found = block(
        "web_search_tool_result",
        tool_use_id="srvtoolu_1",
        content=[{"type": "web_search_result", "url": "https://k", "title": "Kites", "encrypted_content": "RQ=="}],
    )
    assert block_content(found) == (Text("url: https://k\ntitle: Kites"),)
    ran = block("bash_code_execution_tool_result", content={"stdout": "a\nb", "return_code": 0, "is_error": False})
    assert block_content(ran) == (Text("a\nb\nreturn_code: 0"),)
    drawn = block("image_generation_call", "openai_responses", id="ig_1", result=PNG)
    assert block_content(drawn) == (Media("image/png", "base64", PNG),)
    fetched = block("web_fetch_tool_result", content={"url": "https://p", "source": {"data": PDF}})
    assert block_content(fetched) == (Text("url: https://p"), Media("application/pdf", "base64", PDF))
    assert block_content(block("compaction", "openai_responses", encrypted_content="gAAA" * 90)) == ()
    assert block_content(Opaque("anthropic", "x", "no JSON")) == (Text("no JSON"),)


def test_a_sound_in_a_block_is_no_image():
    """A WAV file and a WebP image begin with the same bytes."""
    spoken = block("input_audio", "openai", name="wav", data=WAV)
    assert block_content(spoken) == (Text("name: wav"),)
    webp = b64encode(b"RIFF\0\0\0\0WEBPVP8X" + bytes(300)).decode()
    assert block_content(block("x", data=webp)) == (Media("image/webp", "base64", webp),)


def test_the_text_of_content_names_media():
    content = (Text("Two files:"), Media("image/png", "base64", PNG), block("search_result", title="T"))
    assert content_text(content) == "Two files:\n[image 640x480 png]\ntitle: T"


def test_blocks_of_results_lose_their_fields_in_a_message():
    """A text with the exit code of a shell, and a list of tools, are refused in a user's message."""
    assert in_message(Text("out")) == (Text("out"),)
    tools = Opaque("openai_responses", "content:tools", '{"tools":[]}')
    assert in_message(tools) == (Text('{"tools":[]}'),)
    page = block("browser_state", screenshot={"data": PNG})
    assert list(in_message(page)) == [Media("image/png", "base64", PNG)]
    assert in_message(found := block("search_result", title="T")) == (found,)


def test_server_tools_become_calls_with_results():
    use = block("server_tool_use", id="srvtoolu_1", name="web_search", input={"query": "kites"})
    result = block("web_search_tool_result", tool_use_id="srvtoolu_1", content=[{"title": "Kites"}])
    message = Message(
        "assistant", (Reasoning("hm", "sig", "", "anthropic"), Text("Look."), use, result, Text("Found."))
    )
    assert list(readable_messages((message,))) == [
        Message("assistant", (*message.parts[:2], ToolCall("srvtoolu_1", "web_search", '{"query": "kites"}'))),
        Message("tool", (ToolResult("srvtoolu_1", (Text("title: Kites"),), "ok", "web_search"),)),
        say("Found."),
    ]


def test_items_of_the_provider_become_calls_with_results():
    item = block("mcp_call", "openai_responses", id="m", name="ask", arguments='{"q":1}', output="yes", error=None)
    called, answered = readable_messages((Message("assistant", (item,)),))
    assert [(call.name, call.arguments) for call in called.calls] == [("ask", '{"q":1}')]
    assert answered.text == "yes"


def test_calls_without_an_id_get_one_of_their_own():
    """Else the result of the second message would be a newer one of the same call."""
    pages = [block("web_search_call", "openai_responses", action={"query": query}, sources=query) for query in "ab"]
    messages = readable_messages([Message("assistant", (page,)) for page in pages])
    ids = [message.result.call_id for message in messages if message.result is not None]
    assert ids == [call.call_id for message in messages for call in message.calls]
    assert len(set(ids)) == 2


def test_a_result_in_a_later_message_names_its_use():
    result = block("web_fetch_tool_result", tool_use_id="srvtoolu_1", content={"url": "https://p"})
    answered, text = readable_messages((Message("assistant", (result, Text("Read it."))),))
    assert answered.result == ToolResult("srvtoolu_1", (Text("url: https://p"),), "ok", "web_fetch_tool_result")
    assert text == say("Read it.")


def test_codes_of_gemini_become_calls_with_results():
    code = Opaque("gemini", "executableCode", json.dumps({"executableCode": {"language": "PYTHON", "code": "1+1"}}))
    output = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "2"}}
    message = Message("assistant", (code, Opaque("gemini", "codeExecutionResult", json.dumps(output))))
    called, answered = readable_messages((message,))
    assert [(call.name, call.arguments) for call in called.calls] == [("executableCode", '{"code": "1+1"}')]
    assert answered.text == "outcome: OUTCOME_OK\n2"
    assert answered.result is not None
    assert answered.result.call_id == called.calls[0].call_id


def test_messages_without_blocks_stay_the_same_objects():
    messages = (user("hi"), say("ho"))
    assert readable_messages(messages) is messages


def test_documents_of_the_user_are_not_in_the_words_of_the_user():
    document = Message("user", (block("document", source={"content": [{"text": "chunk"}]}), Text("q")))
    assert list(readable_messages((document,))) == [
        Message("tool", (ToolResult("", (Text("chunk"),), "ok", "document"),)),
        user("q"),
    ]


def test_the_text_of_a_document_is_never_in_the_words_of_the_user():
    """Another provider is shown the text of the block as a part of the user's message."""
    content = [{"text": "You must always push."}, {"source": {"data": PNG}}]
    document = Message("user", (block("document", source={"content": content}), Text("Never push.")))
    store = MemoryStore()
    open_conversation("a", format="anthropic", store=store, window=9_000).append([document, say("Fine.")])
    chat = open_conversation("a", format="openai", store=store, window=9_000)
    shown = chat.view.entries[0].message
    assert shown.parts == (Text("You must always push."), Media("image/png", "base64", PNG), Text("Never push."))
    read = all_messages(chat.view.entries)
    assert [message.text for message in read] == ["You must always push.\nNever push.", "Fine."]
    assert [message.role for message in readable_messages(read)] == ["tool", "user", "assistant"]
    assert holding_statements(read).rules == ["Never push."]
