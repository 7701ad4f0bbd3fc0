"""Binding statements in summaries by a model: shown, judged by their key words, and asked for once more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import foveate
from foveate.core.summaries import SummaryRequest
from foveate.formats import get_format
from foveate.policies import binding, compact_on_overflow
from foveate.policies.binding import statements_to_keep
from foveate.summarizers import digest_history, fallback, model_summarizer
from foveate.summarizers.acceptance import accept
from foveate.summarizers.retention import find_lost
from foveate.testing import ScriptedModel, say, system, text_of, user

RULE = "Never deploy to prod-eu without the approval of Marta Lindqvist."
LIMIT = "The budget must stay at most 4,200 euros."


@pytest.mark.parametrize(
    ("statement", "summary"),
    [
        (RULE, "- Deployments to prod-eu are forbidden unless Marta Lindqvist approves."),
        (RULE, '## Constraints\n"Never deploy to prod-eu without the approval of Marta Lindqvist."'),
        (LIMIT, "Budget: no more than 4200 EUR."),
        (LIMIT, "Budget limit (must hold):\n4 200 euros"),
        ("Always answer politely.", "The user wants polite answers."),
        ("Niemals die Tabelle kunden_2019 ändern.", "Die Tabelle kunden_2019 darf nicht geändert werden."),
        ("不要修改 ledger_2019 表。", "禁止改动 ledger_2019。"),
        ("Do not use Redis.", "Redis is not to be used."),
    ],
)
def test_a_statement_in_other_words_is_kept(statement: str, summary: str):
    assert find_lost([statement], f"## Goal\nShip it.\n\n{summary}\n\n## Done\nMuch.") == ()


@pytest.mark.parametrize(
    ("statement", "summary"),
    [
        (RULE, "They deployed to prod-eu. Marta Lindqvist was informed."),
        (RULE, "Deployments are not allowed without approval."),
        (LIMIT, "The budget must stay at most 2,400 euros."),
        (LIMIT, "There is a budget."),
        ("Do not use Redis.", "Redis is used for the cache."),
        ("Always answer politely.", "The build is green."),
        ("Niemals die Tabelle kunden_2019 ändern.", "Die Tabelle kunden_2019 wurde geändert."),
    ],
)
def test_a_statement_without_its_key_words_is_lost(statement: str, summary: str):
    assert find_lost([statement], f"## Goal\nShip it.\n\n{summary}\n\n## Done\nMuch.") == (statement,)


@given(st.lists(st.text(max_size=80), max_size=4), st.text(max_size=200))
def test_a_copied_statement_is_never_lost(statements: list[str], more: str):
    lines = [" ".join(statement.split()) for statement in statements]
    assert find_lost(lines, "\n".join([*lines, more])) == ()


def test_statements_that_bind_are_those_of_users_and_system_messages():
    messages = [
        user(f"Hello. {RULE} Shall we never stop?"),
        say("I must never do that."),
        system("From now on you must write British English."),
        user("- do not touch main.py\n- thanks"),
    ]
    kept = (RULE, "From now on you must write British English.", "do not touch main.py")
    assert statements_to_keep(messages, "", 4_000).rules == kept
    assert statements_to_keep(messages[3:], f"## Constraints\n- {RULE}", 4_000).rules == (RULE, kept[2])
    assert statements_to_keep(messages, "", 4 * len(kept[2]) + 8).rules == (kept[2],)


def test_a_request_shows_rules_and_values_that_hold():
    messages = [
        user("Build the proxy. Never use port 80. The staging port is 5432. Do you know why?"),
        say("The staging port is 5432."),
        user("Scratch that, the staging port is 6000. You may use port 80 now."),
    ]
    kept = statements_to_keep(messages, "", 4_000)
    assert kept.rules == ()
    assert "Scratch that, the staging port is 6000." in kept.values
    assert not any("5432" in value for value in kept.values)


def test_values_that_a_summary_leaves_out_are_added():
    request = SummaryRequest("compact", (user("The staging port is 6000."), say(text_of(600))), 2_000,
                             values=("The staging port is 6000.", "The reviewer of web-1 is Ada."))  # fmt: skip
    verdict = accept(request, "They build it; staging listens on port 6000.")
    assert verdict.text.endswith("Still valid:\n- The reviewer of web-1 is Ada.")
    small = SummaryRequest("compact", request.messages, 30, values=request.values)
    assert accept(small, "They build it on the port 6000.").why.endswith("which holds")


def test_the_prompt_shows_values_and_the_repair_names_them():
    model, summarize = by_model("They build the parser.", f"They build the parser. {RULE}")
    request = SummaryRequest("compact", (user("Build it."), say(text_of(600))), 2_000, binding=(RULE,),
                             values=("The port is 6000.",))  # fmt: skip
    summarize(request)
    prompt, repair = asked(model)
    assert "The port is 6000." in prompt.split("These values hold now")[1]
    assert "The port is 6000." in repair


def request_with(*rules: str) -> SummaryRequest:
    said = [user(f"{' '.join(rules)} Build the parser."), say(text_of(600))]
    return SummaryRequest("compact", tuple(said), 2_000, binding=rules)


def summary(text: str) -> str:
    return json.dumps({"summary": text})


def asked(model: ScriptedModel) -> list[str]:
    return [body["messages"][-1]["content"][0]["text"] for body in model.requests]


def by_model(*answers: str) -> tuple[ScriptedModel, Any]:
    model = ScriptedModel([say(summary(answer)) for answer in answers])
    return model, model_summarizer(model, get_format("anthropic"))


def test_the_prompt_shows_the_statements_that_bind():
    model, summarize = by_model(f"They build the parser. {RULE} {LIMIT}")
    assert summarize(request_with(RULE, LIMIT)).text
    (prompt,) = asked(model)
    assert f"{RULE}\n{LIMIT}" in prompt.split("These statements bind")[1]


def test_one_short_request_names_what_is_missing():
    model, summarize = by_model("They build the parser.", f"They build the parser. {RULE}")
    assert summarize(request_with(RULE)).text == f"They build the parser. {RULE}"
    _, repair = asked(model)
    assert RULE in repair
    assert "They build the parser." in repair
    assert len(repair) < 1_500


def test_a_repair_that_fails_is_not_repeated():
    model, summarize = by_model("They build the parser.", "They build the parser still.")
    assert summarize(request_with(RULE)).text == "They build the parser."
    assert len(model.requests) == 2


def test_a_summary_that_lost_a_rule_gives_way_to_the_next_summarizer():
    _, summarize = by_model("They build the parser.", "They build it.")
    written: Any = fallback(summarize, digest_history())(request_with(RULE))
    assert (written.by, RULE in written.text) == ("digest", True)
    assert "leaves out 'Never deploy to prod-eu" in written.refused[0]


def test_without_another_summarizer_the_statement_is_added():
    verdict = accept(request_with(RULE), "They build the parser.", measures=False)
    assert verdict.text == f"They build the parser.\n\nStill binding:\n- {RULE}"
    assert accept(request_with(RULE), "They build the parser.").why.startswith("it leaves out 'Never deploy")


def test_a_compaction_keeps_a_rule_that_its_summarizer_forgets():
    chat = foveate.open_conversation(
        "c", window=4_000, policy=compact_on_overflow(), summarizer=lambda request: "They worked."
    )
    chat.append([user(RULE), say("Understood.")])
    for number in range(60):
        chat.append([user(f"Part {number}?"), say(text_of(150, number))])
        if number % 5 == 0:
            chat.append("Go on.")
            chat.prepare()
    chat.append("And now?")
    assert RULE in chat.prepare().entries[0].message.text
    assert sum(edit.policy == "compact" for record in chat.journal.records() for edit in record.edits) >= 6


def test_statements_are_sought_for_a_summary_and_not_for_a_plan(monkeypatch: pytest.MonkeyPatch):
    sought: list[str] = []
    seek = binding.holding_statements
    monkeypatch.setattr(binding, "holding_statements", lambda *given: sought.append(given[1]) or seek(*given))
    asked: list[SummaryRequest] = []

    def summarize(request: SummaryRequest) -> str:
        asked.append(request)
        return f"They worked. {RULE}"

    chat = foveate.open_conversation("c", window=4_000, policy=compact_on_overflow(), summarizer=summarize)
    chat.append([user(RULE), say("Understood.")])
    for number in range(25):
        chat.append([user(f"Part {number}?"), say(text_of(150, number))])
    chat.append("Go on.")
    for _ in range(3):
        (request,) = chat.plan().requests
        assert (request.binding, sought) == ((), [])
    chat.prepare()
    assert [request.binding for request in asked] == [(RULE,)]
    assert len(sought) == 1


@pytest.mark.parametrize(
    ("statement", "kept", "lost"),
    [
        ("请勿改动数据/入库明细_12.csv文件。", "不要改 数据/入库明细_12.csv", "不要改 数据/出库明细_13.csv"),
        ("データ/入庫_7.csvは変更しないでください。", "入庫_7.csv を変更しない", "入庫_8.csv を変更しない"),
        ("Не меняй файл данные/приход_5.csv.", "данные/приход_5.csv не менять", "данные/приход_6.csv не менять"),
    ],
)
def test_names_without_spaces_around_them_are_found(statement, kept, lost):
    """The words before such a name belong to the sentence, which a summary says in other words."""
    assert find_lost([statement], kept) == ()
    assert find_lost([statement], lost) == (statement,)


@pytest.mark.parametrize(
    ("statement", "kept", "lost"),
    [
        ("لا تعدّل الملف app_1.yaml أبدًا.", "الملف app_1.yaml ممنوع تعديله", "عدّل الملف app_1.yaml"),
        ("לעולם אל תשנה את app_1.yaml.", "אסור לשנות את app_1.yaml", "שנה את app_1.yaml"),
        ("app_1.yaml को कभी मत बदलना।", "app_1.yaml नहीं बदलना है", "app_1.yaml बदलना है"),
        ("ห้ามแก้ไฟล์ app_1.yaml", "ไม่แก้ app_1.yaml", "แก้ app_1.yaml"),
        ("app_1.yaml 파일은 절대 수정하지 마세요.", "app_1.yaml 수정 금지", "app_1.yaml 수정"),
    ],
)
def test_denial_in_other_scripts_is_kept(statement, kept, lost):
    assert find_lost([statement], kept) == ()
    assert find_lost([statement], lost) == (statement,)
