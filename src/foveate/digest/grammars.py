"""Declarations of source code, found by tree-sitter grammars where they are installed (the extra `code`).

Each grammar is a package that carries its compiled tables: nothing is downloaded when it is used.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

from .signatures import brief_of, clip_text, read_import, read_signature, test_title
from .values import Declaration

__all__ = ["outline_by_grammar"]

_MOST_PARSED = 400_000
"""Characters. A longer text is outlined by the forms of its lines."""
_LONGEST_CONSTANT = 80
_GRAMMARS = {
    "go": ("tree_sitter_go", "language"),
    "typescript": ("tree_sitter_typescript", "language_tsx"),
    "rust": ("tree_sitter_rust", "language"),
    "java": ("tree_sitter_java", "language"),
    "csharp": ("tree_sitter_c_sharp", "language"),
    "kotlin": ("tree_sitter_kotlin", "language"),
    "swift": ("tree_sitter_swift", "language"),
    "c": ("tree_sitter_cpp", "language"),
    "ruby": ("tree_sitter_ruby", "language"),
    "php": ("tree_sitter_php", "language_php"),
    "shell": ("tree_sitter_bash", "language"),
}
"""For each language the package of its grammar, and the function in it that returns the grammar."""
_TYPES = frozenset(
    [
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "enum_declaration",
        "struct_item",
        "enum_item",
        "trait_item",
        "impl_item",
        "mod_item",
        "union_item",
        "type_spec",
        "type_alias",
        "class_specifier",
        "struct_specifier",
        "enum_specifier",
        "namespace_definition",
        "class",
        "module",
        "internal_module",
        "object_declaration",
        "protocol_declaration",
        "trait_declaration",
        "record_declaration",
        "struct_declaration",
        "type_alias_declaration",
        "namespace_declaration",
        "companion_object",
    ]
)
_FUNCTIONS = frozenset(
    [
        "function_declaration",
        "method_declaration",
        "function_item",
        "function_definition",
        "method_definition",
        "constructor_declaration",
        "function_signature",
        "method_signature",
        "abstract_method_signature",
        "function_signature_item",
        "method",
        "singleton_method",
        "init_declaration",
        "generator_function_declaration",
        "macro_definition",
        "protocol_function_declaration",
    ]
)
_CONSTANTS = frozenset(
    [
        "const_spec",
        "var_spec",
        "const_item",
        "static_item",
        "lexical_declaration",
        "variable_declaration",
        "preproc_def",
        "const_declaration",
        "property_declaration",
        "variable_assignment",
    ]
)
_IMPORTS = frozenset(
    [
        "import_declaration",
        "import_statement",
        "import_header",
        "use_declaration",
        "using_directive",
        "preproc_include",
        "namespace_use_declaration",
        "package_declaration",
        "package_header",
        "import",
        "package_clause",
    ]
)
_CONTAINERS = frozenset(
    [
        "export_statement",
        "type_declaration",
        "const_declaration",
        "var_declaration",
        "declaration_list",
        "class_body",
        "interface_body",
        "enum_body",
        "enum_class_body",
        "field_declaration_list",
        "body_statement",
        "template_declaration",
        "preproc_ifdef",
        "preproc_if",
        "linkage_specification",
        "ambient_declaration",
        "namespace_body",
        "decorated_definition",
        "statement_block",
        "program",
        "arguments",
        "arrow_function",
        "call_expression",
        "block",
        "do_block",
    ]
)
"""Nodes that may hold declarations."""
_VALUES = frozenset(["arrow_function", "function_expression", "function"])


@cache
def _parser(language: str) -> Any:
    """Return a parser, or None if the grammar is not installed."""
    if language not in _GRAMMARS:
        return None
    module, function = _GRAMMARS[language]
    try:
        tree_sitter = importlib.import_module("tree_sitter")
        grammar = getattr(importlib.import_module(module), function)()
        return tree_sitter.Parser(tree_sitter.Language(grammar))
    except (ImportError, AttributeError, ValueError, TypeError):
        return None


def outline_by_grammar(rows: Sequence[str], language: str) -> list[Declaration] | None:
    """Return the declarations, or None without a grammar or for a text that it does not parse as a whole."""
    parser = _parser(language)
    text = "\n".join(rows) if parser else ""
    if not text or len(text) > _MOST_PARSED:
        return None
    root = parser.parse(text.encode("utf-8", "replace")).root_node
    if root.has_error:
        return None
    return list(_declarations(root, rows, language, 0))


def _declarations(node: Any, rows: Sequence[str], language: str, depth: int) -> Iterator[Declaration]:
    for child in node.named_children:
        kind = child.type
        row = child.start_point[0]
        if kind in _IMPORTS:
            if not depth and (modules := read_import(rows, row, language)[1]):
                yield Declaration(row, child.end_point[0], 1, 0, modules)
        elif kind in _TYPES:
            yield _declaration(child, rows, 4, depth)
            yield from _declarations(child, rows, language, depth + 1)
        elif kind in _FUNCTIONS or (kind in _CONSTANTS and _is_function(child)):
            yield _declaration(child, rows, 3 if depth else 4, depth)
        elif kind in _CONSTANTS:
            if not depth or kind in ("const_declaration", "const_item"):
                yield Declaration(row, row, 2, depth, clip_text(rows[row].strip(), _LONGEST_CONSTANT))
        elif title := test_title(rows[row].strip()) if kind in ("expression_statement", "call") else "":
            is_group = title.startswith(("describe", "context", "suite"))
            yield Declaration(row, row, 4 if is_group else 3, depth, title, title)
            if is_group:
                yield from _declarations(child, rows, language, depth + 1)
        elif kind in _CONTAINERS:
            yield from _declarations(child, rows, language, depth)


def _declaration(node: Any, rows: Sequence[str], rank: int, depth: int) -> Declaration:
    name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    row = name.start_point[0] if name is not None else node.start_point[0]
    last, signature = read_signature(rows, row)
    return Declaration(row, last, rank, depth, signature, brief_of(signature))


def _is_function(node: Any) -> bool:
    """Return whether a declaration of a variable holds a function."""
    for child in node.named_children:
        value = child.child_by_field_name("value")
        if value is not None and value.type in _VALUES:
            return True
    return False
