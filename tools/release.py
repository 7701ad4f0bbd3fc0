"""Checks everything about a release that needs no network, and writes its files into `dist`: `make release-check`.

The version is the same everywhere and has dated notes, nothing is uncommitted, two builds give the same bytes, the
wheel works by itself, and the address of the project is set. Then `dist` has the sdist, the wheel, and
`sbom.cdx.json`: a bill of materials (CycloneDX) of what `foveate[all]` installs, with the versions of this environment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import uuid
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION: str = PROJECT["version"]
WHEEL = f"foveate-{VERSION}-py3-none-any.whl"
SDIST = f"foveate-{VERSION}.tar.gz"
PROGRAM = """
import foveate, sys
from foveate.testing import StubOpenAI
assert foveate.__file__.startswith(sys.argv[1]), foveate.__file__
with foveate.open_conversation("check", window=8_000) as chat:
    chat.append("Hello")
    chat.record(StubOpenAI(["Hello."]).chat.completions.create(model="m", **chat.prompt()))
    assert len(chat) == 2
    assert foveate.__version__ == sys.argv[2]
"""


def main() -> int:
    """Run every check, and print each with its fault. Returns 1 if one failed."""
    faults = 0
    for check in (check_version, check_address, check_commit, check_builds, check_wheel, write_bill):
        fault = check()
        faults += bool(fault)
        print("FAULT" if fault else "ok   ", check.__doc__, fault)
    return 1 if faults else 0


def check_version() -> str:
    """The version is the same in pyproject.toml, the package and the newest notes, which have a date."""
    found = re.search(r'^__version__ = "(.+)"', (ROOT / "src/foveate/version.py").read_text("utf-8"), re.MULTILINE)
    if found is None or found[1] != VERSION:
        return f"pyproject.toml has {VERSION}, src/foveate/version.py has {found and found[1]}."
    notes = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if notes is None or not re.fullmatch(rf"{re.escape(VERSION)} \(\d{{4}}-\d\d-\d\d\)", notes[1]):
        return f"CHANGELOG.md begins with {notes and notes[1]!r}, not with {VERSION} and a date."
    return ""


def check_address() -> str:
    """The address of the project is set in [project.urls]."""
    return "" if PROJECT.get("urls") else "Fill in Repository in [project.urls] of pyproject.toml."


def check_commit() -> str:
    """Everything is committed."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        return ""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    return f"Commit first: {', '.join(done.stdout.split()[1::2][:5])}." if done.stdout else ""


def check_builds() -> str:
    """Two builds, in other folders and time zones, give the same bytes."""
    with tempfile.TemporaryDirectory() as folder:
        build(DIST)
        build(Path(folder), TZ="Pacific/Auckland", PYTHONHASHSEED="77", LC_ALL="C")
        different = [
            name for name in (WHEEL, SDIST) if (DIST / name).read_bytes() != (Path(folder) / name).read_bytes()
        ]
    return f"{', '.join(different)} differ." if different else ""


def build(folder: Path, **environment: str) -> None:
    """Build the sdist and the wheel into a folder. SOURCE_DATE_EPOCH sets the times of their files."""
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=True, capture_output=True)


def check_wheel() -> str:
    """The wheel has all files of the package and no others, and works without the checkout."""
    files = set(zipfile.ZipFile(DIST / WHEEL).namelist())
    packed = {name for name in files if not name.startswith(f"foveate-{VERSION}.dist-info/")}
    wanted = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src" / "foveate").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if packed != wanted:
        return f"Only in one of them: {', '.join(sorted(packed ^ wanted)[:5])}."
    with tempfile.TemporaryDirectory() as folder:
        zipfile.ZipFile(DIST / WHEEL).extractall(folder)
        command = [sys.executable, "-P", "-c", PROGRAM, folder, VERSION]
        done = subprocess.run(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": folder}, capture_output=True, text=True
        )
    return done.stderr[-500:] if done.returncode else ""


def write_bill() -> str:
    """The bill of materials names every package that foveate[all] installs here."""
    from cyclonedx.model.bom import Bom
    from cyclonedx.model.component import Component, ComponentType
    from cyclonedx.model.license import DisjunctiveLicense
    from cyclonedx.output.json import JsonV1Dot6
    from packageurl import PackageURL

    def component(name: str, version: str, license: str, kind: ComponentType) -> Component:
        url = PackageURL("pypi", name=name, version=version)
        licenses = [DisjunctiveLicense(name=license)] if license else []
        return Component(name=name, version=version, type=kind, purl=url, bom_ref=str(url), licenses=licenses)

    own = component("foveate", VERSION, PROJECT["license"], ComponentType.LIBRARY)
    graph, missing = packages()
    parts = {
        name: component(name, found.version, license_of(found), ComponentType.LIBRARY)
        for name, (found, _) in graph.items()
    }
    bill = Bom(
        components=parts.values(), serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"foveate {VERSION} {sorted(graph)}")
    )
    bill.metadata.component = own
    bill.metadata.timestamp = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    direct = {canonicalize_name(Requirement(text).name) for text in wanted_by_all()} & set(parts)
    bill.register_dependency(own, [parts[name] for name in sorted(direct)])
    for name, (_, needs) in graph.items():
        bill.register_dependency(parts[name], [parts[need] for need in sorted(needs & set(parts))])
    (DIST / "sbom.cdx.json").write_text(JsonV1Dot6(bill).output_as_string(indent=2) + "\n", encoding="utf-8")
    return f"These are not installed: {', '.join(sorted(missing))}. Run make setup." if missing else ""


def wanted_by_all() -> Iterator[str]:
    """Yield the requirements of the package and of every extra that `all` names."""
    extras: dict[str, list[str]] = PROJECT["optional-dependencies"]
    pending, seen = ["all"], set[str]()
    yield from PROJECT["dependencies"]
    while pending:
        extra = pending.pop()
        if extra in seen:
            continue
        seen.add(extra)
        for text in extras[extra]:
            needed = Requirement(text)
            if needed.name == "foveate":
                pending.extend(needed.extras)
            else:
                yield text


def packages() -> tuple[dict[str, tuple[Distribution, set[str]]], set[str]]:
    """Return the installed packages that `foveate[all]` needs, with their own needs, and the names of missing ones."""
    found: dict[str, tuple[Distribution, set[str]]] = {}
    missing: set[str] = set()
    pending = [(Requirement(text), "") for text in wanted_by_all()]
    seen: set[tuple[str, str]] = set()
    while pending:
        needed, extra = pending.pop()
        name = canonicalize_name(needed.name)
        if needed.marker and not needed.marker.evaluate({"extra": extra}):
            continue
        try:
            installed = distribution(name)
        except PackageNotFoundError:
            missing.add(name)
            continue
        _, needs = found.setdefault(name, (installed, set()))
        for inside in ("", *needed.extras):
            if (name, inside) in seen:
                continue
            seen.add((name, inside))
            for text in installed.requires or ():
                below = Requirement(text)
                if below.marker is None or below.marker.evaluate({"extra": inside}):
                    needs.add(canonicalize_name(below.name))
                    pending.append((below, inside))
    return found, missing


def license_of(found: Distribution) -> str:
    """Return the license of a package in its own words, on one line; "" if it has none."""
    text = found.metadata.get("License-Expression") or found.metadata.get("License") or ""
    classifiers = [
        line.split(" :: ")[-1] for line in found.metadata.get_all("Classifier") or () if "License ::" in line
    ]
    return text.strip() if text.strip() and "\n" not in text.strip() else "; ".join(classifiers)


if __name__ == "__main__":
    sys.exit(main())
