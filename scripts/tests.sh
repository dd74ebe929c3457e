#!/usr/bin/env bash
# Every test that is not long. First, alone with the machine, the one that holds the emulated disk to within 60 us. Then two
# parts at the same time: what makes storages must be alone with the machine's loop devices, pools and mounts, and waits more
# than it works; the rest keeps the processor busy meanwhile. At the end stands what was not run, and what failed.
set -uo pipefail
cd "$(dirname "$0")/.."
# What a script starts in the background ignores Ctrl-C, which some tests send.
pytest() { env --default-signal=INT .venv/bin/pytest -p no:cacheprovider "$@"; }
exact=tests/disk/test_disk_accuracy.py
# What of the whole way makes directories and memory only keeps the two parts about equally long.
light=(tests/e2e/test_{bad_input,cut_short,full_size,lost_variants,resume_loading,sql_files,write_budget}.py)
mapfile -t all < <(find tests -name 'test_*.py' | sort)
storages=() rest=("${light[@]}")
for file in "${all[@]}"; do
  case " ${light[*]} $exact " in *" $file "*) continue ;; esac
  case $file in
    tests/storage/* | tests/disk/* | tests/system/* | tests/e2e/* | tests/findings/* | tests/test_user_mode_linux.py) storages+=("$file") ;;
    *) rest+=("$file") ;;
  esac
done
long=$(pytest -m long --collect-only --quiet --no-header tests) || { echo "$long"; exit 1; }
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
rest() {
  local failed=0
  cargo test --workspace --quiet || failed=1
  scripts/npm.sh test || failed=1
  pytest "${rest[@]}" || failed=1
  return $failed
}
part() { # NAME COMMAND...: what it says, with its name before each line; kept for the end
  local name=$1
  shift
  "$@" 2>&1 | tee "$logs/$name" | sed -u "s/^/$name | /"
}
failed=()
part "the disk" pytest "$exact" || failed+=("the disk")
part storages pytest "${storages[@]}" &
first=$!
part "the rest" rest &
second=$!
wait "$first" || failed+=(storages)
wait "$second" || failed+=("the rest")
echo "Not run, since they take long (make test-long): ten times as many comparisons with pgbench, and"
grep :: <<<"$long"
for name in "${failed[@]}"; do
  echo "=== $name failed:"
  grep -E '^(FAILED|ERROR|error|test .* FAILED|thread .* panicked|failures:|=+ .* in .*=+$)' "$logs/$name" || tail -n 40 "$logs/$name"
done
[ ${#failed[@]} -eq 0 ]
