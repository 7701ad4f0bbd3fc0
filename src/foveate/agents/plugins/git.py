"""Where a git repository stands, read from its files: no program is run, and nothing is locked.

Branch, commit, and what is half done, such as a merge. Whether files differ from what was committed is not told: that
would take reading all of them.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["git_state"]

_MOST = 10_000_000
"""Bytes of a file of git's that is read."""
_UNDER_WAY = {
    "MERGE_HEAD": "merging",
    "rebase-merge": "rebasing",
    "rebase-apply": "rebasing",
    "CHERRY_PICK_HEAD": "cherry-picking",
    "REVERT_HEAD": "reverting",
    "BISECT_LOG": "bisecting",
}


def git_state(folder: Path) -> str:
    """Such as `git branch main at 0c8fbf5, merging`; "" where there is no repository."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return _state(place / ".git")
    return ""


def _state(git: Path) -> str:
    if git.is_file():  # A worktree or a submodule: it says where its own files are.
        named = _read(git).removeprefix("gitdir:").strip()
        git = git.parent / named
    head = _read(git / "HEAD").strip()
    shared = git / (_read(git / "commondir").strip() or ".")
    if head.startswith("ref:"):
        name = head.removeprefix("ref:").strip()
        commit = _read(git / name).strip() or _read(shared / name).strip() or _packed(shared, name)
        where = f"git branch {name.removeprefix('refs/heads/')}"
        said = f"{where} at {commit[:7]}" if commit else f"{where}, no commit"
    elif head:
        said = f"git at {head[:7]}, no branch"
    else:
        return ""
    under_way = [doing for file, doing in _UNDER_WAY.items() if (git / file).exists()]
    return ", ".join([said, *dict.fromkeys(under_way)])


def _packed(git: Path, name: str) -> str:
    for line in _read(git / "packed-refs").splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


def _read(place: Path) -> str:
    try:
        with place.open("rb") as file:
            return file.read(_MOST).decode("utf-8", "replace")
    except OSError:
        return ""
