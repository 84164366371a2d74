#!/usr/bin/env bash
# Sets up, builds and runs every test. The closing line counts them.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
. tools/env.sh
tools/build.sh release
tools/lint.sh
ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" "$@"
