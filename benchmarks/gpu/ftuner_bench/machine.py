"""The device that a part runs on, and how time is taken there.

`Cuda` is a GPU. `Rehearsal` stands in for it on a machine without one: PyTorch on
the CPU and FTuner's emulator, so that the scripts themselves can be tried. Its
times are those of a CPU, say nothing, and are marked as such wherever they go.
"""

from __future__ import annotations

import gc
import importlib.metadata
import time
from collections.abc import Callable, Sequence

import torch

Call = Callable[[], object]


class Cuda:
    """One GPU. All work goes to one stream, which captures graphs as well."""

    rehearsal = False
    device = "cuda"

    def __init__(self) -> None:
        torch.cuda.init()
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False
        torch.set_float32_matmul_precision("highest")
        self.torch_stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.torch_stream)
        self.stream = self.torch_stream.cuda_stream
        properties = torch.cuda.get_device_properties(0)
        self.cache_bytes = int(properties.L2_cache_size)
        self._start = torch.cuda.Event(enable_timing=True)
        self._end = torch.cuda.Event(enable_timing=True)
        # A collection in the midst of a capture could free a graph, which is not
        # allowed there, and would disturb every timing.
        gc.disable()

    def describe(self) -> dict[str, object]:
        properties = torch.cuda.get_device_properties(0)
        return {
            "name": properties.name,
            "rehearsal": False,
            "compute_capability": f"{properties.major}.{properties.minor}",
            "sm_count": properties.multi_processor_count,
            "l2_bytes": self.cache_bytes,
            "memory_bytes": properties.total_memory,
            **_versions(),
        }

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def tidy(self) -> None:
        """Gives back the memory of graphs that are gone."""
        torch.cuda.empty_cache()

    def capture(self, calls: Sequence[Call], passes: int) -> Call:
        """A graph of `passes` times all calls; what is returned replays it."""
        graph = torch.cuda.CUDAGraph()
        self.synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            for _ in range(passes):
                for call in calls:
                    call()
        finally:
            graph.capture_end()
        return graph.replay

    def microseconds(self, work: Call) -> float:
        """Time of `work` on the device, which is kept busy until it begins.

        The first run of it, not timed, hides the time that the host takes to
        enqueue the second.
        """
        work()
        self._start.record()
        work()
        self._end.record()
        self._end.synchronize()
        return self._start.elapsed_time(self._end) * 1e3


class Rehearsal:
    """A CPU in the place of a GPU: no streams, no graphs, no figures that count."""

    rehearsal = True
    device = "cpu"
    cache_bytes = 1 << 16

    def __init__(self, stream: int) -> None:
        self.stream = stream

    def describe(self) -> dict[str, object]:
        return {
            "name": "rehearsal on a CPU",
            "rehearsal": True,
            "compute_capability": "0.0",
            "sm_count": 0,
            "l2_bytes": self.cache_bytes,
            "memory_bytes": 0,
            **_versions(),
        }

    def synchronize(self) -> None:
        pass

    def tidy(self) -> None:
        pass

    def capture(self, calls: Sequence[Call], passes: int) -> Call:
        def replay() -> None:
            for _ in range(passes):
                for call in calls:
                    call()

        return replay

    def microseconds(self, work: Call) -> float:
        start = time.perf_counter()
        work()
        return (time.perf_counter() - start) * 1e6


Machine = Cuda | Rehearsal


def _versions() -> dict[str, str | None]:
    """Of what is measured against."""
    result: dict[str, str | None] = {"torch": torch.__version__, "cuda": torch.version.cuda}
    for name in ("triton", "transformers", "nvidia-cublas"):
        try:
            result[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            result[name] = None
    return result
