#!/usr/bin/env bash
# Sets up, builds and runs every test. The closing line counts them. Random data
# and cases are the same in each run, but with FTUNER_TEST_SCALE=N, N times as many
# cases and new seeds (docs/testing.md). Further arguments are ctest's.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/env.sh
tools/build.sh release
tools/lint.sh
if [ "${FTUNER_TEST_SCALE:-1}" = 1 ]; then
  export FTUNER_TEST_SEED="${FTUNER_TEST_SEED:-1}"
fi
ctest --preset release -j "$(nproc)" "$@"
