#!/bin/sh
# Makes .venv and installs exactly what a lock file names: ./install.sh requirements.lock
# Called by make; safe to call again.
set -eu
cd "$(dirname "$0")"
lock=$1

say() { printf '%s\n' "$*" >&2; }
fits() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' 2>/dev/null; }

find_python() {
    for name in ${PYTHON:-python3.11 python3 python3.12 python3.13 python3.14}; do
        if fits "$name"; then echo "$name"; return; fi
    done
    say "Dexweb needs Python 3.11 to 3.14, and none of these is: ${PYTHON:-python3.11, python3, python3.12, python3.13, python3.14}."
    say "Install one (on Debian or Ubuntu: apt install python3.11 python3.11-venv), or name it:"
    say "  make run PYTHON=/path/to/python3.11"
    exit 1
}

# The commands that install into .venv: its own pip or, where Debian left that out, the system's.
make_venv() {
    python=$(find_python) || exit 1
    rm -rf .venv
    if "$python" -c 'import ensurepip' 2>/dev/null && "$python" -m venv .venv; then return; fi
    rm -rf .venv
    if "$python" -m pip --version >/dev/null 2>&1 && "$python" -m venv --without-pip .venv; then
        command -v "$python" > .venv/pip-of
        return
    fi
    rm -rf .venv
    say "$python cannot make a virtual environment: its venv module lacks ensurepip, and there is no pip."
    say "Install one of them (on Debian or Ubuntu: apt install python3-venv) and run this again."
    exit 1
}

# An environment that was cut off while it was made has no pip: make it anew.
usable() { fits .venv/bin/python && { [ -f .venv/pip-of ] || .venv/bin/python -c 'import pip'; }; }
if ! usable 2>/dev/null; then make_venv; fi

count=$(grep -c '^[a-zA-Z0-9].*==' "$lock")
if [ -t 2 ]; then quiet=; else quiet=--quiet; fi
say "Installing $count packages from $lock (about 2 minutes the first time) …"
if [ -f .venv/pip-of ]; then
    set -- "$(cat .venv/pip-of)" -m pip --python .venv/bin/python
else
    set -- .venv/bin/python -m pip
fi
# What pip warns of on the way matters only if it then fails.
said=$(mktemp)
trap 'rm -f "$said"' EXIT
if ! "$@" install $quiet --disable-pip-version-check --no-input --require-hashes -r "$lock" 2>"$said"; then
    cat "$said" >&2
    say "The packages could not be installed; what pip says is above. Nothing was started."
    exit 1
fi
