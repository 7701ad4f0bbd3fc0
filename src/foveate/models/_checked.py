"""What every model is told, looked at before anything is sent."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ..errors import BadSetting

__all__ = ["checked"]


def checked(model: object, max_tokens: object, timeout: object, max_retries: object, options: object) -> None:
    """Raises BadSetting for a name, a length, a time, a number of retries or options that make no sense."""
    if not isinstance(model, str) or not model.strip():
        raise BadSetting(f"A model is named by a text such as claude-haiku-4-5, not {model!r:.60}.")
    if type(max_tokens) is not int or max_tokens < 1:
        raise BadSetting(f"max_tokens= is a whole number of 1 or more, not {max_tokens!r:.60}.")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
        raise BadSetting(f"timeout= is a number of seconds above 0, not {timeout!r:.60}.")
    if type(max_retries) is not int or max_retries < 0:
        raise BadSetting(f"max_retries= is a whole number of 0 or more, not {max_retries!r:.60}.")
    if options is not None and not isinstance(options, Mapping):
        raise BadSetting(f'options= is a dict such as {{"temperature": 0}}, not {options!r:.60}.')
