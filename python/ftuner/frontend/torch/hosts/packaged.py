"""The operator of PyTorch that calls the compiled functions of a package.

A package of AOTInductor runs where FTuner's compiler is not, so its graph holds the compiled functions
themselves. Each is one constant tensor with the bytes of its library, however many calls it has::

    ftuner::packaged_product(Tensor[] arguments, Tensor library, str interface) -> Tensor

The arguments are tensors, and after them scalars as tensors of one element. `interface` is the text
of an `Interface`, which says how the function is called and has the size and hash of the library.
Programs without Python have the same operator from libftuner_torch.so (native/ftuner_torch.cpp), which
reads the same text.
"""

from __future__ import annotations

import builtins
import functools
import hashlib
import platform
import re
import threading
import zlib
from dataclasses import dataclass
from pathlib import Path

import ftuner
import torch
from ftuner.host import processes
from ftuner.host.function import Function
from ftuner.host.signature import Value
from torch import Tensor

from ..report import count_cached
from ..settings import check_format
from .operator import DTYPES, TAGS_OF_SCALARS, call, result_shape

#: The version of the text of an interface.
FORMAT = 1

#: Maximum numbers of scalars, and of pointers and sizes, that libftuner_torch.so passes to functions.
MAX_SCALARS, MAX_INTEGERS = 8, 128


@dataclass(frozen=True)
class Interface:
    """The interface of a packaged function.

    Its text is one line of `key=value`, separated by spaces::

        ftuner-interface=1 sha256=… bytes=90112 machine=x86_64 name=addmm_gelu run=addmm_gelu
        result_sizes=addmm_gelu_result_sizes workspace_size=addmm_gelu_workspace_size
        arguments=f32[d0,64];f32[64,256];f32[256] scalars=0 result=f32[0.0,256] crc32=…

    Attributes:
        name: of the function, for messages.
        run, result_sizes, workspace_size: names of the C functions in the library (docs/abi.md).
        arguments: type and shape of each tensor. A size is a number, a symbol, or ``?``; sizes
            with the same symbol are equal.
        scalars: how many f32 follow the tensors.
        type, sizes: of the result: the type, and each size, a number or an argument and a
            dimension of it.
        machine: the kind of processor that the library runs on.
        bytes, sha256: of the library.
        crc32: of the text before it, and of the library.
    """

    name: str
    run: str
    result_sizes: str
    workspace_size: str
    arguments: tuple[str, ...]
    scalars: int
    type: str
    sizes: tuple[int | tuple[int, int], ...]
    machine: str
    bytes: int
    sha256: str
    crc32: int = 0

    @staticmethod
    def for_function(
        function: Function, sizes: tuple[int | tuple[int, int], ...], library: builtins.bytes
    ) -> Interface:
        """The interface of a function in a library. Raises `Error` if no text can express it."""
        signature = function.full_signature
        tensors = [value for value in signature.arguments if value.is_tensor]
        scalars = [value for value in signature.arguments if not value.is_tensor]
        (result,) = signature.results
        dynamic = sum(not isinstance(size, int) for value in tensors for size in value.shape or ())
        # Add the result, the workspace and the stream.
        integers = len(tensors) + dynamic + 3
        if len(scalars) > MAX_SCALARS or integers > MAX_INTEGERS:
            raise ftuner.Error(
                f"{function.__name__}: expected at most {MAX_SCALARS} scalars and {MAX_INTEGERS}"
                f" pointers and sizes of a function in a package, but got {len(scalars)} and"
                f" {integers}"
            )
        if any(value.type.name != "f32" for value in scalars):
            raise ftuner.Error(
                f"{function.__name__}: expected scalars of f32 of a function in a package, but got"
                f" {signature}"
            )
        return Interface(
            function.__name__,
            signature.symbol,
            signature.result_sizes_symbol,
            signature.workspace_size_symbol,
            tuple(_format(value) for value in tensors),
            len(scalars),
            result.type.name,
            sizes,
            platform.machine(),
            len(library),
            hashlib.sha256(library).hexdigest(),
        )

    def write(self, library: builtins.bytes) -> str:
        """The text that `read` reads, of a function in this library."""
        sizes = (
            str(size) if isinstance(size, int) else f"{size[0]}.{size[1]}" for size in self.sizes
        )
        fields = {
            "ftuner-interface": FORMAT,
            # Early, so that texts differ early.
            "sha256": self.sha256,
            "bytes": self.bytes,
            "machine": self.machine,
            "name": self.name,
            "run": self.run,
            "result_sizes": self.result_sizes,
            "workspace_size": self.workspace_size,
            "arguments": ";".join(self.arguments),
            "scalars": self.scalars,
            "result": f"{self.type}[{','.join(sizes)}]",
        }
        text = " ".join(f"{key}={value}" for key, value in fields.items())
        return f"{text} crc32={zlib.crc32(library, zlib.crc32(text.encode())):08x}"

    @staticmethod
    @functools.cache
    def read(text: str) -> Interface:
        """Raises `Error` for other texts, and for texts of another format."""
        try:
            fields = dict(token.split("=", 1) for token in text.split(" "))
            form = int(fields["ftuner-interface"])
        except (ValueError, KeyError):
            raise ftuner.Error(
                f"expected an interface of a packaged function, but got {text[:80]!r}"
            ) from None
        check_format("a package with functions", FORMAT, form)
        try:
            result = re.fullmatch(r"(\w+)\[([\d.,]*)\]", fields["result"])
            if result is None:
                raise ValueError(f"a result {fields['result']!r}")
            return Interface(
                fields["name"],
                fields["run"],
                fields["result_sizes"],
                fields["workspace_size"],
                tuple(fields["arguments"].split(";")),
                int(fields["scalars"]),
                result[1],
                tuple(_read_size(size) for size in result[2].split(",") if size),
                fields["machine"],
                int(fields["bytes"]),
                fields["sha256"],
                int(fields["crc32"], 16),
            )
        except (ValueError, KeyError) as error:
            raise ftuner.Error(
                f"expected an interface of a packaged function, but got one that is not complete:"
                f" {error}"
            ) from None


def _format(value: Value) -> str:
    sizes = ("?" if size is None else str(size) for size in value.shape or ())
    return f"{value.type.name}[{','.join(sizes)}]"


def _read_size(text: str) -> int | tuple[int, int]:
    argument, point, dimension = text.partition(".")
    return (int(argument), int(dimension)) if point else int(argument)


#: The functions of packages that this process has loaded, by their interfaces.
_functions: dict[str, Function] = {}
_lock = threading.Lock()


def _function_of(library: Tensor, interface: str) -> Function:
    with _lock:
        function = _functions.get(interface)
        if function is None:
            function = _functions[interface] = _load(library, interface)
            count_cached(function.__name__)
        return function


def _load(library: Tensor, text: str) -> Function:
    """Raises `Error` where the package is damaged, or was made for another machine."""
    interface = Interface.read(text)
    data = library.cpu().contiguous().numpy().tobytes()
    checked = text[: text.rfind(" crc32=")].encode()
    if len(data) != interface.bytes or zlib.crc32(data, zlib.crc32(checked)) != interface.crc32:
        raise ftuner.Error(
            f"{interface.name}: the package is damaged: the checksum of the function is wrong"
        )
    if interface.machine != platform.machine():
        raise ftuner.Error(
            f"{interface.name}: expected a package for {platform.machine()}, but got one for"
            f" {interface.machine}"
        )
    folder = processes.temporary_folder()
    path = Path(folder.name, "libpackaged.so")
    path.write_bytes(data)
    module = ftuner.load(path)
    module._owner = folder
    (function,) = module.functions.values()
    return function.renamed(interface.name)


def _packaged_product(arguments: list[Tensor], library: Tensor, interface: str) -> Tensor:
    function = _functions.get(interface) or _function_of(library, interface)
    count = len(Interface.read(interface).arguments)
    result: Tensor = call(function, arguments[:count], arguments[count:])
    return result


def _fake_packaged_product(arguments: list[Tensor], library: Tensor, interface: str) -> Tensor:
    read = Interface.read(interface)
    return arguments[0].new_empty(result_shape(read.sizes, arguments), dtype=DTYPES[read.type])


_definitions = torch.library.Library("ftuner", "FRAGMENT")  # type: ignore[no-untyped-call]
# A program may have loaded libftuner_torch.so before it began to run Python.
if not hasattr(torch.ops.ftuner, "packaged_product"):
    _definitions.define(  # type: ignore[no-untyped-call]
        "packaged_product(Tensor[] arguments, Tensor library, str interface) -> Tensor",
        tags=tuple(
            getattr(torch.Tag, name) for name in TAGS_OF_SCALARS if hasattr(torch.Tag, name)
        ),
    )
    _definitions.impl(  # type: ignore[no-untyped-call]
        "packaged_product", _packaged_product, "CompositeExplicitAutograd"
    )
torch.library.register_fake("ftuner::packaged_product", _fake_packaged_product, lib=_definitions)

#: The operator, which the graphs of packages call.
PACKAGED_PRODUCT = torch.ops.ftuner.packaged_product.default
