"""What FTuner is measured against. Each peer is a file; `all_peers` knows them."""

from __future__ import annotations

from ..session import Session
from .base import Peer


def all_peers(session: Session) -> list[Peer]:
    """FTuner first, then its peers. Those that need a GPU are left out of rehearsals."""
    from .compiled import Compiled
    from .cublas import Cublas
    from .ftuner import FTuner

    peers: list[Peer] = [FTuner(session), Cublas()]
    if not session.machine.rehearsal:
        from .cublaslt import CublasLt
        from .triton_matmul import TritonMatmul

        peers += [CublasLt(session), TritonMatmul(session)]
    peers += [
        Compiled("compile", {}),
        Compiled("compile_max", {"mode": "max-autotune-no-cudagraphs"}),
    ]
    return [peer for peer in peers if peer.name not in session.skipped_peers]
