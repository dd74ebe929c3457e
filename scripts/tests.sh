#!/usr/bin/env bash
# Every test that is not long, and the checks. They run in parts, four at a time: what makes storages, and whole runs, wait more than they
# work; the rest keeps two processors busy meanwhile. There are more parts than that, so that none is left over for long at the end. The checks
# run from the beginning as SCHED_IDLE (sched(7)): what else wants a processor takes it from them at once. Last comes, with nothing next to it,
# the part that holds the emulated disk to within 60 us. At the end it lists what was not run, and what failed.
# One or two tests that failed are run again alone. Those that pass then are reported as unstable, with their first
# failure: each is a fault to be found, of the test or of what it tests, but does not tell whether this change is sound.
set -uo pipefail
cd "$(dirname "$0")/.."
trap 'exit 130' INT # a pytest that Ctrl-C has ended says so by its exit code only, and the next part would follow
# Servers have a thousand files each. On an ext4 without a journal, as machines of a cloud have it, these take 0.63 to 0.75 s of CPU time to make
# and remove; with a journal 0.11 s. So the tests of root have a file system of their own, which goes with the namespace of this script.
if [ "$(id -u)" -eq 0 ] && [ "${1:-}" != inside ]; then
  image="" PLINTH_TESTS_FOLDER=$(mktemp -d /tmp/XXXX) || exit 2
  trap 'rm -f "$image"; rmdir "$PLINTH_TESTS_FOLDER"' EXIT # after Ctrl-C, too
  image=$(mktemp /tmp/plinth-tests-XXXX) && truncate --size 64G "$image" && mkfs.ext4 -q -O has_journal "$image" || exit 2
  export PLINTH_TESTS_FOLDER TMPDIR=$PLINTH_TESTS_FOLDER
  unshare --mount --propagation private sh -c \
    'mount -o loop,noatime,discard "$1" "$PLINTH_TESTS_FOLDER" && chmod 1777 "$PLINTH_TESTS_FOLDER" && scripts/tests.sh inside' sh "$image"
  exit
fi
export OPENBLAS_NUM_THREADS=1 # numpy would start threads in every process that imports it
# Where bytecode is not kept, every process of the tests would compile what has changed since the build, and every pytest all tests.
unset PYTHONDONTWRITEBYTECODE PYTHONOPTIMIZE PYTHONWARNINGS PYTHONPATH PYTHONHOME
logs=$(mktemp -d)
export PLINTH_TESTS_NOT_RUN=$logs/not-run
trap 'rm -rf "$logs"' EXIT
# Each part has mounts of its own: mkfs.btrfs looks at every mount there is, and fails at one whose FUSE daemon a test of another part has killed.
own_mounts=()
[ "$(id -u)" -ne 0 ] || own_mounts=(unshare --mount --propagation private)
# Signals and environment of tests: tests/support/surroundings.py. What failed is kept for each part.
pytest() {
  "${own_mounts[@]}" .venv/bin/pytest -o cache_dir="$logs/$part.cache" --durations=0 --durations-min=1 "$@"
}
exact=tests/disk/test_disk_accuracy.py
declare -A files=(["the disk"]="$exact")
for file in $(find tests -name 'test_*.py' | sort); do
  case $file in
    "$exact") continue ;;
    tests/storage/* | tests/disk/* | tests/system/* | tests/findings/* | tests/test_user_mode_linux.py) name=storages ;;
    tests/e2e/test_[a-c]*) name=runs-a-to-c ;;
    tests/e2e/test_[d-g]*) name=runs-d-to-g ;;
    tests/e2e/test_[h-i]*) name=runs-h-to-i ;;
    tests/e2e/test_[j-p]*) name=runs-j-to-p ;;
    tests/e2e/test_[q-r]*) name=runs-q-to-r ;;
    tests/e2e/*) name=runs-s-to-z ;;
    tests/engine/load/*) name=loads ;;
    tests/engine/*) name=engine ;;
    tests/analyse/* | tests/bundle/* | tests/experiment/* | tests/plan/*) name=plans ;;
    tests/cli/* | tests/report/*) name=reports ;;
    tests/fleet/* | tests/network/* | tests/replay/* | tests/witness/*) name=fleets ;;
    *) name="the rest" ;;
  esac
  files[$name]+="$file "
done
tests() { # 1 when tests failed, 2 when pytest itself did
  local those
  read -ra those <<<"${files[$part]}"
  pytest "${those[@]}"
  case $? in 0) return 0 ;; 1) return 1 ;; *) return 2 ;; esac
}
checks() {
  make --no-print-directory check || return 2
}
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
in_idle_time() { # NAME: the part, by processes that run where no other wants the processor
  chrt --idle --pid 0 "$BASHPID" || echo "$1: it takes time from the others" >&2
  part "$1" "$1"
}
worst=0 failed=()
declare -A under_way=()
in_idle_time checks &
under_way[$!]=checks
ended() { # PART CODE
  [ "$2" -eq 0 ] || failed+=("$1")
  [ "$2" -le "$worst" ] || worst=$2
}
lanes=4
wait_for_one() {
  local pid code=0
  wait -n -p pid || code=$?
  ended "${under_way[$pid]}" "$code"
  [ "${under_way[$pid]}" = checks ] || lanes=$((lanes + 1))
  unset "under_way[$pid]"
}
# What waits most begins next to what works, and the longest first; last comes what keeps both processors busy to its end.
for name in storages runs-j-to-p "the rest" reports runs-s-to-z runs-h-to-i runs-a-to-c fleets plans runs-d-to-g loads runs-q-to-r engine units; do
  while [ "$lanes" -eq 0 ]; do wait_for_one; done
  if [ "$name" = units ]; then part units units & else part "$name" tests & fi
  lanes=$((lanes - 1)) under_way[$!]=$name
done
while [ ${#under_way[@]} -gt 0 ]; do wait_for_one; done
part "the disk" tests
ended "the disk" $?
echo "Longest (seconds, of the clock):"
find "$logs" -maxdepth 1 -type f -exec sed -nE 's/^([0-9.]+)s (call|setup|teardown) +(.*)/\1 \2 \3/p' {} + | sort -rn | head -n 40
echo "Not run, since they take long (make test-long): the engine's tests on Debian's PostgreSQL, ten times as many comparisons with pgbench, and"
touch "$PLINTH_TESTS_NOT_RUN" # each test once: what failed may be run again
sort -u "$PLINTH_TESTS_NOT_RUN" | grep -v '^tests/engine/.*debian' | sed 's/\[.*//' | uniq -c
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
