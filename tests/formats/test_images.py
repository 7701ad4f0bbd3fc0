"""Images in requests: one that a provider refuses would make every later request fail."""

from __future__ import annotations

import json
import struct
from base64 import b64encode

import pytest
from format_views import view

from foveate.core.messages import Media, user
from foveate.core.profiles import profile_for
from foveate.formats import get_format
from foveate.testing.bodies import check_body

FORMATS = ("anthropic", "openai", "openai_responses", "gemini")
JPEG = "/9j/4AAQSkZJRgABAQAAAQABAAD/wAARCABAAEADASIAAhEBAxEB"


def png(width: int, height: int) -> str:
    return b64encode(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height) + bytes(9)).decode()


def request(name: str, *media: Media) -> str:
    """Return the body of a request with these media as JSON. A checker of this provider accepts it."""
    body = get_format(name).prompt(view(user("See.", *media)), profile=profile_for(name))
    assert check_body(name, body) == []
    return json.dumps(body)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mime", ["image/png", "image/jpg", ""])
def test_an_image_has_the_type_of_its_bytes(name: str, mime: str):
    """Anthropic: `Image does not match the provided media type image/png`."""
    sent = request(name, Media(mime, "base64", JPEG))
    assert "image/jpeg" in sent
    assert JPEG in sent
    exported = json.dumps(get_format(name).render([user("See.", Media("image/jpg", "base64", JPEG))]))
    assert "image/jpg" in exported


def test_an_image_with_a_side_above_the_limit_is_not_sent_to_claude():
    """`At least one of the image dimensions exceed max allowed size: 8000 pixels`."""
    sent = request(
        "anthropic", Media("image/png", "base64", png(8_001, 5)), Media("image/png", "base64", png(8_000, 5))
    )
    assert sent.count("[Image, not shown here: image/png]") == 1
    assert sent.count('"base64"') == 1


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("data", "is_sent"), [(b"%PDF-1.4\n", True), (b"\r\n" * 500 + b"%PDF-1.7\n", True), (b"<html>404</html>", False)]
)
def test_bytes_that_are_no_pdf_are_not_sent_as_one(name: str, data: bytes, is_sent: bool):
    """Anthropic: `The PDF specified was not valid.`"""
    sent = request(name, Media("application/pdf", "base64", b64encode(data).decode(), "report.pdf"))
    assert (b64encode(data).decode() in sent) == is_sent
    assert ("[Document, not shown here: report.pdf application/pdf]" in sent) != is_sent


@pytest.mark.parametrize("name", FORMATS)
def test_a_data_url_is_not_sent_as_text(name: str):
    sent = request(name, Media("image/png", "url", "data:image/png;base64," + "A" * 9_000))
    assert len(sent) < 1_000
