"""Helpers that both wire formats share: reading wire objects, unknown fields, media.

A wire object is a dict or an SDK object that can dump itself. One bad image makes a provider refuse the whole
conversation forever, so a request holds a text in place of media that the provider would refuse. An export keeps them.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Container, Mapping
from typing import Any, Literal

from ..core.media_tokens import media_type
from ..core.messages import Extra, Media
from ..core.profiles import Profile
from ..errors import BadMessage
from .json import copy_json, dump_object, parse_object, to_text

__all__ = [
    "IMAGES",
    "MARKS",
    "Place",
    "add_extra",
    "advice_without_role",
    "as_dict",
    "as_list",
    "call_arguments",
    "describe",
    "extra_fields",
    "file_name",
    "free_text",
    "get_count",
    "get_string",
    "hidden_media_text",
    "is_sendable",
    "make_extra",
    "media_label",
    "refuse_error",
    "sent_fields",
    "sent_type",
    "sound_format",
    "system_messages",
    "wrong_type",
]

# Cache marks belong to one request, not to a message. Marks that come back with old messages would add up to more than
# a provider allows, so readers drop them.
MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})


Place = Literal["export", "user", "assistant", "system", "failure"]
"""The place that a part is written to: an export, which keeps everything the format can express, or a place in a
request: a message of this role, or the result of a failed call. Providers show media only in messages of the user's
side.
"""


def as_dict(value: object, where: str) -> dict[str, Any]:
    """Return a wire object as a dict. Raises BadMessage if it is not an object."""
    if type(value) is dict:
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "model_dump") and not isinstance(value, type):
        value = dump_object(value, where)
        if isinstance(value, dict):
            return value
    raise wrong_type(where, value, "an object")


def as_list(value: object, where: str) -> list[Any] | tuple[Any, ...]:
    """Return a list or tuple unchanged. Raises BadMessage for anything else."""
    if isinstance(value, list | tuple):
        return value
    raise wrong_type(where, value, "a list")


def system_messages(system: object) -> list[dict[str, Any]]:
    """Return a caller's system prompt as new messages of OpenAI's formats, without empty texts.

    It is a text, a message, or a list of texts, messages and text blocks, as other providers want them.
    """
    if system is None or isinstance(system, str):
        return [{"role": "system", "content": system}] if system else []
    if isinstance(system, Mapping) or hasattr(system, "model_dump"):
        system = [system]
    messages: list[dict[str, Any]] = []
    for number, item in enumerate(as_list(system, "system")):
        if isinstance(item, str):
            messages += system_messages(item)
            continue
        fields = copy_json(as_dict(item, f"system[{number}]"))
        if "role" in fields:
            messages.append(fields)
        else:
            messages += system_messages(get_string(fields, "text", f"system[{number}]"))
    return messages


def get_string(fields: Mapping[str, Any], key: str, where: str) -> str:
    """Return the string under `key`. Raises BadMessage if there is none."""
    value = fields.get(key)
    if isinstance(value, str):
        return value
    raise wrong_type(f"{where}.{key}", value, "a string")


def get_count(fields: object, key: str) -> int | None:
    """Return the number of tokens under `key`, or None (never 0) if there is none."""
    value = fields.get(key) if isinstance(fields, Mapping) else None
    return value if type(value) is int and value >= 0 else None


def call_arguments(call: Mapping[str, Any], where: str) -> str:
    """Return the arguments, byte for byte if they are a string as they should be; some servers send an object."""
    value = call.get("arguments")
    if isinstance(value, str):
        return value
    if value is None:
        return "{}"
    if isinstance(value, Mapping):
        return to_text(dict(value), f"{where}.arguments")
    raise wrong_type(f"{where}.arguments", value, "a string of JSON")


def make_extra(
    format: str, fields: Mapping[str, Any], known: frozenset[str], where: str, own: dict[str, Any] | None = None
) -> Extra | None:
    """Return the fields outside `known`, to be kept for the format they came from.

    `own` holds what the format itself must remember about the object's shape. It comes first.
    """
    if fields.keys() <= known:
        rest = own
    else:
        rest = {**(own or {}), **{key: value for key, value in fields.items() if key not in known}}
    return Extra(format, to_text(rest, where)) if rest else None


def extra_fields(extra: Extra | None, format: str) -> dict[str, Any]:
    """Return a new dict of the fields kept for this format; empty if they came from another format."""
    if extra is None or extra.format != format:
        return {}
    return parse_object(extra.fields) or {}


def add_extra(wire: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """Add the kept fields to a wire object, without replacing any that it has."""
    for key, value in extra.items():
        wire.setdefault(key, value)
    return wire


def free_text(arguments: str) -> str:
    """Return the text that a custom tool was called with."""
    match parse_object(arguments):
        case {"input": str(text), **rest} if not rest:
            return text
        case _:
            return arguments


def sent_fields(extra: Extra | None, format: str, documented: Container[str], profile: Profile) -> dict[str, Any]:
    """Return the kept fields of a message that a request may hold: none for strict servers, all for those that take
    unknown keys, else those that are documented.
    """
    if extra is None or profile.strict:
        return {}
    fields = extra_fields(extra, format)
    return fields if profile.unknown_keys else {key: value for key, value in fields.items() if key in documented}


def refuse_error(reply: Mapping[str, Any]) -> None:
    """Raise BadMessage if a reply is the error of a provider. Gateways send errors with the status 200, too."""
    error = reply.get("error")
    if isinstance(error, Mapping):
        facts = [error.get(key) for key in ("code", "type", "status", "message")]
        error = ": ".join(str(fact) for fact in facts if isinstance(fact, str | int) and fact != "")
    if isinstance(error, str) and error:
        raise BadMessage(
            f"The reply is an error, {error[:500]!r}. Nothing of it was recorded. Correct the request or send it again."
        )


def wrong_type(where: str, value: object, wanted: str) -> BadMessage:
    """Return the error for a value of the wrong type."""
    return BadMessage(f"{where} is {describe(value)}. It must be {wanted}.")


def advice_without_role(fields: Mapping[str, Any]) -> str:
    """Return what to do about an object that stands for a message and has no role, as further sentences."""
    if not fields:
        return ""
    return (
        f" The message is {describe(dict(fields))}. If another library wrote it, convert it first; parts of a content "
        "belong in the content of a message with a role."
    )


def describe(value: object) -> str:
    """Describe a value briefly, however large or strange it is."""
    match value:
        case None:
            return "missing or null"
        case str():
            return f"the string {value[:40]!r}" if value else "an empty string"
        case bool() | int() | float():
            return "a number or a boolean"
        case dict():
            keys = ", ".join(repr(key[:20]) for key in list(value)[:6] if isinstance(key, str))
            return f"an object with the keys {keys}" if keys else "an object without keys"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case _:
            return f"a {type(value).__name__}"


IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that every provider takes."""


_PDF_HEAD = 1_372
"""Characters of base64 for the header of a PDF, which may begin behind 1,023 other bytes."""
_URL_MAX = 200
"""Characters of a URL in a text: a `data:` URL has the whole image in it."""
_SOUND_FORMATS = {"mpeg": "mp3", "x-mp3": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
"""Names of media types, and OpenAI's names for these formats."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
_ENDINGS = {
    "application/pdf": ".pdf", "application/json": ".json", "text/plain": ".txt", "text/markdown": ".md",
    "text/csv": ".csv", "text/html": ".html", "text/xml": ".xml", f"{_OFFICE}.wordprocessingml.document": ".docx",
    f"{_OFFICE}.spreadsheetml.sheet": ".xlsx", f"{_OFFICE}.presentationml.presentation": ".pptx",
}  # fmt: skip
"""Endings of file names."""
_HAS_ENDING = re.compile(r".*\.\w{1,5}").fullmatch


def is_sendable(media: Media, format: str, mimes: Container[str], largest: int) -> bool:
    """Return whether a request in this format may hold this media.

    `mimes` are the types that the provider reads. `largest` counts characters of base64.
    """
    match media.source:
        case "url":
            return media.data.startswith(("https://", "http://"))
        case "file":  # A provider keeps the file under an id that another one does not know.
            return bool(media.data) and (media.extra is None or media.extra.format == format)
        case _:
            is_read = sent_type(media) in mimes and 0 < len(media.data) <= largest and _is_base64(media.data)
            return is_read and (media.mime != "application/pdf" or _is_pdf(media.data))


def sent_type(media: Media) -> str:
    """Return the media type for a request: of an image that of its bytes. Claude refuses an image with another one."""
    found = media_type(media.data) if media.is_image and media.source == "base64" else ""
    return found if found.startswith("image/") else media.mime


def media_label(media: Media) -> str:
    """Return the everyday word for this kind of media."""
    if media.is_image:
        return "Image"
    return {"audio": "Sound", "video": "Video"}.get(media.mime.partition("/")[0], "Document")


def sound_format(media: Media) -> str:
    """Return OpenAI's name for the format of a sound. It takes `mp3` and `wav`; other servers take more."""
    kind = media.mime.removeprefix("audio/")
    return _SOUND_FORMATS.get(kind, kind)


def file_name(media: Media) -> str:
    """Return a name for the data of a document. OpenAI asks for one, and tells the type of a file by its ending."""
    ending = "" if _HAS_ENDING(media.name) else _ENDINGS.get(media.mime, "")
    return f"{media.name or 'file'}{ending}"


def hidden_media_text(media: Media) -> str:
    """Return the text that stands for media that the model cannot see: of a text file, its text."""
    if media.mime.startswith("text/") and media.source == "base64" and (text := _decoded_text(media.data)):
        return f"[{media.name}]\n{text}" if media.name else text
    label = " ".join(filter(None, (media.name, media.data[:_URL_MAX] if media.source == "url" else media.mime)))
    return f"[{media_label(media)}, not shown here: {label}]" if label else f"[{media_label(media)}, not shown here]"


def _decoded_text(data: str) -> str:
    """Return the text in base64; "" if it is none."""
    try:
        text = binascii.a2b_base64(data, strict_mode=True).decode()
    except ValueError:
        return ""
    return text if text.strip() else ""


def _is_pdf(data: str) -> bool:
    """Return whether base64 has the header of a PDF, which begins in the first 1,024 bytes."""
    return b"%PDF-" in binascii.a2b_base64(data[:_PDF_HEAD])


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:  # binascii.Error is a ValueError; so is the error for a text beyond ASCII.
        return False
    return True
