"""Matrix products of every size, FTuner against its peers (peers/).

Products on tensor cores have parts of their own, which measure only graphs, and only cuBLAS and cuBLASLt
as peers, so that their time suffices for many sizes.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import torch

from .buffers import TYPES, Pool, reference, refill, relative_error, spoil
from .machine import Call
from .peers import all_peers
from .peers.base import Peer
from .peers.ftuner import FTuner
from .session import Session, within
from .timing import MODES, SAMPLE_MICROSECONDS, compare_captured
from .workloads import Workload

ROUNDS = 7

# Modes, peers, rounds and the length of a sample for products on tensor cores.
TENSOR_MODES = ("graph_warm", "graph_cold")
TENSOR_PEERS = ("ftuner", "cublas", "cublaslt")
TENSOR_ROUNDS = 5
TENSOR_MICROSECONDS = 250.0

# Peers may be this much less exact than FTuner must be: cuBLAS may round partial sums to f16.
# It still tells f32 from tf32 (3e-4).
PEER_FACTOR = 5


@dataclasses.dataclass(frozen=True)
class Sampling:
    """Modes, rounds and the length of a sample for a size."""

    modes: Sequence[str] = MODES
    rounds: int = ROUNDS
    microseconds: float = SAMPLE_MICROSECONDS


def measure(session: Session) -> bool:
    workloads = session.workloads
    if not workloads:
        session.write("note", text="the bundle has no such workload")
        return True
    peers, sampling = all_peers(session), Sampling()
    if "f32" not in session.part.groups:
        peers = [peer for peer in peers if peer.name in TENSOR_PEERS]
        sampling = Sampling(TENSOR_MODES, TENSOR_ROUNDS, TENSOR_MICROSECONDS)
    _ceilings(session)
    for number, workload in enumerate(workloads):
        allow_tf32(workload)
        pool = Pool(session.machine, [workload], session.seed)
        share = within(session, len(workloads) - number)
        ready = _prepare(session, pool, workload, peers, share.seconds / 2)
        share.restart()
        uncaptured: set[str] = set()
        wanted, done = session.grid(workload), []
        for size in wanted:
            if not share.allows() and done:
                break
            _size(session, pool, workload, size, ready, sampling, uncaptured)
            done.append(size)
        session.coverage(workload.name, wanted, done, "times")
    return True


def _prepare(
    session: Session, pool: Pool, workload: Workload, peers: list[Peer], seconds: float
) -> list[Peer]:
    """Compiles the peers for a workload and checks them; those that fail are left out.

    A peer that would begin after `seconds` is left out, too: the others come first.
    """
    size = workload.largest // 2
    buffers = pool.sets(workload, size)[0]
    ours = reference(workload, *buffers[:2])
    # Others take B as it lies.
    theirs = reference(dataclasses.replace(workload, packs=False), *buffers[:2])
    ready = []
    start = time.monotonic()
    for peer in peers:
        problem = None
        before = time.monotonic()
        try:
            if before - start > seconds:
                raise TimeoutError("no time was left to compile it")
            peer.prepare(workload, buffers, size)
            spoil(buffers[2])
            result = peer.bind(workload, size, buffers)()
            session.machine.synchronize()
            error = relative_error(
                result if isinstance(result, torch.Tensor) else buffers[2],
                ours if isinstance(peer, FTuner) else theirs,
            )
            if not error <= PEER_FACTOR * workload.tolerance:
                problem = f"relative error {error:.3g} above {PEER_FACTOR * workload.tolerance:g}"
        except Exception as error_:  # a peer's failure must not end the part
            error = None
            problem = f"{type(error_).__name__}: {error_}"[:2000]
        session.write(
            "peer",
            workload=workload.name,
            peer=peer.name,
            error=error,
            problem=problem,
            prepare_seconds=time.monotonic() - before,
        )
        if problem:
            print(
                f"{workload.name}: without {peer.name}: {problem.splitlines()[0][:160]}", flush=True
            )
        else:
            ready.append(peer)
    refill(buffers[2])
    return ready


def _size(
    session: Session,
    pool: Pool,
    workload: Workload,
    size: int,
    peers: list[Peer],
    sampling: Sampling,
    uncaptured: set[str],
) -> None:
    """uncaptured: peers that a graph did not take, which are not tried again."""
    buffers = pool.sets(workload, size)
    calls: dict[str, list[Call]] = {}
    problems: dict[str, str] = {}
    for peer in peers:
        try:
            bound = [peer.bind(workload, size, some) for some in buffers]
            bound[0]()
            session.machine.synchronize()
            calls[peer.name] = bound
        except Exception as error:
            problems[peer.name] = f"{type(error).__name__}: {error}"[:500]
    for mode in sampling.modes:
        summaries, errors = compare_captured(
            session.machine,
            calls,
            mode,
            session.thorough(sampling.rounds),
            uncaptured,
            sampling.microseconds,
        )
        for peer in peers:
            session.write(
                "time",
                workload=workload.name,
                size=size,
                extents=workload.extents(size),
                peer=peer.name,
                mode=mode,
                microseconds=summaries.get(peer.name),
                problem=problems.get(peer.name) or errors.get(peer.name),
                facts=peer.facts(workload, size),
                sets=len(buffers),
            )
    for _, _, result in buffers:
        refill(result)
    session.machine.tidy()


def _ceilings(session: Session) -> None:
    """What the device reaches at best: a large copy, and by type a large product of cuBLAS."""
    device, large = session.machine.device, not session.machine.rehearsal
    source = torch.randn((1 << 29) if large else (1 << 16), device=device)
    target = torch.empty_like(source)
    copy = min(session.machine.microseconds(lambda: target.copy_(source)) for _ in range(5))
    extent = 8192 if large else 128
    products = {}
    for workload in session.workloads:
        if workload.type in products or workload.type == "i8":
            continue
        allow_tf32(workload)
        a, b, c = (
            data[place : place + extent * extent].view(extent, extent).to(TYPES[workload.element])
            for data, place in ((source, 0), (source, extent * extent), (target, 0))
        )
        product = min(
            session.machine.microseconds(lambda: torch.matmul(a, b, out=c)) for _ in range(3)
        )
        products[workload.type] = 2 * extent**3 / product / 1e6
    session.write(
        "ceilings",
        copy_gbps=2 * 4 * source.numel() / copy / 1e3,
        product_tflops=products,
        product_extent=extent,
    )


def allow_tf32(workload: Workload) -> None:
    """What PyTorch and its compiler may do with f32; the other peers ask the workload."""
    torch.backends.cuda.matmul.allow_tf32 = workload.type == "tf32"
