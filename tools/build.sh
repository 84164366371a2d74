#!/usr/bin/env bash
# Builds FTuner into build/<preset> (default: release): everything, or the targets
# that are named.
#   tools/build.sh [preset [target...]]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
targets=()
if (($# > 1)); then
  targets=(--target "${@:2}")
fi
# Builds in other folders of this tree, that of the wheel above all, find what
# this one compiled.
export CCACHE_BASEDIR="$PWD"
cmake --preset "$preset" >"/dev/null"
cmake --build --preset "$preset" "${targets[@]}" -- -k 0
