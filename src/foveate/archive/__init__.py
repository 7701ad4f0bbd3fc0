"""Getting conversations out of a store and back: archives, backups of a live file, and heads that prove a history."""

from __future__ import annotations

from .backing_up import backup
from .exporting import export_archive
from .heads import KeptHead, head_text, heads_in, verify_head
from .importing import Imported, import_archive
from .lines import Count
from .unfinished import Unfinished, drop_unfinished, unfinished
from .views import verify_view
from .whole import Verified, verified, verify_all

__all__ = [
    "Count",
    "Imported",
    "KeptHead",
    "Unfinished",
    "Verified",
    "backup",
    "drop_unfinished",
    "export_archive",
    "head_text",
    "heads_in",
    "import_archive",
    "unfinished",
    "verified",
    "verify_all",
    "verify_head",
    "verify_view",
]
