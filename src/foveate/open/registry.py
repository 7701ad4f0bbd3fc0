"""Registry of leaves: opens stores, models, summarizers and formats by their names.

Each leaf is imported when it is first opened.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Literal, overload

from ..conversation import validate
from ..core.catalog import model_names
from ..core.summaries import Summary, SummaryRequest
from ..ports import AsyncModel, Cost, Database, Format, Prompts, Summarizer, SyncModel
from ..stores import place_of

__all__ = [
    "check_price",
    "check_summarizer",
    "cost_of",
    "format_of",
    "open_model",
    "open_store",
    "open_summarizer",
    "summarize_without_model",
    "summarizer_of",
]


def open_store(url: str, *, synchronous: Literal["full", "normal"] = "full") -> Database:
    """Open the store of a URL: `memory:`, `sqlite:///PATH` or `postgresql://...`. Raises BadSetting for any other URL.

    The store keeps conversations and the catalog of agents.

    `sqlite:///PATH?search=off` keeps no index of words: the file is about 40 % smaller, and `search` is refused.
    `?wait=30`: seconds to wait while another process writes (default: 10). `?synchronous=normal`: a power cut may undo
    the last moments (docs/reference/durability.md). `?read_only=on`: the file stays unchanged, and need not be
    writable, nor its folder. Join several with `&`.
    `synchronous`: for a SQLite file whose URL does not say.
    `postgresql://USER:PASSWORD@HOST/DATABASE?schema=NAME` needs the extra `postgres`. Raises MissingExtra without it.
    """
    validate.text("The URL of a store", url)
    place = place_of(url, synchronous=synchronous)
    if place.kind == "memory":
        from ..stores.memory import MemoryStore

        return MemoryStore()
    if place.kind == "postgres":
        from ..stores.postgres import PostgresStore

        return PostgresStore(place.path)
    from ..stores.sqlite import SqliteStore

    return SqliteStore(
        place.path, synchronous=place.synchronous, wait=place.wait, search=place.search, read_only=place.is_read_only
    )


@overload
def open_model(
    name: str,
    *,
    asynchronous: Literal[False] = False,
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> SyncModel: ...
@overload
def open_model(
    name: str,
    *,
    asynchronous: Literal[True],
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> AsyncModel: ...
@overload
def open_model(
    name: str,
    *,
    asynchronous: bool,
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> SyncModel | AsyncModel: ...


def open_model(
    name: str,
    *,
    asynchronous: bool = False,
    max_tokens: int | None = None,
    timeout: float | None = None,
    max_retries: int | None = None,
    options: Mapping[str, Any] | None = None,
    api_key: str | None = None,
) -> SyncModel | AsyncModel:
    """Open a model by its name, through its provider's official SDK.

    `name`: such as `anthropic:claude-haiku-4-5`, `openai:gpt-4.1-mini`, `google:gemini-2.5-flash` or `xai:grok-4.7`
    (see `foveate.models.PROVIDERS`). `asynchronous`: the answers are awaitable. `max_tokens`: of one answer (default:
    8,192). `timeout`: seconds until the answer, or the next piece of a stream (600). `max_retries`: those of the SDK
    (2). `options`: sent with every request, such as `{"temperature": 0}`. `api_key`: default: the SDK finds the key
    when it sends the first request. Raises BadSetting for any other name, and MissingExtra without the SDK.
    """
    from ..models import get_model

    return get_model(
        name,
        asynchronous=asynchronous,
        max_tokens=max_tokens,
        timeout=timeout,
        max_retries=max_retries,
        options=options,
        api_key=api_key,
    )


def cost_of(name: str) -> Cost | None:
    """Return the cost of a model in US dollars, as a function of a `Usage`.

    Returns None if the price is not known, or `genai-prices` is not installed (`pip install "foveate[prices]"`).
    """
    from ..models.prices import cost_of as found

    return found(name)


def check_price(need: str, name: str, cost: Cost | None, advice: str = "Pass cost=.") -> None:
    """Raise MissingExtra or BadSetting if `cost`, the price of the model `name`, is None.

    `need`: the option that needs the price, such as `limits.money`. `advice`: what to do if the model has no price.
    """
    if cost is None:
        from ..models.prices import unknown_price

        raise unknown_price(need, name, advice)


def open_summarizer(name: str, *, prompts: Prompts | None = None) -> Summarizer:
    """Open a summarizer by its name: `digest` or `first-characters`, which need no model, or a model.

    A model is named as in `anthropic:claude-haiku-4-5`; several, separated by commas, are asked in order. Their
    summaries are cached, and the digest answers if all fail or write no acceptable summary. `prompts`: texts by the
    names of prompts, which replace the shipped ones of the same names or add to them; or a function that returns the
    stored prompts of a tenant, such as `store.prompts`, and is called for each summary. Raises BadSetting for any other
    name, and MissingExtra without the SDK.
    """
    from ..models import is_model_name
    from ..summarizers import summarizer_named

    validate.text("The name of a summarizer", name)
    names = model_names(name)
    if not names or not all(map(is_model_name, names)):
        return summarizer_named(name)
    from .named_summarizer import NamedSummarizer

    return NamedSummarizer(names, prompts or {})


def check_summarizer(name: str) -> None:
    """Raise BadSetting if no summarizer, and no model, has this name. "" stands for none."""
    from ..models import is_model_name, suggest_model
    from ..summarizers import check_name

    names = model_names(name)
    if name and not (names and all(map(is_model_name, names))):
        check_name(name, suggest_model(name))


def format_of(format: str | Format) -> Format:
    if not isinstance(format, str):
        return format
    from ..formats import get_format

    return get_format(format)


def summarizer_of(summarizer: str | Summarizer, prompts: Prompts | None = None) -> Summarizer | None:
    if isinstance(summarizer, str):
        return open_summarizer(summarizer, prompts=prompts) if summarizer else None
    from ..summarizers import checked

    return checked(summarizer)


def summarize_without_model(request: SummaryRequest) -> str | Summary | Awaitable[str | Summary]:
    """Summarise by code, if the conversation's own summarizer failed."""
    from ..summarizers import summarizer_named  # Few conversations ever need it.

    return summarizer_named("digest")(request)
