#!/usr/bin/env bash
# Says in one line how to get Rust where it is missing or too old.
set -euo pipefail
cd "$(dirname "$0")/.."
needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
how="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy,rustfmt"
if ! command -v cargo >/dev/null; then
  echo "Plinth needs Rust >= $needed: $how" >&2
  exit 5
fi
found=$(rustc --version | cut -d' ' -f2)
if [ "$(printf '%s\n' "$needed" "$found" | sort -V | head -n 1)" != "$needed" ]; then
  echo "Plinth needs Rust >= $needed, this is $found: rustup update, or $how" >&2
  exit 5
fi
