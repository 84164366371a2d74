#!/usr/bin/env bash
# Builds FTuner into build/<preset> (default: release).
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
# Builds in other folders of this tree, that of the wheel above all, find what
# this one compiled.
export CCACHE_BASEDIR="$PWD"
cmake --preset "$preset" >"/dev/null"
cmake --build --preset "$preset" -- -k 0
