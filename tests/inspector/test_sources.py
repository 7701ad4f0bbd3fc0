"""Sources: stores, files that cannot be written, recordings, and the sessions of clients."""

from __future__ import annotations

import json
import os
import shutil

import pytest
from clients import client_of

from foveate import open_conversation
from foveate.errors import NoSuchConversation, StoreError
from foveate.inspector.app import app_with
from foveate.inspector.recorded import ClientSource, RecordingSource
from foveate.inspector.sources import Preparing, StoreSource, by_key
from foveate.open import open_store


def session(cwd, *texts, model="claude-sonnet-4-5"):
    """Return a session of Claude Code in which the model answers each text."""
    lines, parent = [], None
    for number, text in enumerate(texts):
        for role, content in (("user", text), ("assistant", [{"type": "text", "text": f"Answer {number}"}])):
            uuid = f"{role}-{number}"
            message = {"role": role, "content": content}
            if role == "assistant":
                message |= {"model": model, "id": f"msg_{number}", "type": "message"}
            line = {"type": role, "uuid": uuid, "parentUuid": parent, "cwd": str(cwd), "sessionId": "s"}
            lines.append({**line, "timestamp": f"2026-11-0{number + 1}T10:00:00Z", "message": message})
            parent = uuid
    return "".join(json.dumps(line) + "\n" for line in lines)


@pytest.fixture
def projects(tmp_path):
    """The folder of Claude Code with two projects."""
    folder = tmp_path / "config" / "projects"
    for name, time in (("shop", 1_790_000_000), ("web", 1_790_009_000)):
        path = folder / f"-home-ann-{name}" / f"{name}-session.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(session(f"/home/ann/{name}", "Hello", "And now?"))
        os.utime(path, (time, time))
    sub = folder / "-home-ann-web" / "web-session" / "subagents"
    sub.mkdir(parents=True)
    (sub / "agent-1.jsonl").write_text(session("/home/ann/web", "Sub"))
    return folder


def test_sessions_of_a_client_are_listed_by_project_and_date(projects):
    source = ClientSource.found("claude-code", {"CLAUDE_CONFIG_DIR": str(projects.parent)})
    listing = source.list("", 0, 50)
    assert [(item.group, item.title, item.time) for item in listing.rows] == [
        ("/home/ann/web", "web-session", 1_790_009_000_000),
        ("/home/ann/shop", "shop-session", 1_790_000_000_000),
    ]
    assert [item.name for item in source.list("ann/SHOP 2026-09-21", 0, 50).rows] == ["-home-ann-shop/shop-session"]
    assert source.list("", 1, 1).rows == listing.rows[1:]


def test_client_without_sessions_is_no_source(tmp_path):
    assert ClientSource.found("codex", {"CODEX_HOME": str(tmp_path)}) is None


def test_session_is_replayed_with_the_window_of_its_model(projects):
    source = ClientSource("claude-code", projects)
    name = source.list("shop", 0, 1).rows[0].name
    assert not source.is_known(name)
    with source.open(name) as chat:
        assert (len(chat), chat.budget.window, chat.format.name) == (4, 200_000, "anthropic")
    assert source.is_known(name)


def test_session_that_cannot_be_read_says_why_each_time(projects):
    """Regression: from the second time on, and if reading took long, the page wrote that there is no such session."""
    (projects / "-home-ann-shop" / "bad.jsonl").write_text("garbage\n")
    with client_of(app_with(sources=[ClientSource("claude-code", projects)])) as client:
        pages = [client.get("/c/claude-code/-home-ann-shop~2Fbad") for _ in range(3)]
    assert [page.status_code for page in pages] == [400] * 3
    assert all("text that is not JSON" in page.text for page in pages)


def test_session_that_has_grown_is_replayed_again(projects):
    source = ClientSource("claude-code", projects)
    name = source.list("shop", 0, 1).rows[0].name
    with source.open(name) as chat:
        assert len(chat) == 4
    (projects / f"{name}.jsonl").write_text(session("/home/ann/shop", "Hello", "And now?", "More"))
    with source.open(name) as chat:
        assert len(chat) == 6


def test_fork_of_a_replayed_session_can_be_opened(projects):
    source = ClientSource("claude-code", projects)
    with source.open("-home-ann-shop/shop-session") as chat:
        chat.fork("mine", at=2).close()
    with source.open("mine") as fork:
        assert len(fork) == 2


@pytest.mark.parametrize("name", ["../../../etc/passwd", "-home-ann-shop/../../../secret", "/etc/passwd", "..", ""])
def test_name_that_is_a_path_leads_to_no_file(projects, tmp_path, name):
    (tmp_path / "secret.jsonl").write_text(session("/", "Secret"))
    with pytest.raises(NoSuchConversation), ClientSource("claude-code", projects).open(name):
        pass


def test_long_replay_reports_its_progress(projects, monkeypatch):
    monkeypatch.setattr("foveate.inspector.recorded._PATIENCE", 0.0)
    source = ClientSource("claude-code", projects)
    with pytest.raises(Preparing), source.open("-home-ann-shop/shop-session"):
        pass
    source.close()
    with client_of(app_with(sources=[source])) as client:
        answer = client.get("/c/claude-code/-home-ann-shop~2Fshop-session")
        assert answer.status_code in (200, 202)


def test_script_gets_no_page_while_a_recording_is_read(projects, monkeypatch):
    """It would put the page of the progress among the rows of the conversation."""
    monkeypatch.setattr("foveate.inspector.recorded.RecordingSource.open", _preparing)
    with client_of(app_with(sources=[ClientSource("claude-code", projects)])) as client:
        answer = client.get("/c/claude-code/shop/rows", headers={"x-part": "1"})
    assert (answer.status_code, answer.text) == (503, "shop is being read. Try again in a moment.")


def _preparing(source, name):
    raise Preparing(name, 0.5)


def test_deleted_recording_leaves_the_others(tmp_path):
    paths = [tmp_path / "kept.jsonl", tmp_path / "deleted.jsonl"]
    for path in paths:
        path.write_text(session("/home/ann", "Hello"))
    source = RecordingSource(paths)
    paths[1].unlink()
    assert [item.title for item in source.list("", 0, 9).rows] == ["kept.jsonl"]
    with source.open(str(paths[0])) as chat:
        assert len(chat) == 2
    with pytest.raises(NoSuchConversation), source.open(str(paths[1])):
        pass


def test_recording_is_named_by_its_path(tmp_path):
    path = tmp_path / "a session.jsonl"
    path.write_text(session("/home/ann", "Hello"))
    source = RecordingSource([path], policy="none", window=50_000)
    with source.open(str(path)) as chat:
        assert (len(chat), chat.budget.window, chat.name) == (2, 50_000, "a session")
    with client_of(app_with(sources=[source])) as client:
        assert client.get("/").text.count(">a session.jsonl<") == 1
        assert client.get("/c/recordings/" + str(path).replace("/", "~2F").replace(" ", "~20")).status_code == 200


def test_recorded_transcripts_open_with_the_format_of_their_model(transcripts):
    paths = sorted(path for path in (transcripts / "raw").rglob("*.json*") if path.stat().st_size < 300_000)[:4]
    source = RecordingSource(paths)
    for path in paths:
        with source.open(str(path)) as chat:
            assert len(chat) > 0


def test_store_opens_a_conversation_with_the_window_of_its_model(store):
    with open_conversation("priced", store=store, model="claude-sonnet-4-5") as chat:
        chat.append("Hello")
        chat.record({"role": "assistant", "content": "Good day", "model": "claude-sonnet-4-5"})
    with StoreSource(store).open("priced") as chat:
        assert (chat.budget.window, chat.format.name) == (200_000, "anthropic")


def test_store_shows_what_others_append(store):
    source = StoreSource(store)
    with source.open("a/b") as chat:
        assert len(chat) == 2
    with open_conversation("a/b", store=store, window=100_000) as other:
        other.append("More")
    with source.open("a/b") as chat:
        assert len(chat) == 3


def _replace(path, tmp_path, *texts):
    """Put another file with the conversation `one` in the place of a store, as a restored backup."""
    other = tmp_path / "other.db"
    with open_store(f"sqlite:///{other}") as store, open_conversation("one", store=store, window=100_000) as chat:
        chat.append(list(texts))
    os.replace(other, path)
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


@pytest.fixture
def file(tmp_path):
    """A store with the conversation `one` of two messages."""
    path = tmp_path / "chats.db"
    _replace(path, tmp_path, "One", "Two")
    return path


@pytest.mark.skipif(os.name == "nt", reason="Windows replaces no open file")
@pytest.mark.parametrize("is_read_only", [False, True])
def test_file_that_was_replaced_is_opened_again(file, tmp_path, is_read_only):
    source = StoreSource(f"sqlite:///{file}", is_read_only=is_read_only)
    with source.open("one") as chat:
        assert len(chat) == 2
    _replace(file, tmp_path, "One")
    with source.open("one") as chat:
        assert [row.message.text for row in chat.history()] == ["One"]
    _replace(file, tmp_path)
    assert source.list("", 0, 9).rows[0].messages == 0
    source.close()


@pytest.mark.skipif(os.name == "nt", reason="Windows deletes no open file")
def test_deleted_file_is_not_created_again(file, tmp_path):
    source = StoreSource(f"sqlite:///{file}")
    assert source.list("", 0, 9).total == 1
    content = file.read_bytes()
    for path in tmp_path.iterdir():
        path.unlink()
    for _ in range(2):
        with pytest.raises(StoreError, match="deleted or replaced"):
            source.list("", 0, 9)
    file.touch()  # A copy begins.
    with pytest.raises(StoreError, match="deleted or replaced"):
        source.list("", 0, 9)
    file.write_bytes(content)
    assert source.list("", 0, 9).total == 1
    source.close()


def test_store_shows_one_tenant_only(store):
    with pytest.raises(NoSuchConversation), StoreSource(store, tenant="other").open("a/b"):
        pass
    assert StoreSource(store, tenant="other").list("", 0, 50).total == 0


def test_opening_a_missing_conversation_creates_none(store):
    with pytest.raises(NoSuchConversation), StoreSource(store).open("none"):
        pass
    assert store.names("") == ["a/b"]


def test_read_only_store_stays_unchanged(tmp_path):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    with open_store(url) as store, open_conversation("one", store=store, window=100_000) as chat:
        chat.append("Hello")
    content = (tmp_path / "chats.db").read_bytes()
    source = StoreSource(url, is_read_only=True)
    with source.open("one") as chat:
        with pytest.raises(StoreError, match="reading only"):
            chat.append("More")
        assert len(chat) == 1
    source.close()
    assert (tmp_path / "chats.db").read_bytes() == content


def test_file_that_cannot_be_written_is_read_only(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path / 'chats.db'}"
    open_store(url).close()
    assert not StoreSource(url).is_read_only
    monkeypatch.setattr("os.access", lambda path, mode: False)
    assert StoreSource(url).is_read_only


def test_sources_with_one_key_get_numbers(store):
    sources = by_key([StoreSource(store), StoreSource(store), StoreSource(store)])
    assert list(sources) == ["store", "store-2", "store-3"]
    assert [source.key for source in sources.values()] == list(sources)


def test_copy_of_the_folder_is_another_source(projects, tmp_path):
    shutil.copytree(projects, tmp_path / "copy")
    assert ClientSource("claude-code", tmp_path / "copy").list("", 0, 9).total == 2


def test_text_without_a_form_in_utf_8_is_shown_with_question_marks(tmp_path):
    path = tmp_path / os.fsdecode(b"half\xff.jsonl")
    path.write_text(session("/home/ann", "Hello \ud83d"))
    source = ClientSource("claude-code", tmp_path)
    with client_of(app_with(sources=[source])) as client:
        assert ">half?<" in client.get("/").text
        assert client.get("/c/claude-code/half~ED~B3~BF").status_code == 200


def test_replies_of_a_replayed_session_name_the_model(projects):
    with ClientSource("claude-code", projects).open("-home-ann-shop/shop-session") as chat:
        assert {row.stamp.model for row in chat.history() if row.message.role == "assistant"} == {"claude-sonnet-4-5"}


def test_messages_of_anthropic_without_a_model_are_read_in_its_format(store):
    with open_conversation("tools", store=store, format="anthropic", window=100_000) as chat:
        chat.append("Look")
        use = {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {}}
        chat.record({"role": "assistant", "content": [use]})
    with StoreSource(store).open("tools") as chat:
        assert chat.format.name == "anthropic"
    with StoreSource(store).open("a/b") as chat:
        assert chat.format.name == "openai"


def test_stored_conversation_is_counted_as_its_model_counts(store):
    """Texts of summaries have no stamp, so they are counted when a view is made, by the counter of the model."""
    with open_conversation("counted", store=store, model="claude-haiku-4-5", policy="off") as chat:
        chat.append("Where is the harvest?")
        chat.record({"role": "assistant", "content": "In the granary.", "model": "claude-haiku-4-5"})
    with StoreSource(store).open("counted") as chat:
        assert chat._session.state.model.name == "claude-haiku-4-5"  # It chooses the counter.
