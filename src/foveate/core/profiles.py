"""Requirements of providers and models, as data.

Every rendering and every check takes a profile as an argument. The table of windows is deliberately small, and a
keyword overrides it. Its sources are the providers' model pages, the data of `genai-prices` and the errors of servers,
as of November 2026.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

__all__ = [
    "ASSUMED_WINDOW",
    "PROFILES",
    "WINDOWS",
    "Profile",
    "adjusted_to_model",
    "bare_model_name",
    "claude_version",
    "is_window_documented",
    "profile_for",
    "window_of",
    "window_prefix",
]


class Profile(Struct, frozen=True):
    """The requirements of one provider's API."""

    format: str
    """Name of the wire format."""
    user_first: bool = False
    """The first message after the system prompts must be a user's (Anthropic, open models)."""
    system_places: Literal["any", "after_user", "first"] = "any"
    """Places that system messages may have.

    `any`: anywhere (OpenAI). `after_user`: at the beginning; and later behind a user's message or the result of a
    server tool, if a reply or nothing follows (Anthropic since Claude Opus 4.8). `first`: only at the beginning, so
    that later ones become user's notes (older Claudes, open models).
    """
    alternates: bool = False
    """The user's messages and the assistant's without calls must alternate, from a user's on (Mistral, Gemma)."""
    plain_call_ids: bool = False
    """Call ids may contain only letters, digits, `_` and `-` (Anthropic)."""
    max_call_id: int = 64
    """Longest call id. OpenAI's chat completions and many servers like it refused more than 40 characters, the
    Responses API refuses more than 64. A longer id is replaced by a short one, in the call and in its result.
    """
    calls_without_ids: bool = False
    """A call may have no id: its result has the tool's name, and the place of the call (Gemini). In a view such a call
    has the name as its id, made unique, and requests leave it out.
    """
    call_id_size: int = 0
    """Exact length of call ids, which then have only letters and digits (Mistral: 9); 0: any length."""
    max_calls: int = 0
    """Most calls in one message (OpenAI's chat completions: 128); 0: no limit. Further calls get their own message."""
    max_tool_name: int = 64
    """Longest tool name. Providers refuse characters other than letters, digits, `_`, `-` and `tool_name_marks`."""
    tool_name_marks: str = ""
    """Other characters that a tool name may contain (Gemini: `.` and `:`, and first a letter or `_`)."""
    refuses_trailing_space: bool = False
    """A message of the assistant may not end in white space (Anthropic refuses it at the end of a request)."""
    calls_last: bool = False
    """Only results may follow an assistant's calls (Anthropic)."""
    signed_reasoning: bool = False
    """Reasoning needs its signature or encrypted payload (Anthropic)."""
    signed_calls: bool = False
    """The first call of a message needs a signature (Gemini since version 3)."""
    user_last: bool = False
    """A request must end with the user's side, because no answer can be begun for the model (Claude since 4.6, Gemini
    since 3.2).
    """
    binds_reasoning: bool = False
    """The provider checks reasoning against everything before it. After an edit, all later reasoning must be removed
    (since Fable 5.1).
    """
    cache_key: bool = False
    """The provider finds cached prefixes reliably only by a key that all requests of a conversation have (OpenAI since
    GPT-5.6).
    """
    media_in_results: bool = True
    """Tool results may contain images (OpenAI chat completions: text only)."""
    plain_contents: bool = False
    """Texts are strings: a content is neither null, nor a list of texts alone (open models)."""
    max_bytes: int = 32_000_000
    """Largest request body (Anthropic: 32 MB)."""
    max_images: int = 20
    """Images that a request may contain at full size (Anthropic halves the allowed dimensions above 20)."""
    strict: bool = False
    """The server knows only the common keys and blocks, so rendering leaves out all others (strict gateways)."""
    unknown_keys: bool = False
    """The server takes messages with keys that its API does not document. Otherwise they stay in the history."""

    def takes_id(self, call_id: str) -> bool:
        """Return whether a call id has the exact size that the provider requires, and then only letters and digits."""
        size = self.call_id_size
        return not size or (len(call_id) == size and call_id.isascii() and call_id.isalnum())


PROFILES: dict[str, Profile] = {
    "anthropic": Profile(
        "anthropic",
        user_first=True,
        system_places="after_user",
        plain_call_ids=True,
        max_tool_name=128,
        refuses_trailing_space=True,
        calls_last=True,
        signed_reasoning=True,
    ),
    "openai": Profile(
        "openai", max_call_id=40, max_calls=128, media_in_results=False, max_bytes=50_000_000, max_images=500
    ),
    "gemini": Profile(
        "gemini",
        user_first=True,
        max_tool_name=128,
        tool_name_marks=".:",
        calls_without_ids=True,
        signed_calls=True,
        user_last=True,
        max_bytes=20_000_000,
        max_images=900,
    ),
    # Reasoning without its encrypted payload is only an id, which the provider may not know (`store=False`).
    "openai_responses": Profile("openai_responses", signed_reasoning=True, max_bytes=50_000_000, max_images=500),
}
PROFILES["openai_chat"] = PROFILES["openai"]

# Prefix of a model's name -> window in tokens. The longest matching prefix wins. If a provider limits the prompt
# separately from the answer (OpenAI since GPT-5: 272,000 of 400,000, and 922,000 of 1,050,000), this is the limit of
# the prompt.
WINDOWS: dict[str, int] = {
    "gpt-3.5": 16_385,
    "gpt-35": 16_385,
    "gpt-4": 8_192,
    "gpt-4-turbo": 128_000,
    "gpt-4o": 128_000,
    "gpt-4.1": 1_047_576,
    "gpt-5": 272_000,
    "gpt-5-chat": 128_000,
    "gpt-5.3": 128_000,
    "gpt-5.3-codex": 272_000,
    "gpt-5.4": 922_000,
    "gpt-5.4-mini": 272_000,
    "gpt-5.4-nano": 272_000,
    "gpt-5.5": 922_000,
    "gpt-5.6": 922_000,
    "gpt-6": 922_000,
    "gpt-oss": 131_072,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-preview": 128_000,
    "o3": 200_000,
    "o4-mini": 200_000,
    "gemini-": 1_000_000,
    "gemini-pro": 32_768,
    "gemini-1.0": 32_768,
    "gemini-2.5": 1_048_576,
    "gemini-4": 1_048_576,
    "grok-": 131_072,
    "grok-2": 32_768,
    "grok-4": 256_000,
    "grok-4-fast": 2_000_000,
    "grok-4-1-fast": 2_000_000,
    "grok-4.": 500_000,
    "grok-4.20": 1_000_000,
    "grok-4.3": 1_000_000,
    "grok-code": 256_000,
    "grok-build": 256_000,
    "deepseek-chat": 128_000,
    "deepseek-reasoner": 128_000,
    "deepseek-v4": 1_000_000,
    "glm-5": 200_000,
    "glm-5.2": 1_000_000,
    "glm-5.3": 1_000_000,
    "kimi-k2": 131_072,
    "kimi-k2-thinking": 256_000,
    "kimi-k2.": 256_000,
    "kimi-k3": 1_000_000,
    "minimax-m2": 196_000,
    "minimax-m3": 512_000,
    "mistral-large": 128_000,
    "mistral-large-2512": 256_000,
    "mistral-large-4": 1_000_000,
    "mistral-large-latest": 256_000,
    "mistral-medium": 128_000,
    "mistral-medium-3-5": 256_000,
    "mistral-medium-latest": 256_000,
    "muse-spark": 1_000_000,
    "muse-wonder": 1_000_000,
    "qwen3-coder-plus": 1_000_000,
    "qwen3-max": 256_000,
    "qwen3.6-plus": 1_000_000,
    "qwen3.7-max": 1_000_000,
    "qwen3.7-plus": 256_000,
    "qwen3.8-flash": 1_000_000,
    "qwen3.8-max": 1_000_000,
}

ASSUMED_WINDOW = 128_000
"""Tokens that a model takes if nothing is known of its window: as many as most models since 2024. If that is too large,
the provider refuses the prompt, and the view becomes smaller."""

_GUESSES = ("gemini-", "grok-")
"""Prefixes that match models newer than the table. Their windows are a guess."""
_SERVED = ("deepseek-", "glm-", "kimi-", "minimax-", "mistral-", "muse-", "qwen")
"""Families that many companies serve. The table has the smallest window that they offer; a server of your own may have
another one.
"""
_NEXT_GPT = 922_000
"""The window of a GPT that is newer than the table: that of the newest in it."""

_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?!\d)(?:-(\d{1,2})(?!\d))?")
"""A Claude with its version: `claude-opus-5-5-20260901`, `claude-3-5-sonnet-20241022`. Dates have eight digits."""
_CLAUDE_UNNAMED = (99, 0)
"""The version of a Claude without one in its name, such as `claude-opus-latest`: the newest."""
_CLAUDE_KNOWN = (5, 5)
"""The newest version whose window is documented."""
_CLAUDE_BINDING = (5, 1)
"""The first version that binds reasoning to the prefix before it (Anthropic, "preserved thinking", 2026-08-31)."""
_CLAUDE_SYSTEMS = (4, 8)
"""The first version that takes system messages in the middle of a conversation (Anthropic, "mid-conversation system
messages", November 2026).
"""
_CLAUDE_SYSTEMS_LATER = {"claude-sonnet-": (5, 5), "claude-haiku-": (5, 5)}
"""The same for families that began to take them later."""
_HOSTED = re.compile(r"(?:chat)?gpt-(?!oss)|o\d|gemini-|grok-|codex-")
"""Names of models whose providers serve them alone. Servers of all other models write the prompt by a chat template."""
_MISTRAL = re.compile(r"(?:mi|magi|mini|dev|code)stral|mixtral|pixtral|voxtral")
_ALTERNATING = re.compile(rf"{_MISTRAL.pattern}|gemma(?!-?[4-9](?!b))")
"""Mistral, and Gemma before version 4, but not the sizes in names such as `gemma-7b`."""
_GPT = re.compile(r"gpt-(?!35(?!\d))(\d{1,2})(?:\.(\d{1,2}))?(?!\d)")
"""The version of a GPT. Azure writes 3.5 as 35."""
_GPT_CACHE_KEYS = (5, 6)
"""The first version that caches at breakpoints alone, and matches them by a key (OpenAI, "Prompt caching", 2026)."""


def window_of(model: str) -> int | None:
    """Return the model's window in tokens, or None if neither the table nor a rule knows the model.

    `model` may have the server's path (`anthropic/claude-haiku-4-5`) and a provider with a colon in front. Every Claude
    since 5.0, and since 4.6 every one but Haiku, has 1,000,000 tokens, the older ones 200,000.
    """
    name = bare_model_name(model)
    if version := claude_version(model):
        return 1_000_000 if _is_claude_since_4_6(name, version) else 200_000
    if prefix := window_prefix(model):
        return WINDOWS[prefix]
    return _NEXT_GPT if _gpt_version(name) >= (7, 0) else None


def is_window_documented(model: str) -> bool:
    """Return whether all who serve this model document its window, and it is not inferred from older models."""
    if version := claude_version(model):
        return version <= _CLAUDE_KNOWN
    prefix = window_prefix(model)
    return prefix not in ("", *_GUESSES) and not prefix.startswith(_SERVED)


def window_prefix(model: str) -> str:
    """Return the longest prefix in `WINDOWS` that matches the model in any case; "" if none does."""
    model = bare_model_name(model).lower()
    return max((prefix for prefix in WINDOWS if model.startswith(prefix)), key=len, default="")


def claude_version(model: str) -> tuple[int, int] | None:
    """Return the version of a Claude, such as (5, 5); None for other models. Without a version it is the newest.

    >>> claude_version("bedrock:us.anthropic.claude-opus-5-5-20260901-v1:0"), claude_version("claude-3-haiku-20240307")
    ((5, 5), (3, 0))
    """
    name = bare_model_name(model)
    if not name.startswith("claude-"):
        return None
    found = _CLAUDE.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else _CLAUDE_UNNAMED


def profile_for(format: str, model: str = "") -> Profile:
    """Return the profile of a format's own provider, adjusted to the model. Raises KeyError for an unknown format.

    Every Claude since 5.1 binds reasoning, in each family and on each server.
    """
    return adjusted_to_model(PROFILES[format], model)


def adjusted_to_model(profile: Profile, model: str) -> Profile:
    """Return the profile with the requirements that depend on the model, such as bound reasoning."""
    if profile.format == "gemini":
        return _gemini_profile(profile, bare_model_name(model))
    version = claude_version(model)
    if version is None:
        keys = profile.format.startswith("openai") and not profile.strict and _gpt_version(model) >= _GPT_CACHE_KEYS
        profile = replace(profile, binds_reasoning=False, cache_key=keys)
        return _open_profile(profile, model.lower()) if profile.format == "openai" else profile
    name = bare_model_name(model)
    if profile.system_places != "any":
        since = next((v for family, v in _CLAUDE_SYSTEMS_LATER.items() if name.startswith(family)), _CLAUDE_SYSTEMS)
        profile = replace(profile, system_places="after_user" if version >= since else "first")
    if not profile.signed_reasoning:  # A Claude behind another format.
        return replace(profile, binds_reasoning=False, cache_key=False)
    binds, is_new = version >= _CLAUDE_BINDING, _is_claude_since_4_6(name, version)
    trims = profile.refuses_trailing_space and not is_new  # Otherwise a user's message ends the request.
    return replace(profile, binds_reasoning=binds, user_last=is_new, refuses_trailing_space=trims)


def _is_claude_since_4_6(name: str, version: tuple[int, int]) -> bool:
    """Return whether this is a Claude since 4.6; the Haiku of this generation is older."""
    return version >= (5, 0) or (version >= (4, 6) and "-haiku" not in name)


def _gemini_profile(profile: Profile, model: str) -> Profile:
    """Return the profile of a Gemini model. Without a version in its name, the newest rules apply."""
    version = re.match(r"gemini-(\d+)(?:\.(\d+))?-", f"{model}-")
    if version is None:
        return replace(profile, signed_calls=False, user_last=False) if model.startswith("gemma") else profile
    major, minor = int(version[1]), int(version[2] or 0)
    return replace(profile, signed_calls=major >= 3, media_in_results=major >= 3, user_last=(major, minor) >= (3, 2))


def _open_profile(profile: Profile, model: str) -> Profile:
    """Return the profile of chat completions, adjusted to an open model. Only a model without a name is OpenAI's.

    Servers such as vLLM, llama.cpp, SGLang and LM Studio write the prompt by the model's chat template. Many templates
    refuse a system message that is not the first message, or leave it out (Qwen since 3.5, MiniMax, gpt-oss), and fail
    on a content that is null or a list. Those of Mistral and Gemma refuse two users in a row, and Mistral's refuse call
    ids of other lengths. Sources: the templates that llama.cpp ships, and the request validators of `mistral-common`.
    """
    if not model or _HOSTED.match(bare_model_name(model)):
        return profile
    return replace(
        profile,
        user_first=True,
        system_places="first",
        plain_contents=True,
        alternates=_ALTERNATING.search(model) is not None,
        call_id_size=9 if _MISTRAL.search(model) else 0,
    )


def _gpt_version(model: str) -> tuple[int, int]:
    """Return the version of a GPT, such as (5, 6); (0, 0) for other models."""
    found = _GPT.match(bare_model_name(model))
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def bare_model_name(model: str) -> str:
    """Return the bare model name: `claude-haiku-4-5` of `openrouter:anthropic/claude-haiku-4.5`."""
    at = model.find("claude-")
    if at >= 0:  # Servers put their own words around it; some write the version with a dot.
        return model[at:].replace(".", "-")
    provider, colon, rest = model.partition(":")
    if colon and not provider.startswith(tuple(WINDOWS)):  # In `gpt-oss:20b` the size follows the name.
        model = rest
    return model.rpartition("/")[2]
