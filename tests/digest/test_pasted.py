"""Pasted text within what a user wrote: output, logs and code are told from the user's own words."""

from __future__ import annotations

import pytest

from foveate import Message, Text, ToolCall, assistant, tool_result
from foveate.digest.history import digest_messages, holding_statements
from foveate.digest.history import pasted as pasted_lines
from foveate.digest.history.pasted import is_in_tags, is_notice, split_pasted
from foveate.digest.history.weights import weigh
from foveate.summarizers.transcript import label_of, split_messages
from foveate.testing import say, user

TERMINAL = """\
❯ git clone https://localhost:8080/git/smoke-2
Cloning into 'smoke-2'...
Username for 'https://localhost:8080': test
remote: Invalid token format
fatal: Authentication failed for 'https://localhost:8080/git/smoke-2/'"""
TRACE = """\
Traceback (most recent call last):
  File "app.py", line 41, in run
    load(path)
  File "app.py", line 12, in load
KeyError: 'session_id'"""
TESTS = """\
=== RUN   TestSync
    sync_test.go:82: push rejected: body exceeded size limit 2147483648

--- FAIL: TestSync (10.65s)
FAIL    example.io/sync/internal       11.023s
exit status 1"""
PROGRAM = """\
func load(path string) ([]byte, error) {
    if path == "" {
        return nil, errNoPath
    }
    return os.ReadFile(path)
}"""
COMPILER = """\
src/main.ts(14,7): error TS2322: Type 'string' is not assignable to type 'number'.
src/main.ts(20,3): error TS2345: Argument of type 'null' is not allowed.
src/view.ts(3,1): error TS1005: ';' expected."""


@pytest.mark.parametrize("pasted", [TERMINAL, TRACE, TESTS, PROGRAM, COMPILER])
@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("", "why does this fail?"),
        ("I get this:", ""),
        ("Never delete the cache.", "Please fix it on the branch release-2."),
        ("Do I need a token here?", "The port is 8080."),
    ],
)
def test_words_of_the_user_are_told_from_what_was_pasted(pasted: str, above: str, below: str):
    text = "\n\n".join(part for part in (above, pasted, below) if part)
    own, found = split_pasted(text)
    assert own.split() == f"{above} {below}".split()
    assert found.split() == pasted.split()


@pytest.mark.parametrize(
    "text",
    [
        "First do the tests.\nThen write the page (in docs/guide.md),\nand then tell me.\nNever push to main.",
        "- run `make test`;\n- fix what fails;\n- commit {everything};",
        "Rules:\n1. Use tabs.\n2. Call it `Store`.\n3. The limit is 4 MiB.",
        "# Plan\n\n## Files\n\nsrc/a.py is renamed to src/b.py.\n\n**Why:** it is shorter.",
        "<task>\nNever push to main.\nThe port is 8417.\nAsk Marta first.\n</task>",
        "The host is db-7.\nThe port is 5433.\nThe user is app_ro.\nThe database is ledger.",
        "Il faut garder le cache.\nNe touche pas aux tests.\nLe port est 8080.\nMerci !",
        "不要修改测试。\n端口是 8080。\n请先问我。\n谢谢。",
        "",
    ],
)
def test_text_that_a_person_wrote_stays(text: str):
    own, pasted = split_pasted(text)
    assert pasted == ""
    assert own.split() == [word for word in text.split() if word not in ("<task>", "</task>")]


def test_a_message_of_two_lines_may_be_pasted_as_a_whole():
    text = "Sending to replicas: 307.2 MiB, done.\nFAIL    example.io/sync/internal       209.982s"
    assert split_pasted(text) == ("", text)


def test_two_lines_of_code_among_words_are_not_enough():
    text = "Rename it:\nload(path);\nto read(path);"
    assert split_pasted(text) == (text, "")


def test_notes_of_the_engine_are_nobodys_words():
    text = 'Fix the login.\n[cut: 400 of 1,157 characters; expand("m451") shows all]'
    assert digest_messages([user(text)], 2_000) == "## Goal\nFix the login."


def test_a_digest_shows_what_the_user_said_and_the_failure_that_was_pasted():
    messages = (
        user("Set up the mirror. Never store the token in the repository."),
        say("Done."),
        user(f"{TERMINAL}\n\ncan I take the token from the helper?"),
        say("Yes."),
    )
    text = digest_messages(messages, 2_000)
    assert "- Never store the token in the repository." in text
    assert "can I take the token from the helper?" in text
    assert "- pasted: fatal: Authentication failed for" in text
    assert "Cloning into" not in text
    assert "Username for" not in text


NOTICE = """\
<task-notification>
<task-id>bop7dq50u</task-id>
<status>completed</status>
<summary>Background command "Bench" completed (exit code 0)</summary>
<result>The port must be 9000.</result>
</task-notification>"""


def test_a_notice_of_a_client_sets_no_rule_and_no_goal():
    assert is_notice(NOTICE)
    notice = Message("user", (Text(NOTICE),))
    assert is_notice(f"{NOTICE}\nFull transcript available at: /tmp/tasks/bop7dq50u.output")
    assert not is_notice(f"{NOTICE}\nWhat is this?")
    text = digest_messages((notice, user("Port the parser to Rust."), say("I begin.")), 2_000)
    assert text.startswith("## Goal\nPort the parser to Rust.")
    assert "## Rules" not in text


@pytest.mark.parametrize("name", ["task", "rules", "user_instructions", "user-query", "context"])
def test_tags_of_a_persons_prompt_are_no_notice(name: str):
    assert not is_notice(f"<{name}>\nNever push to main.\n</{name}>")


@pytest.mark.parametrize(
    "line",
    [
        "exit status 1", "FAIL", "ok  \ta/b 0.2s", "E     assert 1 == 2", "diff --git a/x b/x", "index 0abc123",
        "at async load (a.js:3)", 'File "app.py", line 3', "Traceback (most recent call last):", "Caused by: x",
        "goroutine 1 [running]", "npm WARN: old", "npm ERR!: old", "error TS2322: x", "ValueError", "IOException",
        "drwxrwxrwx 2 root", "lrwxrwxrwx 1 root", "INFO [x]", "WARNING: x", "PS C:\\work> dir", "  exit code 2",
    ],
)  # fmt: skip
def test_no_line_of_a_program_counts_as_plain(line: str):
    """Plain lines are not compared with the patterns of programs."""
    is_of_program = pasted_lines._PROMPT.match(line) or pasted_lines._BEGINS.match(line)
    assert is_of_program or line.startswith(("INFO", "npm ERR"))
    assert not pasted_lines._begins_plainly(line)


def test_a_line_that_begins_with_a_usual_word_is_plain():
    assert all(map(pasted_lines._begins_plainly, ("Then we deploy.", "  drop the table", "lightweight is it", "été")))


PLUGINS = (
    "<recommended_plugins>\nHere is a list of plugins that are not installed.\n- Calendar\n</recommended_plugins>\n"
)
INSTRUCTIONS = "# AGENTS.md instructions for /srv/shop\n\n<INSTRUCTIONS>\nRun the tests.\n</INSTRUCTIONS>"
ENVIRONMENT = "<environment_context>\n  <cwd>/srv/shop</cwd>\n  <shell>zsh</shell>\n</environment_context>"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ENVIRONMENT, True),
        (PLUGINS + INSTRUCTIONS + ENVIRONMENT, True),
        (PLUGINS[:60], True),  # It was cut.
        ("<b>Now</b> fix the shop.", False),
        ("Fix this: <shop>a</shop>", False),
        ("<shop has no end.", False),
        ("<shop> has no end.", False),
        ("Fix the shop.", False),
        ("", False),
    ],
)
def test_a_text_of_nothing_but_blocks_in_tags_is_told_apart(text: str, expected: bool):
    assert is_in_tags(text) == expected


def test_context_that_a_client_writes_is_not_the_goal():
    said = [user(PLUGINS + INSTRUCTIONS + ENVIRONMENT), user("Review trail 10 of the shop.")]
    assert digest_messages(said, 2_000).startswith("## Goal\nReview trail 10 of the shop.")


@pytest.mark.parametrize("text", ["/mode", "[Request interrupted by user]"])
def test_a_command_and_a_remark_of_a_client_are_not_the_goal(text: str):
    said = [user(text), user("Read theme.md in full.")]
    assert digest_messages(said, 2_000).startswith("## Goal\nRead theme.md in full.")


def test_the_opening_of_a_summary_that_a_client_wrote_is_not_the_goal():
    text = """\
This session is being continued from a previous conversation that ran out of context. The summary below covers the \
earlier portion of the conversation.

Summary:
1. **Primary Request and Intent:**
   - Build a search page for the shop at /find.

2. **Pending Tasks:**
   - The page needs a test.
"""
    digest = digest_messages([user(text)], 2_000)
    assert digest.startswith("## Goal\nBuild a search page for the shop at /find.")
    assert "Pending Tasks:**\n" not in f"{digest}\n"


def test_only_what_the_user_asked_binds_in_a_summary_that_a_client_wrote():
    text = """\
This session is being continued from a previous conversation that ran out of context.

Analysis:
1. **Review**: The early return must be tested.

Summary:
1. Primary Request and Intent:
   - Build a search page for the shop at /find.

5. Problem Solving:
   The cache must be empty before the first request, so the model cleared it in 12 places.

6. All user messages:
   - "never push to main"

7. Pending Tasks:
   - Write a test of the page in tests/test_find.py.
"""
    digest = digest_messages([user(text)], 2_000)
    sections = {one.partition("\n")[0]: one for one in digest.split("## ")[1:]}
    assert sections["Goal"].startswith("Goal\nBuild a search page for the shop at /find.")
    assert sections["Rules"] == "Rules\n- never push to main\n\n"
    assert "tests/test_find.py" in sections["Open"]
    assert "early return" not in digest


def test_a_summary_in_another_form_is_the_models():
    text = "This session is being continued from another one. The port must be 9000."
    digest = digest_messages([user(text), user("Port the parser to Rust.")], 2_000)
    assert digest.startswith("## Goal\nPort the parser to Rust.")
    assert "## Rules" not in digest


def test_the_state_of_a_shell_below_a_request_is_nobodys_words():
    text = "Find the flag of the shop.\n\n(Open file: n/a)\n(Current directory: /srv/shop)\nbash-$"
    assert "Open" not in digest_messages([user(text)], 2_000)


def test_a_block_that_a_client_adds_to_a_request_is_nobodys_words():
    """Cline adds one to each message."""
    text = """\
Move the total into the cart.

<environment_details>
# Visible Files
src/shop/cart.py

# Current Time
You must keep this in mind: 3/4/2025, 10:31:07 AM
</environment_details>"""
    own, _ = split_pasted(text)
    assert own.strip() == "Move the total into the cart."
    assert "You must" not in digest_messages([user(text)], 2_000).partition("## Files")[0]


def test_an_error_of_a_tool_is_no_rule():
    errors = "cp: can't stat '/srv/keys': No such file or directory\nFAIL shop/keys 6.6s\nexit status 1"
    assert "## Rules" not in digest_messages([user(f"Why does it fail now?\n\n{errors}")], 2_000)


def test_the_prompt_of_a_command_does_not_bind_later_work():
    prompt = (
        "You are a code reviewer. Never flag style. " + "You must read every file in full before you judge it. " * 30
    )
    rules = digest_messages([user("Plan the shop."), user(prompt)], 4_000)
    assert "## Rules" not in rules
    assert "Never flag style." in digest_messages([user(prompt)], 4_000)


@pytest.mark.parametrize(
    "first", ["Base directory for this skill: /srv/skills/shop\n\n#", "Here is a demonstration of"]
)
def test_what_a_client_sends_for_the_user_is_not_theirs(first: str):
    sent = user(f"{first} how to open a shop.\n\nNever open it on a Sunday. The goal is to keep total_price.py small.")
    digest = digest_messages([user("Move total_price.py into the cart."), sent, say("total_price.py is moved.")], 2_000)
    assert "## Goal\nMove total_price.py into the cart." in digest
    assert "## Rules" not in digest
    assert label_of(sent) == "tool, not the user"


def test_a_context_of_long_lines_in_tags_holds_no_values():
    roots = "".join(f"<root>/srv/shop/part_{n}</root>" for n in range(40))
    lines = ("<current_date>2026-07-23</current_date>", "<zone>UTC</zone>", f"<roots>{roots}</roots>")
    text = "\n  ".join(("<environment_context>", *lines)) + "\n</environment_context>"
    said = [user("Review trail 10."), user(text), say("I do.")]
    assert "2026-07-23" not in digest_messages(said, 2_000).partition("## Names")[0]


SKILL = "Review target: trail `10`.\n\nNever open the shop on a Sunday. The goal is to keep total_price.py small."


def test_the_text_of_a_skill_is_not_the_users():
    launched = (
        assistant("", ToolCall("c1", "Skill", '{"skill": "review"}')),
        tool_result("c1", "Launching skill: review"),
        user(SKILL),
    )
    messages = [user("Move total_price.py into the cart."), *launched, say("total_price.py is moved.")]
    text = digest_messages(messages, 2_000)
    assert "## Goal\nMove total_price.py into the cart." in text
    assert "## Rules" not in text
    assert holding_statements(messages).rules == []
    (transcript,) = split_messages(messages, 9_000)
    assert f"--- tool, not the user\n{SKILL}" in transcript


def test_words_of_a_user_after_another_result_are_theirs():
    said = [
        user("Move it."),
        assistant("", ToolCall("c1", "Skill", "{}")),
        tool_result("c1", "Launching skill: a\nfailed"),
    ]
    assert "- Never open the shop on a Sunday." in digest_messages([*said, user(SKILL)], 2_000)


def test_the_prompt_behind_a_command_does_not_bind_later_work():
    command = user("<command-message>simplify</command-message>\n<command-name>/simplify</command-name>")
    prompt = user("# Simplify\n\nNever flag style. " + "You must read every file in full before you judge it. " * 30)
    text = digest_messages([user("Plan the shop."), say("I do."), command, prompt], 4_000)
    assert "## Goal\nPlan the shop." in text
    assert "Never flag style." not in text
    assert "Never flag style." in digest_messages([command, prompt], 4_000)


def test_remarks_and_notices_of_a_client_are_no_statements():
    notice = user(f"{NOTICE}\nFull transcript available at: /tmp/tasks/bop7dq50u.output")
    text = digest_messages([user("Port the parser."), user("[Request interrupted by user]"), notice], 2_000)
    assert "interrupted" not in text
    assert "Full transcript" not in text


@pytest.mark.parametrize(
    "note",
    [
        "[Messages m1 to m450 are hidden to fit the window.]",
        '[Messages m1 to m450 are hidden to fit the window. expand("m1-m450") brings them back.]',
        "[Message m4 is hidden to fit the window.]",
        '[Message m4 is hidden to fit the window. expand("m4") brings it back.]',
        '[Old tool result content cleared: log, 3,000 characters, 40 rows: "ok"; expand("m12")]',
        "[695 characters; m180]",
    ],
)
def test_notes_of_the_engine_are_no_statements(note: str):
    for message in (user(f"{note}\nThe port is 8080."), say(f"{note}\nThe port is 8080.")):
        text = digest_messages([user("Port the parser."), message], 2_000)
        assert "The port is 8080." in text
        assert note not in text
    assert note not in digest_messages([user("Port the parser.")], 2_000, previous=note)


def test_a_text_that_was_cut_ends_with_an_ellipsis():
    cut = say("The port is 8080. The host is `session.e\n[cut: 400 of 1,157 characters; m451]")
    assert "The host is `session.e …" in digest_messages([user("Port the parser."), cut], 2_000)


def test_the_target_of_a_call_has_no_note():
    call = ToolCall("c1", "Bash", '{"command": "[311 characters; m952] make status"}')
    result = tool_result("c1", "[output, 27 lines, exit code 1; m953]\nmake: no rule", state="error")
    text = digest_messages([user("Port the parser."), assistant("", call), result], 2_000)
    assert "- Bash make status: make: no rule" in text
    assert "m95" not in text


HELP = """\
❯ shop auth
Authenticate with the shop

Usage:
  shop auth [command]

Available Commands:
  link-card Link your card for the next order
  list        List all open orders
  login       Login with the browser"""
ENDS = """\
~/projects/shop (main)
node:fs:448
    at readFile (node:fs:448:20)
Node.js v23.4.0"""
SPINNER = """\
⠇ Working...
[shop:test] $ make test
[shop:test] ok 12
shop-web on main via v1.26.2 took 12s"""


@pytest.mark.parametrize("pasted", [HELP, ENDS, SPINNER])
def test_the_whole_output_below_a_prompt_is_pasted(pasted: str):
    own, found = split_pasted(f"Why does it stop?\n\n{pasted}\n\nI want it to go on.")
    assert own.split() == ["Why", "does", "it", "stop?", "I", "want", "it", "to", "go", "on."]
    assert found.split() == pasted.split()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("'/var/folders/49/T/Screenshot 2025-11-21 at 01.27.21.png'", "asked"),
        ("/srv/shop/cart-2.py", "asked"),
        ("/srv/shop/cart-2.py is the total.", "value"),
        ("The total is in /srv/shop/cart-2.py", "value"),
    ],
)
def test_the_path_of_a_file_alone_is_no_value(text: str, kind: str):
    assert weigh(text, "user", 1, 1.0).kind == kind
