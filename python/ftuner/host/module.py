"""Compiled libraries as Python objects."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import Error
from . import runtime
from .elf import check_library
from .function import Function
from .signature import read_signatures
from .weights import Weights
from .weights import read as read_weights


class Module:
    """A compiled library: its functions by their names in the source.

    `module.dense` and `module["dense"]` are functions; a module with one function can be called
    itself. Libraries stay loaded until the process ends.

    Attributes:
        library_path: the shared library.
        manifest: docs/manifest.md, as a dict.
        functions: dict of `Function`s.
        weights: the last arguments of each function, which calls do not give; None where calls
            give all arguments.
    """

    def __init__(
        self, library_path: str | os.PathLike[str], weights: Weights | None = None
    ) -> None:
        self.library_path = Path(library_path).absolute()
        # Removes the library of a module that is not cached.
        self._owner: Any = None
        self._runtime = runtime.get()
        check_library(self.library_path)
        try:
            self._library = ctypes.CDLL(str(self.library_path))
        except OSError as error:
            raise Error(f"cannot load '{library_path}': {error}") from error
        try:
            self._module = runtime.CompiledModule.in_dll(self._library, "ftuner_module")
        except ValueError as error:
            raise Error(f"'{library_path}' is not a compiled library of FTuner: {error}") from error
        if self._module.abi_version != runtime.ABI_VERSION:
            raise Error(
                f"expected '{library_path}' to be compiled for version {runtime.ABI_VERSION} of "
                f"the runtime, but got version {self._module.abi_version}"
            )
        try:
            self.manifest: dict[str, Any] = json.loads(self.manifest_text)
        except ValueError as error:
            raise Error(f"the manifest of '{library_path}' is not valid: {error}") from error
        self.weights = weights
        self._images = self._module.images[: self._module.image_count]
        self.functions: dict[str, Function] = {
            signature.name: Function(self, self._library, signature)
            for signature in read_signatures(self.manifest)
        }
        if weights is not None:
            for function in self.functions.values():
                mismatch = weights.mismatch(function.full_signature)
                if mismatch is not None:
                    raise Error(f"the weights do not belong to '{library_path}': {mismatch}")
            self.functions = {
                name: function.keeping(len(weights), weights.in_memory)
                for name, function in self.functions.items()
            }

    @property
    def manifest_text(self) -> bytes:
        """The manifest as the library holds it."""
        return self._module.manifest or b""

    @property
    def name(self) -> str:
        """Name of the compiled module."""
        return (self._module.name or b"").decode()

    @property
    def ptx(self) -> str:
        """The kernels as PTX; of two images, the one for the exact architecture.

        Raises `Error` if the library holds none.
        """
        for image in self._images:
            if image.kind == runtime.IMAGE_PTX:
                return ctypes.string_at(image.data).decode()
        raise Error(f"'{self.library_path}' has no PTX")

    @property
    def architectures(self) -> list[str]:
        """Processors that the library has machine code for, such as `sm_90`."""
        cubins = [image for image in self._images if image.kind == runtime.IMAGE_CUBIN]
        return [image.chip for image in cubins]

    @property
    def has_emulator(self) -> bool:
        """Returns whether the library also has its kernels for the CPU."""
        return any(image.kind == runtime.IMAGE_HOST for image in self._images)

    def prepare(self, device: int | None = None) -> None:
        """Loads the kernels ahead of the first call, for a GPU or (None) the emulator.

        Needed before a call is captured into a CUDA graph.
        """
        stream = self._runtime.emulator_stream
        if device is not None:
            self._runtime.select_device(device)
            stream = 0
        code = self._runtime.library.ftrt_prepare(ctypes.byref(self._module), stream)
        self._runtime.check(code, f"cannot load '{self.library_path}'")

    def __getitem__(self, name: str) -> Function:
        try:
            return self.functions[name]
        except KeyError:
            names = ", ".join(self.functions)
            raise KeyError(f"expected one of the functions {names}, but got {name!r}") from None

    def __getattr__(self, name: str) -> Function:
        functions = self.__dict__.get("functions", {})
        if name in functions:
            function: Function = functions[name]
            return function
        names = ", ".join(functions)
        raise AttributeError(
            f"the module has no attribute {name!r}; its functions are {names}", name=name, obj=self
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]

    def __iter__(self) -> Iterator[str]:
        return iter(self.functions)

    def __len__(self) -> int:
        return len(self.functions)

    def __call__(self, *args: Any, out: Any = None, stream: Any = None) -> Any:
        """Calls the only function."""
        if len(self.functions) != 1:
            names = ", ".join(self.functions)
            raise TypeError(f"the module has several functions, call one of them: {names}")
        (function,) = self.functions.values()
        return function(*args, out=out, stream=stream)

    def __repr__(self) -> str:
        functions = "; ".join(str(function.signature) for function in self.functions.values())
        return f"<ftuner.Module for {self.manifest['device']['name']}: {functions}>"


def load(path: str | os.PathLike[str], weights: str | os.PathLike[str] | None = None) -> Module:
    """Loads a compiled library, such as `ftuner-translate --ftuner-to-library` writes.

    `weights` is the file that `ftuner compile` wrote beside the library of a model of ONNX; without
    it, calls give the weights behind the other arguments. Raises `Error` if one of the files is not
    what it should be, the library was compiled for another version of the runtime, or the weights
    are not of the types and shapes of its last arguments.
    """
    return Module(path, None if weights is None else read_weights(weights))
