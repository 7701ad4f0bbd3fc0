#!/bin/sh
# make_venv.sh VENV SPEC: creates a virtual environment in VENV and installs SPEC, such as ".[dev]", in editable form.
# Uses $PYTHON if it is set, else the first Python from 3.11 on that it finds. Uses uv if it is installed, and pip if uv
# fails, for example because only pip knows the package index.
set -eu

venv=$1
spec=$2

usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

# Why $PYTHON cannot be used: it does not run, or it is too old.
explain_python() {
    if version=$("$PYTHON" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null); then
        echo "foveate needs Python 3.11 or newer, but $PYTHON is Python $version." >&2
    elif command -v "$PYTHON" >/dev/null 2>&1; then
        echo "$PYTHON does not run as a Python interpreter." >&2
    else
        echo "There is no program $PYTHON." >&2
    fi
    echo "Name another interpreter, such as: make PYTHON=/path/to/python3.12 test" >&2
    exit 1
}

find_python() {
    # A name may exist and still not run, such as the shim of a version manager, so each one is tried.
    for name in python3 python3.13 python3.12 python3.11 python; do
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

if [ -n "${PYTHON:-}" ] && ! usable "$PYTHON"; then explain_python; fi

if command -v uv >/dev/null 2>&1; then uv=yes; else uv=no; fi

if ! usable "$venv/bin/python"; then
    python=${PYTHON:-$(find_python)}
    if [ -z "$python" ]; then
        echo "foveate needs Python 3.11 or newer, and none of python3, python3.13, python3.12, python3.11 is that new." >&2
        echo "Install one, or name it: make PYTHON=/path/to/python3.12 test" >&2
        exit 1
    fi
    # The old environment does not run, for example because its Python was removed. Delete nothing but an environment.
    if [ -f "$venv/pyvenv.cfg" ]; then rm -rf "$venv"; fi
    echo "Creating $venv with $("$python" --version 2>&1)."
    if [ "$uv" = yes ]; then
        uv venv --quiet --python "$python" "$venv"
    else
        "$python" -m venv "$venv" || {
            echo "$python cannot create a virtual environment (on Debian: apt install python3-venv; or install uv)." >&2
            exit 1
        }
    fi
fi

echo "Installing $spec into $venv."
if [ "$uv" = yes ]; then
    if uv pip install --quiet --python "$venv/bin/python" --editable "$spec"; then exit; fi
    echo "uv cannot install $spec, so pip does."
    "$venv/bin/python" -m ensurepip >/dev/null # An environment of uv has no pip.
fi
# Python compiles a module when something imports it: most modules of these packages are never imported.
"$venv/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check --editable "$spec"
