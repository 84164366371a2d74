"""Models of ONNX against the reference evaluator of the package onnx."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner.cli import main
from ftuner.host import weights

onnx = pytest.importorskip("onnx")
pytest.importorskip("iree.compiler")

from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OPTIONS: dict[str, Any] = {"emulate": True, "max_kernels": 1}
node = helper.make_node


def tensor(name: str, shape: list[int | str], dtype: int = TensorProto.FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def integers(name: str, values: list[int]) -> Any:
    return numpy_helper.from_array(np.array(values, np.int64), name)


def model_of(nodes: list[Any], inputs: list[Any], outputs: list[Any], values: list[Any]) -> Any:
    graph = helper.make_graph(nodes, "model", inputs, outputs, values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.fixture
def encoder(rng: np.random.Generator) -> Any:
    """An embedding and attention with heads, whose sizes have names."""

    def weight(name: str, *shape: int) -> Any:
        values = rng.standard_normal(shape) / np.sqrt(shape[0])
        return numpy_helper.from_array(values.astype(np.float32), name)

    nodes = [
        node("Gather", ["table", "tokens"], ["x"]),
        node("LayerNormalization", ["x", "scale", "bias"], ["n"], axis=-1),
    ]
    for part, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])):
        nodes += [
            node("MatMul", ["n", f"w{part}"], [f"{part}0"]),
            node("Reshape", [f"{part}0", "heads"], [f"{part}1"]),
            node("Transpose", [f"{part}1"], [part], perm=order),
        ]
    nodes += [
        node("MatMul", ["q", "k"], ["s0"]),
        node("Div", ["s0", "root"], ["s1"]),
        node("Softmax", ["s1"], ["s"], axis=-1),
        node("MatMul", ["s", "v"], ["y0"]),
        node("Transpose", ["y0"], ["y1"], perm=[0, 2, 1, 3]),
        node("Reshape", ["y1", "flat"], ["y2"]),
        node("MatMul", ["y2", "wo"], ["y3"], name="projection"),
        node("Add", ["y3", "x"], ["y"]),
    ]
    values = [
        weight("table", 50, 32),
        weight("scale", 32),
        weight("bias", 32),
        *(weight(f"w{part}", 32, 32) for part in "qkvo"),
        integers("heads", [0, 0, 4, 8]),
        integers("flat", [0, 0, 32]),
        numpy_helper.from_array(np.float32(8**0.5), "root"),
    ]
    return model_of(
        nodes,
        [tensor("tokens", ["batch size", "length"], TensorProto.INT64)],
        [tensor("y", ["batch size", "length", 32])],
        values,
    )


@pytest.fixture
def path(encoder: Any, tmp_path: Path) -> str:
    onnx.save(encoder, tmp_path / "encoder.onnx")
    return str(tmp_path / "encoder.onnx")


def check(model: Any, function: Any, inputs: dict[str, np.ndarray[Any, Any]]) -> None:
    (wanted,) = ReferenceEvaluator(model).run(None, inputs)
    result = np.asarray(function(*inputs.values()))
    assert result.shape == wanted.shape
    assert np.linalg.norm(result - wanted) < 1e-6 * np.linalg.norm(wanted)


def test_encoder(encoder: Any, path: str, rng: np.random.Generator) -> None:
    """The function keeps its weights, sizes keep their names, and kernels the names of nodes."""
    encoder_operators = {node.op_type for node in encoder.graph.node}
    module = ftuner.compile(path, ranges={"length": (1, 64), "batch size": (1, None)}, **OPTIONS)
    signature = "model(tokens: i64[batch_size, length]) -> y: f32[?, ?, 32]"
    assert str(module.model.signature) == signature
    assert list(module.weights.arrays) == ["table", "scale", "bias", "wo", "wq+wk+wv"]
    assert module.model.report.products == 4
    places = [kernel["location"] for kernel in module.model.report.data["fallback_kernels"]]
    assert places and all(place.split()[0] in encoder_operators for place in places), places
    for shape in ((2, 7), (1, 1), (3, 31)):
        check(encoder, module, {"tokens": rng.integers(0, 50, shape)})
    with pytest.raises(TypeError, match="expected 1 arguments, but got 2"):
        module(np.zeros((2, 3), np.int64), np.zeros(3, np.float32))


def test_kinds_of_memory(encoder: Any, path: str, rng: np.random.Generator) -> None:
    """The weights go where the arguments are."""
    torch = pytest.importorskip("torch")
    module = ftuner.compile(path, **OPTIONS)
    tokens = rng.integers(0, 50, (2, 5))
    expected = module(tokens)
    result = module(torch.from_numpy(tokens))
    assert isinstance(result, torch.Tensor) and (result.numpy() == expected).all()

    class Exchanged:
        def __dlpack__(self, **options: Any) -> Any:
            return tokens.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return tokens.__dlpack_device__()

    assert (module(Exchanged()).numpy() == expected).all()


def test_command_line(
    encoder: Any, path: str, tmp_path: Path, rng: np.random.Generator, capsys: Any
) -> None:
    """A library with its weights beside it, a run against the reference, an explanation."""
    output = str(tmp_path / "libencoder.so")
    options = ["--max-kernels=1", "--range", "length=1:64"]
    assert main(["compile", path, "--emulate", "-o", output, *options]) == 0
    saved = str(tmp_path / "libencoder.safetensors")
    assert saved in capsys.readouterr().out
    tokens = rng.integers(0, 50, (2, 9))
    check(encoder, ftuner.load(output, saved), {"tokens": tokens})
    np.save(tmp_path / "tokens.npy", tokens)
    given = ["--input", f"0={tmp_path}/tokens.npy"]
    assert main(["run", path, *given, "--check", *options]) == 0
    assert "relative error" in capsys.readouterr().out
    sizes = ["--size", "batch_size=2", "--size", "length=9"]
    assert main(["explain", path, *sizes, *options]) == 0
    assert main(["compile", path, "--range", "depth=1:2"]) == 1
    words = "range: expected one of the sizes batch size, length, but got 'depth'"
    assert words in capsys.readouterr().err
    assert main(["compile", path, "--range", "length=many"]) == 2
    assert main(["compile", path, "--range", "length=1:64,length=1:2"]) == 2
    assert main(["compile", path, "--range", "length=1:64,"]) == 2


def test_several_ranges_and_capitals(path: str, tmp_path: Path) -> None:
    """One option for all sizes is that of each; the ending of a name may be in capitals."""
    capitals = Path(path).rename(tmp_path / "ENCODER.ONNX")
    texts = []
    for name, ranges in (
        ("one", ["batch size=1:4,length=2:64"]),
        ("two", ["batch size=1:4", "length=2:64"]),
    ):
        output = tmp_path / f"{name}.ptx"
        given = [part for text in ranges for part in ("--range", text)]
        assert (
            main(["compile", str(capitals), "--ptx", str(output), "--max-kernels=2", *given]) == 0
        )
        texts.append(output.read_text())
    assert texts[0] == texts[1]
    assert ftuner.compile(str(capitals), ranges={"length": (2, 64)}, **OPTIONS).functions


def test_declared_sizes(rng: np.random.Generator, tmp_path: Path) -> None:
    """All sizes of a range, its ends too, are served by families chosen for them."""
    weight = numpy_helper.from_array(rng.standard_normal((32, 48)).astype(np.float32), "w")
    model = model_of(
        [node("MatMul", ["x", "w"], ["y"])],
        [tensor("x", ["batch", 32])], [tensor("y", ["batch", 48])], [weight],
    )  # fmt: skip
    onnx.save(model, tmp_path / "m.onnx")
    module = ftuner.compile(str(tmp_path / "m.onnx"), ranges={"batch": (1, 64)}, **OPTIONS)
    (plan,) = module.manifest["workloads"]
    rows = [(entry["box"][0]["min"], entry["box"][0]["max"]) for entry in plan["dispatch"]]
    for size in range(1, 65):
        assert any(low <= size and (high is None or size <= high) for low, high in rows), size
    for size in (1, 64):
        check(model, module, {"x": rng.standard_normal((size, 32), np.float32)})


def perceptron(rng: np.random.Generator, *shapes: tuple[int, ...]) -> Any:
    """A chain of products with weights of these shapes."""
    names = [f"w{number}" for number in range(len(shapes))]
    values = ["x", *(f"y{name}" for name in names)]
    return model_of(
        [
            node("MatMul", [before, name], [after])
            for before, name, after in zip(values, names, values[1:])
        ],
        [tensor("x", ["batch", shapes[0][0] if shapes else 8])],
        [tensor(values[-1], ["batch", shapes[-1][1] if shapes else 8])],
        [
            numpy_helper.from_array(rng.standard_normal(shape).astype(np.float32), name)
            for name, shape in zip(names, shapes)
        ],
    )


def contents_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def write_library(tmp_path: Path) -> Any:
    """Compiles a model by the command line; returns the library's path and the exit code."""
    (tmp_path / "out").mkdir()

    def write(model: Any, name: str = "libmodel.so") -> tuple[Path, int]:
        onnx.save(model, tmp_path / "model.onnx")
        output = tmp_path / "out" / name
        source = str(tmp_path / "model.onnx")
        options = ["-o", str(output), "--emulate", "--max-kernels=1"]
        return output, main(["compile", source, *options])

    return write


def test_files_of_others_stay(write_library: Any, rng: np.random.Generator, capsys: Any) -> None:
    """Files of FTuner are replaced together; another file of such a name is an error."""
    output, code = write_library(perceptron(rng, (8, 16)))
    folder = output.parent
    assert code == 0
    assert sorted(contents_of(folder)) == ["libmodel.safetensors", "libmodel.so", "model.h"]
    model = perceptron(rng, (8, 32), (32, 4))
    assert write_library(model)[1] == 0
    loaded = ftuner.load(output, folder / "libmodel.safetensors")
    check(model, loaded, {"x": rng.standard_normal((5, 8), np.float32)})
    capsys.readouterr()
    for name, foreign in (
        ("libmodel.safetensors", b"mine"),
        ("libmodel.safetensors", weights.begin_of_file({"__metadata__": {"format": "pt"}}, 8)),
        ("libmodel.safetensors", b""),
        ("model.h", b"/* mine */"),
    ):
        kept = (folder / name).read_bytes()
        (folder / name).write_bytes(foreign)
        before = contents_of(folder)
        assert write_library(perceptron(rng, (8, 16)))[1] == 1
        assert f"cannot write '{folder / name}': expected no file" in capsys.readouterr().err
        assert contents_of(folder) == before
        (folder / name).write_bytes(kept)
    # A folder is in the way of the last file.
    (folder / "libmodel.safetensors").unlink()
    (folder / "libmodel.safetensors").mkdir()
    before = {name: (folder / name).read_bytes() for name in ("libmodel.so", "model.h")}
    assert write_library(perceptron(rng, (8, 16)))[1] == 1
    assert before == {name: (folder / name).read_bytes() for name in before}
    assert len([*folder.iterdir()]) == 3


def test_no_file_without_weights(write_library: Any, capsys: Any) -> None:
    model = model_of(
        [node("MatMul", ["a", "b"], ["y"])],
        [tensor("a", ["M", 8]), tensor("b", [8, "N"])],
        [tensor("y", ["M", "N"])],
        [],
    )
    output, code = write_library(model)
    assert code == 0 and "safetensors" not in capsys.readouterr().out
    assert sorted(contents_of(output.parent)) == ["libmodel.so", "model.h"]


def test_weights_of_other_libraries(
    write_library: Any, tmp_path: Path, rng: np.random.Generator
) -> None:
    """Number, types and shapes are checked when a library is loaded."""
    output, code = write_library(perceptron(rng, (8, 16), (16, 4)))
    assert code == 0
    file = tmp_path / "other.safetensors"
    array = rng.standard_normal
    right = {"a": array((8, 16), np.float32), "b": array((16, 4), np.float32)}
    for arrays, inputs, words in (
        ({"b": right["b"]}, 1, "expected 3 arguments, but got weights of a function of 2"),
        ({"b": right["b"]}, 2, None),
        (right, 2, "expected 3 arguments, but got weights of a function of 4"),
        ({**right, "b": array((16, 5), np.float32)}, 1,
         r"expected f32\[16, 4\] for weight b \(argument 2\), but got float32\[16, 5\]"),
        ({**right, "a": array((8, 16))}, 1,
         r"expected f32\[8, 16\] for weight a \(argument 1\), but got float64\[8, 16\]"),
        (right, 1, None),
    ):  # fmt: skip
        file.write_bytes(weights.Weights(arrays, inputs).to_bytes())
        if words is None:
            assert len(ftuner.load(output, file).weights) == len(arrays)
            continue
        with pytest.raises(ftuner.Error, match=words) as refused:
            ftuner.load(output, file)
        assert f"the weights do not belong to '{output}'" in str(refused.value)
    for damaged in (file.read_bytes()[:-4], b"noise", b""):
        file.write_bytes(damaged)
        with pytest.raises(ftuner.Error, match="has no weights of a model"):
            ftuner.load(output, file)


def test_image_model(tmp_path: Path, rng: np.random.Generator) -> None:
    """Constant nodes are weights, too; an old model also lists them as inputs."""

    def values(name: str, *shape: int) -> Any:
        array = rng.uniform(0.1, 1, shape).astype(np.float32)
        return numpy_helper.from_array(array, name)

    weight = values("wc", 8, 3, 3, 3)
    names = ("scale", "shift", "mean", "variance")
    nodes = [
        node("Constant", [], ["w"], value=weight),
        node("Conv", ["x", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c", *names], ["n"]),
        node("Relu", ["n"], ["r"]),
        node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        node("GlobalAveragePool", ["p"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "wf"], ["y"], transB=1),
    ]
    inputs = [tensor("x", ["B", 3, "H", "W"]), tensor("wf", [10, 8])]
    parameters = [*(values(name, 8) for name in names), values("wf", 10, 8)]
    model = model_of(nodes, inputs, [tensor("y", ["B", 10])], parameters)
    onnx.save(model, tmp_path / "image.onnx")
    module = ftuner.compile(tmp_path / "image.onnx", **OPTIONS)
    assert sorted(module.weights.arrays) == ["w", "wf"]
    for shape in ((2, 3, 16, 18), (1, 3, 33, 20)):
        check(model, module, {"x": rng.standard_normal(shape).astype(np.float32)})


def test_external_data(encoder: Any, tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "large.onnx"
    options = {"save_as_external_data": True, "location": "large.bin", "size_threshold": 64}
    onnx.save(onnx.ModelProto.FromString(encoder.SerializeToString()), path, **options)
    module = ftuner.compile(path, **OPTIONS)
    check(encoder, module, {"tokens": rng.integers(0, 50, (2, 3))})
    (tmp_path / "large.bin").unlink()
    with pytest.raises(ftuner.CompileError, match="external data cannot be read"):
        ftuner.compile(path)


@pytest.mark.parametrize(
    ("operator", "sentence"),
    [
        (
            "Unique",
            "the size of its result depends on data; compute it outside of the model",
        ),
        (
            "Bernoulli",
            "kernels have no random numbers; make the numbers outside of the model and give them "
            "as an input",
        ),
    ],
)
def test_refused_operators(tmp_path: Path, operator: str, sentence: str) -> None:
    """One sentence with the operator, its node, the reason and an advice."""
    model = model_of(
        [node("Erf", ["x"], ["e"]), node(operator, ["e"], ["y"], name="once")],
        [tensor("x", ["N"])],
        [tensor("y", ["K"])],
        [],
    )
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ftuner.CompileError) as refused:
        ftuner.compile(tmp_path / "model.onnx")
    assert str(refused.value) == (
        f"cannot import '{tmp_path / 'model.onnx'}': the operator {operator} (node {operator} once) "
        f"is not supported: {sentence}"
    )


def test_operators_of_another_meaning(tmp_path: Path) -> None:
    """An operator that the importer would lower to other numbers is refused by one sentence."""
    graphs = {
        "Gelu of the domain com.example": (
            [node("Gelu", ["x"], ["y"], domain="com.example")],
            [tensor("x", [4])],
            [tensor("y", [4])],
            [],
        ),
    }
    for operator, parts in graphs.items():
        model = model_of(*parts)
        model.opset_import.append(helper.make_opsetid("com.example", 1))
        file = tmp_path / "model.onnx"
        file.write_bytes(model.SerializeToString())
        with pytest.raises(ftuner.CompileError) as error:
            ftuner.compile(file, **OPTIONS)
        words = str(error.value)
        assert f"operator {operator} " in words and "not supported: " in words
        assert words.count("\n") == 0


def test_bad_files(path: str, tmp_path: Path) -> None:
    content = Path(path).read_bytes()
    for name, damaged, words in (
        ("noise", b"not a model", "expected a model of ONNX"),
        ("empty", b"", "it has no graph"),
        ("cut", content[: len(content) // 2], "expected a model of ONNX"),
    ):
        file = tmp_path / f"{name}.onnx"
        file.write_bytes(damaged)
        with pytest.raises(ftuner.CompileError, match=words) as refused:
            ftuner.compile(file)
        assert str(file) in str(refused.value)
    broken = model_of(
        [node("Add", ["x", "missing"], ["y"])], [tensor("x", [3])], [tensor("y", [3])], []
    )
    (tmp_path / "broken.onnx").write_bytes(broken.SerializeToString())
    with pytest.raises(ftuner.CompileError, match="missing"):
        ftuner.compile(tmp_path / "broken.onnx")
    with pytest.raises(ftuner.Error, match="No such file"):
        ftuner.compile("nothing.onnx")


@pytest.mark.parametrize(
    ("ranges", "words"),
    [
        ({"T": (1, 2)}, "expected one of the sizes batch size, length, but got 'T'"),
        ({"lenght": (1, 2)}, "got 'lenght'; did you mean length?"),
        ({"length": (5, 2)}, "expected sizes of length, but got 5 to 2"),
        ({"length": (-1, 2)}, "expected sizes of length, but got -1 to 2"),
    ],
)
def test_bad_ranges(path: str, ranges: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ftuner.compile(path, ranges=ranges)


def test_ranges_of_mlir(tmp_path: Path) -> None:
    file = tmp_path / "model.mlir"
    file.write_text("module {}")
    for source in (file, file.read_text()):
        with pytest.raises(ValueError, match="expected a model of ONNX"):
            ftuner.compile(source, ranges={"T": (1, 2)})
    assert main(["compile", "-", "--range", "T=1:2"]) == 2


def test_missing_package(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match="needs the package onnx"):
        ftuner.compile(path)


def test_files_of_weights(tmp_path: Path, rng: np.random.Generator) -> None:
    arrays = {
        "a": rng.integers(-5, 5, 3).astype(np.int8),
        "b": rng.standard_normal((2, 3)),
        "c": np.zeros((0, 4), np.float16),
        "d": rng.standard_normal((5, 1)).astype(np.float32),
    }
    kept = weights.Weights(arrays, 2)
    assert all(array.ctypes.data % 256 == 0 for array in kept.arrays.values() if array.size)
    file = tmp_path / "some.safetensors"
    file.write_bytes(kept.to_bytes())
    assert weights.read(file).inputs == 2
    again = weights.read(file).arrays
    assert list(again) == list(arrays)
    for name, array in arrays.items():
        assert again[name].dtype == array.dtype and (again[name] == array).all()
    content = file.read_bytes()
    for damaged in (b"", content[:20], content[:-4], b"\xff" * 8 + content[8:]):
        file.write_bytes(damaged)
        with pytest.raises(ftuner.Error, match="has no weights of a model"):
            weights.read(file)
    with pytest.raises(ftuner.Error, match="No such file"):
        ftuner.load("libmodel.so", tmp_path / "nothing.safetensors")


def test_conditions_are_refused(tmp_path: Path) -> None:
    branches = {
        f"{name}_branch": helper.make_graph(
            [node(operator, ["x", "x"], [name])], name, [], [tensor(name, [4])]
        )
        for name, operator in (("then", "Add"), ("else", "Mul"))
    }
    condition = tensor("c", [], TensorProto.BOOL)
    model = model_of(
        [node("If", ["c"], ["y"], **branches)],
        [condition, tensor("x", [4])],
        [tensor("y", [4])],
        [],
    )
    onnx.save(model, tmp_path / "if.onnx")
    with pytest.raises(ftuner.CompileError, match="If 0. needs its input cond when the model is"):
        ftuner.compile(tmp_path / "if.onnx", **OPTIONS)
