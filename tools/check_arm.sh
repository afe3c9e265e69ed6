#!/usr/bin/env bash
# Cross-builds for 64-bit Arm and runs a slice of the op matrix and of the model tests under qemu-user.
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset arm >/dev/null
cmake --build --preset arm --target codec_tests backend_tests backend_cpu_tests cpu_kernels_tests golden_tests
run() {
  local binary=$1
  shift
  qemu-aarch64 -cpu max -L /usr/aarch64-linux-gnu "build/arm/$binary" --gtest_brief=1 "$@" >build/arm/test.log 2>&1 || {
    tail -n 40 build/arm/test.log
    return 1
  }
  echo "arm: $binary: $(grep PASSED build/arm/test.log)"
  cat build/arm/test.log >>build/check.log
}
run src/codec/codec_tests --gtest_filter='Hadamard*:Signs*:TurboQuant*'
run src/backend/backend_tests
run src/backend/cpu/backend_cpu_tests
run src/backend/cpu/kernels/cpu_kernels_tests
run tests/golden/golden_tests --gtest_filter='*SameBits*/llama_cpu*:*Reference*/qwen3_cpu*:*FastMode*/dense_b3'
