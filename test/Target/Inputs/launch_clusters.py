"""Launches a kernel through the stand-in driver, with 3 blocks and with 4, which both fail: the latter as they ask for
too much shared memory."""

import ctypes
import sys

driver = ctypes.CDLL(sys.argv[1])
with open(sys.argv[2], "rb") as file:
    image = file.read() + b"\0"
name = sys.argv[3].encode()
module, function = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuModuleLoadData(ctypes.byref(module), image) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, name) == 0
for blocks in (3, 4):
    error = driver.cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 1 << 20, None, None, None)
    words = ctypes.c_char_p()
    driver.cuGetErrorName(error, ctypes.byref(words))
    sys.stderr.write(f"{blocks} blocks: {words.value.decode()}\n")
