"""Checkpoints of training, from which an interrupted one goes on."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import torch
from torch import nn

from ..errors import Error
from ..host import outputs
from .dataset import Dataset


def fingerprint(data: Sequence[Dataset | None], *settings: Any) -> str:
    """Hash of programs, times and settings: what a training depends on. Each place of `data` is a role; None: without programs."""
    sizes = [0 if part is None else len(part) for part in data]
    digest = hashlib.sha256(repr((sizes, settings)).encode())
    for part in data:
        if part is None:
            continue
        for trees in part.trees:
            for tree in trees:
                digest.update(
                    tree.features.tobytes() + tree.ordering.tobytes() + repr(tree.blocks).encode()
                )
        for values in (part.microseconds, part.device, part.device_vectors, part.predicted):
            digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


class Checkpoint:
    """A file with weights, the optimizer's state and random numbers' after some epoch.

    `keep` writes it at most every `seconds`. `restore` raises `Error` for a file of another training.
    """

    def __init__(self, path: str, fingerprint: str, seconds: float = 20.0) -> None:
        self.path, self.fingerprint, self.seconds = path, fingerprint, seconds
        self._written = time.monotonic()

    def keep(
        self, epochs: int, predictor: nn.Module, states: Sequence[Any], rng: np.random.Generator
    ) -> None:
        if time.monotonic() - self._written < self.seconds:
            return
        content = io.BytesIO()
        state = {
            "fingerprint": self.fingerprint,
            "epochs": epochs,
            "predictor": predictor.state_dict(),
            "states": [one.state_dict() for one in states],
            "torch": torch.get_rng_state(),
            "numpy": json.dumps(rng.bit_generator.state),
        }
        torch.save(state, content)
        outputs.write_one(self.path, content.getvalue())
        self._written = time.monotonic()

    def restore(self, predictor: nn.Module, states: Sequence[Any], rng: np.random.Generator) -> int:
        """Epochs that are done: 0 without a file."""
        if not os.path.exists(self.path):
            return 0
        try:
            state = torch.load(self.path, weights_only=True)
            known = state["fingerprint"]
        except (
            OSError,
            RuntimeError,
            ValueError,
            KeyError,
            TypeError,
            EOFError,
            pickle.UnpicklingError,
        ) as error:
            raise Error(
                f"'{self.path}' is not a checkpoint of a training: remove it to start again"
            ) from error
        if known != self.fingerprint:
            raise Error(
                f"'{self.path}' is of a training with other rows or options: give those, or remove it to start again"
            )
        predictor.load_state_dict(state["predictor"])
        for one, saved in zip(states, state["states"]):
            one.load_state_dict(saved)
        torch.set_rng_state(state["torch"])
        rng.bit_generator.state = json.loads(state["numpy"])
        return int(state["epochs"])

    def remove(self) -> None:
        if os.path.exists(self.path):
            os.remove(self.path)
