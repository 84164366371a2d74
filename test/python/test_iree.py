"""`ftuner iree`: models through IREE with FTuner's kernels.

Whole models are compiled, and what they consist of is checked. Modules of products alone are run by IREE's own
runtime, over the driver of the emulator: kernels of IREE's own cannot run there.
"""

from __future__ import annotations

import importlib.util
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
import ftuner.iree
from ftuner import locations
from ftuner.frontend.iree import models, toolchain

pytest.importorskip("iree.compiler")
torch = pytest.importorskip("torch")

import iree_nets as nets
from commands import run_command
from handmade import ROOT
from models import MATMUL
from scale import SCALE

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")

WIDTH = 64
#: Number of sizes that one module is called with.
SIZES = 20 if SCALE > 1 else 8
#: Drivers by target.
DRIVERS = [("cuda", "cuda"), ("llvm-cpu", "local-sync")]


def weight_bytes(program: Any) -> int:
    return sum(t.numel() * t.element_size() for t in program.state_dict.values())


# Model, its elements, attention; dispatches of FTuner's and the least share of all FLOPs that they carry.
MODELS: dict[str, tuple[Callable[[], Any], Any, str, int, float]] = {
    "mlp": (lambda: nets.mlp(WIDTH), torch.float32, "iree", 2, 1.0),
    "bert": (lambda: nets.Bert(WIDTH, 4), torch.float32, "iree", 11, 0.95),
    "gpt2": (lambda: nets.Gpt2(WIDTH, 4), torch.float32, "iree", 9, 0.95),
    "llama": (lambda: nets.Llama(WIDTH, 4), torch.float32, "products", 12, 0.9),
    "llama f16": (lambda: nets.Llama(WIDTH, 4), torch.float16, "products", 12, 0.9),
}


@pytest.mark.parametrize("name", MODELS if SCALE > 1 else ["llama f16"])
def test_models(name: str) -> None:
    """All products are FTuner's; weights are there once; nothing else is a separate dispatch."""
    make, dtype, attention, products, min_share = MODELS[name]
    program = nets.export(make(), WIDTH, dtype)
    built = ftuner.iree.compile(program, attention=attention, require=True, max_kernels=2)
    report = built.report
    assert built.path is None and built.content.startswith(b"PK")
    assert report.ftuner_dispatches == products <= report.dispatches
    assert report.dispatches == products or name != "mlp"
    # Small constants lie beside the weights, at aligned places.
    assert 0.9 * weight_bytes(program) < report.constant_bytes < weight_bytes(program) + 8192
    (function,) = report.functions
    assert function["not_counted"] == []
    assert not any(op["contraction"] for op in function["left"])
    sizes = [share["sizes"] for share in function["shares"]]
    # Ranges of IREE begin at 1.
    assert sizes[0] == {"arg0_dim0": 1, "arg0_dim1": 1}
    assert sizes[-1] == {"arg0_dim0": 16, "arg0_dim1": 128}
    share = function["shares"][-1]
    assert share["contraction_share"] == 1 and min_share <= share["share"] <= 1
    assert share["contraction_flops"] <= share["flops"]
    assert len(report.as_dict()) == 6 and f"{products} of them FTuner's" in str(report)


def check_flops_of_a_layer(report: ftuner.iree.Report, width: int) -> None:
    """FLOPs of the report against the formula: two of each multiplication with its sum."""
    for share in report.functions[0]["shares"]:
        b, t = share["sizes"]["arg0_dim0"], share["sizes"]["arg0_dim1"]
        products = 2 * b * t * (4 * width**2 + 8 * width**2 + 2 * t * width)
        # Bias, scale, residual and GELU are of the kernels, too.
        assert products <= share["contraction_flops"] <= 1.1 * products


def test_attention_is_left_to_iree_unless_asked() -> None:
    program = nets.export(nets.Llama(WIDTH, 4), WIDTH)
    report = ftuner.iree.compile(program, max_kernels=1).report
    (function,) = report.functions
    left = [op for op in function["left"] if op["contraction"]]
    assert [op["operator"] for op in left] == ["iree_linalg_ext.attention"]
    assert report.ftuner_dispatches == 9
    share = function["shares"][-1]
    b, t = share["sizes"]["arg0_dim0"], share["sizes"]["arg0_dim1"]
    attention = share["contraction_flops"] * (1 - share["contraction_share"])
    assert 4 * b * t * t * WIDTH <= attention <= 1.2 * 4 * b * t * t * WIDTH
    assert "left to IREE: 1 × iree_linalg_ext.attention" in str(report)


@pytest.mark.everything
def test_a_layer_of_real_width() -> None:
    program = nets.export(nets.Bert(768, 12), 768)
    report = ftuner.iree.compile(program, max_kernels=2).report
    # Products with slices of k are two.
    products = len(report.functions[0]["dispatches"])
    assert products == 8 <= report.ftuner_dispatches <= 2 * products
    # Norms are fresh, so their weights are one number.
    assert 0.99 * weight_bytes(program) < report.constant_bytes < weight_bytes(program) + 8192
    assert report.functions[0]["shares"][-1]["share"] > 0.99
    check_flops_of_a_layer(report, 768)


RUN = r"""
import sys
import numpy as np
import iree.runtime as runtime

path, driver, plugin, cases = sys.argv[1], sys.argv[2], sys.argv[3], np.load(sys.argv[4])
if plugin:
    runtime.flags.parse_flags("--executable_plugin=" + plugin)
module = runtime.load_vm_flatbuffer_file(path, driver=driver)
arguments = {}
for name in cases.files:
    arguments.setdefault(name.split(".")[0], []).append(cases[name])
results = {name: module.main(*given).to_host() for name, given in arguments.items()}
np.savez(sys.argv[5], **results)
"""


def run_module(
    folder: Path, driver: str, cases: dict[str, tuple[Any, ...]], others: Sequence[Path] = ()
) -> tuple[Any, int]:
    """Results of `model.vmfb` by the names of their arguments, and launches of FTuner's kernels.

    Kernels are in `libkernels.so` beside it.
    """
    given = {f"{name}.{i}": x for name, xs in cases.items() for i, x in enumerate(xs)}
    np.savez(folder / "cases.npz", **given)
    libraries = ":".join(map(str, [*others, folder / "libkernels.so"]))
    environment = {**os.environ, "FTRT_EMULATED_LIBRARIES": libraries, "FTRT_TRACE": "1"}
    plugin = ""
    if driver == "cuda":
        environment["LD_LIBRARY_PATH"] = str(locations.find("lib/cuda-emulator"))
    else:
        plugin = str(locations.find("lib/libftuner_iree_plugin.so"))
    files = [folder / "cases.npz", folder / "results.npz"]
    command = [sys.executable, "-c", RUN, folder / "model.vmfb", driver, plugin, *files]
    run = subprocess.run([*map(str, command)], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    launched = [line for line in run.stderr.splitlines() if line.startswith("launch ")]
    return np.load(folder / "results.npz"), len(launched)


def check_run(
    folder: Path, model: Any, width: int, dtype: Any, tolerance: float, sizes: set[tuple[int, int]],
    rng: np.random.Generator, driver: str, launches: int, others: Sequence[Path] = (), **options: Any
) -> ftuner.iree.Report:  # fmt: skip
    """Compiles a model from a file and compares its results with PyTorch's in float64.

    `others` are libraries of kernels of other models.
    """
    pytest.importorskip("iree.runtime")
    torch.export.save(nets.export(model, width, dtype), folder / "model.pt2")
    module, kernels = folder / "model.vmfb", folder / "libkernels.so"
    report = ftuner.iree.compile(
        folder / "model.pt2", module, emulated_kernels=kernels, **options
    ).report
    numpy_type = np.float16 if dtype == torch.float16 else np.float32
    cases = {f"{b}x{t}": rng.standard_normal((b, t, width)).astype(numpy_type) for b, t in sizes}
    results, launched = run_module(folder, driver, {n: (x,) for n, x in cases.items()}, others)
    assert launched == launches * len(sizes)
    exact = model.to(torch.float64)
    for name, x in cases.items():
        with torch.no_grad():
            wanted = exact(torch.from_numpy(x.astype(np.float64))).numpy()
        error = np.linalg.norm(results[name] - wanted) / np.linalg.norm(wanted)
        assert results[name].shape == wanted.shape and error < tolerance, (name, error)
    return report


def random_sizes(rng: np.random.Generator, count: int, batch: int, length: int) -> set[Any]:
    """Batches and lengths of the range, with its ends."""
    sizes = {(1, 2), (batch, length)}
    while len(sizes) < count:
        sizes.add((int(rng.integers(1, batch + 1)), int(rng.integers(2, length + 1))))
    return sizes


class Gated(torch.nn.Module):
    """Products with a product of both behind, a residual and a bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, 2 * width)
        self.down = torch.nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.down(torch.nn.functional.silu(self.up(x)))


def test_no_product_for_the_emulator(tmp_path: Path, rng: np.random.Generator) -> None:
    """A model that is all IREE's runs beside a library without kernels."""
    model, sizes = torch.nn.Softplus(), random_sizes(rng, 3, 4, 16)
    options = {"target": "llvm-cpu", "tolerance": 1e-6, "driver": "local-sync", "launches": 0}
    with pytest.warns(ftuner.CompileWarning, match="FTuner found no product"):
        report = check_run(tmp_path, model, 24, torch.float32, sizes=sizes, rng=rng, **options)
    assert report.kernels == 0


# test_products_of_constants has a product of f32.
@pytest.mark.parametrize(
    ("make", "dtype", "tolerance"),
    [(lambda: Gated(48), torch.float16, 2e-3), (lambda: nets.mlp(48), torch.float32, 5e-6)][
        : None if SCALE > 1 else 1
    ],
)
def test_products_over_the_driver(
    make: Callable[[], Any], dtype: Any, tolerance: float, tmp_path: Path, rng: np.random.Generator
) -> None:
    """A module for CUDA of products with what follows them, at many sizes."""
    torch.manual_seed(int(rng.integers(2**31)))
    sizes = random_sizes(rng, SIZES, 16, 128)
    report = check_run(tmp_path, make(), 48, dtype, tolerance, sizes, rng, "cuda", 2, max_kernels=4)
    assert report.dispatches == report.ftuner_dispatches == 2


def test_libraries_of_several_models(tmp_path: Path, rng: np.random.Generator) -> None:
    """Kernels of models whose functions have one name are not taken for each other."""
    torch.manual_seed(int(rng.integers(2**31)))
    libraries: list[Path] = []
    for number, make in enumerate((nets.mlp, Gated)):
        folder = tmp_path / str(number)
        folder.mkdir()
        check_run(
            folder, make(48), 48, torch.float32, 1e-5, random_sizes(rng, 3, 4, 48), rng,
            "local-sync", 2, libraries, target="llvm-cpu", max_kernels=1,
        )  # fmt: skip
        libraries.append(folder / "libkernels.so")


class Adapter(torch.nn.Module):
    """A weight with an addend of low rank."""

    def __init__(self, width: int) -> None:
        super().__init__()
        shapes = {"weight": (width, 96), "down": (width, 8), "up": (8, 96)}
        for name, shape in shapes.items():
            self.register_parameter(name, torch.nn.Parameter(torch.randn(shape) / 8))

    def forward(self, x: Any) -> Any:
        return x @ (self.weight + self.down @ self.up)


@pytest.mark.parametrize(("target", "driver"), DRIVERS)
def test_products_of_constants(
    target: str, driver: str, tmp_path: Path, rng: np.random.Generator
) -> None:
    """IREE computes them while it compiles, where kernels of others cannot run."""
    torch.manual_seed(int(rng.integers(2**31)))
    sizes = random_sizes(rng, 4, 4, 48)
    report = check_run(
        tmp_path, Adapter(64), 64, torch.float32, 5e-6, sizes, rng, driver, 1, target=target,
        max_kernels=2,
    )  # fmt: skip
    assert report.dispatches == report.ftuner_dispatches == 1
    (function,) = report.functions
    assert [op["contraction"] for op in function["left"]].count(True) == 1


PACKS = {"device": "h100", "paths": "simt,mma,wgmma", "pack_weights": True, "max_kernels": 2}


# The suite has the first: test/Integration/iree_cpu.py runs packed weights by the other.
@pytest.mark.parametrize(("target", "driver"), DRIVERS if SCALE > 1 else DRIVERS[:1])
def test_packed_weights(target: str, driver: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """IREE puts weights in order while it compiles, or when it loads those beside the module."""
    torch.manual_seed(int(rng.integers(2**31)))
    sizes = random_sizes(rng, 5, 4, 48)
    report = check_run(
        tmp_path, nets.mlp(64), 64, torch.float16, 2e-3, sizes, rng, driver, 2, target=target,
        **PACKS,
    )  # fmt: skip
    assert report.dispatches == report.ftuner_dispatches == 2
    left_out = ftuner.iree.compile(
        tmp_path / "model.pt2", target=target, parameters=tmp_path / "weights.safetensors", **PACKS
    ).report
    assert (left_out.dispatches, left_out.ftuner_dispatches) == (4, 2)


#: Models, launches of FTuner's kernels, and relative errors.
CPU_MODELS: dict[str, tuple[Callable[[], Any], Any, int, float]] = {
    "mlp": (lambda: nets.mlp(64), torch.float32, 2, 1e-5),
    "bert": (lambda: nets.Bert(64, 4), torch.float32, 11, 1e-5),
    # torch-mlir rounds the constants of GELU.
    "gpt2": (lambda: nets.Gpt2(64, 4), torch.float32, 9, 5e-5),
    "llama": (lambda: nets.Llama(64, 4), torch.float32, 12, 1e-5),
    "llama f16": (lambda: nets.Llama(64, 4), torch.float16, 12, 5e-3),
}


# test_transformers_as_exported runs bert and gpt2.
@pytest.mark.parametrize("name", CPU_MODELS if SCALE > 1 else ["mlp"])
def test_whole_models_on_the_cpu(name: str, tmp_path: Path, rng: np.random.Generator) -> None:
    """IREE's and FTuner's kernels run together, at many sizes of one module."""
    make, dtype, launches, tolerance = CPU_MODELS[name]
    torch.manual_seed(int(rng.integers(2**31)))
    sizes = random_sizes(rng, SIZES, 4, 48)
    report = check_run(
        tmp_path, make(), 64, dtype, tolerance, sizes, rng, "local-sync", launches,
        target="llvm-cpu", attention="products", max_kernels=3,
    )  # fmt: skip
    assert report.ftuner_dispatches == launches


def transformer(name: str) -> tuple[Any, int]:
    """A model of `transformers` of one layer, and its number of arguments: tokens, and a mask."""
    transformers = pytest.importorskip("transformers")
    if name == "bert":
        config = transformers.BertConfig(
            hidden_size=32, num_attention_heads=4, intermediate_size=64, num_hidden_layers=1,
            vocab_size=100, max_position_embeddings=64,
        )  # fmt: skip
        model, output = transformers.BertModel(config, add_pooling_layer=False), "last_hidden_state"
    else:
        config = transformers.GPT2Config(
            n_embd=32, n_layer=1, n_head=4, vocab_size=100, n_positions=64, use_cache=False,
            bos_token_id=0, eos_token_id=0,
        )  # fmt: skip
        model, output = transformers.GPT2LMHeadModel(config), "logits"

    class Output(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return getattr(self.model(**dict(zip(("input_ids", "attention_mask"), given))), output)

    return Output().eval(), 2 if name == "bert" else 1


@pytest.mark.parametrize(
    ("name", "launches", "tolerance"),
    [("bert", 13, 1e-6), ("gpt2", 12, 5e-5)][: None if SCALE > 1 else 1],
)
def test_transformers_as_exported(
    name: str, launches: int, tolerance: float, tmp_path: Path, rng: np.random.Generator
) -> None:
    """By the command from the saved program, against PyTorch, at sizes of the declared range."""
    pytest.importorskip("iree.runtime")
    torch.manual_seed(int(rng.integers(2**31)))
    model, count = transformer(name)

    def arguments(batch: int, length: int) -> tuple[Any, ...]:
        lengths = rng.integers(1, length + 1, (batch, 1))
        mask = (np.arange(length) < lengths).astype(np.int64)
        return (rng.integers(0, 100, (batch, length)), mask)[:count]

    dims = {0: torch.export.Dim("B", min=1, max=8), 1: torch.export.Dim("T", min=2, max=64)}
    program = torch.export.export(
        model, tuple(map(torch.from_numpy, arguments(2, 8))), dynamic_shapes=((dims,) * count,)
    )
    torch.export.save(program, tmp_path / "model.pt2")
    result = run(
        tmp_path / "model.pt2", "-o", tmp_path / "model.vmfb", "--attention=products", "--json",
        "--target=llvm-cpu", f"--emulated-kernels={tmp_path}/libkernels.so", "--max-kernels=1",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["ftuner_dispatches"] == launches
    assert not any(op["contraction"] for op in report["functions"][0]["left"])
    cases = {f"{b}x{t}": arguments(b, t) for b, t in ((1, 2), (1, 17), (3, 5), (8, 64))}
    results, launched = run_module(tmp_path, "local-sync", cases)
    assert launched == launches * len(cases)
    for case, given in cases.items():
        with torch.no_grad():
            wanted = model(*map(torch.from_numpy, given)).numpy()
        assert results[case].shape == wanted.shape
        error = np.linalg.norm(results[case] - wanted) / np.linalg.norm(wanted)
        assert error < tolerance, (case, error)


class Padded(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.nn.functional.pad(x, (0, max(0, 40 - x.shape[0])))


class Branching(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.cond(x.sum() > 0, lambda y: y + 1, lambda y: y * 2, (x,))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Padded(), r"it does not know sym_max of sizes; write them with \+, -, \* and //"),
        (Branching(), "it does not know the operator cond; .* torch.where"),
    ],
)
def test_refused_by_the_importer(model: Any, words: str) -> None:
    """One sentence with the operator, and what to write instead."""
    rows = torch.export.Dim("T", min=2, max=64)
    with pytest.raises(ftuner.CompileError, match=words) as refused:
        ftuner.iree.compile(model, args=(torch.randn(7),), dynamic_shapes=({0: rows},))
    assert len(str(refused.value).splitlines()) == 1


class Masked(torch.nn.Module):
    """Attention with a mask of queries and keys that is read from one of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = torch.nn.Linear(64, 192)

    def forward(self, x: Any, mask: Any) -> Any:
        b, t, _ = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, 2, 32).permute(2, 0, 3, 1, 4).unbind(0)
        place = torch.arange(t)
        kept = mask.bool()[torch.arange(b)[:, None, None, None], place]
        kept = kept & (place[:, None] >= 0)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=kept)
        return y.transpose(1, 2).reshape(b, t, 64)


def test_masks_for_cuda() -> None:
    """The softmax lies between the products, and one row operator finds rows that are masked whole."""
    dims = {0: torch.export.Dim("B", min=1, max=8), 1: torch.export.Dim("T", min=2, max=64)}
    report = ftuner.iree.compile(
        Masked().eval(), args=(torch.randn(2, 8, 64), torch.ones(2, 8, dtype=torch.long)),
        dynamic_shapes=(dims, dims), attention="products", max_kernels=1,
    ).report  # fmt: skip
    assert report.ftuner_dispatches == 5


class Patches(torch.nn.Module):
    """A product of as many rows as a convolution with a stride leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Conv1d(8, 32, 3, stride=2, padding=1)
        self.second = torch.nn.Linear(32, 48)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x).transpose(1, 2))


def test_sizes_after_a_convolution(tmp_path: Path, rng: np.random.Generator) -> None:
    """The sizes are halves of declared ones, and so is the product's range."""
    pytest.importorskip("iree.runtime")
    torch.manual_seed(int(rng.integers(2**31)))
    model = Patches().eval()
    dims = {0: torch.export.Dim("B", min=1, max=4), 2: torch.export.Dim("T", min=3, max=40)}
    report = ftuner.iree.compile(
        model, tmp_path / "model.vmfb", args=(torch.randn(2, 8, 10),), dynamic_shapes=(dims,),
        target="llvm-cpu", emulated_kernels=tmp_path / "libkernels.so", max_kernels=2,
    ).report  # fmt: skip
    assert report.ftuner_dispatches == 1
    shapes = ((1, 8, 3), (1, 8, 40), (4, 8, 11), (3, 8, 28))
    cases = {str(n): (rng.standard_normal(s, np.float32),) for n, s in enumerate(shapes)}
    results, _ = run_module(tmp_path, "local-sync", cases)
    for case, (x,) in cases.items():
        with torch.no_grad():
            wanted = model(torch.from_numpy(x)).numpy()
        assert results[case].shape == wanted.shape
        assert np.linalg.norm(results[case] - wanted) < 1e-6 * np.linalg.norm(wanted)


def test_operators_without_a_lowering(tmp_path: Path) -> None:
    """One sentence with the operator, its line, and what to write instead."""

    class Airy(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.special.airy_ai(x)

    with pytest.raises(ftuner.CompileError) as refused:
        ftuner.iree.compile(Airy(), args=(torch.randn(3),))
    sentence = str(refused.value).splitlines()[-1]
    line = Airy.forward.__code__.co_firstlineno + 1
    assert f"test_iree.py:{line}:0: error: the operator aten.special_airy_ai has no" in sentence
    assert "run_decompositions({torch.ops.aten.special_airy_ai.default: function})" in sentence
    # What it says works.
    program = torch.export.export(Airy(), (torch.randn(3),)).run_decompositions(
        {torch.ops.aten.special_airy_ai.default: torch.exp}
    )
    with pytest.warns(ftuner.CompileWarning, match="found no product"):
        assert ftuner.iree.compile(program).report.dispatches == 1


def exports_of(module: Path) -> list[tuple[str, str]]:
    """Threads and shared memory of the kernels of a module for IREE."""
    fields = []
    for line in module.read_text().splitlines():
        if '"hal.executable.export"' in line:
            memory, threads = line.split("workgroup_local_memory = ")[1].split(
                ", workgroup_size = "
            )
            fields.append((memory, threads.split("}>")[0]))
    return fields


LINEAR = """
module attributes {{ukernel.symbols = {{T = #ukernel.range<{least} to {most}>}}}} {{
  func.func @main(%x: tensor<?x256xf32> {{ukernel.shape = ["T", 256]}}, %w: tensor<512x256xf32>) -> tensor<?x512xf32> {{
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %t = tensor.dim %x, %c0 : tensor<?x256xf32>
    %e = tensor.empty(%t) : tensor<?x512xf32>
    %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x512xf32>) -> tensor<?x512xf32>
    %r = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %w : tensor<?x256xf32>, tensor<512x256xf32>) outs(%f : tensor<?x512xf32>) -> tensor<?x512xf32>
    return %r : tensor<?x512xf32>
  }}
}}
"""


def test_ranges_of_exported_programs(tmp_path: Path) -> None:
    """Families equal linalg's with the range that the exported program declares."""
    found = {}
    for largest in (8, 512):
        length = torch.export.Dim("T", min=2, max=largest)
        program = torch.export.export(
            torch.nn.Linear(256, 512, bias=False).eval(),
            (torch.randn(4, 256),),
            dynamic_shapes=({0: length},),
        )
        source = tmp_path / "linear.mlir"
        source.write_text(LINEAR.format(least=1, most=largest))
        for name, model in (("torch", program), ("linalg", source)):
            if (name, largest) == ("linalg", 512) and SCALE == 1:
                continue
            folder = tmp_path / f"{name}{largest}"
            ftuner.iree.compile(model, max_kernels=4, keep_intermediates=folder)
            found[name, largest] = exports_of(folder / "after.mlir")
        assert found["torch", largest] == found.get(("linalg", largest), found["torch", largest])
    assert found["torch", 8] != found["torch", 512]


def test_min_sizes_of_exported_programs(tmp_path: Path) -> None:
    """Sizes that are not declared begin at 1, not at PyTorch's 2; declared ones stay."""
    from iree.compiler import ir

    from ftuner.frontend.iree import exported

    dim = torch.export.Dim
    for batch, wanted in ((dim("B", min=1, max=8), "1, max_val = 8"), (dim.AUTO, "1, max_val = 9")):
        program = torch.export.export(
            torch.nn.Linear(32, 48).eval(),
            (torch.randn(4, 40, 32),),
            dynamic_shapes=({0: batch, 1: dim("T", min=33, max=64)},),
        )
        path, _ = exported.write(
            program, tmp_path, tmp_path / "weights", attention="iree", name="main"
        )
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            text = str(ir.Module.parse(path.read_bytes()))
        assert f"min_val = {wanted}" in text
        assert "min_val = 33, max_val = 64" in text


def test_a_declared_size_of_one(tmp_path: Path) -> None:
    """A batch of 1 of a saved program is in the range, and families cover the range."""
    program = torch.export.export(
        torch.nn.Linear(256, 512, bias=False).eval(),
        (torch.randn(4, 256),),
        dynamic_shapes=({0: torch.export.Dim("B", min=1, max=16)},),
    )
    torch.export.save(program, tmp_path / "model.pt2")
    source = tmp_path / "linear.mlir"
    source.write_text(LINEAR.format(least=1, most=16))
    for name, model in (("saved", tmp_path / "model.pt2"), ("linalg", source)):
        ftuner.iree.compile(model, max_kernels=4, keep_intermediates=tmp_path / name)
    assert "umin = 1, umax = 16" in (tmp_path / "saved" / "before.mlir").read_text()
    saved, linalg = (exports_of(tmp_path / name / "after.mlir") for name in ("saved", "linalg"))
    assert saved == linalg


STABLEHLO = """
func.func @main(%x: tensor<?x32xf32>, %w: tensor<32x64xf32>) -> tensor<?x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<?x32xf32>, tensor<32x64xf32>) -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}
"""
TOSA = """
func.func @main(%x: tensor<1x?x32xf32>, %w: tensor<1x32x64xf32>) -> tensor<1x?x64xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %x, %w, %z, %z : (tensor<1x?x32xf32>, tensor<1x32x64xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x?x64xf32>
  return %0 : tensor<1x?x64xf32>
}
"""
TORCH = """
func.func @main(%x: !torch.vtensor<[?,32],f32>, %w: !torch.vtensor<[32,64],f32>) -> !torch.vtensor<[?,64],f32> {
  %0 = torch.aten.mm %x, %w : !torch.vtensor<[?,32],f32>, !torch.vtensor<[32,64],f32> -> !torch.vtensor<[?,64],f32>
  return %0 : !torch.vtensor<[?,64],f32>
}
"""
LINALG = MATMUL.replace(
    " attributes {ukernel.symbols = {T = #ukernel.range<1 to 16>}}", ""
).replace(' {ukernel.shape = ["T", 32]}', "")


@pytest.mark.parametrize(
    "text",
    [STABLEHLO, TOSA, TORCH, LINALG, MATMUL],
    ids=["stablehlo", "tosa", "torch", "linalg", "own"],
)
def test_dialects(text: str, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(text)
    # One kernel serves every address and every row.
    report = ftuner.iree.compile(
        tmp_path / "model.mlir", max_kernels=1, any_address=True, require=True
    ).report
    assert (report.dispatches, report.ftuner_dispatches, report.kernels) == (1, 1, 1)


# iree_cpu and iree_cuda of test/Integration run products like the others.
@pytest.mark.parametrize("name", ["attention", "dense", "projection"][: None if SCALE > 1 else 1])
def test_examples(name: str) -> None:
    report = ftuner.iree.compile(
        Path(ROOT, "examples", f"{name}.mlir"), max_kernels=2, require=True
    ).report
    assert report.ftuner_dispatches == {"attention": 3}.get(name, 1)
    assert all(f["shares"][-1]["contraction_share"] == 1 for f in report.functions)


def test_constants_of_mlir(tmp_path: Path) -> None:
    """Weights in the text go past FTuner, and are in the module once."""
    from iree.compiler import ir
    from iree.compiler.extras import fx_importer

    program = nets.export(nets.mlp(WIDTH), WIDTH)
    importer = fx_importer.FxImporter(context=ir.Context())
    importer.import_program(program.run_decompositions({}), func_name="main")
    (tmp_path / "model.mlir").write_text(str(importer.module))
    report = ftuner.iree.compile(tmp_path / "model.mlir", max_kernels=1).report
    assert report.ftuner_dispatches == 2
    assert report.constant_bytes <= weight_bytes(program) + 1024


def test_weights_beside_the_module(tmp_path: Path) -> None:
    program = nets.export(nets.mlp(WIDTH), WIDTH)
    weights = tmp_path / "weights.safetensors"
    built = ftuner.iree.compile(program, parameters=weights, max_kernels=1)
    assert built.report.ftuner_dispatches == 2
    assert weights.stat().st_size >= 0.99 * weight_bytes(program)
    assert len(built.content) < 2 * weight_bytes(program)
    for wrong in ("weights.irpa", "weights"):
        with pytest.raises(ftuner.Error, match="ends in .safetensors"):
            ftuner.iree.compile(program, parameters=tmp_path / wrong)


@pytest.fixture
def onnx_model(tmp_path: Path, rng: np.random.Generator) -> Path:
    onnx = pytest.importorskip("onnx")
    helper, f32 = onnx.helper, onnx.TensorProto.FLOAT
    weight, bias = (
        onnx.numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
        for name, shape in (("w", (32, 64)), ("b", (64,)))
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["s"]),
        helper.make_node("Relu", ["s"], ["y"]),
    ]
    values = [helper.make_tensor_value_info(n, f32, ["T", s]) for n, s in (("x", 32), ("y", 64))]
    graph = helper.make_graph(nodes, "main", values[:1], values[1:], [weight, bias])
    path = tmp_path / "layer.onnx"
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


def test_onnx(onnx_model: Path, tmp_path: Path) -> None:
    report = ftuner.iree.compile(onnx_model, max_kernels=1).report
    assert (report.dispatches, report.ftuner_dispatches) == (1, 1)
    assert 32 * 64 * 4 <= report.constant_bytes <= 32 * 64 * 4 + 1024
    weights = tmp_path / "weights.irpa"
    ftuner.iree.compile(onnx_model, parameters=weights, max_kernels=1)
    assert weights.stat().st_size >= 32 * 64 * 4


def test_endings_in_capitals(onnx_model: Path, matmul: Path, tmp_path: Path) -> None:
    for path in (onnx_model, matmul):
        capital = path.rename(tmp_path / path.name.upper())
        report = ftuner.iree.compile(capital, tmp_path / "model.vmfb", max_kernels=1).report
        assert report.ftuner_dispatches == 1


@pytest.mark.parametrize("package", ["onnx", "iree.runtime"])
def test_a_missing_package(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *_: None if name == package else real(name)
    )
    path = tmp_path / "model.onnx"
    path.write_bytes(b"")
    pip = {"iree.runtime": "iree-base-runtime"}.get(package, package)
    with pytest.raises(ftuner.Error, match=f"need the package {pip}: pip install {pip}"):
        ftuner.iree.compile(path)


def test_modules_of_pytorch() -> None:
    """A module is exported with the given arguments; equal storage is one parameter."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
    model[2].weight = model[0].weight
    length = torch.export.Dim("T", min=2, max=64)
    args, shapes = (torch.randn(4, 64),), ({0: length},)
    report = ftuner.iree.compile(model, args=args, dynamic_shapes=shapes, max_kernels=1).report
    assert report.ftuner_dispatches == 2
    assert report.constant_bytes < 1.5 * 64 * 64 * 4
    with pytest.raises(TypeError, match="args: expected example arguments"):
        ftuner.iree.compile(model)
    with pytest.raises(TypeError, match="expected none for a file"):
        ftuner.iree.compile("model.pt2", args=args)
    with pytest.raises(TypeError, match="model: expected a path"):
        ftuner.iree.compile(3)
    with pytest.raises(TypeError, match="args: expected a tuple of the arguments, but got Tensor"):
        ftuner.iree.compile(model, args=args[0], dynamic_shapes=shapes)
    with pytest.raises(TypeError, match="phase: expected start or input"):
        ftuner.iree.compile(model, phase="flow")
    with pytest.raises(TypeError, match="cuda_target: expected none"):
        ftuner.iree.compile(model, target="llvm-cpu", cuda_target="sm_80")

    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(3))

        def forward(self, x: Any) -> Any:
            self.count += 1
            return x + self.count

    with pytest.raises(ftuner.CompileError, match="torch-mlir cannot import the model"):
        ftuner.iree.compile(Counter(), args=(torch.randn(3),))


def run(
    *arguments: Any, given: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command, with `given` on standard input."""
    return run_command("iree", *arguments, given=given, environment=environment, modules=("torch",))


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def matmul(tmp_path: Path) -> Path:
    path = tmp_path / "matmul.mlir"
    path.write_text(MATMUL)
    return path


def test_the_command(matmul: Path, tmp_path: Path) -> None:
    module, folder = tmp_path / "model.vmfb", tmp_path / "steps"
    kernels = tmp_path / "libkernels.so"
    result = run(
        matmul, "-o", module, "--max-kernels", 2, "--keep-intermediates", folder,
        f"--emulated-kernels={kernels}", "--json", "--", "--iree-opt-level=O1",
    )  # fmt: skip
    assert result.returncode == 0 and result.stderr == ""
    report = json.loads(result.stdout)
    assert report["module"] == str(module) and report["bytes"] == module.stat().st_size
    assert report["dispatches"] == report["ftuner_dispatches"] == 1 and report["kernels"] == 2
    assert kernels.stat().st_size > 0
    assert {path.name for path in folder.iterdir()} == {
        "after.mlir", "report.json", "statistics.json",
    }  # fmt: skip
    piped = ("-", "-o", module, "--max-kernels=1", "--target=cuda", "--iree-cuda-target=sm_80")
    text = run(*piped, given=MATMUL)
    assert text.returncode == 0 and text.stdout.splitlines()[0] == str(module)
    empty = run(*piped, given="")
    assert empty.returncode == 1 and empty.stderr.startswith("error: ")
    lines = run(matmul, "-o", module, "--max-kernels=1").stdout.splitlines()
    assert lines[0] == str(module) and lines[1].startswith("  1 dispatch, 1 of them FTuner's")
    assert "100.0% of the FLOPs" in lines[2] and lines[2].endswith("at T = 16")


def test_flags_of_iree(matmul: Path, tmp_path: Path) -> None:
    """A str is one flag; a value that is not a list of flags is refused before anything runs."""
    module = tmp_path / "model.vmfb"
    ftuner.iree.compile(matmul, module, iree_flags="--iree-opt-level=O1", max_kernels=1)
    with pytest.raises(ftuner.CompileError, match="nknown command line argument '--wrong'"):
        ftuner.iree.compile(matmul, module, iree_flags="--wrong", max_kernels=1)
    for wrong in (3, [1], {"--iree-opt-level=O1"}):
        with pytest.raises(TypeError, match="iree_flags: expected a list of flags, but got"):
            ftuner.iree.compile(matmul, module, iree_flags=wrong)


POINTWISE = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = math.tanh %x : tensor<8xf32>
  return %y : tensor<8xf32>
}
"""


def test_no_product(tmp_path: Path) -> None:
    """A warning, or an error if asked, which leaves what is there."""
    path, module = tmp_path / "pointwise.mlir", tmp_path / "model.vmfb"
    path.write_text(POINTWISE)
    text = f"FTuner found no product in {path}: all of it is IREE's"
    result = run(path, "-o", module)
    assert result.returncode == 0 and result.stderr == f"warning: {text}\n"
    assert "1 dispatch, 0 of them FTuner's" in result.stdout
    module.write_text("before")
    result = run(path, "-o", module, "--require")
    assert result.returncode == 1 and result.stderr == f"error: {text}\n"
    assert module.read_text() == "before"
    assert {entry.name for entry in tmp_path.iterdir()} == {path.name, module.name}


FAKE = 'echo "IREE compiler version {version} @ 0"'
BAD = "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}\n"
# IREE prints this whole module behind its error.
REFUSED = (
    """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.custom_call @nothing(%x) : (tensor<4xf32>) -> tensor<4xf32>
"""
    + "".join(f"  %{n + 1} = stablehlo.sine %{n} : tensor<4xf32>\n" for n in range(300))
    + "  return %300 : tensor<4xf32>\n}\n"
)


def test_bad_inputs(matmul: Path, tmp_path: Path) -> None:
    module = tmp_path / "model.vmfb"

    def fails(code: int, words: str, *arguments: Any, **environment: str) -> str:
        result = run("-o", module, *arguments, **environment)
        assert result.returncode == code, result.stdout + result.stderr
        assert words in result.stderr and "Traceback" not in result.stderr, result.stderr
        assert "error: " in result.stderr and not module.exists()
        assert len(result.stderr.splitlines()) < 12
        return result.stderr

    for name, text in (("bad.mlir", BAD), ("refused.mlir", REFUSED)):
        (tmp_path / name).write_text(text)
    fails(1, f"{tmp_path}/bad.mlir:2:10: error: use of undeclared SSA value", tmp_path / "bad.mlir")
    fails(1, f"{tmp_path}/refused.mlir:3:8: error: ", tmp_path / "refused.mlir")
    wrong = tmp_path / "wrong.mlir"
    wrong.write_text(MATMUL.replace("32x64xf32>)\n", "33x64xf32>)\n", 1))
    fails(1, "wrong.mlir:", wrong)
    fails(1, "unknown device 'h900'", matmul, "--device=h900")
    fails(1, "cannot read 'nothing.mlir'", "nothing.mlir")
    fails(1, "expected a model that ends in .mlir, .mlirbc, .onnx, .pt2", "model.txt")
    fails(2, "unrecognized arguments: --wrong", matmul, "--wrong=1")
    fails(1, "parameters: expected none for MLIR", matmul, "--parameters=w.irpa")
    fails(1, "nknown command line argument '--wrong'", matmul, "--", "--wrong")
    for name in ("model.pt2", "model.onnx"):
        (tmp_path / name).write_bytes(b"no model")
    fails(1, "expected a program of torch.export.save", tmp_path / "model.pt2")
    torch.save({"weight": torch.ones(3)}, tmp_path / "saved.pt2")
    words = fails(1, "expected a program of torch.export.save", tmp_path / "saved.pt2")
    assert len(words.splitlines()) == 1
    fails(1, f"IREE cannot import {tmp_path}/model.onnx", tmp_path / "model.onnx")
    # Another folder that cannot be written.
    result = run(matmul, "-o", tmp_path / "nowhere" / "model.vmfb")
    assert result.returncode == 1 and "cannot write" in result.stderr


def test_versions_of_iree(matmul: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = tmp_path / "model.vmfb"
    fake = tmp_path / "iree-compile"

    def refused(words: str, **arguments: Any) -> None:
        with pytest.raises(ftuner.Error, match=words):
            ftuner.iree.compile(matmul, module, **arguments)
        assert not module.exists()

    refused("cannot run .*nothing'", iree_compile=tmp_path / "nothing")
    script(fake, FAKE.format(version="3.9.0rc1"))
    refused("is IREE 3.9.0rc1, which is too old: expected 3.12 or later", iree_compile=fake)
    script(tmp_path / "other", "echo something")
    refused("does not tell its version", iree_compile=tmp_path / "other")
    real = toolchain.find()
    newer = script(
        tmp_path / "newer",
        f'if [ "$1" = --version ]; then {FAKE.format(version="9.1.0")}; else exec {real} "$@"; fi',
    )
    with pytest.warns(ftuner.CompileWarning, match="is IREE 9.1.0; FTuner is tested with 3.13"):
        ftuner.iree.compile(matmul, module, iree_compile=newer, max_kernels=1)
    module.unlink()
    crashing = script(
        tmp_path / "crashing",
        f'if [ "$1" = --version ]; then {FAKE.format(version="3.13.0")}; else kill -SEGV $$; fi',
    )
    refused("was ended by signal 11", iree_compile=crashing)
    # Neither beside this Python nor on the path.
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    refused("no iree-compile found: pip install")


def test_names_of_targets() -> None:
    """The newest architecture of IREE's that the device runs."""
    from ftuner.describe import descriptions
    from ftuner.frontend.iree.build import _target_flags

    for device, target in (("h200", "sm_89"), ("a100", "sm_80"), ("v100", "sm_70")):
        flags = _target_flags("cuda", None, descriptions.resolve(device))
        assert flags[1] == f"--iree-cuda-target={target}"
    assert models.parameters_suffix("x.mlir") == ""
