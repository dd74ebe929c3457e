#!/usr/bin/env bash
# What experiments/ramdisk.toml needs beyond the build: fio, for half of the published figures that it is compared with. Without
# it the run measures all the rest, so that what cannot be installed is said, and no reason to end.
set -euo pipefail
. "$(dirname "$0")/packages.sh"

needs fio fio
[ ${#missing[@]} -gt 0 ] || exit 0
without="the run goes without it, and shows n/a for what fio measures"
if ! may_install; then
  echo "fio is not installed, which root on Debian or Ubuntu could do here; $without. To have it: $(how_to_install)" >&2
  exit 0
fi
echo "installing fio, which experiments/ramdisk.toml measures with"
install_missing || echo "apt-get could not install fio; $without. To have it: $(how_to_install)" >&2
