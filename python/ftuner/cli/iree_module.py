"""`ftuner iree`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ..frontend import iree
from ..frontend.iree import build, models
from ..host import outputs, processes
from .common import UsageError, add_device, print_json, read_source, take_pipeline_options

_EPILOG = """\
examples:
  ftuner iree model.pt2 -o model.vmfb --device h200
  ftuner iree model.onnx -o model.vmfb --max-kernels=4 --parameters weights.irpa
  ftuner iree layer.mlir -o layer.vmfb --require -- --iree-opt-level=O2

What stands behind -- goes to iree-compile as it is, in all its runs. docs/iree.md tells more."""


def add_parser(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "iree",
        help="compile a model to a module of IREE's runtime",
        description="Compiles a model by IREE (iree-compile), with FTuner's kernels for its "
        "products, to a module of IREE's runtime.",
        epilog=_EPILOG,
    )
    parser.add_argument(
        "model", help=f"a model: {', '.join(models.SUFFIXES)}; - for MLIR on standard input"
    )
    parser.add_argument("-o", "--output", required=True, help="the module, such as model.vmfb")
    add_device(parser)
    parser.add_argument(
        "--target",
        choices=build.TARGETS,
        default="cuda",
        help="what IREE compiles for: a GPU, or this CPU, where FTuner's plugin for IREE runs the "
        "kernels of --emulated-kernels (default: %(default)s)",
    )
    parser.add_argument(
        "--iree-cuda-target",
        metavar="ARCH",
        help="for the kernels that IREE makes itself (default: the newest of IREE's that the "
        "device runs, such as sm_89)",
    )
    parser.add_argument("--iree-compile", metavar="PATH", help="the compiler of IREE to use")
    parser.add_argument(
        "--phase",
        choices=build.PHASES,
        help="after which phase of IREE FTuner takes the products (default: start for linalg with "
        "attributes of FTuner, else preprocessing)",
    )
    parser.add_argument(
        "--attention",
        choices=build.ATTENTION,
        default="iree",
        help="PyTorch's scaled_dot_product_attention: IREE's, or two products of FTuner's "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--parameters",
        metavar="FILE",
        help="weights go to this file instead of into the module: .safetensors for .pt2, "
        ".irpa for .onnx",
    )
    parser.add_argument(
        "--cubins", help="a processor to assemble FTuner's kernels for, such as sm_90"
    )
    parser.add_argument(
        "--any-address", action="store_true", help="callers' buffers may begin at any address"
    )
    parser.add_argument(
        "--emulated-kernels", metavar="FILE", help="also a library, for runs without a GPU"
    )
    parser.add_argument(
        "--require", action="store_true", help="fail if there is no product for FTuner"
    )
    parser.add_argument(
        "--keep-intermediates", metavar="FOLDER", help="keep what the steps write there"
    )
    parser.add_argument("--json", action="store_true", help="describe the result as JSON")
    take_pipeline_options(parser)
    parser.set_defaults(run=run, takes_more=True)


def run(options: argparse.Namespace) -> None:
    if options.output == outputs.STANDARD:
        raise UsageError("option --output: expected the name of a file, such as model.vmfb")
    with processes.temporary_folder() as folder:
        model = options.model
        if model == outputs.STANDARD:
            path = Path(folder, "stdin.mlir")
            path.write_bytes(read_source(model).content)
            model = str(path)
        built = iree.compile(
            model,
            options.output,
            device=options.device,
            target=options.target,
            cuda_target=options.iree_cuda_target,
            phase=options.phase,
            attention=options.attention,
            parameters=options.parameters,
            cubins=options.cubins,
            any_address=options.any_address,
            emulated_kernels=options.emulated_kernels,
            require=options.require,
            iree_compile=options.iree_compile,
            iree_flags=options.more,
            keep_intermediates=options.keep_intermediates,
            **options.pipeline,
        )
    if options.json:
        size = os.path.getsize(options.output)
        print_json({"module": options.output, "bytes": size, **built.report.as_dict()})
        return
    print(options.output)
    for line in str(built.report).splitlines():
        print(f"  {line}")
