"""Proxies compared: CPU of a request of 400 kB through foveate, headroom and LiteLLM.

Each proxy runs in a process of its own, in front of the same provider, and gets the same growing conversation, in turns
with the others. A peer runs if its command, `headroom` or `litellm`, is on the path. CPU is that of the process and of
its workers, from Linux's /proc.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from time import monotonic, perf_counter, sleep
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from databases import FigureRow
from proxy import history, provider, request, turn

_BYTES = 400_000
_HEADERS = "x-api-key: none\r\nanthropic-version: 2023-06-01\r\nContent-Type: application/json\r\n"
_START = 120.0
"""Seconds that a proxy may take to start: some load models."""

_WITHOUT_KEY = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"
"""LiteLLM's variable for a proxy that only programs on this computer reach."""


class _Peer(NamedTuple):
    """A running proxy."""

    name: str
    path: str
    """Of its requests."""
    process: int
    port: int


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield the CPU of a request and the median time to its first byte, for each proxy that is found."""
    count = 3 if quick else 40
    with ExitStack() as stack:
        upstream = stack.enter_context(provider())
        peers = [stack.enter_context(running_command(*found)) for found in commands(folder, upstream)]
        ours = peers[0]
        peers.append(_Peer("passed on by foveate", "/v1/other", ours.process, ours.port))
        messages = history(_BYTES - count // 2 * 4_200, "the worker")
        spent, firsts = dict.fromkeys(peers, 0.0), {peer: list[float]() for peer in peers}
        for peer in peers:
            ask(peer.port, request(peer.path, messages, _HEADERS))
        for _ in range(count):
            messages += turn(len(messages), "the worker")
            for peer in peers:
                content, before = request(peer.path, messages, _HEADERS), _cpu(peer.process)
                firsts[peer].append(ask(peer.port, content))
                sleep(0.05)  # A reply is recorded behind its last byte.
                spent[peer] += _cpu(peer.process) - before
        floor = spent[peers[-1]] / count
        for peer in peers:
            yield f"proxies, request of 400 kB, {peer.name}, CPU, mean", spent[peer] / count, "ms", floor, None, ""
            first = sorted(firsts[peer])[count // 2]
            yield f"proxies, request of 400 kB, {peer.name}, first byte, p50", first, "ms", None, None, ""


def commands(folder: Path, upstream: str) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Yield name, command and environment of each proxy that is installed. `{port}` stands for its port."""
    ours = [sys.executable, "-m", "foveate", "proxy", "--upstream", upstream, "--port", "{port}"]
    yield "foveate", [*ours, "--store", f"sqlite:///{folder / 'peers.db'}"], {}
    if headroom := _command("headroom"):
        quiet = {"ANTHROPIC_TARGET_API_URL": upstream, "HEADROOM_TELEMETRY": "off", "HF_HUB_OFFLINE": "1"}
        yield "headroom", [headroom, "proxy", "--port", "{port}", "--no-rate-limit"], quiet
    if litellm := _command("litellm"):
        model = {"model": "anthropic/claude-haiku-4-5", "api_base": upstream, "api_key": "none"}
        config = folder / "litellm.yaml"  # YAML reads JSON.
        models = [{"model_name": "claude-haiku-4-5", "litellm_params": model}]
        general = {"forward_client_headers_to_llm_api": True}  # The provider reads the number of the reply in one.
        config.write_text(json.dumps({"model_list": models, "general_settings": general}))
        alone = dict.fromkeys(("LITELLM_LOCAL_MODEL_COST_MAP", _WITHOUT_KEY), "True")
        yield "LiteLLM", [litellm, "--config", str(config), "--host", "127.0.0.1", "--port", "{port}"], alone


def _command(name: str) -> str | None:
    """Return the path of a command; None, with a line that says so, if it is not installed."""
    path = shutil.which(name)
    if path is None:
        print(f"without {name}: it is not on the path", file=sys.stderr)
    return path


@contextmanager
def running_command(name: str, command: list[str], environment: dict[str, str]) -> Iterator[_Peer]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = [word.replace("{port}", str(port)) for word in command]
    everything = {**os.environ, **environment, "no_proxy": "127.0.0.1"}
    with (
        tempfile.TemporaryFile() as log,
        subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env=everything) as child,
    ):
        try:
            end = monotonic() + _START
            while not _listens(port):
                if child.poll() is not None:
                    log.seek(0)
                    raise SystemExit(f"{name} ended: {log.read().decode()[-2_000:]}")
                assert monotonic() < end, f"{name} did not start"
                sleep(0.1)
            yield _Peer(name, "/v1/messages", child.pid, port)
        finally:
            child.terminate()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def ask(port: int, content: bytes) -> float:
    """Send the bytes of a request; return the milliseconds to the first byte of the answer."""
    began = perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(content)
        answer = client.recv(65_536)
        first = perf_counter() - began
        while piece := client.recv(65_536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 200"), answer[:500]
    return first * 1000


def _cpu(process: int) -> float:
    """Return the milliseconds of CPU of a process and the processes that it started."""
    total, waiting = 0.0, [process]
    while waiting:
        one = waiting.pop()
        fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")
        waiting += map(int, Path(f"/proc/{one}/task/{one}/children").read_text().split())
    return total
