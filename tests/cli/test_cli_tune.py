"""`foveate tune`: output, files and wrong input."""

from __future__ import annotations

import json
import sys
import tomllib
from pathlib import Path

import pytest
from tuning_samples import sessions

from foveate.policies.presets import load_preset

pytestmark = pytest.mark.slow

OPTIONS = ("--policy", "keep-last-5", "--window", "32000", "--prices", "1,1", "--jobs", "1")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return sessions(tmp_path_factory.mktemp("sessions"), back=6, number=4)


def test_tune_prints_the_changes_and_writes_preset_and_report(run, files, tmp_path):
    place, report = tmp_path / "mine.toml", tmp_path / "report.html"
    code, out, err = run("tune", files[0].parent, *OPTIONS, "--write", place, "--html", report)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("policy keep-last-5  4 recordings, window 32,000, 2 parameters, ")
    assert "filter.keep" in out
    assert "Cross-check: on recordings that the search did not see, its settings cost" in out
    assert f"The preset is in {place}." in out
    assert f"foveate replay FILE --policy {place}" in out
    assert load_preset(str(place)).layer[("filter", "keep")].value >= 7
    page = report.read_text("utf-8")
    assert "clairvoyant limit" in page
    assert "filter.keep" in page
    assert "<script>\n" not in page


def test_tune_prints_the_preset_if_no_file_is_named(run, files):
    _, out, _ = run("tune", *files, *OPTIONS)
    assert 'extends = "keep-last-5"' in out


def test_the_printed_preset_is_toml_in_any_width(run, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    _, out, _ = run("tune", *files, *OPTIONS)
    assert tomllib.loads(out[out.index("# Tuned on") :])["extends"] == "keep-last-5"


def test_tune_replaces_only_presets_that_it_wrote(run, files, tmp_path, monkeypatch):
    """A preset that replaces one that it extends, also by way of others, would extend itself."""
    monkeypatch.chdir(tmp_path)
    tuned = "# Tuned on 4 recordings, window 32,000 tokens, seed 0.\nextends = 'keep-last-5'\n"
    texts = {"mine.toml": tuned, "foveate.toml": 'policy = "keep-last-5"\n', "own.toml": 'extends = "keep-last-5"\n'}
    for name, text in texts.items():
        Path(name).write_text(text)
    for name in texts:
        code, _, err = run(
            "tune", *files, *OPTIONS[2:], "--policy", "mine.toml", "--write", f"../{tmp_path.name}/{name}"
        )
        assert code == 2
        assert ("the preset that is searched" if name == "mine.toml" else "foveate tune did not write it") in err
    for number in (1, 2):
        Path(f"above{number}.toml").write_text(f"extends = '{'mine' if number == 1 else 'above1'}.toml'\n")
        code, _, err = run("tune", *files, *OPTIONS[2:], "--policy", f"above{number}.toml", "--write", "mine.toml")
        assert (code, "or one that it extends" in err) == (2, True)
    assert {name: Path(name).read_text() for name in texts} == texts
    code, _, err = run("tune", *files, *OPTIONS, "--write", "mine.toml")
    assert (code, err) == (0, "")
    assert Path("mine.toml").read_text() != tuned


def test_tune_writes_nothing_if_there_is_nothing_to_win(run, tmp_path):
    talk = ['{"role": "user", "content": "hello"}', '{"role": "assistant", "content": "hello too"}']
    files = [tmp_path / f"{number}.jsonl" for number in range(4)]
    for number, file in enumerate(files):
        file.write_text("\n".join(talk * (number + 1)))
    code, out, err = run("tune", *files, *OPTIONS, "--write", tmp_path / "mine.toml")
    assert (code, err) == (0, "")
    assert "There is nothing to win here" in out
    assert "mine.toml was not written." in out
    assert not (tmp_path / "mine.toml").exists()


def test_tune_prints_one_json_object(run, files):
    code, out, err = run("tune", *files, *OPTIONS, "--json", "--keep-readable", "1")
    assert (code, err) == (0, "")
    facts = json.loads(out)
    assert facts["is_better"] is True
    assert facts["best"]["settings"]["filter"]["keep"] == 7
    assert facts["best"]["readable"] == 1.0
    assert facts["held_out"]["gain"] > 0
    assert facts["preset_text"].startswith("# Tuned on 4 recordings")
    assert facts["trials"][0]["settings"] == {}


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["one.jsonl"], "Tuning needs at least 4 recordings, not 1"),
        ([], "Tuning needs at least 4 recordings, not 0"),
        (["a", "b", "c", "d", "--write", "mine.txt"], "--write is mine.txt. Name a file that ends with .toml."),
        (["a", "b", "c", "d", "--write", "nowhere/mine.toml"], "There is no folder nowhere"),
        (["a", "b", "c", "d", "--minutes", "0"], "minutes is 0.0. Set it to a number above 0."),
        (["a", "b", "c", "d", "--policy", "none"], "'none' has no parameters to search"),
        (["a", "b", "c", "d", "--jobs", "0"], "--window and --jobs must be whole numbers above 0."),
        (["a", "b", "c", "d"], "Name more recordings. a: there is no such file."),
        (["."], "holds no recording. Name a file"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(run, arguments, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run("tune", *arguments)
    assert (code, out) == (2, "")
    assert text in err
    assert not list(tmp_path.iterdir())


def test_tune_runs_on_the_named_engine(run, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, out, err = run("tune", *files, *OPTIONS, "--engine", "ray")
    assert (code, out) == (2, "")
    assert 'The engine ray needs a package: pip install "foveate[ray]".' in err
