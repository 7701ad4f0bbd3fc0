#!/bin/sh
# make_venv.sh VENV SPEC: a virtual environment in VENV with SPEC (say ".[dev]") installed in editable form.
# Takes $PYTHON if it is set, else the first Python from 3.11 on that it finds. Uses uv where it is installed; never needs it.
set -eu

venv=$1
spec=$2

usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        if usable "$PYTHON"; then echo "$PYTHON"; fi
        return
    fi
    for name in python3 python3.13 python3.12 python3.11 python; do
        # A name may exist and still not run (a version manager's shim), so it is tried, not looked up.
        if usable "$name"; then
            echo "$name"
            return
        fi
    done
    for path in "$HOME"/.pyenv/versions/3.1[1-9]*/bin/python; do
        if usable "$path"; then
            echo "$path"
            return
        fi
    done
}

if command -v uv >/dev/null 2>&1; then uv=yes; else uv=no; fi

if ! usable "$venv/bin/python"; then
    python=$(find_python)
    if [ -z "$python" ]; then
        echo "foveate needs Python 3.11 or newer, and ${PYTHON:-none of python3, python3.13, python3.12, python3.11} is one." >&2
        echo "Install one, or name it: make PYTHON=/path/to/python3.12 test" >&2
        exit 1
    fi
    # What is there is not usable, for example because its Python was removed. Only an environment is ever deleted.
    if [ -f "$venv/pyvenv.cfg" ]; then rm -rf "$venv"; fi
    echo "Making $venv with $("$python" --version 2>&1)."
    if [ "$uv" = yes ]; then
        uv venv --quiet --python "$python" "$venv"
    else
        "$python" -m venv "$venv" || {
            echo "$python cannot make a virtual environment (on Debian: apt install python3-venv; or install uv)." >&2
            exit 1
        }
    fi
fi

echo "Installing $spec into $venv."
if [ "$uv" = yes ]; then
    uv pip install --quiet --python "$venv/bin/python" --editable "$spec"
else
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$spec"
fi
