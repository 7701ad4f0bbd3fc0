"""Recognizing the conversation of a request by the list alone, or by the ids that a client sends."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from list_clients import ANTHROPIC, CHAT, RESPONSES, Proxy, Served, Wire, assistant, chat_body, result, user

from foveate.core.messages import Message
from foveate.errors import BadMessage
from foveate.formats import get_format
from foveate.open import open_store
from foveate.ports import Store
from foveate.proxy import sent_lists
from foveate.proxy.recognition import Recognizer
from foveate.requests import RequestBody

KEY = {"authorization": "Bearer sk-test-1"}


@pytest.fixture
def store() -> Store:
    return open_store("memory:")


@pytest.fixture
def proxy(store: Store) -> Proxy:
    return Proxy(store)


def serve(proxy: Proxy, messages: list[Wire], reply: Wire, **headers: str) -> str:
    """Serve a request with its reply; return the name of the conversation."""
    served = proxy.send(CHAT, chat_body(messages), {**KEY, **headers})
    assert served is not None
    served.reply(reply)
    return served.name


def shown(served: Served | None) -> str:
    """Return the messages that the model sees."""
    assert served is not None
    return json.dumps(served.body["messages"])


# ------------------------------------------------------------------------------------------------------- lists alone


def test_a_growing_list_stays_in_one_conversation(proxy: Proxy):
    messages = [user("Which log has an error?")]
    names = set()
    for number in range(30):
        reply = assistant(None, f"call_{number}")
        names.add(serve(proxy, messages, reply))
        messages += [reply, result(f"call_{number}", f"log {number}: all is well")]
    assert len(names) == 1
    assert proxy.names() == sorted(names)
    assert proxy.forks == []


def test_items_that_come_again_are_not_read_again(proxy: Proxy, monkeypatch: pytest.MonkeyPatch):
    messages, read, made = [user("Which log has an error?")], list[str](), sent_lists.key_of

    def key_of(message: Message) -> sent_lists.Key:
        read.append(message.role)
        return made(message)

    monkeypatch.setattr(sent_lists, "key_of", key_of)
    for number in range(8):
        reply = assistant(None, f"call_{number}")
        read.clear()
        serve(proxy, messages, reply)
        messages += [reply, result(f"call_{number}", f"log {number}: all is well")]
    assert sorted(read) == ["assistant", "tool"]  # The new items. No stored message is read.


def test_a_list_behind_the_newest_reply_is_recognized_without_reading(proxy: Proxy, monkeypatch: pytest.MonkeyPatch):
    messages, reads = [user("Which log has an error?")], list[str]()
    store = proxy.store

    def messages_of(*arguments: Any) -> Any:
        reads.append("messages")
        return store.messages(*arguments)

    def open(*arguments: Any, **options: Any) -> Any:
        reads.append("open")
        return store.open(*arguments, **options)

    names = {serve(proxy, messages, assistant("Done."))}
    messages += [assistant("Done."), user("Go on.")]
    monkeypatch.setitem(vars(proxy.recognizer), "_store", SimpleNamespace(open=open, messages=messages_of))
    for number in range(5):
        reply = assistant("Done.")
        names.add(serve(proxy, messages, reply))
        messages += [reply, user(f"Go on, {number}.")]
    assert (len(names), reads) == (1, [])
    serve(proxy, messages[:3], assistant("Something else."))  # Back to an older place.
    assert "messages" in reads


def test_a_second_list_behind_a_reply_is_compared_in_the_store(proxy: Proxy):
    messages = [user("Fix the tests."), assistant("Which?")]
    name = serve(proxy, messages[:1], messages[1])
    sent = proxy.send(CHAT, chat_body([*messages, user("All.")]), KEY)
    assert sent is not None
    assert sent.name == name
    assert serve(proxy, [user("Fix the tests."), assistant("Which?"), user("None.")], assistant("Fine.")) == name
    serve(proxy, [*messages, user("All.")], assistant("Done."))
    text = shown(proxy.send(CHAT, chat_body([*messages, user("All."), assistant("Done."), user("Thanks.")]), KEY))
    assert ("All." in text, "None." in text) == (True, False)


def test_a_reply_that_others_went_on_from_is_compared_in_the_store(store: Store):
    first, second = Proxy(store), Proxy(store)
    messages = [user("Fix the tests.")]
    name = serve(first, messages, assistant("Which?"))
    messages += [assistant("Which?"), user("All.")]
    assert serve(second, messages, assistant("Done.")) == name
    assert serve(first, [*messages[:2], user("The fast ones.")], assistant("Done too.")) == name
    text = shown(second.send(CHAT, chat_body([*messages, assistant("Done."), user("Thanks.")]), KEY))
    assert "Done." in text
    assert "The fast ones." not in text


def test_equal_first_messages_of_two_clients_get_two_conversations(proxy: Proxy):
    ends: dict[str, list[str]] = {}
    lists = {client: [user("Fix the tests.")] for client in "ab"}
    for turn in range(5):
        for client, messages in lists.items():
            reply = assistant(f"{client} says {turn}")
            ends.setdefault(client, []).append(serve(proxy, messages, reply))
            messages += [reply, user("Go on.")]
    assert len(set(ends["a"])) == len(set(ends["b"])) == 1
    assert ends["a"] != ends["b"]
    assert proxy.forks == []
    assert "b says" not in shown(proxy.send(CHAT, chat_body(lists["a"]), KEY))


@pytest.mark.parametrize("workers", [1, 2])
def test_lists_that_differ_in_their_first_message_keep_apart(store: Store, workers: int):
    """Scripts ask the same about several things, and the replies are the same words."""
    proxies, names = [Proxy(store) for _ in range(workers)], dict[str, set[str]]()
    lists = {thing: [user(f"Is {thing} well?")] for thing in ("the worker", "the reader", "the writer")}
    for number in range(8):
        for place, (thing, messages) in enumerate(lists.items()):
            proxy = proxies[(number + place) % workers]
            names.setdefault(thing, set()).add(serve(proxy, messages, assistant("Yes.")))
            messages += [assistant("Yes."), user(f"And in hour {number}?")]
    assert [len(each) for each in names.values()] == [1, 1, 1]
    assert proxies[0].names() == sorted(name for each in names.values() for name in each)


def test_equal_requests_at_the_same_time_get_two_conversations(proxy: Proxy):
    first, second = (proxy.send(CHAT, chat_body([user("Fix the tests.")]), KEY) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.name != second.name
    first.reply(assistant("One."))
    second.reply(assistant("Two."))
    for served, text in ((first, "One."), (second, "Two.")):
        name = serve(proxy, [user("Fix the tests."), assistant(text), user("Go on.")], assistant("Done."))
        assert name == served.name


def test_a_first_request_without_an_answer_is_retried_in_place(proxy: Proxy):
    served = proxy.send(CHAT, chat_body([user("Fix the tests.")]), KEY)
    assert served is not None
    name = served.name
    del served  # The provider was overloaded.
    assert serve(proxy, [user("Fix the tests.")], assistant("Done.")) == name


def test_a_first_request_is_retried_in_place_while_its_answer_ends(proxy: Proxy):
    """The client has the whole answer, and the proxy still works on it."""
    served = proxy.send(CHAT, chat_body([user("Fix the tests.")]), KEY)
    assert served is not None
    proxy.recognizer.note_answer("", served.name)
    assert serve(proxy, [user("Fix the tests.")], assistant("Done.")) == served.name


def test_a_reply_that_is_recorded_meanwhile_is_recognized(proxy: Proxy, monkeypatch: pytest.MonkeyPatch):
    """On a WebSocket, the next frame comes while the first reply is written: before it is read, and after."""
    sent = proxy.send(CHAT, chat_body([user("Fix the tests.")]), KEY)
    assert sent is not None
    served = sent._replace(note=lambda *_: None)  # That follows later still.
    begin = Recognizer._begin

    def begin_late(recognizer: Recognizer, request: Any) -> tuple[str, str]:
        served.reply(assistant(None, "call_1"))
        return begin(recognizer, request)

    monkeypatch.setattr(Recognizer, "_begin", begin_late)
    messages = [user("Fix the tests."), assistant(None, "call_1"), result("call_1", "3 failed")]
    assert serve(proxy, messages, assistant("It was the clock.")) == served.name
    assert proxy.names() == [served.name]


def test_a_restarted_proxy_recognizes_the_list(store: Store):
    messages = [user("Fix the tests."), assistant(None, "call_1"), result("call_1", "3 failed")]
    name = serve(Proxy(store), messages, assistant("It was the clock."))
    messages += [assistant("It was the clock."), user("Thanks. And now?")]
    assert serve(Proxy(store), messages, assistant("Nothing.")) == name


def test_a_long_list_is_recognized_after_a_restart(store: Store):
    messages = [user("Read all logs.")]
    name = ""
    for number in range(20):
        reply = assistant(None, *(f"call_{number}_{part}" for part in range(12)))
        name = serve(Proxy(store), messages, reply)
        messages += [reply, *(result(f"call_{number}_{part}", "well") for part in range(12))]
    assert store.names("") == [name]


def test_a_rewind_finds_its_conversation_after_a_restart(store: Store):
    messages = [user("Fix the tests.")]
    for turn in range(20):
        reply = assistant(f"Step {turn}.")
        name = serve(Proxy(store), messages, reply)
        messages += [reply, user(f"Go on, {turn}.")]
    proxy = Proxy(store)
    assert serve(proxy, [*messages[:4], user("No, stop.")], assistant("Stopped.")) == name
    text = shown(proxy.send(CHAT, chat_body([*messages[:4], user("No, stop.")]), KEY))
    assert "Step 1." in text
    assert "Step 7." not in text


def test_a_sliding_window_stays_in_its_conversation(proxy: Proxy):
    messages = [user("Talk about 0.")]
    names = set()
    for turn in range(1, 30):
        reply = assistant(f"About {turn - 1}: it is a number.")
        names.add(serve(proxy, messages[-7:], reply))
        messages += [reply, user(f"Talk about {turn}.")]
    assert len(names) == 1


def test_white_space_that_a_client_trims_does_not_matter(proxy: Proxy):
    messages = [user("Fix the tests.")]
    names = set()
    for turn in range(5):
        names.add(serve(proxy, messages, assistant(f"  Step {turn}.\n\n")))
        messages += [assistant(f"Step {turn}."), user("Go on.")]
    assert len(names) == 1


def test_replies_that_a_client_changes_stay_in_one_conversation(store: Store):
    """smolagents adds the calls as a text to each reply. Its list got another conversation every second request."""
    messages = [user("Which log has an error?"), assistant("I read all of them."), user("Go on.")]
    names = set()
    for proxy in (Proxy(store), Proxy(store)):  # A restart.
        for number in range(10):
            names.add(serve(proxy, messages, assistant(f"I read log {number}.")))
            messages += [assistant(f"I read log {number}.\nCalls: read({number})"), user(f"Log {number}: all is well.")]
    assert store.names("") == sorted(names)
    assert len(names) == 1


def test_examples_at_the_beginning_do_not_join_requests(proxy: Proxy):
    examples = [user("2 + 2"), assistant("4")]
    first = serve(proxy, [*examples, user("3 + 3")], assistant("6"))
    second = serve(proxy, [*examples, user("5 + 5")], assistant("10"))
    assert first != second
    assert serve(proxy, [*examples, user("3 + 3"), assistant("6"), user("And 4?")], assistant("8")) == first


def test_a_list_that_was_never_recorded_still_goes_on(proxy: Proxy):
    messages = [user("Fix the tests.")]
    names = set()
    for turn in range(6):
        served = proxy.send(CHAT, chat_body(messages), KEY)
        assert served is not None
        names.add(served.name)
        messages += [assistant(f"Step {turn}."), user(f"Go on, {turn}.")]
    assert len(names) == 1


def test_many_clients_with_one_beginning_all_find_theirs(store: Store):
    names = [serve(Proxy(store), [user("Solve it.")], assistant(f"I am {client}.")) for client in range(40)]
    assert len(set(names)) == 40
    for client, name in enumerate(names):
        messages = [user("Solve it."), assistant(f"I am {client}."), user("Go on.")]
        assert serve(Proxy(store), messages, assistant(f"Done by {client}.")) == name


# ---------------------------------------------------------------------------------------------- owners and tenants


def test_another_credential_gets_another_conversation(proxy: Proxy):
    messages = [user("Fix the tests."), assistant("Done."), user("Thanks.")]
    mine = serve(proxy, messages, assistant("You are welcome."))
    messages += [assistant("You are welcome."), user("Bye.")]
    assert serve(proxy, messages, assistant("Bye."), authorization="Bearer sk-test-2") != mine


def test_a_session_of_another_credential_is_another_conversation(proxy: Proxy):
    session = {"x-claude-code-session-id": "82f2baa7-370c-4ed5-86ba-8a1a5d601906"}
    mine = serve(proxy, [user("My secret is 42.")], assistant("I keep it."), **session)
    served = proxy.send(CHAT, chat_body([user("What is the secret?")]), {"authorization": "Bearer sk-other", **session})
    assert served is not None
    assert served.name != mine
    assert "42" not in shown(served)


def test_a_name_holds_neither_the_credential_nor_its_plain_hash(proxy: Proxy):
    name = serve(proxy, [user("Hello")], assistant("Hello"), **{"session-id": "s1"})
    other = serve(proxy, [user("Hello")], assistant("Hello"), **{"session-id": "s2"})
    assert "sk-test-1" not in name
    assert name.rpartition(".")[2] != other.rpartition(".")[2], "The hash has the session as its salt."


def test_tenants_of_a_store_share_nothing(proxy: Proxy):
    served = proxy.send(CHAT, chat_body([user("Hello")]), KEY, tenant="a")
    assert served is not None
    served.reply(assistant("Hello, a."))
    again = proxy.send(CHAT, chat_body([user("Hello"), assistant("Hello, a."), user("Go on.")]), KEY, tenant="b")
    assert again is not None
    assert len(proxy.names("a")) == len(proxy.names("b")) == 1
    assert again.recognized.reason == "The conversation is new."


def test_a_token_that_is_renewed_stays_the_same_owner(proxy: Proxy):
    account = json.dumps({"device_id": "d", "account_uuid": "u-1", "session_id": "s-1"})
    names = set()
    for token in ("sk-ant-oat01-monday", "sk-ant-oat01-tuesday"):
        body = {"model": "claude-x", "messages": [user("Hello")], "tools": [{"name": "run"}]}
        served = proxy.send(ANTHROPIC, {**body, "metadata": {"user_id": account}}, {"authorization": f"Bearer {token}"})
        assert served is not None
        names.add(served.name)
        del served
    assert len(names) == 1


# ------------------------------------------------------------------------------------------------- sessions and agents


def test_agents_of_a_session_are_its_children(proxy: Proxy):
    session = {"x-claude-code-session-id": "s1"}
    main = serve(proxy, [user("Find it.")], assistant(None, "call_1"), **session)
    served = proxy.send(CHAT, chat_body([user("Search.")]), {**KEY, **session, "x-claude-code-agent-id": "a7c9"})
    assert served is not None
    assert served.name == f"{main}/a7c9"
    assert served.recognized.parent == main


def test_a_thread_of_codex_is_a_child_of_its_session(proxy: Proxy):
    ids = {"session-id": "s1", "thread-id": "s1"}
    main = serve(proxy, [user("Find it.")], assistant("Found."), **ids)
    assert "/" not in main
    assert serve(proxy, [user("Search.")], assistant("Found."), **{**ids, "thread-id": "t2"}) == f"{main}/t2"


@pytest.mark.parametrize(
    "user_id",
    [
        '{"device_id": "d1", "account_uuid": "", "session_id": "s-1"}',
        "user_d1_account__session_s-1",
    ],
)
def test_the_user_id_of_claude_code_names_the_session(proxy: Proxy, user_id: str):
    body = {"model": "claude-x", "messages": [user("Hello")], "tools": [{"name": "run"}]}
    served = proxy.send(ANTHROPIC, {**body, "metadata": {"user_id": user_id}}, KEY)
    assert served is not None
    assert served.name.startswith("s-1.")


def test_a_cache_key_that_is_no_uuid_names_no_session(proxy: Proxy):
    for cache_key, start in (("my-app", "list-"), ("01a20608-84ce-78aa-b083-188c196f9d26", "01a20608-")):
        body = {"model": "gpt-5", "input": "Hello", "tools": [{"type": "function", "name": "run"}]}
        served = proxy.send(RESPONSES, {**body, "prompt_cache_key": cache_key}, KEY)
        assert served is not None
        assert served.name.startswith(start)


def test_side_requests_of_a_session_leave_its_conversation_alone(proxy: Proxy):
    session = {"x-session-id": "s1"}
    title = {"model": "gpt-5-mini", "messages": [user("Generate a title"), user("Fix the tests.")]}
    assert proxy.send(CHAT, title, {**KEY, **session}) is None
    messages = [user("Fix the tests.")]
    main = serve(proxy, messages, assistant(None, "call_1"), **session)
    side = serve(proxy, [user("Search the web for: tests")], assistant("Nothing."), **session)
    assert side == f"{main}/list-2"
    messages += [assistant(None, "call_1"), result("call_1", "3 failed")]
    assert serve(proxy, messages, assistant("Done."), **session) == main
    assert proxy.forks == []


def test_a_summary_of_a_conversation_goes_on_in_it(proxy: Proxy):
    session = {"x-session-id": "s1"}
    messages = [user("Fix the tests.")]
    for number in range(5):
        reply = assistant(None, f"call_{number}")
        main = serve(proxy, messages, reply, **session)
        messages += [reply, result(f"call_{number}", f"test {number} failed")]
    lines = [f"- {number}. The test number {number} fails because of its clock." for number in range(8)]
    messages.append(user("Summarize the conversation."))
    summary = "<analysis>Hm.</analysis>\n<summary>\n" + "\n".join(lines) + "\n</summary>"
    assert serve(proxy, messages, assistant(summary), **session) == main
    short = [user("This session is continued. Summary:\n" + "\n".join(lines)), user("Go on.")]
    assert serve(proxy, short, assistant("Going on."), **session) == main
    served = proxy.send(CHAT, chat_body([*short, assistant("Going on."), user("And?")]), {**KEY, **session})
    assert served is not None
    assert served.name == main
    assert "call_2" not in shown(served)


@pytest.mark.parametrize("headers", [{}, {"x-session-id": "s1"}], ids=["no session", "session"])
@pytest.mark.parametrize("is_cut", [False, True], ids=["whole list", "end of the list"])
def test_a_question_about_a_conversation_leaves_it_alone(proxy: Proxy, headers: dict[str, str], is_cut: bool):
    """Gemini CLI asks so whether a conversation runs in circles. Taken for the conversation, it led it elsewhere."""
    messages = [user("Which log has an error?")]
    names: set[str] = set()
    questions: list[str] = []
    before = ""
    for number in range(12):
        reply = assistant(None, f"call_{number}")
        served = proxy.send(CHAT, chat_body(messages), {**KEY, **headers})
        assert served is not None
        names.add(served.name)
        assert shown(served).startswith(before)
        served.reply(reply)
        messages += [reply, result(f"call_{number}", f"log {number}: all is well")]
        if number in (5, 8):
            asked = [
                *([user("Read this.")] if is_cut else messages[:1]),
                *messages[-6 if is_cut else 1 :],
                user("Loops?"),
            ]
            question = chat_body([*asked, user("Loops?")], tools=[], response_format={"type": "json_object"})
            before = shown(proxy.send(CHAT, chat_body(messages), {**KEY, **headers}))[:-1]
            sent = proxy.send(CHAT, question, {**KEY, **headers})
            assert sent is not None
            assert "log" in shown(sent)
            questions.append(sent.name)
            sent.reply(assistant('{"loops": false}'))
    assert len(names) == 1
    assert len({*questions}) == 2
    assert all("/questions" in name for name in questions)
    assert proxy.forks == []


@pytest.mark.parametrize(
    "fields",
    [
        {"tools": []},
        {"response_format": {"type": "json_object"}},
        {"tools": [], "response_format": {"type": "text"}},
    ],
    ids=["text", "with tools", "text by name"],
)
def test_other_requests_without_tools_go_on(proxy: Proxy, fields: dict[str, Any]):
    """A client that compacts sends no tools, and a program may want JSON from each reply."""
    messages = [user("Fix the tests.")]
    name = serve(proxy, messages, assistant(None, "call_1"))
    messages += [assistant(None, "call_1"), result("call_1", "3 failed"), user("Summarize.")]
    served = proxy.send(CHAT, chat_body(messages, **fields), KEY)
    assert served is not None
    assert served.name == name


def test_a_name_that_the_program_chose_keeps_every_list(proxy: Proxy):
    name = {"x-foveate-conversation": "logs"}
    first = serve(proxy, [user("One.")], assistant("1"), **name)
    assert first.startswith("logs.")
    assert serve(proxy, [user("Another list.")], assistant("2"), **name) == first


# --------------------------------------------------------------------------------------------------------- odd requests


@pytest.mark.parametrize("field", ["previous_response_id", "conversation"])
def test_requests_whose_history_the_provider_keeps_pass(proxy: Proxy, field: str):
    body = {"model": "gpt-5", "input": [user("Hello")], "tools": [{"type": "function", "name": "run"}]}
    assert proxy.send(RESPONSES, {**body, field: "resp_1"}, KEY) is None
    assert proxy.send(RESPONSES, {**body, field: None}, KEY) is not None


def test_spoken_reply_is_recognized_by_its_id():
    """Lists have no more of it, and a recorded one has the transcript."""
    recorded, listed, other = (
        sent_lists.key_of(*get_format("openai").parse({"role": "assistant", "content": None, "audio": audio}))
        for audio in ({"id": "audio_1", "transcript": "Hello  there."}, {"id": "audio_1"}, {"id": "audio_2"})
    )
    assert recorded == listed != other


@pytest.mark.parametrize("reference", [{"type": "item_reference", "id": "fc_1"}, {"id": "fc_1"}])
def test_lists_that_refer_to_items_of_the_provider_pass(proxy: Proxy, reference: dict[str, Any]):
    """A result follows the reference to its call, which no view can show."""
    result = {"type": "function_call_output", "call_id": "call_1", "output": "a door"}
    body = {
        "model": "gpt-5",
        "input": [user("Hello"), reference, result],
        "tools": [{"type": "function", "name": "run"}],
    }
    assert proxy.send(RESPONSES, body, KEY) is None


def test_requests_of_a_thread_that_the_provider_keeps_pass(proxy: Proxy):
    body = {"model": "claude-opus-5", "messages": [user("Hello")], "tools": [{"name": "run", "input_schema": {}}]}
    for thread in ({"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}):
        assert proxy.send(ANTHROPIC, {**body, "thread": thread}, KEY) is None
    assert proxy.send(ANTHROPIC, body, KEY) is not None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"messages": 1}', b'{"messages": [1]}', b'{"messages": ["\xff"]}'])
def test_bodies_that_cannot_be_read_raise(store: Store, content: bytes):
    with pytest.raises((ValueError, BadMessage)):
        Recognizer(store).recognize("", KEY, CHAT, RequestBody(CHAT, content))


def test_ids_of_any_text_make_legal_names(proxy: Proxy):
    for number, session in enumerate(["a/b~1", "x" * 5_000, "~importing x", "{}{0}", "é\x00\n", "list-2"]):
        headers = {**KEY, "x-session-id": session, "x-claude-code-agent-id": session * 2}
        for _ in range(2):
            served = proxy.send(CHAT, chat_body([user(f"Hello {number}")]), headers)
            assert served is not None
            assert served.name.count("/") in (1, 2)
            del served
    assert len(proxy.names()) == 6


def test_the_tools_of_codex_may_be_an_item_of_the_list(proxy: Proxy):
    tools = {"type": "additional_tools", "tools": [{"type": "custom", "name": "exec"}]}
    body = {"model": "gpt-5", "input": [tools, {"type": "message", "role": "user", "content": "Hello"}]}
    assert proxy.send(RESPONSES, body, KEY) is not None
