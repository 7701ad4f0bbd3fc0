"""The names of `foveate.replay`."""

from __future__ import annotations

import subprocess
import sys

import pytest

import foveate.replay


def test_every_public_name_exists():
    for name in foveate.replay.__all__:
        assert getattr(foveate.replay, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'rewind'"):
        _ = foveate.replay.rewind


def test_figures_import_neither_readers_nor_processes():
    code = (
        "import sys; from foveate.replay import Row; "
        "print({'foveate.replay.recordings', 'multiprocessing'}.intersection(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
