"""Table of servers with OpenAI's chat completions: addresses, keys, differences.

Sources: the providers' pages on their OpenAI-compatible interfaces, and the responses of their servers.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["AZURE", "OPENAI", "SERVERS", "Server", "find_server"]


class Server(Struct, frozen=True):
    """One server, or the defaults for an unknown one."""

    base_url: str | None
    """Its address; None for the SDK's default, which is OpenAI."""
    keys: tuple[str, ...] = ()
    """Environment variables for its key; the first that is set counts. Empty if it needs no key."""
    length: str = "max_tokens"
    """Its name for the maximal length of an answer."""
    takes_stream_options: bool = True
    """Whether it accepts the request to end a stream with its usage (`stream_options`)."""
    prices: str = ""
    """Its name in `genai-prices`; empty if it has no prices."""


OPENAI = Server(None, ("OPENAI_API_KEY",), "max_completion_tokens", prices="openai")
"""OpenAI's reasoning models refuse `max_tokens`."""

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
    # It refuses unknown fields, including `stream_options`. Its streams end with their usage anyway.
    "mistral": Server("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), takes_stream_options=False, prices="mistral"),
    "deepseek": Server("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), prices="deepseek"),
    "ollama": Server("http://localhost:11434/v1"),
}
"""Servers by the part before the colon in a model's name."""

AZURE = "openai.azure.com"


def find_server(host: str) -> Server:
    """Return the entry for a host name, or defaults if it is unknown."""
    if host in ("", "api.openai.com") or host.endswith(AZURE):
        return OPENAI
    for server in SERVERS.values():
        if server.base_url and f"//{host}/" in server.base_url:
            return server
    return Server("")
