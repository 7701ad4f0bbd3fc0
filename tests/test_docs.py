"""The documentation runs: every Python block of README and `docs/`, page by page, in order.

A `text` block directly after a Python block is its exact output. Clients of providers are stubs that refuse illegal
requests.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from foveate import Options
from foveate.core.rules import RULES
from foveate.counters import counter_for
from foveate.policies import PRESET_NAMES
from foveate.policies.presets.mechanisms import MECHANISMS
from foveate.policies.result_worth import CHANCE, CHANCE_CHANGED, CHANCE_READ, STAY
from foveate.replay.recordings import READERS
from foveate.replay.result import COLUMNS
from foveate.testing import StubAnthropic, StubOpenAI, answer, call, say
from foveate.types import Prices

ROOT = Path(__file__).resolve().parent.parent
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", *(page for page in DOCS if page.parent.name != "frameworks")]
"""The pages of `docs/frameworks` run in the environments of these frameworks (`tests/hosts`)."""
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n*^```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)

FIRST = ("README.md", "getting-started.md")
"""These pages and the concepts show the figures of an installation without extras, as a new user has it."""
CONSOLE = re.compile(r"^```console\n\$ (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

WITHOUT_TOKENS = """
import foveate.counters, foveate.__main__
foveate.counters.find_spec = lambda name: None
foveate.__main__.main()
"""


def run_tools(reply: Any) -> list[dict[str, Any]]:
    """The reader's function: one result block for every call."""
    calls = [block for block in reply.content if block.type == "tool_use"]
    return [{"type": "tool_result", "tool_use_id": c.id, "content": "3 passed, 1 failed: test_login"} for c in calls]


def ask_a_cheap_model(request: Any) -> str:
    """The reader's function: the answer to a SummaryRequest."""
    return "They looked for the cookie."


def setting() -> dict[str, Any]:
    """Return the names that a page may use: the reader's own names, and stub SDKs."""
    script = [call("toolu_1", "run_tests", path="tests"), say("The cookie is never set.")]
    anthropic = types.ModuleType("anthropic")
    anthropic.Anthropic = lambda: StubAnthropic(list(script))  # type: ignore[attr-defined]
    anthropic.BadRequestError = Exception  # type: ignore[attr-defined]
    openai = types.ModuleType("openai")
    openai.OpenAI = lambda: StubOpenAI([say("Paris."), say("Rome.")])  # type: ignore[attr-defined]
    sys.modules.update(anthropic=anthropic, openai=openai)
    return {
        "MODEL": "model-of-yours",
        "RULES": "You mend tests. Never delete one.",
        "TOOLS": [{"name": "run_tests", "description": "Run them.", "input_schema": {"type": "object"}}],
        "run_tools": run_tools,
        "ask_a_cheap_model": ask_a_cheap_model,
        "messages": [{"role": "user", "content": "What is the capital of France?"}],
        "answer": answer,
        "call": call,
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_examples_of_a_page_run_and_print_their_output(page: Path, tmp_path: Path, monkeypatch, request):
    monkeypatch.chdir(tmp_path)
    if page.name in FIRST or page.parent.name == "concepts":
        monkeypatch.setattr("foveate.open.parts.counter_for", counter_for)
        monkeypatch.setattr("foveate.counters.find_spec", lambda name: None)
        monkeypatch.setattr("foveate.expand.tool._has_patterns", lambda: False)  # Its answer is kept for the process.
    if "DATABASE_URL" in page.read_text(encoding="utf-8"):  # Skipped without a PostgreSQL server.
        monkeypatch.setenv("DATABASE_URL", request.getfixturevalue("postgres_url"))
    if page.name == "worker.md":
        pytest.importorskip("procrastinate", reason="procrastinate is not installed (the extra `worker`)")
    if page.name in ("mcp.md", "mcp-server.md"):
        pytest.importorskip("mcp", reason="mcp is not installed (the extra `mcp`)")
    if page.name == "inspector.md":
        pytest.importorskip("starlette", reason="starlette is not installed (the extra `inspect`)")
        pytest.importorskip("jinja2", reason="Jinja2 is not installed (the extra `inspect`)")
        pytest.importorskip("pygments", reason="Pygments is not installed (the extra `inspect`)")
    if page.name == "proxy.md":
        pytest.importorskip("uvicorn", reason="uvicorn is not installed (the extra `proxy`)")
        pytest.importorskip("aiohttp", reason="aiohttp is not installed (the extra `proxy`)")
        pytest.importorskip("anthropic")
    if page.name in ("models.md", "proxy.md"):  # These pages use the real SDKs with servers of their own.
        pytest.importorskip("openai")
        pytest.importorskip("genai_prices")
        names: dict[str, Any] = {}
    else:
        monkeypatch.setitem(sys.modules, "anthropic", types.ModuleType("anthropic"))
        monkeypatch.setitem(sys.modules, "openai", types.ModuleType("openai"))
        names = setting()
    for code, printed in BLOCK.findall(page.read_text(encoding="utf-8")):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, f"{page.name}: {code[:40]!r}", "exec"), names)
        if printed:
            assert out.getvalue() == printed
    if page.name == "settings.md":
        check_commands(page, tmp_path)
    if page.name == "getting-started.md":
        (tmp_path / "examples" / "data").mkdir(parents=True)
        shutil.copy(ROOT / "examples" / "data" / "demo.jsonl", tmp_path / "examples" / "data")
        check_commands(page, tmp_path)


def check_commands(page: Path, folder: Path) -> None:
    """Run each `console` block of a page, and compare its output. A line `...` stands for any number of lines.

    Variables of the environment may stand before a command.
    """
    commands = CONSOLE.findall(page.read_text(encoding="utf-8"))
    assert commands
    for command, printed in commands:
        variables, _, arguments = command.partition("foveate ")
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_TOKENS, *shlex.split(arguments)],
            cwd=folder,
            env={
                **os.environ,
                **dict(variable.split("=") for variable in variables.split()),
                "COLUMNS": "100",
                "PYTHONPATH": str(ROOT / "src"),
            },
            capture_output=True,
            text=True,
            timeout=300,
        )
        expected = "".join(r"(?:.*\n)*" if line == "...\n" else re.escape(line) for line in printed.splitlines(True))
        assert (done.returncode, done.stderr) == (0, "")
        assert re.fullmatch(expected, done.stdout.replace("\xa0", " ")), done.stdout


def test_the_page_of_economy_has_the_calls_that_results_stay():
    """In a view of 30,000 tokens, at the default prices."""
    page = (ROOT / "docs" / "mechanisms" / "economy.md").read_text(encoding="utf-8")
    prices = Prices()
    for size in (500, 1_000, 10_000):
        # One more request, and the result in it and in the requests after it.
        fetching = prices.read * 30_000 + (prices.write + STAY * prices.read) * size
        stays = [
            sum(number / calls * fetching > prices.read * size for calls in range(1, 100))
            for number in (CHANCE_READ, CHANCE_CHANGED, CHANCE)
        ]
        assert f"| {size:,} | {stays[0]} | {stays[1]} | {stays[2]} |" in page


def test_the_page_of_rules_has_every_rule():
    page = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
    for rule in RULES:
        assert f"`{rule.__name__}`" in page
        assert rule.__doc__ is not None
        assert rule.__doc__.splitlines()[0] in page


def test_the_page_of_replay_names_policies_figures_and_readers():
    page = (ROOT / "docs" / "guides" / "replay.md").read_text(encoding="utf-8")
    assert [name for name in PRESET_NAMES if f"`{name}`" not in page] == []
    titles = [column.title.removesuffix(" p50 / p99").replace("ms", "milliseconds") for column in COLUMNS]
    assert [title for title in titles if title not in page] == []
    assert re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE) == [reader.name for reader in READERS]


def test_every_page_is_listed_on_the_start_page():
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    names = [page.relative_to(ROOT / "docs").as_posix() for page in DOCS]
    assert [name for name in names if name != "index.md" and f"({name})" not in start] == []


def test_the_page_of_settings_has_every_option_and_mechanism():
    page = (ROOT / "docs" / "guides" / "settings.md").read_text(encoding="utf-8")
    rows = [row.partition(" | ")[0] for row in page.splitlines() if row.startswith("| `")]
    named = set(re.findall(r"`([^`]+)`", " ".join(rows)))
    assert set(Options.__struct_fields__) - named == set()
    assert {f"[{name}]" for name in MECHANISMS} - named == set()


def test_values_in_the_text_of_a_page_exist():
    """`cost_of=foveate.open.cost_of` in a sentence: a reader copies it behind `import foveate`."""
    names: dict[str, str] = {}
    for page in (ROOT / "README.md", *DOCS):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        names |= dict.fromkeys(re.findall(r"[=(](foveate(?:\.[A-Za-z]\w*)+)", text), page.name)
    assert names
    code = "import sys, foveate\nfor name in sys.argv[1:]: eval(name)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for name, page_name in names.items():
        done = subprocess.run([sys.executable, "-c", code, name], env=environment, capture_output=True, text=True)
        assert (page_name, done.stderr) == (page_name, "")
