"""Small networks written by hand, in the form of public files of 2018 to 2020.

`model_of(name, version)` is a network at operator set 7 or 11. The two differ as the files of those years do: at 7, all
weights are inputs too, nodes have no names, and values are called by numbers; at 11, names are paths, as TensorFlow's
exporter makes them. Batch, height and width (or length) have names instead of numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from .case import Array

VERSIONS = (7, 11)
#: Batch, height and width of the calls that compare results; batch and length of text.
SIZES = ((1, 24, 30), (3, 33, 27), (2, 24, 48))
#: The largest number that a slice's end may be.
END = 2**63 - 1


class Graph:
    """A graph in the making; a call adds a node and returns the name of its result, or the names of its results."""

    def __init__(self, version: int) -> None:
        self.version, self.rng = version, np.random.default_rng(version)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    @property
    def is_old(self) -> bool:
        return self.version == 7

    def __call__(self, operator: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:
        number = len(self.nodes)
        name = "" if self.is_old else f"model/{operator.lower()}_{number}"
        names = [f"{100 * number + i}" if self.is_old else f"{name}:{i}" for i in range(results)]
        self.nodes.append(helper.make_node(operator, inputs, names, name=name, **attributes))
        return names[0] if results == 1 else names

    def weight(self, *shape: int, like: str = "weights") -> str:
        """Adds random weights and returns their name: "weights" of a product, "ones" near 1, or "positive" ones."""
        values = self.rng.standard_normal(shape)
        if like == "weights":
            values /= np.sqrt(np.prod(shape[1:] if len(shape) == 4 else shape[-1:]))
        else:
            values = 1 + 0.2 * values if like == "ones" else 0.5 + np.abs(values)
        return self.initializer(values.astype(np.float32))

    def initializer(self, value: Any) -> str:
        """Adds an initializer, and returns its name."""
        name = f"w{len(self.weights)}" if self.is_old else f"model/w_{len(self.weights)}/read:0"
        self.weights.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def constant(self, value: Any) -> str:
        """Adds a Constant, and returns its result."""
        return self("Constant", value=numpy_helper.from_array(np.asarray(value)))

    # Groups of nodes.

    def size(self, x: str, axis: int) -> str:
        """Returns a size of a tensor, as a scalar."""
        return self("Gather", self("Shape", x), self.constant(axis), axis=0)

    def sizes(self, *parts: str | int) -> str:
        """Returns a list of sizes, each a number or a scalar that was computed."""
        lists = [
            self.constant([part]) if isinstance(part, int) else self("Unsqueeze", part, axes=[0])
            for part in parts
        ]
        return self("Concat", *lists, axis=0)

    def convolution(
        self,
        x: str,
        before: int,
        after: int,
        kernel: int,
        stride: int = 1,
        *,
        bias: bool = True,
        **attributes: Any,
    ) -> str:
        """Adds a convolution that keeps height and width, or divides them by its stride."""
        weights = self.weight(after, before // attributes.get("group", 1), kernel, kernel)
        if "auto_pad" not in attributes:
            attributes.setdefault("pads", [kernel // 2] * 4)
        inputs = [x, weights, self.weight(after)] if bias else [x, weights]
        return self(
            "Conv",
            *inputs,
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            dilations=[1, 1],
            **attributes,
        )

    def batch_norm(self, x: str, channels: int) -> str:
        numbers = [
            self.weight(channels, like=like) for like in ("ones", "weights", "weights", "positive")
        ]
        spatial = {"spatial": 1} if self.is_old else {}
        return self("BatchNormalization", x, *numbers, epsilon=2e-5, momentum=0.9, **spatial)

    def slice(self, x: str, axis: int, begin: int, end: int) -> str:
        if self.version < 10:
            return self("Slice", x, axes=[axis], starts=[begin], ends=[end])
        return self("Slice", x, *(self.constant([number]) for number in (begin, end, axis, 1)))

    def double(self, x: str, mode: str, **attributes: Any) -> str:
        """Doubles height and width."""
        scales = [1.0, 1.0, 2.0, 2.0]
        if self.is_old:
            return self("Upsample", x, mode=mode, scales=scales)
        region = self.constant(np.float32([]))
        return self(
            "Resize", x, region, self.initializer(np.float32(scales)), mode=mode, **attributes
        )


def resnet(g: Graph, x: str) -> tuple[str, list[Any]]:
    """Residual blocks: normalization first (7), or convolutions with auto_pad (11)."""
    if g.is_old:
        x = g(
            "Relu",
            g.batch_norm(g.convolution(g.batch_norm(x, 3), 3, 8, 7, 2, bias=False, group=1), 8),
        )
        x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
        a = g("Relu", g.batch_norm(x, 8))
        b = g.batch_norm(g.convolution(a, 8, 16, 3, 2, bias=False), 16)
        b = g("PRelu", b, g.weight(16, 1, 1))
        x = g(
            "Add",
            g.convolution(b, 16, 16, 3, bias=False),
            g.convolution(a, 8, 16, 1, 2, bias=False),
        )
        x = g("Flatten", g("GlobalAveragePool", g("Relu", g.batch_norm(x, 16))))
        return g(
            "Gemm", x, g.weight(5, 16), g.weight(5), alpha=1.0, beta=1.0, transA=0, transB=1
        ), ["batch", 5]
    x = g("Relu", g.batch_norm(g.convolution(x, 3, 8, 7, 2, auto_pad="SAME_UPPER"), 8))
    x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
    shortcut = g.batch_norm(g.convolution(x, 8, 16, 1, 2, auto_pad="VALID"), 16)
    x = g.batch_norm(g.convolution(x, 8, 16, 3, 2, auto_pad="SAME_LOWER"), 16)
    x = g("Clip", x, g.constant(np.float32(0)), g.constant(np.float32(6)))
    x = g(
        "Relu",
        g(
            "Add",
            shortcut,
            g.batch_norm(g.convolution(x, 16, 16, 3, group=4, auto_pad="SAME_UPPER"), 16),
        ),
    )
    x = g("GlobalAveragePool", x)
    x = g("Reshape", x, g.sizes(g.size(x, 0), -1))
    return g("Softmax", g("Add", g("MatMul", x, g.weight(16, 5)), g.weight(5)), axis=1), [
        "batch",
        5,
    ]


def vgg(g: Graph, x: str) -> tuple[str, list[Any]]:
    """Convolutions, LRN, branches that are joined, and a classifier with dropout."""
    x = g("Relu", g.convolution(x, 3, 8, 3))
    x = g("LRN", x, size=5, alpha=1e-2, beta=0.75, bias=2.0)
    last = {"pads": [0, 0, 1, 1]} if g.is_old else {"ceil_mode": 1}
    x = g("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], **last)
    x = g.convolution(x, 8, 8, 5, group=2)
    x = g("Clip", x, min=0.0, max=6.0) if g.is_old else g("Relu", x)
    pooled = g(
        "AveragePool",
        x,
        kernel_shape=[3, 3],
        strides=[1, 1],
        pads=[1, 1, 1, 1],
        count_include_pad=0,
    )
    branches = [g("Relu", g.convolution(x, 8, 8, kernel)) for kernel in (1, 3)]
    x = g("Dropout", g("Concat", *branches, g.convolution(pooled, 8, 4, 1), axis=1), ratio=0.5)
    x = g("GlobalAveragePool", x)
    x = g("Reshape", x, g.initializer([0, -1])) if g.is_old else g("Flatten", x, axis=1)
    x = g("Relu", g("Gemm", x, g.weight(12, 20), g.weight(12), transB=1))
    x = g("Dropout", x, ratio=0.5) if g.is_old else g("Dropout", x, results=2, ratio=0.5)[0]
    x = g("Gemm", x, g.weight(12, 6), g.weight(1, 6), alpha=0.5, beta=2.0)
    return g("Softmax", x, axis=1), ["batch", 6]


def yolo(g: Graph, x: str) -> tuple[str, list[Any]]:
    """A head of YOLO on two joined scales: anchors, boxes, and at 11 the places of the boxes."""

    def layer(x: str, before: int, after: int, kernel: int) -> str:
        return g(
            "LeakyRelu",
            g.batch_norm(g.convolution(x, before, after, kernel, bias=False), after),
            alpha=0.1,
        )

    if g.is_old:
        x = g("Add", g("Mul", x, g.initializer(np.float32([1 / 3]))), g.weight(3, 1, 1))
    pool = {"kernel_shape": [2, 2], "strides": [2, 2]}
    skip = g("MaxPool", layer(x, 3, 8, 3), **pool)
    x = g("MaxPool", layer(skip, 8, 12, 3), **pool)
    x = layer(g("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1], auto_pad="SAME_UPPER"), 12, 8, 1)
    x = g.double(x, "nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    x = g.convolution(g("Concat", x, skip, axis=1), 16, 3 * 7, 1)
    batch, height, width = (g.size(x, axis) for axis in (0, 2, 3))
    x = g("Transpose", g("Reshape", x, g.sizes(batch, 3, 7, height, width)), perm=[0, 1, 3, 4, 2])
    centers, extents, scores = g.slice(x, 4, 0, 2), g.slice(x, 4, 2, 4), g.slice(x, 4, 4, END)
    centers = g("Sigmoid", centers)
    if g.is_old:
        centers = g(
            "Sub", g("Mul", centers, g.constant(np.float32(2))), g.constant(np.float32(0.5))
        )
    else:
        zero, one = g.constant(0), g.constant(1)
        places = [
            g("Cast", g("Range", zero, size, one), to=TensorProto.FLOAT) for size in (width, height)
        ]
        across = g("Reshape", places[0], g.constant([1, 1, 1, -1, 1]))
        down = g("Reshape", places[1], g.constant([1, 1, -1, 1, 1]))
        dims = g.sizes(1, 1, height, width, 1)
        grid = g("Concat", g("Expand", across, dims), g("Expand", down, dims), axis=4)
        centers = g("Mul", g("Add", centers, grid), g.constant(np.float32(2)))
    extents = g("Mul", g("Exp", extents), g.weight(1, 3, 1, 1, 2, like="positive"))
    x = g("Concat", centers, extents, g("Sigmoid", scores), axis=4)
    return g("Reshape", x, g.sizes(batch, -1, 7)), ["batch", "boxes", 7]


def unet(g: Graph, x: str) -> tuple[str, list[Any]]:
    """A level of U-Net: group norms of simpler operators, padding, and several ways of doubling sizes."""

    def norm(x: str, channels: int) -> str:
        """GroupNorm, as it was written before ONNX had it, and the activation x * sigmoid(x)."""
        ones, zeros = g.initializer(np.ones(4, np.float32)), g.initializer(np.zeros(4, np.float32))
        groups = g(
            "InstanceNormalization",
            g("Reshape", x, g.constant([0, 4, -1])),
            ones,
            zeros,
            epsilon=1e-5,
        )
        y = g("Reshape", groups, g("Shape", x))
        y = g("Add", g("Mul", y, g.weight(channels, 1, 1, like="ones")), g.weight(channels, 1, 1))
        return g("Mul", y, g("Sigmoid", y))

    border = [0, 0, 1, 1, 0, 0, 1, 1]
    x = (
        g("Pad", x, mode="reflect", pads=border)
        if g.is_old
        else g("Pad", x, g.constant(border), mode="reflect")
    )
    skip = norm(g.convolution(x, 3, 8, 3, pads=[0, 0, 0, 0]), 8)
    deep = norm(
        g.convolution(g("MaxPool", skip, kernel_shape=[2, 2], strides=[2, 2]), 8, 16, 3), 16
    )
    up = g(
        "ConvTranspose",
        deep,
        g.weight(16, 8, 2, 2),
        g.weight(8),
        kernel_shape=[2, 2],
        strides=[2, 2],
    )
    narrow = g.convolution(deep, 16, 8, 1)
    if g.is_old:
        window: dict[str, Any] = {
            "kernel_shape": [3, 3],
            "strides": [2, 2],
            "pads": [1] * 4,
            "output_padding": [1, 1],
        }
        up = g(
            "Sum",
            up,
            g("ConvTranspose", deep, g.weight(16, 8, 3, 3), **window),
            g.double(narrow, "linear"),
        )
    else:
        up = g("Add", up, g.double(narrow, "linear", coordinate_transformation_mode="half_pixel"))
        # Pooling drops the last element of an odd size: padding adds one, and Resize computes as many as `skip` has.
        missing = [g("Sub", g.size(skip, axis), g.size(up, axis)) for axis in (2, 3)]
        before = [g("Div", count, g.constant(2)) for count in missing]
        after = [g("Sub", *pair) for pair in zip(missing, before)]
        up = g("Pad", up, g.sizes(0, 0, *before, 0, 0, *after), g.constant(np.float32(0.0)))
        parts = [g.slice(g("Shape", narrow), 0, 0, 2), g.slice(g("Shape", skip), 0, 2, END)]
        sizes, none = g("Concat", *parts, axis=0), g.constant(np.float32([]))
        corners = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
        up = g("Add", up, g("Resize", narrow, none, none, sizes, **corners))
    return g.convolution(g("Concat", skip, up, axis=1), 16, 2, 1), ["batch", 2, "height", "width"]


def super_resolution(g: Graph, x: str) -> tuple[str, list[Any]]:
    """Pixel shuffles: an operator of ONNX, then a transpose between reshapes."""
    x = g("Relu", g.convolution(x, 3, 12, 5))
    x = (
        g("DepthToSpace", x, blocksize=2)
        if g.is_old
        else g("DepthToSpace", x, blocksize=2, mode="CRD")
    )
    x = g.convolution(x, 3, 18, 3)
    batch, height, width = (g.size(x, axis) for axis in (0, 2, 3))
    x = g(
        "Reshape",
        x,
        g.sizes(batch, 2, 3, 3, height, width) if g.is_old else g.sizes(-1, 2, 3, 3, height, width),
    )
    x = g("Transpose", x, perm=[0, 1, 4, 2, 5, 3])
    three = g.constant(3)
    x = g("Reshape", x, g.sizes(batch, 2, g("Mul", height, three), g("Mul", width, three)))
    return x, ["batch", 2, "tall", "wide"]


def tagger(g: Graph, x: str) -> tuple[str, list[Any]]:
    """Two layers of LSTM over words, whose initial states are as many as the batch."""

    def lstm(x: str, before: int, directions: int, states: list[str]) -> str:
        weights = [
            g.weight(directions, 24, before),
            g.weight(directions, 24, 6),
            g.weight(directions, 48),
        ]
        direction = "bidirectional" if directions == 2 else "forward"
        inputs = [x, *weights, "", *states] if states else [x, *weights]
        return g("LSTM", *inputs, results=3, hidden_size=6, direction=direction)[0]

    def zeros(x: str, directions: int) -> str:
        if g.is_old:
            first = g.slice(g.slice(x, 0, 0, 1), 2, 0, 6)
            return g("Mul", g("Concat", *[first] * directions, axis=0), g.constant(np.float32(0)))
        zero = numpy_helper.from_array(np.float32([0]))
        return g("ConstantOfShape", g.sizes(directions, g.size(x, 1), 6), value=zero)

    x = g("Transpose", g("Gather", g.weight(20, 8), x, axis=0), perm=[1, 0, 2])
    state = zeros(x, 2)
    x = g("Transpose", lstm(x, 8, 2, [state, state]), perm=[0, 2, 1, 3])
    if g.is_old:
        x = g("Reshape", x, g.constant([0, 0, -1]))
        x = g("Transpose", lstm(x, 12, 2, []), perm=[2, 0, 1, 3])
        x = g("Reshape", x, g.sizes(g.size(x, 0), g.size(x, 1), 12))
        x = g("Add", g("MatMul", x, g.weight(12, 4)), g.weight(4))
        return g("LogSoftmax", x, axis=2), ["batch", "length", 4]
    x = g("Reshape", x, g.sizes(g.size(x, 0), g.size(x, 1), 12))
    x = g("Squeeze", lstm(x, 12, 1, [zeros(x, 1), zeros(x, 1)]), axes=[1])
    x = g("Add", g("MatMul", g("Transpose", x, perm=[1, 0, 2]), g.weight(6, 4)), g.weight(4))
    # LogSoftmax over an axis in the middle.
    x = g("Transpose", g("LogSoftmax", g("Transpose", x, perm=[0, 2, 1]), axis=2), perm=[0, 2, 1])
    return x, ["batch", "length", 4]


IMAGE, WORDS = ["batch", 3, "height", "width"], ["batch", "length"]
#: Functions that write a network, sizes of its input, and what height and width must be multiples of, at 7 and at 11.
NETWORKS: dict[
    str, tuple[Callable[[Graph, str], tuple[str, list[Any]]], list[Any], tuple[int, int]]
] = {
    "ResNet": (resnet, IMAGE, (1, 1)),
    "VGG": (vgg, IMAGE, (1, 1)),
    "YOLO head": (yolo, IMAGE, (4, 4)),
    "U-Net": (unet, IMAGE, (2, 1)),
    "super-resolution": (super_resolution, IMAGE, (1, 1)),
    "LSTM tagger": (tagger, WORDS, (1, 1)),
}


def model_of(name: str, version: int) -> Any:
    """Returns a network as a model of ONNX."""
    network, dims, _ = NETWORKS[name]
    g = Graph(version)
    result, result_dims = network(g, "data")
    kind = TensorProto.INT64 if dims is WORDS else TensorProto.FLOAT
    inputs = [helper.make_tensor_value_info("data", kind, dims)]
    if g.is_old:
        inputs += [helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in g.weights]
    output = helper.make_tensor_value_info(result, TensorProto.FLOAT, result_dims)
    graph = helper.make_graph(g.nodes, name, inputs, [output], g.weights)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", version)], ir_version=3 if g.is_old else 6
    )
    checker.check_model(model)
    return model


def input_of(name: str, version: int, size: tuple[int, int, int]) -> Array:
    """Returns random input of a batch, a height and a width, rounded down to multiples that the network takes."""
    rng, (_, dims, steps) = np.random.default_rng(size), NETWORKS[name]
    batch, height, width = size
    if dims is WORDS:
        return rng.integers(0, 20, (batch, height))
    step = steps[VERSIONS.index(version)]
    return rng.standard_normal((batch, 3, height // step * step, width // step * step)).astype(
        np.float32
    )
