#!/usr/bin/env python3
"""FTuner's passes in somebody else's compiler: examples/embedding.

Builds the example against an installation with the compiler's libraries, compares
what it compiles with ftuner-opt, and adds FTuner as a subproject. There only a part
is built, unless --subproject asks for the whole example, with MLIR's shared library
and with its static ones.
"""

import os
import shutil
import subprocess

import harness

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
EXAMPLE = os.path.join(ROOT, "examples", "embedding")

# A package of MLIR that is too old for FTuner's libraries.
OTHER_MLIR = """
set(LLVM_VERSION_MAJOR 21)
set(LLVM_PACKAGE_VERSION 21.1.0)
set(LLVM_DIR ${CMAKE_CURRENT_LIST_DIR})
"""


def run(*command, fails=False):
    """Runs a command and returns what it printed; raises unless it ends as told."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    if (result.returncode != 0) != fails:
        raise RuntimeError(
            f"{' '.join(command)}:\n{result.stdout[-2000:]}\n{result.stderr[-2000:]}"
        )
    return result.stdout + result.stderr


def configure(build, *options, source=EXAMPLE, fails=False):
    return run("cmake", "-S", source, "-B", build, "-G", "Ninja", *options, fails=fails)


def check_program(h, build):
    """The example's pipeline is FTuner's, with its own pass in between."""
    problems = []
    program = os.path.join(build, "example-opt")
    opt = os.path.join(h.bin_dir, "ftuner-opt")
    for name, device in (("dense", "h200"), ("attention", "a100")):
        source = os.path.join(ROOT, "examples", f"{name}.mlir")
        ours, theirs = h.path(f"{name}.ours.mlir"), h.path(f"{name}.theirs.mlir")
        run(
            opt,
            source,
            "--canonicalize",
            "--cse",
            f"--ftuner-compile=device={device} max-kernels=2",
            "-o",
            ours,
        )
        printed = run(
            program, source, f"--example-compile=device={device} max-kernels=2", "-o", theirs
        )
        expected = "1 workloads" if name == "dense" else "2 workloads"
        if expected not in printed:
            problems.append(f"{name}: expected '{expected}', but got {printed[:300]}")
        with open(ours) as a, open(theirs) as b:
            if a.read() != b.read():
                problems.append(f"{name}: another module than ftuner-opt's")
    printed = run(
        program,
        os.path.join(ROOT, "examples", "dense.mlir"),
        "--example-compile=device=none",
        fails=True,
    )
    if "error: " not in printed or "none" not in printed:
        problems.append(f"unknown device: {printed[:300]}")
    return problems


def check_installed(h):
    prefix, build = h.path("prefix"), h.path("installed")
    tree = os.path.join(h.bin_dir, "..")
    run("cmake", "--install", tree, "--prefix", prefix)
    # A package without its compiler says how to get it.
    printed = " ".join(
        configure(h.path("none"), f"-DCMAKE_PREFIX_PATH={prefix}", fails=True).split()
    )
    problems = []
    if "--component compiler" not in printed:
        problems.append(f"without the component: {printed[-600:]}")
    run("cmake", "--install", tree, "--prefix", prefix, "--component", "compiler")
    for folder, _, names in os.walk(os.path.join(prefix, "lib", "cmake")):
        for name in names:
            with open(os.path.join(folder, name)) as file:
                if ROOT in file.read():
                    problems.append(f"{name} names the sources' folder")

    other = h.path("other")
    os.mkdir(other)
    with open(os.path.join(other, "MLIRConfig.cmake"), "w") as file:
        file.write(OTHER_MLIR)
    printed = " ".join(
        configure(
            h.path("old"), f"-DCMAKE_PREFIX_PATH={prefix}", f"-DMLIR_DIR={other}", fails=True
        ).split()
    )
    if "was built with LLVM 22" not in printed or "21.1.0" not in printed:
        problems.append(f"with another LLVM: {printed[-600:]}")

    # Elsewhere than in FTuner's sources, as a user's project is.
    source = h.path("project")
    shutil.copytree(EXAMPLE, source)
    configure(build, f"-DCMAKE_PREFIX_PATH={prefix}", source=source)
    run("cmake", "--build", build)
    return problems + check_program(h, build)


def check_subproject(h, is_whole):
    """FTuner's folder in a project: it adds targets there, and neither tests nor files of an installation."""
    problems = []
    if not is_whole:
        build = h.path("subproject")
        configure(build, f"-DFTUNER_SOURCE_DIR={ROOT}")
        run("cmake", "--build", build, "--target", "FTunerUKernelIncGen", "FTunerDevice")
        # Every rule and file that the program needs is there.
        run("ninja", "-C", build, "-n", "example-opt")
        if "Total Tests: 0" not in run("ctest", "--test-dir", build, "-N"):
            problems.append("FTuner's tests are among the project's")
        run(
            "cmake",
            "-P",
            os.path.join(build, "cmake_install.cmake"),
            f"-DCMAKE_INSTALL_PREFIX={h.path('empty')}",
        )
        if os.path.exists(h.path("empty")):
            problems.append("FTuner's files are among the project's")
        return problems
    for dylib in ("ON", "OFF"):
        build = h.path(f"subproject.{dylib}")
        configure(
            build,
            f"-DFTUNER_SOURCE_DIR={ROOT}",
            f"-DFTUNER_LINK_MLIR_DYLIB={dylib}",
            "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
        )
        run("cmake", "--build", build, "--target", "example-opt")
        problems += [
            f"FTUNER_LINK_MLIR_DYLIB={dylib}: {problem}" for problem in check_program(h, build)
        ]
        has_dylib = "libMLIR.so" in run("readelf", "-d", os.path.join(build, "example-opt"))
        if has_dylib != (dylib == "ON"):
            problems.append(f"FTUNER_LINK_MLIR_DYLIB={dylib} is not what is linked")
    return problems


def main():
    h, options = harness.start(
        __doc__,
        {
            "--subproject": {
                "action": "store_true",
                "help": "build FTuner twice as a subproject (half an hour)",
            }
        },
    )
    harness.cache_compilations(h.folder.name)
    if options.subproject:
        h.add("subproject, whole", check_subproject, h, True)
    else:
        h.add("installed", check_installed, h)
        h.add("subproject", check_subproject, h, False)
    h.finish()


if __name__ == "__main__":
    main()
