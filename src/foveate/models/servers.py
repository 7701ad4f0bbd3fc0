"""Servers that speak OpenAI's chat completions, as a table: their addresses, where their keys are, what they know.

Data alone. Sources: the providers' pages on their OpenAI-compatible interfaces, and what their servers answer.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["AZURE", "OPENAI", "SERVERS", "Server", "server_at"]


class Server(Struct, frozen=True):
    """One server, or one that is not known any better."""

    base_url: str | None
    """Where it is; None: where the SDK looks, by default OpenAI."""
    keys: tuple[str, ...] = ()
    """Variables of the environment that hold its key, the first that is set; none: it wants no key."""
    length: str = "max_tokens"
    """What it calls the length of an answer."""
    tells_usage: bool = True
    """Whether it takes the request that a stream end with its usage (`stream_options`). Where not, it may tell it
    unasked.
    """
    prices: str = ""
    """What `genai-prices` calls the provider; "" where nobody asks a price."""


OPENAI = Server(None, ("OPENAI_API_KEY",), "max_completion_tokens", prices="openai")
"""OpenAI's own models that think refuse `max_tokens`."""

SERVERS: dict[str, Server] = {
    "openai": OPENAI,
    "google": Server(
        "https://generativelanguage.googleapis.com/v1beta/openai/",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        prices="google",
    ),
    "xai": Server("https://api.x.ai/v1", ("XAI_API_KEY",), "max_completion_tokens", prices="x-ai"),
    "openrouter": Server("https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",), prices="openrouter"),
    "groq": Server("https://api.groq.com/openai/v1", ("GROQ_API_KEY",), "max_completion_tokens", prices="groq"),
    # Refuses what it does not know, `stream_options` among it; its streams end with their usage anyway.
    "mistral": Server("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), tells_usage=False, prices="mistral"),
    "deepseek": Server("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), prices="deepseek"),
    "ollama": Server("http://localhost:11434/v1"),
}
"""By the name that stands before the colon of a model's name."""

AZURE = "openai.azure.com"


def server_at(host: str) -> Server:
    """What is known of the server with this host name."""
    if host in ("", "api.openai.com") or host.endswith(AZURE):
        return OPENAI
    for server in SERVERS.values():
        if server.base_url and f"//{host}/" in server.base_url:
            return server
    return Server("")
