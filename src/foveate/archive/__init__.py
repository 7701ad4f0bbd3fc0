"""Getting conversations out of a store and back: archives, backups of a live file, and heads that prove a history."""

from __future__ import annotations

from .exporting import export_archive
from .importing import Imported, import_archive
from .lines import Count

__all__ = ["Count", "Imported", "export_archive", "import_archive"]
