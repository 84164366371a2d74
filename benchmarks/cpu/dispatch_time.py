#!/usr/bin/env python3
"""Measures what the dispatch of a compiled function costs, without a GPU.

Dense (T, 2304, 768), T = 1…128, compiled to a library, is called in a loop of C against
a runtime whose launch returns at once. So what is timed is the function itself: its
checks, its look-up of the kernel and of the number of blocks, and the call of
ftrt_launch. Beside it, in the same loop:

  nothing      a function that returns
  switch       the same look-up by hand: a C switch with a constant launch per size
  std::map     the same through a std::map from sizes to launches

Sizes are one size, all in turn, and all in random order, which a branch predictor
cannot learn. Medians of several loops, in nanoseconds of a call. Goal: 20 ns for one
size, look-up and launch.

Writes a table, and JSON with --json FILE.
"""

import argparse
import ctypes
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

import workloads

GPU = os.path.join(workloads.ROOT, "benchmarks", "gpu")
sys.path.insert(0, GPU)
from ftuner_bench.workloads import FULL

RUNTIME = """
#include <stdint.h>
static int64_t launches;
int32_t ftrt_launch(void *kernel, uint32_t grid, uint32_t block, uint32_t shared, void *stream,
                    void **parameters) {
  launches += grid;
  return 0;
}
int32_t ftrt_fail(const char *message) { return 4; }
const char *ftrt_last_error(void) { return ""; }
int64_t launched_blocks(void) { return launches; }
"""

HEAD = """
#include <stdint.h>
extern "C" int32_t ftrt_launch(void *, uint32_t, uint32_t, uint32_t, void *, void **);
static char kernels[64];
extern "C" int32_t nothing(void *a, void *b, void *c, int64_t m, void *w, void *stream) {
  return 0;
}
"""

SWITCH = """
extern "C" int32_t by_switch(void *a, void *b, void *c, int64_t m, void *w, void *stream) {
  int32_t size = (int32_t)m, part = 0, kernel = 0;
  uint32_t grid = 0, block = 0, shared = 0;
  void *parameters[] = {&a, &b, &c, &size, &part};
  switch (m) {
%s
  default: return 1;
  }
  return ftrt_launch(&kernels[kernel], grid, block, shared, stream, parameters);
}
"""

MAP = """
#include <map>
struct Launch { uint32_t kernel, grid, block, shared; int32_t part; };
static const std::map<int64_t, Launch> launches = {
%s
};
extern "C" int32_t by_map(void *a, void *b, void *c, int64_t m, void *w, void *stream) {
  const auto found = launches.find(m);
  if (found == launches.end())
    return 1;
  Launch launch = found->second;
  int32_t size = (int32_t)m;
  void *parameters[] = {&a, &b, &c, &size, &launch.part};
  return ftrt_launch(&kernels[launch.kernel], launch.grid, launch.block, launch.shared, stream,
                     parameters);
}
"""


def by_hand(manifest):
    """C++ of the look-ups by hand, from the manifest's programs."""
    (planned,) = manifest["workloads"]
    kernels = {kernel["entry"]: kernel for kernel in manifest["kernels"]}
    cases, entries = [], []
    for program in planned["programs"]:
        family = planned["families"][program["family"]]
        kernel = kernels[family["kernel"]]
        grid = sum(program["blocks"]) * -(-2304 // family["ukernels"][0]["block_tile"][1])
        shared = kernel["dynamic_shared_memory_bytes"]
        cases.append(
            f"  case {program['size']}: kernel = {program['family']}; "
            f"grid = {grid}; block = {kernel['block'][0]}; "
            f"shared = {shared}; part = {program['blocks'][0]}; break;"
        )
        entries.append(
            f"  {{{program['size']}, {{{program['family']}, {grid}, {kernel['block'][0]}, "
            f"{shared}, {program['blocks'][0]}}}}},"
        )
    return HEAD + SWITCH % "\n".join(cases) + MAP % "\n".join(entries)


def build(folder, translate, device):
    """Compiles everything; (runtime, functions by name, the loop, the manifest)."""

    def path(name):
        return os.path.join(folder, name)

    def run(*command):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")

    def write(name, text):
        with open(path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return path(name)

    run(
        "cc",
        "-O2",
        "-shared",
        "-fPIC",
        "-Wl,-soname,libftrt.so.1",
        write("runtime.c", RUNTIME),
        "-o",
        path("libftrt.so.1"),
    )
    runtime = ctypes.CDLL(path("libftrt.so.1"), mode=ctypes.RTLD_GLOBAL)
    write("dense.mlir", FULL[0].mlir())
    run(
        translate,
        path("dense.mlir"),
        "--ftuner-to-library",
        f"--device={device}",
        "-o",
        path("libdense.so"),
    )
    dense = ctypes.CDLL(path("libdense.so"))
    run(
        translate,
        path("dense.mlir"),
        "--ftuner-to-manifest",
        f"--device={device}",
        "-o",
        path("dense.json"),
    )
    with open(path("dense.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    run(
        "c++",
        "-O2",
        "-std=c++17",
        "-shared",
        "-fPIC",
        write("hand.cpp", by_hand(manifest)),
        "-o",
        path("libhand.so"),
    )
    hand = ctypes.CDLL(path("libhand.so"))
    run(
        "cc",
        "-O2",
        "-shared",
        "-fPIC",
        os.path.join(GPU, "ftuner_bench", "launch_loop.c"),
        "-ldl",
        "-o",
        path("loop.so"),
    )
    loop = ctypes.CDLL(path("loop.so"))
    loop.ftuner_bench_call.restype = ctypes.c_double
    functions = {
        "nothing": hand.nothing,
        "FTuner": dense.dense,
        "switch": hand.by_switch,
        "std::map": hand.by_map,
    }
    return runtime, functions, loop, manifest


def launched_blocks(runtime, function, size):
    """Blocks of one call: every way to dispatch must launch as many."""
    runtime.launched_blocks.restype = ctypes.c_int64
    before = runtime.launched_blocks()
    code = function(*[ctypes.c_void_p(4096)] * 3, ctypes.c_int64(size), None, None)
    if code != 0:
        sys.exit(f"size {size}: code {code}")
    return runtime.launched_blocks() - before


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--repeat", type=int, default=101)
    parser.add_argument("--json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        runtime, functions, loop, manifest = build(
            folder, os.path.join(options.bin_dir, "ftuner-translate"), options.device
        )
        for size in range(1, 129):
            counts = {
                name: launched_blocks(runtime, function, size)
                for name, function in functions.items()
                if name != "nothing"
            }
            if len(set(counts.values())) != 1:
                sys.exit(f"size {size}: expected equally many blocks, but got {counts}")
        shuffled = list(range(1, 129)) * 8
        random.Random(1).shuffle(shuffled)
        orders = {"one size": [53], "in turn": list(range(1, 129)), "random": shuffled}
        times = {order: {name: [] for name in functions} for order in orders}
        for _ in range(options.repeat):
            for order, sizes in orders.items():
                array = (ctypes.c_int64 * len(sizes))(*sizes)
                for name, function in functions.items():
                    times[order][name].append(
                        loop.ftuner_bench_call(
                            function,
                            *[ctypes.c_void_p(4096)] * 3,
                            array,
                            ctypes.c_int32(len(sizes)),
                            ctypes.c_int32(20480 // len(sizes)),
                            None,
                            None,
                        )
                    )
    kernels = len(manifest["kernels"])
    entries = len(manifest["workloads"][0]["dispatch"])
    print(
        f"Dense (T, 2304, 768) for {options.device}: {kernels} kernels, {entries} intervals; "
        "nanoseconds of a call, median (least)"
    )
    print(f"{'sizes':10}" + "".join(f"{name:>16}" for name in functions))
    medians = {}
    for order, found in times.items():
        medians[order] = {name: statistics.median(values) for name, values in found.items()}
        print(
            f"{order:10}"
            + "".join(f"{f'{statistics.median(v):.1f} ({min(v):.1f})':>16}" for v in found.values())
        )
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "nanoseconds": medians}, file, indent=2)


if __name__ == "__main__":
    main()
