"""Counts of a proxy, for Prometheus and `foveate proxy --status`. Several workers count together, in files."""

from __future__ import annotations

import mmap
import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, product
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["APIS", "OUTCOMES", "Metrics"]

APIS: Final = ("anthropic", "openai", "openai_responses", "gemini", "other")
"""Formats of requests; `other`: paths that are passed through."""
OUTCOMES: Final = ("managed", "passed", "unchanged", "refused", "failed", "gone")
"""The ways in which a request can end.

`managed`: sent with the view. `passed`: there is nothing to manage. `unchanged`: no view could be made. `refused`: not
sent. `failed`: the provider did not answer. `gone`: the client closed the connection.
"""
_CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")
_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds of histograms, in seconds."""


class _Metric(NamedTuple):
    name: str
    help: str
    labels: Mapping[str, tuple[str, ...]] = {}
    kind: str = "counter"


_BY_API: Final = {"api": APIS}
_METRICS: Final = (
    _Metric("foveate_requests_total", "Requests of clients.", {"api": APIS, "outcome": OUTCOMES}),
    _Metric("foveate_requests_active", "Requests that are being served.", kind="gauge"),
    _Metric("foveate_answers_total", "Answers of providers.", {"class": _CLASSES}),
    _Metric("foveate_tokens_whole_total", "Tokens of managed requests if each had its whole history.", _BY_API),
    _Metric("foveate_tokens_sent_total", "Tokens of managed requests as sent.", _BY_API),
    _Metric("foveate_priced_total", "Managed requests whose models have known prices.", _BY_API),
    _Metric("foveate_dollars_whole_total", "US dollars for these if each had its whole history, by estimate.", _BY_API),
    _Metric("foveate_dollars_spent_total", "US dollars for these by the usage that providers reported.", _BY_API),
    _Metric("foveate_bytes_received_total", "Bytes of managed requests as the clients sent them.", _BY_API),
    _Metric("foveate_bytes_sent_total", "Bytes of managed requests as sent to the providers.", _BY_API),
    _Metric("foveate_retries_total", "Requests made smaller because the provider refused them as too long.", _BY_API),
    _Metric("foveate_expansions_total", "Replies that only asked to expand something.", _BY_API),
    _Metric("foveate_seconds", "Time in which requests were prepared.", kind="histogram"),
    _Metric("foveate_first_byte_seconds", "Time to the first byte of an answer.", kind="histogram"),
)


def _cells() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the label values of each number."""
    for metric in _METRICS:
        if metric.kind == "histogram":
            yield from ((metric.name, (str(n),)) for n in range(len(_BOUNDS) + 1))
            yield metric.name, ("sum",)
        else:
            yield from ((metric.name, values) for values in product(*metric.labels.values()))


_PLACES: Final = {cell: place for place, cell in enumerate(_cells())}


class Metrics:
    """The counts of one worker, and the sums of all workers."""

    def __init__(self, folder: str = "") -> None:
        """`folder`: the files of all workers; "" for a worker that is alone."""
        self._folder = folder
        size = 8 * len(_PLACES)
        if folder:
            with tempfile.NamedTemporaryFile(dir=folder, suffix=".counts", delete=False) as file:
                file.truncate(size)
                self._numbers = memoryview(mmap.mmap(file.fileno(), size)).cast("d")
        else:
            self._numbers = memoryview(bytearray(size)).cast("d")

    def add(self, name: str, *labels: str, amount: float = 1) -> None:
        """Add to a counter or a gauge. Called by one thread only."""
        self._numbers[_PLACES[name, labels]] += amount

    def observe(self, name: str, seconds: float) -> None:
        """Add a time to a histogram."""
        self._numbers[_PLACES[name, (str(bisect_left(_BOUNDS, seconds)),)]] += 1
        self._numbers[_PLACES[name, ("sum",)]] += seconds

    def sums(self) -> list[float]:
        """Return the numbers of all workers, added."""
        if not self._folder:
            return list(self._numbers)
        rows = (memoryview(file.read_bytes()).cast("d") for file in Path(self._folder).glob("*.counts"))
        return [sum(column) for column in zip(*rows, strict=True)]

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of a counter over all workers and all labels that are not given."""
        metric = next(metric for metric in _METRICS if metric.name == name)
        wanted = [(place, labels[key]) for place, key in enumerate(metric.labels) if key in labels]
        sums = self.sums()
        cells = ((values, sums[place]) for (other, values), place in _PLACES.items() if other == name)
        return sum(number for values, number in cells if all(values[place] == value for place, value in wanted))

    def text(self) -> str:
        """Return all numbers in the text format of Prometheus."""
        sums = self.sums()
        return "".join(f"{line}\n" for metric in _METRICS for line in _lines(metric, sums))


def _lines(metric: _Metric, sums: list[float]) -> Iterable[str]:
    name = metric.name
    yield f"# HELP {name} {metric.help}"
    yield f"# TYPE {name} {metric.kind}"
    if metric.kind != "histogram":
        for values in product(*metric.labels.values()):
            labels = ",".join(f'{key}="{value}"' for key, value in zip(metric.labels, values, strict=True))
            yield f"{name}{f'{{{labels}}}' if labels else ''} {sums[_PLACES[name, values]]:.15g}"
        return
    counts = [sums[_PLACES[name, (str(n),)]] for n in range(len(_BOUNDS) + 1)]
    for bound, count in zip((*_BOUNDS, "+Inf"), accumulate(counts), strict=True):
        yield f'{name}_bucket{{le="{bound}"}} {count:.15g}'
    yield f"{name}_sum {sums[_PLACES[name, ('sum',)]]:.6f}"
    yield f"{name}_count {sum(counts):.15g}"
