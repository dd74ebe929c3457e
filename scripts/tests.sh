#!/usr/bin/env bash
# Every test that is not long. First, alone with the machine, the one that holds the emulated disk to within 60 us. Then two
# parts at the same time: what makes storages must be alone with the machine's loop devices, pools and mounts, and waits more
# than it works; the rest keeps the processor busy meanwhile.
set -uo pipefail
cd "$(dirname "$0")/.."
# What a script starts in the background ignores Ctrl-C, which some tests send.
pytest() { env --default-signal=INT .venv/bin/pytest -p no:cacheprovider "$@"; }
exact=tests/disk/test_disk_accuracy.py
# What of the whole way makes directories and memory only keeps the two parts about equally long.
light=(tests/e2e/test_bad_input.py tests/e2e/test_cut_short.py tests/e2e/test_external.py)
mapfile -t all < <(find tests -name 'test_*.py' | sort)
storages=() rest=("${light[@]}")
for file in "${all[@]}"; do
  case " ${light[*]} $exact " in *" $file "*) continue ;; esac
  case $file in
    tests/storage/* | tests/disk/* | tests/system/* | tests/e2e/* | tests/shapes/* | tests/test_user_mode_linux.py) storages+=("$file") ;;
    *) rest+=("$file") ;;
  esac
done
rest() {
  local failed=0
  cargo test --workspace --quiet || failed=1
  scripts/npm.sh test || failed=1
  pytest "${rest[@]}" || failed=1
  return $failed
}
code=0
pytest "$exact" || code=1
pytest "${storages[@]}" > >(sed -u 's/^/storages | /') 2>&1 &
first=$!
rest > >(sed -u 's/^/the rest | /') 2>&1 &
second=$!
wait "$first" || code=1
wait "$second" || code=1
exit "$code"
