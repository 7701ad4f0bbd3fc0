"""The proxy at a steady pace: 50 requests of 400 kB a second, and what it adds to the time of their first bytes.

Proxy, provider and clients run in a process each. Ten conversations of 200 to 600 kB grow by a turn with each request.
The same requests are only passed on before, at the same pace.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic, sleep

sys.path.insert(0, str(Path(__file__).resolve().parent))

from databases import FigureRow
from proxy import history, provider, request, turn
from proxy_peers import ask, commands, running_command

_PACE = 50
"""Requests a second."""
_CONVERSATIONS = 10
_BYTES = 400_000
_AIM = 25.0
"""Milliseconds that may be added to the 99th percentile."""


def figures(folder: Path, quick: bool) -> Iterator[FigureRow]:
    """Yield the 50th and the 99th percentile of the time to a first byte; floor: the request is only passed on."""
    turns = 2 if quick else 60
    with provider() as upstream, running_command(*next(commands(folder, upstream))) as peer:
        first, later = _requests(turns)
        for content in first:  # The cost of a new conversation is another figure.
            ask(peer.port, content)
        passed = _paced(peer.port, [content.replace(b"/v1/messages", b"/v1/other", 1) for content in later])
        managed = _paced(peer.port, later)
    for percent in (50, 99):
        floor, value = (times[len(times) * percent // 100] for times in (passed, managed))
        aim = floor + _AIM if percent == 99 else None
        what = f"proxy, {_PACE} requests of 400 kB a second, first byte, p{percent}"
        yield what, value, "ms", floor, aim, "floor: passed on"


def _requests(turns: int) -> tuple[list[bytes], list[bytes]]:
    """Return the first request of each conversation, and the later ones in the order in which they are sent."""
    sizes = range(_BYTES // 2, _BYTES * 3 // 2, _BYTES // _CONVERSATIONS)  # So that they are not edited all at once.
    lists = {f"service {size}": history(size - turns // 2 * 4_200, f"service {size}") for size in sizes}
    first = [request("/v1/messages", messages) for messages in lists.values()]
    later = []
    for _ in range(turns):
        for service, messages in lists.items():
            messages += turn(len(messages), service)
            later.append(request("/v1/messages", messages))
    return first, later


def _paced(port: int, contents: Sequence[bytes]) -> list[float]:
    """Send requests at the pace, however long the answers take; return the milliseconds to first bytes, sorted."""
    times: list[float] = []
    threads = [
        threading.Thread(target=lambda content=content: times.append(ask(port, content))) for content in contents
    ]
    began = monotonic()
    for number, thread in enumerate(threads):
        sleep(max(0.0, began + number / _PACE - monotonic()))
        thread.start()
    for thread in threads:
        thread.join()
    assert len(times) == len(contents), "some requests failed"
    return sorted(times)
