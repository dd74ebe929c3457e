#!/usr/bin/env bash
# Feeds every parser with bytes that libFuzzer makes up, led by coverage, from the kept corpus on; all at the same time.
#
#   scripts/fuzz.sh SECONDS [TARGET...]
#
# What makes a target panic, hang or take too much memory is shown and kept in target/fuzz/found/, and ends in exit code 1;
# `target/fuzz/*/release/TARGET FILE` runs it again. New inputs that reach new code are in target/fuzz/new/TARGET/;
# with PLINTH_FUZZ_KEEP=1 those of them that are needed are added to fuzz/corpus/.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
seconds=$1
shift
[ $# -gt 0 ] || set -- scan startup bodies script log replay_file
built=../target/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
# Flags from the environment would take the place of those in .cargo/config.toml.
env -u RUSTFLAGS -u CARGO_ENCODED_RUSTFLAGS -u CARGO_TARGET_DIR -u CARGO_BUILD_TARGET_DIR \
  cargo build --release --locked --quiet --target "$host"
mkdir -p $built/found $built/log

fuzz() { # TARGET: runs it; its words go to a log
  local target=$1 kept=corpus/$1 dict=wire.dict
  case $target in
    script | log) dict=$target.dict ;;
  esac
  mkdir -p "$built/new/$target"
  [ -d "$kept" ] || kept=
  # A slow machine is no hanging parser: 25 s for what takes a millisecond.
  nice "$built/$host/release/$target" "$built/new/$target" $kept -dict=$dict -max_total_time="$seconds" -timeout=25 \
    -rss_limit_mb=1024 -malloc_limit_mb=256 -max_len=8192 -artifact_prefix="$built/found/$target-" -print_final_stats=1 \
    >"$built/log/$target" 2>&1
}

add_to_corpus() { # TARGET: the few inputs that reach branches which the kept ones do not
  "$built/$host/release/$1" -set_cover_merge=1 -use_counters=0 "corpus/$1" "$built/new/$1" >>"$built/log/$1" 2>&1
}

pids=()
for target in "$@"; do
  fuzz "$target" &
  pids+=($!)
done
code=0
for target in "$@"; do
  log=$built/log/$target
  if ! wait "${pids[0]}"; then
    echo "$target: found something:" >&2
    # From the first line that is about it.
    sed -n '/ERROR\|panicked at/,$p' "$log" >&2
    code=1
  elif ! grep -q 'Loaded 1 modules *([1-9][0-9]* inline 8-bit counters)' "$log"; then
    echo "$target: was built without counters, and led by nothing: $log" >&2
    code=1
  else
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: //p' "$log") inputs, $(grep -o 'cov: [0-9]*' "$log" | tail -n 1)"
    [ -z "${PLINTH_FUZZ_KEEP:-}" ] || add_to_corpus "$target"
  fi
  pids=("${pids[@]:1}")
done
exit $code
