from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import foveate.proxy.wrap
from foveate.cli.app import main
from foveate.errors import BadSetting
from foveate.proxy.settings import ProxySettings
from foveate.proxy.wrap import client_command, upstream_of
from foveate.testing import ScriptedModel
from foveate.testing.server import StubServer

URL = "http://127.0.0.1:9"
PROGRAM = """#!{python}
import json, os, sys, urllib.request
body = {{"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{{"role": "user", "content": sys.argv[1]}}]}}
request = urllib.request.Request(
    os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", json.dumps(body).encode(), {{"content-type": "application/json"}}
)
with urllib.request.urlopen(request) as answer:
    print(json.load(answer)["content"][0]["text"])
sys.stdout.flush()
if sys.argv[2:]:
    sys.stdin.read()
sys.exit(7)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A computer on which `claude` asks one question, then exits with code 7."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text(PROGRAM.format(python=sys.executable))
    program.chmod(0o755)
    return {
        **{key: value for key, value in os.environ.items() if not key.startswith("FOVEATE")},
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }


def test_a_client_runs_behind_its_proxy_and_gives_its_exit_code(environment: dict[str, str], tmp_path: Path):
    with StubServer(ScriptedModel(["Hello."], "anthropic")) as stub:
        # The address that the client would use without a proxy is where the proxy sends the requests.
        environment["ANTHROPIC_BASE_URL"] = stub.url
        command = [sys.executable, "-m", "foveate", "proxy", "--wrap", "claude", "--", "hi"]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert (ended.returncode, ended.stdout, ended.stderr) == (7, "Hello.\n", "")
        assert len(stub.received) == 1
    assert "/v1/messages" in (tmp_path / "data" / "foveate" / "proxy.log").read_text()


@pytest.mark.slow
def test_ctrl_c_is_for_the_client(environment: dict[str, str]):
    with StubServer(ScriptedModel(["Hello."], "anthropic")) as stub:
        command = [
            sys.executable,
            "-m",
            "foveate",
            "proxy",
            "--wrap",
            "claude",
            "--upstream",
            stub.url,
            "--",
            "hi",
            "--wait",
        ]
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stdin
            assert process.stdout.readline() == b"Hello.\n"
            process.send_signal(signal.SIGINT)  # To the proxy alone: the client goes on.
            process.stdin.close()
            assert process.wait(60) == 7


def test_codex_gets_the_address_as_a_setting():
    command, environment = client_command(["codex", "exec", "hi"], URL, {"HOME": "/h"})
    assert command == ["codex", "-c", f'openai_base_url="{URL}/v1"', "exec", "hi"]
    assert environment == {"HOME": "/h"}


def test_gemini_cli_gets_the_address_of_the_proxy():
    command, environment = client_command(["gemini", "-p", "hi"], URL, {"HOME": "/h"})
    assert command == ["gemini", "-p", "hi"]
    assert environment == {"HOME": "/h", "GOOGLE_GEMINI_BASE_URL": URL, "CODE_ASSIST_ENDPOINT": URL}


def test_settings_of_opencode_are_kept():
    given = {"theme": "dark", "provider": {"anthropic": {"options": {"apiKey": "k"}}, "other": {"options": {}}}}
    command, environment = client_command(["opencode"], URL, {"OPENCODE_CONFIG_CONTENT": json.dumps(given)})
    address = {"baseURL": f"{URL}/v1"}
    providers = {
        "anthropic": {"options": {"apiKey": "k", **address}},
        "other": {"options": {}},
        "openai": {"options": address},
    }
    assert command == ["opencode"]
    assert json.loads(environment["OPENCODE_CONFIG_CONTENT"]) == {"theme": "dark", "provider": providers}


@pytest.mark.parametrize("settings", ["{", "[]", '{"provider": 1}', '{"provider": {"openai": []}}'])
def test_unreadable_settings_of_opencode_are_refused(settings: str):
    with pytest.raises(BadSetting, match="OPENCODE_CONFIG_CONTENT"):
        client_command(["opencode"], URL, {"OPENCODE_CONFIG_CONTENT": settings})


def test_an_unknown_client_is_refused():
    with pytest.raises(BadSetting, match="claude, codex, opencode, gemini"):
        client_command(["vim"], URL, {})


def test_each_api_of_gemini_cli_goes_where_its_variable_says(monkeypatch: pytest.MonkeyPatch):
    started: list[ProxySettings] = []
    monkeypatch.setattr(foveate.proxy.wrap, "wrap", lambda settings, *_: started.append(settings) or 0)
    monkeypatch.setenv("CODE_ASSIST_ENDPOINT", "https://one.example/")
    monkeypatch.delenv("GOOGLE_GEMINI_BASE_URL", raising=False)
    assert main(["proxy", "--wrap", "gemini", "--store", "memory:"]) == 0
    assert main(["proxy", "--wrap", "gemini", "--store", "memory:", "--upstream", "https://two.example"]) == 0
    monkeypatch.setenv("CODE_ASSIST_ENDPOINT", "")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://three.example")
    assert main(["proxy", "--wrap", "gemini", "--store", "memory:"]) == 0
    assert [(settings.gemini, settings.code_assist) for settings in started] == [
        ("https://generativelanguage.googleapis.com", "https://one.example"),
        ("https://two.example", "https://two.example"),
        ("https://three.example", "https://cloudcode-pa.googleapis.com"),
    ]


def test_variables_of_some_clients_name_their_provider():
    variables = {"ANTHROPIC_BASE_URL": "https://one.example", "GOOGLE_GEMINI_BASE_URL": "https://two.example"}
    found = [upstream_of(name, variables) for name in ("claude", "gemini", "codex")]
    assert found == ["https://one.example", "https://two.example", None]
    assert upstream_of("claude", {}) is None


def test_claude_code_on_bedrock_gets_the_address_of_the_proxy():
    variables = {"CLAUDE_CODE_USE_BEDROCK": "1", "ANTHROPIC_BASE_URL": "https://other.example"}
    command, environment = client_command(["claude"], URL, variables)
    assert command == ["claude"]
    assert environment == {**variables, "ANTHROPIC_BEDROCK_BASE_URL": URL}
    assert upstream_of("claude", variables) == "bedrock"
    own = {**variables, "ANTHROPIC_BEDROCK_BASE_URL": "https://gateway.example"}
    assert upstream_of("claude", own) == "https://gateway.example"
    assert upstream_of("claude", {**own, "CLAUDE_CODE_USE_BEDROCK": "0"}) == "https://other.example"
