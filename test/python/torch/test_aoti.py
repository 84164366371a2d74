"""Packages of AOTInductor: run by Python and by C++ with no compiler of FTuner and an empty cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from torch._inductor.custom_graph_pass import CustomGraphPass

import ftuner
import ftuner.torch as ft
import torch
from checks import COMPILER, relative_error
from ftuner import locations
from ftuner.cli import main
from ftuner.frontend.torch.hosts import packaged
from ftuner.frontend.torch.hosts.inductor import joined_passes
from ftuner.frontend.torch.hosts.operator import Recipe
from ftuner.frontend.torch.hosts.packaged import PACKAGED_PRODUCT, Interface
from ftuner.frontend.torch.library import LIBRARY
from ftuner.frontend.torch.regions import choice as choices
from ftuner.frontend.torch.regions.choice import Choice, Interval
from ftuner.frontend.torch.regions.linalg import Instruction, LinalgFunction, Range
from ftuner.frontend.torch.settings import Settings
from ftuner.host import native_libraries
from product_functions import product_function
from torch import Tensor, fx, nn

EXAMPLE = Path(__file__).parents[3] / "examples" / "torch"
sys.path.insert(0, str(EXAMPLE))

import export_bert

LENGTHS = [53, 7, 20, 1, 64]
HIDDEN = 32

#: Quick to compile. Headers that are compiled ahead of others pay only for several packages.
CONFIGS = {
    "aot_inductor.precompile_headers": False,
    "aot_inductor.compile_wrapper_opt_level": "O0",
    "cpp.simdlen": 1,
}


@pytest.fixture(scope="module")
def library() -> Path:
    """libftuner_torch.so."""
    return ft.build_library()


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package of a layer of BERT, and samples at five lengths."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("bert")
    layer = export_bert.make_layer(HIDDEN, torch.float32)
    ft.reset_report()
    export_bert.package(layer, folder / "bert.pt2", HIDDEN, inductor_configs=CONFIGS, **COMPILER)
    report = ft.report()
    # Queries, keys and values, scores, weighted values, and three more layers.
    assert report.taken == report.products == 8
    # The scale of the scores, GELU and residuals, which sizes of intermediates do not keep out.
    assert report.fused >= 9
    export_bert.write_samples(layer, folder / "samples.bin", HIDDEN, LENGTHS)
    torch.save(layer.state_dict(), folder / "weights.pt")
    return folder


@pytest.fixture(scope="module")
def runtime_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A prefix of FTuner that has only the runtime."""
    folder = tmp_path_factory.mktemp("prefix") / "lib"
    folder.mkdir()
    for name in ("libftrt.so.1", "libftrt_emulator.so.1"):
        shutil.copy(locations.find(f"lib/{name}"), folder / name)
    return folder.parent


#: Runs the package at each length, without the names of FTuner's compiler.
PYTHON = """
import json, sys
import numpy as np
import torch, ftuner, ftuner.torch as ft
from ftuner import locations
model = torch._inductor.aoti_load_package(sys.argv[1])
errors = []
with open(sys.argv[2], "rb") as file:
    count, _ = np.fromfile(file, np.int64, 2)
    for _ in range(count):
        shape = np.fromfile(file, np.int64, 3)
        (eager,) = np.fromfile(file, np.float64, 1)
        x = torch.from_numpy(np.fromfile(file, np.float32, shape.prod()).reshape(shape))
        exact = torch.from_numpy(np.fromfile(file, np.float64, shape.prod()).reshape(shape))
        errors.append((float((model(x).double() - exact).norm() / exact.norm()), eager))
try:
    locations.tool("ftuner-translate")
    found = True
except ftuner.Error:
    found = False
report = ft.report()
names = model.get_constant_fqns()
# Weights are exchanged without the functions: the last bias is the result of zeros and ones.
weights = torch.load(sys.argv[3])
others = {name: torch.zeros_like(weight) for name, weight in weights.items()}
others["output.LayerNorm.bias"] = torch.full((x.shape[2],), 7.0)
model.load_constants(others, check_full_update=True)
exchanged = torch.equal(model(x), torch.full_like(x, 7.0))
functions = [name for name in names if "ftuner" in name]
result = {
    "errors": errors, "found": found, "exchanged": exchanged, "functions": functions,
    "compiled": report.compiled, "cached": report.cached, "calls": report.calls,
    "copied": report.copied_arguments,
}
print(json.dumps(result))
"""


def test_python_needs_no_compiler(bert: Path, runtime_only: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    environment = {
        **os.environ,
        "FTUNER_HOME": str(runtime_only),
        "FTUNER_CACHE_DIR": str(cache),
        "PATH": str(tmp_path),
    }
    files = [str(bert / name) for name in ("bert.pt2", "samples.bin", "weights.pt")]
    command = [sys.executable, "-c", PYTHON, *files]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert not result["found"] and not cache.exists()
    assert len(result["errors"]) == len(LENGTHS)
    assert all(error <= 2 * eager + 1e-7 for error, eager in result["errors"]), result["errors"]
    assert result["compiled"] == 0 and result["calls"] == 8 * len(LENGTHS)
    assert result["exchanged"]
    # Each function once.
    assert result["cached"] == len(result["functions"]) and result["copied"] == 0


@pytest.fixture(scope="module")
def program(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example in C++, built as its CMakeLists says."""
    folder = tmp_path_factory.mktemp("program")
    configure = [
        *("cmake", "-S", str(EXAMPLE), "-B", str(folder), "-DCMAKE_BUILD_TYPE=None"),
        *(f"-DCMAKE_PREFIX_PATH={torch.utils.cmake_prefix_path}",),
        f"-DFTUNER_TORCH_LIBRARY={library}",
    ]
    for command in (configure, ["cmake", "--build", str(folder)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return folder / "bert_example"


def run_program(
    program: Path, bert: Path, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs it with nothing on the path, and an empty cache."""
    command = [str(program), *arguments, str(bert / "bert.pt2"), str(bert / "samples.bin")]
    return subprocess.run(
        command,
        env={"PATH": str(folder), "FTUNER_CACHE_DIR": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_cpp_needs_no_python(program: Path, bert: Path, tmp_path: Path) -> None:
    needed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True)
    assert "libftuner_torch.so" in needed.stdout and "libpython" not in needed.stdout
    done = run_program(program, bert, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    for length in LENGTHS:
        assert f"2 x {length} tokens: relative error " in done.stdout
    assert not list(tmp_path.iterdir())


def test_cpp_threads(program: Path, bert: Path, tmp_path: Path) -> None:
    """Threads that load the functions at the same time, and call them."""
    done = run_program(program, bert, tmp_path, "--threads", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("relative error") == 2 * len(LENGTHS)


def test_cpp_with_errors(program: Path, bert: Path, tmp_path: Path) -> None:
    """The emulator is missing: the program is told so, and ends as it wants."""
    done = run_program(program, bert, tmp_path, FTRT_EMULATOR=str(tmp_path / "none.so"))
    assert done.returncode == 1, done.stderr
    assert "ftuner::packaged_product: " in done.stderr and "none.so" in done.stderr


def test_cpp_without_the_runtime(program: Path, bert: Path, library: Path, tmp_path: Path) -> None:
    """Without libftrt.so.1 the program gets an error that says so."""
    folder = bytes(locations.find("lib/libftrt.so.1").parent)
    image = library.read_bytes()
    assert folder in image
    moved = tmp_path / "libftuner_torch.so"
    moved.write_bytes(image.replace(folder, b"/" + b"x" * (len(folder) - 1)))
    done = run_program(program, bert, tmp_path, LD_LIBRARY_PATH=str(tmp_path))
    assert done.returncode == 1
    assert "cannot load FTuner's runtime: libftrt.so.1" in done.stderr


def test_cpp_two_copies_of_the_library(
    program: Path, bert: Path, library: Path, tmp_path: Path
) -> None:
    """The operator of the first one stays."""
    shutil.copy(library, tmp_path / "copy.so")
    done = run_program(program, bert, tmp_path, LD_PRELOAD=str(tmp_path / "copy.so"))
    assert done.returncode == 0, done.stderr


def test_layers_share_a_constant() -> None:
    """A function is in a graph once, however many layers call it; passes of the user come first."""
    layers = [nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 24), nn.ReLU()]
    model = nn.Sequential(*layers).to(torch.bfloat16)
    seen: list[int] = []
    held: list[set[str]] = []

    class Own(CustomGraphPass):
        def __init__(self, note: Callable[[fx.Graph], None]) -> None:
            self.note = note

        def __call__(self, graph: fx.Graph) -> None:
            self.note(graph)

        def uuid(self) -> None:
            return None

    def count(graph: fx.Graph) -> None:
        seen.append(sum(node.target is torch.ops.aten.addmm.default for node in graph.nodes))

    def hold(graph: fx.Graph) -> None:
        held.append({str(node.target) for node in graph.nodes if node.op == "get_attr"})

    class Enough(Exception):
        """Before anything is compiled by others."""

    def stop(graph: fx.Graph) -> None:
        hold(graph)
        raise Enough

    own = ft.inductor_pass(packaged=True, take="all", **COMPILER)
    assert own.uuid() != ft.inductor_pass(take="all", **COMPILER).uuid()
    passes = [*joined_passes(Own(count), own), Own(stop)]
    size = torch.export.Dim("T", min=1, max=64)
    x = torch.randn(6, 24).bfloat16()
    program = torch.export.export(model, (x,), dynamic_shapes=({0: size},))
    with pytest.raises(Exception, match="Enough"):
        configs = {"post_grad_custom_pre_pass": passes}
        torch._inductor.aoti_compile_and_package(program, inductor_configs=configs)
    assert seen == [2] and ft.report().taken == 2 and ft.report().fused == 2
    assert len([name for name in held[0] if name.startswith("_tensor_constant_ftuner_")]) == 1
    # Elsewhere the constants would not be kept.
    torch._dynamo.reset()
    compiled = torch.compile(model, options={"post_grad_custom_pre_pass": own})
    with pytest.raises(Exception, match="expected AOTInductor for a pass with packaged=True"):
        compiled(x)


def product(types: tuple[str, str, str] = ("f32", "f32", "f32"), extras: int = 1) -> LinalgFunction:
    """x [d0, 16] by w [16, 24], plus tensors of the result's shape, times three scalars."""
    sums = [
        Instruction("arith.addf", ("x0" if n == 0 else f"v{n - 1}", f"x{n + 1}"))
        for n in range(extras)
    ]
    scales = [Instruction("arith.mulf", (f"v{extras + n - 1}", f"s{n}")) for n in range(3)]
    return product_function(
        name="mm_add_mul",
        loops=("d0", "d1", 16),
        lhs=(0, 2),
        rhs=(2, 1),
        extras=((0, 1),) * extras,
        num_scalars=3,
        epilogue=(*sums, *scales),
        result=f"v{extras + 2}",
        symbols=(("d0", Range(1, 32)), ("d1", Range(1, 32))),
        types=(types[0], types[1], *[types[2]] * extras),
        result_type=types[2],
    )


def compile_product(function: LinalgFunction) -> tuple[bytes, Interface]:
    recipe = Recipe.for_function(function, Settings("h200", True, COMPILER))
    (built,) = LIBRARY.get([recipe], recipe.settings)
    assert isinstance(built, ftuner.Function)
    data = built.module.library_path.read_bytes()
    return data, Interface.for_function(built, function.result_sizes[0], data)


def as_tensor(data: bytes) -> Tensor:
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def with_checksum(text: str, data: bytes) -> str:
    """An interface that was changed, as if it had been written so."""
    head = text[: text.rfind(" crc32=")]
    return f"{head} crc32={zlib.crc32(data, zlib.crc32(head.encode())):08x}"


def operands(
    rows: int, columns: int, dtype: torch.dtype = torch.float32, extras: int = 1
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """Tensors, scalars and the exact result."""
    x, w = torch.randn(rows, 16, dtype=dtype), torch.randn(16, columns, dtype=dtype)
    added = [torch.randn(rows, columns, dtype=dtype) for _ in range(extras)]
    scalars = [torch.tensor(0.5), torch.tensor(3.0, dtype=torch.float64), torch.tensor(-2)]
    exact = (x.double() @ w.double() + sum(tensor.double() for tensor in added)) * -3.0
    return [x, w, *added], scalars, exact


#: Calls the operator of libftuner_torch.so, in a process without FTuner's package.
OPERATOR = """
import sys
from concurrent.futures import ThreadPoolExecutor
import torch
torch.ops.load_library(sys.argv[1])
cases = torch.load(sys.argv[2])
def lie(tensor):
    # Bytes after others, so that the address is not a multiple of an element's size.
    data = bytearray(2) + bytearray(tensor.numpy().tobytes())
    return torch.frombuffer(data, dtype=tensor.dtype, offset=2).reshape(tensor.shape)
def run(case):
    tensors, scalars, library, interface, is_misaligned = case
    if is_misaligned:
        tensors = [lie(tensor) for tensor in tensors]
    try:
        return torch.ops.ftuner.packaged_product([*tensors, *scalars], library, interface)
    except RuntimeError as error:
        return str(error)
with ThreadPoolExecutor(2) as pool:
    torch.save(list(pool.map(run, cases)), sys.argv[3])
assert not any(name.startswith("ftuner") for name in sys.modules)
"""


def run_cpp(library: Path, cases: list[Any], folder: Path) -> list[Tensor | str]:
    torch.save([(*case, False)[:5] for case in cases], folder / "cases.pt")
    files = [str(library), str(folder / "cases.pt"), str(folder / "results.pt")]
    done = subprocess.run(
        [sys.executable, "-c", OPERATOR, *files],
        env={**os.environ, "PYTHONPATH": "", "FTUNER_HOME": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[Tensor | str] = torch.load(folder / "results.pt")
    return results


def run_python(case: Any) -> Tensor | str:
    try:
        tensors, scalars, library, interface = case[:4]
        result: Tensor = PACKAGED_PRODUCT([*tensors, *scalars], library, interface)
        return result
    except (ftuner.Error, ValueError, TypeError, RuntimeError) as error:
        return str(error)


def test_the_operator(library: Path, tmp_path: Path) -> None:
    """Both of its forms, with tensors of every kind, beside the exact results."""
    data, interface = compile_product(product())
    many_data, many = compile_product(product(extras=9))
    bf16_data, bf16 = compile_product(product(("bf16", "bf16", "bf16")))
    f32 = as_tensor(data), interface.write(data)
    cases: list[Any] = []
    expected: list[Tensor] = []

    def add(given: tuple[list[Tensor], list[Tensor], Tensor], *function: Any) -> None:
        tensors, scalars, exact = given
        cases.append((tensors, scalars, *function))
        expected.append(exact)

    for rows, columns in ((7, 24), (1, 1), (32, 5), (0, 24), (100, 3)):
        add(operands(rows, columns), *f32)
    # Many parameters, most of them on the stack.
    add(operands(9, 4, extras=9), as_tensor(many_data), many.write(many_data))
    add(operands(6, 8, torch.bfloat16), as_tensor(bf16_data), bf16.write(bf16_data))
    (x, w, added), scalars, exact = operands(7, 24)
    add(([x.t().contiguous().t(), w, added[:, :1].expand(7, 24)], scalars,
         (x.double() @ w.double() + added[:, :1].double()) * -3.0), *f32)  # fmt: skip
    add(operands(5, 6), *f32, True)
    results = run_cpp(library, cases, tmp_path)
    for number, (case, exact) in enumerate(zip(cases, expected)):
        for result in (results[number], run_python(case)):
            assert isinstance(result, Tensor), (number, result)
            assert result.dtype == case[0][0].dtype and result.is_contiguous()
            if exact.numel():
                limit = 6e-3 if result.dtype == torch.bfloat16 else 1e-6
                assert relative_error(result, exact) <= limit, number
            else:
                assert result.shape == exact.shape
    tensors, scalars, *function = cases[0]
    torch.library.opcheck(PACKAGED_PRODUCT, ([*tensors, *scalars], *function))
    # What operator.py copies, this one copies.
    assert ft.report().copied_arguments == 2


def test_bad_calls(library: Path, tmp_path: Path) -> None:
    """Errors in words from both forms, and no crash."""
    data, interface = compile_product(product())
    blob, text = as_tensor(data), interface.write(data)
    tensors, scalars, _ = operands(7, 24)
    x, w, added = tensors
    noise = bytes(range(256)) * 16
    of_noise = Interface(**{**vars(interface), "bytes": len(noise)}).write(noise)
    damaged = blob.clone()
    damaged[len(data) // 2] ^= 1
    # Functions that are loaded already are not looked at again.
    new = Interface(**{**vars(interface), "name": "new"}).write(data)
    cases: list[tuple[Any, str, str]] = [
        (([x, w], scalars, blob, text), "expected 3 tensors and 3 scalars, but got 5", "arguments"),
        ((tensors, scalars[:2], blob, text), "3 scalars, but got 5 arguments", "arguments"),
        (([], [], blob, text), "but got 0 arguments", "arguments"),
        (([x.double(), w, added], scalars, blob, text), "argument 0: expected elements of type f32", ""),
        (([x[None], w, added], scalars, blob, text), "argument 0: expected 2 dimensions", "shape"),
        (([x[:, :8], w, added], scalars, blob, text), "argument 0: expected size 16 of dimension 1", "shape"),
        (([x, w, added[:3]], scalars, blob, text), "argument 2: expected size 7 of dimension 0", "argument 2"),
        ((tensors, [scalars[0], scalars[1], x], blob, text), "expected scalars of one element", ""),
        ((tensors, scalars, damaged, new), "the package is damaged", "the package is damaged"),
        ((tensors, scalars, blob[:-1], new), "expected a library of", "the package is damaged"),
        ((tensors, scalars, blob, text.replace("d0", "d1", 1)), "is damaged", "is damaged"),
        ((tensors, scalars, blob, "{}"), "expected an interface of a packaged function, but got '{}'", "but got '{}'"),
        ((tensors, scalars, blob, ""), "expected an interface of a packaged function", "expected an interface"),
        ((tensors, scalars, blob, text.replace("interface=1", "interface=2")), "format 2, which another version", "format 2, which another version"),
        ((tensors, scalars, blob, text.replace(" run=", " ran=")), "expected an interface with 'run'", "not complete"),
        ((tensors, scalars, blob, with_checksum(text.replace(" machine=", " machine=s"), data)), "expected a package for", "expected a package for"),
        ((tensors, scalars, as_tensor(noise), of_noise), "cannot load the packaged library", "not a shared library"),
    ]  # fmt: skip
    other_symbol = with_checksum(text.replace(" run=", " run=no_"), data)
    given = [case for case, *_ in cases]
    *results, last = run_cpp(library, [*given, (tensors, scalars, blob, other_symbol)], tmp_path)
    assert isinstance(last, str) and "the packaged library has no 'no_mm_add_mul'" in last
    for (case, cpp, python), result in zip(cases, results):
        assert isinstance(result, str), cpp
        assert "ftuner::packaged_product: " in result and cpp in result, result
        error = run_python(case)
        assert isinstance(error, str) and python in error, (python, error)


#: The library first, then Python's package, in one process.
CPP_FIRST = """
import sys
import torch
torch.ops.load_library(sys.argv[1])
import ftuner.torch as ft
from ftuner.frontend.torch.hosts.packaged import PACKAGED_PRODUCT
case = torch.load(sys.argv[2])
print(float((PACKAGED_PRODUCT(*case[:3]) - case[3]).abs().max()), ft.report().calls)
with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True):
    assert PACKAGED_PRODUCT(*case[:3]).shape == case[3].shape
"""


def test_both_in_one_process(library: Path, tmp_path: Path) -> None:
    """The operator that was defined first stays, and the process goes on."""
    data, interface = compile_product(product())
    tensors, scalars, exact = operands(7, 24)
    case = ([*tensors, *scalars], as_tensor(data), interface.write(data))
    torch.ops.load_library(library)
    assert relative_error(PACKAGED_PRODUCT(*case), exact) < 1e-6
    # Python's operator counts its calls.
    assert ft.report().calls == 1

    torch.save((*case, exact), tmp_path / "case.pt")
    command = [sys.executable, "-c", CPP_FIRST, str(library), str(tmp_path / "case.pt")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    error, calls = done.stdout.split()
    assert float(error) < 1e-4 and int(calls) == 0


def test_threads(library: Path) -> None:
    """Python's operator loads a function once for all its callers."""
    data, interface = compile_product(product())
    text = Interface(**{**vars(interface), "name": "of_threads"}).write(data)
    tensors, scalars, exact = operands(7, 24)
    arguments = [*tensors, *scalars]
    with ThreadPoolExecutor(4) as pool:
        results = list(
            pool.map(lambda _: PACKAGED_PRODUCT(arguments, as_tensor(data), text), range(8))
        )
    assert all(relative_error(result, exact) < 1e-6 for result in results)
    assert ft.report().cached == 1 and ft.report().calls == 8


def test_the_library_is_compiled_once(
    library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = library.stat()
    # Nothing is compiled where the cache has it.
    monkeypatch.setattr(native_libraries, "compile_library", None)
    assert ft.build_library() == library and library.stat() == before
    monkeypatch.undo()
    monkeypatch.setattr(
        native_libraries, "compile_library", lambda command, target: target.write_bytes(b"library")
    )
    # A cache of others has it, too, and where none can be written it lies in a temporary folder.
    monkeypatch.setenv("FTUNER_CACHE_DIR", "/proc/ftuner")
    monkeypatch.setenv("FTUNER_SHARED_CACHE_DIR", str(library.parents[2]))
    assert ft.build_library(cache=True) == library
    monkeypatch.delenv("FTUNER_SHARED_CACHE_DIR")
    with pytest.warns(ftuner.CompileWarning, match="cannot use the compile cache '/proc/ftuner'"):
        assert ft.build_library().read_bytes() == b"library"
    with pytest.raises(ftuner.CacheError, match="cannot use the compile cache '/proc/ftuner'"):
        ft.build_library(cache=True)
    monkeypatch.undo()
    # With other conditions it is another one.
    compiler = tmp_path / "compiler"
    compiler.write_text("#!/bin/sh\necho some words >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    with pytest.raises(ftuner.Error, match="(?s)cannot compile libftuner_torch.so: .*some words"):
        ft.build_library()
    with pytest.raises(ftuner.Error, match="some words"):
        ft.build_library(tmp_path / "out.so")
    assert not (tmp_path / "out.so").exists()
    monkeypatch.setenv("CXX", "no-compiler-of-this-name -O1")
    with pytest.raises(
        ftuner.Error, match="looked for 'no-compiler-of-this-name', which CXX names"
    ):
        ft.build_library()
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(ftuner.Error, match="expected PyTorch 2.10 or later for libftuner_torch.so"):
        ft.build_library()


def test_the_command(library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["torch-library"]) == 0
    assert capsys.readouterr().out == f"{library}\n"
    assert main(["torch-library", "-o", str(tmp_path / "no" / "library.so")]) == 1
    assert "error: " in capsys.readouterr().err


def test_who_computes_a_product_of_a_package() -> None:
    """FTuner or PyTorch, at all sizes: a C++ program has no operators of PyTorch's to take turns."""

    def choice(*times: tuple[float, float]) -> Choice:
        intervals = [
            Interval(
                (number,),
                (number,),
                ftuner_us,
                pytorch_us,
                pytorch_us,
                True,
                ftuner_us <= pytorch_us,
            )
            for number, (ftuner_us, pytorch_us) in enumerate(times)
        ]
        return Choice(tuple(intervals), {}, (0,))

    def sides(whole: Choice) -> list[bool]:
        return [interval.is_ftuners for interval in whole.intervals]

    # The gain of the first interval is more than the second one's loss, or less.
    assert sides(choice((1, 3), (2, 1)).whole()) == [True, True]
    assert sides(choice((1, 2), (3, 1)).whole()) == [False, False]
    # What is PyTorch's everywhere stays so, whatever the times are.
    lost = choice((1, 2))
    lost = replace(lost, intervals=(replace(lost.intervals[0], is_ftuners=False),))
    assert sides(lost.whole()) == [False]

    model = nn.Linear(64, 64)
    size = torch.export.Dim("T", min=1, max=64)
    program = torch.export.export(model, (torch.randn(6, 64),), dynamic_shapes=({0: size},))
    taken: list[bool] = []

    class Stop(CustomGraphPass):
        def __call__(self, graph: fx.Graph) -> None:
            taken.append(any(node.target is PACKAGED_PRODUCT for node in graph.nodes))
            raise RuntimeError("enough")

        def uuid(self) -> None:
            return None

    for gain in (1.0, -1.0):

        def predicted(*_: Any) -> Choice:
            return choice((1, 3), (2, 1)) if gain > 0 else choice((1, 2), (3, 1))

        with pytest.MonkeyPatch.context() as patch, pytest.raises(Exception, match="enough"):
            patch.setattr(choices, "choose", predicted)
            passes = [ft.inductor_pass(packaged=True, **COMPILER), Stop()]
            torch._inductor.aoti_compile_and_package(
                program, inductor_configs={"post_grad_custom_pre_pass": passes}
            )
    assert taken == [True, False]


def test_what_a_package_cannot_be(library: Path) -> None:
    program = torch.export.export(nn.Linear(4, 4), (torch.randn(2, 4),))
    with pytest.raises(TypeError, match="expected no option host of a package"):
        ft.aoti_compile_and_package(program, host="eager")
    with pytest.raises(TypeError, match="expected an option of the backend"):
        ft.aoti_compile_and_package(program, max_kernel=1)
    with pytest.raises(ftuner.Error, match="expected a package with constants"):
        configs = {"aot_inductor.package_constants_in_so": False}
        ft.aoti_compile_and_package(program, inductor_configs=configs)


def test_interfaces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their text is read as it was written, and functions with too many parameters have none."""
    data, interface = compile_product(product())
    text = interface.write(data)
    read = Interface.read(text)
    assert Interface(**{**vars(read), "crc32": 0}) == interface
    assert read.sizes == ((0, 0), (1, 1)) and read.arguments[1] == "f32[16,d1]"
    recipe = Recipe.for_function(product(), Settings("h200", True, COMPILER))
    (built,) = LIBRARY.get([recipe], recipe.settings)
    assert isinstance(built, ftuner.Function)
    for name, needed in (("MAX_SCALARS", 3), ("MAX_INTEGERS", 3 + 4 + 2 + 1)):
        monkeypatch.setattr(packaged, name, needed)
        Interface.for_function(built, product().result_sizes[0], data)
        monkeypatch.setattr(packaged, name, needed - 1)
        with pytest.raises(ftuner.Error, match="expected at most"):
            Interface.for_function(built, product().result_sizes[0], data)
        monkeypatch.undo()
