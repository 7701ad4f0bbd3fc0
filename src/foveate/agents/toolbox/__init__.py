"""Tools ready to use, each made by a function that takes what it may touch: nothing is reached that was not handed in.

files       list, read, write and edit the files of a folder
search      find a pattern in them
shell       run commands in a folder; each asks for approval
sqlite      look into a database, or change it

Each returns a tuple of tools: `ChatAgent(model, tools=[*files("."), *search(".")])`. What comes back is bounded, and
says how to get the rest. What cannot be done is raised as `ToolFailed`, in a sentence that a model can act on.
"""

from __future__ import annotations

from ..tools import ToolFailed
from .databases import sqlite
from .reading import files
from .searching import search
from .shells import shell, stop_commands

__all__ = ["ToolFailed", "files", "search", "shell", "sqlite", "stop_commands"]
