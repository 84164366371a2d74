"""Names that a source gives to arguments and results: signatures, keywords, messages, the header."""

from __future__ import annotations

import inspect
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ftuner
from ftuner import locations
from ftuner.host.elements import ELEMENT_TYPES
from ftuner.host.signature import Signature, Value
from handmade import ROOT

NAMES = """
func.func @layer(%arg0: tensor<?x16xf32>, %arg1: tensor<16x8xf32>, %arg2: f32) -> (tensor<?x8xf32>, tensor<?xf32>)
    attributes {ukernel.names = {arguments = ["input.1", "layer.weight", "out"], results = ["y", "row::sum"]}} {
  %c0 = arith.constant 0 : index
  %d = tensor.dim %arg0, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%d) : tensor<?x8xf32>
  %f = linalg.fill ins(%arg2 : f32) outs(%e : tensor<?x8xf32>) -> tensor<?x8xf32>
  %m = linalg.matmul ins(%arg0, %arg1 : tensor<?x16xf32>, tensor<16x8xf32>) outs(%f : tensor<?x8xf32>) -> tensor<?x8xf32>
  %zero = arith.constant 0.0 : f32
  %n = tensor.empty(%d) : tensor<?xf32>
  %o = linalg.fill ins(%zero : f32) outs(%n : tensor<?xf32>) -> tensor<?xf32>
  %r = linalg.reduce ins(%arg0 : tensor<?x16xf32>) outs(%o : tensor<?xf32>) dimensions = [1]
      (%in: f32, %acc: f32) { %sum = arith.addf %in, %acc : f32 linalg.yield %sum : f32 }
  return %m, %r : tensor<?x8xf32>, tensor<?xf32>
}
func.func @plain(%x: tensor<?xf32>, %0: tensor<?xf32>, %arg7: tensor<4xf32>) -> tensor<?xf32> {
  %s = linalg.add ins(%x, %0 : tensor<?xf32>, tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %s : tensor<?xf32>
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> ftuner.Module:
    path = tmp_path_factory.mktemp("names") / "names.mlir"
    path.write_text(NAMES)
    return ftuner.compile(path, emulate=True, cache=False, max_kernels=1)


def expect(error: type[Exception], message: str) -> Any:
    return pytest.raises(error, match=re.escape(message))


def test_signatures(module: ftuner.Module) -> None:
    layer, plain = module["layer"], module["plain"]
    assert str(layer.signature) == (
        "layer(input.1: f32[?, 16], layer.weight: f32[16, 8], out: f32)"
        " -> (y: f32[?, 8], row::sum: f32[?])"
    )
    # The text names %x; %0 and %arg7 are what printers write.
    assert str(plain.signature) == "plain(x: f32[?], arg1: f32[?], arg2: f32[4]) -> f32[?]"
    assert list(inspect.signature(layer).parameters) == [
        "input_1",
        "layer_weight",
        "out_",
        "out",
        "stream",
    ]
    assert "layer.weight: tensor f32[16, 8]" in (layer.__doc__ or "")
    arguments = module.manifest["functions"][1]["arguments"]
    assert [entry.get("name") for entry in arguments] == ["x", None, None]
    work = module.manifest["functions"][0]["work"]
    assert work["sizes"] == ["input_1_dim0"]


def test_calls_by_name(module: ftuner.Module) -> None:
    layer = module["layer"]
    rng = np.random.default_rng()
    x = rng.standard_normal((5, 16), np.float32)
    w = rng.standard_normal((16, 8), np.float32)
    for got in (
        layer(x, w, 0.5),
        layer(x, w, out_=0.5),
        layer(out_=0.5, layer_weight=w, input_1=x),
        layer(x, **{"layer.weight": w}, out_=0.5),
    ):
        np.testing.assert_allclose(got.y, x.astype(float) @ w + 0.5, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(got.row__sum, x.astype(float).sum(1), rtol=1e-4, atol=1e-4)
        assert isinstance(got, tuple) and got[0] is got.y
    plain = module["plain"]
    v = x[0]
    np.testing.assert_allclose(plain(v, arg2=x[0, :4].copy(), arg1=v), v + v)


def test_messages(module: ftuner.Module) -> None:
    layer = module["layer"]
    x, w = np.zeros((5, 16), np.float32), np.zeros((16, 8), np.float32)
    with expect(
        TypeError,
        "expected some of the arguments input_1, layer_weight, out_, but got "
        "'layer_wieght'; did you mean layer_weight?",
    ):
        layer(x, layer_wieght=w, out_=1)
    with expect(TypeError, "layer: argument 'input_1' is given twice"):
        layer(x, input_1=x, layer_weight=w, out_=1)
    with expect(TypeError, "layer: expected also layer_weight; the signature is layer(input.1: "):
        layer(x, out_=1)
    with expect(TypeError, "layer: argument 'input.1': expected elements of type float32"):
        layer(x.astype(float), w, 1)
    with expect(ValueError, "layer: argument 'layer.weight': expected shape [16, 8]"):
        layer(x, x, 1)
    with expect(TypeError, "layer: argument 'out': expected a number for f32"):
        layer(x, w, x)


def test_header(tmp_path: Path) -> None:
    """It compiles as C and as C++, whatever the names are."""
    library = tmp_path / "libnames.so"
    tool = locations.tool("ftuner-translate")
    command = [tool, "-", "--ftuner-to-library", "--device=h200", "--max-kernels=1", "-o", library]
    subprocess.run([str(word) for word in command], input=NAMES, text=True, check=True)
    header = tmp_path / "names.h"
    text = header.read_text()
    assert "int32_t layer(const void *input_1, const void *layer_weight, void *y," in text
    assert " *   result_sizes[2]  the sizes of row__sum" in text
    for suffix, compiler in (("c", "cc"), ("cpp", "c++")):
        source = tmp_path / f"use.{suffix}"
        source.write_text(f'#include "{header}"\n')
        options = ["-fsyntax-only", "-Wall", "-Werror", f"-I{ROOT / 'include'}"]
        subprocess.run([compiler, *options, str(source)], check=True)


def test_words_are_unique() -> None:
    """Names that Python cannot have, or that become equal."""
    f32 = ELEMENT_TYPES["f32"]
    names = ["a.b", "a_b", "class", "0", "stream", None, "arg5", "", "²"]
    values = tuple(Value(f32, (1,), name) for name in names)
    signature = Signature("f", "f", "", "", values, values[:1])
    assert signature.keywords == (
        "a_b",
        "a_b_",
        "class_",
        "_0",
        "stream_",
        "arg5",
        "arg5_",
        "arg7",
        "arg8",
    )
    assert signature.fields is None


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("[]", "'ukernel.names' expected a dictionary"),
        (
            '{arguments = ["x", "y"]}',
            "'ukernel.names' expected one name for each of 1 arguments, but got 2",
        ),
        (
            "{results = [1]}",
            "'ukernel.names' expected lists of texts for 'arguments' and 'results'",
        ),
        (
            '{inputs = ["x"]}',
            "'ukernel.names' expected lists of texts for 'arguments' and 'results'",
        ),
    ],
)
def test_wrong_names(names: str, message: str) -> None:
    text = f"""func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {{ukernel.names = {names}}} {{
      return %x : tensor<4xf32>
    }}"""
    with expect(ftuner.CompileError, message):
        ftuner.compile(text, cache=False)
