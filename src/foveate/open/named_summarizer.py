"""Summaries by models that are chosen by their names, with the stored prompts of a tenant.

Prompts are read again for each summary, so that a change takes effect at once. A stored prompt may name its own models.
A model that cannot be opened, and a prompt with a fault, count as failures: the next one is asked, and finally a
digest, which needs no model.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from ..core.catalog import Prompt, model_names, prompt_key, prompt_texts
from ..core.summaries import Summary, SummaryRequest
from ..models import get_model
from ..ports import Prompts, Summarizer
from ..summarizers import fallback, first_characters
from ..summarizers.cache import cached
from ..summarizers.history import digest_history
from ..summarizers.model import ModelSummarizer
from ..summarizers.templates import Templates
from .registry import format_of

__all__ = ["NamedSummarizer"]

_TIMEOUT = 60.0
"""Seconds for one answer of a model: less than the limit of the whole summary."""
_SETS_MAX = 16
"""Sets of prompts for which writers are kept, with their caches: one for each tenant and version."""


class _Writers(NamedTuple):
    """The summarizers with one set of prompts."""

    templates: Templates
    models: Mapping[str, tuple[str, ...]]
    """Names of the models of a prompt, by its key."""
    by_model: dict[str, Summarizer]
    """One for each model that was opened."""


class NamedSummarizer:
    """Asks the models of the request's prompt, or those named first, in order, and finally a digest."""

    is_checked = True
    """Read by `checked`: each text was judged already."""

    def __init__(self, names: Sequence[str], prompts: Prompts) -> None:
        """Open the models `names`. Raises BadSetting for a faulty prompt of a mapping, and MissingExtra."""
        self.name = " -> ".join([*names, "digest", "first-characters"])  # In this order they are asked.
        self._names = tuple(names)
        self._models = {name: get_model(name, timeout=_TIMEOUT) for name in names}
        self._lock = threading.Lock()
        self._sets: dict[tuple[Prompt, ...], _Writers] = {}
        self._read: Callable[[str], Iterable[Prompt]]
        if callable(prompts):
            self._read = prompts
        else:
            fixed = tuple(Prompt(name, text) for name, text in prompts.items())
            self._set_of(fixed)
            self._read = lambda tenant: fixed

    def __call__(self, request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
        return fallback(*self._writers_for(request), digest_history(), first_characters())(request)

    def _writers_for(self, request: SummaryRequest) -> list[Summarizer]:
        try:
            writers = self._set_of(tuple(self._read(request.tenant)))
        except Exception as error:  # The store is down, or a text was stored by other means.
            return [_Failing("the stored prompts", error)]
        names = writers.models.get(writers.templates.name_for(request)) or self._names
        return [self._writer(name, writers) for name in names]

    def _set_of(self, prompts: tuple[Prompt, ...]) -> _Writers:
        with self._lock:
            if prompts not in self._sets:
                models = {prompt_key(prompt.name): model_names(prompt.models) for prompt in prompts}
                writers = _Writers(Templates(prompt_texts(prompts)), models, {})
                while len(self._sets) >= _SETS_MAX:
                    del self._sets[next(iter(self._sets))]
                self._sets[prompts] = writers
            return self._sets[prompts]

    def _writer(self, name: str, writers: _Writers) -> Summarizer:
        with self._lock:
            if name not in writers.by_model:
                try:
                    model = self._models.get(name) or get_model(name, timeout=_TIMEOUT)
                except Exception as error:  # An unknown name, or an SDK that is not installed.
                    return _Failing(name, error)
                self._models[name] = model
                summarizer = ModelSummarizer(model, format_of(model.format), writers.templates)
                writers.by_model[name] = cached(summarizer)
            return writers.by_model[name]


class _Failing:
    """A summarizer that could not be made."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self._error = name, error

    def __call__(self, request: SummaryRequest) -> str:
        raise self._error
