"""Whether a summary can be taken: what it must be, whoever wrote it.

Not empty, no error text, shorter than its source and not much longer than was asked for; what it ascribes to the user
was said; and what is still referred to is in it. Missing names are added in one line at the end where there is room,
since code knows them better than any model. A summary that fails is not mended further: the next rung is asked.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.sizes import estimate, tokens_of
from ..core.summaries import SummaryRequest
from .ascribed import Heard, without_inventions
from .refusals import why_no_summary

__all__ = ["LONGEST", "Verdict", "accept", "length_of"]

LONGEST = 2
"""Times what was asked for: a summary that is longer is not taken."""

_REFERRED = "Still referred to: "
_READ = 100_000
"""Characters above which a text is too long whatever was asked for, and is not read sentence by sentence."""
_KEPT = 0.4
"""Share of a summary that must be left once what the user never said is dropped."""


class Verdict(NamedTuple):
    """What became of a summary."""

    text: str
    """The summary to take, without what was dropped and with what was added; "" if it is refused."""
    why: str = ""
    """Why it is refused; "" if it is taken."""
    dropped: tuple[str, ...] = ()
    """Why sentences were dropped, one reason each."""


def accept(request: SummaryRequest, text: str, *, measures: bool = True) -> Verdict:
    """Judge a text as the answer to a request. `measures=False`: its length is judged elsewhere."""
    text = text.strip()
    if why := why_no_summary(text):
        return Verdict("", why)
    if len(text) > _READ:
        return Verdict("", _too_long(text, request)) if measures else Verdict(text)
    kept, dropped = without_inventions(text, Heard(request))
    if len(kept) < _KEPT * len(text):
        return Verdict("", f"{dropped[0]}, and little else", dropped)
    source = length_of(request)
    if measures:
        if len(kept) >= source:
            return Verdict("", "it is not shorter than what it stands for", dropped)
        if len(kept) > LONGEST * request.target:
            return Verdict("", _too_long(kept, request), dropped)
    missing = [value for value in request.required if value not in kept]
    if missing:
        whole = f"{kept}\n\n{_REFERRED}{', '.join(missing)}"
        if len(whole) > LONGEST * request.target or len(whole) >= source:
            return Verdict("", f"it leaves out {missing[0]!r}, which is still referred to", dropped)
        kept = whole
    return Verdict(kept, "", dropped)


def _too_long(text: str, request: SummaryRequest) -> str:
    return f"it has {len(text):,} characters, and {request.target:,} were asked for"


def length_of(request: SummaryRequest) -> int:
    """Characters of what a summary would stand for; images and calls count as if they were text."""
    return 4 * (sum(map(tokens_of, request.messages)) + estimate(request.previous))
