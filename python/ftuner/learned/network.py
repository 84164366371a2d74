"""The predictor (CDMPP, section 4.3 and appendix A; numbers of layers from its artifact).

statements × features + positions → Transformer encoder → flatten → linear → MLP = z_x     (one head for each number of
device figures → MLP = z_v                                                                  statements)
z_x ⊗ z_v → MLP → transformed label
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import torch
from torch import nn

COMBINATIONS = ("product", "sum", "concatenation")


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Sizes of the layers; the defaults are the paper's."""

    features: int = 164
    device_figures: int = 8
    # Width of statements' vectors within the encoder; one other than `features` adds a linear layer before it.
    width: int = 164
    # Layers of the encoder; 0: without an encoder.
    layers: int = 11
    heads: int = 4
    feed_forward: int = 2048
    dropout: float = 0.1
    # Widths of the layer after the flattened statements, of the MLP after it, and of the latent vector.
    input_width: int = 716
    embedding: tuple[int, ...] = (985, 985, 985)
    latent: int = 69
    device: tuple[int, ...] = (128, 128, 128)
    decoder: tuple[int, ...] = (930, 930, 930)
    combine: str = "product"

    def __post_init__(self) -> None:
        if self.combine not in COMBINATIONS:
            raise ValueError(f"expected one of {', '.join(COMBINATIONS)}, but got {self.combine!r}")
        if self.width % self.heads:
            raise ValueError(
                f"expected a width that {self.heads} heads divide, but got {self.width}"
            )


# Small enough for a search: about a hundredth of the arithmetic. Without dropout, which batch norm behind it takes for noise
# of the programs: with it corrections of some percent are not learned.
SMALL = Architecture(
    width=64, layers=2, feed_forward=128, dropout=0.0, input_width=128, embedding=(128, 128, 128), latent=32, device=(32, 32),
    decoder=(128, 128),
)  # fmt: skip


def _perceptron(width: int, hidden: Sequence[int], out: int) -> nn.Sequential:
    """Linear layers with batch norm and ReLU, and a last one without."""
    layers: list[nn.Module] = []
    for size in hidden:
        layers += [nn.Linear(width, size), nn.BatchNorm1d(size), nn.ReLU()]
        width = size
    return nn.Sequential(*layers, nn.Linear(width, out))


class Predictor(nn.Module):
    """Transformed labels of programs with any of these numbers of statements."""

    def __init__(self, architecture: Architecture, statements: Sequence[int]) -> None:
        super().__init__()
        self.architecture = a = architecture
        self.project = nn.Linear(a.features, a.width) if a.width != a.features else nn.Identity()
        self.encoder: nn.Module = nn.Identity()
        if a.layers:
            layer = nn.TransformerEncoderLayer(
                a.width, a.heads, a.feed_forward, a.dropout, batch_first=True
            )
            self.encoder = nn.TransformerEncoder(layer, a.layers, enable_nested_tensor=False)
        self.heads = nn.ModuleDict(
            {
                str(count): nn.Sequential(
                    nn.Flatten(),
                    nn.Linear(count * a.width, a.input_width),
                    _perceptron(a.input_width, a.embedding, a.latent),
                )
                for count in sorted(set(statements))
            }
        )
        self.device = _perceptron(a.device_figures, a.device, a.latent)
        self.decoder = _perceptron(
            a.latent * (2 if a.combine == "concatenation" else 1), a.decoder, 1
        )

    def program(self, features: torch.Tensor) -> torch.Tensor:
        """z_x of programs: features (with positions) batch × statements × features."""
        count = str(features.shape[1])
        if count not in self.heads:
            known = ", ".join(self.heads)
            raise ValueError(f"expected programs of {known} statements, but got {count}")
        encoded = self.encoder(self.project(features))
        result: torch.Tensor = self.heads[count](encoded)
        return result

    def combine(self, program: torch.Tensor, device: torch.Tensor) -> torch.Tensor:
        """z of z_x and devices' figures, batch × figures."""
        card: torch.Tensor = self.device(device)
        if self.architecture.combine == "product":
            return program * card
        if self.architecture.combine == "sum":
            return program + card
        return torch.cat([program, card], 1)

    def latent(self, features: torch.Tensor, device: torch.Tensor) -> torch.Tensor:
        """z of programs of one number of statements."""
        return self.combine(self.program(features), device)

    def forward(
        self, features: torch.Tensor, device: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Transformed labels, batch, and the latent vectors that they are of."""
        latent = self.latent(features, device)
        return self.decoder(latent)[:, 0], latent


def parameters_of(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
