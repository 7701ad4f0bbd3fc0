"""`foveate proxy`: a proxy in front of any client of Anthropic or OpenAI."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ..core.plurals import plural
from ..errors import BadSetting, MissingExtra
from .options import settings_of
from .output import say

__all__ = ["PORT", "proxy"]

PORT = 8787
"""The port of a proxy, unless another one is named."""


def proxy(
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
    wrap: str | None = None,
    upstream: str | None = None,
    port: int | None = None,
    host: str = "127.0.0.1",
    store: str | None = None,
    policy: str | None = None,
    window: int | None = None,
    tokens: Path | None = None,
    strict: bool = False,
    workers: int = 1,
    max_body: int = 64,
    json_logs: bool = False,
    status: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Keep the conversations of any client inside their windows, without a change in the client.

    Set the base URL of the client: `ANTHROPIC_BASE_URL=http://127.0.0.1:8787` for Claude Code,
    `OPENAI_BASE_URL=http://127.0.0.1:8787/v1` for programs that use OpenAI's API. Keys are passed on, and neither
    stored nor logged.

    Example: `foveate proxy --wrap claude`, or `foveate proxy --upstream https://openrouter.ai/api --window 100000`

    Parameters
    ----------
    arguments
        Arguments of the client of --wrap, after two hyphens: `foveate proxy --wrap claude -- --continue`.
    wrap
        Start claude, codex, opencode or gemini behind a proxy of its own, at a free port, and end with it.
    upstream
        Where requests go: anthropic, openai, gemini, bedrock (in the region AWS_REGION), or a URL (default: the
        provider to which the path belongs).
    port
        The port to listen at (default: 8787).
    host
        The address to listen at (default: 127.0.0.1). Any other than this computer's needs a token of at least 16
        characters, in the variable FOVEATE_PROXY_TOKEN or with --tokens. Clients send it in the header x-foveate-token.
    store
        Where conversations are stored: a SQLite file or a URL (default: a file in your data folder).
    policy
        How conversations shrink: a preset or a TOML file (default: from the settings, else balanced).
    window
        The largest window in tokens (default: that of each model).
    tokens
        A file with one tenant and its token a line. A tenant's requests use its own conversations only.
    strict
        Refuse a request if no view can be made for it, instead of sending it as it came.
    workers
        Processes that serve (default: 1).
    max_body
        The largest request in MB (default: 64).
    json_logs
        Write the log as JSON, one object a line.
    status
        Print what the proxy at this port has saved so far, and exit.
    as_json
        With --status: print one JSON object.
    """
    if status:
        return _print_status(host, PORT if port is None else port, as_json)
    if wrap is not None:
        _check_client(workers, tokens, host)
    elif arguments:
        raise BadSetting(f"{arguments[0]!r} is an argument for a client. Name the client: --wrap claude.")
    for name, number in (("--workers", workers), ("--max-body", max_body)):
        if number < 1:
            raise BadSetting(f"{name} must be at least 1, not {number}.")
    if not 0 <= (port or 0) < 65_536:
        raise BadSetting(f"--port must be a port, not {port}.")
    try:
        from ..proxy.server import check_start, serve
        from ..proxy.settings import LEAST_TOKEN, TOKEN, ProxySettings, aws_region_of, read_tokens, upstreams_of
        from ..proxy.wrap import CODE_ASSIST_URL, upstream_of
        from ..proxy.wrap import wrap as run_wrapped
        from ..requests.access import is_loopback
    except ModuleNotFoundError as error:
        raise MissingExtra("A proxy", "proxy") from error
    from ..open.pool import Conversations
    from .chat.options import choose_store, data_folder

    settings = settings_of(policy)
    keys = {} if wrap else read_tokens(tokens, os.environ.get(TOKEN, ""), settings["tenant"])
    if not keys and not is_loopback(host):
        raise BadSetting(
            f"Other computers reach {host}, so clients need a token. Set {TOKEN} to a random text "
            f"of at least {LEAST_TOKEN} characters, or use --tokens FILE."
        )
    url = choose_store(store, settings)
    if workers > 1 and url.startswith("memory:"):
        raise BadSetting("Workers cannot share a store in memory. Name a file or a database: --store chats.db.")
    chosen = upstream or (upstream_of(wrap, os.environ) if wrap else None)
    upstreams = upstreams_of(chosen, os.environ)
    if wrap and upstream is None:
        login = upstreams_of(os.environ.get(CODE_ASSIST_URL) or None, os.environ)
        upstreams["code_assist"] = login["code_assist"]
    window = settings["window"] if window is None else window
    Conversations("memory:", format="openai", policy=policy, window=window).close()  # Raises BadSetting.
    proxy_settings = ProxySettings(
        store=url,
        policy=policy,
        window=window,
        host=host,
        port=port if port is not None else 0 if wrap else PORT,
        tokens=keys,
        tenant=settings["tenant"],
        is_strict=strict,
        max_body=max_body * 1_000_000,
        is_log_json=json_logs,
        anthropic=upstreams["anthropic"],
        openai=upstreams["openai"],
        gemini=upstreams["gemini"],
        bedrock=upstreams["bedrock"],
        aws_region=aws_region_of(upstreams["bedrock"]) if chosen else "",  # Not because a variable is set.
        code_assist=upstreams["code_assist"],
    )
    check_start(proxy_settings)
    if wrap:
        return run_wrapped(proxy_settings, [wrap, *arguments], os.environ, data_folder() / "proxy.log")
    if not json_logs:  # Programs read that log, and expect JSON in every line.
        local = _url(host, proxy_settings.port)
        print(f"Serving {local}. Set ANTHROPIC_BASE_URL={local} or OPENAI_BASE_URL={local}/v1.", file=sys.stderr)
        print(f"{local}/foveate/ shows the conversations.", file=sys.stderr)
    serve(proxy_settings, workers=workers)
    return 0


def _check_client(workers: int, tokens: Path | None, host: str) -> None:
    """Raise BadSetting for options that a proxy of --wrap cannot have."""
    if workers != 1 or tokens is not None or host != "127.0.0.1":
        raise BadSetting(
            "A client of --wrap has its own proxy on this computer. Leave out --workers, --tokens and --host."
        )


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _print_status(host: str, port: int, as_json: bool) -> int:
    """Ask a running proxy. Returns 1 if none answers."""
    from ..proxy.settings import TOKEN

    url = f"{_url(host, port)}/foveate/status"
    request = urllib.request.Request(url, headers={"x-foveate-token": os.environ.get(TOKEN, "")})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            numbers = json.load(answer)
    except urllib.error.HTTPError as error:
        if error.code == 401:
            print(f"The proxy at {_url(host, port)} needs a token. Set {TOKEN} to one of its tokens.", file=sys.stderr)
        elif error.code == 403:
            print(
                f"The proxy at {_url(host, port)} has several tenants, and shows totals to its own. Set {TOKEN} to the "
                "token with which it was started.",
                file=sys.stderr,
            )
        else:
            print(f"No proxy of foveate answers at {url}: status {error.code}.", file=sys.stderr)
        return 1
    except (urllib.error.URLError, TimeoutError, ValueError) as error:
        reason = getattr(error, "reason", error)
        print(
            f"No proxy answers at {url}: {reason}. Start one with `foveate proxy`, or name the port of a running one "
            "with --port.",
            file=sys.stderr,
        )
        return 1
    if as_json:
        print(json.dumps(numbers))
        return 0
    whole, sent = numbers["tokens_whole"], numbers["tokens_sent"]
    share = f" ({(whole - sent) / whole:.0%})" if whole else ""
    say(
        f"{plural(numbers['conversations'], 'conversation')} in the store; "
        f"{plural(numbers['requests'], 'request')} since the start: "
        f"{numbers['managed']:,} with a view, {numbers['unchanged']:,} without one because it could not be made"
    )
    say(
        f"{whole - sent:,} of {whole:,} tokens saved{share}; {plural(numbers['expansions'], 'original')} read by models"
    )
    if priced := numbers["priced"]:
        dollars, spent = numbers["dollars_whole"], numbers["dollars_spent"]
        share = f" ({(dollars - spent) / dollars:.0%})" if dollars else ""
        where = f"in {plural(priced, 'request')} with known prices"
        say(f"${dollars - spent:,.2f} of ${dollars:,.2f} saved{share}, {where}")
    return 0
