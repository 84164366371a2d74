"""Packages of AOTInductor whose products are FTuner's."""

from __future__ import annotations

import contextlib
import os
from typing import IO, Any

from torch.export import ExportedProgram
from torch.nn.attention import SDPBackend, sdpa_kernel

import ftuner

from ..options import Options
from .cpp_library import build_library
from .inductor import InductorPass, joined_passes


def aoti_compile_and_package(
    exported_program: ExportedProgram,
    *,
    package_path: str | os.PathLike[str] | IO[bytes] | None = None,
    inductor_configs: dict[str, Any] | None = None,
    **options: Any,
) -> str:
    """Compiles an exported program with AOTInductor and FTuner, and packages both's kernels.

        program = torch.export.export(model, (x,), dynamic_shapes=({0: Dim("T", max=128)},))
        path = ftuner.torch.aoti_compile_and_package(program, package_path="model.pt2")

    It is ``torch._inductor.aoti_compile_and_package`` with the products of the program computed by
    FTuner. The package needs neither FTuner's compiler nor its cache: Python loads it with
    ``torch._inductor.aoti_load_package`` after ``import ftuner.torch``, C++ with
    ``torch::inductor::AOTIModelPackageLoader`` and libftuner_torch.so (`build_library`), which the
    first call compiles.

    Args:
        exported_program: what torch.export.export returns. The ranges of its sizes are those for
            which kernels are fast.
        package_path: a path that ends in .pt2, or a file open for writing; by default a path of
            Inductor's own choice.
        inductor_configs: of Inductor, as for PyTorch's function. A pass in
            ``post_grad_custom_pre_pass`` comes before FTuner's.
        options: options of the backend, except ``host``, ``mode``, ``histogram`` and ``rows``
            (`ftuner.torch.Options`): reductions of rows stay with Inductor. With ``take="faster"``, the default, a product is FTuner's or
            PyTorch's at all sizes: the side whose predicted times have the smaller mean computes it.

    Returns:
        The package's path, or the file.

    Raises:
        TypeError, ValueError: an option is not valid.
        ftuner.CompileError: FTuner cannot compile a product, and ``fallback`` is not set.
        ftuner.Error: libftuner_torch.so cannot be compiled, or `inductor_configs` keep constants
            out of the package.
    """
    from torch._inductor import aoti_compile_and_package as package
    from torch._inductor import config

    for name in ("host", "mode", "histogram", "rows"):
        if name in options:
            raise TypeError(f"expected no option {name} of a package: torch.compile has it")
    parsed = Options.parse(options)
    configs = {"shape_padding": False, **(inductor_configs or {})}
    in_library = configs.get(
        "aot_inductor.package_constants_in_so", config.aot_inductor.package_constants_in_so
    )
    on_disk = configs.get(
        "aot_inductor.package_constants_on_disk_format",
        getattr(config.aot_inductor, "package_constants_on_disk_format", None),
    )
    if not in_library and not on_disk:
        raise ftuner.Error(
            "expected a package with constants, since FTuner's functions are some, but got"
            " 'aot_inductor.package_constants_in_so': False"
        )
    build_library()
    known = configs.get("post_grad_custom_pre_pass", config.post_grad_custom_pre_pass)
    own = InductorPass(parsed, packaged=True)
    configs["post_grad_custom_pre_pass"] = joined_passes(known, own)
    kernels = (
        sdpa_kernel(SDPBackend.MATH) if parsed.attention == "math" else contextlib.nullcontext()
    )
    with kernels:
        return package(exported_program, package_path=package_path, inductor_configs=configs)
