"""Wrong names, kinds, ranges and combinations: the error names source, value, allowed values and higher levels."""

from __future__ import annotations

import os

import pytest

from foveate.errors import BadSetting
from foveate.policies import prune_tool_outputs
from foveate.policies.presets import sources

ABOVE_FILE = (
    'The keyword settings={"prune": {"minimum": ...}} and the environment (FOVEATE_PRUNE_MINIMUM) take precedence '
    "over it."
)
with pytest.raises(BadSetting) as _refused:
    prune_tool_outputs(minimum=-1)
REASON = str(_refused.value)

POLICIES = "Pass the name of a preset or of a .toml file as text, a policy or a list of policies."


# ---------------------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("windw = 5", "foveate.toml, line 1: windw: there is no setting of that name. Did you mean window? Known: po"),
        ("\n[prun]\nprotect = 5", "foveate.toml, line 2: prun: there is no setting of that name. Did you mean prune?"),
        (
            "[prune]\n\nprotekt = 5",
            "line 3: prune.protekt: there is no setting of that name. Did you mean protect? Kno",
        ),
        ("prune.xyz.abc = 5", "line 1: prune.xyz: there is no setting of that name. Known in prune: enabled, protect"),
        ("[recap]\nmin_preserved_pairs = 3", "line 2: recap.min_preserved_pairs: there is no setting of that name."),
        (
            "[lend.tools.grep]\nturn = 3",
            "line 2: lend.tools.grep.turn: there is no setting of that name. Did you mean t",
        ),
        ("[lend.best]\nturn = 3", "line 2: lend.best.turn: there is no setting of that name. Did you mean turns?"),
        (
            "[lend]\ncount = 3",
            "line 2: lend.count: there is no setting of that name. Known in lend: enabled, turns, sh",
        ),
        ("extends = 'prune'", "foveate.toml, line 1: extends: only a preset sets this; name the preset here: policy ="),
        ("prune = false", "foveate.toml, line 1: prune is false; allowed: a table of settings of prune, such as enab"),
        ("[[prune]]\nprotect = 5", "foveate.toml, line 1: prune is [{'protect': 5}]; allowed: a table"),
    ],
)
def test_an_unknown_name_in_the_file_is_refused(loaded, lending, toml, expected):
    assert expected in loaded.refused(toml)


def test_a_table_in_place_of_a_value_is_refused(loaded):
    """Regression: this raised a KeyError."""
    summarizer = "summarizer is a table, with 'model' in it; allowed: one value, such as summarizer = \"anthropic:"
    loaded.write("mine.toml", "[summarizer]\nmodel = 'x'\n")
    assert f"Preset mine.toml, line 1: {summarizer}" in loaded.refused(policy="mine.toml")
    assert f"foveate.toml, line 1: {summarizer}" in loaded.refused("[summarizer]\nmodel = 'x'")
    assert "line 1: window is a table, with 'tokens' in it; allowed: one value." in loaded.refused("window.tokens = 5")
    assert "line 1: floor is a table" in loaded.refused("[floor]\nhard = true")
    assert "summarizer is {}" in loaded.refused("[summarizer]")


@pytest.mark.parametrize("key", ["policy", "store", "format", "model", "window", "reserve", "tenant"])
def test_a_preset_cannot_set_general_settings(loaded, key):
    loaded.write("mine.toml", f'description = "x"\n{key} = 5\n')
    assert loaded.refused(policy="mine.toml") == (
        f"Preset mine.toml, line 2: {key}: a preset does not set this; write it into foveate.toml, or pass "
        f"{key}= or FOVEATE_{key.upper()}."
    )


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        (
            {"settings": {"prunee": {}}},
            'Keyword settings["prunee"]: there is no setting of that name. Did you mean prune?',
        ),
        (
            {"settings": {"prune": {"x": 1}}},
            'Keyword settings["prune"]["x"]: there is no setting of that name. Known in',
        ),
        ({"settings": {"window": 1}}, 'Keyword settings["window"]: there is no setting of that name. Known: floor, '),
        ({"settings": {5: {}}}, 'Keyword settings["5"]: there is no setting of that name.'),
        ({"settings": {"prune": 5}}, 'Keyword settings["prune"] is 5; allowed: a table of settings of prune'),
        ({"settings": "prune"}, "Keyword settings= is 'prune'; allowed: a mapping, such as"),
        ({"wndow": 5}, "Keyword wndow=: there is no setting of that name. Did you mean window?"),
    ],
)
def test_an_unknown_keyword_is_refused(loaded, keywords, expected):
    assert loaded.refused(**keywords).startswith(expected)


# ---------------------------------------------------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("minimum", "'5'", "'5'; allowed: a whole number."),
        ("minimum", "true", "true; allowed: a whole number."),
        ("minimum", "5.0", "5.0; allowed: a whole number."),
        ("minimum", "[5]", "[5]; allowed: a whole number."),
        ("minimum", "{}", "{}; allowed: a whole number."),
        ("minimum", "2020-01-01", "datetime.date(2020, 1, 1); allowed: a whole number."),
        ("protected_tools", "'skill'", "'skill'; allowed: a list of texts."),
        ("protected_tools", "['a', 1]", "['a', 1]; allowed: a list of texts."),
        ("protect_counts", "'some'", "'some'; allowed: one of all, tool_outputs."),
        ("protect_counts", "true", "true; allowed: one of all, tool_outputs."),
        ("protect_current_turn", "1", "1; allowed: true or false."),
        ("protect_current_turn", "'yes'", "'yes'; allowed: true or false."),
        ("placeholder", "5", "5; allowed: a text."),
        ("enabled", "'no'", "'no'; allowed: true or false."),
    ],
)
def test_a_value_of_another_kind_in_a_file_is_refused(loaded, key, value, expected):
    above = (
        f'The keyword settings={{"prune": {{"{key}": ...}}}} and the environment (FOVEATE_PRUNE_{key.upper()}) take '
        "precedence over it."
    )
    assert loaded.refused(f"[prune]\n{key} = {value}\n") == f"foveate.toml, line 2: prune.{key} is {expected} {above}"


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("[lend]\nturns = 'never'", "lend.turns is 'never'; allowed: a whole number or none."),
        ("[lend]\nshare = nan", "lend.share is nan; allowed: a number."),
        ("[lend]\nshare = 'much'", "lend.share is 'much'; allowed: a number."),
        (
            "[lend]\ntools = 5",
            "lend.tools is 5; allowed: a table of names, each with a table with turns, mode, length.",
        ),
        ("[lend.tools]\ngrep = 5", "line 2: lend.tools.grep is 5; allowed: a table with turns, mode, length."),
        ("[lend.tools.grep]\nturns = 'x'", "line 2: lend.tools.grep.turns is 'x'; allowed: a whole number or none."),
        (
            "[lend.tools.x]\nmode = 'shrink'",
            "lend.tools.x.mode is 'shrink'; allowed: one of none, remove, compact. The",
        ),
        ("[lend.names]\na = 1\nb = 'x'", "line 3: lend.names.b is 'x'; allowed: a whole number."),
    ],
)
def test_a_value_of_another_kind_inside_a_table_is_refused(loaded, lending, toml, expected):
    assert expected in loaded.refused(toml)


def test_the_environment_cannot_override_a_value_in_a_table(loaded, lending):
    assert loaded.refused("[lend.names]\na = 'x'\n") == (
        "foveate.toml, line 2: lend.names.a is 'x'; allowed: a whole number. "
        'The keyword settings={"lend": {"names": {"a": ...}}} takes precedence over it.'
    )


def test_allowed_values_in_tables_are_accepted(loaded, lending):
    text = lending(loaded("[lend]\nturns = 'none'\nshare = 1\n[lend.tools.x]\nmode = 'none'\nturns = 'none'\n"))
    assert (text["turns"], text["share"]) == (None, 1.0)
    assert (text["tools"]["x"].mode, text["tools"]["x"].turns) == ("none", None)
    assert type(text["share"]) is float


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        (
            "window = 0",
            "foveate.toml, line 1: window is 0; allowed: a whole number of 1,000 or more. The keyword window= and th",
        ),
        ("window = 128", "foveate.toml, line 1: window is 128; allowed: a whole number of 1,000 or more."),
        ("window = true", "window is true; allowed: a whole number of 1,000 or more."),
        ("reserve = -1", "reserve is -1; allowed: a whole number of 0 or more."),
        ("window = 99999999999999999999", "allowed: a whole number of 1,000 or more."),
        ("model = 5", "model is 5; allowed: a text."),
        ("tenant = ['a']", "tenant is ['a']; allowed: a text."),
        ("policy = 5", "policy is 5; allowed: a text."),
        ("floor = 'no'", "floor is 'no'; allowed: true or false."),
        (
            "store = 'mysql://x'",
            "store is 'mysql://x'. There is no store 'mysql://x'. Known: memory: and sqlite:///PATH",
        ),
        ("format = 'smoke'", "foveate.toml, line 1: format is 'smoke'. There is no format 'smoke'. Known: openai, "),
        (
            "summarizer = 'gpt-5-mini'",
            "There is no summarizer 'gpt-5-mini'. Did you mean openai:gpt-5-mini? Known: digest, first-characters",
        ),
        (
            "policy = 'prnue'",
            "line 1: policy is 'prnue'. There is no policy 'prnue'. Did you mean prune? Known: off, none",
        ),
        (
            "policy = 'mine.toml'",
            "line 1: policy is 'mine.toml'. There is no file mine.toml. The keyword policy= and the e",
        ),
    ],
)
def test_a_wrong_general_setting_is_refused(loaded, toml, expected):
    assert expected in loaded.refused(toml)


@pytest.mark.parametrize(
    ("keywords", "expected"),
    [
        ({"window": "5"}, "Keyword window= is '5'; allowed: a whole number of 1,000 or more."),
        ({"window": True}, "Keyword window= is true; allowed: a whole number of 1,000 or more."),
        ({"policy": 5}, f"policy is 5. {POLICIES}"),
        ({"policy": ["prune", 5]}, f"policy is [5]. {POLICIES}"),
        (
            {"settings": {"prune": {"minimum": True}}},
            'Keyword settings["prune"]["minimum"] is true; allowed: a whole number.',
        ),
        (
            {"settings": {"prune": {"minimum": None}}},
            'Keyword settings["prune"]["minimum"] is None; allowed: a whole numbe',
        ),
        ({"settings": {"prune": {"protected_tools": "skill"}}}, "is 'skill'; allowed: a list of texts."),
        ({"settings": {"prune": {"protected_tools": iter("ab")}}}, "allowed: a list of texts."),
        (
            {"settings": {"prune": {"minimum": -1}}},
            f'Keyword settings["prune"]["minimum"] is -1. This is refused: {REASON}',
        ),
    ],
)
def test_a_wrong_keyword_has_no_higher_level(loaded, keywords, expected):
    message = loaded.refused(**keywords)
    assert expected in message
    assert "precedence" not in message


def test_settings_of_mechanisms_with_own_policies_are_refused(loaded):
    assert loaded.refused(policy=lambda view: (), settings={"prune": {}}) == (
        "Keyword settings= sets mechanisms of a preset (prune), and policy= is a policy of your own. Pass only one of "
        "them."
    )


# ----------------------------------------------------------------------------------------------- ranges, combinations


def test_a_value_out_of_range_is_refused_with_its_source(loaded):
    text = loaded.refused("[prune]\nprotect = 5\nminimum = -1\n")
    assert text == f"foveate.toml, line 3: prune.minimum is -1. This is refused: {REASON} {ABOVE_FILE}"


def test_every_wrong_value_is_named(loaded):
    text = loaded.refused("[filter]\nkeep = -2\n", {"FOVEATE_FILTER_BATCH": "0"})
    assert text == (
        "foveate.toml, line 2: filter.keep is -2; environment FOVEATE_FILTER_BATCH is 0. This is refused: "
        "keep and batch of filter_tool_results are -2 and 0. Set keep to 0 or more, and batch to 1 or more. "
        'The keyword settings={"filter": {"keep": ...}}, the environment (FOVEATE_FILTER_KEEP) and '
        'the keyword settings={"filter": {"batch": ...}} take precedence over them.'
    )


def test_all_values_of_a_conflict_are_named(loaded, lending):
    text = loaded.refused("[lend]\nturns = 5\n[lend.names]\na = 4\nb = 6\n")
    assert text.startswith(
        "foveate.toml, line 5: lend.names.b is 6. This is refused: lend needs numbers of names that are below turns."
    )
    text = loaded.refused("[lend.tools.x]\nmode = 'compact'\nlength = 0\n[lend.names]\na = 1\n")
    assert text == (
        "foveate.toml, line 2: lend.tools.x.mode is 'compact'; foveate.toml, line 3: lend.tools.x.length is 0. This is "
        "refused: Nothing has a length below 1. "
        'The keyword settings={"lend": {"tools": {"x": {"mode": ...}}}} and '
        'the keyword settings={"lend": {"tools": {"x": {"length": ...}}}} take precedence over them.'
    )
    text = loaded.refused("[lend.tools.x]\nmode = 'remove'\nlength = 5\n")
    assert text.startswith(
        "foveate.toml, line 2: lend.tools.x.mode is 'remove'; foveate.toml, line 3: lend.tools.x.length is 5. Allowed: "
        "a table with turns, mode, length (length goes with mode compact)."
    )


def test_a_missing_required_setting_is_refused(loaded):
    assert loaded.refused("[filter]\nbatch = 2\n") == (
        "filter.keep is missing, and filter needs it; allowed: a whole number. Set it with the keyword "
        'settings={"filter": {"keep": ...}} or the environment (FOVEATE_FILTER_KEEP) or foveate.toml (filter.keep).'
    )


def test_a_higher_level_overrides_a_wrong_value(loaded):
    loaded.write("foveate.toml", "store = 'x'\nwindow = 'x'\n[prune]\nminimum = 'x'\n")
    environ = {"FOVEATE_STORE": "memory:", "FOVEATE_WINDOW": "5000", "FOVEATE_PRUNE_MINIMUM": "6"}
    assert loaded(environ=environ).values["prune.minimum"].value == 6


@pytest.mark.parametrize(
    "store",
    [
        "postgresql://u:hunter2@host/db",
        "sqlite:////tmp/elsewhere.db",
        "sqlite:///../elsewhere.db",
        "sqlite:///~/elsewhere.db",
        "sqlite:///link/chat.db",
    ],
)
def test_a_file_of_settings_cannot_name_a_store_outside_of_its_folder(loaded, store):
    (loaded.folder / "link").symlink_to(loaded.folder.parent)
    refusal = loaded.refused(f'store = "{store}"')
    assert refusal.startswith("foveate.toml, line 1: store is ")
    assert "Name such a store with the keyword store= or the environment (FOVEATE_STORE)" in refusal
    assert "hunter2" not in refusal
    assert loaded(environ={"FOVEATE_STORE": store})["store"] == store
    assert loaded(store=store)["store"] == store


@pytest.mark.parametrize("store", ["memory:", "sqlite:///chat.db", "sqlite:///data/chat.db?search=off"])
def test_a_file_of_settings_can_name_a_store_inside_of_its_folder(loaded, store):
    assert loaded(f'store = "{store}"')["store"] == store


def test_wrong_values_of_a_mechanism_that_is_off_are_ignored(loaded):
    loaded.write("foveate.toml", "[recap]\nbatch_size = 'x'\n")
    assert loaded(policy="prune").mechanisms == ("prune",)
    loaded.write("foveate.toml", "[recap]\nbatch_sise = 1\n")
    assert "Did you mean batch_size?" in loaded.refused(policy="prune")


# ---------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "[prune\n",
            "foveate.toml, line 1: this is no TOML: Expected ']' at the end of a table declaration (column 7).",
        ),
        ("window = 1\nwindow = 2\n", "foveate.toml, line 2: this is no TOML: Cannot overwrite a value (column 11)."),
        ("\n\nmodel = '''\nx\n", "foveate.toml, line 4: this is no TOML: Expected \"'''\" (the file ends here)."),
        ("window = " + "9" * 5_000, "foveate.toml is no TOML: Exceeds the limit"),
        ("x = " + "[" * 5_000, "foveate.toml holds lists in lists that are too deep."),
        (b"\n\nmodel = '\xff'\n", "foveate.toml, line 3: this is no UTF-8; save the file as UTF-8."),
        ("window = 1\n".encode("utf-16"), "foveate.toml, line 1: this is no UTF-8; save the file as UTF-8."),
        (b"window = 1\0\n", "foveate.toml, line 1: this is no TOML"),
        ("# " + "x" * 70_000, "foveate.toml is larger than 65,536 bytes: it cannot be a file of settings."),
    ],
)
def test_a_file_that_is_no_toml_is_refused(loaded, content, expected):
    assert loaded.refused(content).startswith(expected)


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(loaded):
    settings = loaded(b"\xef\xbb\xbfwindow = 5_000\r\n\r\n[prune]\r\nminimum = 6\r\n")
    assert settings["window"] == 5_000
    assert settings.values["prune.minimum"].source == "foveate.toml, line 4: prune.minimum"


def test_lines_are_found_in_a_large_file(loaded):
    lines = ["[prune]"] + [f"# {'x' * 60}"] * 1_000 + ["protected_tools = [", *["'tool',"] * 150, "]", "minimum = 3"]
    values = loaded("\n".join(lines)).values
    assert values["prune.protected_tools"].source == "foveate.toml, line 1002: prune.protected_tools"
    assert values["prune.minimum"].source == "foveate.toml, line 1154: prune.minimum"


def test_lines_after_a_very_long_statement_are_left_out(loaded):
    lines = ["[prune]", "protected_tools = [", *["'tool',"] * 5_000, "]", "minimum = 3"]
    assert loaded("\n".join(lines)).values["prune.minimum"].source == "foveate.toml: prune.minimum"


def test_a_folder_a_pipe_and_a_missing_file_are_refused(loaded):
    (loaded.folder / "dir.toml").mkdir()
    os.mkfifo(loaded.folder / "pipe.toml")
    assert loaded.refused(policy="dir.toml") == "dir.toml is a folder; name a TOML file."
    assert loaded.refused(policy="pipe.toml") == "pipe.toml is no ordinary file; name a TOML file."
    assert loaded.refused(policy="nothing.toml") == "There is no file nothing.toml."
    assert loaded.refused(policy="a\0b.toml").startswith("There is no file")
    assert loaded.refused(policy="x" * 5_000 + ".toml").endswith("File name too long.")
    assert loaded.refused(policy="~nobody-of-that-name/x.toml").startswith("There is no file")
    (loaded.folder / "foveate.toml").symlink_to("nothing.toml")
    assert loaded.refused() == "There is no file foveate.toml."
    (loaded.folder / "foveate.toml").unlink()
    (loaded.folder / "foveate.toml").mkdir()
    assert loaded.refused() == "foveate.toml is a folder; name a TOML file."


def test_an_unreadable_file_is_named(loaded, monkeypatch):
    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    loaded.write("mine.toml", "")
    monkeypatch.setattr(sources, "open", refuse, raising=False)
    assert loaded.refused(policy="mine.toml") == "mine.toml cannot be read: Permission denied."


def test_a_file_of_the_largest_size_is_read(loaded):
    assert loaded("window = 5_000\n#" + "x" * (sources.LARGEST - 16))["window"] == 5_000
    assert "is larger than" in loaded.refused("window = 5_000\n#" + "x" * (sources.LARGEST - 15))


def test_a_long_value_is_shortened(loaded):
    assert len(loaded.refused(f"[prune]\nprotect = '{'x' * 10_000}'\n")) < 300
    assert len(loaded.refused(f"[prune]\n{'x' * 200} = 1\n")) < 500
