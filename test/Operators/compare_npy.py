"""Compares two .npy files of f32 by the relative Frobenius error: compare_npy.py A B TOLERANCE"""

import array
import ast
import math
import sys


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    length = int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10 : 10 + length].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    values = array.array("f", data[10 + length :])
    assert len(values) == math.prod(header["shape"]), header
    return header["shape"], values


(shape, values), (expected_shape, expected) = read(sys.argv[1]), read(sys.argv[2])
assert shape == expected_shape, f"{shape} and {expected_shape}"
norm = math.sqrt(sum(x * x for x in expected))
error = math.sqrt(sum((x - y) ** 2 for x, y in zip(values, expected))) / norm
assert norm > 0 and error <= float(sys.argv[3]), f"relative error {error}"
print(f"{len(values)} values, relative error {error:.2g}")
