#!/usr/bin/env bash
# Sets up FTuner, builds the programs that it runs, compiles examples/dense.mlir
# for a device (default: h200), says what was chosen, and checks some sizes in the
# emulator against the reference.
set -euo pipefail
cd "$(dirname "$0")/.."
device=${1:-h200}
tools/setup.sh
. tools/env.sh
tools/build.sh release ftuner-translate ftuner-run ftrt ftrt_emulator
bin=build/release/bin
out=build/release/demo
mkdir -p "$out"

echo
echo "Compiling examples/dense.mlir (T in 1…128, N = 2304, K = 768, bias, GELU) for $device"
start=$(date +%s.%N)
"$bin/ftuner-translate" examples/dense.mlir --ftuner-to-ptx --device="$device" -o "$out/dense.ptx"
end=$(date +%s.%N)
"$bin/ftuner-translate" examples/dense.mlir --ftuner-to-manifest --timing --device="$device" -o "$out/dense.json"
printf 'From .mlir to PTX in %.2f s\n\n' "$(echo "$end $start" | awk '{print $1 - $2}')"
python3 tools/summary.py "$out/dense.json" --sizes 1,7,31,53,64,97,128

echo
echo "Running in the emulator, against the reference in f64"
args=()
for t in 1 7 53 64 128 200; do
  args+=("--args=${t}x768xf32,768x2304xf32,2304xf32")
done
"$bin/ftuner-run" examples/dense.mlir --function=dense --device="$device" --executor=emulator --check "${args[@]}"

echo
echo "PTX:      $out/dense.ptx"
echo "Manifest: $out/dense.json"
