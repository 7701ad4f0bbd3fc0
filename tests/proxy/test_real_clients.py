"""Claude Code, Codex, OpenCode and Gemini CLI as their users start them: 30 commands, then more in a new process.

`make test-clients` installs them in `.venv-clients`; without them the tests skip.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foveate.open import open_store
from foveate.testing import ScriptedModel, call, say
from foveate.testing.server import StubServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

COMMANDS = 30
LINE = "the service answered every request in time and wrote nothing unusual"
Script = Callable[[Mapping[str, Any]], Any]


def shell(number: int) -> str:
    """Return a command that prints about 1,800 tokens."""
    return f"seq -f 'log {number} line %g: {LINE}' 1 100"  # Gemini CLI refuses `$(...)`.


class Client(NamedTuple):
    provider: str
    script: Callable[[], Script]
    arguments: Callable[[bool], list[str]]
    """Its command line, for a new session and for the session that goes on."""
    environment: Mapping[str, str]
    point: Callable[[str], tuple[list[str], dict[str, str]]]
    """Arguments and variables that send its requests to a URL, without a proxy."""
    expansions: int = 1
    """Requests that only the proxy makes, because the model calls `expand`."""
    conversations: int = 1
    settings: Mapping[str, str] = {}
    """Files in its home directory."""


def calling(tool: str, argument: str, *, has_ids: bool = True, **more: str) -> Callable[[], Script]:
    """Return a script with 30 calls of a tool for each question. Requests without the tool ask for a title.

    `has_ids`: whether the calls have ids. The scripted model sends none that is the name.

    Once, if the tool `expand` is offered, the model looks at lines of an earlier log.
    """

    def begin() -> Script:
        numbers = count(1)
        expansions = [call("expand_1", "expand", handle="m5", lines="40-41")]

        def reply(request: Mapping[str, Any]) -> Any:
            offered = [name for each in request.get("tools") or () for name in names_in(each)]
            if tool not in offered:
                return say("Reading logs")
            if expansions and "expand" in offered and "log 20 line" in json.dumps(request):
                return expansions.pop()
            number = next(numbers)
            if number % (COMMANDS + 1) == 0:
                return say(f"Answer {number}: all is well.")
            return call(f"call_{number}" if has_ids else tool, tool, **{argument: shell(number)}, **more)

        return reply

    return begin


def names_in(tool: Mapping[str, Any]) -> list[Any]:
    """Return the names of the functions in a tool; Gemini has several in one."""
    return [each.get("name") for each in tool.get("functionDeclarations") or (tool,)]


def running_code() -> Script:
    """Return a script that calls the tool of newer models of Codex, which runs JavaScript."""
    numbers = count(1)

    def reply(request: Mapping[str, Any]) -> Any:
        number = next(numbers)
        if number % (COMMANDS + 1) == 0:
            return say(f"Answer {number}: all is well.")
        code = f"const r = await tools.exec_command({{cmd: {json.dumps(shell(number))}}});\ntext(r.output);"
        thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"gAAA{number}"}
        run = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}", "name": "exec"}
        usage = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14}
        return {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": request["model"],
            "output": [thought, {**run, "status": "completed", "input": code}],
            "usage": {
                **usage,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens_details": {"reasoning_tokens": 0},
            },
        }

    return reply


def codex(*options: str) -> Callable[[bool], list[str]]:
    begin = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", *options]
    return lambda is_resumed: ["exec", *(["resume", "--last"] if is_resumed else []), *begin, question(is_resumed)]


def question(is_resumed: bool) -> str:
    return "Read the logs once more." if is_resumed else "Read the logs."


GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "model": {"disableLoopDetection": True},  # It asks a model every few turns whether the session runs in circles.
}
CODEX_KEYS = {"OPENAI_API_KEY": "sk-test", "CODEX_API_KEY": "sk-test"}
CLIENTS = {
    "claude": Client(
        "anthropic",
        calling("Bash", "command", description="Read a log"),
        lambda is_resumed: ["-p", question(is_resumed), "--allowedTools", "Bash", *(["-c"] if is_resumed else [])],
        {"ANTHROPIC_API_KEY": "sk-ant-test", "DISABLE_AUTOUPDATER": "1"},
        lambda url: ([], {"ANTHROPIC_BASE_URL": url}),
    ),
    "codex": Client(
        "openai_responses",
        calling("exec_command", "cmd"),
        codex("-m", "gpt-5.6-codex"),
        CODEX_KEYS,
        lambda url: (["-c", f'openai_base_url="{url}/v1"'], {}),
    ),
    "codex, newest model": Client(
        "openai_responses",
        running_code,
        codex(),
        CODEX_KEYS,
        lambda url: (["-c", f'openai_base_url="{url}/v1"'], {}),
        expansions=0,  # Its tools stand in an item of the list, where no tool can be added.
    ),
    "opencode": Client(
        "anthropic",
        calling("bash", "command", description="Read a log"),
        lambda is_resumed: [
            *["run", "-m", "anthropic/claude-sonnet-4-5", "--auto", "--format", "json"],
            *(["-c"] if is_resumed else []),
            question(is_resumed),
        ],
        {"ANTHROPIC_API_KEY": "sk-ant-test", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
        lambda url: (
            [],
            {"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}})},
        ),
    ),
    "gemini": Client(
        "gemini",
        calling("run_shell_command", "command", has_ids=False, description="Read a log"),
        lambda is_resumed: ["-m", "gemini-2.5-pro", "--yolo", "-p", question(is_resumed)],
        {"GEMINI_API_KEY": "test", "GEMINI_CLI_TRUST_WORKSPACE": "true"},
        lambda url: ([], {"GOOGLE_GEMINI_BASE_URL": url}),
        conversations=2,  # A session that goes on has each result twice, and without a proxy the API refuses it.
        settings={".gemini/settings.json": json.dumps(GEMINI_SETTINGS)},
    ),
}


class Session(NamedTuple):
    answers: list[str]
    requests: int
    bytes: int
    names: list[str]


def program(name: str) -> str:
    """Return the path of a client. Skips the test if it is not installed."""
    setting = os.environ.get("FOVEATE_CLIENTS")
    if not setting:
        pytest.skip(f"{name} is not installed (make test-clients)")
    folder = Path(setting).resolve()  # A client starts in a folder of its own.
    found = next(folder.glob("lib/*/site-packages/claude_agent_sdk/_bundled/claude"), None)
    if name == "claude" and found:
        return str(found)
    where = shutil.which(name, path=os.pathsep.join([str(folder), f"{folder}/node_modules/.bin", os.environ["PATH"]]))
    if where is None:
        pytest.skip(f"{name} is not installed (make test-clients)")
    return where


def session(name: str, folder: Path, *, through_proxy: bool) -> Session:
    """Run a client twice: a new session, and the same session in a new process."""
    client, path = CLIENTS[name], program(name.partition(",")[0])
    home, work, store = folder / "home", folder / "work", folder / "chats.db"
    for made in (home, work, home / ".codex"):
        made.mkdir(parents=True)
    for name_of_file, text in client.settings.items():
        (home / name_of_file).parent.mkdir(exist_ok=True)
        (home / name_of_file).write_text(text)
    with StubServer(ScriptedModel(client.script(), client.provider)) as stub:
        answers = []
        for is_resumed in (False, True):
            arguments = client.arguments(is_resumed)
            environment = {"HOME": str(home), "PATH": f"{Path(path).parent}:{os.environ['PATH']}", **client.environment}
            if through_proxy:
                command = [sys.executable, "-m", "foveate", "proxy", "--wrap", name.partition(",")[0]]
                command += ["--upstream", stub.url, "--window", "60000", "--store", str(store), "--", *arguments]
            else:
                more, variables = client.point(stub.url)
                command, environment = [path, *more, *arguments], {**environment, **variables}
            ended = subprocess.run(
                command,
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=120,
            )
            assert ended.returncode == 0, ended.stderr[-2000:]
            answers += [line for line in ended.stdout.splitlines() if "all is well" in line and "log " not in line]
        assert not stub.illegal
        names: list[str] = []
        if through_proxy:
            opened = open_store(f"sqlite:///{store}")
            names = list(opened.names(""))
            opened.close()
            log = (home / ".local/share/foveate/proxy.log").read_text(encoding="utf-8")
            assert log.count("WebSocket /v1/responses") == (2 if name.startswith("codex") else 0)  # One a process.
        return Session(answers, len(stub.received), sum(len(request.body) for request in stub.received), names)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_real_client_works_as_before_and_sends_less(name: str, tmp_path: Path):
    direct = session(name, tmp_path / "direct", through_proxy=False)
    managed = session(name, tmp_path / "proxy", through_proxy=True)
    print(f"{name}: {direct.requests} requests, {direct.bytes:,} bytes; through the proxy {managed.bytes:,}")
    assert [text.partition("Answer")[2][:20] for text in managed.answers] == [
        text.partition("Answer")[2][:20] for text in direct.answers
    ]
    assert len(direct.answers) == 2
    assert managed.requests == direct.requests + CLIENTS[name].expansions
    assert managed.bytes < direct.bytes / 2
    assert len([stored for stored in managed.names if "/" not in stored]) == CLIENTS[name].conversations, managed.names
