"""Templates, links and forms of all pages, and the conversation that a request names."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode

from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Router

from ...conversation import Conversation
from ...errors import NoSuchConversation
from ..access import Access
from ..notices import Notices
from ..sources import Source, Sources
from ..templating import environment
from ..watchers import Watchers

__all__ = [
    "STATIC",
    "VERSION",
    "Page",
    "form",
    "fragment",
    "in_thread",
    "link",
    "name_in_path",
    "number",
    "opened",
    "page",
    "source_of",
    "sources_of",
]

T = TypeVar("T")
_MAX_FORM: Final = 100_000
"""Bytes of a form."""

STATIC: Final[dict[str, bytes]] = {
    path.name: path.read_bytes() for path in sorted((Path(__file__).parents[1] / "static").iterdir()) if path.is_file()
}
"""Scripts and styles by name. No other file can be requested."""
VERSION: Final = sha256(b"".join(STATIC.values())).hexdigest()[:12]
"""In the links to scripts and styles, so that browsers keep none of an older version."""


class _Name(Convertor[str]):
    """A conversation's name as one segment of a path: `a/b` is `a~2Fb`.

    Servers and proxies decode `%2F`, so a tilde stands for the percent sign.
    """

    regex = "[^/]+"

    def convert(self, value: str) -> str:
        return name_in_path(value)

    def to_string(self, value: str) -> str:
        text = quote(value, safe="", errors="surrogatepass").replace("~", "%7E").replace("%", "~")
        return f"~2E{text[1:]}" if text.startswith(".") else text  # Browsers remove `.` and `..` from a path.


def name_in_path(segment: str) -> str:
    """Return the name of the conversation in a segment of a path."""
    text = segment.replace("~", "%")
    try:
        return unquote(text, errors="surrogatepass")
    except UnicodeDecodeError:
        return unquote(text)  # No link of ours has this, so no conversation has this name.


register_url_convertor("name", _Name())


class Page:
    """The values that every request needs: `request.app.state.page`."""

    def __init__(self, router: Router, access: Access, sources: Callable[[str], Sources]) -> None:
        self.router, self.access, self.sources = router, access, sources
        self.notices, self.watchers = Notices(), Watchers()


def page_of(request: Request) -> Page:
    """Return what the application keeps for its pages."""
    found: Page = request.app.state.page
    return found


def tenant_of(request: Request) -> str:
    """Return the tenant whose conversations the request sees."""
    return str(request.scope["foveate.tenant"])


def link(request: Request, route: str, /, **values: object) -> str:
    """Return the path of a route, with the mount's prefix. Values that are not in the path become the query.

    A value that is None or "" is left out.
    """
    router = page_of(request).router
    found = next(each for each in router.routes if getattr(each, "name", "") == route)
    in_path = {key: value for key, value in values.items() if key in getattr(found, "param_convertors", {})}
    path = router.url_path_for(route, **in_path)
    query = [(key, value) for key, value in values.items() if key not in in_path and value not in (None, "")]
    root = request.scope.get("root_path", "").rstrip("/")
    return f"{root}{path}{f'?{urlencode(query)}' if query else ''}"


def fragment(request: Request, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
    """Return a part of a page as HTML, for a script that inserts it."""
    access, notices = page_of(request).access, page_of(request).notices
    shared = {
        "link": partial(link, request),
        "form_token": lambda: access.form_token(tenant_of(request)),
        "static": lambda name: link(request, "static", file=name, v=VERSION),
        "root": request.scope.get("root_path", "").rstrip("/"),
        "is_read_only": access.is_read_only,
        "notice": notices.get(tenant_of(request), request.query_params.get("notice", "")),
    }
    text = environment().get_template(template).render(shared | values)
    return HTMLResponse(text.encode("utf-8", "replace"), status)  # Half of a surrogate pair has no UTF-8.


page = fragment
"""Return a whole page: its template extends `base.html.j2` and takes `title`."""


async def in_thread(function: Callable[..., T], *arguments: Any, **keywords: Any) -> T:
    """Run a function in a thread, because stores and conversations block."""
    return await run_in_threadpool(function, *arguments, **keywords)


def sources_of(request: Request) -> Sources:
    """Return the sources that the request may read."""
    return page_of(request).sources(tenant_of(request))


def source_of(request: Request) -> Source:
    """Return the source in the path. Raises HTTPException 404."""
    key = request.path_params["source"]
    found = sources_of(request).get(key)
    if found is None:
        raise HTTPException(404, f"There is no source {key[:80]!r}.")
    return found


@contextmanager
def opened(request: Request) -> Iterator[Conversation]:
    """Open the conversation in the path. Blocks: call it in a thread. Raises HTTPException 404."""
    name = request.path_params["name"]
    try:
        with source_of(request).open(name) as chat:
            yield chat
    except NoSuchConversation as error:
        raise HTTPException(404, f"There is no conversation {name[:200]!r}.") from error


def number(request: Request, name: str, default: int, *, least: int = 0, most: int = 10**9) -> int:
    """Return a whole number of the query, at least `least` and at most `most`. Raises HTTPException 400."""
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 12):
        raise HTTPException(400, f"{name} must be a whole number, not {text[:40]!r}.")
    return min(most, max(least, int(text)))


async def form(request: Request, *, changes: bool = True) -> dict[str, str]:
    """Return the fields of a form that a page of the inspector sent.

    `changes`: whether the form changes a conversation. Raises HTTPException 403 for any other form, and in read-only
    mode for one that changes something, and 413 for a large one.
    """
    access = page_of(request).access
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415, "Send the form as application/x-www-form-urlencoded.")
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > _MAX_FORM:
            raise HTTPException(413, f"The form has more than {_MAX_FORM:,} bytes.")
    fields = dict(parse_qsl(content.decode("utf-8", "replace"), keep_blank_values=True))
    if not hmac.compare_digest(fields.pop("token", "").encode(), access.form_token(tenant_of(request)).encode()):
        raise HTTPException(403, "The form is too old, or no page of the inspector sent it. Reload the page.")
    if changes and access.is_read_only:
        raise HTTPException(403, "The inspector is read-only.")
    return fields
