"""Options, sources and output that commands share."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .. import compiler
from ..describe import descriptions
from ..errors import Error, did_you_mean
from ..host import outputs, progress, runtime
from ..host.elements import ElementType
from ..host.function import Function
from ..host.memory.dlpack import DeviceArray
from ..host.module import Module
from ..host.progress import Progress
from ..host.signature import Signature, Value

T = TypeVar("T")


class UsageError(Exception):
    """The command line is wrong."""


def add_source(parser: argparse.ArgumentParser, *, is_optional: bool = False) -> None:
    """Options of commands that compile; those that need no source add their devices themselves."""
    parser.add_argument(
        "source",
        nargs="?" if is_optional else None,
        help="MLIR file, or a model of ONNX; - for standard input",
    )
    parser.add_argument(
        "--range",
        dest="ranges",
        action="append",
        default=[],
        metavar="NAME=MIN:MAX",
        help="sizes of a dynamic dimension of a model of ONNX; without MAX, there is no limit; "
        "several with commas between",
    )
    parser.add_argument(
        "--projections",
        choices=("joined", "separate"),
        default="joined",
        help="whether products of a model of ONNX that share an input are joined (default: joined)",
    )
    if not is_optional:
        add_device(parser)
    take_pipeline_options(parser)


def take_pipeline_options(parser: argparse.ArgumentParser) -> None:
    """Lets a command take the compiler's options, which its help lists."""
    parser.add_argument(
        "--help-all", action=_HelpAll, help="show this help message with every option, and exit"
    )
    parser.set_defaults(takes_pipeline_options=True, shows_all_options=False)


class _HelpAll(argparse.Action):
    """Prints the help of a command with all options of the compiler."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(
            option_strings, argparse.SUPPRESS, nargs=0, default=argparse.SUPPRESS, **options
        )

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        parser.set_defaults(shows_all_options=True)
        parser.print_help()
        parser.exit()


DEVICE_HELP = "name of a built-in device, path of a description, or cuda for the live GPU"


#: The device that `descriptions.default` chooses, in words.
DEFAULT_DEVICE = f"the live GPU, or {descriptions.WITHOUT_GPU} where there is none"


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--device", help=f"{DEVICE_HELP} (default: {DEFAULT_DEVICE})")


def add_function(parser: argparse.ArgumentParser) -> None:
    """Options of commands that call a function."""
    parser.add_argument("--function", help="its name, where the source has several")
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="INDEX=VALUE",
        help="an argument: a .npy file for a tensor, a number for a scalar; tensors without one "
        "get seeded random data",
    )
    parser.add_argument(
        "--executor",
        choices=["emulator", "cuda"],
        default="emulator",
        help="the CPU emulator, or a GPU (default: %(default)s)",
    )
    parser.add_argument(
        "--gpu", type=int, default=0, metavar="INDEX", help="which GPU (default: 0)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of random data (default: 0)")
    parser.add_argument("--no-cache", action="store_true", help="compile anew, keep nothing")


def read_source(
    source: str, ranges: Sequence[str] = (), projections: str = "joined"
) -> compiler.SourceText:
    """The file of that name, or standard input."""
    if source == outputs.STANDARD:
        if ranges or projections != "joined":
            option = "--range" if ranges else "--projections"
            raise UsageError(f"option {option}: expected a model of ONNX, but got standard input")
        return compiler.SourceText("<stdin>", sys.stdin.buffer.read())
    return compiler.read_source(Path(source), _parse_ranges(ranges), projections)


def _parse_ranges(texts: Sequence[str]) -> dict[str, tuple[int, int | None]]:
    """`--range`: two numbers for each name."""
    ranges = {}
    for name, value in parse_pairs(_items(texts), "--range").items():
        bounds = re.fullmatch(r"(\d+):(\d*)", value)
        if not bounds:
            raise UsageError(f"option --range: expected MIN:MAX for {name}, but got '{value}'")
        ranges[name] = (int(bounds[1]), int(bounds[2]) if bounds[2] else None)
    return ranges


def compile_for(options: argparse.Namespace) -> Module:
    """Compiles the source of a command that calls a function."""
    from ..api import compile

    device = options.device
    if device is None and options.executor == "cuda":
        device = f"cuda:{options.gpu}"
    with Progress(f"compiling {options.source.name}"):
        return compile(
            options.source,
            device=device,
            emulate=options.executor == "emulator",
            cache=False if options.no_cache else None,
            **options.pipeline,
        )


def choose_function(module: Module, name: str | None) -> Function:
    if name is None:
        if len(module.functions) != 1:
            names = ", ".join(module.functions)
            raise UsageError(f"the source has several functions, choose one by --function: {names}")
        (function,) = module.functions.values()
        return function
    if name not in module.functions:
        names = ", ".join(module.functions)
        raise UsageError(f"expected one of the functions {names}, but got '{name}'")
    return module.functions[name]


def _items(texts: Sequence[str]) -> list[str]:
    """Splits texts that are repeated or have commas between them."""
    return [item for text in texts for item in text.split(",")]


def parse_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """`NAME=VALUE`, each in a separate text."""
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"{option}: expected NAME=VALUE, but got '{text}'")
        if name in pairs:
            raise UsageError(f"{option}: expected one value of '{name}', but got two")
        pairs[name] = value
    return pairs


#: The grammar of `--size`, for epilogs.
SIZES = """\
sizes: T=53, a list T=1,7,53, or a range T=1..128 with a step, T=16..2048:16. Several names have
commas between or options of their own (B=1,T=64), and lists of several names give all
combinations. A name that is given again begins a further shape, which keeps the sizes that it
does not give (B=1,T=64,T=128)."""


def add_sizes(parser: argparse.ArgumentParser, help: str) -> None:
    """`--size`, as often as there are sizes: the texts of `options.size`, for `parse_shapes`."""
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=SIZES", help=f"{help} (see below)"
    )


def parse_shape(texts: Sequence[str]) -> dict[str, int]:
    """`--size` of a command that takes one shape."""
    shapes = parse_shapes(texts)
    if len(shapes) > 1:
        raise UsageError(
            f"option --size: expected one shape, but got {len(shapes)}; `ftuner bench` takes several"
        )
    return shapes[0] if shapes else {}


def parse_shapes(texts: Sequence[str]) -> list[dict[str, int]]:
    """`--size` of several shapes (`SIZES`)."""
    groups: list[dict[str, list[int]]] = []
    given: set[str] = set()
    for text in texts:
        name = ""
        for item in text.split(","):
            if "=" in item or not name:
                ((name, item),) = parse_pairs([item], "--size").items()
                if not groups or name in given:
                    groups.append({**groups[-1]} if groups else {})
                    given = set()
                given.add(name)
                groups[-1][name] = []
            groups[-1][name] += _parse_sizes(name, item)
    for group in groups:
        missing = [name for name in groups[-1] if name not in group]
        if missing:
            begin = ",".join(f"{name}={sizes[0]}" for name, sizes in group.items())
            raise UsageError(
                f"option --size: expected {', '.join(missing)} for each shape, but {begin} has none"
            )
    return [
        dict(zip(group, numbers))
        for group in groups
        for numbers in itertools.product(*group.values())
    ]


def _parse_sizes(name: str, text: str) -> Sequence[int]:
    match = re.fullmatch(r"(\d+)(?:\.\.(\d+)(?::(\d+))?)?", text)
    if not match or match[3] == "0":
        raise UsageError(
            f"option --size: expected a whole number for {name}, or a range such as 1..128:8, but got '{text}'"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"option --size: expected a rising range for {name}, but got '{text}'")
    return range(first, last + 1, int(match[3] or 1))


def check_size_names(source: compiler.SourceText, names: Iterable[str]) -> None:
    """Refuses sizes that no function of a source can have, before it is compiled.

    A symbol stands in quotes in the text, and as it is in bytecode; sizes without one are called
    ARGUMENT.DIMENSION.
    """
    is_bytecode = source.content.startswith(b"ML\xefR")
    for name in names:
        word = name.encode() if is_bytecode else f'"{name}"'.encode()
        if word not in source.content and not re.fullmatch(r"\d+\.\d+", name):
            shapes = re.findall(rb"ukernel\.shape\s*=\s*\[([^\]]*)\]", source.content)
            symbols = re.findall(rb'"([^"]*)"', b" ".join(shapes))
            raise _unknown_size(name, [*dict.fromkeys(word.decode() for word in symbols)])


def _unknown_size(name: str, known: Sequence[str]) -> UsageError:
    return UsageError(
        f"option --size: expected one of the sizes {', '.join(known) or 'none'}, but got '{name}'"
        + did_you_mean(name, known)
    )


def size_names(signature: Signature) -> list[str]:
    """Names of the sizes that a call needs: symbols, or ARGUMENT.DIMENSION without a symbol."""
    names = []
    for index, value in enumerate(signature.arguments):
        for dimension, size in enumerate(value.shape or ()):
            if not isinstance(size, int):
                names.append(size or f"{index}.{dimension}")
    return list(dict.fromkeys(names))


class Inputs:
    """Arguments of calls: read from files, or made up once the sizes are known."""

    def __init__(self, signature: Signature, texts: Sequence[str], seed: int) -> None:
        self.signature = signature
        self.seed = seed
        self.given: dict[int, Any] = {}
        numbers = {str(index): index for index in range(len(signature.arguments))}
        for index, value in enumerate(signature.arguments):
            if value.name is not None:
                numbers.setdefault(value.name, index)
        for name, text in parse_pairs(texts, "--input").items():
            if name not in numbers:
                names = [name for name in numbers if not name.isdigit()]
                raise UsageError(
                    f"option --input: expected an argument from 0 to {len(signature.arguments) - 1}"
                    f"{''.join(f', {known}' for known in names)}, but got '{name}'"
                    f"{did_you_mean(name, names)}"
                )
            value = signature.arguments[numbers[name]]
            self.given[numbers[name]] = (
                _read_tensor(text) if value.is_tensor else _read_number(text)
            )
        for index, value in enumerate(signature.arguments):
            if not value.is_tensor and index not in self.given:
                raise UsageError(
                    f"{signature.label(index)} is a number ({value.type.name}): "
                    f"give it by --input {value.name or index}=NUMBER"
                )

    def make(self, sizes: dict[str, int]) -> list[Any]:
        """The arguments for some sizes; sizes that files have need not be given."""
        known = self._sizes_of_files()
        for name, size in sizes.items():
            if known.get(name, size) != size:
                raise UsageError(
                    f"option --size: {name} is {known[name]} in a file, but got {size}"
                )
        sizes = {**known, **sizes}
        missing = [name for name in size_names(self.signature) if name not in sizes]
        if missing:
            examples = " ".join(f"--size {name}=64" for name in missing)
            raise UsageError(
                f"the sizes {', '.join(missing)} are not known: give them by {examples}"
            )
        unknown = [name for name in sizes if name not in size_names(self.signature)]
        if unknown:
            raise _unknown_size(unknown[0], size_names(self.signature))
        rng = np.random.default_rng(self.seed)
        return [
            self.given[index] if index in self.given else _random(index, value, sizes, rng)
            for index, value in enumerate(self.signature.arguments)
        ]

    def _sizes_of_files(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for index, array in self.given.items():
            shape = self.signature.arguments[index].shape
            if shape is None or len(shape) != array.ndim:
                continue  # The call says what is wrong.
            for dimension, size in enumerate(shape):
                if not isinstance(size, int):
                    sizes.setdefault(size or f"{index}.{dimension}", array.shape[dimension])
        return sizes


def _read_tensor(path: str) -> Any:
    try:
        # Reading a large file at once, nothing would end the program meanwhile. "c": what the program writes stays out of the
        # file. Others must not shorten it meanwhile.
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        if not isinstance(array, np.ndarray):  # A .npz file.
            raise ValueError("several arrays")
        return np.ascontiguousarray(array)
    except OSError as error:
        raise Error(f"cannot read the array '{path}': {error.strerror or error}") from error
    except (ValueError, EOFError) as error:  # NumPy takes it for pickled objects.
        raise Error(f"cannot read the array '{path}': expected numbers in a .npy file") from error


def _read_number(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            pass
    if text in ("true", "false"):
        return text == "true"
    raise UsageError(f"option --input: expected a number, but got '{text}'")


def _random(index: int, value: Value, sizes: dict[str, int], rng: np.random.Generator) -> Any:
    shape = [
        size if isinstance(size, int) else sizes[size or f"{index}.{dimension}"]
        for dimension, size in enumerate(value.shape or ())
    ]
    return random_array(value.type, shape, rng)


def random_array(type: ElementType, shape: Sequence[int], rng: np.random.Generator) -> Any:
    """Standard-normal floats, small integers, or booleans."""
    if type.name == "bf16":
        with contextlib.suppress(ImportError):
            importlib.import_module("ml_dtypes")
    dtype = type.numpy
    if dtype is None:
        raise Error("arrays of type bf16 need the package ml_dtypes")
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind == "i":
        return rng.integers(-8, 9, shape).astype(dtype)
    return rng.standard_normal(shape, np.float32).astype(dtype)


def to_executor(args: Sequence[Any], options: argparse.Namespace) -> list[Any]:
    """Arguments where the executor needs them."""
    if options.executor == "emulator":
        return [*args]
    if not 0 <= options.gpu < runtime.get().device_count():
        raise Error(f"there is no GPU {options.gpu}")
    return [
        DeviceArray.from_numpy(value, options.gpu) if isinstance(value, np.ndarray) else value
        for value in args
    ]


def print_json(value: Any) -> None:
    print(outputs.json_text(value), end="")


def write_text(path: str, text: str) -> None:
    """Writes a file, or standard output for `-`."""
    outputs.write_one(path, text.encode("utf-8"))


def has_standard_output(options: argparse.Namespace, *files: str) -> bool:
    """Returns whether one of these options writes to standard output, which then has nothing else.

    Raises `UsageError` where two things would be there.
    """
    given = [f"--{name} -" for name in files if getattr(options, name) == outputs.STANDARD]
    if given and options.json:
        given.append("--json")
    if len(given) > 1:
        names = " and ".join(given)
        raise UsageError(f"expected one option that writes to standard output, but got {names}")
    return bool(given)


def track(items: Iterable[T], label: str) -> Iterator[T]:
    """Goes through the items with a bar on a terminal."""
    everything = list(items)
    is_shown = progress.is_drawn()
    for number, item in enumerate(everything):
        if is_shown:
            filled = 30 * number // len(everything)
            bar = "#" * filled + "." * (30 - filled)
            progress.draw(f"{label} [{bar}] {number}/{len(everything)}")
        yield item
    if is_shown:
        progress.draw("")
