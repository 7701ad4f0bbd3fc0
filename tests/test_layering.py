"""The dependency rule: the table of imports is exact, the core is pure, and packages are used only in their leaves.

`tools/layering.py` writes the table `tests/layering.txt`. The planted violations test the checks themselves.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "foveate"

ALWAYS: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "ports": {"errors", "core"},
    "digest": {"errors", "core"},
    "formats": {"errors", "core", "ports"},
    "policies": {"errors", "core", "ports", "digest"},
    "testing": {"errors", "core", "ports", "formats"},
}
"""Parts whose imports no table may extend."""

EXCEPTIONS = {("cli", "foveate.testing.bodies")}
"""No part imports `testing`, except the command line: `foveate check` uses the independent checker of bodies."""

PACKAGES: dict[str, set[str]] = {
    "digest": {"tree_sitter"},
    "expand": {"regex"},
    "stores": {"zstandard", "psycopg", "psycopg_pool"},
    "counters": {"toktok", "ctok"},
    "models": {"anthropic", "openai", "genai_prices"},
    "telemetry": {"opentelemetry"},
    "agents": {"jinja2", "mcp"},
    "replay": {"jinja2", "ray"},
    "ops": {"zstandard", "procrastinate", "psycopg", "psycopg_pool"},
    "hosts": {
        "agent_framework",
        "agents",
        "claude_agent_sdk",
        "google",
        "httpx",
        "httpx2",
        "langchain",
        "langchain_core",
        "langgraph",
        "litellm",
        "mcp",
        "pydantic_ai",
        "strands",
    },
    "inspector": {"jinja2", "markdown_it", "markupsafe", "pygments", "starlette", "uvicorn"},
    "mcp": {"mcp", "pydantic"},
    "requests": {"botocore"},
    "proxy": {"aiohttp", "starlette", "uvicorn", "yarl", "zstandard"},
    "cli": {"cyclopts", "rich", "jinja2", "genai_prices", "prompt_toolkit"},
    "testing": {"hypothesis", "pytest"},
}
"""The third-party packages of each leaf, in addition to msgspec."""

STANDARD = sys.stdlib_module_names | {"compression"}
"""The standard library. `compression` belongs to it since Python 3.14, and is imported only if it exists."""

IMPURE = {
    "asyncio",
    "http",
    "os",
    "pathlib",
    "random",
    "socket",
    "sqlite3",
    "subprocess",
    "threading",
    "time",
    "urllib",
}
"""Modules that the core never imports: it does no I/O, reads no clock, uses no random numbers and awaits nothing."""


def _load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("layering", ROOT / "tools" / "layering.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


layering = _load_tool()


def test_the_table_of_imports_matches_the_code():
    lines = layering.difference(layering.edges(PACKAGE), layering.read_table())
    assert lines == [], "Run `python tools/layering.py` and review the diff of tests/layering.txt."


def test_no_import_breaks_the_fixed_rules():
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        ("core/planner.py", "from ..policies.prune import prune", "core imports policies"),
        ("core/planner.py", "from foveate.stores import sql", "core imports stores"),
        ("core/planner.py", "from foveate import ports", "core imports ports"),
        ("core/planner.py", "from .. import ports", "core imports ports"),
        ("core/planner.py", "import foveate.conversation", "core imports conversation"),
        ("core/planner.py", "from foveate import open_conversation", "core imports foveate"),
        ("core/planner.py", "def now():\n    import time", "core imports time, and the core is pure"),
        ("core/planner.py", "from urllib.request import urlopen", "core imports urllib, and the core is pure"),
        ("core/planner.py", "import rich", "core imports rich, a third-party package of another part"),
        ("core/types.py", "if TYPE_CHECKING:\n    from ..ports import Store", "core imports ports"),
        ("errors.py", "from .core import messages", "errors imports core"),
        (
            "formats/anthropic.py",
            "import anthropic",
            "formats imports anthropic, a third-party package of another part",
        ),
        ("formats/anthropic.py", "from ..policies import prune", "formats imports policies"),
        ("policies/prune.py", "from ..formats import openai_chat", "policies imports formats"),
        ("stores/sql/store.py", "import cyclopts", "stores imports cyclopts, a third-party package of another part"),
        ("stores/sql/store.py", "from ....formats import anthropic", "stores imports a module above the package"),
        ("replay/run.py", "from ..testing.checker import check", "replay imports testing"),
        ("cli/app.py", "from foveate.testing import builders", "cli imports testing"),
        ("cli/app.py", "import importlib\nimportlib.import_module('foveate.testing')", "cli imports testing"),
    ],
)
def test_a_planted_violation_is_reported(tmp_path, path, source, message):
    plant(tmp_path, {path: source})
    assert [line.split(":", 2)[2].strip() for line in violations(tmp_path)] == [message]


def test_a_violation_is_reported_with_file_and_line(tmp_path):
    plant(tmp_path, {"core/ids.py": "import json\nimport msgspec\nfrom foveate.ports import Store\n"})
    assert violations(tmp_path) == ["core/ids.py:3: core imports ports"]


def test_allowed_imports_are_not_reported(tmp_path):
    plant(
        tmp_path,
        {
            "__init__.py": "from .conversation import Conversation\nfrom .core.messages import Text\n",
            "__main__.py": "from foveate.errors import BadInput\ndef main():\n    from foveate.cli.app import main\n",
            "core/ids.py": "import hashlib\nfrom msgspec import Struct\nfrom .messages import Text\n",
            "core/nested/deep.py": "from ..messages import Text\nfrom ...errors import BadEdit\n",
            "stores/sql/store.py": "import sqlite3, threading\nimport zstandard\nfrom ...ports import Store\n",
            "cli/check.py": "from ..testing.bodies import check_body\n",
            "cli/app.py": "import rich\nfrom ..replay.run import replay\nfrom foveate import open_conversation\n",
            "testing/builders.py": "import hypothesis\nfrom ..formats import anthropic\n",
        },
    )
    assert violations(tmp_path) == []


def test_a_new_edge_and_an_unused_one_are_reported(tmp_path):
    plant(
        tmp_path,
        {
            "__init__.py": "",
            "errors.py": "",
            "core/__init__.py": "",
            "core/ids.py": "from ..errors import BadEdit\n",
            "core/wire.py": "from . import ids\nfrom .ids import seal\n",
            "stores/__init__.py": "from foveate.core import wire\n",
            "stores/sql/__init__.py": "",
            "stores/sql/rows.py": "from ...core import ids\nfrom .. import checks\n",
            "stores/checks.py": "",
        },
    )
    table = layering.edges(tmp_path)
    assert sorted(table) == [
        ("core", "errors"),
        ("core.wire", "core.ids"),
        ("stores", "core"),
        ("stores.sql.rows", "stores.checks"),
    ]
    allowed = {("core", "errors"), ("stores", "core"), ("core.wire", "core.ids"), ("stores", "ports")}
    assert layering.difference(table, allowed) == [
        "stores/sql/rows.py:2: stores.sql.rows imports stores.checks",
        "no import: stores -> ports",
    ]
    path = tmp_path / "table.txt"
    path.write_text(layering.render(table), encoding="utf-8")
    assert layering.read_table(path) == set(table)


def violations(package: Path) -> list[str]:
    """Return every import under `package` that breaks a fixed rule, as `file:line: problem`, in order."""
    parts = {path.name.removesuffix(".py") for path in [*PACKAGE.iterdir(), *package.iterdir()]}
    problems: list[str] = []
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        part = layering.part_of(relative)
        seen: set[tuple[int, str]] = set()
        for line, name in layering.imports_of(package, relative):
            problem = problem_of(part, name, parts)
            if problem and (line, problem) not in seen:
                seen.add((line, problem))
                problems.append(f"{relative.as_posix()}:{line}: {part} imports {problem}")
    return problems


def problem_of(part: str, name: str, parts: set[str]) -> str:
    """Return why `part` may not import the dotted `name`, or ""."""
    top, _, rest = name.partition(".")
    if top == "":
        return "a module above the package"
    if top == "foveate":
        other = rest.partition(".")[0] if rest.partition(".")[0] in parts else "foveate"
        if other == part or any(f"{name}.".startswith(f"{allowed}.") for who, allowed in EXCEPTIONS if who == part):
            return ""
        return other if other == "testing" or other not in ALWAYS.get(part, {other}) else ""
    if top in STANDARD:
        return f"{top}, and the core is pure" if part == "core" and top in IMPURE else ""
    if top == "msgspec" or top in PACKAGES.get(part, set()):
        return ""
    return f"{top}, a third-party package of another part"


def plant(root: Path, files: dict[str, str]) -> None:
    for name, source in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source, encoding="utf-8")
