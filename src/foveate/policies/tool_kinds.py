"""Kinds of tools: the effect of a call, read from its tool name and arguments.

The tools of common coding and browser agents are known. A call of an unknown tool has the kind `other`: no policy
guesses that its result repeats another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from posixpath import normpath
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import msgspec
from msgspec import Struct, field

from ..core.caches import cached, cached_by_text, cached_on_entry
from ..core.growing import Growing
from ..core.messages import ResultState
from ..core.results import is_loose_result, native_steps
from ..core.tool_names import add_tool_names, tool_name
from ..core.view import Entry, View
from ..errors import BadSetting

__all__ = [
    "ASKS",
    "LOOKS",
    "READS",
    "WRITES",
    "CallClassifier",
    "CallKind",
    "ClassifiedResult",
    "GrowingResults",
    "ResultClassifier",
    "ResultsSoFar",
    "classify_results",
    "create_classifier",
    "create_name_filter",
    "is_absolute",
    "is_same_file",
    "names_key",
]

READS = (
    "cat", "file_read", "get_file_contents", "notebookread", "open", "open_file", "read", "read_file",
    "read_text_file", "str_replace_based_edit_tool", "str_replace_editor", "text_editor", "view", "view_file",
)  # fmt: skip
"""Tools that show a file or a part of it. A tool that is also in `WRITES` reads if its `command` is `view`."""

WRITES = (
    "append", "apply_patch", "create", "create_file", "delete_file", "edit", "edit_block", "edit_file", "file_write",
    "insert", "multiedit", "notebookedit", "patch", "replace_in_file", "str_replace", "str_replace_based_edit_tool",
    "str_replace_editor", "text_editor", "write", "write_file", "write_to_file",
)  # fmt: skip
"""Tools that change files."""

LOOKS = (
    "browser_click", "browser_fill_form", "browser_get_state", "browser_go_back", "browser_hover", "browser_navigate",
    "browser_navigate_back", "browser_press_key", "browser_screenshot", "browser_scroll", "browser_select_option",
    "browser_snapshot", "browser_take_screenshot", "browser_type", "browser_wait_for", "computer", "get_page_text",
    "goto", "navigate", "read_page", "screenshot", "scroll_down", "scroll_up", "take_screenshot", "take_snapshot",
)  # fmt: skip
"""Tools that show the present state of a page or a screen."""

ASKS = (
    "bash", "exec_command", "execute_bash", "find", "find_by_name", "glob", "grep", "list", "list_dir",
    "list_directory", "list_files", "ls", "powershell", "run_command", "run_terminal_cmd", "search_files", "shell",
)  # fmt: skip
"""Commands, listings and searches: the same call later makes the earlier result out of date."""

_FILE_ARGUMENTS = ("file_path", "filePath", "path", "filename", "file", "target_file", "notebook_path")
_COMMAND_ARGUMENTS = ("command", "cmd")
_FOLDER_ARGUMENTS = ("workdir", "cwd")
_FIRST_LINE_ARGUMENTS = ("offset", "start_line", "line_number")
_IGNORED_ARGUMENTS = frozenset(
    ("description", "explanation", "justification", "max_output_tokens", "timeout", "yield_time_ms")
)
"""Arguments that give a reason or a limit. Two calls that differ only in these ask the same."""

_PATCHED_FILE = re.compile(r"\*\*\* (?:Update|Add|Delete) File: ([^\n\\\"]+)")
_SHOW_COMMAND = re.compile(
    r"(?:cd (?P<folder>[\w./~-]+) && )?"
    r"(?:(?:cat(?: -n)?|nl -ba) (?P<file>[\w./~@+-]+)(?: \| sed -n '(?P<from>\d{1,9}),(?P<to>\d{1,9})p')?"
    r"|sed -n '(?P<first>\d{1,9}),(?P<last>\d{1,9})p' (?P<part>[\w./~@+-]+))"
)
_SHOW_COMMAND_MAX = 500
"""Characters."""
_LAST_LINE = 10**9
"""Stands for the last line of a file of unknown length."""
_ALL_LINES = (1, _LAST_LINE)


class CallKind(Struct, frozen=True, gc=False, array_like=True):
    """The effect of one call."""

    kind: Literal["read", "write", "look", "ask", "other"]
    files: tuple[str, ...] = ()
    """Files that the call reads or changes, as far as its arguments name them."""
    lines: tuple[int, int] = _ALL_LINES
    """For `read`: the first and the last line that the call asks for."""
    question: bytes = b""
    """For `ask`: a hash of what the call asks."""


CallClassifier = Callable[[str, str], CallKind]
"""Takes the name of a tool and the arguments of a call, as JSON text."""

ClassifiedResult = tuple[Entry, ResultState, CallKind]

_OTHER = CallKind("other")
_LOOK = CallKind("look")


def create_name_filter(names: Collection[str]) -> Callable[[str], bool]:
    """Return a function that says whether a tool has one of these names.

    A name may be a pattern: `*` stands for any characters, and `?` for one. Raises BadSetting for a text in place of a
    list.
    """
    if isinstance(names, str):
        raise BadSetting(f"protected_tools is the text {names!r}. Pass a list of names, such as [{names!r}].")
    patterns = frozenset(name for name in names if "*" in name or "?" in name)
    exact = add_tool_names(frozenset(names) - patterns)

    @cached(1 << 10)
    def matches(tool: str) -> bool:
        return tool in exact or any(fnmatchcase(tool, pattern) for pattern in patterns)

    return matches


def create_classifier(
    reads: Collection[str] = READS,
    writes: Collection[str] = WRITES,
    looks: Collection[str] = LOOKS,
    asks: Collection[str] = ASKS,
) -> CallClassifier:
    """Return the function that classifies calls by these names of tools.

    Names are compared without case and without any text before `__`: `mcp__files__read_file` is `read_file`. The
    function caches its answers.
    """
    return _classifier(*(frozenset(map(_plain_name, names)) for names in (reads, writes, looks, asks)))


@cached(64)
def _classifier(
    reads: frozenset[str], writes: frozenset[str], looks: frozenset[str], asks: frozenset[str]
) -> CallClassifier:
    def classify(name: str, arguments: str) -> CallKind:
        return classify_arguments(arguments, name)

    @cached_by_text(1 << 14)
    def classify_arguments(arguments: str, name: str) -> CallKind:
        tool = _plain_name(name)
        if tool in looks:
            return _LOOK
        if tool in writes or tool in asks:
            if files := _PATCHED_FILE.findall(arguments):
                return CallKind("write", tuple(map(_normal_path, files)))
        elif tool not in reads:
            return _OTHER
        values = _decoded(arguments)
        folder, file = _first_text(values, _FOLDER_ARGUMENTS), _first_text(values, _FILE_ARGUMENTS)
        if tool in asks:
            return _shell_read(values, folder) or CallKind("ask", question=_question(tool, values))
        if not file:
            return _OTHER
        if tool in writes and (tool not in reads or values.get("command") not in ("view", None)):
            return CallKind("write", (_normal_path(file, folder),))
        return CallKind("read", (_normal_path(file, folder),), _line_range(values))

    return classify


def names_key(*lists: Collection[str]) -> str:
    """Return a hash of lists of tools, for the name of a fact that depends on them."""
    names = repr([sorted({*map(_plain_name, tools)}) for tools in lists])
    return blake2b(names.encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


def classify_results(view: View, classifier: CallClassifier) -> Sequence[ClassifiedResult]:
    """Return each finished result of a view as it was appended, with the kind of its call, oldest first.

    Interrupted results are left out, and so are results of actions whose calls are unknown (`core.results`). Do not
    change the sequence, and do not keep it.
    """
    return _all_results(classifier).of(view).results


class ResultClassifier(Struct):
    """Classifies the results among entries that are added in order, for policies that keep facts about them."""

    _kinds: dict[str, CallKind] = {}  # By the id of the call.

    def copy(self) -> ResultClassifier:
        """Return an independent copy."""
        return ResultClassifier(self._kinds.copy())

    def add(self, entry: Entry, classifier: CallClassifier, native: Entry | None = None) -> ClassifiedResult | None:
        """Add an entry; return it with the state of its result and the kind of its call, if it is a finished result.

        `native`: the same entry in the form of calls and results.
        """
        match _result_or_calls(native or entry, classifier):
            case _Finished(call_id, state):
                kind = self._kinds.get(call_id)
                return (entry, state, kind) if kind is not None else None
            case calls:
                self._kinds.update(calls)
                return None


class ResultsSoFar(Protocol):
    """A state to which the entries of a view are added in order, with their results."""

    def add(self, entry: Entry, result: ClassifiedResult | None) -> None:
        """Add an entry. `result`: its result, if it has a finished one whose call is known."""
        ...

    def copy(self) -> Self:
        """Return an independent copy."""
        ...


R = TypeVar("R", bound=ResultsSoFar)


class GrowingResults(Generic[R]):
    """A fact about the results of a view (`Growing`). Its state learns the kind of the call of each result."""

    def __init__(self, begin: Callable[[], R], classifier: CallClassifier, *, name: str = "", kind: Any = None) -> None:
        """`begin` returns the state before the first entry. `name`, `kind`: as for `Growing`."""
        self._begin, self._classifier = begin, classifier

        def add(known: _ResultState[R], entry: Entry) -> None:
            known.has_actions = known.has_actions or is_loose_result(entry)
            if not known.has_actions:
                known.state.add(entry, known.results.add(entry, classifier))

        state: Any = _ResultState
        self._growing = Growing[_ResultState[R]](
            lambda: _ResultState(begin()),
            add,
            _ResultState.copy,
            name=name,
            kind=state[kind] if name else None,
        )

    def of(self, view: View) -> R:
        """Return the state after all entries of a view, until the next call. The caller must not change it."""
        known = self._growing.of(view)
        if not known.has_actions:
            return known.state
        # Only what follows a step shows which results are its own.
        state, results = self._begin(), ResultClassifier()
        for entry, native in zip(view.entries, native_steps(view.entries), strict=True):
            state.add(entry, results.add(entry, self._classifier, native))
        return state


class _ResultState(Struct, Generic[R]):
    """The state of a fact about results, as far as each belongs to a call."""

    state: R
    results: ResultClassifier = field(default_factory=ResultClassifier)
    has_actions: bool = False
    """Whether some results belong to actions, not to calls."""

    def copy(self) -> _ResultState[R]:
        return _ResultState(self.state.copy(), self.results.copy(), self.has_actions)


class _AllResults:
    """All results of a view."""

    __slots__ = ("results",)

    def __init__(self) -> None:
        self.results: list[ClassifiedResult] = []

    def copy(self) -> _AllResults:
        twin = _AllResults()
        twin.results = self.results.copy()
        return twin

    def add(self, entry: Entry, result: ClassifiedResult | None) -> None:
        if result is not None:
            self.results.append(result)


@cached(64)
def _all_results(classifier: CallClassifier) -> GrowingResults[_AllResults]:
    return GrowingResults(_AllResults, classifier)


@cached_on_entry
def _result_or_calls(entry: Entry, classifier: CallClassifier) -> _Finished | tuple[tuple[str, CallKind], ...]:
    """Return the finished result of an entry, or the ids and the kinds of its calls."""
    outline = entry.outline
    if outline is None:
        return ()
    if outline.role == "assistant":  # The source, since the arguments in the view may be cut.
        source = entry.source if entry.shrunk and outline.calls else outline
        calls = source.calls if source else ()
        return tuple([(call.call_id, classifier(call.name, call.arguments)) for call in calls])
    result = outline.result if entry.is_result else None
    return _Finished(result.call_id, result.state) if result and result.state != "interrupted" else ()


class _Finished(Struct, frozen=True, gc=False):
    """A finished result."""

    call_id: str
    state: ResultState


def is_absolute(path: str) -> bool:
    """Return whether a path names the same file in every working folder."""
    return path.startswith(("/", "~")) or path[1:2] == ":"


def is_same_file(path: str, other: str) -> bool:
    """Return whether two paths may name one file. Relative paths may start from any folder."""
    return path == other or path.endswith(f"/{other}") or other.endswith(f"/{path}")


# ------------------------------------------------------------------------------------------------------- arguments


def _plain_name(tool: str) -> str:
    return tool_name(tool).rsplit("__", 1)[-1].lower()


def _decoded(arguments: str) -> Mapping[str, Any]:
    try:
        values = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}
    return values if isinstance(values, dict) else {}


def _first_text(values: Mapping[str, Any], keys: Collection[str]) -> str:
    """Return the first of these arguments that is a text and not blank."""
    for key in keys:
        value = values.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def _normal_path(file: str, folder: str = "") -> str:
    file = file.strip().replace("\\", "/")
    return normpath(f"{folder}/{file}" if folder and not is_absolute(file) else file)


def _line_range(values: Mapping[str, Any]) -> tuple[int, int]:
    match values.get("view_range"):
        case [int(first), int(last)]:
            return first, last if last > 0 else _LAST_LINE
        case _:
            pass
    first = 1
    for key in _FIRST_LINE_ARGUMENTS:
        if isinstance(value := values.get(key), int):
            first = value
            break
    match values:
        case {"limit": int(limit)}:
            return first, first + limit - 1
        case {"end_line": int(last)}:
            return first, last
        case _:
            return _ALL_LINES if first == 1 else (first, _LAST_LINE)


def _question(tool: str, values: Mapping[str, Any]) -> bytes:
    asked = {key: value for key, value in sorted(values.items()) if key not in _IGNORED_ARGUMENTS}
    text = tool.encode("utf-8", "surrogatepass") + b" " + msgspec.json.encode(asked)
    return blake2b(text, digest_size=16).digest()


def _shell_read(values: Mapping[str, Any], folder: str) -> CallKind | None:
    """Return the read of a shell command that only shows a file or a part of it; None for other commands."""
    command = next((values[key] for key in _COMMAND_ARGUMENTS if key in values), "")
    if isinstance(command, list) and command:
        command = command[-1]  # ["bash", "-lc", "cat x.py"]
    if not isinstance(command, str) or len(command) > _SHOW_COMMAND_MAX:
        return None
    if (match := _SHOW_COMMAND.fullmatch(command.strip())) is None:
        return None
    file = _normal_path(match["file"] or match["part"], match["folder"] or folder)
    first, last = match["from"] or match["first"], match["to"] or match["last"]
    return CallKind("read", (file,), (int(first), int(last)) if first else (1, _LAST_LINE))
