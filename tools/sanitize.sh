#!/usr/bin/env bash
# Builds FTuner with the sanitizers of the compiler, into build/asan and build/tsan,
# and runs what they are to look at. `address` builds most of the tree once more.
#   tools/sanitize.sh [address|thread]   default: both, one after the other
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/env.sh

# Unit tests but those of the search, which take long, and by lit: programs that the
# emulator runs and checks, host code, and inputs that are refused.
check_address() {
  local tests=(
    FTunerCodegenTests FTunerCostModelTests FTunerDeviceTests FTunerDispatchTests
    FTunerEmulatorTests FTunerExecutorTests FTunerKernelTests FTunerMeasureTests
    FTunerRuntimeTests FTunerRuntimeOpeningTests
    FTunerScheduleTests FTunerSupportTests FTunerTransformsTests FTunerWorkloadTests)
  local folders=(Codegen Conversion Dialect/UKernel Transforms tools/ftuner-run)
  tools/build.sh asan "${tests[@]}" ftuner-opt ftuner-run ftuner-translate \
    ftuner-test-opt ftuner-test-run ftuner-test-translate ftrt ftrt_emulator
  # What LLVM's and MLIR's libraries keep to the end are no leaks of ours.
  # Tests ask for more memory than there is, and expect null.
  # LLVM has a stack for signals of its own.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:use_sigaltstack=0:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}
  # Python loads the libraries of these three without the sanitizer.
  export LIT_FILTER_OUT='exact-architecture|tensor-maps'
  ctest --test-dir build/asan --output-on-failure --no-tests=error -j "$(nproc)" \
    -R "^($(IFS='|' && echo "${tests[*]}|${folders[*]/#/lit/}"))\$"
}

# The runtime under threads.
check_thread() {
  local tests=(FTunerRuntimeTests FTunerRuntimeOpeningTests)
  tools/build.sh tsan "${tests[@]}"
  export TSAN_OPTIONS=halt_on_error=1:${TSAN_OPTIONS:-}
  ctest --test-dir build/tsan --output-on-failure --no-tests=error \
    -R "^($(IFS='|' && echo "${tests[*]}"))\$"
}

case ${1:-both} in
address) check_address ;;
thread) check_thread ;;
both)
  check_address
  check_thread
  ;;
*)
  echo "usage: tools/sanitize.sh [address|thread]" >&2
  exit 2
  ;;
esac
