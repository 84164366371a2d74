"""Configuration of the lit tests."""

import os

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
for name in ("CUDA_HOME", "CUDA_PATH", "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%examples", os.path.join(config.ftuner_source_dir, "examples")))
config.substitutions.append(("%python", config.python_executable))
config.substitutions.append(("%{bin}", config.ftuner_tools_dir))

# `REQUIRES: ptxas` for what asks the assembler; FTuner itself never needs it.
ptxas = lit.util.which("ptxas", config.environment["PATH"] + os.pathsep + "/usr/local/cuda/bin")
if ptxas:
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))
if config.sanitizers:
    config.available_features.add("sanitizers")
