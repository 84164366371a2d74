#!/usr/bin/env python3
"""Compiles models of convolutions, at their published widths and depths, and predicts what of them uKernels carry.

ResNet-50, MobileNetV2, ConvNeXt-T, a diffusion U-Net's blocks, a segmentation head with pyramid pooling, the decoder of
an audio codec (1-D, transposed) and Whisper's front end, with random weights, exported from PyTorch with a dynamic
batch; with --sizes dynamic height and width are dynamic, too. For each model and device a row: wall time and CPU time
of the compiler, operators that became uKernels, fallback kernels, kernels, bytes of PTX, and, of known sizes, what is
predicted at the greatest batch: microseconds, and the share of FLOPs and of time that uKernels have.

--check also compiles a small image for the emulator, and compares with PyTorch in f64. --write FILE writes what is
printed, with the date and the commit before it. Needs what tools/setup.sh installs.
"""

import argparse
import copy
import pathlib
import sys
import warnings

from torch.nn import functional

import reports
import torch
import whole_models
from torch import nn

BATCHES = (1, 16)


def convolution(inputs, outputs, size=3, stride=1, groups=1, activation=nn.ReLU):
    layers = [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.body = nn.Sequential(
            convolution(inputs, width, 1),
            convolution(width, width, 3, stride),
            convolution(width, 4 * width, 1, activation=None),
        )
        is_same = stride == 1 and inputs == 4 * width
        self.shortcut = (
            nn.Identity() if is_same else convolution(inputs, 4 * width, 1, stride, activation=None)
        )

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    def __init__(self):
        super().__init__()
        layers, inputs = [convolution(3, 64, 7, 2), nn.MaxPool2d(3, 2, 1)], 64
        for number, count in enumerate((3, 4, 6, 3)):
            width = 64 << number
            for place in range(count):
                layers.append(Bottleneck(inputs, width, 2 if number and not place else 1))
                inputs = 4 * width
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(2048, 1000)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, factor):
        super().__init__()
        wide = inputs * factor
        self.is_residual = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            *([convolution(inputs, wide, 1, activation=nn.ReLU6)] if factor > 1 else []),
            convolution(wide, wide, 3, stride, groups=wide, activation=nn.ReLU6),
            convolution(wide, outputs, 1, activation=None),
        )

    def forward(self, x):
        return x + self.body(x) if self.is_residual else self.body(x)


class MobileNetV2(nn.Module):
    STAGES = (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)
    )  # fmt: skip

    def __init__(self):
        super().__init__()
        layers, inputs = [convolution(3, 32, 3, 2, activation=nn.ReLU6)], 32
        for factor, outputs, count, stride in self.STAGES:
            for place in range(count):
                layers.append(Inverted(inputs, outputs, 1 if place else stride, factor))
                inputs = outputs
        layers.append(convolution(inputs, 1280, 1, activation=nn.ReLU6))
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(1280, 1000)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.narrow(functional.gelu(self.wide(y))) * self.scale
        return x + y.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (96, 192, 384, 768)
        layers = [nn.Conv2d(3, widths[0], 4, 4)]
        for number, count in enumerate((3, 3, 9, 3)):
            if number:
                layers.append(nn.Conv2d(widths[number - 1], widths[number], 2, 2))
            layers += [ConvNeXtBlock(widths[number]) for _ in range(count)]
        self.layers, self.head = nn.Sequential(*layers), nn.Linear(widths[-1], 1000)

    def forward(self, x):
        return self.head(self.layers(x).mean((2, 3)))


class ResidualBlock(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Sequential(
            nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1)
        )
        self.second = nn.Sequential(
            nn.GroupNorm(32, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1)
        )
        self.shortcut = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.second(self.first(x)) + self.shortcut(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.begin = nn.Conv2d(4, 320, 3, padding=1)
        self.down = nn.ModuleList([ResidualBlock(320, 320), ResidualBlock(320, 640)])
        self.halve = nn.ModuleList([nn.Conv2d(320, 320, 3, 2, 1), nn.Conv2d(640, 640, 3, 2, 1)])
        self.middle = ResidualBlock(640, 640)
        self.grow = nn.ModuleList(
            [nn.ConvTranspose2d(640, 640, 4, 2, 1), nn.ConvTranspose2d(640, 320, 4, 2, 1)]
        )
        self.up = nn.ModuleList([ResidualBlock(1280, 640), ResidualBlock(640, 320)])
        self.end = nn.Conv2d(320, 4, 3, padding=1)

    def forward(self, x):
        x, kept = self.begin(x), []
        for block, halve in zip(self.down, self.halve):
            x = block(x)
            kept.append(x)
            x = halve(x)
        x = self.middle(x)
        for grow, block in zip(self.grow, self.up):
            x = block(torch.cat([grow(x), kept.pop()], 1))
        return self.end(x)


class Segmentation(nn.Module):
    """Atrous pyramid pooling over features of 512 channels."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(convolution(3, 64, 7, 4), convolution(64, 512, 3, 2))
        self.branches = nn.ModuleList(
            [
                nn.Conv2d(512, 128, 3, padding=rate, dilation=rate)
                if rate > 1
                else nn.Conv2d(512, 128, 1)
                for rate in (1, 6, 12, 18)
            ]
        )
        self.pooled, self.join = nn.Conv2d(512, 128, 1), convolution(640, 128, 1)
        self.head = nn.Conv2d(128, 21, 1)

    def forward(self, x):
        x = self.features(x)
        parts = [torch.relu(branch(x)) for branch in self.branches]
        whole = torch.relu(self.pooled(x.mean((2, 3), keepdim=True)))
        parts.append(whole.expand_as(parts[0]))
        return self.head(self.join(torch.cat(parts, 1)))


class Codec(nn.Module):
    """The decoder of an audio codec: a transposed convolution, and dilated residuals, for each rate."""

    def __init__(self):
        super().__init__()
        layers, width = [nn.Conv1d(128, 512, 7, padding=3)], 512
        for rate in (8, 5, 4, 2):
            layers += [
                nn.ELU(),
                nn.ConvTranspose1d(
                    width, width // 2, 2 * rate, rate, rate // 2 + rate % 2, rate % 2
                ),
                nn.Conv1d(width // 2, width // 2, 3, padding=1),
            ]
            width //= 2
        self.layers = nn.Sequential(*layers, nn.ELU(), nn.Conv1d(width, 1, 7, padding=3))

    def forward(self, x):
        return self.layers(x)


class WhisperFrontEnd(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(80, 512, 3, padding=1), nn.Conv1d(512, 512, 3, 2, 1)

    def forward(self, x):
        return functional.gelu(self.second(functional.gelu(self.first(x)))).transpose(1, 2)


#: Each with the shape of an image without its batch, and that of the check.
MODELS = {
    "resnet50": (ResNet50, (3, 224, 224), (3, 64, 64)),
    "mobilenet_v2": (MobileNetV2, (3, 224, 224), (3, 64, 64)),
    "convnext_t": (ConvNeXt, (3, 224, 224), (3, 32, 32)),
    "unet": (UNet, (4, 64, 64), (4, 8, 8)),
    "segmentation": (Segmentation, (3, 512, 512), (3, 48, 48)),
    "codec": (Codec, (128, 100), (128, 6)),
    "whisper": (WhisperFrontEnd, (80, 3000), (80, 40)),
}
HEADER = (
    "model", "device", "wall s", "CPU s", "uKernels with sums", "fallback kernels", "kernels", "PTX MB",
    f"predicted µs at batch {BATCHES[-1]}", "FLOPs by uKernels", "time by uKernels", "error",
)  # fmt: skip


def export(model, shape, sizes):
    import ftuner.torch as ft

    x = torch.randn(2, *shape)
    shapes = {0: torch.export.Dim("batch", min=BATCHES[0], max=BATCHES[-1])}
    if sizes == "dynamic":
        shapes = {place: torch.export.Dim.AUTO for place in (0, *range(2, x.dim()))}
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        return ft.export(model, (x,), dynamic_shapes=(shapes,))


def error_of(model, shape, device, options):
    """The relative error of an image in the emulator, over all elements."""
    exported = export(model, shape, options.sizes)
    function, *_ = whole_models.compile_measured(exported, device, options, emulate=True)
    x = torch.randn(1, *shape)
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(x.double())
        return float((function(x) - exact).norm() / exact.norm())


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=[*MODELS], choices=[*MODELS])
    parser.add_argument("--devices", nargs="+", default=["h100"])
    parser.add_argument("--sizes", default="known", choices=("known", "dynamic"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    options.compiler = {}
    report = reports.Report()
    report.line(f"{reports.stamp()}; sizes of images {options.sizes}")
    report.table(HEADER)
    failures = 0
    for name in options.models:
        make, shape, small = MODELS[name]
        torch.manual_seed(1)
        model = make().eval()
        exported = export(model, shape, options.sizes)
        for device in options.devices:

            def row():
                cells = whole_models.whole(exported, device, options)
                checked = f"{error_of(model, small, device, options):.1e}" if options.check else "-"
                return [*cells, checked]

            failures += not whole_models.attempt(report, [name, device], row)
    if options.write:
        options.write.write_text(report.text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
