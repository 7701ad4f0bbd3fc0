"""The digest of a history: what it keeps, what later statements replace, and how it is carried on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from foveate import assistant, system, tool_result, user
from foveate.core.messages import Message, ToolCall
from foveate.digest.history import digest_messages, holding_statements, reading
from foveate.digest.history.claims import Claim, inherit, sets_item
from foveate.digest.history.sections import read_sections
from foveate.digest.history.signs import Sign, signs_of
from foveate.digest.history.statements import cut_at_clause, split_sentences, split_statements
from foveate.digest.history.terms import terms_of
from foveate.digest.history.weights import Speaker, is_worth, weigh

PIECES = [
    *(
        "never",
        "must",
        "decided",
        "instead",
        "not",
        "no",
        "longer",
        "from",
        "now",
        "on",
        "failed",
        "goal:",
        "the goal is",
    ),
    *("port", "8080", "main.py", "Ada", "probably", "open", "because", "nicht", "décidé", "必须", "that.", "But", "is"),
]
CHATTER = [
    one
    for n in range(40)
    for one in (user(f"Nice, thanks. How was lunch number {n}?"), assistant(f"It was fine. I look at step {n} next."))
]


@pytest.mark.parametrize(
    "rule",
    [
        "Never push to the release branch.",
        "The budget is 500 euros.",
        "Der Endpunkt darf niemals ohne Token aufgerufen werden.",
        "Il ne faut jamais effacer la table clients.",
        "No se puede usar rollup en este proyecto.",
        "Você nunca deve apagar os registros.",
        "Non devi mai cancellare la tabella clienti.",
        "Никогда не удаляй таблицу клиентов.",
        "不要使用第三方库。",
        "本番のデータは絶対に削除しないでください。",
    ],
)
def test_a_rule_survives_chatter(rule: str):
    """F21."""
    history = [user("Mend the login."), *CHATTER[:30], user(rule), *CHATTER[30:]]
    assert f"- {rule}" in digest_messages(history, 600)
    assert rule in holding_statements(history).rules


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The staging port is 5432.", "Scratch that, the staging port is 6000."),
        ("The reviewer is Anna Schmidt.", "The reviewer is now Ben Okafor."),
        ("We use Redis for the session cache.", "Use Valkey instead of Redis for the session cache."),
        ("Deploy to delta-20.internal.", "Deploy to fjord-65.internal, NOT to delta-20.internal."),
        ("lock_timeout is 372.", "lock_timeout is 431 now."),
        ("The service is written with traefik.", "Switch the service entirely from traefik to kafka."),
        ("预算上限是3000元。", "现在预算上限改为5000元。"),
        (
            "El servidor es indigo-14.internal.",
            "El servidor ahora es osprey-39.internal en lugar de indigo-14.internal.",
        ),
        ("Please migrate billing to Postgres.", "Change of plan: the goal is to move billing to CockroachDB."),
    ],
)
def test_a_correction_replaces_what_it_corrects(old: str, new: str):
    """F21."""
    text = digest_messages([user(old), assistant("All right."), user(new)], 2_000)
    assert new in text
    assert old not in text


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The staging port is 5432.", "The production port is 5433."),
        ("Never push to main.", "Never push to release."),
        ("The limit for uploads is 30 MB.", "The limit for downloads is now 90 MB."),
        ("Team Falcon meets on Monday.", "Team Heron meets on Tuesday now."),
        ("Use kibana in the backend.", "Use solid in the frontend instead."),
        ("Add celery to the list.", "Add peanuts to the list."),
        ("Invoice 4411 is due on 3 May.", "Invoice 4417 is due on 9 June."),
    ],
)
def test_statements_that_are_merely_alike_stay_apart(one: str, other: str):
    """F21."""
    text = digest_messages([user(one), assistant("All right."), user(other)], 2_000)
    assert one in text
    assert other in text


def test_a_correction_leaves_the_other_facts_of_a_sentence():
    text = digest_messages([user("Staging is on port 5432."), user("Production is on port 5433."),
                            user("Scratch that, staging is on port 6000.")], 2_000)  # fmt: skip
    assert "Production is on port 5433." in text
    assert "Staging is on port 5432." not in text


def test_a_doubtful_correction_stands_behind_what_it_may_replace():
    text = digest_messages([user("The tests run with mocha."), assistant("Fine."),
                            user("Take rollup for the tests instead.")], 2_000)  # fmt: skip
    assert "The tests run with mocha (later: Take rollup for the tests instead.)" in text


def test_a_line_with_a_later_statement_is_carried_on_and_corrected():
    said = [user("The tests run with mocha."), assistant("Fine."), user("Take rollup for the tests instead.")]
    text = digest_messages(said, 2_000)
    assert "mocha (later: Take rollup" in digest_messages(CHATTER, 2_000, previous=text)
    text = digest_messages([user("The tests are run with vitest now, not with rollup.")], 2_000, previous=text)
    assert "vitest" in text
    assert not [line for line in text.splitlines() if "rollup" in line and "vitest" not in line]


def test_an_older_rule_with_a_later_statement_does_not_hold():
    said = [user("Good morning, I have some notes."), user("The tests must run with mocha."), assistant("Fine."),
            user("You must take rollup for the tests instead.")]  # fmt: skip
    assert holding_statements(said).rules == ["You must take rollup for the tests instead."]


def test_items_of_one_report_do_not_replace_each_other():
    about = "Here are some available one-stop flights from Newark (EWR) to Chicago (ORD) on May 25, in economy class:"
    items = ["Flight Number: HAT041", "Departure: 07:00 EST", "Arrival: 09:00 EST", "Flight Number: HAT056"]
    report = "\n".join([about, *(f"- {item}" for item in items)])
    text = digest_messages([user("Which flights are there?"), assistant(report)], 2_000)
    assert all(item in text for item in items)


def test_items_of_two_reports_do_not_replace_each_other():
    one = "Here's what I changed: **Removed chalk imports** - Now uses the theme system exclusively"
    other = "All set: **Removed `chalk` import** - Replaced with `theme` import"
    text = digest_messages([user("Go."), assistant(one), user("And the rest?"), assistant(other)], 2_000)
    assert one in text
    assert other in text


def test_a_pasted_text_replaces_nothing():
    rows = [f"Step {n} is about item number {n} of the manual." for n in range(30)]
    pasted = "\n".join([*rows, "Forget the port 7443, the gateway uses port 9000 instead."])
    text = digest_messages([user("The gateway uses port 7443."), assistant("Fine."), user(pasted)], 9_000)
    assert "The gateway uses port 7443" in text


def test_rules_of_one_long_prompt_do_not_replace_each_other():
    skills = [f"skill-{n}: Does the work of kind number {n} of the team." for n in range(30)]
    skills += ["press-retro: Run a retrospective after generating a CLI.", "Use after any /printing-press run."]
    text = digest_messages([user("Go."), system("\n".join(f"- {skill}" for skill in skills)), user("On.")], 9_000)
    assert "Use after any /printing-press run." in text
    assert "replaced by" not in text


@pytest.mark.parametrize(("between", "is_kept"), [(0, False), (8, True)], ids=["near", "far"])
def test_what_a_model_reports_corrects_only_what_stands_near(between: int, is_kept: bool):
    release = "Noted: release tomorrow at 9:00, and a rollback when the error rate exceeds 1%."
    update = "Updated: the production release starts at 10:30 tomorrow, with a rollback above 0.5% errors."
    said = [user("Release tomorrow at 9:00."), assistant(release), user("ok"), *CHATTER[:between]]
    text = digest_messages([*said, user("10:30 is better, and 0.5%"), assistant(update), user("yes")], 4_000)
    assert (release[:-1] in text) is is_kept
    assert update in text


def test_a_long_sentence_with_the_words_of_a_key_is_about_something_else():
    call = ToolCall("c1", "shell", '{"command": "python recover_flag.py"}')
    doubt = (
        "Since brute forcing all solutions and submitting each is unreasonable given the timeouts of this environment, "
        "let's see now whether the hash that we recovered for the flag is enough."
    )
    history = [user("Find it."), assistant("", call), tool_result("c1", "Recovered flag: flag{d9}"), assistant(doubt)]
    assert "Recovered flag: flag{d9}" in digest_messages(history, 2_000)


def test_results_of_one_command_about_two_hosts_are_both_kept():
    said = [user("Check the hosts.")]
    for number, host in enumerate(("indigo-13.internal", "nickel-73.internal")):
        call = ToolCall(f"c{number}", "bash", '{"command": "make status"}')
        said += [assistant("", call), tool_result(call.call_id, f"host={host}\nfree_gb=40{number}\n")]
    text = digest_messages(said, 2_000)
    assert "host=indigo-13.internal, free_gb=400" in text
    assert "host=nickel-73.internal, free_gb=401" in text


@pytest.mark.parametrize("question", ["Should the port be 5432?", "Why does `go test -timeout 5432 -v` work?"])
def test_a_correction_without_a_topic_leaves_questions(question: str):
    text = digest_messages(
        [user("Start."), assistant("Yes."), user(question), assistant("No."), user("No, 5433.")], 900
    )
    assert question in text
    assert "5433" in text


def test_a_pronoun_gives_a_value_to_the_key_of_its_sentence():
    """The terms of the sentence before have no words around them in the sentence of the pronoun."""
    sentence = "It is a Git remote helper now."
    terms = inherit(terms_of("The design is not the remote command."), terms_of(sentence))
    key = terms_of("remote").all
    item = Claim(0, "remote: Invalid", terms_of("remote: Invalid"), 0, key=key)
    assert sets_item(item, Claim(1, sentence, terms, Sign.UPDATE))


def test_a_model_does_not_correct_a_rule_of_the_user():
    text = digest_messages([user("Never use port 80 for the proxy."), assistant("I use port 80 instead.")], 2_000)
    assert "Never use port 80 for the proxy." in text


def test_a_report_does_not_correct_a_prohibition():
    rule, report = "Invalid themes must NEVER explode.", "Invalid or malformed themes no longer crash the application."
    text = digest_messages([user(rule), assistant("Sure."), user(report)], 2_000)
    assert f"- {rule[:-1]}" in text
    assert report in text


def test_instructions_of_a_system_message_in_between_are_rules():
    text = digest_messages([user("Mend it."), system("Answer in formal English."), *CHATTER], 400)
    assert "- Answer in formal English." in text


def test_a_qualification_stays_with_its_sentence():
    assert split_statements("Deploy on Mondays. Except in July. The port, e.g. 80, is open. Thanks!") == [
        "Deploy on Mondays. Except in July.",
        "The port, e.g. 80, is open.",
        "Thanks!",
    ]
    assert split_statements("禁止删除。但是测试环境除外。") == ["禁止删除。 但是测试环境除外。"]
    assert split_statements("Never touch:\n- the archive\n- the keys") == [
        "Never touch: the archive",
        "Never touch: the keys",
    ]


def test_a_line_that_exceeds_the_room_is_cut_at_a_clause():
    assert cut_at_clause("Use the first one, because it is the one that works everywhere", 30) == "Use the first one …"
    assert cut_at_clause("short", 40) == "short"


def test_the_room_is_filled_if_there_is_enough_to_say():
    """F21."""
    results = [
        one
        for n in range(60)
        for one in (
            assistant("", ToolCall(f"c{n}", "read", f'{{"path": "src/mod_{n}.py"}}')),
            tool_result(f"c{n}", "\n".join(f"def function_{n}_{k}(value): return value + {k}" for k in range(20))),
        )
    ]
    for room in (1_000, 4_000, 8_000):
        assert 0.95 * room <= len(digest_messages([user("Go through it."), *results], room)) <= room


def test_ten_rounds_keep_what_still_fits():
    """F21."""
    text = ""
    for n in range(10):
        said = [user(f"Never delete the table archive_{n}."), *CHATTER[4 * n : 4 * n + 4]]
        text = digest_messages(said, 1_500, previous=text)
    assert all(f"Never delete the table archive_{n}." in text for n in range(10))
    assert digest_messages([], 1_500, previous=text) == text


SENTENCES = (
    *("Never push to main.", "The port is 5432.", "Now the port is 6000.", "Thanks!", "Could you look?", "## Goal"),
    *("We decided to use Redis because it is fast.", "Use Valkey instead of Redis.", "src/a_b.py is broken."),
    *("预算上限是3000元。", "Scratch that.", "- one\n- two"),
)
MESSAGES = st.lists(
    st.builds(
        lambda speaker, texts: speaker(" ".join(texts)),
        st.sampled_from([user, assistant, system]),
        st.lists(st.one_of(st.sampled_from(SENTENCES), st.text(max_size=40)), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=12,
)


@settings(deadline=None)
@given(said=MESSAGES, room=st.integers(1, 1_200))
def test_a_digest_fits_its_room_and_is_always_the_same(said: list[Message], room: int):
    """F21."""
    text = digest_messages(said, room)
    assert len(text) <= room
    assert digest_messages(said, room) == text


@pytest.mark.slow
def test_the_time_grows_with_the_length_alone():
    for hostile in ("Never x. ", ". ", "a: b\n", "not ", "“", "- a\n", "a.b-c_", "E   "):
        costs = []
        for times in (5_000, 20_000):
            begun = time.process_time()
            digest_messages([user("Go."), user(hostile * times), assistant(hostile * times)], 2_000)
            costs.append(time.process_time() - begun)
        assert costs[1] < 16 * costs[0] + 0.5, hostile


def test_a_word_alone_takes_no_room():
    text = digest_messages(
        [user("Mend the login."), assistant("Done. Fixed. I changed src/login.py."), user("Great.")], 900
    )
    assert "- Done." not in text
    assert "- Fixed." not in text
    assert "src/login.py" in text


WORDS = ["cache", "index", "parser", "queue", "router", "schema", "socket", "thread", "worker", "folder", "ledger"]


def long_history(count: int) -> list[Message]:
    """Return plain sentences without any sign, all of them different."""
    said = [
        f"The {WORDS[n % 11]} of {WORDS[n // 11 % 11]} {n} looks like the {WORDS[n // 121 % 11]} that I saw there."
        for n in range(count)
    ]
    return [(user if n % 200 else assistant)(" ".join(said[n : n + 10])) for n in range(0, count, 10)]


@pytest.mark.slow
def test_a_rule_survives_ten_thousand_sentences_wherever_it_stands():
    """F21. Light sentences of a long history are left out before they are read."""
    history = long_history(10_000)
    for place in (1, 500, 999):
        rule = f"Never restart the billing service {place} before the export has ended."
        text = digest_messages([*history[:place], user(f"Hello.\n\n{rule}"), *history[place:]], 1_500)
        assert f"- {rule}" in text


def test_a_long_history_is_weighed_sentence_by_sentence_only_at_first(monkeypatch):
    """Above the characters that count, a sentence is weighed only if it may be worth more than those that are held."""
    weighed: list[str] = []
    weigh = reading.weigh
    monkeypatch.setattr(reading, "weigh", lambda text, *rest: weighed.append(text) or weigh(text, *rest))
    rules = [
        user(f"Never restart service {n} of {n + 7} before the export of {n + 3} has ended.") for n in range(4_000)
    ]
    digest_messages([*rules, *long_history(10_000)], 1_500)
    assert 1_000 <= len(weighed) < 3_000


@given(text=st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map(" ".join))
def test_no_statement_is_worth_more_than_its_words_allow(text: str):
    for speaker in ("user", "system", "assistant"):
        weight = weigh(text, speaker, 1, 1.0).weight
        assert is_worth(text, speaker, weight - 0.001)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_digest_is_the_same_for_every_seed_of_hashes(seed: str):
    """The terms of a sentence that begins with a pronoun were ordered by their hashes."""
    code = (
        "from foveate import user;from foveate.digest.history.claims import inherit;from foveate.digest.history.terms "
        "import terms_of;print(list(inherit(terms_of('The cache of the parser and the queue holds sockets'), "
        "terms_of('It is short')).places))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    shown = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert shown.stdout == "['cach', 'pars', 'queu', 'hold', 'socket', 'short']\n"


@pytest.mark.parametrize(
    "said",
    [
        "Only deploy on Tuesdays.",
        "Commit nothing without my OK.",
        "Leave the README alone.",
        "Ask Marta before each release.",
        "Wait until Friday with the announcement.",
        "Everything has to be done by May 3.",
    ],
)
def test_a_wish_in_other_words_binds_too(said: str):
    history = [user("Fix the exporter."), assistant("Fine."), user(said), assistant("Sure.")]
    assert said in holding_statements(history).rules


def test_a_short_change_gives_a_value():
    said = ["The pool size is 10.", "Fine.", "Make the pool size 20 instead.", "Done."]
    history = [(assistant if place % 2 else user)(text) for place, text in enumerate(said)]
    assert holding_statements(history).values == ["Make the pool size 20 instead."]


@pytest.mark.parametrize("said", ["I can't open the file.", "Go on.", "Is the port 8080?", "It was only a test."])
def test_a_report_and_a_question_bind_nothing(said: str):
    history = [user("Fix the exporter."), assistant("Fine."), user(said), assistant("Sure.")]
    assert holding_statements(history) == ([], [])


def test_the_goal_stays_if_a_value_beside_it_changes():
    history = [
        user("Port the parser to Rust. Use the branch release-2."),
        assistant("I begin."),
        user("Use the branch release-3 instead."),
        assistant("Fine."),
    ]
    text = digest_messages(history, 1_500)
    assert text.startswith("## Goal\nPort the parser to Rust.\n")
    assert "Use the branch release-3 instead." in text
    assert "release-2" not in text


@pytest.mark.parametrize("said", ["That fails, try something else.", "what about a probe or something else"])
def test_the_goal_stays_if_the_way_to_it_changes(said: str):
    history = [user("Port the parser to Rust."), assistant("I begin."), user(said), assistant("I take Go.")]
    assert digest_messages(history, 600).startswith("## Goal\nPort the parser to Rust.\n")


def test_a_polite_request_is_the_goal():
    history = [
        user("hey, can you help me plan the wedding of my sister? It's on 14 June. Everything must be step-free."),
        assistant("What is the budget?"),
        user("18k all in, 4k of it is gone already"),
        assistant("Noted."),
    ]
    assert digest_messages(history, 600).startswith("## Goal\nhey, can you help me plan the wedding of my sister?")


@pytest.mark.parametrize("greeting", ["Hi there!", "Good morning", "hello, how are you?"])
def test_a_greeting_is_no_goal(greeting: str):
    history = [user(greeting), assistant("Hello!"), user("Port the parser to Rust."), assistant("I begin.")]
    assert digest_messages(history, 600).startswith("## Goal\nPort the parser to Rust.\n")


def test_the_goal_is_shown_in_a_small_room():
    goal = "the upload in api/uploads.py times out for files above 50 MB, fix it please"
    limits = [user(f"The limit of queue_{number} is {number} MB.") for number in range(40)]
    assert digest_messages([user(goal), assistant("Fine."), *limits], 300).startswith(f"## Goal\n{goal}\n")


def test_a_bare_value_gives_way_to_the_reply_that_says_of_what():
    history = [
        user("Upload the files in parts."),
        assistant("Parts of 8 MB allow files of 80 GB."),
        user("16 then"),
        assistant("Part size is 16 MB. All tests pass."),
    ]
    text = digest_messages(history, 600)
    assert "Parts of 8 MB allow files of 80 GB (later: Part size is 16 MB.)" in text
    assert "16 then" not in text


def test_a_later_version_of_a_part_of_the_goal_stays_with_the_goal():
    history = [
        user("hey, can you help me plan the wedding? It's on 14 June in Lyon, about 80 guests."),
        assistant("What is the budget?"),
        user("oh and the guest count is now 92"),
        assistant("Noted."),
    ]
    text = digest_messages(history, 600)
    assert text.startswith("## Goal\nhey, can you help me plan the wedding?")
    assert "92" in text


def test_the_calls_of_a_fold_come_before_ids_of_its_results():
    fold = "[Steps m2-m9 in short. They are done, and ask for nothing.]\n"
    fold += "\n".join(
        f"m{n} bash(command=pytest tests/test_part_{n}.py -q)\n  → m{n} empty, 6 lines:\n    … 8ffe5{n}"
        for n in range(8)
    )
    history = [user("Mend the login."), replace(user(fold), name="summary"), assistant("Done.")]
    text = digest_messages(history, 300)
    assert text.count("bash(command=pytest") == 2
    assert "empty, 6 lines" not in text
    assert "… 8ffe5" not in text


def test_the_outcome_of_a_step_stands_behind_its_call():
    steps = """\
[Steps m2-m9 in short. They are done, and ask for nothing.]
  → m1 the result of a step in another stretch
m2 sh(cmd=pytest → log)
  → m3 4 passed
    … test_shop.py
m4 sh(cmd=git push)
  → m5 failed error connecting to example.org
m6 read(path=a.py)
  → m7 empty"""
    digest = digest_messages([user("Ship it."), replace(user(steps), name="summary")], 2_000)
    done = digest.partition("## Done\n")[2].partition("\n\n")[0].splitlines()
    assert done == [
        "m2 sh(cmd=pytest → log) → m3 4 passed",
        "m4 sh(cmd=git push) → m5 failed error connecting to example.org",
        "m6 read(path=a.py)",
    ]


def test_figures_in_the_header_of_a_client_are_no_values():
    header = "Chunk ID: c2e613\nWall time: 0.1 seconds\nOriginal token count: 3\nOutput:\n"
    said = [
        user("Look at the disk."),
        Message("assistant", (ToolCall("c1", "sh", '{"cmd": "df"}'),)),
        tool_result("c1", f"{header}disk.used=41\ndisk.free=59\n"),
    ]
    digest = digest_messages(said, 2_000)
    assert "disk.used=41, disk.free=59" in digest
    assert "Wall time" not in digest


def done_in(fold: str, room: int) -> list[str]:
    """Return the lines under Done of a digest of a fold."""
    text = f"[Steps m2-m9 in short. They are done, and ask for nothing.]\n{fold}"
    digest = digest_messages([user("Ship it."), replace(user(text), name="summary")], room)
    return digest.partition("## Done\n")[2].partition("\n\n")[0].splitlines()


def test_a_call_that_is_as_before_names_its_target():
    fold = """\
m2 Read(file_path=/srv/shop/cart.py, offset=1, limit=20)
  → m3 2 definitions: def add
m4 Read(as before, offset=40, limit=20)
  → m5 1 definition: def total
m6 Edit(replace_all=false, file_path=/srv/shop/cart.py, old_string=a, new_string=b)
m8 Edit(replace_all=false, as before, old_string=b, new_string=c)
m10 sh(cmd=pytest tests/test_cart.py, as before)"""
    assert done_in(fold, 2_000) == [
        "m2 Read(file_path=/srv/shop/cart.py, offset=1, limit=20) → m3 2 definitions: def add",
        "m4 Read(file_path=/srv/shop/cart.py, offset=40, limit=20) → m5 1 definition: def total",
        "m6 Edit(replace_all=false, file_path=/srv/shop/cart.py, old_string=a, new_string=b)",
        "m8 Edit(replace_all=false, file_path=/srv/shop/cart.py, old_string=b, new_string=c)",
        "m10 sh(cmd=pytest tests/test_cart.py)",
    ]


def test_steps_that_name_something_come_before_others():
    plain = [f"m{n} Now let me build it and see what comes out:" for n in range(10, 30)]
    tasks = [f"m{n} TaskUpdate(taskId={n}, status=completed)" for n in range(30, 40)]
    telling = [f"m{n} I change `open_cart_{n}` so that it keeps the currency." for n in range(2, 6)]
    assert done_in("\n".join((*telling, *plain, *tasks)), 340)[: len(telling)] == telling


def test_a_long_line_above_a_list_is_said_whole_once():
    text = """\
Given that the logic is complex by now, please draw these scenarios as diagrams:
- the user commits all files at once
- the user splits the files into commits
"""
    first, second = split_statements(text)
    assert first.endswith("please draw these scenarios as diagrams: the user commits all files at once")
    assert second == "Given that the logic is …: the user splits the files into commits"


def test_titles_and_numbers_alone_are_no_statements():
    assert split_statements("- Key Technical Concepts:\n- **Files:**\n- The port is 80.") == ["The port is 80."]
    assert split_statements("**1. [hooks.go:16] Errors are ignored**") == ["**1. [hooks.go:16] Errors are ignored**"]


@pytest.mark.parametrize(
    ("text", "statements"),
    [
        ("Do not run this:\n\nDrop the table users.", ["Do not run this: Drop the table users."]),
        ("Implement this plan:\n\n# Shop\n\nA page is added.", ["Implement this plan: A page is added."]),
        ("Keep these:\n- one port\n\nIt is 80.", ["Keep these: one port", "It is 80."]),
        ("Please explain this error:\n```\nboom\n```\nIt is new.", ["Please explain this error:", "It is new."]),
        ("Steps:\n```\nboom\n```\nIt is new.", ["It is new."]),
    ],
)
def test_a_line_with_a_colon_stays_with_what_it_introduces(text: str, statements: list[str]):
    assert split_statements(text) == statements


@pytest.mark.parametrize(
    "text",
    [
        "can you explain: The session state stays until it is deleted",
        "Now explain why tests must never use the network.",
        "Could we check what happens there, since only the first one counts.",
        "Kannst du mir bitte erklären, warum das nur lokal geht.",
        "Peux-tu m'expliquer pourquoi il faut toujours un jeton.",
        "¿Puedes explicarme por qué solo funciona aquí",
    ],
)
def test_what_the_user_wants_to_understand_is_no_rule(text: str):
    assert weigh(text, "user", 1, 1.0).kind == "asked"
    assert weigh("Make sure that you can explain it, and never guess.", "user", 1, 1.0).kind == "rule"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ok, now we need to adjust the light theme.", "asked"),
        ("We also need to mend the sources of the tests.", "asked"),
        ("We need to stay below the price of last year.", "rule"),
        ("All exports need to go through the audit bus.", "rule"),
        ("You need to ask the owner.", "rule"),
    ],
)
def test_a_task_that_is_needed_once_is_no_rule(text: str, kind: str):
    assert weigh(text, "user", 1, 1.0).kind == kind


@pytest.mark.parametrize(
    ("text", "is_rule"),
    [
        ("Do we only have one colour for links? The old shop has two.", False),
        ("can we rewrite the page until it is short? it repeats things.", False),
        ("Could you please never push to main? It breaks the build.", True),
        ("keep them until when? i'd say end of june", True),
        ("should we only test on Linux? no, on both.", True),
        ("What does the footer use? It should be dimmer.", True),
        ("I should have mentioned the other table before.", False),
        ("All endpoints should have a timeout.", True),
        ("Let me try it, then we should be good to go.", False),
        ("There is only one file left, cart.py.", False),
        ("I go on until there are no more bugs.", True),
        ("I go on, but there are no more bugs.", False),
        ("This has to much risk.", False),
        ("Propose where each of these files should go.", False),
        ("The table that you should keep is orders.", True),
        ("Read the log if you need to.", False),
        ("If you need to restart it, ask me first.", True),
        ("Before we continue, I want a list of the tables.", False),
        ("And before you build this: show the plan.", False),
        ("Wait for my answer before you continue.", True),
        ("Before you push, run the tests.", True),
        ("The cart only counts the first price (cart.py:17).", False),
        ("Don't touch cart.py:17.", True),
    ],
)
def test_words_that_only_look_binding_make_no_rule(text: str, is_rule: bool):
    assert (weigh(text, "user", 1, 1.0).kind == "rule") is is_rule


REVIEW = "\n\n".join(
    [
        "Here is the review. Keep your answer short.",
        *(
            f"## Finding {n}\n\n- The cart only counts price {n}.\n- The total is {n} as long as it has no tax."
            for n in range(9)
        ),
        "- Prices must never be floats.",
        "Mend all of it. Only the newest version matters.",
    ]
)


def test_a_report_that_a_user_hands_over_sets_few_rules():
    """A review of 39 findings stood in a digest as 20 rules, and left no room for what was done."""
    rules = read_sections(digest_messages([user("Plan the shop."), assistant("I do."), user(REVIEW)], 4_000))["Rules"]
    assert "- Prices must never be floats." in rules
    assert "- Only the newest version matters." in rules
    assert not any("only counts" in rule for rule in rules)
    first = read_sections(digest_messages([user(REVIEW), assistant("I do.")], 4_000))["Rules"]
    assert any("only counts" in rule for rule in first)


def test_words_of_the_user_come_before_those_of_a_report():
    rounds = "Round totals down, as the tax office does."
    history = [user("Plan the shop."), assistant("I do."), user(REVIEW), assistant("Done."), user(rounds)]
    assert f"- {rounds}" in digest_messages(history, 800)


def read(name: str, text: str) -> list[Message]:
    """Return a call that reads a file, and its result."""
    return [Message("assistant", (ToolCall(name, "read", f'{{"path": "{name}"}}'),)), tool_result(name, text)]


def test_a_line_that_is_no_title_stays_in_its_section():
    """Else the lines below it would belong to no section in the next digest, and become values."""
    page = "#### 5. load_config reads\n#include <load_config.h>\nload_config = 17 # in the file"
    history = [user("Mend load_config."), *read("notes.md", page), assistant("load_config is in load_config.h")]
    first = digest_messages(history, 2_000)
    assert "5. load_config reads\n#include <load_config.h>" in first
    second = read_sections(digest_messages([user("Go on.")], 2_000, previous=first))
    assert "load_config = 17 # in the file" in second["Files and identifiers"]
    assert "Values" not in second


def test_numbers_of_a_file_viewer_are_left_out():
    page = "\n".join(f"  {number:>4}→\tvalue_{number} = load_config({number})" for number in range(70, 90))
    page += "\n    90→\tload_config moves step 3→4"
    history = [user("Mend load_config."), *read("a.py", page), assistant("It is value_79 of load_config.")]
    text = digest_messages(history, 2_000)
    assert "value_79 = load_config(79)" in text
    assert "\nload_config moves step 3→4" in text
    assert text.count("→") == 1


def test_a_line_that_is_a_name_alone_is_listed_among_the_names():
    page = 'import (\n"shop/cart/total"\n)\n\nfunc Sum(cart Cart) total.Amount { return shop/cart/total.Of(cart) }'
    history = [user("Mend shop/cart/total."), *read("cart.go", page), assistant("shop/cart/total is mended.")]
    found = read_sections(digest_messages(history, 2_000))
    assert not any(line == '"shop/cart/total"' for lines in found.values() for line in lines)
    assert any("func Sum(cart Cart)" in line for line in found["Files and identifiers"])


@pytest.mark.parametrize(
    ("talk", "rules", "fix"),
    [
        (
            ["كيف يسير العمل اليوم؟", "الواجهة تبدو مرتبة أكثر من أمس."],
            ["يُمنع حذف الجداول القديمة.", "لا يجوز إرسال البريد دون موافقتي.", "استخدم المنفذ الداخلي فقط."],
            ("موعد الإطلاق يوم 12 مارس.", "تصحيح: موعد الإطلاق أصبح يوم 19 مارس."),
        ),
        (
            ["איך מתקדמת העבודה היום?", "הממשק נראה מסודר יותר מאתמול."],
            ["אסור למחוק טבלאות ישנות.", "אל תשלח דואר בלי אישור ממני.", "השתמש אך ורק בפורט הפנימי."],
            ("מועד ההשקה הוא 12 במרץ.", "תיקון: מועד ההשקה הוא 19 במרץ."),
        ),
        (
            ["आज काम कैसा चल रहा है?", "इंटरफ़ेस कल से साफ़ दिखता है।"],
            ["पुरानी तालिकाएँ हटाना मना है।", "मेरी अनुमति के बिना मेल मत भेजना।", "केवल आंतरिक पोर्ट का उपयोग करो।"],
            ("लॉन्च की तारीख 12 मार्च है।", "सुधार: लॉन्च की तारीख 19 मार्च है।"),
        ),
        (
            ["วันนี้งานเป็นอย่างไรบ้าง", "หน้าจอดูเรียบร้อยกว่าเมื่อวาน"],
            ["ห้ามลบตารางเก่าในฐานข้อมูล", "อย่าส่งอีเมลถ้าฉันยังไม่อนุมัติ", "ใช้พอร์ตภายในเท่านั้น"],
            ("วันเปิดตัวคือ 12 มีนาคม", "แก้ไข: วันเปิดตัวคือ 19 มีนาคม"),
        ),
        (
            ["Как сегодня идёт работа?", "Страница выглядит аккуратнее, чем вчера."],
            [
                "Удалять старые таблицы запрещается.",
                "Письма без меня отправлять не надо.",
                "Необходимо использовать внутренний порт.",
            ],
            ("Запуск назначен на 12 марта.", "Поправка: запуск переносится на 19 марта."),
        ),
    ],
)
def test_rules_and_corrections_of_other_scripts_are_kept(talk, rules, fix):
    """Without words of these languages, rules weighed no more than small talk."""
    history = [user(talk[0])]
    for n, fact in enumerate([*rules, *fix]):
        history += [turn for i in range(8) for turn in (user(f"{talk[1][: 12 + i]} {talk[n % 2]}"), assistant("OK"))]
        history += [user(fact), assistant("OK")]
    found = digest_messages(history, 520)
    kept = found.partition("## Rules\n")[2].partition("\n\n")[0].splitlines()
    assert kept == [f"- {rule}" for rule in rules]
    assert fix[1] in found
    assert f"- {fix[0]}\n" not in found


def test_sentences_end_at_the_marks_of_their_script():
    text = "टाइमआउट ३० सेकंड है। पोर्ट 5432 है॥ هل انتهيت؟ نعم. وقت ختم ہوا۔ اب آگے چلو۔"
    assert split_sentences(text) == [
        "टाइमआउट ३० सेकंड है।",
        "पोर्ट 5432 है॥",
        "هل انتهيت؟",
        "نعم.",
        "وقت ختم ہوا۔",
        "اب آگے چلو۔",
    ]
    lines = ["सभी राशियाँ दशमलव के बाद दो अंकों में दिखाना ज़रूरी है।", "हर कमिट से पहले मुझसे पूछना।"]
    assert split_statements("\n".join(lines)) == lines
    lines = ["เราตัดสินใจใช้การกระทบยอดแบบเพิ่มทีละส่วนเพราะแบบเต็มใช้เวลาหกชั่วโมงทุกคืน", "ต้องถามฉันก่อนคอมมิตทุกครั้ง"]
    assert split_statements("\n".join(lines)) == lines


def test_accents_that_are_characters_of_their_own_are_accents():
    for sentence in (
        "Wir müssen es ändern.",
        "N'oublie jamais: il est interdit de pousser.",
        "データベースではなくファイルを使う。",
    ):
        assert signs_of(unicodedata.normalize("NFD", sentence)) == signs_of(sentence)


def test_terms_are_whole_words_where_letters_have_marks():
    """Fragments of one letter made any two Hindi sentences alike, and a correction seemed to be about the goal."""
    assert {"डेटाबेस", "पोर्ट", "6543"} <= terms_of("डेटाबेस का पोर्ट 6543 है।").all
    sentence = "Die Prüfung dauert länger."
    assert terms_of(unicodedata.normalize("NFD", sentence)).places == terms_of(sentence).places
    goal = "कृपया गोदाम की मासिक मिलान स्क्रिप्ट दोबारा लिखिए।"
    talk = [user(goal), assistant("OK"), user("डेटाबेस का पोर्ट 5432 है।"), assistant("OK")]
    found = digest_messages([*talk, user("मुझसे गलती हुई, डेटाबेस का पोर्ट 6543 है।"), assistant("OK")], 600)
    assert f"{goal}\n" in found
    assert "5432" not in found or "(later: " in found


@pytest.mark.parametrize("speaker", ["user", "assistant"])
@pytest.mark.parametrize("text", ["The port is 7001.", "We decided on rollup."])
def test_of_decisions_and_values_later_ones_weigh_more(text: str, speaker: Speaker):
    assert weigh(text, speaker, 1, 1.0).weight > 2 * weigh(text, speaker, 1, 0.0).weight


def test_a_rule_weighs_the_same_wherever_it_was_said():
    text = "Never restart the billing service."
    assert weigh(text, "user", 1, 1.0).weight == weigh(text, "user", 1, 0.0).weight


@pytest.mark.parametrize("later", [["pending"], ["shipped", "pending"]])
def test_a_value_that_a_tool_reports_again_stays_in_the_next_digest(later: list[str]):
    def steps(*states: str) -> list[Message]:
        made: list[Message] = []
        for number, state in enumerate(states):
            call = ToolCall(f"c{number}", "get_order", '{"order_id":"A-1001"}')
            result = tool_result(call.call_id, f"order_id: A-1001\nstatus: {state}\ntotal: 129.50")
            made += [Message("assistant", (call,)), result]
        return made

    before = digest_messages([user("Where is my order?"), *steps("pending")], 1_500)
    text = digest_messages([user("And now?"), *steps(*later), assistant("As before.")], 1_500, previous=before)
    assert "order_id: A-1001, status: pending" in text
    assert "shipped" not in text
