"""Programming languages: how to recognise one, and the forms of its declarations.

The forms are regular expressions for single lines. They need neither a whole file nor correct code, since results of
tools are often stretches of files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

__all__ = ["LANGUAGES", "Language", "detect_language"]

_MODIFIERS = (
    r"(?:(?:export|default|declare|async|pub(?:\([\w :]+\))?|public|private|protected|internal|static|abstract|final"
    r"|override|open|sealed|data|partial|unsafe|extern|virtual|inline|readonly|suspend|fileprivate|mutating|inner"
    r"|synchronized|const|final)\s+)*"
)
_METHOD = rf"\s++{_MODIFIERS}(?:get |set |\*\s*)?#?[A-Za-z_$][\w$]*\s*(?:<[^<>()]*>)?\((?:[^;]*\{{|[^();]*)\s*\Z"
_TYPED = (
    r"\s*+(?!return\b|else\b|throw\b|new\b|case\b|delete\b|using\b|typedef\b|await\b|yield\b|package\b|import\b|goto\b)"
    r"(?:@\w+\s+)*(?:[A-Za-z_][\w:<>,\[\]?.]*[\s*&]+)+~?[A-Za-z_][\w:~]*\s*\([^;={]*(?:\)[^;=]*\{?|,)?\s*\Z"
)
_CONTROL = (
    r"(?!\s*+(?:\}\s*)?(?:if|for|while|switch|catch|return|else|do|try|await|throw|new|with|using|lock|foreach|assert"
    r"|match|super|this|function|elif|unless|yield|delete|typeof|void|expect|guard|defer|sizeof)\b)"
)


class Language:
    """The forms of one language, each compiled at its first use: a text needs most forms of one language only."""

    def __init__(
        self,
        name: str,
        signs: str,
        types: str,
        functions: str,
        constants: str = "",
        imports: str = "",
        *,
        marks: tuple[str, ...] = (),
        inside: str = "",
    ) -> None:
        self.name = name
        """For example `go`."""
        self.marks = marks
        """Texts of which a line that `inside` finds has one: most lines have none, and are not searched."""
        self._signs, self._inside = signs, inside
        self._types, self._functions, self._constants, self._imports = types, functions, constants, imports

    @cached_property
    def signs(self) -> re.Pattern[str]:
        """The beginning of a line that is usual in this language and rare in others."""
        return _compiled(self._signs)

    @cached_property
    def inside(self) -> re.Pattern[str]:
        """A place inside of a line that is usual in this language and rare in others."""
        return _compiled(self._inside)

    @cached_property
    def types(self) -> re.Pattern[str]:
        """The first line of a class, or of another declaration that holds declarations."""
        return _compiled(self._types)

    @cached_property
    def functions(self) -> re.Pattern[str]:
        """The first line of a function or method."""
        return _compiled(self._functions)

    @cached_property
    def constants(self) -> re.Pattern[str]:
        """A line at the top level that declares a constant or a variable."""
        return _compiled(self._constants)

    @cached_property
    def imports(self) -> re.Pattern[str]:
        """A line that imports."""
        return _compiled(self._imports)


def _compiled(form: str) -> re.Pattern[str]:
    """Return the pattern of a form; one that never matches if the language has none."""
    return re.compile(form or r"(?!)")


LANGUAGES = (
    Language(
        "python",
        r"\s*+(?:async )?def \w[^\s(]*\(.*:\s*(?:#.*)?\Z|\s*+class \w+.*:\s*\Z"
        r"|from [\w.]+ import |import [\w.]+(?: as \w+)?\s*\Z"
        r"|\s*+(?:elif|except|with|for|if|while) .*:\s*\Z|\s*+(?:else|try):\s*\Z|\s*+@\w+",
        r"\s*+class\s+\w",
        r"\s*+(?:async\s+)?def\s+\w",
        r"[A-Z_][A-Z0-9_]+\s*(?::[^=]+)?=\s*\S",
        r"import\s+\w|from\s+\S+\s+import\b",
        marks=("self.", "None", "True", "False"),
        inside=r"\bself\.|\b(?:None|True|False)\b",
    ),
    Language(
        "go",
        r"package \w+\s*\Z|func[ (]|import \(|\s*+(?:if|for) .*\{\s*\Z(?<!\) \{)|type \w+ (?:struct|interface)",
        r"type\s+\w+(?:\[.*?\])?\s+(?:struct|interface)\b|type\s+\w+",
        r"func\b",
        r"(?:const|var)\s+\w+.*=|\t[A-Z]\w*\s+[\w.]*\s*=\s*\S",
        r"import\s+[\"\w(]|package\s+\w+\s*\Z",
        marks=(":=", "nil"),
        inside=r":=|\bnil\b",
    ),
    Language(
        "typescript",
        r"import .* from ['\"]|import [{*]|export |\s*+(?:const|let) [\w${[].*=|\s*+(?:async )?function\b"
        r"|\s*+(?:readonly |private |public )?\w+\??: [\w<>\[\]{}| ']+[;,]?\s*\Z|\}\);?\s*\Z",
        rf"\s*+{_MODIFIERS}(?:class|interface|enum|namespace|module)\s+\w|\s*+{_MODIFIERS}type\s+\w+.*="
        r"|\s*+(?:describe|context|suite)(?:\.\w+)*\(\s*[\"'`]",
        rf"\s*+{_MODIFIERS}function\b|\s*+{_MODIFIERS}(?:let|var)?\s*[\w$]+(?:\s*:[^=]+)?\s*=\s*(?:async\s*)?"
        rf"(?:function\b|\([^()]*\)\s*(?::[^=]+)?=>|\w+\s*=>|\(\s*\Z)"
        rf"|{_CONTROL}{_METHOD}|\s*+(?:it|test)(?:\.\w+)*\(\s*[\"'`]",
        r"(?:export\s+)?(?:const|let|var)\s+[\w$]+\s*(?::[^=]+)?=\s*\S",
        r"import\b|export\s+(?:\*|\{[^}]*\}|type\s*\{).*\bfrom\b|(?:const|let|var)\s+[\w${},\s]+=\s*require\(",
        marks=("=>", "===", ");"),
        inside=r"=>|===|\);\s*\Z",
    ),
    Language(
        "rust",
        r"\s*+(?:pub(?:\([\w :]+\))? )?(?:fn|struct|enum|impl|trait|mod|use) |\s*+let mut |#\[",
        rf"\s*+{_MODIFIERS}(?:struct|enum|trait|impl|mod|union)\b",
        rf"\s*+{_MODIFIERS}(?:fn|macro_rules!)\s*\w",
        r"(?:pub(?:\([\w :]+\))?\s+)?(?:const|static)\s+\w+\s*:|(?:pub\s+)?type\s+\w+",
        r"(?:pub\s+)?use\s+\w|extern crate",
        marks=("self.", "::<", "->", "&mut "),
        inside=r"\bself\.|::<|->.*\{|&mut ",
    ),
    Language(
        "java",
        r"\s*+(?:public|private|protected) (?:static |final |class |interface |abstract |void |[A-Z]\w*)|import [\w.]+;"
        r"|package [\w.]+;|\s*+@\w+|\s*+(?:final )?[A-Z]\w*(?:<.*>)? \w+ = .*;",
        rf"\s*+{_MODIFIERS}(?:class|interface|enum|record|@interface)\s+\w",
        rf"{_CONTROL}{_TYPED}|{_CONTROL}\s+(?:public|private|protected)\s+[A-Z]\w*\([^;]*\{{?\s*\Z",
        r"\s*+(?:public |private |protected )?static final\s+.*=",
        r"import\s+(?:static\s+)?[\w.*]+;|package\s+[\w.]+;",
        marks=("new ",),
        inside=r"\bnew [A-Z]",
    ),
    Language(
        "csharp",
        r"using [\w.]+;|namespace [\w.]+|\s*+(?:public|private|protected|internal) (?:async |static |override |class "
        r"|readonly |void |string |int |bool |Task)|\s*+\[\w+.*\]\s*\Z|\s*+\{\s*\Z",
        rf"\s*+{_MODIFIERS}(?:class|interface|enum|record|struct|namespace)\s+\w",
        rf"{_CONTROL}{_TYPED}|\s+(?:public|private|protected|internal)\s+[A-Z]\w*\([^;]*\s*\Z",
        r"\s*+(?:public |private |protected |internal )?(?:const|static readonly)\s+.*=",
        r"using\s+[\w.= ]+;",
        marks=("{ get;", "var "),
        inside=r"\{ get;|\bvar \w+ = ",
    ),
    Language(
        "kotlin",
        r"\s*+(?:override |private |suspend |internal )*fun |\s*+va[lr] \w+|import [\w.]+\s*\Z|package [\w.]+\s*\Z"
        r"|data class",
        rf"\s*+{_MODIFIERS}(?:class|interface|enum class|object|companion object|typealias)\b",
        rf"\s*+{_MODIFIERS}fun\s",
        rf"(?:{_MODIFIERS})(?:const )?va[lr]\s+\w+.*=",
        r"import\s+[\w.]+|package\s+[\w.]+",
        marks=("?.", "when"),
        inside=r"\?\.|\bwhen\b.*\{",
    ),
    Language(
        "swift",
        r"import (?:Foundation|UIKit|SwiftUI|XCTest|\w+)\s*\Z|\s*+(?:guard|if) let "
        r"|\s*+(?:public |private |static |override |mutating )*func \w+.*\{?\s*\Z"
        r"|\s*+(?:let|var) \w+(?:: [\w\[\]?<>.]+)?(?: =|\s*+\Z| \{)|\s*+(?:struct|extension|protocol) \w+",
        rf"\s*+{_MODIFIERS}(?:class|struct|enum|protocol|extension|actor)\s+\w",
        rf"\s*+{_MODIFIERS}(?:func\s|init[?]?\(|deinit\b|subscript\()",
        r"(?:public |private )?(?:let|var)\s+\w+.*=",
        r"import\s+\w+",
    ),
    Language(
        "c",
        r"#\s*(?:include|define|ifdef|ifndef|endif|pragma)"
        r"|\s*+(?:int|char|void|struct|static|unsigned|size_t|double|float|bool|uint\d+_t|const) .*[;{(]|template ?<",
        rf"\s*+(?:typedef\s+)?{_MODIFIERS}(?:class|struct|enum|union|namespace)\b(?:\s+class)?\s+\w+[^;()]*\Z",
        rf"{_CONTROL}{_TYPED}|{_CONTROL}\s*~?[A-Z]\w*(?:::~?\w+)?\([^;]*\)[^;]*\{{\s*\Z",
        r"#\s*define\s+\w+\s+\S|(?:static\s+)?(?:const|constexpr)\s+.*=",
        r"#\s*include\b|using\s+(?:namespace\s+)?[\w:]+;",
        marks=("->", "std::", "NULL"),
        inside=r"\w->\w|\bstd::|\bNULL\b",
    ),
    Language(
        "ruby",
        r"\s*+def [\w.?!=]+(?:\(.*\))?\s*\Z|\s*+end\s*\Z|require(?:_relative)? ['\"]|\s*+(?:unless|elsif) "
        r"|\s*+@\w+ = |\s*+attr_\w+ |\s*+(?:class|module) [A-Z]\w*(?: < [\w:]+)?\s*\Z",
        r"\s*+(?:class|module)\s+[A-Z]|\s*+(?:describe|context|RSpec\.describe)\b.*\bdo\b",
        r"\s*+def\s+\S|\s*+(?:it|test|specify|scenario)\s+[\"'].*\bdo\b|\s*+attr_\w+ ",
        r"\s*+[A-Z][A-Z0-9_]+\s*=\s*\S",
        r"require(?:_relative)?\b|\s*+(?:include|extend)\s+[A-Z]",
        marks=("do", ".each", ".nil?", ".empty?"),
        inside=r"\bdo(?: \|.*\|)?\s*\Z|\.(?:each|nil\?|empty\?)",
    ),
    Language(
        "php",
        r"<\?php|\s*+\$\w+ = |use [\w\\]+;|namespace [\w\\]+;"
        r"|\s*+(?:public|private|protected) (?:static )?function ",
        rf"\s*+{_MODIFIERS}(?:class|interface|trait|enum)\s+\w",
        rf"\s*+{_MODIFIERS}function\s+&?\w",
        r"\s*+(?:public |private |protected )?const\s+\w+.*=|define\(",
        r"use\s+[\w\\]+|(?:require|include)(?:_once)?\b|namespace\s+[\w\\]+;",
        marks=("->",),
        inside=r"\$\w+->",
    ),
    Language(
        "shell",
        r"#!.*\b(?:ba|z|)sh\b|\s*+(?:fi|done|esac)\s*\Z|\s*+(?:if|while) \["
        r"|\s*+(?:echo|export|local|set) |\w+\(\) ?\{",
        "",
        r"\s*+(?:function\s+[\w:.-]+|[\w:.-]+\s*\(\))\s*(?:\(\))?\s*\{?",
        r"(?:export |readonly |declare -r )?[A-Z][A-Z0-9_]+=",
        r"(?:source|\.)\s+\S",
        marks=("; then", "; do", "$"),
        inside=r"; (?:then|do)\s*\Z|\$[{(\w]",
    ),
    Language(
        "sql",
        r"(?i)\s*+(?:create (?:or replace |temp|unique |table|index|view|type|function|trigger|schema)"
        r"|alter table|insert into|select |from |where |drop |update \w+ set|(?:left |inner )?join "
        r"|\w+ (?:text|integer|bigint|varchar|timestamp|boolean|uuid)\b)",
        r"(?i)\s*+create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unlogged\s+|virtual\s+|materialized\s+)?"
        r"(?:table|type|schema)\b",
        r"(?i)\s*+(?:create\s+(?:or\s+replace\s+)?(?:unique\s+|materialized\s+)?"
        r"(?:view|index|function|procedure|trigger|policy|extension)\b|alter\s+table\b|drop\s+\w+|insert\s+into\b)",
    ),
    Language(
        "css",
        r"[.#&@:]?[\w*:.#\[\]=\"'>~+(), -]+\{\s*\Z|\s+[a-z-]+:\s[^;{]+;\s*\Z|\s*+--[\w-]+:|@(?:media|import"
        r"|font-face|keyframes)",
        r"\s*+@(?:media|supports|layer|keyframes|font-face|container)\b",
        r"\s*+[.#&:*a-zA-Z\[][^;{}]*\{\s*\Z",
        r"\s*+--[\w-]+:|\$[\w-]+:",
        r"@(?:import|use|tailwind)\b",
    ),
    Language(
        "lua",
        r"\s*+local (?:function )?\w+|\s*+end[,)]?\s*\Z|\s*+function [\w.:]+\(|--\[\[",
        "",
        r"\s*+(?:local\s+)?function\s+[\w.:]+|\s*+(?:local\s+)?[\w.]+\s*=\s*function\b",
        r"(?:local\s+)?[A-Z][A-Z0-9_]+\s*=",
        r"(?:local\s+\w+\s*=\s*)?require\b",
        marks=("then", "~="),
        inside=r"\bthen\s*\Z|~=",
    ),
)
"""The languages that are known, those first that win a tie."""

_LOOKED_AT = 200
_SAMPLES = 40


_FIRST_LINES = 8
_FIRST = re.compile(
    r"(?P<go>package \w+\Z)|(?P<shell>#!.*\b(?:ba|da|z|k)?sh\b)|(?P<python>#!.*\bpython|from __future__ import )"
    r"|(?P<php><\?php)"
)
"""A line among the first ones that says which language it is."""
_IN_GO = re.compile(r"import [(\"]|(?:func|type) |(?:const|var) \(")
"""A line that Kotlin does not have, whose files may begin with `package shop` too."""


def detect_language(rows: Sequence[str]) -> Language | None:
    """Return the language that a first line gives, or in which most of a sample of lines are usual; None for none."""
    some = [row for row in rows[:_LOOKED_AT] if len(row) > 2 and not row.isspace()]
    for row in some[:_FIRST_LINES]:
        if (found := _FIRST.match(row)) and (found.lastgroup != "go" or any(map(_IN_GO.match, some))):
            return next(language for language in LANGUAGES if language.name == found.lastgroup)
    some = some[:8] + some[8 :: max(1, len(some) // _SAMPLES)]
    whole = "\n".join(some)
    best, most = None, max(1, len(some) // 8)
    for language in LANGUAGES:
        marks = [mark for mark in language.marks if mark in whole]
        marked = {row for mark in marks for row in some if mark in row}
        begins, finds = language.signs.match, language.inside.search
        spare = len(some) - most
        for row in some:
            if not begins(row) and not (row in marked and finds(row)):
                spare -= 1
                if spare <= 0:  # Another language is at least as usual.
                    break
        if spare > 0:
            best, most = language, most + spare
    return best
