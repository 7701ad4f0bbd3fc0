"""Settings: defaults, then `granary.ini`, then environment variables that begin with `GRANARY_`."""

import configparser
from dataclasses import dataclass, fields, replace
from decimal import Decimal

DEFAULTS_FILE = "granary.ini"
SECTION = "granary"


@dataclass(frozen=True)
class Config:
    database: str = "granary.db"
    currency: str = "EUR"
    reminder_days: tuple[int, ...] = (7, 21, 35)
    cash_discount: Decimal = Decimal(2)
    margin_days: int = 21
    lorries: tuple[tuple[str, int], ...] = (("big", 12000), ("small", 3500))
    log_level: str = "INFO"


def load(path=DEFAULTS_FILE, environment=None):
    """The settings in force. Unknown names are an error: most of them are spelling mistakes."""
    config = Config()
    parser = configparser.ConfigParser()
    if parser.read(path, encoding="utf-8"):
        unknown_sections = [name for name in parser.sections() if name != SECTION]
        if unknown_sections:
            raise ValueError(f"{path}: unknown section [{unknown_sections[0]}]")
        if parser.has_section(SECTION):
            config = _merge(config, dict(parser[SECTION]), path)
    prefix = "GRANARY_"
    given = {
        name.removeprefix(prefix).lower(): value
        for name, value in (environment or {}).items()
        if name.startswith(prefix)
    }
    return _merge(config, given, "the environment")


def _merge(config, given, source):
    kinds = {field.name: type(getattr(config, field.name)) for field in fields(config)}
    values = {}
    for name, raw in given.items():
        if name not in kinds:
            raise ValueError(f"{source}: unknown setting {name!r}; known are {', '.join(sorted(kinds))}")
        try:
            values[name] = _read(name, kinds[name], raw)
        except (ArithmeticError, ValueError):
            raise ValueError(f"{source}: {name} = {raw!r} makes no sense") from None
    return replace(config, **values)


def _read(name, kind, raw):
    if name == "lorries":
        pairs = [part.split(":") for part in raw.split(",")]
        return tuple((label.strip(), int(kilos)) for label, kilos in pairs)
    if kind is tuple:
        return tuple(int(part) for part in raw.split(","))
    return kind(raw)
