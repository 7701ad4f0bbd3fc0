"""A known client behind a proxy of its own, which ends with it."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import uvicorn

from ..errors import BadSetting, FoveateError
from .collector import spare_collector
from .records import write_log
from .server import config_of
from .settings import ProxySettings

__all__ = ["CLIENTS", "CODE_ASSIST_URL", "client_command", "upstream_of", "wrap"]

CLIENTS: Final = ("claude", "codex", "opencode", "gemini")
"""Claude Code, Codex, OpenCode and Gemini CLI."""
_BEDROCK_URL: Final = "ANTHROPIC_BEDROCK_BASE_URL"
_GEMINI_URL: Final = "GOOGLE_GEMINI_BASE_URL"
CODE_ASSIST_URL: Final = "CODE_ASSIST_ENDPOINT"
"""The variable with the URL that Gemini CLI uses with a Google login."""
_OPENCODE_CONFIG: Final = "OPENCODE_CONFIG_CONTENT"
"""A variable with settings of OpenCode as JSON. They are merged with those of its files."""


def wrap(settings: ProxySettings, words: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Run a client with its arguments, and serve its requests until it ends. Returns its exit code.

    The proxy listens on loopback, at a free port unless the settings name one. Its log is added to the file `log`,
    because the client has the terminal. Raises BadSetting.
    """
    with log.open("a", encoding="utf-8") as stream:
        write_log(stream, is_json=settings.is_log_json)
        server = uvicorn.Server(config_of(settings))
        spare_collector()
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                if not thread.is_alive():
                    raise FoveateError(f"The proxy could not start. {log} says why.")
                time.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            command, variables = client_command(words, f"http://{settings.host}:{port}", environment)
            return _run(command, variables)
        finally:
            server.should_exit = True
            thread.join()


def _run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command on this terminal. Ctrl-C is for the command, which may have its own use for it."""
    before = signal.signal(signal.SIGINT, lambda *_: None)  # A command does not inherit a handler.
    try:
        process = subprocess.Popen(command, env=dict(environment))
    except OSError as error:
        raise BadSetting(f"{command[0]} cannot be started: {error.strerror}. Install it, or add it to PATH.") from error
    else:
        signal.signal(signal.SIGTERM, lambda *_: process.terminate())
        code = process.wait()
        return 128 - code if code < 0 else code
    finally:
        signal.signal(signal.SIGINT, before)


def client_command(words: Sequence[str], url: str, environment: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """Return the command line and the environment of a client that sends its requests to the proxy at `url`.

    `words`: the client and its arguments. Raises BadSetting for a client that is not in `CLIENTS`, because each one is
    pointed at a proxy in its own way.
    """
    name, *arguments = words
    match name:
        case "claude" if _uses_bedrock(environment):
            return [name, *arguments], {**environment, _BEDROCK_URL: url}
        case "claude":
            return [name, *arguments], {**environment, "ANTHROPIC_BASE_URL": url}
        case "codex":
            return [name, "-c", f'openai_base_url="{url}/v1"', *arguments], dict(environment)
        case "opencode":
            return [name, *arguments], {**environment, _OPENCODE_CONFIG: _opencode_config(url, environment)}
        case "gemini":
            return [name, *arguments], {**environment, _GEMINI_URL: url, CODE_ASSIST_URL: url}
        case _:
            raise BadSetting(
                f"--wrap knows {', '.join(CLIENTS)}, not {name!r}. Start `foveate proxy`, and set the base URL of "
                f"{name} yourself."
            )


def upstream_of(name: str, environment: Mapping[str, str]) -> str | None:
    """Return where a client sends its requests without a proxy, if its variables say so: a URL, or a provider."""
    if name == "claude" and _uses_bedrock(environment):
        return environment.get(_BEDROCK_URL) or "bedrock"
    variable = {"claude": "ANTHROPIC_BASE_URL", "gemini": _GEMINI_URL}.get(name, "")
    return environment.get(variable) or None


def _uses_bedrock(environment: Mapping[str, str]) -> bool:
    """Return whether Claude Code sends its requests to Amazon Bedrock."""
    return environment.get("CLAUDE_CODE_USE_BEDROCK", "").lower() in ("1", "true", "yes", "on")


def _opencode_config(url: str, environment: Mapping[str, str]) -> str:
    """Return the settings of OpenCode with the addresses of the providers replaced."""
    content = environment.get(_OPENCODE_CONFIG) or "{}"
    try:
        settings = msgspec.json.decode(content, type=dict[str, Any])
        providers = settings.setdefault("provider", {})
        for name in ("anthropic", "openai"):
            providers.setdefault(name, {}).setdefault("options", {})["baseURL"] = f"{url}/v1"
    except (msgspec.MsgspecError, AttributeError, TypeError) as error:
        raise BadSetting(f"The variable {_OPENCODE_CONFIG} holds no settings of OpenCode: {error}.") from error
    return json.dumps(settings)
