#!/usr/bin/env python3
"""Measures the host's share of a call: checks, dispatch and parameters, in nanoseconds.

Compiles Dense (M = T, T = 1…128, N = 2304, K = 768, bias and GELU) to a library, links it
with a runtime whose launch does nothing, and calls it with equal and with random
sizes. Beside it, in the same program: a table written for this operator by hand,
a hash map from the size, and the launch alone (dispatch_time.cpp). Goal: 20 ns
for the dispatch, that is, beyond the launch.

Also says whether the compiled dispatch is a table look-up. Writes a table, and
JSON with --json FILE.
"""

import argparse
import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import workloads

# A runtime that launches nothing. The counter keeps the call from being a jump to `ret` that
# a processor might fuse with its neighbours.
RUNTIME = """
#include <FTuner/Runtime/ftrt.h>
static uint64_t launches;
int32_t ftrt_launch(ftrt_kernel *kernel, uint32_t grid_x, uint32_t block_x, uint32_t bytes,
                    void *stream, void **parameters) { ++launches; return 0; }
int32_t ftrt_fail(const char *message) { return 4; }
const char *ftrt_last_error(void) { return ""; }
"""


def run(*command):
    """Standard output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def peers_header(manifest):
    """C++ tables of what the manifest says each size is served by."""
    workload, = manifest["workloads"]
    entries = {kernel["entry"]: index for index, kernel in enumerate(manifest["kernels"])}
    sizes = workload["programs"]
    rows = []
    for program in sizes:
        family = workload["families"][program["family"]]
        kernel = manifest["kernels"][entries[family["kernel"]]]
        columns = -(-2304 // family["ukernels"][0]["shared_memory_tile"][1])
        rows.append(f"  {{{entries[family['kernel']]}, {sum(program['blocks']) * columns}u, {kernel['block'][0]}u, "
                    f"{kernel['dynamic_shared_memory_bytes']}u, {program['blocks'][0]}}},")
    return "\n".join([
        '#include "dense.h"',
        "struct Choice { int kernel; uint32_t blocks, threads, sharedBytes; int32_t firstBlocks; };",
        f"constexpr int kKernelCount = {len(entries)};",
        f"constexpr int64_t kFirstSize = {sizes[0]['size']}, kLastSize = {sizes[-1]['size']};",
        f"const Choice kChoices[] = {{\n" + "\n".join(rows) + "\n};", ""])


def dispatch_form(library):
    """How the function's machine code goes from the size to the case."""
    tool = shutil.which("llvm-objdump-22") or shutil.which("objdump")
    if tool is None:
        return "unknown (no objdump)"
    text = run(tool, "-d", "--no-show-raw-insn", library)
    code = re.search(r"<dense>:\n(.*?)(?:\n\n|\Z)", text, re.S)
    if code is None:
        return "unknown (function not found)"
    indirect = len(re.findall(r"\bjmpq?\s+\*", code.group(1)))
    return f"{indirect} indirect jump(s) through a table" if indirect else "no indirect jump"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--json")
    options = parser.parse_args()
    compiler = os.environ.get("CXX", "c++")
    include = os.path.join(workloads.ROOT, "include")
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)  # noqa: E731
        workloads.write(path("dense.mlir"), "#ukernel.range<1 to 128>", epilogue="bias_gelu")
        translate = os.path.join(options.bin_dir, "ftuner-translate")
        run(translate, path("dense.mlir"), "--ftuner-to-library", f"--device={options.device}", "-o", path("libdense.so"))
        manifest = json.loads(run(translate, path("dense.mlir"), "--ftuner-to-manifest", f"--device={options.device}"))
        with open(path("runtime.c"), "w", encoding="utf-8") as file:
            file.write(RUNTIME)
        run(os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", f"-I{include}", "-Wl,-soname,libftrt.so.1",
            path("runtime.c"), "-o", path("libftrt.so.1"))
        with open(path("peers.h"), "w", encoding="utf-8") as file:
            file.write(peers_header(manifest))
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dispatch_time.cpp")
        run(compiler, "-O2", "-std=c++17", f"-I{folder}", f"-I{include}", source, path("libdense.so"),
            path("libftrt.so.1"), f"-Wl,-rpath,{folder}", "-o", path("dispatch_time"))
        rows = list(csv.DictReader(io.StringIO(run(path("dispatch_time")))))
        form = dispatch_form(path("libdense.so"))
    launch = rows[0]
    print(f"{'call':10} {'equal sizes':>12} {'beyond launch':>14} {'random sizes':>13} {'beyond launch':>14}")
    for row in rows:
        equal, mixed = float(row["ns_equal_sizes"]), float(row["ns_random_sizes"])
        print(f"{row['call']:10} {equal:9.1f} ns {equal - float(launch['ns_equal_sizes']):11.1f} ns "
              f"{mixed:10.1f} ns {mixed - float(launch['ns_random_sizes']):11.1f} ns")
    print(f"dispatch of the library: {form}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "form": form, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main()
