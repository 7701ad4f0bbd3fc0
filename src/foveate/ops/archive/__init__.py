"""Archives of conversations, backups of a database in use, and proofs that a history is unchanged."""

from __future__ import annotations

from .backup import backup
from .export import export_archive
from .imports import Imported, UnfinishedImport, drop_unfinished, find_unfinished, import_archive
from .lines import Count
from .verify import SavedHead, Verified, head_text, heads_in, verified, verify_all, verify_head, verify_view

__all__ = [
    "Count",
    "Imported",
    "SavedHead",
    "UnfinishedImport",
    "Verified",
    "backup",
    "drop_unfinished",
    "export_archive",
    "find_unfinished",
    "head_text",
    "heads_in",
    "import_archive",
    "verified",
    "verify_all",
    "verify_head",
    "verify_view",
]
