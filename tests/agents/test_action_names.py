"""Names of actions with spaces: in definitions, calls, results, leases and bindings."""

from __future__ import annotations

import pytest

from foveate import ChatAgent, ReActAgent, open_store, tool
from foveate.core.catalog import Action, Binding
from foveate.errors import BadSetting
from foveate.policies import expire_results, prune_tool_outputs
from foveate.testing import ScriptedModel, call
from foveate.types import Lease

from .loop.scripts import act, done, scripted_agent, texts, think


@tool(name="Query Database")
def query(sql: str = "SELECT 1") -> str:
    """Query the database."""
    return "row " * 300


def test_a_loop_agent_calls_an_action_by_any_spelling_of_its_name():
    for name in ("Query Database", "Query_Database", "query database"):
        agent, model = scripted_agent([act(name), done()], actions=[query])
        with agent:
            agent.run("Go.")
            lease = agent.conversation.history()[-2].stamp.lease
        assert "## Query Database" in agent.system
        assert texts(model.requests[1])[2].startswith("Result of Query Database:\nrow row")
        assert lease is not None
        assert lease.action_id == "Query Database"


def test_rows_of_the_catalog_match_a_name_with_spaces():
    """`Query Database` is a name in the tables of the MemberJunction document."""
    for actions in ([query], [tool(query.call, name="query_database")]):
        store = open_store("memory:")
        store.put_action("", Action("Query Database"))
        store.put_binding("", Binding("sage", "Query Database", 1, "compact", "first_chars", 100))
        agent, model = scripted_agent(
            [act(actions[0].name), think(), done()], actions=actions, store=store, policy="expire"
        )
        with agent:
            agent.run("Go.")
        assert [len(texts(request)[2]) > 300 for request in model.requests[1:]] == [True, False]


@pytest.mark.parametrize("format", ["anthropic", "openai", "gemini", "openai_responses"])
def test_native_calls_use_a_name_that_the_provider_accepts(format: str):
    model = ScriptedModel([call("c1", "Query_Database", sql="SELECT 2"), "Done."], format)
    with ReActAgent(model, tools=[query], window=50_000, expand=False) as agent:
        assert agent.run("Go.").run.state == "done"
        result = agent.conversation.history()[2].message.result
    assert result is not None
    assert (result.name, result.state) == ("Query_Database", "ok")
    assert "Query_Database" in str(model.requests[0])
    assert "Query Database" not in str(model.requests)


def test_an_unknown_tool_is_answered_with_the_names_that_the_model_has():
    model = ScriptedModel([call("c1", "drop"), "Done."])
    with ChatAgent(model, tools=[query], window=50_000) as agent:
        agent.send("Go.")
        assert agent.conversation.history()[2].message.text.endswith("The tools you have: Query_Database.")


def test_policies_take_the_name_with_spaces():
    lease = Lease(1, "compact", "first_chars", 100)
    policies = [expire_results(tools={"Query Database": lease})]
    spared = [prune_tool_outputs(protect=0, minimum=0, protected_tools=["Query Database"])]
    for policy, is_short in ((policies, True), (spared, False), ([prune_tool_outputs(protect=0, minimum=0)], True)):
        model = ScriptedModel([call("c1", "Query_Database"), call("c2", "Query_Database"), "Done.", "Yes.", "Yes."])
        with ChatAgent(model, tools=[query], window=50_000, policy=policy, expand=False) as agent:
            for text in ("Go.", "Go on.", "Go on."):
                agent.send(text)
            shown = next(entry.message.text for entry in agent.conversation.view if entry.is_result)
        assert (len(shown) < 300) == is_short


def test_an_action_that_no_model_can_call_is_refused():
    store = open_store("memory:")
    with pytest.raises(BadSetting, match="do not describe an object, so no model can call it"):
        store.put_action("", Action("Query Database", parameters='{"type": "array"}'))
    with pytest.raises(BadSetting, match="printable characters"):
        store.put_action("", Action("Query\nDatabase"))
