#!/usr/bin/env python3
"""Calls of compiled functions captured into CUDA graphs, over the driver of the emulator.

The driver (lib/CudaEmulator) captures streams: nothing runs until the graph is launched, and each launch runs with the
parameters of the capture. Graphs are launched several times, with other contents of the same buffers and other calls in
between, against NumPy in float64. Then what may not be done while a stream is captured, by the driver's own functions.
"""

import ctypes
import json
import os
import re
import subprocess
import sys
import threading

import numpy as np

import harness
import images
import library

# CUresult
ILLEGAL_STATE, NOT_SUPPORTED = 401, 801
(
    UNSUPPORTED,
    INVALIDATED,
    MERGE,
    UNMATCHED,
    UNJOINED,
    ISOLATION,
    IMPLICIT,
    CAPTURED_EVENT,
    WRONG_THREAD,
) = range(900, 909)
# CUstreamCaptureMode, CUstreamCaptureStatus, CUgraphNodeType
GLOBAL, THREAD_LOCAL, RELAXED = range(3)
NONE, ACTIVE, INVALID = range(3)
KERNEL, COPY, SET, HOST, CHILD, ALLOCATE, FREE = 0, 1, 2, 3, 4, 10, 11
NON_BLOCKING = 1
LAUNCHES = 2
# Of images.mlir, smaller: launches in the emulator are what takes time here. Calls are captured at these sizes.
SMALLER = {"1024": "256", "512": "64", "2048": "64"}
SIZES = {"f": 33, "slices": 24}

# A kernel that no library has, of which the driver asks no more than its name and parameters.
PTX = b""".version 8.0
.target sm_80
.address_size 64
.visible .entry nobody(
\t.param .u64 .ptr .global .align 16 nobody_param_0,
\t.param .align 64 .b8 nobody_param_1[128],
\t.param .u32 nobody_param_2
)
{
\tret;
}
\0"""


class Graph:
    """What was captured from a stream, ready to be launched."""

    def __init__(self, driver, graph):
        self.driver = driver
        self.executable = ctypes.c_void_p()
        count = ctypes.c_size_t()
        check(driver.cuGraphGetNodes(graph, None, ctypes.byref(count)), "cuGraphGetNodes")
        nodes = (ctypes.c_void_p * count.value)()
        check(driver.cuGraphGetNodes(graph, nodes, ctypes.byref(count)), "cuGraphGetNodes")
        self.types = []
        for node in nodes:
            kind = ctypes.c_int()
            check(
                driver.cuGraphNodeGetType(ctypes.c_void_p(node), ctypes.byref(kind)),
                "cuGraphNodeGetType",
            )
            self.types.append(kind.value)
        check(
            driver.cuGraphInstantiateWithFlags(
                ctypes.byref(self.executable), graph, ctypes.c_uint64(0)
            ),
            "instantiating",
        )
        # What was instantiated stands for itself.
        check(driver.cuGraphDestroy(graph), "cuGraphDestroy")

    def launch(self, stream):
        check(self.driver.cuGraphLaunch(self.executable, stream), "cuGraphLaunch")
        check(self.driver.cuStreamSynchronize(stream), "cuStreamSynchronize")

    def destroy(self):
        check(self.driver.cuGraphExecDestroy(self.executable), "cuGraphExecDestroy")


def check(code, what):
    if code:
        raise RuntimeError(f"{what}: error {code}")


def status_of(driver, stream):
    status = ctypes.c_int(-1)
    check(driver.cuStreamIsCapturing(stream, ctypes.byref(status)), "cuStreamIsCapturing")
    return status.value


def end(driver, stream):
    graph = ctypes.c_void_p()
    check(driver.cuStreamEndCapture(stream, ctypes.byref(graph)), "cuStreamEndCapture")
    return Graph(driver, graph)


def random_bf16(rng, *shape):
    return (rng.standard_normal(shape).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)


def value_of(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


class Call:
    """A function and the buffers that it is called with, which stay where they are."""

    def __init__(self, opened, name, size):
        self.opened, self.name, self.size = opened, name, ctypes.c_int64(size)
        self.function = getattr(opened.library, name)
        k, n = opened.functions[name]["arguments"][1]["shape"]
        self.shapes = [(size, k), (k, n)]
        self.result_shapes = [(size, n), (size,)][: len(opened.functions[name]["results"])]
        get_workspace = getattr(opened.library, f"{name}_workspace_size")
        get_workspace.restype = ctypes.c_int64
        self.workspace_bytes = get_workspace(self.size)
        self.arguments = [library.Guarded(2 * int(np.prod(shape))) for shape in self.shapes]
        self.results = [library.Guarded(4 * int(np.prod(shape))) for shape in self.result_shapes]
        self.workspace = library.Guarded(self.workspace_bytes)

    def fill(self, rng):
        """New factors, and poison everywhere else."""
        values = [random_bf16(rng, *shape) for shape in self.shapes]
        for buffer, value in zip(self.arguments, values):
            buffer.view(np.uint16, value.shape)[...] = value
        for buffer in (*self.results, self.workspace):
            buffer.view(np.uint8, (buffer.size,))[...] = library.POISON
        left, right = map(value_of, values)
        self.product = left @ right

    def call(self):
        pointers = [ctypes.c_void_p(buffer.address) for buffer in (*self.arguments, *self.results)]
        workspace = ctypes.c_void_p(self.workspace.address)
        self.opened.check(self.function(*pointers, self.size, workspace, self.opened.stream))

    def is_untouched(self):
        return all(
            (buffer.view(np.uint8, (buffer.size,)) == library.POISON).all()
            for buffer in (*self.results, self.workspace)
        )

    def error(self):
        if not all(
            buffer.is_intact() for buffer in (*self.arguments, *self.results, self.workspace)
        ):
            raise RuntimeError("something was written outside of a buffer")
        product, *sums = (
            buffer.view(np.float32, shape)
            for buffer, shape in zip(self.results, self.result_shapes)
        )
        norm = np.linalg.norm(self.product)
        errors = [np.linalg.norm(product - self.product) / norm]
        errors += [
            np.linalg.norm(found - product.astype(np.float64).sum(1)) / norm for found in sums
        ]
        return max(map(float, errors))


def run_child(bin_dir, path, has_prepared, mode, seed):
    """Captures and launches calls in this process; writes what came of it as JSON."""
    runtime = library.open_runtime(bin_dir)
    driver = ctypes.CDLL(os.environ["FTRT_CUDA_DRIVER"])
    opened = images.Images(path, runtime, True)
    opened.check(runtime.ftrt_device_select(0))
    opened.stream = ctypes.c_void_p()
    opened.check(runtime.ftrt_stream_create(ctypes.byref(opened.stream)))
    stream = opened.stream
    if has_prepared:
        opened.check(runtime.ftrt_prepare(ctypes.byref(opened.module), stream))
    rng = np.random.default_rng(seed)
    answers = []
    for name, size in SIZES.items():
        call, other = Call(opened, name, size), Call(opened, name, 1)
        call.fill(rng)
        check(driver.cuStreamBeginCapture_v2(stream, mode), "cuStreamBeginCapture")
        call.call()
        was_capturing = status_of(driver, stream)
        graph = end(driver, stream)
        answer = {
            "name": name,
            "workspace": call.workspace_bytes,
            "types": graph.types,
            "capturing": [was_capturing, status_of(driver, stream)],
            "untouched": call.is_untouched(),
            "errors": [],
        }
        for _ in range(LAUNCHES):
            # A call outside of graphs has parameters and tensor maps of its own.
            other.fill(rng)
            other.call()
            answer["errors"].append(other.error())
            call.fill(rng)
            print(f"graph of {name}", file=sys.stderr, flush=True)
            graph.launch(stream)
            print("end", file=sys.stderr, flush=True)
            answer["errors"].append(call.error())
        graph.destroy()
        answers.append(answer)
    opened.check(runtime.ftrt_stream_destroy(stream))
    print(json.dumps(answers))


def kernels_with_maps(path, runtime):
    """The kernels that take tensor maps."""
    manifest = json.loads(library.Library(path, runtime).module.manifest)
    return {
        kernel["entry"]
        for kernel in manifest["kernels"]
        if any(parameter["kind"] == "tensor_map" for parameter in kernel["parameters"])
    }


def check_calls(tests, path, kernels, mapped):
    """Functions with tensor maps and with workspaces, prepared and not, in each mode of capture."""
    problems, found = [], []
    folder = os.path.join(tests.bin_dir, "..", "lib", "cuda-emulator")
    environment = {
        "FTRT_CUDA_DRIVER": os.path.join(folder, "libcuda.so.1"),
        "FTRT_EMULATED_LIBRARIES": path,
        "FTRT_TRACE": "1",
    }
    for capability, chip, has_prepared, mode in (
        ("9.0", "sm_90a", True, GLOBAL),
        ("9.0", "sm_90a", False, GLOBAL),
        ("10.0", "sm_90", False, THREAD_LOCAL),
    ):
        label = f"{capability}, {'prepared' if has_prepared else 'first use while captured'}, mode {mode}"
        child = subprocess.run(
            [
                sys.executable,
                __file__,
                "--bin-dir",
                tests.bin_dir,
                "--child",
                json.dumps([path, has_prepared, mode, harness.next_seed()]),
            ],
            capture_output=True,
            text=True,
            env={**os.environ, **environment, "FTRT_EMULATED_CAPABILITY": capability},
        )
        if child.returncode != 0:
            problems.append(f"{label}: {child.stderr}")
            continue
        answers = json.loads(child.stdout)
        if [answer["name"] for answer in answers] != [*SIZES]:
            problems.append(f"{label}: {answers}")
        captured = set()
        launched = re.findall(r"graph of \w+\n((?:launch .*\n)*)end\n", child.stderr)
        for answer in answers:
            # All of the graph's launches run, those of a call, in the order of the capture.
            mine = [re.findall(r"launch (\w+):", text) for text in launched[:LAUNCHES]]
            del launched[:LAUNCHES]
            captured |= {name for names in mine for name in names}
            if (
                answer["types"] != [KERNEL] * len(mine[0])
                or not mine[0]
                or mine != [mine[0]] * LAUNCHES
                or not set(mine[0]) <= kernels[chip]
            ):
                problems.append(f"{label}: {answer}, launched {mine}")
            if answer["capturing"] != [ACTIVE, NONE] or not answer["untouched"]:
                problems.append(
                    f"{label}: {answer}: expected that nothing runs until the graph is launched"
                )
            if (
                len(answer["errors"]) != 2 * LAUNCHES
                or not max(answer["errors"]) <= images.TOLERANCE
            ):
                problems.append(f"{label}: {answer}")
        if bool(captured & mapped) != (chip == "sm_90a"):
            problems.append(
                f"{label}: expected kernels with tensor maps for sm_90a alone, but got {captured}"
            )
        if not any(answer["workspace"] and len(answer["types"]) > 1 for answer in answers):
            problems.append(
                f"{label}: expected a graph of several kernels with a workspace, but got {answers}"
            )
        found.append(
            f"{label}: {sum(len(answer['types']) for answer in answers)} kernels, error up to "
            f"{max(max(answer['errors']) for answer in answers):.1e}"
        )
    tests.describe("calls", "; ".join(found))
    return problems


class Rules:
    """Streams and events of the driver, for what may be captured and what not."""

    def __init__(self, driver):
        self.driver = driver
        self.problems = []

    def expect(self, what, found, wanted):
        if found != wanted:
            self.problems.append(f"{what}: expected {wanted}, but got {found}")

    def stream(self, flags=NON_BLOCKING):
        stream = ctypes.c_void_p()
        check(self.driver.cuStreamCreate(ctypes.byref(stream), flags), "cuStreamCreate")
        return stream

    def event(self):
        event = ctypes.c_void_p()
        check(self.driver.cuEventCreate(ctypes.byref(event), 0), "cuEventCreate")
        return event

    def begin(self, mode=GLOBAL, flags=NON_BLOCKING):
        stream = self.stream(flags)
        self.expect("begin", self.driver.cuStreamBeginCapture_v2(stream, mode), 0)
        return stream

    def end(self, stream):
        """The code of the end of a capture, after which the stream is not being captured."""
        graph = ctypes.c_void_p(1)
        code = self.driver.cuStreamEndCapture(stream, ctypes.byref(graph))
        self.expect("graph of a capture that failed", bool(graph.value), code == 0)
        self.expect("status after the end", status_of(self.driver, stream), NONE)
        return code

    def breaks(self, what, call, wanted, mode=GLOBAL, flags=NON_BLOCKING):
        """`call(stream)` gives an error, and then the capture is none."""
        stream = self.begin(mode, flags)
        self.expect(what, call(stream), wanted)
        self.expect(f"{what}: status", status_of(self.driver, stream), INVALID)
        self.expect(
            f"{what}: copy",
            self.driver.cuMemsetD8Async(None, 0, ctypes.c_size_t(0), stream),
            INVALIDATED,
        )
        self.expect(f"{what}: end", self.end(stream), INVALIDATED)

    def allows(self, what, call, mode):
        stream = self.begin(mode)
        self.expect(what, call(stream), 0)
        self.expect(f"{what}: end", self.end(stream), 0)


def in_thread(call):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(call()))
    thread.start()
    thread.join()
    return answers[0]


def run_rules(path):
    """Breaks the rules in this process; writes what was not as expected as JSON."""
    driver = ctypes.CDLL(path)
    check(driver.cuInit(0), "cuInit")
    rules = Rules(driver)
    expect, memory, module = rules.expect, ctypes.c_void_p(), ctypes.c_void_p()
    size = ctypes.c_size_t(256)

    def allocate(*_):
        return driver.cuMemAlloc_v2(ctypes.byref(memory), size)

    def load(*_):
        return driver.cuModuleLoadData(ctypes.byref(module), PTX)

    # What waits, and what may.
    rules.breaks("synchronizing", driver.cuStreamSynchronize, UNSUPPORTED, RELAXED)
    rules.breaks("querying", driver.cuStreamQuery, UNSUPPORTED)
    rules.breaks("synchronizing all", lambda _: driver.cuCtxSynchronize(), UNSUPPORTED, RELAXED)
    rules.breaks("destroying", driver.cuStreamDestroy_v2, UNSUPPORTED)
    for what, call in (("allocating", allocate), ("loading", load)):
        for mode in (GLOBAL, THREAD_LOCAL):
            rules.breaks(what, call, UNSUPPORTED, mode)
        rules.breaks(f"{what} in a thread", lambda _: in_thread(call), UNSUPPORTED, GLOBAL)
        rules.allows(f"{what} in a thread", lambda _: in_thread(call), THREAD_LOCAL)
        rules.allows(what, call, RELAXED)
        # The mode of the thread that asks counts, too.
        mode = ctypes.c_int(RELAXED)
        expect(
            "mode",
            (driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)), mode.value),
            (0, GLOBAL),
        )
        rules.allows(f"{what} by a relaxed thread", call, GLOBAL)
        expect(
            "mode",
            (driver.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode)), mode.value),
            (0, RELAXED),
        )
    # The legacy default stream waits for streams that do not say otherwise.
    for legacy in (None, 1):
        fill = (ctypes.c_void_p(memory.value), 0, size, ctypes.c_void_p(legacy))
        rules.breaks(
            "legacy stream", lambda _: driver.cuMemsetD8Async(*fill), IMPLICIT, RELAXED, flags=0
        )
        rules.allows("legacy stream", lambda _: driver.cuMemsetD8Async(*fill), GLOBAL)
        expect(
            "capture of a legacy stream",
            driver.cuStreamBeginCapture_v2(ctypes.c_void_p(legacy), GLOBAL),
            UNSUPPORTED,
        )
    # A thread's own default stream is one like others.
    own = ctypes.c_void_p(2)
    expect("capture of a thread's stream", driver.cuStreamBeginCapture_v2(own, GLOBAL), 0)
    expect(
        "its status, and in another thread",
        (status_of(driver, own), in_thread(lambda: status_of(driver, own))),
        (ACTIVE, NONE),
    )
    expect("end", rules.end(own), 0)
    # Beginnings and ends.
    expect("mode 3", driver.cuStreamBeginCapture_v2(rules.stream(), 3), 1)
    stream = rules.begin()
    expect("begin twice", driver.cuStreamBeginCapture_v2(stream, GLOBAL), ILLEGAL_STATE)
    expect(
        "end in a thread",
        in_thread(lambda: driver.cuStreamEndCapture(stream, ctypes.byref(ctypes.c_void_p()))),
        WRONG_THREAD,
    )
    expect("end", rules.end(stream), 0)
    expect(
        "end again",
        driver.cuStreamEndCapture(stream, ctypes.byref(ctypes.c_void_p())),
        ILLEGAL_STATE,
    )
    # Forks and joins: filled with 1, then 2 on another stream, and copied.
    expect("memory", driver.cuMemAlloc_v2(ctypes.byref(memory), size), 0)
    target = ctypes.create_string_buffer(256)
    first, second, fork, join, outside = (
        rules.begin(),
        rules.stream(),
        rules.event(),
        rules.event(),
        rules.event(),
    )
    expect("fill", driver.cuMemsetD8Async(memory, 1, size, first), 0)
    expect(
        "fork",
        (driver.cuEventRecord(fork, first), driver.cuStreamWaitEvent(second, fork, 0)),
        (0, 0),
    )
    expect("status of what joined", status_of(driver, second), ACTIVE)
    expect("fill", driver.cuMemsetD8Async(memory, 2, ctypes.c_size_t(128), second), 0)
    expect("end of what joined", driver.cuEventRecord(join, second), 0)
    expect("join", driver.cuStreamWaitEvent(first, join, 0), 0)
    expect("copy", driver.cuMemcpyDtoHAsync(target, memory, size, first), 0)
    calls = []
    host = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: calls.append(target.raw))
    expect("host", driver.cuLaunchHostFunc(first, host, None), 0)
    status, number = ctypes.c_int(), ctypes.c_uint64()
    graph, nodes, count = ctypes.c_void_p(), ctypes.POINTER(ctypes.c_void_p)(), ctypes.c_size_t()
    expect(
        "info",
        driver.cuStreamGetCaptureInfo_v2(
            first,
            ctypes.byref(status),
            ctypes.byref(number),
            ctypes.byref(graph),
            ctypes.byref(nodes),
            ctypes.byref(count),
        ),
        0,
    )
    expect(
        "info",
        (status.value, number.value > 0, bool(graph.value), count.value),
        (ACTIVE, True, True, 1),
    )
    captured = end(driver, first)
    expect("nothing ran", (target.raw, calls), (bytes(256), []))
    expect("nodes", captured.types, [SET, SET, COPY, HOST])
    captured.launch(first)
    expect("launched", calls, [b"\2" * 128 + b"\1" * 128])
    # A graph in a graph.
    outer = rules.begin()
    expect("child", driver.cuGraphLaunch(captured.executable, outer), 0)
    expect("nothing ran", len(calls), 1)
    nested = end(driver, outer)
    expect("nodes", nested.types, [CHILD])
    captured.destroy()
    nested.launch(outer)
    expect("launched", len(calls), 2)
    # Streams that no one waits for, ends on the wrong stream, and events of elsewhere.
    first, second = rules.begin(), rules.stream()
    expect(
        "fork",
        (driver.cuEventRecord(fork, first), driver.cuStreamWaitEvent(second, fork, 0)),
        (0, 0),
    )
    expect("fill", driver.cuMemsetD8Async(memory, 2, size, second), 0)
    expect("unjoined", rules.end(first), UNJOINED)
    expect("status of what joined", status_of(driver, second), NONE)
    first, second = rules.begin(), rules.stream()
    expect(
        "fork",
        (driver.cuEventRecord(fork, first), driver.cuStreamWaitEvent(second, fork, 0)),
        (0, 0),
    )
    expect("end", driver.cuStreamEndCapture(second, ctypes.byref(ctypes.c_void_p())), UNMATCHED)
    expect("end", rules.end(first), INVALIDATED)
    expect(
        "event of a capture that has ended",
        driver.cuStreamWaitEvent(rules.stream(), fork, 0),
        ISOLATION,
    )
    expect("record", driver.cuEventRecord(outside, rules.stream()), 0)
    rules.breaks(
        "event of outside",
        lambda stream: driver.cuStreamWaitEvent(stream, outside, 0),
        ISOLATION,
        RELAXED,
    )
    rules.breaks("event that is asked", lambda _: driver.cuEventQuery(outside), UNSUPPORTED)
    rules.breaks(
        "event of the capture",
        lambda stream: driver.cuEventRecord(fork, stream) or driver.cuEventSynchronize(fork),
        CAPTURED_EVENT,
        RELAXED,
    )
    first, second = rules.begin(), rules.begin()
    expect("record", driver.cuEventRecord(fork, first), 0)
    expect("merge", driver.cuStreamWaitEvent(second, fork, 0), MERGE)
    expect("ends", (rules.end(first), rules.end(second)), (INVALIDATED, INVALIDATED))
    # Memory of a graph has one address, and is freed with it.
    stream, own = rules.begin(), ctypes.c_void_p()
    expect("allocate", driver.cuMemAllocAsync(ctypes.byref(own), size, stream), 0)
    expect("fill", driver.cuMemsetD8Async(own, 7, size, stream), 0)
    expect("copy", driver.cuMemcpyDtoHAsync(target, own, size, stream), 0)
    expect("free", driver.cuMemFreeAsync(own, stream), 0)
    expect("free what is not of the graph", driver.cuMemFreeAsync(memory, stream), 1)
    captured = end(driver, stream)
    expect("nodes", captured.types, [ALLOCATE, SET, COPY, FREE])
    captured.launch(stream)
    expect("launched", target.raw, b"\7" * 256)
    captured.destroy()
    # Kernels: their parameters are known by PTX, and are there when the graph is launched.
    expect("load", load(), 0)
    kernel = ctypes.c_void_p()
    expect("kernel", driver.cuModuleGetFunction(ctypes.byref(kernel), module, b"nobody"), 0)
    expect(
        "launch of a kernel that no library has",
        driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, rules.begin(), None, None),
        719,
    )
    print(json.dumps(rules.problems))


def check_rules(tests):
    path = os.path.join(tests.bin_dir, "..", "lib", "cuda-emulator", "libcuda.so.1")
    child = subprocess.run(
        [sys.executable, __file__, "--rules", path], capture_output=True, text=True
    )
    if child.returncode != 0:
        return [child.stderr]
    return json.loads(child.stdout)


def main():
    if "--rules" in sys.argv:
        return run_rules(sys.argv[-1])
    if "--child" in sys.argv:
        return run_child(sys.argv[sys.argv.index("--bin-dir") + 1], *json.loads(sys.argv[-1]))
    tests, _ = harness.start(__doc__)
    tests.add("rules", check_rules, tests)
    with open(images.SOURCE, encoding="utf-8") as file:
        source = re.sub("|".join(SMALLER), lambda found: SMALLER[found[0]], file.read())
    path = images.build(tests, "graphs", "--emulator", source=tests.write("graphs.mlir", source))
    runtime = library.open_runtime(tests.bin_dir)
    tests.add(
        "calls",
        check_calls,
        tests,
        path,
        images.kernels_of(path, runtime),
        kernels_with_maps(path, runtime),
    )
    return tests.finish()


if __name__ == "__main__":
    sys.exit(main())
