"""Rules of the providers: check a view, and find the places where it can be cut."""

from __future__ import annotations

from .core.checker import Violation, check
from .core.profiles import profile_for
from .core.units import cut_points

__all__ = ["Violation", "check", "cut_points", "profile_for"]
