"""Gradients: the graph of the backward pass goes through the same compiler."""

from __future__ import annotations

import copy

import pytest

import ftuner.torch as ft
import torch
from checks import check_gradients, compile_model
from torch import nn


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 8, bias=False)
    )


def test_gradients_of_an_mlp() -> None:
    model = mlp()
    compiled = compile_model(model)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for batch in (6, 9, 17):
            check_gradients(model, compiled, torch.randn(batch, 5, 24, requires_grad=True))
    report = ft.report()
    # 3 products forwards; 2 for each layer backwards.
    assert report.graphs == 2
    assert report.taken == report.products == 9
    assert report.calls == 27
    assert any("threshold_backward" in name for name in report.functions)
    assert any("gelu_backward" in name for name in report.functions)


def test_steps_of_an_optimizer() -> None:
    """A compiled model learns as the eager one does."""
    model = mlp()
    eager = copy.deepcopy(model)
    compiled = compile_model(model)
    x, y = torch.randn(32, 24), torch.randn(32, 8)
    losses: list[list[float]] = []
    for trained, call in ((model, compiled), (eager, eager)):
        optimizer = torch.optim.SGD(trained.parameters(), lr=0.05)
        history = []
        for size in (32, 20, 32, 27, 32):
            optimizer.zero_grad()
            # A copy, or PyTorch guards how the slice lies in its base.
            loss = ((call(x[:size].clone()) - y[:size]) ** 2).mean()
            loss.backward()
            optimizer.step()
            history.append(float(loss.detach()))
        losses.append(history)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0][-1] < losses[0][0]
    assert ft.report().graphs == 2
