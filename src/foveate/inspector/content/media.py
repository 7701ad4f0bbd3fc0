"""Images and files: their type by their first bytes, whether a page may show them, and the response that carries them.

Only PNG, JPEG, GIF and WebP are shown. Everything else, SVG and PDF too, is a download.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error

from markupsafe import Markup
from msgspec import Struct

from ...core.media_tokens import image_size, media_type
from ...core.messages import Media
from .characters import element, marked, visible

__all__ = ["File", "data_url", "file_of", "render_media"]

_MOST_PIXELS = 50_000_000
"""A larger image may use more memory in a browser than a page should."""
_DOWNLOAD = "application/octet-stream"
_DATA_URL = re.compile(r"data:([\w.+/-]{0,100})[^,]{0,200}?;base64,", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/]*=*")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_ENDINGS = {
    "application/pdf": "pdf", "audio/mpeg": "mp3", "audio/wav": "wav", "image/gif": "gif", "image/jpeg": "jpg",
    "image/png": "png", "image/svg+xml": "svg", "image/webp": "webp", "text/plain": "txt", "video/mp4": "mp4",
}  # fmt: skip


class File(Struct, frozen=True):
    """The bytes of media and how to send them."""

    body: bytes
    """The bytes."""
    content_type: str
    """`image/png` or another image that a page shows, by the bytes alone; else `application/octet-stream`."""
    name: str
    """A safe file name."""

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of the response. They forbid the browser to guess a type or to run anything."""
        way = "attachment" if self.content_type == _DOWNLOAD else "inline"
        return {
            "content-type": self.content_type,
            "content-disposition": f'{way}; filename="{self.name}"',
            "x-content-type-options": "nosniff",
            "content-security-policy": "default-src 'none'; sandbox",
        }


def file_of(media: Media) -> File | None:
    """Return the bytes of media; None if the message has only a URL or a file id, or no valid base64."""
    mime, encoded = _encoded(media)
    if encoded is None:
        return None
    try:
        body = b64decode(encoded + "=" * (-len(encoded) % 4))
    except (Error, ValueError):
        return None
    kind = _image_type(encoded)
    return File(body, kind or _DOWNLOAD, _name(media, mime, kind))


def data_url(media: Media) -> str | None:
    """Return a `data:` URL of an image that a page may show, for a page in a single file; else None."""
    _, encoded = _encoded(media)
    kind = _image_type(encoded) if encoded else ""
    return f"data:{kind};base64,{encoded}" if encoded and kind and _BASE64.fullmatch(encoded) else None


def render_media(media: Media, url: str | None) -> Markup:
    """Return an image, a link to download, or the address of media that the message only names. `url`: of its bytes."""
    mime, encoded = _encoded(media)
    kind = mime or "image"  # Media of an unknown type count as images.
    label = f"{media.name}, {kind}" if media.name else kind
    if encoded is None:
        place = "at" if media.source == "url" else "file"
        return Markup('<p class="c-media">{} {} {}</p>').format(
            visible(label), place, element("span", "c-address", media.data[:500])
        )
    label = f"{label}, {len(encoded) * 3 // 4:,} bytes"
    size = image_size(encoded) if url is not None and _image_type(encoded) else None
    if url is None:
        return Markup('<p class="c-media">{}</p>').format(visible(label))
    if size is None:
        return Markup('<p class="c-media">{} <a class="c-download" href="{}" download>Download</a></p>').format(
            visible(label), url
        )
    return Markup(
        '<figure class="c-media"><a class="c-picture" href="{0}">'
        '<img class="c-image" src="{0}" width="{1}" height="{2}" alt="{3}" loading="lazy"></a>'
        "<figcaption>{4}, {1} × {2} pixels</figcaption></figure>"
    ).format(url, *size, marked(label), visible(label))


def _encoded(media: Media) -> tuple[str, str | None]:
    """Return the media type and the base64 text; None for the text if the message has only a URL or a file id."""
    if media.source == "base64":
        return media.mime, media.data
    match = _DATA_URL.match(media.data) if media.source == "url" else None
    return (match[1] or media.mime, media.data[match.end() :]) if match else (media.mime, None)


def _image_type(encoded: str) -> str:
    """Return the type of an image by its first bytes; "" if a page may not show it."""
    size = image_size(encoded)
    if size is None or size[0] * size[1] > _MOST_PIXELS:
        return ""
    return media_type(encoded)


def _name(media: Media, mime: str, kind: str) -> str:
    """Return a name of letters, digits, dots, dashes and underscores."""
    name = _UNSAFE.sub("-", media.name[-80:]).strip(".-")
    if name:
        return name
    ending = _ENDINGS.get(kind or mime.lower(), "bin")
    return f"{'image' if kind else 'file'}.{ending}"
