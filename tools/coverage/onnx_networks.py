#!/usr/bin/env python3
"""Runs small networks of old public kinds in the emulator, and compares with onnxruntime.

Each network is written by hand in the form of public files (test/Integration/onnx_cases/networks.py), and goes through
both of PyTorch's exporters, at old and new operator sets. Batch, height and width (or length) are unknown, and the
network must be right at three sizes; onnxruntime's optimizer is off. A form is the operator set, after "h" for a
network written by hand, or after "d" for the newer exporter (dynamo).

--write makes the page docs/onnx-networks.md. The command fails if a result is wrong, or FTuner fails without a
refusal.
"""

import argparse
import collections
import datetime
import io
import json
import logging
import sys
import textwrap
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "test" / "Integration"))
warnings.simplefilter("ignore")

import numpy as np
import onnx
import torch.nn.functional as F

import torch
from onnx_cases import networks, outcome
from torch import nn

PAGE = ROOT / "docs" / "onnx-networks.md"
FORMS = ("h7", "h11", "7", "11", "20", "d18", "d23")
SIZES = networks.SIZES
NOT_EXPORTED, NOT_RUN = "not exported", "not run by onnxruntime"

TEXT = """# Networks of old public kinds

{date}: `{command}`, onnx {onnx}, onnxruntime {ort}, torch {torch}.

Small networks are written by hand in the form of public files of 2018 to 2020 (at operator sets 7 and 11), and exported
by PyTorch's older exporter (at 7, 11 and 20) and its newer one (at 18 and 23). Batch, height and width, or batch and
length, are unknown. The command runs each network in the emulator at three sizes, and compares with onnxruntime, whose
optimizer is off. *Not exported* is a form that PyTorch cannot write, *not run by onnxruntime* one that onnxruntime
refuses, *not run* one that the command did not come to: it tried {ran} of {all}.

| network | {heads} |
|---|{rule}
{rows}

## What is not right, or did not run

{sentences}
"""


class ResNet(nn.Module):
    """Residual blocks of ResNet: batch norms, a stride, a projected shortcut."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8)
        self.inner, self.inner_norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.shortcut, self.down = nn.Conv2d(8, 16, 1, 2), nn.Conv2d(8, 16, 3, 2, 1)
        self.head = nn.Linear(16, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm(self.stem(x))), 3, 2, 1)
        x = F.relu(x + self.inner_norm(self.inner(x)))
        x = F.relu(self.shortcut(x) + self.down(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class Vgg(nn.Module):
    """Convolutions, pooling, and a classifier of a fixed number of places."""

    def __init__(self):
        super().__init__()
        self.convolution, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8 * 4 * 4, 6)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.convolution(x)), 2)
        x = F.adaptive_avg_pool2d(x, (1, 1)).expand(-1, -1, 4, 4)
        return self.head(x.reshape(x.shape[0], -1))


class Yolo(nn.Module):
    """A head of YOLO: channels split into anchors and boxes."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 3 * 7, 3, 2, 1)

    def forward(self, x):
        y = self.convolution(x)
        b, _, h, w = y.shape
        y = y.view(b, 3, 7, h, w).permute(0, 1, 3, 4, 2).contiguous().sigmoid()
        boxes = torch.cat((y[..., 0:2] * 2 - 0.5, (y[..., 2:4] * 2) ** 2, y[..., 4:]), -1)
        return boxes.view(b, -1, 7)


class UNet(nn.Module):
    """A level of U-Net: group norms, and three ways of doubling the size."""

    def __init__(self):
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(4, 8)
        self.deep, self.deep_norm = nn.Conv2d(8, 16, 3, padding=1), nn.GroupNorm(4, 16)
        self.up, self.head = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = F.silu(self.first_norm(self.first(x)))
        d = F.silu(self.deep_norm(self.deep(F.avg_pool2d(a, 2))))
        smooth = F.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        nearest = F.interpolate(d[:, :8], size=a.shape[2:], mode="nearest")
        return self.head(torch.cat([self.up(d) + smooth[:, :8] + nearest, a], 1))


class SuperResolution(nn.Module):
    """Two pixel shuffles after convolutions."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 12, 5, padding=2), nn.Conv2d(3, 12, 3, padding=1)

    def forward(self, x):
        return F.pixel_shuffle(self.second(F.pixel_shuffle(F.relu(self.first(x)), 2)), 2)


class Tagger(nn.Module):
    """Two bidirectional layers of LSTM over words."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8), nn.Linear(12, 4)
        self.layers = nn.LSTM(8, 6, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return F.log_softmax(self.head(self.layers(self.words(x))[0]), -1)


def image(b, h, w):
    return torch.randn(b, 3, h, w)


IMAGE, TEXT_AXES = {0: "batch", 2: "height", 3: "width"}, {0: "batch", 1: "length"}
#: The network, its input by batch, height and width, and the input's unknown sizes.
NETWORKS = {
    "ResNet": (ResNet, image, IMAGE),
    "VGG": (Vgg, image, IMAGE),
    "YOLO head": (Yolo, image, IMAGE),
    "U-Net": (UNet, lambda b, h, w: image(b, 2 * (h // 2), 2 * (w // 2)), IMAGE),
    "super-resolution": (SuperResolution, lambda b, h, w: image(b, h // 3, w // 3), IMAGE),
    "LSTM tagger": (Tagger, lambda b, h, w: torch.randint(0, 20, (b, h)), TEXT_AXES),
}


def input_of(name, form, size):
    if form.startswith("h"):
        return networks.input_of(name, int(form[1:]), size)
    return NETWORKS[name][1](*size).numpy()


def model_of(name, form):
    if form.startswith("h"):
        return networks.model_of(name, int(form[1:]))
    network, make, axes = NETWORKS[name]
    torch.manual_seed(0)
    module, file = network().eval(), io.BytesIO()
    options = {"input_names": ["x"], "opset_version": int(form.lstrip("d"))}
    if form.startswith("d"):
        sizes = {axis: torch.export.Dim.DYNAMIC for axis in axes}
        program = torch.onnx.export(
            module,
            (make(*SIZES[-1]),),
            dynamo=True,
            dynamic_shapes=(sizes,),
            verbose=False,
            **options,
        )
        return program.model_proto
    torch.onnx.export(
        module, (make(*SIZES[-1]),), file, dynamo=False, dynamic_axes={"x": axes}, **options
    )
    return onnx.load_from_string(file.getvalue())


def sentence(error):
    """Returns an error's type and words on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def run(name, form):
    """The outcome of a network in a form, its words, and the seconds that compiling takes."""
    import ftuner
    from ftuner.compiler import SourceText
    from ftuner.frontend.onnx import import_proto

    try:
        model = model_of(name, form)
    except Exception as error:
        return NOT_EXPORTED, textwrap.shorten(sentence(error), 160, placeholder=" ..."), 0.0
    inputs = [input_of(name, form, size) for size in SIZES]
    try:
        session = outcome.session_of(model)
        wanted = [session.run(None, {session.get_inputs()[0].name: x})[0] for x in inputs]
    except Exception as error:
        return NOT_RUN, textwrap.shorten(sentence(error), 160, placeholder=" ..."), 0.0
    started = time.monotonic()
    try:
        imported = import_proto(model)
        function = ftuner.compile(SourceText.of_model(imported), **outcome.OPTIONS).functions[
            imported.name
        ]
        seconds = time.monotonic() - started
        for x, want in zip(inputs, wanted):
            if words := outcome.difference(np.asarray(function(x)), want):
                return outcome.WRONG, f"at {x.shape}: {words}", seconds
    except ftuner.Error as error:
        return outcome.REFUSED, " ".join(str(error).split()), time.monotonic() - started
    except Exception as error:
        return outcome.OTHER, sentence(error), time.monotonic() - started
    return outcome.RIGHT, "", seconds


def write(results, command):
    import onnxruntime

    makers = {"h": "by hand", "d": "newer"}
    heads = [f"{makers.get(form[0], 'older')}, {form.lstrip('hd')}" for form in FORMS]
    rows = [[results.get((name, form), ["not run"])[0] for form in FORMS] for name in NETWORKS]
    sentences = [
        f"* {name}, {form}: {result[1]}" for (name, form), result in results.items() if result[1]
    ]
    text = TEXT.format(
        date=datetime.date.today(), command=command, ran=len(results), all=len(NETWORKS) * len(FORMS), onnx=onnx.__version__, ort=onnxruntime.__version__,
        torch=torch.__version__, heads=" | ".join(heads), rule="---|" * len(FORMS),
        rows="\n".join(f"| {name} | {' | '.join(row)} |" for name, row in zip(NETWORKS, rows)),
        sentences="\n".join(sentences) or "Nothing.",
    )  # fmt: skip
    PAGE.write_text(text)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", default=",".join(NETWORKS), metavar="A,B", help="only these")
    parser.add_argument(
        "--forms", default=",".join(FORMS), help="operator sets (default: %(default)s)"
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="appends a line of JSON for each run; those that it has are kept",
    )
    parser.add_argument("--write", action="store_true", help="writes docs/onnx-networks.md")
    arguments = parser.parse_args()
    names, forms = arguments.networks.split(","), arguments.forms.split(",")
    for option, words, known in (("networks", names, NETWORKS), ("forms", forms, FORMS)):
        if unknown := [word for word in words if word not in known]:
            parser.error(f"--{option}: expected {', '.join(known)}, but got {', '.join(unknown)}")
    logging.disable(logging.WARNING)
    outcome.hide_assembler()
    results, command = {}, " ".join(["tools/coverage/onnx_networks.py", *sys.argv[1:]])
    if arguments.log and Path(arguments.log).exists():
        for line in Path(arguments.log).read_text().splitlines():
            name, form, *result = json.loads(line)
            results[name, form] = result
    for form in forms:
        for name in names:
            if (name, form) in results:
                continue
            results[name, form] = result = run(name, form)
            print(f"{name}, {form}: {result[0]}, {result[2]:.1f} s {result[1]}", flush=True)
            if arguments.log:
                with open(arguments.log, "a") as log:
                    print(json.dumps([name, form, *result]), file=log)
            if arguments.write:
                write(results, command)
    if arguments.write:
        write(results, command)
    counts = collections.Counter(result[0] for result in results.values())
    print(", ".join(f"{count} {name}" for name, count in counts.items()))
    return bool(set(counts) - {outcome.RIGHT, outcome.REFUSED, NOT_EXPORTED, NOT_RUN})


if __name__ == "__main__":
    sys.exit(main())
