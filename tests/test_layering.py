"""The one dependency rule: arrows point inward, and third-party packages (but for msgspec) live only in leaves.

`violations` reads the imports of a package tree without running it. The first test applies it to foveate; the others
plant a wrong import in a small tree and see it named, so that the rule cannot rot unseen.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "foveate"

INWARD = {"errors", "core", "ports"}
CONVERSATION = {
    "async_conversation",
    "background",
    "conversation",
    "engine",
    "expansion",
    "given",
    "limits",
    "mirror",
    "plugins",
    "shell",
    "watching",
}
SHELL = INWARD | CONVERSATION | {"digest", "policies", "formats"}
LEAVES = {"archive", "stores", "counters", "summarizers", "models", "telemetry", "patterns"}
EVERYTHING = (
    SHELL
    | LEAVES
    | {
        "edits",
        "rules",
        "types",
        "aging",
        "open",
        "settings",
        "replay",
        "hosts",
        "agents",
        "proxy",
        "inspector",
        "worker",
        "foveate",
    }
)

MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "edits": {"core"},
    "rules": {"core"},
    "types": {"core", "shell"},
    "core": {"errors"},
    "ports": {"errors", "core"},
    "digest": {"errors", "core"},
    "policies": INWARD | {"digest"},
    "formats": INWARD,
    **dict.fromkeys(CONVERSATION, INWARD | CONVERSATION | {"digest", "policies"}),
    **dict.fromkeys(LEAVES, INWARD),
    "summarizers": INWARD | {"digest"},
    "models": INWARD | {"formats"},
    "settings": SHELL | LEAVES,
    "open": SHELL | LEAVES | {"settings"},
    "aging": SHELL | {"open"},
    **dict.fromkeys(["hosts", "agents", "proxy", "replay"], SHELL | {"open", "settings"}),
    "worker": SHELL | {"aging", "open", "settings", "stores"},
    "inspector": EVERYTHING,
    "cli": EVERYTHING,
    "testing": INWARD | {"formats"},
    "foveate": SHELL | LEAVES | {"aging", "open", "settings", "agents", "edits", "rules", "types"},
    "__main__": {"errors", "cli"},
}
"""Each part of the package (a file or folder directly under it; "foveate" is its `__init__`) and what it may import."""

EXCEPTIONS = {("cli", "foveate.testing.bodies")}
"""Users ask the command line for a second opinion, and the second checker is a part of the public testing kit."""

PACKAGES: dict[str, set[str]] = {
    "patterns": {"regex"},
    "archive": {"zstandard"},
    "stores": {"zstandard", "psycopg", "psycopg_pool"},
    "counters": {"toktok_rs"},
    "models": {"anthropic", "openai", "genai_prices"},
    "telemetry": {"opentelemetry"},
    "agents": {"jinja2"},
    "replay": {"jinja2"},
    "worker": {"procrastinate", "psycopg", "psycopg_pool"},
    "inspector": {"jinja2"},
    "cli": {"cyclopts", "rich", "jinja2", "genai_prices"},
    "testing": {"hypothesis", "pytest"},
}
"""The third-party packages of each leaf, beside msgspec."""

STANDARD = sys.stdlib_module_names | {"compression"}
"""The standard library; `compression` is in it from Python 3.14 on, and asked for where it is."""

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
"""What the core does not import: it does no I/O, reads no clock, draws no lots and awaits nothing."""


def test_every_arrow_points_inward():
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("path", "source", "said"),
    [
        ("core/planner.py", "from ..policies.prune import prune", "core imports policies"),
        ("core/planner.py", "from foveate.stores import sql", "core imports stores"),
        ("core/planner.py", "from foveate import ports", "core imports ports"),
        ("core/planner.py", "from .. import ports", "core imports ports"),
        ("core/planner.py", "import foveate.conversation", "core imports conversation"),
        ("core/planner.py", "from foveate import open_conversation", "core imports foveate"),
        ("core/planner.py", "def now():\n    import time", "core imports time, and the core is pure"),
        ("core/planner.py", "from urllib.request import urlopen", "core imports urllib, and the core is pure"),
        ("core/planner.py", "import rich", "core imports rich, a third-party package that is not its own"),
        ("errors.py", "from .core import messages", "errors imports core"),
        (
            "formats/anthropic.py",
            "import anthropic",
            "formats imports anthropic, a third-party package that is not its own",
        ),
        ("formats/anthropic.py", "from ..policies import prune", "formats imports policies"),
        ("policies/prune.py", "from ..formats import openai_chat", "policies imports formats"),
        ("conversation.py", "from .stores.memory import MemoryStore", "conversation imports stores"),
        ("stores/sql/store.py", "from ...counters import estimate", "stores imports counters"),
        (
            "stores/sql/store.py",
            "import cyclopts",
            "stores imports cyclopts, a third-party package that is not its own",
        ),
        ("stores/sql/store.py", "from ....formats import anthropic", "stores imports something above the package"),
        ("replay/run.py", "from ..testing.checker import check", "replay imports testing"),
        ("cli/app.py", "from foveate.testing import builders", "cli imports testing"),
        ("cli/app.py", "import importlib\nimportlib.import_module('foveate.testing')", "cli imports testing"),
        ("core/types.py", "if TYPE_CHECKING:\n    from ..ports import Store", "core imports ports"),
        ("helpers/misc.py", "", "helpers has no place in the dependency rule"),
    ],
)
def test_a_planted_violation_is_named(tmp_path, path, source, said):
    plant(tmp_path, {path: source})
    assert [message for _, _, message in map(split, violations(tmp_path))] == [said]


def test_where_a_violation_stands_is_said(tmp_path):
    plant(tmp_path, {"core/ids.py": "import json\nimport msgspec\nfrom foveate.ports import Store\n"})
    assert violations(tmp_path) == ["core/ids.py:3: core imports ports"]


def test_what_the_rule_allows_is_not_reported(tmp_path):
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


def violations(package: Path) -> list[str]:
    """Every import under `package` that breaks the rule, as `file:line: what`, in order."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        part = "foveate" if relative.as_posix() == "__init__.py" else relative.parts[0].removesuffix(".py")
        if part not in MAY_IMPORT:
            found.append(f"{relative.as_posix()}:1: {part} has no place in the dependency rule")
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for line, target in imports(tree, relative):
            if problem := judge(part, target):
                found.append(f"{relative.as_posix()}:{line}: {part} imports {problem}")
    return found


def judge(part: str, target: str) -> str:
    """What is wrong with `part` importing the dotted name `target`; empty if nothing is."""
    top, _, rest = target.partition(".")
    if top == "":
        return "something above the package"
    if top == "foveate":
        if (part, target) in EXCEPTIONS:
            return ""
        name = rest.partition(".")[0]
        # `from foveate import open_conversation` asks the package itself, which stands above the parts it gathers.
        other = name if name in MAY_IMPORT else "foveate"
        return "" if other == part or other in MAY_IMPORT[part] else other
    if top in STANDARD:
        return f"{top}, and the core is pure" if part == "core" and top in IMPURE else ""
    if top == "msgspec" or top in PACKAGES.get(part, set()):
        return ""
    return f"{top}, a third-party package that is not its own"


def imports(tree: ast.Module, relative: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of all that a file imports, at any depth; above the package: a leading dot."""
    here = ["foveate", *relative.parts[:-1]]
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield from named(node.lineno, module or "", names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = here[: max(0, len(here) - level + 1)] or [""]
                yield from named(node.lineno, ".".join(base + [module] * bool(module)), names)
            case ast.Call(func=ast.Name(id="import_module" | "__import__"), args=[ast.Constant(value=str(name)), *_]):
                yield node.lineno, name
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_]):
                yield node.lineno, name


def named(line: int, module: str, names: list[ast.alias]) -> Iterator[tuple[int, str]]:
    """What `from module import names` asks for: parts of the package by name, else the module, once."""
    if module == "foveate":
        yield from ((line, f"foveate.{alias.name}") for alias in names)
    else:
        yield line, module


def plant(root: Path, files: dict[str, str]) -> None:
    for name, source in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source, encoding="utf-8")


def split(violation: str) -> tuple[str, str, str]:
    where, line, message = violation.split(":", 2)
    return where, line, message.strip()
