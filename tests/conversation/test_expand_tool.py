"""The tool `expand`: a model requests hidden content and the conversation answers, in both formats."""

from __future__ import annotations

import asyncio
from itertools import pairwise, permutations

import pytest
from msgspec.structs import replace

from foveate import BadInput, Media, Options, Text, open_async_conversation, open_conversation, system
from foveate.core.profiles import PROFILES
from foveate.edits import Replace, Span, Summarize, Target
from foveate.errors import BadSetting
from foveate.expand import EXPAND_INSTRUCTION, expand_tool
from foveate.open import grouped
from foveate.stores.memory import MemoryStore
from foveate.testing import StubAnthropic, answer, call, calls, say, thought, user
from foveate.types import Prices

from .expand_requests import LOG, ROWS, SHORT, TOOLS, asked, client_for, result_of, run
from .shells import opened, refusals, shown, texts, wire

BOTH = pytest.mark.parametrize("provider", ["openai", "anthropic"])
EARLIER = [call("a", "look", at="log"), call("b", "look", at="rows"), call("c", "look", at="nothing")]
RESULTS = {"a": LOG, "b": ROWS}

FORMS = [
    ({"handle": "m3"}, LOG),
    ({"handle": "m3", "lines": "96-98"}, "[m3: lines 96-98 of 300]\n" + "".join(LOG.splitlines(True)[95:98])),
    (
        {"handle": "m5", "items": "2-3"},
        "[m5: elements of rows 2-3 of 60]\n"
        '{"id": 1, "name": "customer 1", "city": "Oslo"}, {"id": 2, "name": "customer 2", "city": "Oslo"}',
    ),
    (
        {"handle": "m3", "pattern": "29[01] ERROR"},
        "[m3: matches 1 of 1]\n"
        "289-289 ok, all is well\n290-290 ok, all is well\n291:291 ERROR disk full\n"
        "292-292 ok, all is well\n293-293 ok, all is well",
    ),
]


def expander(provider: str = "openai", **options: object):
    """Open a conversation that offers `expand` and shows only the newest result whole. Its clock ticks a millisecond a
    look.
    """
    chat = opened(provider=provider, policy=options.pop("policy", "keep-last-1"), expand=True, **options)
    chat.append("Look around.")
    return chat


# --------------------------------------------------------------------------------------------------------- every form


@BOTH
@pytest.mark.parametrize(("arguments", "text"), FORMS, ids=["whole", "lines", "items", "pattern"])
def test_model_gets_the_exact_original_bytes(provider, arguments, text):
    chat = expander(provider)
    client = run(chat, provider, [*EARLIER, call("d", "expand", **arguments), say("I see.")], RESULTS)
    assert chat.history()[8].message == answer("d", text)
    last = client.requests[-1]["messages"][-1]
    assert (last["content"][0]["content"] if provider == "anthropic" else last["content"]) == text
    assert (chat.open_calls(), chat.journal.verify()) == ((), [])


@BOTH
def test_model_searches_hidden_messages(provider):
    chat = expander(provider)
    run(chat, provider, [*EARLIER, call("d", "expand", search='"customer 17"'), say("I see.")], RESULTS)
    told = chat.history()[8].message.text
    assert told.startswith(
        "[1 place for '\"customer 17\"' in what is not shown whole, best first, each with its handle]\n"
        "m5 (turn 2, look, line 1): …"
    )
    assert '"customer 17"' in told


@BOTH
def test_async_expand_tool_works_the_same(provider):
    async def talk() -> list[str]:
        chat = await open_async_conversation(
            "c",
            format=provider,
            window=100_000,
            policy="keep-last-1",
            expand=True,
            options=Options(expand_where="tail"),
        )
        await chat.append("Look around.")
        script = [*EARLIER, *(call(f"x{n}", "expand", **arguments) for n, (arguments, _) in enumerate(FORMS[::-1]))]
        client = client_for(provider, [*script, say("I see.")])
        for _ in range(len(script) + 1):
            await chat.record(asked(client, await chat.prompt(tools=TOOLS)))
            for one in await chat.open_calls():
                await chat.append(result_of(provider, one.call_id, RESULTS.get(one.call_id, SHORT)))
        return [row.message.text for row in await chat.history()]

    told = asyncio.run(talk())
    assert told[8:15:2] == [text for _, text in FORMS[::-1]]


def test_async_programs_expand_and_search():
    async def talk() -> object:
        chat = await open_async_conversation("c", window=100_000, policy="none")
        ids = await chat.append([user("go"), call("a"), answer("a", LOG), user("on")])
        await chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
        part = await chat.expand("m3", lines="97")
        hits = await chat.search("ERROR")
        await chat.append(call("b", "expand", handle="m3", lines="1"))
        (waiting,) = await chat.open_calls()
        said = await chat.answer(waiting)
        whole = await chat.expand("m3")
        return part.text, [hit.handle for hit in hits], said.text, whole, (await chat.prepare()).entries[2].message

    assert asyncio.run(talk()) == (
        "097 ERROR disk full\n",
        ["m3"],
        "[m3: lines 1 of 300]\n001 ok, all is well\n",
        answer("a", LOG),
        answer("a", LOG),
    )


# ------------------------------------------------------------------------------------------------ in its place, or not


@BOTH
def test_result_says_that_the_next_view_shows_the_original(provider):
    chat = expander(provider, expand_where="view", policy="none")
    run(chat, provider, EARLIER, RESULTS)
    ids = [row.id for row in chat.history()]
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)), Replace(Target(ids[4]), (Text("[short]"),)))
    turn = chat.prepare().turn
    run(chat, provider, [call("d", "expand", handle="m3")], {})
    view = chat.prepare()
    assert [entry.message.text for entry in view if entry.is_result] == [
        LOG,
        "[short]",
        SHORT,
        "m3 is shown in full again above.",
    ]
    assert view.entries[2].renewed == view.turn == turn + 1
    assert [edit.reason for edit in chat.journal.receipts()[-1].edits] == ["the model asked for it"]
    assert refusals(chat) == []


@BOTH
def test_expansion_at_the_tail_keeps_the_sent_prefix(provider):
    chat = expander(provider, expand_where="tail", policy="none")
    run(chat, provider, EARLIER, RESULTS)
    chat.edit(Replace(Target(chat.history()[2].id), (Text("[short]"),)))
    before = wire(chat, chat.prepare())
    body = chat.body(tools=TOOLS)
    for number, (arguments, text) in enumerate(FORMS[:2]):
        chat.record(call(f"x{number}", "expand", **arguments))
        assert chat.prepare().entries[-1].message.text == (text if not number else chat.history()[-1].message.text)
        assert wire(chat, chat.prepare())[: len(before)] == before
        assert chat.body(tools=TOOLS).startswith(body[: -len(b"]}")])


def test_tool_and_instruction_are_the_same_bytes_in_every_prompt():
    """F27."""
    for provider in ("openai", "anthropic"):
        chat = expander(provider, policy="none")
        bodies = []
        for number in range(4):
            bodies.append(chat.body(system="RULES", tools=TOOLS))
            chat.record(call(f"c{number}", "expand" if number % 2 else "look", handle="m3", lines="1"))
            if not number % 2:
                chat.append(answer(f"c{number}", LOG))
                chat.edit(Replace(Target(chat.history()[-1].id), (Text("[short]"),)))
        assert all(two.startswith(one[: -len(b"]}")]) for one, two in pairwise(bodies))


@pytest.mark.parametrize(
    ("idle", "behind", "place"),
    [(10, 50, "tail"), (400, 50, "view"), (10, 0, "view")],
    ids=["warm-and-deep", "cold", "nothing-behind-it"],
)
def test_original_returns_where_it_costs_less(idle, behind, place):
    """With a warm cache the content after it is written again; with a cold one its own place costs nothing extra."""
    now = [1_000_000]
    chat = open_conversation(
        "c",
        window=200_000,
        policy="none",
        expand=True,
        options=Options(clock=lambda: now[0], prices=Prices(cache_seconds=300)),
    )
    ids = chat.append([user("go"), call("a", "look"), answer("a", LOG)])
    chat.edit(Replace(Target(ids[2]), (Text("[It was a log, three hundred lines. " + "It said: " * 200 + "]"),)))
    chat.append([user(f"more {n} " + "of it " * 30) for n in range(behind)])
    chat.prepare()
    chat.record(say("Yes."))
    chat.append("And?")
    chat.prepare()
    now[0] += idle * 1_000
    chat.record(call("d", "expand", handle="m3"))
    at_tail = chat.history()[-1].message.text
    assert at_tail == (LOG if place == "tail" else "m3 is shown in full again above.")
    assert (chat.view.entries[2].message.text == LOG) == (place == "view")


def test_expansion_uses_the_tail_if_an_edit_would_void_reasoning():
    profile = replace(PROFILES["anthropic"], binds_reasoning=True)
    chat = expander("anthropic", policy="none", profile=profile, prices=Prices(cache_seconds=0))
    run(chat, "anthropic", [call("a", "look"), thought("so", call("b", "look"))], RESULTS)
    chat.edit(Replace(Target(chat.history()[2].id), (Text("[short]"),)))
    chat.prepare()
    chat.record(thought("hm", call("d", "expand", handle="m3")))
    assert chat.history()[-1].message == answer("d", LOG)


@BOTH
def test_original_with_an_image_returns_with_it(provider):
    pixel = Media("image/png", "base64", "iVBORw0KGgo=")
    chat = expander(provider, policy="none", expand_where="tail")
    ids = chat.append([call("a", "look"), answer("a", "a picture", pixel)])
    chat.edit(Replace(Target(ids[1]), (Text("[short]"),)))
    chat.record(call("d", "expand", handle="m3"))
    assert chat.view.entries[-1].message == answer("d", "a picture", pixel)
    assert refusals(chat) == []


@BOTH
@pytest.mark.parametrize("where", ["view", "tail"])
def test_cut_arguments_expand_by_the_handle_of_their_call(provider, where):
    chat = expander(provider, policy="none", expand_where=where)
    written = call("a", "write", path="a.py", text="x = 1\n" * 90)
    ids = chat.append([written, answer("a", "ok")])
    chat.edit(Replace(Target(ids[0], (0,)), (Text('{"path":"a.py","text":"[cut]"}'),)))
    chat.prepare()
    chat.record(call("d", "expand", handle="m2.1"))
    (arguments,) = [part.arguments for part in written.calls]
    if where == "tail":
        assert chat.view.entries[-1].message == answer("d", arguments)
    else:
        assert chat.view.entries[1].message == written
    assert refusals(chat) == []


@BOTH
@pytest.mark.parametrize("handle", ["m3", "m2-m3", "m2", "m4-m5"])
@pytest.mark.parametrize("where", ["view", "tail"])
def test_any_return_from_a_summary_is_legal(provider, handle, where):
    chat = expander(provider, policy="none", expand_where=where)
    run(chat, provider, EARLIER, RESULTS)
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[1], ids[4]), 'They looked; expand("m2-m5") shows it.'))
    chat.prepare()
    chat.record(call("d", "expand", handle=handle))
    assert chat.history()[-1].message.result.state == "ok"
    assert refusals(chat) == []


def test_compacted_reads_are_found_and_expanded():
    """F21: after a compaction the model finds earlier reads by their words and does not read again."""
    looked = []

    def model(request: dict[str, object]) -> object:
        told = str(request["messages"])
        if "Disk report" not in told:
            return call(f"c{len(looked)}", "look")
        if "How large" not in told:
            return say("I have read it.")
        if "128 GB" in told:
            return say("The disk has 128 GB.")
        if "place for" not in told:
            return call("find", "expand", search="/dev/sdb")
        return call("get", "expand", handle="m3", pattern="sdb")

    chat = expander("anthropic", policy="none")
    client = client_for("anthropic", model)
    report = "Disk report\n" + LOG + f"/dev/sdb: {'no fault, ' * 30}size 128 GB\n" + LOG
    for _ in range(2):
        chat.record(asked(client, chat.prompt(tools=TOOLS)))
        for one in chat.open_calls():
            looked.append(one.call_id)
            chat.append(result_of("anthropic", one.call_id, report))
    ids = [row.id for row in chat.history()]
    chat.edit(Summarize(Span(ids[1], ids[3]), 'A Disk report was read; expand("m2-m4") shows it.'))
    chat.append("How large is /dev/sdb?")
    while chat.view.entries[-1].message.role != "assistant":
        chat.record(asked(client, chat.prompt(tools=TOOLS)))
    assert chat.view.entries[-1].message == say("The disk has 128 GB.")
    assert looked == ["c0"]
    assert [entry.handle for entry in chat.view] == ["m1", "m2", "m5", "m6", "m7", "m8", "m9", "m10"]


def test_program_may_expand_at_the_tail():
    chat = opened(policy="none")
    ids = chat.append([user("go"), call("a"), answer("a", LOG), user("on")])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    before = wire(chat, chat.prepare())
    assert chat.expand("m3", where="tail", reason="to compare") == answer("a", LOG)
    assert wire(chat, chat.prepare())[: len(before)] == before
    assert shown(chat.view)[-1] == ("m5", "user", f"[m3, as it was asked for: to compare]\n{LOG}")
    assert chat.view.last_input == 4
    assert chat.expand("m3", where="auto") == answer("a", LOG)
    chat.expand("m3", where="tail", reason="it]\n[m9, user]")
    assert shown(chat.view)[-1][2].partition(LOG)[0] == "[m3, as it was asked for: it) [m9, user)]\n"
    for wrong in ({"lines": "1", "items": "1"}, {"lines": "1", "where": "tail"}, {"where": "top"}):
        with pytest.raises(BadSetting, match=r"where="):
            chat.expand("m3", **wrong)


# ----------------------------------------------------------------------------------------------------- parallel calls


@BOTH
@pytest.mark.parametrize("order", [*permutations(["a", "b", "x"])])
def test_expand_call_among_others_is_legal_in_any_order(provider, order):
    asked_for = {"a": call("a", "look"), "b": call("b", "look"), "x": call("x", "expand", handle="m3", lines="1-2")}
    chat = expander(provider)
    run(chat, provider, [call("c", "look"), call("d", "look")], {"c": LOG})
    client = client_for(provider, [calls(*(asked_for[one] for one in order)), say("done")])
    chat.record(asked(client, chat.prompt(tools=TOOLS)))
    assert {one.call_id for one in chat.open_calls()} == {"a", "b"}
    for one in [one for one in reversed(order) if one != "x"]:
        chat.append(result_of(provider, one, f"result {one}"))
    chat.record(asked(client, chat.prompt(tools=TOOLS)))
    told = {row.message.result.call_id: row.message.text for row in chat.history() if row.message.result}
    assert {one: told[one] for one in order} == {
        "a": "result a",
        "b": "result b",
        "x": "[m3: lines 1-2 of 300]\n001 ok, all is well\n002 ok, all is well\n",
    }


@BOTH
def test_host_may_answer_all_calls_at_once_or_never(provider):
    chat = expander(provider)
    run(chat, provider, [call("c", "look"), call("d", "look")], {"c": LOG})
    client = client_for(provider, [calls(call("a", "look"), call("x", "expand", handle="m3")), say("done")])
    chat.record(asked(client, chat.prompt(tools=TOOLS)))
    chat.append("Never mind.")
    chat.record(asked(client, chat.prompt(tools=TOOLS)))


def test_two_expand_calls_for_one_original_show_it_once():
    for where, told in (
        ("view", ["m3 is shown in full again above."] * 2),
        ("tail", [LOG, "m3 cannot be expanded: all of it stands in m7, where it was asked for."]),
    ):
        chat = expander(expand_where=where, policy="none")
        ids = chat.append([call("a", "look"), answer("a", LOG), call("b", "look"), answer("b", SHORT)])
        chat.edit(Replace(Target(ids[1]), (Text("[short]"),)))
        chat.prepare()
        chat.record(calls(call("x", "expand", handle="m3"), call("y", "expand", handle="m3")))
        assert [row.message.text for row in chat.history()[-2:]] == told


# ------------------------------------------------------------------------------------------------ tool and instruction


def test_tool_definition_exists_for_each_provider_and_is_immutable():
    one = expand_tool("anthropic")
    one["input_schema"]["properties"].clear()
    assert list(expand_tool("anthropic")["input_schema"]["properties"]) == [
        "handle",
        "lines",
        "items",
        "pattern",
        "search",
    ]
    assert expand_tool("openai")["function"]["parameters"] == expand_tool("anthropic")["input_schema"]
    assert expand_tool("openai_chat") == expand_tool("openai")
    with pytest.raises(BadSetting, match="openai, openai_responses, anthropic and gemini"):
        expand_tool("bedrock")


@pytest.mark.parametrize("format", ["openai", "openai_responses", "anthropic", "gemini"])
def test_tool_definition_has_the_shape_of_its_format(format):
    """A program that offers the tool itself, outside of `prompt`, sends the definition as it is."""
    own = open_conversation("own", format=format, window=100_000, expand=False)
    offering = open_conversation("offering", format=format, window=100_000, expand=True)
    tool = expand_tool(own.format.name)
    for chat, tools in ((own, [tool]), (offering, [])):
        chat.append("Hello.")
        prompt = chat.prompt(tools=tools)
        sent = prompt.get("config", prompt)["tools"]
        assert [{key: one[key] for key in one if key != "cache_control"} for one in sent] == [tool]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, [EXPAND_INSTRUCTION]),
        ("", [EXPAND_INSTRUCTION]),
        ("RULES", [f"RULES\n\n{EXPAND_INSTRUCTION}"]),
        (f"RULES {EXPAND_INSTRUCTION}", [f"RULES {EXPAND_INSTRUCTION}"]),
        (["RULES", "MORE"], ["RULES", "MORE", EXPAND_INSTRUCTION]),
        ([{"type": "text", "text": "RULES"}], ["RULES", EXPAND_INSTRUCTION]),
        ({"type": "text", "text": "RULES"}, ["RULES", EXPAND_INSTRUCTION]),
        ([{"type": "text", "text": EXPAND_INSTRUCTION}, "RULES"], [EXPAND_INSTRUCTION, "RULES"]),
        ({"role": "system", "content": "RULES"}, ["RULES", EXPAND_INSTRUCTION]),
    ],
)
@BOTH
def test_instruction_ends_any_form_of_system_prompt_once(provider, said, told):
    prompt = expander(provider).prompt(system=said)
    if provider == "anthropic":
        assert [block["text"] for block in prompt["system"]] == told
    else:
        # One message, since many servers take no second one.
        systems = [message["content"] for message in prompt["messages"] if message["role"] == "system"]
        assert systems == ["\n\n".join(told)]


@BOTH
def test_system_prompt_of_the_history_follows_the_instruction(provider):
    chat = opened(provider=provider, expand=True, policy="none")
    chat.append([system("RULES"), user("go")])
    prompt = chat.prompt()
    if provider == "anthropic":
        assert [part["text"] for part in prompt["system"]] == [EXPAND_INSTRUCTION, "RULES"]
    else:
        first, second = prompt["messages"]
        assert first == {"role": "system", "content": f"{EXPAND_INSTRUCTION}\n\nRULES"}
        assert second["role"] == "user"
    asked(client_for(provider, [say("done")]), prompt)


@BOTH
def test_expand_tool_follows_the_tools_of_the_host_and_is_counted(provider):
    chat, plain = expander(provider), opened(provider=provider)
    plain.append("go")
    name = (lambda tool: tool["name"]) if provider == "anthropic" else (lambda tool: tool["function"]["name"])
    assert [name(tool) for tool in chat.prompt(tools=TOOLS)["tools"]] == ["look", "expand"]
    assert [name(tool) for tool in chat.prompt(tools=None)["tools"]] == ["expand"]
    plain.prompt()
    assert chat.budget.overhead - plain.budget.overhead > 300
    overhead = chat.budget.overhead
    assert chat.plan(tools=TOOLS).before.budget.overhead > overhead
    assert "tools" not in plain.prompt()


def test_host_may_offer_expand_but_not_another_tool_of_that_name():
    chat = expander("anthropic")
    own = [expand_tool("openai"), *TOOLS]
    assert [tool["name"] for tool in chat.prompt(tools=own)["tools"]] == ["expand", "look"]
    marked = {**expand_tool("anthropic"), "cache_control": {"type": "ephemeral"}}
    assert [tool["name"] for tool in chat.prompt(tools=[marked])["tools"]] == ["expand"]
    head = chat._agent.head
    with pytest.raises(BadSetting, match="One of your tools is named expand"):
        chat.prompt(tools=[{"name": "expand", "description": "zooms", "input_schema": {"type": "object"}}])
    assert chat._agent.head == head


def test_host_tool_named_like_an_alias_stays_with_the_host():
    chat = expander("anthropic")
    tools = [{"name": "expand-message", "description": "a mail", "input_schema": {"type": "object"}}]
    client = StubAnthropic([call("a", "expand-message", id=7), call("b", "ExpandMessage", handle="m1")])
    for waiting in (["a"], []):
        reply = client.messages.create(model="m", max_tokens=9, **chat.prompt(tools=tools))
        chat.record(reply)
        assert [one.call_id for one in chat.open_calls()] == waiting


def test_without_expand_nothing_is_added_or_answered():
    chat = opened(provider="anthropic", policy="none", expand=False)
    ids = chat.append([user("go"), call("a", "look"), answer("a", LOG)])
    chat.edit(Replace(Target(ids[2]), (Text("[short]"),)))
    assert chat.prompt(system="RULES", tools=[expand_tool("anthropic")]).keys() == {"system", "tools", "messages"}
    chat.record(calls(call("x", "expand", handle="m3", lines="2"), call("y", "look"), call("z", "expand", handle="m3")))
    assert [one.call_id for one in chat.open_calls()] == ["x", "y", "z"]
    assert chat.answer(chat.open_calls()[0]).text == "[m3: lines 2 of 300]\n002 ok, all is well\n"
    assert chat.answer({"type": "tool_use", "id": "z", "name": "expand", "input": {}}).state == "ok"
    assert [one.call_id for one in chat.open_calls()] == ["y"]
    assert chat.answer("x").text == "[m3: lines 2 of 300]\n002 ok, all is well\n"  # It keeps its answer.
    for unknown in ("nobody", None, {"id": 3}, call("q", "expand").calls[0]):
        with pytest.raises(BadInput, match="no open call"):
            chat.answer(unknown)


def test_environment_and_settings_file_enable_expand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "foveate.toml").write_text('window = 8000\nexpand = true\nexpand_where = "tail"\n', encoding="utf-8")
    chat = open_conversation("a", window=8_000)
    chat.append("go")
    assert [tool["function"]["name"] for tool in chat.prompt()["tools"]] == ["expand"]
    assert "tools" not in open_conversation("a", window=8_000, expand=False, store=chat._agent.store).prompt()
    monkeypatch.setenv("FOVEATE_EXPAND_WHERE", "somewhere")
    with pytest.raises(BadSetting, match="FOVEATE_EXPAND_WHERE"):
        open_conversation("a", window=8_000)
    monkeypatch.delenv("FOVEATE_EXPAND_WHERE")
    (tmp_path / "foveate.toml").unlink()
    for wrong in ({"expand": "yes"}, {"expand": 1}, {"expand_where": "top"}):
        with pytest.raises(BadSetting, match="expand"):
            open_conversation("a", window=8_000, **grouped(wrong))


def test_summarized_run_returns_with_the_handles_of_its_messages():
    chat = expander(policy="none", expand_where="tail")
    ids = chat.append([say("one"), user("two"), say("three"), user("four")])
    chat.edit(Summarize(Span(ids[0], ids[2]), "They counted."))
    chat.record(call("x", "expand", handle="m2-m4"))
    assert chat.history()[-1].message.text == "[m2, assistant]\none\n[m3, user]\ntwo\n[m4, assistant]\nthree"


def test_the_form_of_handles_follows_the_requests_of_another_object():
    """A reader without a request of its own once kept the form that it had when it was opened."""
    store = MemoryStore()
    chat, reader = opened(store=store, policy="keep-last-1"), opened(store=store, policy="keep-last-1")
    chat.append(["Look around.", call("a", "look"), answer("a", LOG), call("b", "look"), answer("b", LOG)])
    shown_texts = []
    for tools in (TOOLS, None, TOOLS):
        chat.prepare(tools=tools)
        reader.refresh()
        assert texts(reader.view) == texts(chat.view) == texts(opened(store=store).view)
        shown_texts.append(texts(reader.view)[2])
    assert ['expand("m3")' in text for text in shown_texts] == [True, False, True]
