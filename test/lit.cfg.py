"""Configuration of the lit tests."""

import os
import platform
import subprocess

import lit.formats
import lit.util

config.name = "FTuner"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.ftuner_test_dir

config.environment["PATH"] = os.pathsep.join(
    [config.ftuner_tools_dir, config.llvm_tools_dir, config.environment.get("PATH", "")]
)
for name in (
    "CUDA_HOME",
    "CUDA_PATH",
    "ASAN_OPTIONS",
    "LSAN_OPTIONS",
    "UBSAN_OPTIONS",
    "FTUNER_FAULT",
):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%examples", os.path.join(config.ftuner_source_dir, "examples")))
config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%{bin}", config.ftuner_tools_dir))
# Programs with a strategy and a cost model more.
extended = os.path.join(config.ftuner_test_dir, "Extension", "prefix", "bin")
config.substitutions.append(("%{extended}", extended))

# `REQUIRES: ptxas` for what asks the assembler; FTuner itself never needs it.
ptxas = lit.util.which("ptxas", config.environment["PATH"] + os.pathsep + "/usr/local/cuda/bin")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
# `REQUIRES: matplotlib` for what draws figures; %figure_python runs it.
for python in (
    os.path.join(config.ftuner_source_dir, ".venv", "bin", "python"),
    config.python_executable,
):
    if (
        os.path.exists(python)
        and not subprocess.run(
            [python, "-c", "import matplotlib"], stderr=subprocess.DEVNULL, check=False
        ).returncode
    ):
        config.available_features.add("matplotlib")
        config.substitutions.append(("%figure_python", python))
        break
# `REQUIRES: x86_64` for what reads machine code.
config.available_features.add(platform.machine())
if config.sanitizers:
    config.available_features.add("sanitizers")
