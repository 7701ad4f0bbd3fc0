"""The environment: variables, their values, and the variables of other programs."""

from __future__ import annotations

import pytest

from foveate.settings import load

TABLE = "FOVEATE_LEND_TOOLS: lend.tools is a table, which the environment cannot hold; write it into foveate.toml."


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        ("PRUNE_MINIMUM", "30000", 30_000),
        ("PRUNE_MINIMUM", " 30_000\n", 30_000),
        ("PRUNE_MINIMUM", "+5", 5),
        ("PRUNE_MINIMUM", "007", 7),
        ("PRUNE_PROTECTED_TOOLS", "skill", ("skill",)),
        ("PRUNE_PROTECTED_TOOLS", "skill, load_skill,", ("skill", "load_skill")),
        ("PRUNE_PROTECTED_TOOLS", ",", ()),
        ("PRUNE_PROTECT_COUNTS", "tool_outputs", "tool_outputs"),
        ("PRUNE_PROTECT_CURRENT_TURN", "Yes", True),
        ("PRUNE_PROTECT_CURRENT_TURN", "1", True),
        ("PRUNE_PROTECT_CURRENT_TURN", "OFF", False),
        ("PRUNE_PROTECT_CURRENT_TURN", "0", False),
        ("PRUNE_PLACEHOLDER", "[gone, really]", "[gone, really]"),
        ("LEND_TURNS", "none", None),
        ("LEND_TURNS", "None", None),
        ("LEND_TURNS", "-4", -4),
        ("LEND_LABEL", "None", None),
        ("LEND_LABEL", "nobody", "nobody"),
        ("LEND_SHARE", "0.25", 0.25),
        ("LEND_SHARE", "1", 1.0),
        ("LEND_SHARE", ".5e-1", 0.05),
    ],
)
def test_a_variable_is_parsed_as_its_kind(loaded, lending, variable, text, value):
    settings = loaded("[lend]\n", {f"FOVEATE_{variable}": text})
    found = settings.values[variable.lower().replace("_", ".", 1)]
    assert (found.value, found.source) == (value, f"environment FOVEATE_{variable}")
    assert type(found.value) is type(value)


@pytest.mark.parametrize(
    ("variable", "text", "allowed"),
    [
        ("PRUNE_MINIMUM", "many", "a whole number"),
        ("PRUNE_MINIMUM", "3.0", "a whole number"),
        ("PRUNE_MINIMUM", "30,000", "a whole number"),
        ("PRUNE_MINIMUM", "1e4", "a whole number"),
        ("PRUNE_MINIMUM", "true", "a whole number"),
        ("PRUNE_MINIMUM", "none", "a whole number"),
        ("PRUNE_MINIMUM", "\u0663", "a whole number"),
        ("PRUNE_MINIMUM", "9" * 5_000, "a whole number"),
        ("PRUNE_PROTECT_COUNTS", "ALL", "one of all, tool_outputs"),
        ("PRUNE_PROTECT_CURRENT_TURN", "2", "true or false"),
        ("PRUNE_ENABLED", "maybe", "true or false"),
        ("LEND_SHARE", "nan", "a number"),
        ("LEND_SHARE", "1e999", "a number"),
        ("LEND_TURNS", "nil", "a whole number or none"),
    ],
)
def test_a_variable_of_another_kind_is_refused(loaded, lending, variable, text, allowed):
    message = loaded.refused("[lend]\n", {f"FOVEATE_{variable}": text})
    assert message.startswith(f"Environment FOVEATE_{variable} is ")
    mechanism, _, key = variable.lower().partition("_")
    keyword = f'The keyword settings={{"{mechanism}": {{"{key}": ...}}}} takes precedence over it.'
    assert message.endswith(f"; allowed: {allowed}. {keyword}")


@pytest.mark.parametrize(
    ("variable", "text", "expected"),
    [
        (
            "WINDOW",
            "0",
            "Environment FOVEATE_WINDOW is 0; allowed: a whole number of 1,000 or more. The keyword window= takes",
        ),
        ("WINDOW", "big", "Environment FOVEATE_WINDOW is 'big'; allowed: a whole number of 1,000 or more."),
        (
            "FLOOR",
            "low",
            "Environment FOVEATE_FLOOR is 'low'; allowed: true or false. The keyword settings={\"floor\": ...}",
        ),
        ("STORE", "mysql://x", "Environment FOVEATE_STORE is 'mysql://x'. There is no store"),
        ("POLICY", "prnue", "Environment FOVEATE_POLICY is 'prnue'. There is no policy 'prnue'. Did you mean prune?"),
        (
            "PRUNE_MINIMUM",
            "-1",
            "Environment FOVEATE_PRUNE_MINIMUM is -1. This is refused: minimum of prune_tool_outputs",
        ),
    ],
)
def test_a_variable_that_is_not_allowed_is_refused(loaded, variable, text, expected):
    assert loaded.refused(None, {f"FOVEATE_{variable}": text}).startswith(expected)


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("FOVEATE_PRUNE_PROTEKT", " Did you mean FOVEATE_PRUNE_PROTECT?"),
        ("foveate_prune_protect", " Did you mean FOVEATE_PRUNE_PROTECT?"),
        ("FOVEATE_Window", " Did you mean FOVEATE_WINDOW?"),
        ("FOVEATE_WINDOWS", " Did you mean FOVEATE_WINDOW?"),
        ("FOVEATE_", ""),
        ("FOVEATE_PRUNE", " Did you mean FOVEATE_PRUNE_ENABLED?"),
        ("FOVEATE_PRUNE_", ""),
        ("FOVEATE_RECAP_MIN_PRESERVED_PAIRS", ""),
        ("FOVEATE_DESCRIPTION", ""),
        ("FOVEATE_LEND_COUNT", ""),
    ],
)
@pytest.mark.parametrize("text", ["5", ""])
def test_an_unknown_variable_is_refused_with_any_value(loaded, lending, variable, near, text):
    message = loaded.refused(None, {variable: text}, policy="off")
    assert message.startswith(f"The environment has {variable}, but there is no setting of that name.{near}")
    assert message.endswith("`foveate policy show` lists all settings.")


def test_a_variable_cannot_hold_a_table(loaded, lending):
    assert loaded.refused(None, {"FOVEATE_LEND_TOOLS": "grep"}) == TABLE


def test_a_blank_variable_sets_nothing(loaded):
    environ = {"FOVEATE_WINDOW": "", "FOVEATE_PRUNE_MINIMUM": "  ", "FOVEATE_FILTER_KEEP": ""}
    settings = loaded('policy = "prune"\nwindow = 7_000\n', environ)
    assert settings.values["prune.minimum"].source == "default"
    assert (settings["window"], settings.mechanisms) == (7_000, ("prune",))


def test_variables_of_tests_and_other_programs_are_ignored():
    environ = {
        "FOVEATE_THOROUGH": "1",
        "FOVEATE_TRANSCRIPTS": "/x",
        "FOVEATE_TEST_X": "",
        "PATH": "/bin",
        "AFOVEATE_X": "",
    }
    assert load(environ=environ).values["window"].source == "default"


# --------------------------------------------------------------------------------------------- variables of before


def test_older_variables_set_recaps_if_recaps_are_on(loaded):
    environ = {"LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES": "5", "LLM_COMPACTION_BATCH_SIZE": "2"}
    values = loaded(None, environ, policy="recap").values
    key = "recap.min_preserved_assistant_messages"
    assert (values[key].value, values[key].source) == (
        5,
        "environment LLM_COMPACTION_MIN_PRESERVED_ASSISTANT_MESSAGES",
    )
    assert values["recap.batch_size"].value == 2
    assert loaded('policy = "prune"\n', environ).mechanisms == ("prune",)


def test_older_variables_rank_between_the_file_and_newer_ones(loaded):
    loaded.write("foveate.toml", 'policy = "recap"\n[recap]\nbatch_size = 6\n')
    older = {"LLM_COMPACTION_BATCH_SIZE": "7"}
    newer = {**older, "FOVEATE_RECAP_BATCH_SIZE": "8"}
    answers = [
        loaded(),
        loaded(None, older),
        loaded(None, newer),
        loaded(None, newer, settings={"recap": {"batch_size": 9}}),
    ]
    assert [one.values["recap.batch_size"].value for one in answers] == [6, 7, 8, 9]


def test_the_older_variable_switches_recaps_off_unless_a_newer_is_set(loaded):
    older = {"LLM_COMPACTION_ENABLED": "False"}
    assert loaded(None, older, policy="recap").mechanisms == ()
    assert loaded(None, {**older, "FOVEATE_RECAP_ENABLED": "on"}, policy="recap").mechanisms == ("recap",)
    assert loaded('policy = "prune"\n', {"LLM_COMPACTION_ENABLED": "true"}).mechanisms == ("prune",)


def test_a_wrong_older_variable_is_named_if_it_counts(loaded):
    environ = {"LLM_COMPACTION_BATCH_SIZE": "0"}
    message = loaded.refused(None, environ, policy="recap")
    assert message == "LLM_COMPACTION_BATCH_SIZE is '0'; set it to a whole number of 1 or more."
    assert loaded('policy = "prune"\n', environ).mechanisms == ("prune",)
