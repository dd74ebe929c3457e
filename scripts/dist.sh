#!/usr/bin/env bash
# dist/: the sdist, and a wheel for each architecture. A wheel fits every CPython >= 3.11 (abi3) on Linux with glibc >= 2.17
# (zig links against the symbols of that glibc, regardless of this machine's). The one for aarch64 is cross-compiled, and not run.
set -euo pipefail
cd "$(dirname "$0")/.."
largest_bytes=$((15 * 1000 * 1000))
PATH="$PWD/.venv/tools/bin:$PATH"
messages=$(mktemp)
trap 'rm -f "$messages"' EXIT
rm -rf dist
maturin sdist --out dist 2>"$messages" || { cat "$messages" >&2; exit 1; }
for architecture in x86_64 aarch64; do
  target=$architecture-unknown-linux-gnu
  if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    rustup --quiet target add "$target" || {
      echo "Rust has no standard library for $target: rustup target add $target" >&2
      exit 5
    }
  fi
  maturin build --quiet --release --strip --zig --compatibility manylinux2014 --target "$target" --out dist
done
for file in dist/*; do
  size=$(stat --format %s "$file")
  echo "$file: $(numfmt --to=si --suffix=B "$size")"
  if [ "$size" -gt $largest_bytes ]; then
    echo "$file is larger than 15 MB" >&2
    exit 1
  fi
done
