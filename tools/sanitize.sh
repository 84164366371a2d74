#!/usr/bin/env bash
# Builds FTuner with the sanitizers of the compiler, into build/asan and build/tsan,
# and runs what they are to look at. `address` builds most of the tree once more.
#   tools/sanitize.sh [address|thread]     default: both, one after the other
#   tools/sanitize.sh compiler [FOLDER...] the part of `address` that compiles programs
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/env.sh

set_address_options() {
  # What LLVM's and MLIR's libraries keep to the end are no leaks of ours.
  # Tests ask for more memory than there is, and expect null.
  # LLVM has a stack for signals of its own.
  export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:use_sigaltstack=0:${ASAN_OPTIONS:-}
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:${UBSAN_OPTIONS:-}
  # Python loads the libraries of these three without the sanitizer.
  export LIT_FILTER_OUT='exact-architecture|tensor-maps'
}

# Unit and lit tests of the passes, every program (.mlir) of the folders, and the
# designed part of the sweep over ONNX's operators, which Python compiles by the
# instrumented ftuner-translate, and runs by the libraries of the release build.
check_compiler() {
  tools/build.sh asan FTunerTransformsTests ftuner-opt ftuner-run ftuner-translate ftuner-test-opt
  tools/build.sh release ftrt ftrt_emulator ftuner_latency
  set_address_options
  local status=0 home=build/asan/home reports=build/asan/reports
  ctest --test-dir build/asan --output-on-failure --no-tests=error -j "$(nproc)" \
    -R '^(FTunerTransformsTests|lit/Transforms|lit/Pipelines)$' || status=1
  LIT_FILTER='loops|joined-ranges' \
    ctest --test-dir build/asan --output-on-failure --no-tests=error -R '^lit/Operators$' || status=1
  rm -rf "$home" "$reports"
  mkdir -p "$home" "$reports"
  ln -s "$PWD/build/asan/bin" "$home/bin"
  ln -s "$PWD/build/release/lib" "$home/lib"
  ln -s "$PWD/build/release/share" "$home/share"
  export ASAN_OPTIONS=log_path=$PWD/$reports/address:$ASAN_OPTIONS
  export UBSAN_OPTIONS=log_path=$PWD/$reports/undefined:$UBSAN_OPTIONS
  local program programs=0
  while IFS= read -r program; do
    programs=$((programs + 1))
    # A refusal is an answer, too; reports tell of the rest.
    "$home/bin/ftuner-translate" "$program" --ftuner-to-ptx --device=h200 --max-kernels=1 \
      -o "$home/program.ptx" >"$home/program.log" 2>&1 || true
  done < <(if (($# > 0)); then find "$@" -name '*.mlir'; fi)
  if ! FTUNER_HOME=$PWD/$home FTUNER_CACHE_DIR=$PWD/$home/cache PYTHONPATH=$PWD/python .venv/bin/python -m pytest -q \
    test/python/test_onnx_sweep.py; then
    status=1
  fi
  local found
  found=$(find "$reports" -type f | wc -l)
  echo "programs: $programs; reports: $found"
  if ((found > 0)); then
    head -n 40 "$reports"/* >&2
    status=1
  fi
  return $status
}

# Unit tests but those of the search, which take long, and by lit: programs that the
# emulator runs and checks, host code, and inputs that are refused.
check_address() {
  local tests=(
    FTunerCodegenTests FTunerCostModelTests FTunerDeviceTests FTunerDispatchTests
    FTunerEmulatorTests FTunerExecutorTests FTunerKernelTests FTunerMeasureTests
    FTunerRuntimeTests FTunerRuntimeOpeningTests
    FTunerScheduleTests FTunerSupportTests FTunerTransformsTests FTunerWorkloadTests)
  local folders=(Codegen Conversion Dialect/UKernel Pipelines Transforms tools/ftuner-run)
  tools/build.sh asan "${tests[@]}" ftuner-opt ftuner-run ftuner-translate \
    ftuner-test-opt ftuner-test-run ftuner-test-translate ftrt ftrt_emulator
  set_address_options
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
compiler) check_compiler "${@:2}" ;;
both)
  check_address
  check_thread
  ;;
*)
  echo "usage: tools/sanitize.sh [address|thread|compiler [FOLDER...]]" >&2
  exit 2
  ;;
esac
