"""Builds the documentation site in `build/site`: `python tools/docs_site/build.py [FOLDER]`, or `make docs`.

The order of the pages is that of `docs/index.md`: each heading with a table of links is a section. The reference of the
API, the commands, the presets and the settings is generated. The site needs no network, neither to build nor to read,
and its search also works from the file system.
"""

from __future__ import annotations

import html
import os
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import api
import tables

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATED = "<!-- generated pages -->"
"""Stands in `docs/index.md` for the rows of the generated pages."""
SECTION = re.compile(r"^## (.+)$")
ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)\) \|")
LINK = re.compile(r'(\]\(|src="|srcset=")([^)"\s#]+)((?:#[^)"\s]*)?[)"])')
CODE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
MORE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "examples/README.md": "examples.md",
    "design": "decisions/index.md",
}
"""Files outside `docs`, and their pages."""


def main(build: Path) -> int:
    """Build the site in a folder. Returns 1 if a page is in no table, or if the generator finds a fault."""
    source, site = build / "docs-source", build / "site"
    for folder in (source, site):
        shutil.rmtree(folder, ignore_errors=True)
    pages = write_sources(source)
    nav = navigation(pages)
    missing = sorted(set(pages) - set(paths_of(nav)))
    if missing:
        print(
            f"No table of docs/index.md lists these pages: {', '.join(missing)}. Add a row for each.", file=sys.stderr
        )
        return 1
    config = build / "zensical.toml"
    config.write_text(configuration(nav), encoding="utf-8")
    command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", str(config)]
    if subprocess.run(command, cwd=build, env={**os.environ, "NO_COLOR": "1"}).returncode:
        return 1
    for path, text in pages.items():  # llms.txt links to the Markdown of each page.
        (site / path).write_text(text, encoding="utf-8")
    (site / "llms.txt").write_text(tables.llms(pages, nav), encoding="utf-8")
    print(f"{len(pages)} pages. Open {site / 'index.html'}.")
    return 0


def write_sources(folder: Path) -> dict[str, str]:
    """Write the Markdown of all pages, and their pictures, into a folder. Return the pages by their paths."""
    pages = dict(pages_of())
    for path, text in pages.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(with_plain_pipes(text), encoding="utf-8")
    for picture in (ROOT / "docs").rglob("*"):
        if picture.suffix in (".svg", ".webp", ".png"):
            target = folder / picture.relative_to(ROOT / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, target)
    shutil.copytree(Path(__file__).parent / "assets", folder / "assets", dirs_exist_ok=True)
    return pages


def pages_of() -> Iterator[tuple[str, str]]:
    """Yield the path and the Markdown of each page: those of `docs`, those outside of it, and the generated ones."""
    generated = {**tables.pages(), **api.pages()}
    moved = {f"docs/{path.relative_to(ROOT / 'docs').as_posix()}" for path in (ROOT / "docs").rglob("*.md")}
    places = {old: old.removeprefix("docs/") for old in moved} | MORE
    decisions = sorted(path.name for path in (ROOT / "design").glob("*.md"))
    places |= {f"design/{name}": f"decisions/{name}" for name in decisions}
    programs = {f"examples/{path.name}": f"examples.md#{path.stem}" for path in (ROOT / "examples").glob("*.py")}
    for old, new in sorted(places.items()):
        if old == "design":
            yield new, list_of_decisions(decisions)
            continue
        if not (ROOT / old).exists():
            continue
        text = (ROOT / old).read_text(encoding="utf-8")
        text = linked(text, old, new, {**places, **programs, "README.md": "index.md", "examples": "examples.md"})
        if old == "examples/README.md":
            text += listings(ROOT / "examples", text)
        if old == "docs/index.md":
            listed = {path: title_of(generated[path]) for path in tables.QUESTIONS}
            rows = "".join(f"| [{title}]({path}) | {tables.QUESTIONS[path]} |\n" for path, title in listed.items())
            text = text.replace(f"{GENERATED}\n", rows)
        yield new, text
    yield from generated.items()


def linked(text: str, old: str, new: str, places: Mapping[str, str]) -> str:
    """Return a text whose links point to the pages of the site. Code blocks stay as they are."""

    def replaced(match: re.Match[str]) -> str:
        opening, target, closing = match.groups()
        if re.match(r"[a-z]+:", target):
            return match[0]
        aim = posixpath.normpath(posixpath.join(posixpath.dirname(old), target))
        if aim not in places and not (aim.startswith("docs/") and (ROOT / aim).is_file()):
            return f"{match[0]}" if opening != "](" else f"]({target}{closing}"
        path, _, anchor = places.get(aim, aim.removeprefix("docs/")).partition("#")
        ending = f"#{anchor}{closing[-1]}" if anchor else closing
        return f"{opening}{posixpath.relpath(path, posixpath.dirname(new) or '.')}{ending}"

    parts = CODE.split(text)
    return "".join(part if place % 2 else LINK.sub(replaced, part) for place, part in enumerate(parts))


def with_plain_pipes(text: str) -> str:
    """Write code with an escaped pipe in a table as HTML: the generator would show the backslash."""

    def replaced(match: re.Match[str]) -> str:
        return re.sub(
            r"`([^`]*\\\|[^`]*)`",
            lambda code: f"<code>{html.escape(code[1]).replace(chr(92) + '|', '&#124;')}</code>",
            match[0],
        )

    return re.sub(r"^\|.*\\\|.*$", replaced, text, flags=re.MULTILINE)


def list_of_decisions(names: list[str]) -> str:
    titles = {name: title_of((ROOT / "design" / name).read_text(encoding="utf-8")) for name in names}
    rows = "".join(f"| {name[:4]} | [{title}]({name}) |\n" for name, title in titles.items())
    return (
        "# Decisions\n\nWhy foveate is built the way it is: one question and its answer on each page.\n\n"
        f"| number | decision |\n|---|---|\n{rows}"
    )


def listings(folder: Path, text: str) -> str:
    """Return the programs that a page of examples lists, each under a heading."""
    names = re.findall(r"^\| \[`(\w+\.py)`\]", text, re.MULTILINE)
    parts = (f"\n## {name[:-3]}\n\n```python\n{(folder / name).read_text(encoding='utf-8')}```\n" for name in names)
    return "".join(parts)


def title_of(page: str) -> str:
    return page.split("\n", 1)[0].lstrip("# ").strip()


def navigation(pages: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the menu: the sections of the first page, each with the pages that its table lists.

    A page `index.md` of a folder comes with the other pages of the folder.
    """
    nav: list[dict[str, Any]] = [{"Home": "index.md"}]
    section: list[Any] = []
    for line in pages["index.md"].splitlines():
        if found := SECTION.match(line):
            section = []
            nav.append({found[1]: section})
        elif (found := ROW.match(line)) and found[2].endswith(".md"):
            title, path = found[1].strip("`"), found[2]
            folder = f"{posixpath.dirname(path)}/"
            others = [{title_of(pages[page]): page} for page in pages if page.startswith(folder) and page != path]
            section.append({title: [path, *others]} if path.endswith("/index.md") else {title: path})
    return [entry for entry in nav if all(entry.values())]


def paths_of(nav: Any) -> Iterator[str]:
    """Yield the paths of all pages of a menu."""
    for entry in nav:
        for value in [entry] if isinstance(entry, str) else entry.values():
            if isinstance(value, str):
                yield value
            else:
                yield from paths_of(value)


def configuration(nav: list[dict[str, Any]]) -> str:
    """Return the configuration of the generator."""
    template = (Path(__file__).parent / "zensical.toml").read_text(encoding="utf-8")
    return template.replace("nav = []", f"nav = {_toml(nav)}")


def _toml(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(_toml, value)) + "]"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT / "build"))
