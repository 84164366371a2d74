"""Gradients: the graph of the backward pass goes through the same compiler."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import ftuner.torch as ft

from checks import compile_model, relative_error


def mlp() -> nn.Module:
    return nn.Sequential(
        nn.Linear(24, 40), nn.GELU(), nn.Linear(40, 32), nn.ReLU(), nn.Linear(32, 8, bias=False)
    )


def gradients(model: nn.Module, call: object, x: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    x = x.clone().requires_grad_()
    loss = (call(x) ** 2).mean()
    loss.backward()
    return [loss.detach(), x.grad, *(parameter.grad.clone() for parameter in model.parameters())]


def test_gradients_of_an_mlp() -> None:
    model = mlp()
    exact = copy.deepcopy(model).double()
    compiled = compile_model(model)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for batch in (6, 9, 17):
            x = torch.randn(batch, 5, 24)
            results = gradients(model, compiled, x)
            eager = gradients(model, model, x)
            expected = gradients(exact, exact, x.double())
            for result, other, reference in zip(results, eager, expected):
                limit = max(2 * relative_error(other, reference), 3e-7)
                assert relative_error(result, reference) <= limit
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
