#!/usr/bin/env bash
# Builds FTuner into build/<preset> (default: release).
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
cmake --preset "$preset" >"/dev/null"
cmake --build --preset "$preset" -- -k 0
