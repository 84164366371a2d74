"""Packages of AOTInductor that hold FTuner's functions."""

from __future__ import annotations

import contextlib
import os
from typing import IO, Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.export import ExportedProgram
from torch.nn.attention import SDPBackend, sdpa_kernel

import ftuner

from . import layout as lay
from .cpp_library import build_library
from .importer import Call
from .options import Options
from .packaged import PACKAGED_PRODUCT, Interface
from .replacement import Host, Product
from .report import Report


class PackagedHost(Host):
    """AOTInductor: functions are called by `ftuner::packaged_product`, and constants of the graph.

    PyTorch takes constants whose names begin with `_tensor_constant` for what tracing made, which
    whoever exchanges a model's weights need not give.
    """

    def __init__(self, graph: fx.Graph) -> None:
        from torch._inductor.virtualized import V

        if not V.aot_compilation:
            raise ftuner.Error("expected AOTInductor for a pass with packaged=True")
        module = graph.owning_module
        mode = detect_fake_mode([node.meta.get("val") for node in graph.nodes])
        if module is None or mode is None:
            raise ftuner.Error("expected a graph of Inductor's, whose module holds constants")
        self._module, self._mode = module, mode
        #: Names of constants by the hashes of the libraries.
        self._names: dict[str, str] = {}

    joins = True
    alternates = False
    takes_rows = False

    def call(self, graph: fx.Graph, product: Product, arguments: Call) -> fx.Node:
        library = product.function.module.library_path.read_bytes()
        sizes = product.imported.function.result_sizes
        interface = Interface.of(product.function, sizes, library)
        constant = graph.get_attr(self._constant(interface.sha256, library))
        value = getattr(self._module, str(constant.target))
        constant.meta["val"] = self._mode.from_tensor(value)
        given = [*arguments.tensors, *arguments.scalars]
        return graph.call_function(
            PACKAGED_PRODUCT, (given, constant, interface.write(library))
        )

    def _constant(self, key: str, library: bytes) -> str:
        """The name of the constant with the bytes of this hash, which calls may share."""
        if key not in self._names:
            name = f"_tensor_constant_ftuner_{key[:16]}"
            data = torch.frombuffer(bytearray(library), dtype=torch.uint8)
            self._module.register_buffer(name, data, persistent=False)
            self._names[key] = name
        return self._names[key]

    def operators(self, counts: Report) -> dict[str, int]:
        return counts.inductor_operators


def share_sizes(graph: fx.Graph) -> None:
    """Lets each size be read once, where the graph reads it first: of the model's arguments.

    Graphs of torch.export read sizes of intermediates, too. A product whose size is read would not
    be joined with the pointwise operators after it.
    """
    first: dict[lay.Extent, fx.Node] = {}
    for node in list(graph.nodes):
        if node.target is not torch.ops.aten.sym_size.int:
            continue
        known = first.setdefault(lay.extent_of(node.meta["val"]), node)
        if known is not node:
            node.replace_all_uses_with(known)
            graph.erase_node(node)


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
        options: those of the backend without ``host``, ``mode``, ``histogram`` and ``rows``
            (`ftuner.torch.Options`): reductions of rows stay with Inductor. With ``take="faster"``, the default, a product is FTuner's or
            PyTorch's at all sizes, whoever is predicted to be faster on average.

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

    from .inductor import InductorPass, joined_passes

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
