"""Calls with PyTorch tensors in which no Python runs (native/torch_calls.cpp).

The module of CPython that serves them has its source in the package, since it is compiled against
the PyTorch and the Python that a user has. What is compiled is kept in FTuner's cache. Without it, and
for calls that it declines, the code of `Function` does the same.

`ftuner.compile` compiles the module if PyTorch is imported, and so does a graph that calls functions:
there it is one more library that takes seconds. A call only looks whether it is there.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import logging
import os
import platform
import sys
import sysconfig
import threading
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...errors import Error
from .. import native_libraries, runtime
from ..elements import ELEMENT_TYPES, ElementType
from ..progress import Progress

if TYPE_CHECKING:
    from ..function import Function

_Type = TypeVar("_Type")

#: The environment variable that leaves all calls to Python where it is 0.
VARIABLE = "FTUNER_NATIVE_CALLS"

_MODULE = "ftuner_torch_calls"
_NAME = f"{_MODULE}.so"
_SOURCES = Path(__file__).parent / "native"

# Limits of the module: pointers and integers, and floating-point scalars.
_MAX_INTEGERS, _MAX_FLOATS = 128, 8
# Numbers of the kinds of arguments: tensors, and scalars by their types.
_TENSOR = 0
_SCALARS = {"f32": 1, "f64": 2, "i64": 3, "index": 3}

_lock = threading.Lock()
_logger = logging.getLogger("ftuner")
_module: Any = None
# PyTorch's numbers of types of elements.
_dtype_numbers: dict[Any, int] = {}
# The reason why the module does not exist, after the first look for it.
_reason: str | None = None
_is_final = False
# Classes whose calls the module serves.
_served: list[Any] = []


def served(function_type: type[_Type]) -> type[_Type]:
    """Has the module, once it is loaded, serve calls of objects of a class; a decorator."""
    _served.append(function_type)
    return function_type


def accepted_dtypes(type: ElementType) -> frozenset[Hashable]:
    """The dtypes of PyTorch that serve as a type of elements."""
    import torch

    return frozenset(getattr(torch, name) for name in type.accepted if hasattr(torch, name))


def find() -> Any:
    """Returns the module if it is compiled already, else None."""
    if _module is not None or _reason is not None:
        return _module
    return _get(builds=False)


def build() -> Any:
    """Returns the module, compiled unless the cache has it; None if that fails."""
    if _module is not None or _is_final:
        return _module
    return _get(builds=True)


def reason() -> str:
    """Returns why Python's code serves calls with PyTorch tensors; empty if it does not."""
    return "" if _module is not None else _reason or ""


@contextmanager
def without_module() -> Iterator[None]:
    """Lets Python's code serve new functions and graphs, so that callers can see each call."""
    global _module, _is_final
    with _lock:
        before = _module, _is_final
        _module, _is_final = None, True
    try:
        yield
    finally:
        with _lock:
            _module, _is_final = before


def function_of(function: Function) -> Any:
    """Makes the object that `Function.__call__` and `graph_call` use for a function.

    None without the module, or if the module does not take such a function.
    """
    return None if _module is None else _function_of(function)


def graph_call(
    argument_count: int,
    is_list: bool,
    resolve: Callable[[], Any],
    otherwise: Callable[..., Any],
    decide: Callable[[tuple[int, ...]], bool] | None = None,
    places: tuple[tuple[int, int], ...] = (),
) -> Callable[..., Any]:
    """Makes a call in a graph, which takes tensors, scalars as tensors of one element, and sizes.

    Args:
        is_list: whether the results are a list.
        resolve: gives what `function_of` does, asked by the first call that needs it.
        otherwise: what serves calls that the module declines, with the same arguments.
        decide: says whether the function computes some sizes; if not, `otherwise` does.
        places: the arguments and dimensions that these sizes are of.

    Needs the module.
    """
    call: Any = _module.GraphCall(argument_count, is_list, resolve, otherwise, decide, places)
    # Names that graphs of torch.fx print.
    call.__name__ = call.__qualname__ = "graph_call"
    call.__module__ = __name__
    served: Callable[..., Any] = call
    return served


def take_graph_calls() -> int:
    """Returns the number of calls in graphs that the module served since the last time."""
    return 0 if _module is None else int(_module.take_graph_calls())


def _get(builds: bool) -> Any:
    global _module, _reason, _is_final
    with _lock:
        if _module is not None or _is_final or (_reason is not None and not builds):
            return _module
        try:
            path = _library(builds)
            if path is None:
                _reason = "the module that would serve them is not compiled yet"
                return None
            _module = _load(path)
        except (Error, OSError, ImportError, AttributeError, RuntimeError) as error:
            _reason, _is_final = str(error), True
            _logger.info("calls with PyTorch tensors run by Python's code: %s", error)
        return _module


def _library(builds: bool) -> Path | None:
    """Returns the path of the compiled module; None if it is not compiled and `builds` is False."""
    import torch

    if os.environ.get(VARIABLE) == "0":
        raise Error(f"{VARIABLE} is 0")
    torch_folder = Path(torch.__file__).parent
    python_headers = sysconfig.get_path("include")
    arguments = [
        *("-std=c++20", "-O2", "-fno-plt", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall"),
        f"-D_GLIBCXX_USE_CXX11_ABI={int(torch.compiled_with_cxx11_abi())}",
        *("-I", str(native_libraries.HEADERS)),
        *("-isystem", python_headers, "-isystem", str(torch_folder / "include")),
        str(_SOURCES / "torch_calls.cpp"),
        *("-Wl,--no-as-needed", "-L", str(torch_folder / "lib")),
        *("-ltorch", "-ltorch_cpu", "-ltorch_python", "-lc10"),
        f"-Wl,-rpath,{torch_folder / 'lib'}",
    ]
    key = native_libraries.key_of(
        {
            "sources": native_libraries.sources_of(_SOURCES),
            "arguments": arguments,
            "machine": platform.machine(),
            "python": sys.version,
            "torch": torch.__version__,
        }
    )
    known = native_libraries.find(key, _NAME)
    if known is not None or not builds:
        return known
    compiler = native_libraries.find_compiler(_NAME)
    if not Path(python_headers, "Python.h").is_file():
        raise Error(f"cannot find Python.h in {python_headers} for {_NAME}")
    # Without a cache each process would compile it.
    with Progress("compiling calls for this PyTorch"):
        return native_libraries.build(key, _NAME, [*compiler, *arguments], cache=True)


def _load(path: Path) -> Any:
    from torch.utils._python_dispatch import _disable_current_modes

    import torch

    loader = importlib.machinery.ExtensionFileLoader(_MODULE, str(path))
    specification = importlib.util.spec_from_loader(_MODULE, loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    library = runtime.get()
    names = {name for kind in ELEMENT_TYPES.values() for name in (*kind.accepted, kind.numpy_name)}
    dtypes = {getattr(torch, name) for name in names if hasattr(torch, name)}
    # Modes would make tensors of other types.
    with _disable_current_modes():
        sample = torch.zeros(0, device="cpu")
        samples = {dtype: torch.zeros(0, dtype=dtype, device="cpu") for dtype in dtypes}
    if type(sample) is not torch.Tensor:
        raise Error(f"expected a tensor of type Tensor, but got {type(sample).__qualname__}")
    configure: Callable[..., None] = module.configure
    configure(
        sample,
        sample._cdata,
        torch.nn.Parameter,
        library.emulator_stream or 0,
        _address(library.library.ftrt_device_select),
        library.heeds_signals,
        library.check,
    )
    for dtype, tensor in samples.items():
        _dtype_numbers[dtype] = module.scalar_type(tensor)
    # Python's code remains for calls that the module declines.
    for function_type in _served:
        setattr(function_type, "__call__", module.Method(function_type.__call__))
    return module


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _function_of(function: Function) -> Any:
    import torch

    signature = function.full_signature
    if len(function.signature.arguments) != len(signature.arguments):  # Some are kept.
        return None
    tensors = [value for value in signature.arguments if value.is_tensor]
    scalars = [value.type.name for value in signature.arguments if not value.is_tensor]
    dynamic = sum(not isinstance(size, int) for value in tensors for size in value.shape or ())
    floats = sum(name in ("f32", "f64") for name in scalars)
    # Add the workspace, the stream, and the place of the results' sizes.
    integers = len(tensors) + len(signature.results) + dynamic + len(scalars) - floats + 3
    if (
        not tensors
        or any(name not in _SCALARS for name in scalars)
        or integers > _MAX_INTEGERS
        or floats > _MAX_FLOATS
    ):
        return None

    arguments: list[tuple[int, int, int, tuple[int, ...]]] = []
    for value in signature.arguments:
        if not value.is_tensor:
            arguments.append((_SCALARS[value.type.name], 0, value.type.bytes, ()))
            continue
        types = 0
        for dtype in accepted_dtypes(value.type):
            types |= 1 << _dtype_numbers[dtype]
        sizes = tuple(size if isinstance(size, int) else -1 for size in value.shape or ())
        arguments.append((_TENSOR, types, value.type.bytes, sizes))
    equals = [*range(dynamic)]
    for first, second in function.equal_sizes:
        equals[second] = first
    results = tuple(
        (
            _dtype_numbers[getattr(torch, value.type.numpy_name)],
            value.type.bytes,
            len(value.shape or ()),
        )
        for value in signature.results
    )
    return _module.Function(
        function.__name__,
        *(_address(pointer) for pointer in function.pointers),
        tuple(arguments),
        tuple(equals),
        results,
        function.results_type,
        function.module.has_emulator,
    )
