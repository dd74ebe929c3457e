#!/usr/bin/env bash
# Makes Debian's minimal system, with Python and nothing else, in target/debian-base, unless it is there. As root.
set -euo pipefail
cd "$(dirname "$0")/.."
base=$PWD/target/debian-base
[ ! -e "$base/complete" ] || exit 0
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq debootstrap >/dev/null; }
rm -rf "$base"
echo "making Debian's minimal system in $base"
debootstrap --variant=minbase --include=python3-venv bookworm "$base" >/dev/null
touch "$base/complete"
