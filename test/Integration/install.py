#!/usr/bin/env python3
"""FTuner as its users have it: installed, without its sources or build tree.

Installs it, then builds and runs the example with find_package(FTuner), a C
program that links an object file, and every header with strict compilers.
"""

import os
import re
import shutil
import subprocess

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# Functions with scalars of every type.
SCALARS = """
func.func @scalars(%a: tensor<?xf32>, %f16: f16, %bf16: bf16, %f64: f64, %i1: i1, %i8: i8, %i16: i16, %i64: i64,
                   %index: index) -> (tensor<?xf32>, tensor<f32>) {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %r = linalg.exp ins(%a : tensor<?xf32>) outs(%e : tensor<?xf32>) -> tensor<?xf32>
  %e0 = tensor.empty() : tensor<f32>
  %c1 = arith.constant 1.0 : f32
  %s = linalg.fill ins(%c1 : f32) outs(%e0 : tensor<f32>) -> tensor<f32>
  return %r, %s : tensor<?xf32>, tensor<f32>
}
func.func @"bad */ name \\\\ /* %s"(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.exp ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.tanh ins(%a : tensor<4xf32>) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}
"""

# A program in C on an object file that it links.
STATIC = r"""
#include <net.h>
#include <stdio.h>
int main(void) {
  float a[2 * 40], b[40 * 48], c[2 * 48];
  int64_t sizes[2];
  int i, j, k;
  for (i = 0; i < 2 * 40; ++i)
    a[i] = (float)(i % 7) - 3;
  for (i = 0; i < 40 * 48; ++i)
    b[i] = (float)(i % 5) - 2;
  if (matmul_result_sizes(2, sizes) || sizes[0] != 2 || sizes[1] != 48 ||
      matmul_workspace_size(2) != 0 ||
      ftrt_prepare(&net_module, ftrt_emulator_stream()) ||
      matmul(a, b, c, 2, 0, ftrt_emulator_stream())) {
    printf("%s\n", ftrt_last_error());
    return 1;
  }
  for (i = 0; i < 2; ++i)
    for (j = 0; j < 48; ++j) {
      float sum = 0;
      for (k = 0; k < 40; ++k)
        sum += a[i * 40 + k] * b[k * 48 + j];
      if (sum != c[i * 48 + j]) {
        printf("wrong\n");
        return 1;
      }
    }
  printf("right\n");
  return ftrt_release(&net_module);
}
"""

# What ftuner_add_library refuses, and the words that it finds.
BAD_CALLS = {
    "ftuner_add_library(m MLIR none.mlir DEVICE h200)": "cannot find",
    "ftuner_add_library(m MLIR dense.mlir)": "expected DEVICE",
    "ftuner_add_library(m DEVICE h200)": "expected MLIR",
    "ftuner_add_library(m-1 MLIR dense.mlir DEVICE h200)": "expected a C identifier",
    "ftuner_add_library(m MLIR dense.mlir DEVICE h200 FAST)": "unknown argument FAST",
}


def run(*command, **settings):
    """Runs a command; raises with its output where it fails."""
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, **settings)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}:\n{result.stdout}\n{result.stderr}")
    return result.stdout


def check_prefix(h, prefix):
    """What is installed, and no more."""
    problems = []
    found = {
        os.path.relpath(os.path.join(folder, name), prefix)
        for folder, _, names in os.walk(prefix)
        for name in names
    }
    for name in (
        "bin/ftuner-opt",
        "bin/ftuner-translate",
        "bin/ftuner-run",
        "lib/libftrt.so",
        "lib/libftrt.so.1",
        "lib/libftrt_emulator.so.1",
        "lib/FTunerPlugin.so",
        "include/FTuner/Runtime/ftrt.h",
        "share/doc/FTuner/LICENSE",
        "lib/cmake/FTuner/FTunerConfig.cmake",
    ):
        if name not in found:
            problems.append(f"expected {name}")
    problems += [
        f"expected no {name}" for name in found if name.endswith(".a") or "FakeDriver" in name
    ]
    for name in ("libftrt.so.1", "libftrt_emulator.so.1"):
        needed = run("readelf", "-d", os.path.join(prefix, "lib", name))
        problems += [
            f"{name} needs {library}"
            for library in re.findall(r"NEEDED.*\[(.*)\]", needed)
            if not re.match(r"(lib(c|m|dl|pthread|rt|stdc\+\+|gcc_s)|ld-linux-x86-64)\.so", library)
        ]
    # The package is for any machine, and asks for no other.
    package = os.path.join(prefix, "lib", "cmake", "FTuner")
    for name in sorted(os.listdir(package)):
        with open(os.path.join(package, name)) as file:
            text = file.read()
        for word in (
            "find_package(MLIR",
            "find_package(LLVM",
            "find_dependency(",
            os.path.realpath(ROOT),
            prefix,
        ):
            if word in text:
                problems.append(f"{name} has '{word}'")
    return problems


def configure(source, build, prefix, *options):
    return run(
        "cmake",
        "-S",
        source,
        "-B",
        build,
        f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON",
        "-DCMAKE_DISABLE_FIND_PACKAGE_MLIR=ON",
        *options,
    )


def check_example(h, prefix):
    """The example builds against the prefix, runs, and follows its MLIR."""
    problems = []
    shutil.copytree(os.path.join(ROOT, "examples"), h.path("examples"))
    source, build = h.path("examples/cpp"), h.path("example")
    configure(source, build, prefix)
    run("cmake", "--build", build)
    program = os.path.join(build, "dense_example")
    printed = run(program, "0", "1", "53", "200")
    if printed.count("relative error") != 4:
        problems.append(f"unexpected output: {printed}")
    bad = subprocess.run(
        [program, "--cuda"],
        capture_output=True,
        text=True,
        env={**os.environ, "FTRT_CUDA_DRIVER": "/nonexistent/libcuda.so"},
    )
    if bad.returncode != 1 or "error: selecting a GPU: no CUDA driver" not in bad.stderr:
        problems.append(f"without a driver: code {bad.returncode}, {bad.stderr}")
    # Another function in the file is one in the library and in the header.
    header = os.path.join(build, "dense.ftuner", "dense.h")
    with open(h.path("examples/dense.mlir")) as file:
        text = file.read()
    with open(h.path("examples/dense.mlir"), "w") as file:
        file.write(text.replace("@dense(", "@renamed("))
    run("cmake", "--build", build, "--target", "dense_compilation")
    with open(header) as file:
        if "renamed_result_sizes" not in file.read():
            problems.append("the library was not compiled anew")
    return problems


def check_bad_calls(h, prefix):
    problems = []
    for index, (call, words) in enumerate(BAD_CALLS.items()):
        source = h.path(f"bad{index}")
        os.mkdir(source)
        shutil.copy(os.path.join(ROOT, "examples", "dense.mlir"), source)
        with open(os.path.join(source, "CMakeLists.txt"), "w") as file:
            file.write(
                f"cmake_minimum_required(VERSION 3.20)\nproject(bad C)\nfind_package(FTuner REQUIRED)\n{call}\n"
            )
        try:
            configure(source, os.path.join(source, "build"), prefix)
            problems.append(f"expected '{call}' to fail")
        except RuntimeError as error:
            if words not in " ".join(str(error).split()):
                problems.append(f"expected '{words}' from '{call}', but got {error}")
    return problems


def translate(prefix, source, *options):
    run(
        os.path.join(prefix, "bin", "ftuner-translate"),
        source,
        "--ftuner-to-library",
        "--device=h200",
        *options,
    )


def check_indirect(h, prefix):
    """A program that names the runtime nowhere, and a path with odd characters."""
    source = h.path("in 50% a%2Fdirect")
    os.mkdir(source)
    shutil.copy(os.path.join(ROOT, "test", "tools", "Inputs", "matmul.mlir"), source)
    with open(os.path.join(source, "main.c"), "w") as file:
        file.write(
            "#include <net.h>\nint main(void) { return net_module.image_count == 1 &&"
            " matmul_workspace_size(3) == 0 ? 0 : 1; }\n"
        )
    with open(os.path.join(source, "CMakeLists.txt"), "w") as file:
        file.write(
            "cmake_minimum_required(VERSION 3.20)\nproject(indirect C)\nfind_package(FTuner REQUIRED)\n"
            "ftuner_add_library(net MLIR matmul.mlir DEVICE h200 HOST_CPU native OPTIONS --max-kernels=2"
            " --pool=exact)\nadd_executable(main main.c)\ntarget_link_libraries(main net)\n"
            "target_link_options(main PRIVATE LINKER:--as-needed)\n"
        )
    build = os.path.join(source, "build")
    configure(source, build, prefix)
    run("cmake", "--build", build)
    run(os.path.join(build, "main"))
    return []


def check_headers(h, prefix):
    """Headers, by compilers at their strictest."""
    sources = {
        "scalars": h.write("scalars.mlir", SCALARS),
        "functions": os.path.join(ROOT, "test", "tools", "Inputs", "functions.mlir"),
        "dense": os.path.join(ROOT, "examples", "dense.mlir"),
    }
    include = ["-I", os.path.join(prefix, "include"), "-I", h.folder.name]
    strict = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", *include]
    compilers = [
        ("gcc", "-std=c99", "c"),
        ("gcc", "-std=gnu17", "c"),
        ("g++", "-std=c++11", "c++"),
        ("g++", "-std=c++17", "c++"),
    ]
    if shutil.which("clang"):
        compilers += [("clang", "-std=c99", "c"), ("clang++", "-std=c++17", "c++")]
    for name, source in sources.items():
        translate(prefix, source, "-o", h.path(f"lib{name}.so"))
        text = (
            f"#include <{name}.h>\n#include <{name}.h>\n#include <math.h>\n#include <stdlib.h>\n"
            f"ftrt_module *use(void);\nftrt_module *use(void) {{ return &{name}_module; }}\n"
        )
        for compiler, standard, language in compilers:
            path = h.write(f"{name}.{'c' if language == 'c' else 'cpp'}", text)
            run(compiler, standard, *strict, path)
    return []


def check_static(h, prefix):
    """An object file in a program, without the shared library."""
    translate(
        prefix,
        os.path.join(ROOT, "test", "tools", "Inputs", "matmul.mlir"),
        "--emulator",
        "-o",
        h.path("net.o"),
    )
    lib = os.path.join(prefix, "lib")
    for flags in ([], ["-no-pie"]):
        run(
            "gcc",
            "-std=c99",
            "-Wall",
            "-Werror",
            *flags,
            "-I",
            os.path.join(prefix, "include"),
            "-I",
            h.folder.name,
            h.write("static.c", STATIC),
            h.path("net.o"),
            "-L",
            lib,
            "-lftrt",
            "-lm",
            f"-Wl,-rpath,{lib}",
            "-o",
            h.path("static"),
        )
        if run(h.path("static")) != "right\n":
            return ["unexpected output"]
    return []


def main():
    h, _ = harness.start(__doc__)
    prefix = h.path("prefix")
    run("cmake", "--install", os.path.join(h.bin_dir, ".."), "--prefix", prefix)
    for check in (
        check_prefix,
        check_example,
        check_bad_calls,
        check_indirect,
        check_headers,
        check_static,
    ):
        h.add(check.__name__.removeprefix("check_"), check, h, prefix)
    h.finish()


if __name__ == "__main__":
    main()
