"""Writes a test.convolution, <out>.mlir, and the same by upstream's linalg operator on padded images,
<out>-linalg.mlir: convolution.py <out> --image=28x28x32 --filter=64x3x3 [options]"""

import argparse

OPERATOR = """{plan}func.func @conv(%x: tensor<{x}>, %w: tensor<{w}>{bias_argument}) -> tensor<{y}> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant {zero_attr}
  %n = tensor.dim %x, %c0 : tensor<{x}>
  %o = tensor.empty(%n) : tensor<{y}>
  %r = test.convolution{plan_use} ins(%x, %w : tensor<{x}>, tensor<{w}>)
    init(%zero : {sum}){bias_operand} outs(%o : tensor<{y}>)
    strides = [{stride}] dilations = [{dilation}] padding = [{padding}]{hwcf} {{
    ^bb0(%a: {type}, %b: {type}, %c: {sum}):
      %u = {extend} %a : {type} to {sum}
      %v = {extend} %b : {type} to {sum}
      %p = {multiply} %u, %v : {sum}
      %s = {add} %c, %p : {sum}
      ukernel.yield %s : {sum}
    }}{epilogue} -> tensor<{y}>
  return %r : tensor<{y}>
}}
"""

PLAN = """ukernel.plan @plan <families = [{families}],
    choices = [], general = 0, unaligned_general = {last}>
"""

EPILOGUE = """ epilogue {{
    ^bb0(%c: {sum}, %d: {sum}):
      %zero_sum = arith.constant 0.0 : f32
      %e = arith.addf %c, %d : {sum}
      %f = arith.maximumf %e, %zero_sum : f32
      %g = arith.truncf %f : f32 to f16
      ukernel.yield %g : f16
    }}"""

LINALG = """#all = affine_map<(n, p, q, f) -> (n, p, q, f)>
func.func @conv(%x: tensor<{x}>, %w: tensor<{w}>{bias_argument}) -> tensor<{y}> {{
  %c0 = arith.constant 0 : index
  %zero = arith.constant {zero_attr}
  %outside = arith.constant {outside} : {type}
  %n = tensor.dim %x, %c0 : tensor<{x}>
  %o = tensor.empty(%n) : tensor<{sums}>
  %init = linalg.fill ins(%zero : {sum}) outs(%o : tensor<{sums}>) -> tensor<{sums}>
  %image = tensor.pad %x low[0, {padding}, 0] high[0, {padding}, 0] {{
  ^bb0(%i: index, %j: index, %k: index, %l: index):
    tensor.yield %outside : {type}
  }} : tensor<{x}> to tensor<{padded}>
  %r = linalg.{operator} {{strides = dense<[{stride}]> : tensor<2xi64>, dilations = dense<[{dilation}]> : tensor<2xi64>}}
    ins(%image, %w : tensor<{padded}>, tensor<{w}>) outs(%init : tensor<{sums}>) -> tensor<{sums}>
{finish}}}
"""

FINISH = """  %e = tensor.empty(%n) : tensor<{y}>
  %z = linalg.generic {{indexing_maps = [#all, affine_map<(n, p, q, f) -> (f)>, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%r, %bias : tensor<{sums}>, tensor<{filters}x{sum}>) outs(%e : tensor<{y}>) {{
    ^bb0(%c: {sum}, %d: {sum}, %old: f16):
      %zero_sum = arith.constant 0.0 : f32
      %s = arith.addf %c, %d : {sum}
      %f = arith.maximumf %s, %zero_sum : f32
      %g = arith.truncf %f : f32 to f16
      linalg.yield %g : f16
  }} -> tensor<{y}>
  return %z : tensor<{y}>
"""


def numbers(text):
    return [int(number) for number in text.replace(",", "x").split("x")]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--image", type=numbers, required=True, help="rows x columns x channels")
    parser.add_argument("--filter", type=numbers, required=True, help="filters x rows x columns")
    parser.add_argument("--stride", type=numbers, default=[1, 1])
    parser.add_argument("--dilation", type=numbers, default=[1, 1])
    parser.add_argument("--padding", type=numbers, default=[0, 0])
    parser.add_argument("--hwcf", action="store_true")
    parser.add_argument("--type", default="f16")
    parser.add_argument("--bias", action="store_true", help="and max(0, .), rounded to f16")
    parser.add_argument(
        "--family",
        action="append",
        default=[],
        help="of a plan, in place of the search; the last one takes any alignment",
    )
    options = parser.parse_args()
    image, (filters, *taps) = options.image, options.filter
    padded = [size + 2 * pad for size, pad in zip(image, options.padding)]
    positions = [
        (size - dilation * (tap - 1) - 1) // stride + 1
        for size, dilation, tap, stride in zip(padded, options.dilation, taps, options.stride)
    ]
    is_integer = options.type.startswith("i")
    sum_type = "i32" if is_integer else "f32"

    def shape(sizes, element):
        return "x".join(str(size) for size in sizes) + "x" + element

    out = ["?", *positions, filters]
    values = dict(
        x=shape(["?", *image], options.type),
        padded=shape(["?", *padded, image[2]], options.type),
        w=shape(
            [*taps, image[2], filters] if options.hwcf else [filters, *taps, image[2]], options.type
        ),
        y=shape(out, "f16" if options.bias else sum_type),
        sums=shape(out, sum_type),
        filters=filters,
        type=options.type,
        sum=sum_type,
        zero_attr="0 : i32" if is_integer else "0.0 : f32",
        outside="0" if is_integer else "0.0",
        extend="arith.extsi" if is_integer else "arith.extf",
        multiply="arith.muli" if is_integer else "arith.mulf",
        add="arith.addi" if is_integer else "arith.addf",
        hwcf=" hwcf" if options.hwcf else "",
        operator="conv_2d_nhwc_hwcf" if options.hwcf else "conv_2d_nhwc_fhwc",
        bias_argument="",
        bias_operand="",
        epilogue="",
        plan=PLAN.format(
            families=", ".join(f"<{family}>" for family in options.family),
            last=len(options.family) - 1,
        )
        if options.family
        else "",
        plan_use=" plan(@plan)" if options.family else "",
        **{
            name: ", ".join(map(str, getattr(options, name)))
            for name in ("stride", "dilation", "padding")
        },
    )
    finish = "  return %r : tensor<{y}>\n"
    if options.bias:
        values["bias_argument"] = f", %bias: tensor<{filters}x{sum_type}>"
        values["bias_operand"] = f" bias(%bias : tensor<{filters}x{sum_type}>)"
        values["epilogue"] = EPILOGUE.format(**values)
        finish = FINISH
    with open(options.out + ".mlir", "w", encoding="utf-8") as file:
        file.write(OPERATOR.format(**values))
    with open(options.out + "-linalg.mlir", "w", encoding="utf-8") as file:
        file.write(LINALG.format(finish=finish.format(**values), **values))


if __name__ == "__main__":
    main()
