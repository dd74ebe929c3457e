#!/usr/bin/env bash
# Says in one line how to get Rust where it is missing or too old; sees to the linker that it needs.
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
if ! command -v cc >/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq && apt-get install -y -qq gcc libc6-dev >/dev/null
  else
    echo "Plinth needs a C linker for Rust: sudo apt-get install gcc libc6-dev" >&2
    exit 5
  fi
fi
