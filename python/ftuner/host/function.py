"""`Function`: a compiled function that Python can call."""

from __future__ import annotations

import collections
import copy
import ctypes
import inspect
import re
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any

from ..describe.work import WorkReport
from ..errors import Error, did_you_mean
from . import memory as memories
from . import runtime
from .memory import Memory, memory_of, torch_calls
from .signature import Signature, Value, format_shape

if TYPE_CHECKING:
    from .module import Module

# Plans of more sizes than this are not kept.
_MAX_PLANS = 4096


@torch_calls.served
class Function:
    """A compiled function.

    Called with NumPy arrays or PyTorch tensors of the CPU, it runs in the emulator; with
    PyTorch tensors of a GPU or other objects on one that have `__dlpack__`, there. Nothing
    is copied: tensors must be contiguous. Scalars are Python's or NumPy's numbers. Any size
    is allowed; sizes with the same symbol must be equal. Arguments go by position or by name: that
    of the source, with `_` for what Python does not allow, or `arg0` if it gives none.

    Results are of the arguments' kind; one is returned as it is, several as a tuple, with names
    if the source gives them. `out`
    gives the tensors to write them to instead (one, or a sequence), which must not overlap
    the arguments or each other. On a GPU the call returns when the kernels are launched, on
    `stream` or else on the current stream of PyTorch, or the default stream for other
    packages. Their arrays must live until the kernels have finished; PyTorch's allocator takes
    care of that by itself.

    Raises `TypeError` and `ValueError` for arguments that do not fit, `Error` if a run fails.
    Safe to call from many threads.

    Attributes:
        signature: names, types and shapes.
        equal_sizes: pairs of sizes that must be equal, by their numbers among all dynamic sizes.
        results_type: the named tuple of the results, if they are one.
        full_signature: also with the arguments that calls do not give.
        module: the module that it belongs to.
    """

    def __init__(self, module: Module, library: ctypes.CDLL, signature: Signature) -> None:
        self.module = module
        self.full_signature = signature
        # Serves common calls with PyTorch tensors in place of `__call__`, see `memory.torch_calls`.
        self._fast: Any
        self._name(signature)
        self._runtime = runtime.get()
        self._has_emulator = module.has_emulator
        self._arity = len(signature.arguments)
        self._tensors = [(i, v) for i, v in enumerate(signature.arguments) if v.is_tensor]
        self._scalars = [(i, v) for i, v in enumerate(signature.arguments) if not v.is_tensor]
        # Every result has a shape; a result that is a scalar does not exist in the ABI.
        self._ranks = [len(value.shape or ()) for value in signature.results]
        self._checks = {
            index: _dimension_checks(value.shape or ()) for index, value in self._tensors
        }
        self.equal_sizes = _equal_sizes(signature)
        self._accepted: dict[str, list[frozenset[Hashable]]] = {}
        self._plans: dict[tuple[int, ...], tuple[list[tuple[int, ...]], int]] = {}
        # Gives the last arguments of a call, which the caller does not.
        self._kept: Callable[[Memory], Sequence[Any]] | None = None
        self._bind(library)

    def renamed(self, name: str) -> Function:
        """Returns the function under another name, which its messages, signature and help have."""
        other = copy.copy(self)
        other._name(replace(self.signature, name=name))
        return other

    def keeping(self, count: int, kept: Callable[[Memory], Sequence[Any]]) -> Function:
        """The function of all arguments but the last `count`, such as the weights of a model.

        `kept` gives these for the memory of a call.
        """
        other = copy.copy(self)
        arguments = self.signature.arguments
        other._name(replace(self.signature, arguments=arguments[: len(arguments) - count]))
        other._arity = len(other.signature.arguments)
        other._kept = kept
        return other

    def all_arguments(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments of a call and those that it does not give, as `full_signature` has them."""
        if self._kept is None:
            return (*args,)
        return (*args, *self._kept(self._find_memory((*args,), None, None)))

    @property
    def report(self) -> WorkReport:
        """Report of the work of the function by its kernels."""
        # The manifest has the name of the source, whatever name the function has now.
        found = WorkReport.from_manifest(self.module.manifest, self.full_signature.name)
        return replace(found, function=self.signature.name)

    @property
    def pointers(self) -> tuple[Any, Any, Any]:
        """The three C functions: the function, the sizes of its results, and of its workspace."""
        return self._run, self._result_sizes, self._workspace_size

    def _name(self, signature: Signature) -> None:
        self._fast = None  # It has the name, too.
        self.signature = signature
        self.__name__ = signature.name
        self.__qualname__ = signature.name
        self.__doc__ = _document(signature)
        self.__signature__ = _python_signature(signature)
        self.results_type = (
            None if signature.fields is None else _results_type(signature.name, signature.fields)
        )

    def _bind(self, library: ctypes.CDLL) -> None:
        """Looks the three C functions up and declares their types."""
        signature = self.signature
        sizes = [
            ctypes.c_int64
            for _, value in self._tensors
            for size in value.shape or ()
            if not isinstance(size, int)
        ]
        self._size_count = len(sizes)
        scalars = [value.type.ctype for _, value in self._scalars]
        pointers = [ctypes.c_void_p] * (len(self._tensors) + len(signature.results))
        try:
            self._run = getattr(library, signature.symbol)
            self._result_sizes = getattr(library, signature.result_sizes_symbol)
            self._workspace_size = getattr(library, signature.workspace_size_symbol)
        except AttributeError as error:
            raise Error(f"'{self.module.library_path}' lacks a function: {error}") from error
        self._run.restype = ctypes.c_int32
        self._run.argtypes = [*pointers, *sizes, *scalars, ctypes.c_void_p, ctypes.c_void_p]
        self._result_sizes.restype = ctypes.c_int32
        self._result_sizes.argtypes = [*sizes, *scalars, ctypes.c_void_p]
        self._workspace_size.restype = ctypes.c_int64
        self._workspace_size.argtypes = [*sizes, *scalars]
        self._sizes_type = ctypes.c_int64 * max(sum(self._ranks), 1)

    def __call__(self, *args: Any, out: Any = None, stream: Any = None, **named: Any) -> Any:
        """Runs the function, and returns its result, or a tuple of several.

        Args:
            args, named: the arguments, by position or by name; `signature` lists them.
            out: the tensors to write the results to, one or a sequence. Without it they are made.
            stream: the CUDA stream of the launches. Without it they are on PyTorch's current stream, or
                the default stream.

        Raises `TypeError` and `ValueError` for arguments that do not fit, `Error` if a run fails.
        """
        if named:
            args = self._in_order(args, named)
        if len(args) != self._arity:
            raise TypeError(
                f"{self.__name__}: expected {self._arity} arguments, but got {len(args)}; "
                f"the signature is {self.signature}"
            )
        memory = self._find_memory(args, out, stream)
        if self._fast is None:
            self._fast = memory.fast(self)
        if self._kept is not None:
            args = (*args, *self._kept(memory))
        if not memory.is_gpu:
            if not self._has_emulator:
                raise Error(
                    f"{self.__name__}: {memory.kind} needs the emulator, but the library has no "
                    "kernels for it; compile with emulate=True"
                )
            self._runtime.heed_signals()
            return self._call(memory, args, out)
        with memory.activate():
            return self._call(memory, args, out)

    def _in_order(self, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """Arguments by position and by name in the order of the signature."""
        keywords = self.signature.keywords
        numbers = {word: number for number, word in enumerate(keywords)}
        for number, value in enumerate(self.signature.arguments):
            if value.name not in (None, "out", "stream"):
                numbers.setdefault(str(value.name), number)
        values: dict[int, Any] = dict(enumerate(args))
        for name, value in named.items():
            if name not in numbers:
                raise TypeError(
                    f"{self.__name__}: expected some of the arguments {', '.join(keywords)}, "
                    f"but got '{name}'{did_you_mean(name, keywords)}"
                )
            if numbers[name] in values:
                raise TypeError(f"{self.__name__}: argument '{name}' is given twice")
            values[numbers[name]] = value
        missing = [word for number, word in enumerate(keywords) if number not in values]
        if missing:
            raise TypeError(
                f"{self.__name__}: expected also {', '.join(missing)}; "
                f"the signature is {self.signature}"
            )
        return tuple(values[number] for number in sorted(values))

    def _find_memory(self, args: tuple[Any, ...], out: Any, stream: Any) -> Memory:
        if self._tensors and self._tensors[0][0] < self._arity:
            index = self._tensors[0][0]
            value, label = args[index], self.full_signature.label(index)
        elif out is not None:
            value, label = (out[0] if isinstance(out, (tuple, list)) else out), "out"
        else:
            return memories.numpy_memory()
        try:
            return memory_of(value, stream)
        except (TypeError, ValueError) as error:
            raise self._located(error, label) from None

    def _call(self, memory: Memory, args: tuple[Any, ...], out: Any) -> Any:
        pointers: list[int] = []
        sizes: list[int] = []
        # Memory of each argument, where results might overlap it.
        ranges: list[tuple[int, int, int]] = []
        accepted = self._accept(memory)
        for index, value in self._tensors:
            try:
                pointer, dtype, shape = memory.read(args[index])
            except (TypeError, ValueError) as error:
                raise self._located(error, self._label(index)) from None
            rank, static, dynamic = self._checks[index]
            if dtype not in accepted[index]:
                raise self._wrong_type(memory, value, dtype, self._label(index))
            if len(shape) != rank:
                raise self._wrong_shape(value, shape, self._label(index))
            for dimension, size in static:
                if shape[dimension] != size:
                    raise self._wrong_shape(value, shape, self._label(index))
            for dimension in dynamic:
                sizes.append(shape[dimension])
            if pointer % value.type.bytes:
                self._check_alignment(value, pointer, shape, self._label(index))
            pointers.append(pointer)
            if out is not None:
                ranges.append((pointer, pointer + prod(shape) * value.type.bytes, index))
        for first, second in self.equal_sizes:
            if sizes[first] != sizes[second]:
                raise self._different_sizes(sizes, first, second)
        scalars = [self._scalar(index, value, args[index]) for index, value in self._scalars]

        shapes, workspace_bytes = self._plan(sizes, scalars)
        if out is None:
            results, result_pointers = [], []
            for value, shape in zip(self.signature.results, shapes):
                result, pointer = memory.empty(value.type, shape)
                results.append(result)
                result_pointers.append(pointer)
        else:
            result_pointers = self._outputs(memory, out, shapes, ranges)
        workspace: Any = None
        address = 0
        if workspace_bytes:
            workspace, address = memory.workspace(workspace_bytes)
        code = self._run(*pointers, *result_pointers, *sizes, *scalars, address, memory.stream)
        if code != 0:
            self._runtime.check(code, self.__name__)
        del workspace
        if out is not None:
            return out
        if self.results_type is not None:
            return self.results_type(*results)
        return results[0] if len(results) == 1 else tuple(results)

    def _accept(self, memory: Memory) -> list[frozenset[Hashable]]:
        """The dtypes of each argument and then of each result in a kind of memory."""
        if memory.name in self._accepted:
            return self._accepted[memory.name]
        values = (*self.full_signature.arguments, *self.signature.results)
        accepted = [memory.accepts(value.type) for value in values]
        # A type without a dtype may get one later: bf16 in NumPy once ml_dtypes is imported.
        if all(accepted):
            self._accepted[memory.name] = accepted
        return accepted

    def result_shapes(self, *sizes: int, scalars: Sequence[Any] = ()) -> list[tuple[int, ...]]:
        """Shapes of the results, for every dynamic size of the arguments, in order, and scalars."""
        for given, expected, noun in (
            (len(sizes), self._size_count, "sizes"),
            (len(scalars), len(self._scalars), "scalars"),
        ):
            if given != expected:
                raise TypeError(f"{self.__name__}: expected {expected} {noun}, but got {given}")
        converted = [
            self._scalar(index, value, scalar)
            for (index, value), scalar in zip(self._scalars, scalars)
        ]
        return list(self._plan([int(size) for size in sizes], converted)[0])

    def _plan(self, sizes: list[int], scalars: list[Any]) -> tuple[list[tuple[int, ...]], int]:
        """Shapes of the results, and bytes of the workspace."""
        key = tuple(sizes)
        # Shapes may depend on scalars, so then they are computed each time.
        if not scalars and key in self._plans:
            return self._plans[key]
        numbers = self._sizes_type()
        code = self._result_sizes(*sizes, *scalars, numbers)
        if code != 0:
            self._runtime.check(code, self.__name__)
        workspace = self._workspace_size(*sizes, *scalars)
        if workspace < 0:
            raise Error(f"{self.__name__}: {self._runtime.last_error()}")
        shapes, begin = [], 0
        for rank in self._ranks:
            shapes.append(tuple(numbers[begin : begin + rank]))
            begin += rank
        if not scalars:
            if len(self._plans) >= _MAX_PLANS:
                self._plans.clear()
            self._plans[key] = (shapes, workspace)
        return shapes, workspace

    def _scalar(self, index: int, value: Value, given: Any) -> Any:
        try:
            return value.type.convert(given)
        except TypeError:
            raise TypeError(
                f"{self.__name__}: {self._label(index)}: expected a number for {value.type.name}, "
                f"but got {type(given).__qualname__}"
            ) from None
        except (ValueError, OverflowError) as error:
            raise ValueError(f"{self.__name__}: {self._label(index)}: {error}") from None

    def _outputs(
        self,
        memory: Memory,
        out: Any,
        shapes: list[tuple[int, ...]],
        arguments: list[tuple[int, int, int]],
    ) -> list[int]:
        """Checks the tensors that the caller gives for results; returns their addresses.

        They must not overlap arguments, whose begin, end and number are given, or each other.
        """
        accepted = self._accept(memory)[self._arity :]
        results = out if isinstance(out, (tuple, list)) else (out,)
        if len(results) != len(shapes):
            raise TypeError(
                f"{self.__name__}: out: expected {len(shapes)} tensors, but got {len(results)}"
            )
        ranges: list[tuple[int, int]] = []
        for index, (value, shape) in enumerate(zip(self.signature.results, shapes)):
            label = f"out[{index}]"
            try:
                begin, dtype, given_shape = memory.read_output(results[index])
            except (TypeError, ValueError) as error:
                raise self._located(error, label) from None
            if dtype not in accepted[index]:
                raise self._wrong_type(memory, value, dtype, label)
            if tuple(given_shape) != shape:
                raise ValueError(
                    f"{self.__name__}: {label}: expected shape {format_shape(shape)}, "
                    f"but got {format_shape(tuple(given_shape))}"
                )
            if begin % value.type.bytes:
                self._check_alignment(value, begin, shape, label)
            end = begin + prod(shape) * value.type.bytes
            for other, (other_begin, other_end) in enumerate(ranges):
                if begin < other_end and other_begin < end:
                    raise self._overlap(label, f"out[{other}]")
            for other_begin, other_end, argument in arguments:
                if begin < other_end and other_begin < end:
                    raise self._overlap(label, self._label(argument))
            ranges.append((begin, end))
        return [begin for begin, _ in ranges]

    def _label(self, index: int) -> str:
        return self.full_signature.label(index)

    def _check_alignment(self, value: Value, pointer: int, shape: Any, label: str) -> None:
        """Refuses elements that a GPU could not load, unless there are none."""
        if prod(shape):
            raise ValueError(
                f"{self.__name__}: {label}: expected memory aligned to {value.type.bytes} bytes, "
                f"the size of an element ({value.type.name}), but got an address "
                f"{pointer % value.type.bytes} bytes off; a copy is aligned"
            )

    def _overlap(self, label: str, other: str) -> ValueError:
        return ValueError(
            f"{self.__name__}: {label}: expected memory of its own, but it overlaps {other}"
        )

    def _located(self, error: Exception, label: str) -> Exception:
        return type(error)(f"{self.__name__}: {label}: {error}")

    def _wrong_type(self, memory: Memory, value: Value, dtype: Any, label: str) -> TypeError:
        expected = " or ".join(value.type.accepted)
        return TypeError(
            f"{self.__name__}: {label}: expected elements of type {expected}, "
            f"but got {memory.describe(dtype)}"
        )

    def _wrong_shape(self, value: Value, shape: Any, label: str) -> ValueError:
        return ValueError(
            f"{self.__name__}: {label}: expected shape {format_shape(value.shape or ())}, "
            f"but got {format_shape(tuple(shape))}"
        )

    def _different_sizes(self, sizes: list[int], first: int, second: int) -> ValueError:
        places = [
            (index, dimension, size)
            for index, value in self._tensors
            for dimension, size in enumerate(value.shape or ())
            if not isinstance(size, int)
        ]
        first_index, first_dimension, symbol = places[first]
        index, dimension, _ = places[second]
        return ValueError(
            f"{self.__name__}: {self._label(index)}: expected size {sizes[first]} of dimension "
            f"{dimension}, which is {symbol} as in dimension {first_dimension} of "
            f"{self._label(first_index)}, but got {sizes[second]}"
        )

    def __repr__(self) -> str:
        return f"<ftuner.Function {self.signature}>"


def _results_type(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of a function's results."""
    word = re.sub(r"\W", "_", name)
    return collections.namedtuple(f"{word}_results" if word else "results", fields, rename=True)


def _dimension_checks(
    shape: tuple[int | str | None, ...],
) -> tuple[int, list[tuple[int, int]], list[int]]:
    """Rank, dimensions of known size, and the others."""
    static = [(i, size) for i, size in enumerate(shape) if isinstance(size, int)]
    dynamic = [i for i, size in enumerate(shape) if not isinstance(size, int)]
    return len(shape), static, dynamic


def _equal_sizes(signature: Signature) -> list[tuple[int, int]]:
    """Pairs of sizes that must be equal, by their numbers among all dynamic sizes."""
    first: dict[str, int] = {}
    pairs = []
    number = 0
    for value in signature.arguments:
        for size in value.shape or ():
            if isinstance(size, int):
                continue
            if size is not None and first.setdefault(size, number) != number:
                pairs.append((first[size], number))
            number += 1
    return pairs


def _python_signature(signature: Signature) -> inspect.Signature:
    """The signature for `inspect.signature` and the programs that show it."""
    parameters = [
        inspect.Parameter(word, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str(value))
        for word, value in zip(signature.keywords, signature.arguments)
    ]
    for name in ("out", "stream"):
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None))
    results = ", ".join(str(value) for value in signature.results)
    return inspect.Signature(parameters, return_annotation=results)


def _document(signature: Signature) -> str:
    lines = [str(signature), ""]
    for index, value in enumerate(signature.arguments):
        lines.append(
            f"{value.name or f'arg{index}'}: {'tensor' if value.is_tensor else 'number'} {value}"
        )
    for index, value in enumerate(signature.results):
        lines.append(f"result {value.name or index}: tensor {value}")
    if signature.symbols:
        lines += ["", "Sizes known at run time: " + ", ".join(signature.symbols)]
    return "\n".join(lines)
