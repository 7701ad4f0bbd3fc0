"""Self-contained HTML files: styles and scripts inside, and a policy that allows nothing else.

A file opens without a server and requests nothing. Its content security policy names the hashes of its own style and
script, so that no text of a recording runs.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..templating import environment

__all__ = ["self_contained"]

_STATIC = Path(__file__).parents[1] / "static"


def self_contained(template: str, /, *, css: Sequence[str], js: Sequence[str], **values: Any) -> str:
    """Return the text of an HTML file from a template that extends `file.html.j2`.

    `css` and `js`: names of files in `static`, which stand in the file in this order. `values`: those of the
    template, with `title`.
    """
    style = "\n".join(map(_static, css))
    script = "\n".join(map(_static, js))
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return (
        environment().get_template(template).render(policy=policy, style=Markup(style), script=Markup(script), **values)
    )


@lru_cache
def _static(name: str) -> str:
    return (_STATIC / name).read_text("utf-8").strip()


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
