"""The system prompt of a loop agent: its sections, and templates of users."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any

import pytest

from foveate import LoopAgent
from foveate.agents.loop_config import Helper, system_prompt
from foveate.agents.steps import read_step
from foveate.agents.tools import tool
from foveate.errors import BadSetting, MissingExtra

from .scripts import act, done, scripted_agent, think


def search(query: str, limit: int = 10) -> str:
    """Search the web.

    Args:
        query: What for.
    """
    return query * limit


HELPER = Helper("reader", "Reads pages.")


def headings(prompt: str) -> list[str]:
    return re.findall(r"^#+ (.+)$", prompt, re.MULTILINE)


def test_sections_without_content_are_left_out():
    always = ["Role", "Execution Pattern", "Key Rules", "Message Expansion", "Response Format", "Next Step Types"]
    assert headings(system_prompt("sage", "", [], [])) == always
    assert headings(system_prompt("sage", "Do it.", [tool(search)], [HELPER])) == [
        "Role",
        "Task and Instructions",
        *always[1:],
        "Actions",
        "search",
        "Sub-Agents",
        "reader",
    ]


@pytest.mark.parametrize("actions", [[], [tool(search)]])
@pytest.mark.parametrize("helpers", [[], [HELPER]])
def test_only_possible_step_types_are_listed(actions: list[Any], helpers: list[Helper]):
    prompt = system_prompt("sage", "", actions, helpers)
    listed = re.findall(r'^- `"([\w-]+)"`', prompt, re.MULTILINE)
    expected = [*(["Actions"] if actions else []), *(["Sub-Agent"] if helpers else [])]
    assert listed == [*expected, "Chat", "expand-message", "Retry", "Failed"]
    assert ("carry out one or more actions (Actions)" in prompt) == bool(actions)
    assert ("hand a part of the task to a sub-agent (Sub-Agent)" in prompt) == bool(helpers)


def test_every_example_in_the_prompt_is_a_valid_step():
    prompt = system_prompt("sage", "", [tool(search)], [HELPER])
    examples = re.findall(r'^(?:.*`)?(\{"(?:taskComplete|type)": .*\})', prompt, re.MULTILINE)
    kinds = [type(read_step(example)).__name__ for example in examples]
    assert kinds == [
        *("ExpandMessage", "ExpandMessage", "Actions", "SubAgents", "SubAgents", "Chat", "ExpandMessage"),
        *("Retry", "Failed", "Success"),
    ]


def test_the_prompt_lists_actions_with_parameters():
    prompt = system_prompt("sage", "", [tool(search)], [])
    assert prompt.endswith(
        "# Actions\n\n## search\n\nSearch the web.\n\nParameters (JSON Schema): "
        '`{"type":"object","properties":{"query":{"type":"string","description":"What for."},'
        '"limit":{"type":"integer","default":10}},"required":["query"],"additionalProperties":false}`'
    )


def test_the_prompt_is_the_same_in_every_turn():
    agent, model = scripted_agent([think(), act("search"), done()], actions=[search], instructions="Find it.")
    with agent:
        agent.run("Go.")
    assert {request["system"][0]["text"] for request in model.requests} == {agent.system}


def test_values_are_never_rendered_as_templates():
    prompt = system_prompt("{{ 7 * 7 }}", "{% for %} {{ boom }}", [], [Helper("r", "{{ boom }}")])
    assert "You are {{ 7 * 7 }}, " in prompt
    assert "{% for %} {{ boom }}" in prompt


def test_an_own_template_replaces_the_shipped_one(tmp_path: Path):
    actions = "{% for one in actions %}{{ one.name }} {{ one.description }}{% endfor %}"
    template = f"I am {{{{ name }}}}: {actions}{{{{ action_count }}}}/{{{{ sub_agent_count }}}}"
    told = "I am sage: search Search the web.1/1"
    assert system_prompt("sage", "", [tool(search)], [HELPER], template) == told
    path = tmp_path / "mine.md"
    path.write_text(template, encoding="utf-8")
    assert system_prompt("sage", "", [tool(search)], [HELPER], path) == told
    assert LoopAgent(name="sage", template=path).system.startswith("I am sage")


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ nobody }}", "'nobody' is undefined"),
        ("{% if %}", "The template of the prompt has a fault: TemplateSyntaxError"),
        ("{{ ''.__class__.__mro__ }}", "SecurityError"),
        ("{{ actions.append(1) }}", "SecurityError"),
        ("{{ 1 / 0 }}", "cannot be rendered: ZeroDivisionError"),
        (5, "template="),
    ],
)
def test_a_faulty_template_is_refused(template: Any, told: str):
    with pytest.raises(BadSetting, match=re.escape(told)):
        system_prompt("sage", "", [], [], template)


def test_a_missing_template_is_refused(tmp_path: Path):
    with pytest.raises(BadSetting, match="cannot be read"):
        system_prompt("sage", "", [], [], tmp_path / "none.md")


def test_the_extra_is_named_without_jinja(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def missing(name: str, *rest: Any) -> Any:
        if name.startswith("jinja2"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtra, match=r"foveate\[agents\]"):
        system_prompt("sage", "", [], [])
