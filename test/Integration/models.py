"""Writes linalg modules for the integration tests.

A model is C = epilogue(init + op(A) · op(B)) with any of M, N and K dynamic, as
a person or an importer writes it.
"""

EPILOGUES = ("none", "bias_n", "bias_m", "residual", "relu", "bias_gelu", "scale", "chain")

DEFAULT_RANGE = "#ukernel.range<1 to 128>"


def _dim(extent):
    return "?" if isinstance(extent, str) else str(extent)


def tensor(*extents):
    """Tensor type of f32; a string stands for a dynamic extent's symbol."""
    return "tensor<" + "".join(_dim(e) + "x" for e in extents) + "f32>"


def _shape(*extents):
    items = ", ".join(f'"{e}"' if isinstance(e, str) else str(e) for e in extents)
    return "{ukernel.shape = [" + items + "]}"


def _operand(transposed, rows, columns):
    return (columns, rows) if transposed else (rows, columns)


class Matmul:
    """One matrix product with its epilogue.

    m, n, k: an int, or a string naming a dynamic symbol. ranges: symbol to
    `#ukernel.range<...>` text. init: "fill" (a scalar), or "tensor" (an
    existing one that the product adds to).
    """

    def __init__(
        self,
        m="T",
        n=64,
        k=48,
        transpose_a=False,
        transpose_b=False,
        epilogue="none",
        ranges=None,
        init="fill",
        fill_value="0.0",
        name="f",
    ):
        self.m, self.n, self.k = m, n, k
        self.transpose_a, self.transpose_b = transpose_a, transpose_b
        self.epilogue, self.init, self.fill_value, self.name = epilogue, init, fill_value, name
        self.ranges = {s: DEFAULT_RANGE for s in (m, n, k) if isinstance(s, str)}
        self.ranges.update(ranges or {})

    def operands(self):
        """(name, extents) of every argument, in order."""
        result = [
            ("a", _operand(self.transpose_a, self.m, self.k)),
            ("b", _operand(self.transpose_b, self.k, self.n)),
        ]
        if self.init == "tensor":
            result.append(("c", (self.m, self.n)))
        if self.epilogue in ("bias_n", "bias_gelu", "chain"):
            result.append(("x", (self.n,)))
        if self.epilogue == "bias_m":
            result.append(("x", (self.m,)))
        if self.epilogue in ("residual", "chain"):
            result.append(("y", (self.m, self.n)))
        if self.epilogue == "scale":
            result.append(("s", None))
        return result

    def args(self, scalar="0.75", **sizes):
        """The value of ftuner-run's --args for sizes of the symbols."""
        items = []
        for _, extents in self.operands():
            if extents is None:
                items.append(scalar)
            else:
                items.append("".join(f"{sizes.get(e, e)}x" for e in extents) + "f32")
        return ",".join(items)

    def shape(self, **sizes):
        """(m, n, k) at sizes of the symbols."""
        return tuple(sizes.get(extent, extent) for extent in (self.m, self.n, self.k))

    def contiguous(self, **sizes):
        """Extents of the dimensions that a, b and the result are contiguous along."""
        m, n, k = self.shape(**sizes)
        return {m if self.transpose_a else k, k if self.transpose_b else n, n}

    def _body(self):
        steps = {
            "bias_n": "%r = arith.addf %p, %x : f32",
            "bias_m": "%r = arith.addf %p, %x : f32",
            "residual": "%r = arith.addf %p, %y : f32",
            "relu": "%r = arith.maximumf %p, %zero : f32",
            "scale": "%r = arith.mulf %p, %s : f32",
            "bias_gelu": """%t = arith.addf %p, %x : f32
        %u = arith.mulf %t, %rsqrt2 : f32
        %v = math.erf %u : f32
        %w = arith.addf %v, %one : f32
        %h = arith.mulf %t, %half : f32
        %r = arith.mulf %h, %w : f32""",
            "chain": """%t = arith.addf %p, %x : f32
        %c = arith.cmpf ogt, %t, %zero : f32
        %u = arith.select %c, %t, %half : f32
        %v = math.tanh %u : f32
        %r = arith.subf %v, %y : f32""",
        }
        return steps[self.epilogue]

    def text(self):
        ranges = ", ".join(f"{s} = {r}" for s, r in self.ranges.items())
        attrs = f" attributes {{ukernel.symbols = {{{ranges}}}}}" if ranges else ""
        parameters = ", ".join(
            f"%{name}: f32"
            if extents is None
            else f"%{name}: {tensor(*extents)} {_shape(*extents)}"
            for name, extents in self.operands()
        )
        out = tensor(self.m, self.n)
        lines = [
            f"module{attrs} {{",
            f"  func.func @{self.name}({parameters}) -> {out} {{",
            "    %zero = arith.constant 0.0 : f32",
            "    %half = arith.constant 0.5 : f32",
            "    %one = arith.constant 1.0 : f32",
            "    %rsqrt2 = arith.constant 0.70710678118654752 : f32",
            f"    %start = arith.constant {self.fill_value} : f32",
            "    %c0 = arith.constant 0 : index",
            "    %c1 = arith.constant 1 : index",
        ]
        dynamic = []
        if isinstance(self.m, str):
            dim, where = "%m", "%c1" if self.transpose_a else "%c0"
            source = tensor(*_operand(self.transpose_a, self.m, self.k))
            lines.append(f"    {dim} = tensor.dim %a, {where} : {source}")
            dynamic.append(dim)
        if isinstance(self.n, str):
            dim, where = "%n", "%c0" if self.transpose_b else "%c1"
            source = tensor(*_operand(self.transpose_b, self.k, self.n))
            lines.append(f"    {dim} = tensor.dim %b, {where} : {source}")
            dynamic.append(dim)
        lines.append(f"    %empty = tensor.empty({', '.join(dynamic)}) : {out}")
        if self.init == "tensor":
            init = "%c"
        else:
            init = "%init"
            lines.append(f"    %init = linalg.fill ins(%start : f32) outs(%empty : {out}) -> {out}")
        a = tensor(*_operand(self.transpose_a, self.m, self.k))
        b = tensor(*_operand(self.transpose_b, self.k, self.n))
        maps = [
            "affine_map<(m, n, k) -> (k, m)>"
            if self.transpose_a
            else "affine_map<(m, n, k) -> (m, k)>",
            "affine_map<(m, n, k) -> (n, k)>"
            if self.transpose_b
            else "affine_map<(m, n, k) -> (k, n)>",
            "affine_map<(m, n, k) -> (m, n)>",
        ]
        transposed = self.transpose_a or self.transpose_b
        indexing = f" indexing_maps = [{', '.join(maps)}]" if transposed else ""
        lines.append(
            f"    %product = linalg.matmul{indexing} ins(%a, %b : {a}, {b}) outs({init} : {out}) -> {out}"
        )
        if self.epilogue == "none":
            lines.append(f"    return %product : {out}")
        else:
            lines += self._epilogue(out)
        lines += ["  }", "}", ""]
        return "\n".join(lines)

    def _epilogue(self, out):
        inputs, types, maps, block = (
            ["%product"],
            [out],
            ["affine_map<(m, n) -> (m, n)>"],
            ["%p: f32"],
        )
        for name, extents in self.operands():
            if name not in ("x", "y"):
                continue
            inputs.append(f"%{name}")
            types.append(tensor(*extents))
            if extents == (self.m, self.n):
                maps.append("affine_map<(m, n) -> (m, n)>")
            else:
                maps.append(
                    "affine_map<(m, n) -> (n)>"
                    if self.epilogue != "bias_m"
                    else "affine_map<(m, n) -> (m)>"
                )
            block.append(f"%{name}_: f32")
        maps.append("affine_map<(m, n) -> (m, n)>")
        body = self._body().replace("%x :", "%x_ :").replace("%y :", "%y_ :")
        return [
            f"    %result = linalg.generic {{indexing_maps = [{', '.join(maps)}],",
            '        iterator_types = ["parallel", "parallel"]}',
            f"        ins({', '.join(inputs)} : {', '.join(types)}) outs(%empty : {out}) {{",
            f"      ^bb0({', '.join(block)}, %out: f32):",
            f"        {body}",
            "        linalg.yield %r : f32",
            f"    }} -> {out}",
            f"    return %result : {out}",
        ]
