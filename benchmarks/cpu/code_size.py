#!/usr/bin/env python3
"""Measures how large compiled libraries are, by form of the kernels and number of families.

Dense (N = 2304, K = 768, bias and GELU) for M = T, T = 1…128, and for any M. The
peer is one kernel for each size, as compiling each shape by itself gives:
`--max-kernels` as large as the number of sizes, and, beside it, the number of
kernels times the mean size of one.

Columns: kernels, PTX and machine code (cubin) of all kernels, host code, kernels
for the emulator, the whole library with PTX only, in KiB. Writes a table, and
JSON with --json FILE.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

import workloads


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)}\n{done.stderr}")
    return done.stdout


def sections(path):
    """Bytes of each section of an ELF file, by name."""
    sizes = {}
    for line in run("readelf", "-SW", path).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 6 and fields[0].startswith("[") and fields[1].startswith("."):
            sizes[fields[1]] = sizes.get(fields[1], 0) + int(fields[5], 16)
    return sizes


def measure(options, folder, rows, max_kernels):
    translate = os.path.join(options.bin_dir, "ftuner-translate")
    source = workloads.write(os.path.join(folder, "dense.mlir"), rows, epilogue="bias_gelu")
    common = [source, f"--device={options.device}", f"--max-kernels={max_kernels}"]
    path = lambda name: os.path.join(folder, name)  # noqa: E731
    run(translate, *common, "--ftuner-to-ptx", "-o", path("dense.ptx"))
    manifest = json.loads(run(translate, *common, "--ftuner-to-manifest"))
    row = {"max_kernels": max_kernels, "kernels": len(manifest["kernels"]),
           "ptx": os.path.getsize(path("dense.ptx")), "manifest": len(json.dumps(manifest, separators=(",", ":")))}
    run(translate, *common, "--ftuner-to-library", "-o", path("libplain.so"))
    run(translate, *common, "--ftuner-to-library", "--emulator", "-o", path("libemulated.so"))
    row["host"] = sections(path("libplain.so"))[".text"]
    row["library"] = os.path.getsize(path("libplain.so"))
    row["emulator"] = os.path.getsize(path("libemulated.so")) - row["library"]
    if options.cubin:
        run(translate, *common, "--ftuner-to-library", f"--cubins={manifest['device']['chip']}", "-o", path("libcubin.so"))
        row["cubin"] = os.path.getsize(path("libcubin.so")) - row["library"]
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin-dir", default=workloads.BIN)
    parser.add_argument("--device", default="h200")
    parser.add_argument("--no-cubin", dest="cubin", action="store_false", help="for machines without ptxas")
    parser.add_argument("--json")
    options = parser.parse_args()
    table = []
    columns = ["kernels", "ptx", "cubin", "host", "emulator", "library"]
    print(f"{'sizes':10} {'max-kernels':>11} " + " ".join(f"{name:>9}" for name in columns))
    with tempfile.TemporaryDirectory() as folder:
        for label, rows, limits in [("T = 1…128", "#ukernel.range<1 to 128>", (2, 8, 16, 128)),
                                    ("any", "#ukernel.range<1 to ?>", (2, 8, 16))]:
            for limit in limits:
                row = {"sizes": label, **measure(options, folder, rows, limit)}
                table.append(row)
                cells = [f"{row['kernels']:9}"] + [f"{row[name] / 1024:9.1f}" if name in row else f"{'-':>9}" for name in columns[1:]]
                print(f"{label:10} {limit:11} " + " ".join(cells), flush=True)
    sixteen = next(row for row in table if row["max_kernels"] == 16)
    print(f"128 kernels, one for each size, of {sixteen['ptx'] / sixteen['kernels'] / 1024:.1f} KiB of PTX each: "
          f"{128 * sixteen['ptx'] / sixteen['kernels'] / 1024:.0f} KiB")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": options.device, "rows": table}, file, indent=2)


if __name__ == "__main__":
    main()
