#!/bin/bash
# Instructions per token of the demo model, counted by callgrind, beside those on record: a change that makes tokens
# dearer shows on any machine, however busy. AVX2 kernels (valgrind knows no AVX-512), one thread.
#
#   tools/count_instructions.sh            compare with bench/results/instructions.txt: more than 2 % off is an error
#   tools/count_instructions.sh --record   write that file
#
# Needs valgrind (Debian: apt-get install valgrind) and a release build; TURBOQUANT names another program.
set -euo pipefail
cd "$(dirname "$0")/.."
turboquant=${TURBOQUANT:-build/release/turboquant}
record=bench/results/instructions.txt
tolerance=2 # percent
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v valgrind >/dev/null || { echo "count_instructions: no valgrind: apt-get install valgrind" >&2; exit 1; }

"$turboquant" convert --quiet --hf-path demo --out "$work/demo-3bit" --bits 3 >/dev/null

# count MODEL PROMPT_LENGTH ANSWER_LENGTH -> instructions of the whole run
count() {
  valgrind --tool=callgrind --callgrind-out-file=/dev/null "$turboquant" generate --quiet --model "$1" --isa avx2 --threads 1 \
    --temperature 0 --prompt-tokens "$(seq -s, 3 $(($2 + 2)))" --min-tokens "$3" --max-tokens "$3" 2>&1 >/dev/null |
    sed -n 's/.*Collected : //p'
}

# Differences of two runs, so that loading does not count.
measure() {
  local name=$1 model=$2 base decode prefill
  base=$(count "$model" 8 2)
  decode=$(count "$model" 8 18)
  prefill=$(count "$model" 72 2)
  echo "$name decode $(((decode - base) / 16))"
  echo "$name prefill $(((prefill - base) / 64))"
}

{ measure demo-bf16 demo; measure demo-3bit "$work/demo-3bit"; } >"$work/now"
if [ "${1:-}" = --record ]; then
  { echo "# instructions per token, AVX2, one thread: tools/count_instructions.sh"; cat "$work/now"; } >$record
  cat $record
  exit
fi
awk -v tolerance=$tolerance '
  FNR == NR { if ($1 != "#") old[$1 " " $2] = $3; next }
  { key = $1 " " $2; change = old[key] ? 100 * ($3 / old[key] - 1) : 100
    far = change > tolerance || change < -tolerance
    printf "%-20s %10d  on record %10d  %+.2f %%%s\n", key, $3, old[key], change, far ? "  <-- beyond " tolerance " %" : ""
    if (far) bad = 1 }
  END { exit bad }' $record "$work/now"
