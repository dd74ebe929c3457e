#!/usr/bin/env bash
# Makes .venv with uv in it, with what there is: uv, or a Python >= 3.11 and pip.
set -euo pipefail
cd "$(dirname "$0")/.."
requires=$(sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml)

new_enough() { "$1" -c "import sys; sys.exit(sys.version_info < tuple(map(int, '$requires'.split('.'))))" 2>/dev/null; }

if [ ! -x .venv/bin/python ]; then
  if command -v uv >/dev/null; then
    uv venv --quiet --python ">=$requires" .venv
  else
    python=""
    for candidate in python3 python3.13 python3.12 python3.11; do
      if command -v "$candidate" >/dev/null && new_enough "$candidate"; then python=$candidate; break; fi
    done
    if [ -z "$python" ]; then
      echo "Plinth needs Python >= $requires: apt-get install python3, or https://docs.astral.sh/uv" >&2
      exit 5
    fi
    if ! "$python" -c 'import ensurepip' 2>/dev/null; then
      # Debian and Ubuntu keep ensurepip in a package of its own.
      if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -qq && apt-get install -y -qq python3-venv >/dev/null
      else
        echo "Plinth needs venv: sudo apt-get install python3-venv" >&2
        exit 5
      fi
    fi
    "$python" -m venv .venv
  fi
fi
if [ ! -x .venv/bin/uv ]; then
  if command -v uv >/dev/null; then uv pip install --quiet --python .venv/bin/python uv; else .venv/bin/python -m pip install --quiet uv; fi
fi
