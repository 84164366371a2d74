"""Operators that slide windows over images, and operators that scale or sample images."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Array, Case, Pick, between, constant, data, normal, operators, sizes, weights

F32, F16, F64 = np.float32, np.float16, np.float64
SIDES = ["h", "w", "v"]
PAIRS = ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
POINTS = {
    "even": {"a": 2, "b": 4, "h": 8, "w": 6, "v": 4},
    "odd": {"a": 1, "b": 3, "h": 7, "w": 9, "v": 5},
    "prime": {"a": 1, "b": 1, "h": 5, "w": 11, "v": 7},
    "one": dict.fromkeys("abhwv", 1),
    "zero": {"a": 0, "b": 2, "h": 7, "w": 6, "v": 5},
}


def _window(pick: Pick, rank: int, dilates: bool) -> dict[str, Any]:
    """Attributes of a window over images."""
    kernel = pick("kernel", [[2, 2, 2], [3, 3, 3], [3, 2, 1], [1, 1, 1]])[:rank]
    strides = pick("strides", [None, [1, 1, 1], [2, 2, 2], [3, 1, 2]])
    dilations = pick("dilations", [None, [2, 2, 2], [1, 2, 1]]) if dilates else None
    pad = pick("auto_pad", [None, *PAIRS])
    pads = None
    if str(pad).startswith("SAME"):
        # onnxruntime counts dilated windows by another formula than ONNX.
        dilations = None
    if pad in (None, "NOTSET"):
        before, after = pick(
            "pads",
            [([0] * 3, [0] * 3), ([1] * 3, [1] * 3), ([0] * 3, [1] * 3), ([1, 0, 0], [0, 1, 1])],
        )
        pads = [min(size, kernel[i] - 1) for i, size in enumerate(before[:rank])]
        pads += [min(size, kernel[i] - 1) for i, size in enumerate(after[:rank])]
        pads = pads if any(pads) or pick.rng.random() < 0.5 else None
    return {
        "kernel_shape": kernel, "strides": strides and strides[:rank], "pads": pads, "auto_pad": pad,
        "dilations": dilations and dilations[:rank],
    }  # fmt: skip


@operators("MaxPool", "AveragePool", "LpPool")
def pool(pick: Pick) -> Case:
    rank = pick("rank", [1, 2, 2, 3])
    name, version = pick.operator, pick.version
    dilates = version >= {"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]
    attributes = _window(pick, rank, dilates)
    if version >= {"MaxPool": 10, "AveragePool": 10, "LpPool": 18}[name]:
        attributes["ceil_mode"] = pick("ceil_mode", [None, 0, 1])
    if name == "AveragePool":
        attributes["count_include_pad"] = pick("count_include_pad", [None, 0, 1])
    if name == "LpPool":
        attributes["p"] = pick("p", [None, 1, 2, 3])
    outputs, kinds = 1, [F32, F32, F64, F16]
    if name == "MaxPool" and version >= 8:
        outputs = pick("outputs", [1, 2])
        attributes["storage_order"] = pick("storage_order", [None, 0, 1])
        kinds += [np.int8, np.uint8] if version >= 12 else []

    def unequal(rng: Any, shape: Any, dtype: Any) -> Array:
        if np.dtype(dtype).itemsize < 4:
            return normal(rng, shape, dtype)
        count = int(np.prod(shape))
        return (rng.permutation(count) - count / 2).reshape(shape).astype(dtype) / dtype(8)

    make = unequal if name == "MaxPool" else normal
    return pick.case([data(pick("dtype", kinds), "a", "b", *SIDES[:rank], make=make)], attributes, outputs=outputs,
                     points=POINTS, tolerance=4, reference=_pooled,
                     departure="windows of padding alone, and those larger than the image, are left out")  # fmt: skip


def _pooled(case: Case, arrays: list[Array], wanted: list[Array]) -> list[Array] | None:
    """The results, except for images smaller than a window and windows of only padding."""
    kernel, sides = case.attributes["kernel_shape"], arrays[0].shape[2:]
    rank = len(kernel)
    dilations = case.attributes.get("dilations") or [1] * rank
    pads = case.attributes.get("pads") or [0] * 2 * rank
    if case.attributes.get("auto_pad") in (None, "NOTSET", "VALID"):
        rooms = [
            sides[i] + pads[i] + pads[rank + i] - (kernel[i] - 1) * dilations[i]
            for i in range(rank)
        ]
        if min(rooms) <= 0:
            return None
    if wanted[0].dtype.kind == "f" and (wanted[0] <= np.finfo(wanted[0].dtype).min).any():
        return None
    return wanted


@operators("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(pick: Pick) -> Case:
    attributes = {"p": pick("p", [None, 1, 2, 3])} if pick.operator == "GlobalLpPool" else {}
    shape = ["a", "b", *SIDES[: pick("rank", [1, 2, 3])]]
    return pick.case(
        [data(pick("dtype", (F32, F64, F16)), *shape, make=normal)],
        attributes,
        points=POINTS,
        tolerance=4,
    )


@operators("LRN")
def local_response(pick: Pick) -> Case:
    attributes = {"size": pick("size", [1, 2, 3, 5]), "alpha": pick("alpha", [None, 0.5]),
                  "beta": pick("beta", [None, 0.5]), "bias": pick("bias", [None, 2.0])}  # fmt: skip
    return pick.case([data(F32, "a", "b", "h", "w")], attributes, points=POINTS, tolerance=4)


def _filters(
    pick: Pick, kernel: list[int], groups: int, transposed: bool, dtype: Any
) -> tuple[Any, list[Any]]:
    """The channels of the image, and the operands of the filters and the bias."""
    form = pick("filters", ["constant", "constant", "input"])
    channels: Any = groups * 2
    shape = [channels, 3, *kernel] if transposed else [groups * 3, 2, *kernel]
    filters = (data if form == "input" else weights)(dtype, *shape)
    return channels, [filters] + (
        [weights(dtype, groups * 3)] if pick("bias", [False, True]) else []
    )


@operators("Conv")
def convolution(pick: Pick) -> Case:
    rank, groups, dtype = (
        pick("rank", [1, 2, 2, 3]),
        pick("group", [1, 1, 2]),
        pick("dtype", (F32, F32, F64, F16)),
    )
    attributes = _window(pick, rank, dilates=True)
    channels, more = _filters(pick, attributes["kernel_shape"], groups, False, dtype)
    attributes["group"] = groups if groups > 1 or pick("group_is_given", [False, True]) else None
    if pick("kernel_is_given", [True, False]) is False:
        attributes["kernel_shape"] = None
    return pick.case(
        [data(dtype, "a", channels, *SIDES[:rank]), *more], attributes, points=POINTS, tolerance=8
    )


@operators("ConvTranspose")
def transposed(pick: Pick) -> Case:
    rank, groups = pick("rank", [1, 2, 2, 3]), pick("group", [1, 1, 2])
    attributes = _window(pick, rank, dilates=True)
    channels, more = _filters(pick, attributes["kernel_shape"], groups, True, F32)
    attributes["group"] = groups
    strides = attributes["strides"] or [1] * rank
    if pick("output_padding", [False, True]):
        attributes["output_padding"] = [min(1, stride - 1) for stride in strides]
    return pick.case(
        [data(F32, "a", channels, *SIDES[:rank]), *more], attributes, points=POINTS, tolerance=8
    )


def _byte(dtype: Any) -> Any:
    return between(0, 255) if dtype == np.uint8 else between(-127, 127)


@operators("ConvInteger", "QLinearConv")
def quantized_convolution(pick: Pick) -> Case:
    rank, groups = pick("rank", [1, 2]), pick("group", [1, 2])
    attributes = _window(pick, rank, dilates=True)
    attributes["group"] = groups
    x_type, w_type = pick("dtype", (np.uint8, np.int8)), pick("filters", (np.uint8, np.int8))
    image = data(x_type, "a", 2 * groups, *SIDES[:rank], make=_byte(x_type))
    filters = weights(w_type, 3 * groups, 2, *attributes["kernel_shape"], make=_byte(w_type))
    if pick.operator == "ConvInteger":
        points = pick("zero_points", ["none", "x", "both"])
        more = {
            "none": [],
            "x": [constant(3, x_type)],
            "both": [constant(3, x_type), constant(2, w_type)],
        }[points]
        return pick.case([image, filters, *more], attributes, points=POINTS)
    scale = (
        constant(np.full(3 * groups, 0.02), F32)
        if pick("per_axis", [False, True])
        else constant(0.02, F32)
    )
    zero = (
        constant(np.full(3 * groups, 1), w_type)
        if pick.properties["per_axis"]
        else constant(1, w_type)
    )
    y_type = x_type
    operands: list[Any] = [image, constant(0.05, F32), constant(4, x_type), filters, scale, zero,
                           constant(0.3, F32), constant(5, y_type)]  # fmt: skip
    if pick("bias", [False, True]):
        operands.append(weights(np.int32, 3 * groups, make=between(-99, 99)))
    return pick.case(operands, attributes, points=POINTS)


#: Attributes of Resize that its newest set has and older ones do not.
_NEAREST = (None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil")


@operators("Resize")
def resize(pick: Pick) -> Case:
    version = pick.version
    mode = pick("mode", [None, "nearest", "linear"] + (["cubic"] if version >= 11 else []))
    attributes: dict[str, Any] = {"mode": mode}
    by = pick("by", ["scales", "scales", "sizes", "computed"]) if version >= 11 else "scales"
    scales = pick("scales", [[2.0, 2.0], [0.5, 0.5], [1.0, 3.0], [1.5, 0.75], [0.6, 2.5]])
    if version >= 11:
        coordinates = [None, "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"]
        coordinates += ["half_pixel_symmetric"] if version >= 19 else []
        attributes["coordinate_transformation_mode"] = pick("coordinates", coordinates)
        if mode in (None, "nearest"):
            attributes["nearest_mode"] = pick("nearest", _NEAREST)
        if mode == "cubic":
            attributes["cubic_coeff_a"] = pick("cubic", [None, -0.5])
            attributes["exclude_outside"] = pick("exclude_outside", [None, 1])
    axes = None
    if version >= 18:
        axes = pick("axes", [None, [2, 3]])
        if mode in ("linear", "cubic"):
            attributes["antialias"] = pick("antialias", [None, 0, 1])
        if by == "sizes":
            attributes["keep_aspect_ratio_policy"] = pick(
                "policy", [None, "stretch", "not_larger", "not_smaller"]
            )
    if attributes.get("keep_aspect_ratio_policy") not in (None, "stretch"):
        axes = [2, 3]
    attributes["axes"] = axes
    image = data(pick("dtype", (F32, F32, np.uint8)), "a", "b", "h", "w", make=normal)
    full = scales if axes else [1.0, 1.0, *scales]
    points = dict(POINTS)
    if version < 11:
        return pick.case([image, constant(full, F32)], attributes, points=points)
    # Only newer sets may leave the region out.
    region = None if version >= 13 else constant(np.zeros(0), F32)
    if by == "scales":
        return pick.case(
            [image, region, constant(full, F32)], attributes, points=points, tolerance=8
        )
    if by == "sizes":
        points = {"even": {"a": 1, "b": 2, "h": 4, "w": 6}, "odd": {"a": 1, "b": 2, "h": 5, "w": 3},
                  "one": {"a": 1, "b": 2, "h": 1, "w": 1}}  # fmt: skip
        wanted = [7, 4] if axes else ["a", "b", 7, 4]
    else:
        wanted = ["2*h", "w+1"] if axes else ["a", "b", "2*h", "w+1"]
    operand = constant(wanted) if axes and by == "sizes" else sizes(*wanted)
    none = None if version >= 13 else constant(np.zeros(0), F32)
    return pick.case([image, region, none, operand], attributes, points=points, tolerance=8)


@operators("Upsample")
def upsample(pick: Pick) -> Case:
    mode = pick("mode", [None, "nearest", "linear"])
    scales = [1.0, 1.0, *pick("scales", [[2.0, 2.0], [1.0, 3.0], [1.5, 2.5], [1.0, 1.0]])]
    image = data(F32, "a", "b", "h", "w")
    if pick.version < 9:
        return pick.case([image], {"mode": mode, "scales": scales}, points=POINTS)
    return pick.case([image, constant(scales, F32)], {"mode": mode}, points=POINTS)


@operators("GridSample")
def grid_sample(pick: Pick) -> Case:
    rank = pick("rank", [2, 3]) if pick.version >= 20 else 2
    modes = (
        ["bilinear", "nearest", "bicubic"] if pick.version < 20 else ["linear", "nearest", "cubic"]
    )
    attributes = {
        "mode": pick("mode", [None, *modes]),
        "padding_mode": pick("padding_mode", [None, "zeros", "border", "reflection"]),
        "align_corners": pick("align_corners", [None, 0, 1]),
    }
    grid = data(F32, "a", *["d", "e", "n"][:rank], rank, make=between(-1.4, 1.4))
    points = {name: {"d": 2, "e": 3, "n": 2, **point} for name, point in POINTS.items()}
    return pick.case(
        [data(F32, "a", "b", *SIDES[:rank]), grid], attributes, points=points, tolerance=16
    )


@operators("AffineGrid")
def affine_grid(pick: Pick) -> Case:
    rank = pick("rank", [2, 3])
    size = constant([2, 3, 4, 5, 2][: rank + 2])
    attributes = {"align_corners": pick("align_corners", [None, 0, 1])}
    return pick.case([data(pick("dtype", (F32, F64)), "2*one", rank, rank + 1), size], attributes)


@operators("RoiAlign")
def roi_align(pick: Pick) -> Case:
    attributes = {
        "mode": pick("mode", [None, "avg", "max"]),
        "output_height": pick("height", [None, 2]), "output_width": pick("width", [None, 3]),
        "sampling_ratio": pick("sampling_ratio", [None, 2]), "spatial_scale": pick("scale", [None, 0.5]),
    }  # fmt: skip
    if pick.version >= 16:
        attributes["coordinate_transformation_mode"] = pick(
            "coordinates", [None, "half_pixel", "output_half_pixel"]
        )

    def boxes(rng: Any, shape: Any, dtype: Any) -> Array:
        corner = rng.uniform(0, 3, (shape[0], 2))
        return np.concatenate([corner, corner + rng.uniform(1, 4, corner.shape)], 1).astype(dtype)

    batch = data(np.int64, "n", make=lambda rng, shape, dtype: np.zeros(shape, dtype))
    points = {
        "even": {"a": 1, "b": 2, "h": 6, "w": 8, "n": 2},
        "odd": {"a": 1, "b": 3, "h": 7, "w": 5, "n": 3},
    }
    return pick.case([data(F32, "a", "b", "h", "w"), data(F32, "n", 4, make=boxes), batch], attributes, points=points,
                     tolerance=16)  # fmt: skip


@operators("Col2Im")
def col2im(pick: Pick) -> Case:
    block, image = pick("block", [[2, 2], [1, 3], [3, 1]]), pick("image", [[4, 6], [5, 5]])
    strides, pads, dilations = (
        pick("strides", [None, [2, 2], [1, 3]]),
        pick("pads", [None, [1, 1, 1, 1], [0, 1, 2, 0]]),
        None,
    )
    if pads is None and strides is None:
        dilations = pick("dilations", [None, [1, 2]])
    steps, ends, rates = strides or [1, 1], pads or [0] * 4, dilations or [1, 1]
    counts = [
        (image[i] + ends[i] + ends[i + 2] - rates[i] * (block[i] - 1) - 1) // steps[i] + 1
        for i in range(2)
    ]
    attributes = {"strides": strides, "pads": pads, "dilations": dilations}
    return pick.case([data(F32, "a", f"{block[0] * block[1]}*b", f"{counts[0] * counts[1]}*one"), constant(image), constant(block)],
                     attributes)  # fmt: skip


@operators("Det")
def determinant(pick: Pick) -> Case:
    size = pick("size", [1, 2, 3, 5, "b"])
    leading = pick("leading", [[], ["a"], ["a", "d"]])
    return pick.case([data(pick("dtype", (F32, F64)), *leading, size, size)], tolerance=32)
