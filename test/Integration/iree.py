#!/usr/bin/env python3
"""Modules for IREE: compiled by iree-compile, and run by IREE's own CUDA runtime without a GPU.

The driver is the one over the emulator (lib/CudaEmulator). Results at random sizes of the range and beyond, with fresh
random data, against NumPy in float64; which kernels are launched, against what the plan chooses. A module with a
softmax, which IREE compiles for itself, is compiled alone: nothing here runs IREE's own kernels.
"""

import json
import os
import subprocess
import sys
import sysconfig

import harness

HEAD = "module attributes {ukernel.symbols = {T = #ukernel.range<1 to 128>}}"

DENSE = HEAD + """ {
  func.func @dense(%x: tensor<?x96xf32> {ukernel.shape = ["T", 96]}, %w: tensor<96x160xf32>, %b: tensor<160xf32>, %s: f32) -> tensor<?x160xf32> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x96xf32>
    %e = tensor.empty(%t) : tensor<?x160xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    %p = linalg.matmul ins(%x, %w : tensor<?x96xf32>, tensor<96x160xf32>) outs(%f : tensor<?x160xf32>) -> tensor<?x160xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>, affine_map<(m, n) -> (m, n)>],
                         iterator_types = ["parallel", "parallel"]}
        ins(%p, %b : tensor<?x160xf32>, tensor<160xf32>) outs(%e : tensor<?x160xf32>) {
    ^bb0(%a: f32, %bias: f32, %old: f32):
      %scaled = arith.mulf %a, %s : f32
      %sum = arith.addf %scaled, %bias : f32
      %y = arith.maximumf %sum, %zero : f32
      linalg.yield %y : f32
    } -> tensor<?x160xf32>
    return %r : tensor<?x160xf32>
  }
}
"""

SCORES = HEAD.replace("T = ", "B = #ukernel.range<1 to 8>, T = ") + """ {
  func.func @scores(%q: tensor<?x?x24xf32> {ukernel.shape = ["B", "T", 24]}, %k: tensor<?x24x?xf32> {ukernel.shape = ["B", 24, "T"]}) -> tensor<?x?x?xf32> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %b = tensor.dim %q, %c0 : tensor<?x?x24xf32>
    %t = tensor.dim %q, %c1 : tensor<?x?x24xf32>
    %e = tensor.empty(%b, %t, %t) : tensor<?x?x?xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    %r = linalg.batch_matmul ins(%q, %k : tensor<?x?x24xf32>, tensor<?x24x?xf32>) outs(%f : tensor<?x?x?xf32>) -> tensor<?x?x?xf32>
    return %r : tensor<?x?x?xf32>
  }
}
"""

PROJECTION = HEAD + """ {
  func.func @projection(%x: tensor<?x256xf16> {ukernel.shape = ["T", 256]}, %w: tensor<192x256xf16>) -> tensor<?x192xf16> {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f16
    %t = tensor.dim %x, %c0 : tensor<?x256xf16>
    %e = tensor.empty(%t) : tensor<?x192xf16>
    %f = linalg.fill ins(%zero : f16) outs(%e : tensor<?x192xf16>) -> tensor<?x192xf16>
    %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x256xf16>, tensor<192x256xf16>) outs(%f : tensor<?x192xf16>) -> tensor<?x192xf16>
    return %r : tensor<?x192xf16>
  }
}
"""

# IREE's own phase; `util.assume.int` says the range.
PHASES = """
func.func @phases(%x: tensor<?x64xf32>, %w: tensor<64x96xf32>) -> tensor<?x96xf32> {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %d = tensor.dim %x, %c0 : tensor<?x64xf32>
  %t = util.assume.int %d<umin = 1, umax = 128> : index
  %e = tensor.empty(%t) : tensor<?x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
  %r = linalg.matmul ins(%x, %w : tensor<?x64xf32>, tensor<64x96xf32>) outs(%f : tensor<?x96xf32>) -> tensor<?x96xf32>
  return %r : tensor<?x96xf32>
}
"""

MIXED = DENSE.replace("return %r", """%z = linalg.softmax dimension(1) ins(%r : tensor<?x160xf32>) outs(%e : tensor<?x160xf32>) -> tensor<?x160xf32>
    return %z""")

RUN = r'''
import json, sys
import numpy as np
import iree.runtime as runtime

path, name, seed, sizes = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])
rng = np.random.default_rng(seed)
module = runtime.load_vm_flatbuffer_file(path, driver="cuda")


def normal(*shape):
    return rng.standard_normal(shape)


for T in sizes:
    if name == "dense":
        x, w, b = (a.astype(np.float32) for a in (normal(T, 96), normal(96, 160), normal(160)))
        arguments, expected = (x, w, b, 0.75), np.maximum(0.75 * (x.astype(np.float64) @ w) + b, 0)
    elif name == "scores":
        q, k = normal(3, T, 24).astype(np.float32), normal(3, 24, T).astype(np.float32)
        arguments, expected = (q, k), q.astype(np.float64) @ k
    elif name == "projection":
        x, w = normal(T, 256).astype(np.float16), normal(192, 256).astype(np.float16)
        arguments, expected = (x, w), x.astype(np.float64) @ w.astype(np.float64).T
    else:
        x, w = normal(T, 64).astype(np.float32), normal(64, 96).astype(np.float32)
        arguments, expected = (x, w), x.astype(np.float64) @ w
    result = getattr(module, name)(*arguments).to_host()
    error = np.linalg.norm(result - expected) / max(np.linalg.norm(expected), 1e-30)
    print(json.dumps({"size": T, "shape": list(result.shape), "wanted": list(expected.shape), "error": float(error)}))
'''

TOLERANCE = {"dense": 2e-6, "scores": 2e-6, "projection": 5e-4, "phases": 2e-6}
#: Those of aligned rows and others, and beyond the range.
SIZES = (1, 2, 7, 16, 53, 64, 100, 127, 128, 129, 200)


def program(name):
    return os.path.join(sysconfig.get_path("scripts"), name)


def run(command, **arguments):
    return subprocess.run(command, capture_output=True, text=True, **arguments)


def compile_module(tests, name, source, phase=None):
    """Paths of the module for IREE's runtime and of the kernels for the emulator; problems."""
    path = tests.write(f"{name}.mlir", source)
    target = ["--iree-hal-target-device=cuda", "--iree-cuda-target=sm_89"]
    if phase:
        before = tests.path(f"{name}.{phase}.mlir")
        answer = run([program("iree-compile"), path, *target, f"--compile-to={phase}", "--mlir-print-op-generic", "-o", before])
        if answer.returncode != 0:
            return None, None, [f"iree-compile --compile-to={phase}: {answer.stderr}"]
        path, target = before, [*target, f"--compile-from={phase}"]
    output, kernels = tests.path(f"{name}.iree.mlir"), tests.path(f"lib{name}.so")
    answer = tests.tool("ftuner-translate", path, "--ftuner-to-iree", "--device=h200", "-o", output, f"--emulated-kernels={kernels}")
    if answer.returncode != 0:
        return None, None, [answer.stderr]
    compiled = tests.path(f"{name}.vmfb")
    answer = run([program("iree-compile"), output, *target, "-o", compiled])
    if answer.returncode != 0:
        return None, None, [f"iree-compile: {answer.stderr[:2000]}"]
    return compiled, kernels, []


def check(tests, options, name, source, phase=None):
    compiled, kernels, problems = compile_module(tests, name, source, phase)
    if problems:
        return problems
    libraries = os.path.join(options.bin_dir, "..", "lib")
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(libraries, "cuda-emulator"), "FTRT_TRACE": "1",
                   "FTRT_EMULATED_LIBRARIES": kernels}
    seed = harness.next_seed()
    answer = run([sys.executable, "-c", RUN, compiled, name, str(seed), json.dumps(SIZES)], env=environment)
    if answer.returncode != 0:
        return [f"seed {seed}: {answer.stderr[-2000:]}"]
    rows = [json.loads(line) for line in answer.stdout.splitlines()]
    if [row["size"] for row in rows] != list(SIZES):
        problems.append(f"expected sizes {SIZES}, but got {rows}")
    for row in rows:
        if row["shape"] != row["wanted"] or not row["error"] <= TOLERANCE[name]:
            problems.append(f"seed {seed}: {row}")
    launched = [line.split()[1].rstrip(":") for line in answer.stderr.splitlines() if line.startswith("launch ")]
    if len(launched) != len(SIZES):
        problems.append(f"expected a launch for each size, but got {launched}")
    if phase is None:
        problems += check_choice(tests, name, source, launched)
    tests.describe(f"{name}, {phase}" if phase else name, f"{len(SIZES)} sizes by {len(set(launched))} kernels, error up to {max(row['error'] for row in rows):.1e}")
    return problems


def check_choice(tests, name, source, launched):
    """Each size runs by the family that the plan has for it; rows that are not aligned by one for those."""
    answer = tests.tool("ftuner-translate", tests.write(f"{name}.mlir", source), "--ftuner-to-manifest", "--device=h200",
                        "--split-k=false")
    if answer.returncode != 0:
        return [answer.stderr]
    (plan,) = json.loads(answer.stdout)["workloads"]
    problems = []
    for size, kernel in zip(SIZES, launched):
        if name == "scores" and size % 4 != 0:
            continue
        axis = 0
        family = next((entry["family"] for entry in plan["dispatch"]
                       if entry["box"][axis]["min"] <= size and size <= (entry["box"][axis]["max"] or size)),
                      plan["general_family"])
        if kernel.rsplit("_k", 1)[1] != str(family):
            problems.append(f"T = {size}: expected family {family}, but got {kernel}")
    return problems


def check_mixed(tests):
    compiled, _, problems = compile_module(tests, "mixed", MIXED)
    return problems or ([] if os.path.getsize(compiled) else ["an empty module"])


def check_driver(tests, options):
    """What is missing is told in words."""
    compiled, _, problems = compile_module(tests, "phases", PHASES, "preprocessing")
    if problems:
        return problems
    libraries = os.path.join(options.bin_dir, "..", "lib")
    for given, words in (("", "no library of FTRT_EMULATED_LIBRARIES has the kernel"),
                         ("/nonexistent/libx.so", "FTRT_EMULATED_LIBRARIES: /nonexistent/libx.so"),
                         (os.path.join(libraries, "libftrt.so.1"), "expected a library of FTuner's")):
        environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(libraries, "cuda-emulator"), "FTRT_EMULATED_LIBRARIES": given}
        answer = run([sys.executable, "-c", RUN, compiled, "phases", "1", "[5]"], env=environment)
        if answer.returncode == 0 or words not in answer.stderr:
            problems.append(f"'{given}': expected '{words}', but got {answer.returncode}: {answer.stderr[-500:]}")
    return problems


def main():
    tests, options = harness.start(__doc__)
    if not os.path.exists(program("iree-compile")):
        sys.exit("error: no iree-compile found: run tools/setup.sh")
    tests.add("dense", check, tests, options, "dense", DENSE)
    tests.add("scores", check, tests, options, "scores", SCORES)
    tests.add("projection", check, tests, options, "projection", PROJECTION)
    for phase in ("input", "preprocessing"):
        tests.add(f"phases, {phase}", check, tests, options, "phases", PHASES, phase)
    tests.add("mixed", check_mixed, tests)
    tests.add("driver", check_driver, tests, options)
    tests.finish()


if __name__ == "__main__":
    main()
