#!/usr/bin/env python3
"""Libraries with kernels of one architecture alone, and others in their place, on devices of several.

The driver is the one over the emulator (lib/CudaEmulator), which shows a device of any compute capability and refuses
images for others. Which kernels are launched, against what the manifest says of each image; results with fresh random
data, against NumPy in float64.
"""

import ctypes
import json
import os
import re
import subprocess
import sys

import numpy as np

import harness
import library

SOURCE = os.path.join(os.path.dirname(__file__), "..", "Target", "Inputs", "images.mlir")
COMPILED = ["--device=h100", "--paths=simt,mma,wgmma", "--max-kernels=2"]
# Sizes of the functions, the second one's product in slices; those of the suite are in few blocks.
SIZES = (
    {"f": (1, 33, 200), "slices": (33, 300)}
    if harness.SCALE > 1
    else {"f": (1, 33), "slices": (33,)}
)
TOLERANCE = 1e-5
FTRT_ERROR_INVALID_ARGUMENT, FTRT_ERROR_HOST, FTRT_ERROR_NO_IMAGE = 1, 4, 7

# A runtime as it was before modules had two images.
OLD_RUNTIME = """
#include <stdint.h>
#include <string.h>
static char text[1024];
int32_t ftrt_fail(const char *message) { strncpy(text, message, sizeof(text) - 1); return 4; }
const char *ftrt_last_error(void) { return text; }
void *ftrt_emulator_stream(void) { return text; }
int32_t ftrt_launch(void *kernel, uint32_t grid, uint32_t block, uint32_t bytes, void *stream, void **parameters) {
  return ftrt_fail("a launch");
}
"""


class Images(library.Library):
    """The functions of images.mlir, on a GPU or in the emulator."""

    def __init__(self, path, runtime, is_on_gpu):
        super().__init__(path, runtime)
        self.stream = None if is_on_gpu else ctypes.c_void_p(runtime.ftrt_emulator_stream())

    def run(self, name, a, b):
        """The results for factors as the bits of bf16. The memory of the device is the host's."""
        size = ctypes.c_int64(len(a))
        get_workspace = getattr(self.library, f"{name}_workspace_size")
        get_workspace.restype = ctypes.c_int64
        shapes = [(len(a), b.shape[1]), (len(a),)][: len(self.functions[name]["results"])]
        buffers = [
            library.Guarded(bytes)
            for bytes in (
                a.nbytes,
                b.nbytes,
                *(4 * int(np.prod(shape)) for shape in shapes),
                get_workspace(size),
            )
        ]
        for buffer, value in zip(buffers, (a, b)):
            buffer.view(value.dtype, value.shape)[...] = value
        *pointers, workspace = [ctypes.c_void_p(buffer.address) for buffer in buffers]
        self.check(getattr(self.library, name)(*pointers, size, workspace, self.stream))
        self.check(self.runtime.ftrt_stream_synchronize(self.stream))
        if not all(buffer.is_intact() for buffer in buffers):
            raise RuntimeError("something was written outside of a buffer")
        return [buffer.view(np.float32, shape) for buffer, shape in zip(buffers[2:], shapes)]


def run_child(bin_dir, path, where, has_prepared, seed):
    """Runs the library in this process; writes errors of the results as JSON, and failures of the runtime in words."""
    runtime = library.open_runtime(bin_dir)
    is_on_gpu = where == "gpu"
    if is_on_gpu and runtime.ftrt_device_select(0):
        sys.exit(runtime.ftrt_last_error().decode())
    opened = Images(path, runtime, is_on_gpu)
    rng = np.random.default_rng(seed)

    def bf16(*shape):
        return (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(
            np.uint16
        )

    def value(bits):
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)

    errors = []
    try:
        if has_prepared:
            opened.check(runtime.ftrt_prepare(ctypes.byref(opened.module), opened.stream))
        for name, sizes in SIZES.items():
            b = bf16(*opened.functions[name]["arguments"][1]["shape"])
            for size in sizes:
                a = bf16(size, len(b))
                product, *sums = opened.run(name, a, b)
                expected = value(a) @ value(b)
                errors.append(float(np.linalg.norm(product - expected) / np.linalg.norm(expected)))
                # Sums of products of either sign cancel.
                errors += [
                    float(
                        np.linalg.norm(of_rows - product.astype(np.float64).sum(1))
                        / np.linalg.norm(expected)
                    )
                    for of_rows in sums
                ]
    except RuntimeError as error:
        sys.exit(str(error))
    print(json.dumps(errors))


def run(tests, path, where, *, has_prepared=False, seed=None, **environment):
    """The errors of the results and the kernels that were launched; or what failed, in words."""
    folder = os.path.join(tests.bin_dir, "..", "lib", "cuda-emulator")
    environment = {
        "FTRT_CUDA_DRIVER": os.path.join(folder, "libcuda.so.1"),
        "FTRT_EMULATED_LIBRARIES": path,
        "FTRT_TRACE": "1",
        **environment,
    }
    child = subprocess.run(
        [
            sys.executable,
            __file__,
            "--bin-dir",
            tests.bin_dir,
            "--child",
            json.dumps([path, where, has_prepared, seed or harness.next_seed()]),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    if child.returncode != 0:
        return None, [], child.stderr
    return json.loads(child.stdout), re.findall(r"launch (\w+):", child.stderr), ""


def build(tests, name, *options, source=SOURCE):
    path = tests.path(f"lib{name}.so")
    answer = tests.tool(
        "ftuner-translate", source, "--ftuner-to-library", *COMPILED, *options, "-o", path
    )
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    return path


def kernels_of(path, runtime):
    """The kernels of each image by its chip."""
    manifest = json.loads(library.Library(path, runtime).module.manifest)
    return {
        chip: {kernel["entry"] for kernel in manifest["kernels"] if chip in kernel["chips"]}
        for chip in (manifest["device"]["chip"], manifest["device"]["portable_chip"])
    }


def check_results(problems, label, errors):
    if len(errors) != 2 * len(SIZES["f"]) + len(SIZES["slices"]) or not max(errors) <= TOLERANCE:
        problems.append(f"{label}: errors {errors}")


def check_devices(tests, path, images):
    """Each device takes its image, prepared or not; the exact one has kernels of its own."""
    problems = []
    alone = {
        chip: images[chip] - images[other]
        for chip, other in (("sm_90a", "sm_90"), ("sm_90", "sm_90a"))
    }
    if not all(alone.values()) or not all(
        any(name.endswith("_sum") for name in image) for image in images.values()
    ):
        return [
            f"expected kernels in one image alone, and one that adds up slices in each, but got {images}"
        ]
    found = []
    for capability, chip in (("9.0", "sm_90a"), ("10.0", "sm_90"), ("12.0", "sm_90")):
        # The second device with the portable image takes the same way there.
        for has_prepared in (False, True) if capability != "12.0" or harness.SCALE > 1 else (True,):
            label = f"{capability}{', prepared' * has_prepared}"
            errors, launched, text = run(
                tests, path, "gpu", has_prepared=has_prepared, FTRT_EMULATED_CAPABILITY=capability
            )
            if errors is None:
                problems.append(f"{label}: {text}")
                continue
            check_results(problems, label, errors)
            if not set(launched) <= images[chip] or not set(launched) & alone[chip]:
                problems.append(f"{label}: expected kernels for {chip}, but got {launched}")
            found.append(f"{label}: {chip}, error up to {max(errors):.1e}")
    tests.describe("devices", "; ".join(found))
    return problems


def check_no_image(tests, path):
    problems = []
    for has_prepared in (False, True):
        errors, _, text = run(
            tests, path, "gpu", has_prepared=has_prepared, FTRT_EMULATED_CAPABILITY="8.0"
        )
        wanted = (
            f"code {FTRT_ERROR_NO_IMAGE}: module 'images': expected a cubin for sm_80 or PTX for at most sm_80, for "
            "device 0 (FTuner emulator), but the module holds PTX for sm_90a, PTX for sm_90 and a host image"
        )
        if errors is not None or wanted not in text:
            problems.append(f"expected '{wanted}', but got {errors} {text}")
    errors, _, text = run(tests, path, "gpu", FTRT_EMULATED_CAPABILITY="ten")
    wanted = "FTRT_EMULATED_CAPABILITY: expected a compute capability such as 10.0, but got 'ten'"
    if errors is not None or wanted not in text:
        problems.append(f"expected '{wanted}', but got {errors} {text}")
    return problems


def check_driver(tests):
    """The driver refuses what devices refuse, whatever the runtime takes."""
    problems = []
    driver = os.path.join(tests.bin_dir, "..", "lib", "cuda-emulator", "libcuda.so.1")
    program = """
import ctypes, os, sys
os.environ.pop("FTRT_EMULATED_LIBRARIES", None)
driver = ctypes.CDLL(sys.argv[1])
module = ctypes.c_void_p()
for path in sys.argv[2:]:
    print(driver.cuInit(0), driver.cuModuleLoadData(ctypes.byref(module), open(path, "rb").read() + b"\\0"))
"""
    capabilities = ("8.0", "8.6", "9.0", "10.0", "10.3", "12.0")
    fits = {
        "sm_80": capabilities,
        "sm_86": capabilities[1:],
        "sm_90": capabilities[2:],
        "sm_90a": ("9.0",),
        "sm_100": capabilities[3:],
        "sm_100a": ("10.0",),
        "sm_100f": ("10.0", "10.3"),
    }
    sources = [
        tests.write(f"{target}.ptx", f"//\n.version 8.8\n.target {target}\n.address_size 64\n")
        for target in fits
    ]
    for capability in capabilities:
        child = subprocess.run(
            [sys.executable, "-c", program, driver, *sources],
            capture_output=True,
            text=True,
            env={**os.environ, "FTRT_EMULATED_CAPABILITY": capability},
        )
        wanted = ["0 0" if capability in devices else "0 209" for devices in fits.values()]
        if child.stdout.splitlines() != wanted:
            problems.append(
                f"PTX for {', '.join(fits)} on {capability}: expected {wanted}, but got {child.stdout} {child.stderr}"
            )
    return problems


def check_emulator(tests, path, images):
    """The emulator has no architecture: it takes the exact image, unless it is told to take the other one."""
    problems, results = [], {}
    runtime_words = "FTRT_EMULATOR_IMAGE: expected 'exact' or 'portable', but got 'sm_90'"
    for image in ("", "exact", "portable"):
        errors, _, text = run(tests, path, "emulator", FTRT_EMULATOR_IMAGE=image)
        if errors is None:
            problems.append(f"{image}: {text}")
            continue
        check_results(problems, f"emulator, {image}", errors)
    errors, _, text = run(tests, path, "emulator", FTRT_EMULATOR_IMAGE="sm_90")
    if (
        errors is not None
        or f"code {FTRT_ERROR_INVALID_ARGUMENT}: module 'images': {runtime_words}" not in text
    ):
        problems.append(f"expected '{runtime_words}', but got {errors} {text}")
    # ftuner-run names what it launches.
    for image, chip in (("exact", "sm_90a"), ("portable", "sm_90")):
        answer = tests.tool(
            "ftuner-run",
            SOURCE,
            *COMPILED,
            "--function=f",
            "--args=33x256xbf16,256x1024xbf16",
            "--check",
            *harness.CHECKED,
            environment={"FTRT_EMULATOR_IMAGE": image},
        )
        report, problem = harness.report_of(answer)
        problems += problem
        results[image] = {launch["kernel"] for launch in report["launches"]} if report else set()
        if not results[image] or not results[image] <= images[chip]:
            problems.append(
                f"ftuner-run, {image}: expected kernels for {chip}, but got {results[image]}"
            )
    if results["exact"] == results["portable"]:
        problems.append(f"expected other kernels, but got {results}")
    return problems


def check_run_on_gpu(tests, path, images):
    """ftuner-run --executor=cuda gives the driver both images, too."""
    problems = []
    folder = os.path.join(tests.bin_dir, "..", "lib", "cuda-emulator")
    for capability, chip in (("9.0", "sm_90a"), ("10.0", "sm_90")):
        answer = tests.tool(
            "ftuner-run",
            SOURCE,
            *COMPILED,
            "--function=f",
            "--args=33x256xbf16,256x1024xbf16",
            "--executor=cuda",
            "--check",
            environment={
                "FTRT_CUDA_DRIVER": os.path.join(folder, "libcuda.so.1"),
                "FTRT_TRACE": "1",
                "FTRT_EMULATED_LIBRARIES": path,
                "FTRT_EMULATED_CAPABILITY": capability,
            },
        )
        launched = set(re.findall(r"launch (\w+):", answer.stderr))
        if answer.returncode != 0 or not launched or not launched <= images[chip]:
            problems.append(f"{capability}: {launched} {answer.stdout} {answer.stderr}")
    return problems


def check_old_runtime(tests, path):
    """Beside a runtime that lacks a function, the call fails in words; the loader ends nothing."""
    compiler = next(
        (
            name
            for name in ("cc", "gcc", "clang")
            if subprocess.run(["which", name], capture_output=True).returncode == 0
        ),
        None,
    )
    if not compiler:
        return []
    folder = tests.path("old")
    os.makedirs(folder, exist_ok=True)
    runtime = os.path.join(folder, "libftrt.so.1")
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-Wl,-soname,libftrt.so.1",
            "-o",
            runtime,
            tests.write("old.c", OLD_RUNTIME),
        ],
        check=True,
    )
    program = """
import ctypes, sys
runtime = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
runtime.ftrt_last_error.restype = ctypes.c_char_p
library = ctypes.CDLL(sys.argv[2])
memory = ctypes.create_string_buffer(1 << 20)
print(library.f(memory, memory, memory, memory, ctypes.c_int64(1), memory, None), runtime.ftrt_last_error().decode())
"""
    child = subprocess.run(
        [sys.executable, "-c", program, runtime, path], capture_output=True, text=True
    )
    wanted = f"{FTRT_ERROR_HOST} expected a libftrt.so.1 with the function 'ftrt_image_is_exact', but got an older one"
    return (
        []
        if child.stdout.startswith(wanted)
        else [f"expected '{wanted}', but got {child.stdout} {child.stderr}"]
    )


def main():
    if "--child" in sys.argv:
        bin_dir, arguments = sys.argv[sys.argv.index("--bin-dir") + 1], json.loads(sys.argv[-1])
        return run_child(bin_dir, *arguments)
    tests, _ = harness.start(__doc__)
    path = build(tests, "images", "--emulator")
    images = kernels_of(path, library.open_runtime(tests.bin_dir))
    tests.add("devices", check_devices, tests, path, images)
    tests.add("no image", check_no_image, tests, path)
    tests.add("driver", check_driver, tests)
    tests.add("emulator", check_emulator, tests, path, images)
    tests.add("ftuner-run on a GPU", check_run_on_gpu, tests, path, images)
    tests.add("old runtime", check_old_runtime, tests, path)
    return tests.finish()


if __name__ == "__main__":
    main()
