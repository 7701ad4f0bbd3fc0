"""Generates the reference of the Python API: a page for each public module, from signatures and docstrings.

The public names of a module are those in its `__all__`. A name that several modules export is described on the page of
the first one, in the order of MODULES.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import griffe

SRC = Path(__file__).resolve().parent.parent.parent / "src"
MODULES = (
    "foveate",
    "foveate.types",
    "foveate.edits",
    "foveate.errors",
    "foveate.rules",
    "foveate.plugins",
    "foveate.policies",
    "foveate.expand",
    "foveate.agents",
    "foveate.agents.toolbox",
    "foveate.models",
    "foveate.models.anthropic",
    "foveate.models.openai",
    "foveate.models.responses",
    "foveate.summarizers",
    "foveate.digest",
    "foveate.background",
    "foveate.counters",
    "foveate.formats",
    "foveate.requests",
    "foveate.hosts.langchain",
    "foveate.hosts.pydantic_ai",
    "foveate.hosts.openai_agents",
    "foveate.hosts.google_adk",
    "foveate.hosts.strands",
    "foveate.hosts.agent_framework",
    "foveate.hosts.litellm",
    "foveate.hosts.transport",
    "foveate.hosts.claude_agent_sdk",
    "foveate.ops.archive",
    "foveate.ops.retention",
    "foveate.ops.worker",
    "foveate.replay",
    "foveate.tune",
    "foveate.inspector",
    "foveate.proxy",
    "foveate.mcp",
    "foveate.telemetry",
    "foveate.ports",
    "foveate.testing",
    "foveate.testing.server",
    "foveate.testing.background",
)
"""The modules that programs import, in the order of the reference."""
FOLDER = "reference/api"
LINE = 88
"""The longest signature on one line, in characters."""
_QUOTED = re.compile(r"`([A-Za-z_][\w.]*)(?:\(\))?`")
_DOCTEST = re.compile(r"(?:^ *>>> .*\n(?: *\S.*\n)*)+", re.MULTILINE)


class Name(NamedTuple):
    """A public name, and the place where the reference describes it."""

    name: str
    page: str
    described: griffe.Object

    @property
    def anchor(self) -> str:
        return self.name.replace(".", "-").lower()


def pages() -> dict[str, str]:
    """Return the Markdown of each page of the reference by its path, the table of modules first."""
    rows = "".join(
        f"| [`{module}`]({module}.md) | {first_line(loaded(module))} | {len(exported(module))} |\n"
        for module in MODULES
    )
    start = (
        "# API\n\nThe public names of each module, from the docstrings of the code. A name that is not here may change "
        f"without a notice.\n\n| module | content | names |\n|---|---|---|\n{rows}"
    )
    return {f"{FOLDER}/index.md": start, **{f"{FOLDER}/{module}.md": page(module) for module in MODULES}}


def page(module: str) -> str:
    """Return the page of one module."""
    parts = [f"# {module}", prose(loaded(module), module)]
    elsewhere = []
    for name in exported(module):
        place = places()[member(module, name).path]
        if place.page != module:
            elsewhere.append(f"[`{name}`]({place.page}.md#{place.anchor})")
            continue
        parts += [f"## {name} {{ #{place.anchor} }}", *described(name, place.described, module)]
    if elsewhere:
        parts.insert(2, f"Also in this module: {', '.join(elsewhere)}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def described(name: str, thing: griffe.Object, module: str) -> Iterator[str]:
    """Yield the paragraphs about one name."""
    if isinstance(thing, griffe.Class):
        bases = ", ".join(str(base) for base in thing.bases)
        yield _code(f"class {name}({bases})" if bases else f"class {name}")
        yield prose(thing, module)
        constructor = thing.members.get("__init__")
        if isinstance(constructor, griffe.Function):
            yield _code(signature(constructor, name))
            yield prose(constructor, module)
        yield from _members(name, thing, module)
    elif isinstance(thing, griffe.Function):
        yield _code(signature(thing, name))
        yield prose(thing, module)
    else:
        value = getattr(thing, "value", None)
        text = f"{name} = {value}" if value is not None else f"{name}: {getattr(thing, 'annotation', '')}"
        yield _code(text if len(text) < 4 * LINE else f"{name} = ...")
        yield prose(thing, module)


def _members(name: str, thing: griffe.Class, module: str) -> Iterator[str]:
    fields = [member for member in public(thing) if isinstance(member, griffe.Attribute)]
    twins = [member.name for member in fields if str(member.value or "").startswith(("_awaited(", "_plain("))]
    rows = [f"| {_field(member)} | {_cell(prose(member, module))} |" for member in fields if member.name not in twins]
    if rows:
        yield "\n".join(["| field | meaning |", "|---|---|", *rows])
    if twins:
        yield f"Awaitable, with the arguments of the synchronous class: {', '.join(f'`{twin}`' for twin in twins)}."
    for member in public(thing):
        if isinstance(member, griffe.Function):
            yield f"### {name}.{member.name} {{ #{name.lower()}-{member.name.lower()} }}"
            yield _code(signature(member, member.name))
            yield prose(member, module)


def _field(member: griffe.Attribute) -> str:
    kind = f": `{member.annotation}`".replace("|", "\\|") if member.annotation else ""
    plain = member.value is not None and "property" not in member.labels and len(str(member.value)) < 40
    default = f" = `{member.value}`".replace("|", "\\|") if plain else ""
    return f"`{member.name}`{kind}{default}"


def _cell(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text).replace("|", "\\|")


def public(thing: griffe.Class) -> list[griffe.Object]:
    """Return the public members of a class, those of its bases in this package too, in the order of the code."""
    found = {**thing.inherited_members, **thing.members}
    return [
        member.final_target if isinstance(member, griffe.Alias) else member
        for name, member in found.items()
        if not name.startswith("_")
    ]


def signature(function: griffe.Function, name: str) -> str:
    """Return a signature as code, one parameter a line if it is long."""
    parameters = list(function.parameters)
    if parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    texts, has_star = [], False
    for place, parameter in enumerate(parameters):
        kind = parameter.kind
        has_star = has_star or kind is griffe.ParameterKind.var_positional
        if kind is griffe.ParameterKind.keyword_only and not has_star:
            texts.append("*")
            has_star = True
        texts.append(_parameter(parameter))
        after = parameters[place + 1].kind if place + 1 < len(parameters) else None
        if kind is griffe.ParameterKind.positional_only and after is not kind:
            texts.append("/")
    prefix = "async def " if "async" in function.labels else "def "
    result = f" -> {function.returns}" if function.returns is not None and name == function.name else ""
    line = f"{prefix if name == function.name else ''}{name}({', '.join(texts)}){result}"
    if len(line) <= LINE:
        return line
    inside = "".join(f"    {text},\n" for text in texts)
    return f"{prefix if name == function.name else ''}{name}(\n{inside}){result}"


def _parameter(parameter: griffe.Parameter) -> str:
    stars = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}.get(parameter.kind, "")
    kind = f": {parameter.annotation}" if parameter.annotation is not None else ""
    if parameter.default is None or stars:
        return f"{stars}{parameter.name}{kind}"
    return f"{parameter.name}{kind}{' = ' if kind else '='}{parameter.default}"


def prose(thing: griffe.Object, module: str) -> str:
    """Return a docstring as Markdown: examples are code blocks, and public names are links."""
    text = thing.docstring.value if thing.docstring else ""
    parts, end = [], 0
    for found in _DOCTEST.finditer(f"{text}\n"):
        parts += [_linked(text[end : found.start()], module), f"\n```pycon\n{_dedented(found[0])}```\n"]
        end = found.end()
    return "".join([*parts, _linked(text[end:], module)]).strip()


def _dedented(text: str) -> str:
    indent = min(len(line) - len(line.lstrip()) for line in text.splitlines())
    return "".join(line[indent:] for line in text.splitlines(True))


def _linked(text: str, module: str) -> str:
    def link(match: re.Match[str]) -> str:
        place = _by_name().get(match[1])
        if place is None:
            return match[0]
        target = "" if place.page == module else f"{place.page}.md"
        return f"[{match[0]}]({target}#{place.anchor})"

    return _QUOTED.sub(link, text)


def first_line(thing: griffe.Object) -> str:
    return thing.docstring.value.split("\n", 1)[0] if thing.docstring else ""


@cache
def package() -> griffe.Module:
    return griffe.load("foveate", search_paths=[str(SRC)], resolve_aliases=True, allow_inspection=False)


def loaded(module: str) -> griffe.Module:
    _, _, inside = module.partition(".")
    return package()[inside] if inside else package()


def exported(module: str) -> list[str]:
    """Return the public names of a module, sorted."""
    return sorted((str(name) for name in loaded(module).exports or ()), key=str.lower)


def member(module: str, name: str) -> griffe.Object:
    """Return what a public name of a module stands for. A function hides the submodule of its name."""
    thing = loaded(module)[name]
    target: griffe.Object = thing.final_target if isinstance(thing, griffe.Alias) else thing
    return target[name] if isinstance(target, griffe.Module) and name in target.members else target


def canonical(thing: griffe.Object) -> str:
    return thing.final_target.path if isinstance(thing, griffe.Alias) else thing.path


@cache
def places() -> dict[str, Name]:
    """Return where each public name is described, by its canonical path."""
    found: dict[str, Name] = {}
    for module in MODULES:
        for name in exported(module):
            thing = member(module, name)
            found.setdefault(thing.path, Name(name, module, thing))
    return found


@cache
def _by_name() -> dict[str, Name]:
    return {place.name: place for place in reversed(places().values()) if place.name[0].isupper()}


def undocumented() -> Iterable[str]:
    """Yield the public names, fields and methods that have no docstring."""
    for place in places().values():
        where = f"{place.page}.{place.name}"
        if not place.described.docstring:
            yield where
        if isinstance(place.described, griffe.Class):
            for member in public(place.described):
                if not member.docstring and not _explains_itself(place.described, member):
                    yield f"{where}.{member.name}"


def unexported() -> Iterator[tuple[str, str]]:
    """Yield each place in a public signature that names a type of foveate without a public name, with that type.

    A signature is: the parameters and the result of a function, the fields and methods of a class, the value of an
    alias. The bases of a class are left out: its own page describes what it inherits.
    """
    for place in places().values():
        for where, annotation in _annotations(place.described, f"{place.page}.{place.name}"):
            for path in _types_in(annotation):
                if path not in places():
                    yield where, path


def _annotations(thing: griffe.Object, where: str) -> Iterator[tuple[str, str | griffe.Expr | None]]:
    """Yield the annotations of a name and of its members, and the value of an alias, each with its place."""
    match thing:
        case griffe.Function():
            for function in (thing, *(thing.overloads or ())):
                yield from ((f"{where}({parameter.name})", parameter.annotation) for parameter in function.parameters)
                yield f"{where}()", function.returns
        case griffe.Class():
            for name, member in thing.all_members.items():
                if not name.startswith("_") or name.endswith("__"):
                    target = member.final_target if isinstance(member, griffe.Alias) else member
                    yield from _annotations(target, f"{where}.{name}")
        case griffe.Attribute():
            yield where, thing.annotation
            if thing.parent is not None and thing.parent.is_module and not thing.name.isupper():
                yield where, thing.value


def _types_in(annotation: str | griffe.Expr | None) -> Iterator[str]:
    """Yield the paths of the types of foveate in an annotation, but for type variables."""
    for name in annotation.iterate(flat=True) if isinstance(annotation, griffe.Expr) else ():
        if isinstance(name, griffe.ExprName) and name.canonical_path.startswith("foveate."):
            thing = package()[name.canonical_path.removeprefix("foveate.")]
            if not str(getattr(thing, "value", "")).startswith("TypeVar("):
                yield canonical(thing)


def _explains_itself(owner: griffe.Class, member: griffe.Object) -> bool:
    """A copy of a documented method, such as the awaitable twin of a synchronous one, needs no docstring."""
    return isinstance(member, griffe.Attribute) and str(member.value or "").startswith(("_awaited(", "_plain("))


def _code(text: str) -> str:
    return f"```python\n{text}\n```"
