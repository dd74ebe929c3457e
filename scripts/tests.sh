#!/usr/bin/env bash
# The tests of `make test` and the checks; with "long" or "quick", those of `make test-long` or `make test-quick`.
#
# Tests run in two lanes. Those of the first wait for devices, servers and clocks more than they work, so three processes share it; those of the
# second keep a processor busy, and two do. Each process takes the next file of its lane (pytest-xdist), has mounts of its own, and runs its
# tests in order. The checks run from the beginning as SCHED_IDLE (sched(7)): what else wants a processor takes it from them at once. Last
# comes, with nothing next to it, what holds the emulated disk to within 60 us. At the end the script lists what was not run, and what failed.
# One or two tests that failed are run again alone. Those that pass then are reported as unstable, with their first
# failure: each is a fault to be found, of the test or of what it tests, but does not tell whether this change is sound.
set -uo pipefail
cd "$(dirname "$0")/.."
trap 'exit 130' INT # a pytest that Ctrl-C has ended says so by its exit code only, and the next part would follow
which=${1:-short}
# Servers have a thousand files each. On an ext4 without a journal, as machines of a cloud have it, these take 0.63 to 0.75 s of CPU time to make
# and remove; with a journal 0.11 s. So the tests of root have a file system of their own, which goes with the namespace of this script.
if [ "$(id -u)" -eq 0 ] && [ "${2:-}" != inside ]; then
  image="" PLINTH_TESTS_FOLDER=$(mktemp -d /tmp/XXXX) || exit 2
  trap 'rm -f "$image"; rmdir "$PLINTH_TESTS_FOLDER"' EXIT # after Ctrl-C, too
  image=$(mktemp /tmp/plinth-tests-XXXX) && truncate --size 64G "$image" && mkfs.ext4 -q -O has_journal "$image" || exit 2
  export PLINTH_TESTS_FOLDER TMPDIR=$PLINTH_TESTS_FOLDER
  unshare --mount --propagation private sh -c \
    'mount -o loop,noatime,discard "$1" "$PLINTH_TESTS_FOLDER" && chmod 1777 "$PLINTH_TESTS_FOLDER" && scripts/tests.sh "$2" inside' sh "$image" "$which"
  exit
fi
export OPENBLAS_NUM_THREADS=1 # numpy would start threads in every process that imports it
# Where bytecode is not kept, every process of the tests would compile what has changed since the build, and every pytest all tests.
unset PYTHONDONTWRITEBYTECODE PYTHONOPTIMIZE PYTHONWARNINGS PYTHONPATH PYTHONHOME
logs=$(mktemp -d)
export PLINTH_TESTS_NOT_RUN=$logs/not-run
trap 'rm -rf "$logs"' EXIT
# mkfs.btrfs looks at every mount there is, and fails at one whose FUSE daemon a test of another process has killed.
python=.venv/bin/python
[ "$(id -u)" -ne 0 ] || python="unshare --mount --propagation private $python"
# What measures, or waits for what others would delay.
alone=(tests/disk/test_disk_accuracy.py tests/attribution tests/findings tests/probe/test_probe_parity.py tests/engine/load/test_native_fuzz.py)
waiting=(tests/e2e tests/storage tests/fleet tests/run tests/system tests/network tests/replay tests/witness tests/disk tests/test_user_mode_linux.py)
listed=$(printf '|%s' "${alone[@]}" "${waiting[@]}")
mapfile -t working < <(find tests -name 'test_*.py' | grep -vE "^(${listed#|})(/|$)" | sort)
chosen=(--durations=40 --durations-min=1)
case $which in
  long) chosen=(-m long) ;;
  quick)
    alone=() waiting=(tests/e2e/test_run.py)
    working=(tests/analyse tests/bundle tests/doctor tests/experiment tests/plan tests/test_*.py)
    ;;
esac
# What failed is kept for each part. Signals and environment of tests: tests/support/surroundings.py.
pytest() { # 1 when tests failed, 2 when pytest itself did
  local code=0
  .venv/bin/pytest -q -o cache_dir="$logs/$part.cache" "${chosen[@]}" "$@" || code=$?
  return $((code > 1 ? 2 : code))
}
lane() { # PROCESSES PATH...
  pytest --tx "$1*popen//python=$python" --dist loadfile --no-loadscope-reorder "${alone[@]/#/--ignore=}" "${@:2}"
}
checks() { make --no-print-directory check || return 2; }
units() { # none are in documentation
  local code=0
  cargo test --workspace --lib --bins --tests --quiet || code=2
  scripts/npm.sh test || code=2
  return $code
}
part() { # NAME COMMAND...: what it says, with its name before each line; kept for the end
  part=$1
  shift
  "$@" 2>&1 | tee "$logs/$part" | sed -u "s/^/$part | /"
}
unstable() { # true when no more than two tests failed, and pass alone
  sed -nE 's/^  "(.*)": true,?$/\1/p' "$logs"/*.cache/v/cache/lastfailed >"$logs/again"
  [ -s "$logs/again" ] && [ "$(wc -l <"$logs/again")" -le 2 ] || return # of nothing, pytest would run all
  echo "=== again, alone:"
  part=again pytest "@$logs/again"
}
checks_in_idle_time() {
  chrt --idle --pid 0 "$BASHPID" || echo "the checks take time from the tests" >&2
  checks
}
worst=0 failed=()
ended() { # PART CODE
  [ "$2" -eq 0 ] || failed+=("$1")
  [ "$2" -le "$worst" ] || worst=$2
}
declare -A under_way=()
begin() { # NAME COMMAND...
  part "$@" &
  under_way[$!]=$1
}
[ "$which" != short ] || begin checks checks_in_idle_time
begin waiting lane 3 "${waiting[@]}"
begin working lane 2 "${working[@]}"
while [ ${#under_way[@]} -gt 0 ]; do
  code=0
  wait -n -p pid || code=$?
  name=${under_way[$pid]}
  unset "under_way[$pid]"
  ended "$name" "$code"
  # Its threads are in the place of the working lane.
  [ "$name" != working ] || [ "$which" = long ] || begin units units
done
if [ ${#alone[@]} -gt 0 ]; then
  part alone pytest "${alone[@]}"
  ended alone $?
fi
if [ "$which" = short ]; then
  echo "Not run, since they take long (make test-long): ten times as many comparisons with pgbench, the engine's tests on Debian's PostgreSQL, and"
  touch "$PLINTH_TESTS_NOT_RUN" # each test once: what failed may be run again
  sort -u "$PLINTH_TESTS_NOT_RUN" | grep -v '^tests/engine/.*debian' | sed 's/\[.*//' | uniq -c
fi
for name in "${failed[@]}"; do
  echo "=== $name failed:"
  grep -E '^(FAILED|ERROR|error|test .* FAILED|thread .* panicked|failures:|=+ .* in .*=+$)' "$logs/$name" || tail -n 40 "$logs/$name"
done
case $worst in
  0) ;;
  1)
    unstable || exit 1
    echo "=== UNSTABLE: these failed next to other tests and passed alone:"
    cat "$logs/again"
    ;;
  *) exit "$worst" ;;
esac
