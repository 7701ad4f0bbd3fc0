"""Models of a chat: opening one by its name, its price, and its key."""

from __future__ import annotations

from ...errors import BadSetting, MissingKey
from ...models.demo import WINDOW, demo_model
from ...models.prices import cost_of
from ...models.sdk import SdkModel
from ...open import open_model
from ...ports import Cost, Model

__all__ = ["DEMO", "check_key", "open_chat_model", "price_of"]

DEMO = "demo"


def open_chat_model(name: str, *, pace: float, window: int | None) -> Model:
    """Return the model of this name. `pace` (seconds between two words) and `window` (tokens) are for the demo."""
    return demo_model(pace=pace, window=window or WINDOW) if name == DEMO else open_model(name)


def price_of(model: str) -> Cost | None:
    """Return the cost of the model with this name; None if its price is unknown."""
    return None if model in ("", DEMO) else cost_of(model)


def check_key(model: Model) -> None:
    """Raise BadSetting if the model has no key."""
    try:
        if isinstance(model, SdkModel):
            model.check_key()
    except MissingKey as error:
        raise BadSetting(
            f"{error.model} needs a key, and {' or '.join(error.variables)} is not set. Set it with export "
            f"{error.variables[0]}=YOUR_KEY, or use the model demo, which needs no key."
        ) from None
