"""The import table of the package: every edge between its parts, and inside some of them.

    python tools/layering.py            # write tests/layering.txt
    python tools/layering.py --check    # print the difference and exit with status 1 if there is one

The table allows the edges that exist, so a new edge is a visible line in a diff. `tests/test_layering.py` compares the
table with the code, and checks the rules that no table may change.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

__all__ = ["INSIDE", "TABLE", "difference", "edges", "imports_of", "read_table", "render"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "foveate"
TABLE = ROOT / "tests" / "layering.txt"

INSIDE = ("agents", "core", "stores")
"""Parts whose modules have edges of their own in the table."""

HEADER = """\
# Imports of foveate, one edge a line, written by `python tools/layering.py`.
# First between the parts of the package, then between the modules inside of some parts.
"""


def part_of(relative: Path) -> str:
    """Return the part of a file: its top folder or module. The package's `__init__` is the part `foveate`."""
    return "foveate" if relative.as_posix() == "__init__.py" else relative.parts[0].removesuffix(".py")


def module_of(relative: Path) -> str:
    """Return the dotted name of a file inside the package, such as `core.planner`."""
    return ".".join(relative.with_suffix("").parts).removesuffix(".__init__")


def imports(tree: ast.Module, relative: Path) -> Iterator[tuple[int, str]]:
    """Yield line and absolute dotted name of each import, at any depth. Names above the package begin with a dot."""
    here = ["foveate", *relative.parts[:-1]]
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=0):
                yield from ((node.lineno, f"{module}.{alias.name}") for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                base = ".".join((here[: max(0, len(here) - level + 1)] or [""]) + [module] * bool(module))
                yield from ((node.lineno, f"{base}.{alias.name}") for alias in names)
            case (
                ast.Call(func=ast.Name(id="import_module" | "__import__"), args=[ast.Constant(value=str(name)), *_])
                | ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(name)), *_])
            ):
                yield node.lineno, name


@cache
def imports_of(package: Path, relative: Path) -> tuple[tuple[int, str], ...]:
    """Return the imports of a file of the package. Each file is read once."""
    return tuple(imports(ast.parse((package / relative).read_text(encoding="utf-8")), relative))


def edges(package: Path = PACKAGE) -> dict[tuple[str, str], str]:
    """Return all edges between parts, and between modules inside `INSIDE`, each with the place of its first import."""
    files = [path.relative_to(package) for path in sorted(package.rglob("*.py"))]
    parts, modules = {part_of(file) for file in files}, {module_of(file) for file in files}
    table: dict[tuple[str, str], str] = {}
    for file in files:
        part, module = part_of(file), module_of(file)
        for line, name in imports_of(package, file):
            top, _, target = name.partition(".")
            if top != "foveate":
                continue
            # `from foveate import open_conversation` imports the package itself, not a part of it.
            other = target.partition(".")[0] if target.partition(".")[0] in parts else "foveate"
            if other != part:
                table.setdefault((part, other), f"{file.as_posix()}:{line}")
            elif part in INSIDE:
                while target not in modules and "." in target:  # The last names are attributes of a module.
                    target = target.rpartition(".")[0]
                if target != module:
                    table.setdefault((module, target), f"{file.as_posix()}:{line}")
    return table


def render(table: dict[tuple[str, str], str]) -> str:
    """Return the text of the table."""
    names = sorted(table, key=lambda edge: ("." in edge[0] or edge[0] == edge[1].partition(".")[0], edge))
    return HEADER + "".join(f"{source} -> {target}\n" for source, target in names)


def read_table(path: Path = TABLE) -> set[tuple[str, str]]:
    """Return the edges in a table file."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {(source, target) for source, _, target in (line.partition(" -> ") for line in lines)}


def difference(table: dict[tuple[str, str], str], allowed: set[tuple[str, str]]) -> list[str]:
    """Return a line for each new edge, with its place, and for each edge of the table that no import uses."""
    new = [f"{place}: {edge[0]} imports {edge[1]}" for edge, place in sorted(table.items()) if edge not in allowed]
    return new + [f"no import: {source} -> {target}" for source, target in sorted(allowed - table.keys())]


def main() -> int:
    """Write the table, or with `--check` compare it."""
    table = edges()
    if sys.argv[1:] == ["--check"]:
        lines = difference(table, read_table())
        print(*lines, sep="\n", end="\n" if lines else "")
        return bool(lines)
    TABLE.write_text(render(table), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
