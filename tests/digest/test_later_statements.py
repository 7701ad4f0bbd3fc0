"""Later statements stand behind those that they may replace, also over several digests."""

from __future__ import annotations

import pytest

from foveate import Message, ToolCall, assistant, tool_result, user
from foveate.digest.history import digest_messages
from foveate.digest.history.signs import Sign, signs_of
from foveate.digest.history.statements import split_statements
from foveate.digest.history.terms import terms_of

OLD, LATER = "The hotel in Tallinn costs 978 a night", "The hotel in Tallinn asks 363 a night."


def line_with(words: str, text: str) -> str:
    """Return the only line with these words."""
    (line,) = [line for line in text.splitlines() if words in line]
    return line


def call(result: str) -> tuple[Message, Message]:
    return assistant("", ToolCall("c1", "bash", '{"command": "check"}')), tool_result("c1", result)


def test_a_mark_outlives_a_repetition_of_the_later_statement():
    """The line lost its mark, and the older statement looked current, if the model said the later one again."""
    previous = f"## Values\n- {OLD} (later: {LATER})"
    text = digest_messages([user("Where do we stay?"), assistant(LATER)], 2_000, previous=previous)
    assert f"{OLD} (later: {LATER}" in line_with(OLD, text)


def test_a_mark_moves_to_the_statement_that_replaces_the_later_one():
    previous = "## Values\n- Take alpha for the logs (later: The port of the billing service is 7001.)"
    text = digest_messages([user("The port of the billing service is 7005 now.")], 2_000, previous=previous)
    assert "(later: The port of the billing service is 7005 now.)" in line_with("alpha", text)


def test_a_mark_of_a_chain_outlives_the_newest_statement():
    """`A · B (later: C)`: B stays behind A if C is gone."""
    previous = f"## Values\n- {OLD} · {LATER.rstrip('.')} (later: The weather is fine.)"
    text = digest_messages([user("Forget the weather. The weather is awful.")], 150, previous=previous)
    assert OLD not in text or "(later: " in line_with(OLD, text)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        (
            assistant("According to the docs, backoff_ms is capped at 146 for our plan."),
            "400 Bad Request: backoff_ms is capped at 499 for your plan",
        ),
        (user("The shipment handlers live in src/kestrel/sync."), "renamed src/kestrel/sync to src/engine, 3 handlers"),
        (
            user("db-80.internal runs postgres 6.24 at the moment."),
            "db-80.internal 'show version': postgres 5.27 (1 row)",
        ),
    ],
)
def test_a_short_result_stands_behind_the_statement_it_contradicts(said, result):
    text = digest_messages([user("Let us begin."), said, *call(result), assistant("Done.")], 2_000)
    assert f"(later: {result})" in line_with(said.text.rstrip("."), text)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("The gateway must have max_rows 40.", "the gateway has max_rows 60"),  # A wish.
        ("The logs of Petra take 40 GB in app/main.py.", "app/main.py: logs of Petra and Omar, 60 lines"),
        ("The logs of node-7.internal take 40 GB.", "node-7.internal rotated 60 GB of logs"),
    ],
)
def test_a_result_about_something_else_marks_nothing(said, result):
    assert "(later: " not in digest_messages([user("Let us begin."), user(said), *call(result)], 2_000)


def test_a_pronoun_in_a_result_takes_words_of_the_sentence_before():
    """These words stand at no place of its own sentence, which raised KeyError."""
    said, result = "Push src/kestrel/sync for Tom.", "The code was pushed. It is src/kestrel/sync."
    text = digest_messages([user("Let us begin."), assistant(said), *call(result), assistant("Done.")], 2_000)
    assert said in text


def test_sentences_of_a_short_message_are_shown_together():
    messages = [
        user("We build a bridge."),
        user("Concrete comes from Harbor Labs."),
        assistant("Noted."),
        user("Harbor Labs cancelled on us. Falcon Labs delivers the concrete."),
    ]
    text = digest_messages(messages, 2_000)
    assert "(later: Harbor Labs cancelled on us. Falcon Labs delivers the concrete.)" in text


def test_a_later_statement_stands_behind_the_question_it_settles():
    messages = [
        user("Could everyone live with the standup at 11:05?"),
        assistant("I think so."),
        user("The standup is at 15:05 until further notice."),
    ]
    assert "11:05? (later: The standup is at 15:05" in digest_messages(messages, 2_000)


def test_a_statement_with_a_name_that_is_gone_is_marked():
    messages = [
        user("All work on the reports page goes to release/ember-92."),
        assistant("Fine."),
        user("Go on."),
        assistant("I rebased the reports page onto release/raven-75 and deleted release/ember-92."),
    ]
    assert "release/ember-92 (later: I rebased" in digest_messages(messages, 2_000)


def test_another_limit_of_the_same_unit_stands_behind_the_first():
    messages = [user("Budget for hotels: 90,100 euros altogether."), user("50,700 euros for hotels is the maximum.")]
    assert "altogether (later: 50,700" in digest_messages(messages, 2_000)


@pytest.mark.parametrize(
    ("one", "other"), [("5,000", "5000"), ("$5000", "5k"), ("Oct", "October"), ("tues", "Tuesday")]
)
def test_one_number_or_day_is_one_term_however_it_is_written(one, other):
    assert terms_of(f"It costs or is {one}.").all == terms_of(f"It costs or is {other}.").all


def test_parts_of_an_identifier_are_no_words():
    """`max_depth` made each statement with it a rule."""
    assert not signs_of("max_depth is 642") & Sign.BINDING
    assert signs_of("You should _never_ do that") & Sign.BINDING


def test_a_sentence_with_their_belongs_to_the_one_before_it():
    text = "Patients with code OPS-9 withdrew consent. Their rows may not be used."
    assert split_statements(text) == [text]


def test_a_request_not_to_do_something_binds():
    assert signs_of("the Pereira family asked us not to print a name") & Sign.BINDING


def test_a_question_of_the_model_keeps_its_later_statement():
    previous = "## Said\n- Is the port of the gateway still 7001? (later: The gateway listens on 7005.)"
    text = digest_messages([user("Go on with the gateway."), assistant("Fine.")], 2_000, previous=previous)
    assert "7001? (later: The gateway listens on 7005.)" in text


def test_the_plural_of_a_short_word_is_the_same_term():
    for one, other in [("code", "codes"), ("row", "rows"), ("file", "files"), ("box", "boxes"), ("case", "cases")]:
        assert terms_of(f"the {one}").all == terms_of(f"the {other}").all
    assert terms_of("the note").all.isdisjoint(terms_of("not it").all)


def test_a_number_before_an_arrow_is_no_longer_valid():
    text = digest_messages([user("Hello."), user("grace_period is 965 in config/tracker.yaml"), assistant("Fine."),
                            user("grace_period: 965 → 977 pls, docs too")], 2_000)  # fmt: skip
    assert "977" in text
    assert not [line for line in text.splitlines() if "965" in line and "977" not in line]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Use port 8080 for the gateway.", "Set the timeout to 30."),
        ("The budget is 400.", "Move the sofa to room 12."),
        ("Lunch with Sven is at 12:30.", "Call the dentist at 9:15."),
    ],
)
def test_an_order_about_another_thing_replaces_no_value(one: str, other: str):
    text = digest_messages([user("Hello."), user(one), assistant("Fine."), user(other)], 2_000)
    assert "replaced by" not in text
    assert one.rstrip(".") in text
    assert other.rstrip(".") in text


def test_a_new_identifier_for_a_thing_replaces_the_last_one():
    said = [user("Give the exporter a flag --harbor-cache that skips empty rows."), assistant("Fine."),
            user("hm, people will read that as the opposite. call the flag --copper-gateway")]  # fmt: skip
    assert "(replaced by: call the flag --copper-gateway" in digest_messages([user("Hello."), *said], 2_000)


def test_a_day_has_the_same_term_in_the_plural():
    assert "mittwoch" in terms_of("Die Tonne muss immer mittwochs raus.").values
    assert "friday" in terms_of("no deploys on fridays").values


def test_a_label_and_its_value_stay_in_one_clause():
    said = [user("For the move:\n- van booked for 6 May\n- boxes: 40 ordered"), assistant("Fine."),
            user("boxes: 88, I went through the cellar yesterday and it's endless")]  # fmt: skip
    lines = digest_messages([user("Hello."), *said], 2_000).splitlines()
    assert not [line for line in lines if "40 ordered" in line and "boxes: 88" not in line]
    assert [line for line in lines if "6 May" in line and "boxes" not in line]


def test_an_item_of_a_newer_report_follows_the_one_with_its_label():
    one = "State of things:\n- beacon: deployed, version 19.31\n- vault: blocked by FIN-2899"
    other = "State of things:\n- beacon: deployed, version 19.31\n- vault: deployed, FIN-2899 was a typo"
    text = digest_messages([user("Go."), assistant(one), user("And now?"), assistant(other)], 2_000)
    assert "vault: blocked by FIN-2899 (later: State of things: vault: deployed" in text


def test_a_permission_in_other_words_follows_the_prohibition_of_the_same_path():
    said = [user("Good morning."), user("Don't touch src/maple/cache, it belongs to Viggo's team."), assistant("Fine."),
            user("We inherited src/maple/cache today, so refactor in there whatever you need.")]  # fmt: skip
    assert "Viggo's team (later: We inherited src/maple/cache" in digest_messages(said, 2_000)


def test_something_that_is_off_is_a_change():
    said = [user("Hello."), user("lunch with Sven tomorrow at the Greek place, pls book for two"), assistant("Fine."),
            user("lunch is off, Sven is in bed with the flu")]  # fmt: skip
    text = digest_messages(said, 2_000)
    assert "lunch is off" in text
    assert "book for two" not in text


def test_a_sentence_with_a_colon_is_no_item_of_a_report():
    said = [user("Hello."), user("The plumber comes at 11:35 on Thursday, somebody has to be home."),
            assistant("All right."), user("Where is the sidebar?"),
            assistant("The office of the plumber has called: he will ring at 17:20 instead of 11:35.")]  # fmt: skip
    assert "home (later: The office of the plumber" in digest_messages(said, 2_000)


def test_free_room_shows_the_newest_result_of_a_call():
    first, again = call('{"service": "mailer", "port": 3923, "status": "up"}'), call("mailer port 2676 status up again")
    text = digest_messages([user("Look at it."), *first, assistant("Fine."), *again], 2_000)
    assert "2676" in text
    assert "3923" not in text


def test_free_room_shows_an_older_result_whose_call_was_answered_by_a_remark():
    first, again = (
        call("The mailer listens on port 3923 and sends forty letters each minute."),
        call("Unchanged since."),
    )
    assert "3923" in digest_messages([user("Look at it."), *first, assistant("Fine."), *again], 2_000)


def test_a_short_sentence_stays_with_what_it_refers_to():
    text = "took FIN-8331 off Omar, too much going on there. Saskia does it"
    assert split_statements(text) == [text]
    assert len(split_statements("The tests pass. Saskia has a question about the port.")) == 2


def test_a_question_that_contradicts_follows_what_it_contradicts():
    said = [user("Hello."), user("Please plan with this: the concert in Bari starts at 18:50."), assistant("Fine."),
            user("wait, don't the tickets say that the concert starts at 22:20?")]  # fmt: skip
    assert "starts at 18:50 (later: wait, don't the tickets" in digest_messages(said, 2_000)
    said[-1] = user("when does the concert start, and who else comes to the concert?")
    assert "(later: " not in digest_messages(said, 2_000)


def test_an_addition_follows_what_was_exclusive():
    said = [user("Hello."), user("for the smart lock: only Hamza gets a code"), assistant("Fine."),
            user("the smart lock needs codes for Katya and Omar as well")]  # fmt: skip
    assert "only Hamza gets a code (later: the smart lock needs" in digest_messages(said, 2_000)
    said[1] = user("for the smart lock: Hamza gets a code")
    assert "(later: " not in digest_messages(said, 2_000)


def test_a_statement_about_a_part_follows_the_one_about_all():
    said = [user("Hello."), user("For the analysis of audits: exclude orders below 604 euros."), assistant("Fine."),
            user("Finance wants the full picture, so take all orders into the analysis of audits.")]  # fmt: skip
    assert "604 euros (later: Finance wants the full picture" in digest_messages(said, 2_000)


def test_another_amount_of_a_model_follows_the_first():
    said = [user("Hello."), assistant("According to the scan the sofa is 385 cm wide, so it passes the door."),
            user("Sure?"), assistant("In the second scan the sofa measures 914 cm and does not pass the door."),
            user("And the table?"), assistant("I have no scan of it.")]  # fmt: skip
    assert "passes the door (later: In the second scan" in digest_messages(said, 2_000)


def test_items_with_a_label_that_a_report_repeats_are_no_versions():
    one = "Based on the input:\n- Run: git diff main\n- Run: git show HEAD"
    other = "Based on the input:\n- Run: git log -3"
    text = digest_messages([user("Go."), assistant(one), user("And now?"), assistant(other)], 2_000)
    assert "(later: " not in text


def test_another_number_of_a_named_thing_follows_the_first():
    said = [user("Hello."), user("the dev server of sierra-catalog listens on 7175, hardcode that"), assistant("Fine."),
            user("ugh 7175 is taken on the ci boxes. pls start sierra-catalog on 3948")]  # fmt: skip
    assert "hardcode that (later: ugh 7175 is taken" in digest_messages(said, 2_000)


def test_two_numbers_that_count_two_things_stay_apart():
    said = [user("Hello."), user("The upload endpoint takes at most 16 MB per file."), assistant("Fine."),
            user("The upload endpoint takes at most 36 files per request.")]  # fmt: skip
    text = digest_messages(said, 2_000)
    assert "16 MB per file" in text
    assert "36 files per request" in text


def test_no_identifier_soon_behind_a_rule_follows_it():
    said = [user("Hello."), user("Never write to the table ledger_2019."),
            user("The order table has update_account_header in it.")]  # fmt: skip
    assert "(later: " not in digest_messages(said, 2_000)
