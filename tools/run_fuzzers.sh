#!/usr/bin/env bash
# tools/run_fuzzers.sh BUILD_DIR SECONDS: every fuzz target for SECONDS, with its seeds from tests/fuzz/seeds.
set -euo pipefail
build=$1
seconds=$2
root=$(cd "$(dirname "$0")/.." && pwd)
run_one() {
  local target=$1 name corpus
  name=$(basename "$target")
  corpus=$(mktemp -d)
  if ! "$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3000 -max_len=65536 -print_final_stats=1 \
      -artifact_prefix="$corpus/" "$corpus" $( [ -d "$root/tests/fuzz/seeds/${name#fuzz_}" ] && echo "$root/tests/fuzz/seeds/${name#fuzz_}" ) \
      >"$corpus/log" 2>&1; then
    echo "fuzz: $name failed"
    tail -n 40 "$corpus/log"
    return 1
  fi
  echo "fuzz: $name $(sed -n 's/stat::number_of_executed_units: *//p' "$corpus/log") inputs, no crash"
  rm -rf "$corpus"
}
export -f run_one
export seconds root
find "$build" -type f -name 'fuzz_*' -executable | sort | xargs -P 2 -I{} bash -c 'run_one {}'
