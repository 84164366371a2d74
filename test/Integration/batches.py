"""Writes batched contractions as linalg modules, in einsum's letters.

out[…] = epilogue(init + sum over k of lhs[…] · rhs[…]); m, n and k are the axes of
the matrix product, other letters batch axes. Any order of an operand's
dimensions, any extent dynamic, operands that lack an axis.
"""

from models import _shape, tensor


class Batched:
    """One batched contraction with its epilogue.

    lhs, rhs, out: the axes of each dimension. extents: from an axis to an int, or
    to the symbol of a dynamic extent. scale: whether the result is multiplied by
    a scalar. extras: axes of tensors that are added. relu: whether it ends in one.
    init: "fill", or "tensor" for one that the product adds to. batch: number of
    batch axes of the kernel. named: whether it is written as
    linalg.batch_matmul or, of other axes b, m, n and k, as linalg.contract.
    factors: the factors' type, which are cast to that of the sums: i32 of i8, or
    else f32. All else has that type. scales: axes of a tensor of factors with which
    the lhs is multiplied first.
    """

    name = "f"

    def __init__(
        self,
        lhs,
        rhs,
        out,
        extents,
        scale=False,
        extras=(),
        relu=False,
        init="fill",
        batch=1,
        named=False,
        result=None,
        factors="f32",
        scales=None,
    ):
        self.lhs, self.rhs, self.out, self.extents = lhs, rhs, out, extents
        self.scale, self.extras, self.relu, self.init = scale, extras, relu, init
        self.batch, self.named, self.result = batch, named, result or out
        self.factors, self.sums, self.scales = factors, "i32" if factors == "i8" else "f32", scales

    def batch_axes(self):
        return self.batch

    def _type_of(self, name):
        """Type of the elements of an operand."""
        return self.factors if name in ("a", "b", "z") else self.sums

    def _type(self, axes, name=""):
        return tensor(*(self.extents[axis] for axis in axes)).replace("f32", self._type_of(name))

    def operands(self):
        """(name, axes) of every argument, in order; None for a scalar."""
        result = [("a", self.lhs), ("b", self.rhs)]
        if self.scales:
            result.append(("z", self.scales))
        if self.init == "tensor":
            result.append(("c", self.out))
        result += [(f"x{i}", axes) for i, axes in enumerate(self.extras)]
        return result + ([("s", None)] if self.scale else [])

    def args(self, scalar="0.75", **sizes):
        """The value of ftuner-run's --args for sizes of the symbols."""

        def extent(axis):
            return sizes.get(self.extents[axis], self.extents[axis])

        return ",".join(
            scalar
            if axes is None
            else "".join(f"{extent(axis)}x" for axis in axes) + self._type_of(name)
            for name, axes in self.operands()
        )

    def _dim(self, axis, lines, of=""):
        """The extent of a dynamic axis."""
        name, axes = next((name, axes) for name, axes in self.operands() if axes and axis in axes)
        lines.append(f"%at_{of}{axis} = arith.constant {axes.index(axis)} : index")
        lines.append(
            f"%size_{of}{axis} = tensor.dim %{name}, %at_{of}{axis} : {self._type(axes, name)}"
        )
        return f"%size_{of}{axis}"

    def _generic(self, value, loops, inputs, output, destination, body, result):
        maps = ", ".join(
            f"affine_map<({', '.join(loops)}) -> ({', '.join(axes)})>"
            for _, axes in [*inputs, ("", output)]
        )
        kinds = ", ".join('"parallel"' if axis in output else '"reduction"' for axis in loops)
        names = ", ".join(f"%{name}" for name, _ in inputs)
        types = ", ".join(self._type(axes, name) for name, axes in inputs)
        elements = ", ".join(
            f"%{name}_: {self._type_of(name)}" for name, _ in [*inputs, ("out", output)]
        )
        type = self._type(output)
        return [
            f"%{value} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
            f"    ins({names} : {types}) outs(%{destination} : {type}) {{",
            f"  ^bb0({elements}):",
            *(f"    {line}" for line in body),
            f"    linalg.yield {result} : {self.sums}",
            f"}} -> {type}",
        ]

    def _scaled_lhs(self):
        lines = []
        sizes = ", ".join(
            self._dim(axis, lines, "lhs")
            for axis in self.lhs
            if isinstance(self.extents[axis], str)
        )
        type = self._type(self.lhs, "a")
        maps = ", ".join(
            f"affine_map<({', '.join(self.lhs)}) -> ({', '.join(axes)})>"
            for axes in (self.lhs, self.scales, self.lhs)
        )
        kinds = ", ".join(['"parallel"'] * len(self.lhs))
        return [
            *lines,
            f"%empty_lhs = tensor.empty({sizes}) : {type}",
            f"%scaled_lhs = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}",
            f"    ins(%a, %z : {type}, {self._type(self.scales, 'z')}) outs(%empty_lhs : {type}) {{",
            f"  ^bb0(%a_: {self.factors}, %z_: {self.factors}, %out_: {self.factors}):",
            f"    %az = arith.mulf %a_, %z_ : {self.factors}",
            f"    linalg.yield %az : {self.factors}",
            f"}} -> {type}",
        ]

    def _product(self, start):
        if self.named:
            type = self._type(self.out)
            if (self.lhs, self.rhs, self.out) != ("bmk", "bkn", "bmn"):
                maps = ", ".join(
                    f"affine_map<(b, m, n, k) -> ({', '.join(axes)})>"
                    for axes in (self.lhs, self.rhs, self.out)
                )
                return [
                    f"%product = linalg.contract indexing_maps = [{maps}] ins(%a, %b : {self._type(self.lhs, 'a')}, "
                    f"{self._type(self.rhs, 'b')}) outs(%{start} : {type}) -> {type}"
                ]
            return [
                f"%product = linalg.batch_matmul ins(%a, %b : {self._type(self.lhs, 'a')}, "
                f"{self._type(self.rhs, 'b')}) outs(%{start} : {type}) -> {type}"
            ]
        loops = list(dict.fromkeys(self.out + self.lhs + self.rhs))
        body, suffix = [], "i" if self.sums == "i32" else "f"
        lhs, rhs = "%a_", "%b_"
        if self.factors != self.sums:
            cast = "extsi" if self.sums == "i32" else "extf"
            body += [
                f"%{name}e = arith.{cast} {factor} : {self.factors} to {self.sums}"
                for name, factor in (("a", lhs), ("b", rhs))
            ]
            lhs, rhs = "%ae", "%be"
        body += [
            f"%p = arith.mul{suffix} {lhs}, {rhs} : {self.sums}",
            f"%q = arith.add{suffix} %out_, %p : {self.sums}",
        ]
        lines = self._generic(
            "product", loops, [("a", self.lhs), ("b", self.rhs)], self.out, start, body, "%q"
        )
        if not self.scales:
            return lines
        return [
            *self._scaled_lhs(),
            *(line.replace("ins(%a,", "ins(%scaled_lhs,") for line in lines),
        ]

    def _epilogue(self):
        body, value = [], "%product_"
        if self.scale:
            body.append(f"%scaled = arith.mulf {value}, %s : f32")
            value = "%scaled"
        for i in range(len(self.extras)):
            suffix = "i" if self.sums == "i32" else "f"
            body.append(f"%sum{i} = arith.add{suffix} {value}, %x{i}_ : {self.sums}")
            value = f"%sum{i}"
        if self.relu:
            body.append(f"%relu = arith.maximumf {value}, %zero : f32")
            value = "%relu"
        inputs = [("product", self.out), *((f"x{i}", axes) for i, axes in enumerate(self.extras))]
        return self._generic(
            "result", list(self.result), inputs, self.result, "target", body, value
        )

    def text(self):
        symbols = sorted({extent for extent in self.extents.values() if isinstance(extent, str)})
        ranges = ", ".join(f"{symbol} = #ukernel.range<1 to 64>" for symbol in symbols)
        attributes = f" attributes {{ukernel.symbols = {{{ranges}}}}}" if ranges else ""
        parameters = ", ".join(
            f"%{name}: f32"
            if axes is None
            else f"%{name}: {self._type(axes, name)} {_shape(*(self.extents[axis] for axis in axes))}"
            for name, axes in self.operands()
        )
        lines = [f"%zero = arith.constant {'0' if self.sums == 'i32' else '0.0'} : {self.sums}"]
        sizes = {
            axis: self._dim(axis, lines) for axis in self.out if isinstance(self.extents[axis], str)
        }
        type = self._type(self.out)

        def empty(axes):
            return f"tensor.empty({', '.join(sizes[axis] for axis in axes if axis in sizes)}) : {self._type(axes)}"

        if self.init == "fill":
            lines += [
                f"%empty = {empty(self.out)}",
                f"%start = linalg.fill ins(%zero : {self.sums}) outs(%empty : {type}) -> {type}",
            ]
        lines += self._product("start" if self.init == "fill" else "c")
        result = "product"
        if self.scale or self.extras or self.relu or self.result != self.out:
            lines += [f"%target = {empty(self.result)}", *self._epilogue()]
            result = "result"
        out = self._type(self.result)
        lines.append(f"return %{result} : {out}")
        return "\n".join(
            [
                f"module{attributes} {{",
                f"  func.func @{self.name}({parameters}) -> {out} {{",
                *(f"    {line}" for line in lines),
                "  }",
                "}",
                "",
            ]
        )


def grid(**choices):
    """Dictionaries that run through the sizes of every symbol, the others at their last one."""
    base = {symbol: sizes[-1] for symbol, sizes in choices.items()}
    result = [base]
    for symbol, sizes in choices.items():
        result += [{**base, symbol: size} for size in sizes[:-1]]
    return result


def group():
    """(label, model, sizes) of batched products as models have them."""
    lengths = (0, 1, 5, 13, 53)
    heads = {"b": "B", "h": 3, "m": "S", "n": "T", "k": 16}
    values = {"b": "B", "h": 3, "m": "S", "n": 20, "k": "T"}
    return [
        (
            "batch_matmul",
            Batched("bmk", "bkn", "bmn", {"b": "B", "m": "S", "n": 36, "k": 24}, named=True),
            grid(B=(0, 1, 4), S=lengths),
        ),
        (
            "batch_matmul static",
            Batched("bmk", "bkn", "bmn", {"b": 3, "m": 29, "n": 37, "k": 19}, named=True),
            [{}],
        ),
        (
            "batch_matmul dynamic",
            Batched(
                "bmk",
                "bkn",
                "bmn",
                {"b": "B", "m": "S", "n": "T", "k": "K"},
                named=True,
                extras=("n",),
            ),
            grid(B=(0, 2), S=lengths, T=(0, 1, 7, 40), K=(0, 1, 9, 32)),
        ),
        (
            "both transposed",
            Batched("bkm", "bnk", "bmn", {"b": 2, "m": "S", "n": 24, "k": 20}, relu=True),
            grid(S=(*lengths, 52)),
        ),
        (
            "queries times keys",
            Batched("bmhk", "bnhk", "bhmn", heads, batch=2, scale=True, extras=("bmn",)),
            grid(B=(0, 1, 2), S=lengths, T=(0, 1, 8, 31, 48)),
        ),
        (
            "queries times keys with biases",
            Batched("bmhk", "bnhk", "bhmn", heads, batch=2, extras=("h", "bn", "hmn"), relu=True),
            grid(B=(1, 2), S=(1, 17), T=(5, 33)),
        ),
        (
            "weights times values",
            Batched("bhmk", "bkhn", "bmhn", values, batch=2),
            grid(B=(0, 1, 2), S=lengths, T=(0, 1, 8, 31, 48)),
        ),
        (
            "result of another order",
            Batched("bhmk", "bhkn", "bhmn", values, batch=2, result="hbmn", extras=("hm",)),
            grid(B=(1, 2), S=(1, 17), T=(5, 32)),
        ),
        (
            "shared weights, rows inside",
            Batched("mbk", "kn", "bmn", {"b": 3, "m": "S", "n": 20, "k": 12}, extras=("b",)),
            grid(S=lengths),
        ),
        (
            "shared weights, rows joined",
            Batched(
                "bmk",
                "nk",
                "bmn",
                {"b": "B", "m": 4, "n": 20, "k": 12},
                init="tensor",
                batch=0,
                named=True,
            ),
            grid(B=(0, 1, 3, 17)),
        ),
        (
            "axes that one factor lacks",
            Batched("bmk", "cbkn", "cbmn", {"b": "B", "c": 2, "m": "S", "n": 21, "k": 10}, batch=2),
            grid(B=(0, 1, 3), S=(0, 1, 17)),
        ),
        (
            "three batch axes",
            Batched(
                "abcmk",
                "cabnk",
                "bacmn",
                {"a": 2, "b": "B", "c": 3, "m": "S", "n": 12, "k": 8},
                batch=3,
                init="tensor",
            ),
            grid(B=(0, 1, 2), S=(0, 1, 9)),
        ),
        (
            "a batch of one",
            Batched(
                "bmhk",
                "bnhk",
                "bhmn",
                {"b": 1, "h": 3, "m": "S", "n": "T", "k": 16},
                batch=2,
                scale=True,
                extras=("bn",),
            ),
            grid(S=(0, 1, 20), T=(0, 1, 31, 32)),
        ),
        (
            "one product",
            Batched(
                "bmk",
                "bkn",
                "bmn",
                {"b": 1, "m": "S", "n": 20, "k": 16},
                named=True,
                extras=("mn",),
            ),
            grid(S=lengths),
        ),
        (
            "BatchMatmul of the paper",
            Batched("bmk", "bnk", "bmn", {"b": 192, "m": "T", "n": "T", "k": 64}),
            [{"T": size} for size in (5, 24, 43, 62)],
        ),
        (
            "BatchMatmul of the paper, values",
            Batched("bmk", "bkn", "bmn", {"b": 192, "m": "T", "n": 64, "k": "T"}),
            [{"T": size} for size in (5, 24, 43)],
        ),
        (
            "one row",
            Batched("bmhk", "bnhk", "bhmn", {"b": 2, "h": 4, "m": 1, "n": "T", "k": 32}, batch=2),
            grid(T=(0, 1, 6, 64)),
        ),
    ]
