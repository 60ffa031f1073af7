#!/bin/sh
# venv.sh VENV run|dev: makes the virtual environment, with what running or developing needs.
set -eu
venv=$1 kind=$2

find_python() {
    for name in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$name"
            return
        fi
    done
}

if ! "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    python=$(find_python)
    if [ -z "$python" ]; then
        echo "acceld needs Python 3.11 or newer; none found. On Debian or Ubuntu: apt install python3 python3-venv" >&2
        exit 2
    fi
    if ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "$python cannot make virtual environments here. On Debian or Ubuntu: apt install python3-venv" >&2
        exit 2
    fi
    echo "set-up: $venv with $("$python" -V)"
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi

export PIP_DISABLE_PIP_VERSION_CHECK=1
case $kind in
run) set -- ;;
# An older pip knows no dependency groups: read the group ourselves.
dev) set -- $("$venv/bin/python" -c '
import tomllib
for line in tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"]:
    print(line.replace(" ", ""))') ;;
esac
echo "set-up: packages for $kind"
"$venv/bin/python" -m pip install --quiet --editable . "$@"
