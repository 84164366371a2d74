#!/usr/bin/env python3
"""Measures how large compiled code is: libraries, PTX, cubins, host code, emulated kernels.

Dense (T, 2304, 768), compiled ahead of time, for more and more families
(--max-kernels) and for wider and wider ranges of T. Beside it, what a compiler of
static shapes would take: libraries of single sizes, added up.

Bytes: `host` is the machine code of the library (its .text), `PTX` and `cubin` are the
images, `emulated` is what --emulator adds to the library, `library` the whole file
without that.

Writes a table, and JSON with --json FILE. Without ptxas there are no cubins.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

import workloads

GPU = os.path.join(workloads.ROOT, "benchmarks", "gpu")
sys.path.insert(0, GPU)
from ftuner_bench.workloads import FULL

PROGRAM = """
import ctypes, json, os, sys
sys.path.insert(0, sys.argv[1])
from ftuner_bench.runtime import IMAGE_CUBIN, _Module
ctypes.CDLL(sys.argv[2], mode=ctypes.RTLD_GLOBAL)
module = _Module.in_dll(ctypes.CDLL(sys.argv[3]), "ftuner_module")
images = [module.images[i] for i in range(module.image_count)]
sizes = {kind: sum(i.bytes for i in images if i.kind == kind) for kind in (1, 2)}
print(json.dumps({"ptx": sizes[1], "cubin": sizes[2], "kernels": module.kernel_count}))
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def text_bytes(library):
    """Bytes of the section .text."""
    for line in run("readelf", "-SW", library).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] == ".text":
            return int(fields[5], 16)
    sys.exit(f"{library}: no .text")


def measure(options, folder, source, *flags):
    """Sizes of the library of a module, in bytes."""
    path, emulated = os.path.join(folder, "libdense.so"), os.path.join(folder, "libemulated.so")
    translate = os.path.join(options.bin_dir, "ftuner-translate")
    common = [translate, source, "--ftuner-to-library", f"--device={options.device}", *flags]
    run(*common, "--cubins=auto", "-o", path)
    run(*common, "-o", emulated + ".plain.so")
    run(*common, "--emulator", "-o", emulated)
    runtime = os.path.join(options.bin_dir, "..", "lib", "libftrt.so.1")
    # A separate process, since a library stays loaded, and the next one has its name.
    found = json.loads(run(sys.executable, "-c", PROGRAM, GPU, runtime, path))
    return {
        "kernels": found["kernels"],
        "host": text_bytes(path),
        "ptx": found["ptx"],
        "cubin": found["cubin"],
        "emulated": os.path.getsize(emulated) - os.path.getsize(emulated + ".plain.so"),
        "library": os.path.getsize(path),
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--families", default="1,2,4,8,16,32")
    parser.add_argument("--static-sizes", default="1,7,16,31,53,64,97,128")
    parser.add_argument("--json")
    options = parser.parse_args()
    if not shutil.which("ptxas"):
        print("no ptxas: no cubins")
    text, rows = FULL[0].mlir(), []
    columns = ("kernels", "host", "ptx", "cubin", "emulated", "library")

    def report(label, sizes):
        rows.append({"what": label, **sizes})
        print(f"{label:34}" + "".join(f"{sizes[column]:>11,}" for column in columns), flush=True)

    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "dense.mlir")

        def write(content):
            with open(source, "w", encoding="utf-8") as file:
                file.write(content)

        print(
            f"{'bytes, for ' + options.device:34}" + "".join(f"{column:>11}" for column in columns)
        )
        write(text)
        for count in options.families.split(","):
            report(
                f"T = 1…128, max-kernels {count}",
                measure(options, folder, source, f"--max-kernels={count}"),
            )
        for label, bounds in (
            ("T = 1…16", "1 to 16"),
            ("T = 1…1024", "1 to 1024"),
            ("any T", "1 to ?"),
        ):
            write(text.replace("#ukernel.range<1 to 128>", f"#ukernel.range<{bounds}>"))
            report(label, measure(options, folder, source))
        total = dict.fromkeys(columns, 0)
        sizes = options.static_sizes.split(",")
        for size in sizes:
            write(text.replace("#ukernel.range<1 to 128>", f"#ukernel.range<{size} to {size}>"))
            for column, value in measure(options, folder, source, "--max-kernels=2").items():
                total[column] += value
        report(f"{len(sizes)} sizes alone, added up", total)
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "rows": rows}, file, indent=2)


if __name__ == "__main__":
    main()
