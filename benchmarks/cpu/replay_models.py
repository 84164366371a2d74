#!/usr/bin/env python3
"""Whole models from their operators: predicted times replayed beside published end-to-end times.

DATA is the folder of published tables (docs/replay.md), which are not part of this repository. Three parts:

* `operators`: models of model_ops_f32 (NeuSight; PyTorch in f32, one stream, every operator a kernel of a library). Beside
  the measured forward pass stand the sum of the measured operators, and the replay of the predicted ones: products by the
  model of the vendor's library (ftuner.latency.vendor), softmax, layer norm and elementwise operators by that of memory-bound
  kernels (ftuner.latency.measurements.memory_rows). The constants of both were fitted to other rows of the same cards, but for that of
  operands that do not lie alike, which these models' rows gave: a column has the errors without it. Models whose measured
  operators do not add up to the forward pass within --consistent are listed apart.
* `encoder`: the twelve layers of BERT-base of bert_encoder (FasterTransformer's guide), from lists of the operators that
  implementations launch (encoder_layers.py), by the same models, and fused attention by one that is fitted to
  attention_encoder (fused_attention.py). The launch interval of the host is fitted to the smallest row of an implementation,
  framework, card and type, which is not judged. Rows of devices without a description (A10), and of sequences without their
  padding, are left out.
* `compiled`: BERT-base, BERT-large and GPT-2 at the sizes of end_to_end_v100 (the numbers of the FTuner paper), compiled by
  FTuner and replayed by the times that --cost-model predicts. The published times are of other kernels, measured; the
  difference is no error of a prediction.

--predictor FILE, of `ftuner learn train` on rows of the same libraries, with --dataset FILE, of `ftuner learn data
model_ops_f32.csv.gz`, adds its times of products; all else keeps those of `latency`. --write FILE writes
what is printed, with the date and the commit before it. Exits with 1 where a mean error is above --goal, unless --goal 0: of
the models of `operators` that are not apart, by each predictor without gaps (the first of --gaps), and of the rows of
`encoder` that are judged, for each card and type.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import sys
import types
import warnings

import encoder_layers
import fused_attention
import reports
import workloads
from predicted_operators import (
    Latency,
    Operator,
    error,
    kernels_of,
    launch_interval,
    mean,
    read_rows,
    replayed,
)

ROOT = pathlib.Path(workloads.ROOT).resolve()
sys.path.insert(0, str(ROOT / "python"))
os.environ.setdefault("FTUNER_HOME", str(pathlib.Path(workloads.BIN).parent))

import numpy as np

#: Cards of the tables, and the devices that describe them.
CARDS = {"v100": "v100-pcie", "p100": "p100-pcie", "a100": "a100-pcie"}
#: Cards of bert_encoder, whose A100 is an SXM card of 40 GB.
ENCODER_CARDS = {"a100": "a100", "t4": "t4"}
PRODUCTS = re.compile(r"(query|key|value|dense|_proj|fc\d|lm_head|classifier)$")
NORMS = re.compile(r"(LayerNorm|layer_norm|ln_\d|ln_f)$")
#: Operators that do nothing without training; their rows are only the host's time.
NOTHING = re.compile(r"drop$")
PARTS = ("operators", "encoder", "compiled")
#: Tasks of data sets that a trained predictor's times are taken of.
LEARNED = re.compile(r"(linear|bmm) ")
#: The implementation whose errors are also listed with the host's time ahead of the kernels.
AHEAD = "xla"
#: Above this share of the replay, issuing all kernels is what takes the time.
HOST_SHARE = 0.9
#: Microseconds of the host in measured operators: docs/latency-memory.md, "offset of the host".
OFFSETS = {"v100": 18.6, "p100": 20.8, "a100": 26.7}
#: Elementwise operators by the tensors that they move, where all lie alike.
IN_ORDER = {"add": 3, "relu": 2, "gelu": 2}
#: Bytes and bounds of columns of the table of softmax.
MIN_SOFTMAX, COLUMNS = 1e8, (1024, 1536, 2048, 4096)
#: The card of attention_encoder.
ATTENTION_CARD = "h100"


def is_streamed(shape, output, l2_bytes, size=4):
    """Returns true if an elementwise operator reads an operand from DRAM for each element of its output.

    One that repeats along a dimension is read again after the elements inside that, of it, of another operand and of the
    output, have passed; where these exceed what L2 holds it has been replaced.
    """
    padded = [1] * (len(output) - len(shape)) + [*shape]
    repeated = [axis for axis, extent in enumerate(output) if padded[axis] < extent]
    return not repeated or 3 * size * math.prod(output[repeated[-1] + 1 :]) > l2_bytes


def elementwise_of(name, output, inputs, l2_bytes):
    """Kind of an elementwise operator, a copy or a look-up.

    Operands that repeat, except for scalars, are read by single elements.
    """
    if name == "contiguous":
        # Permuted heads have four dimensions; results of products, with three, are contiguous.
        return "strided" if len(output) > 3 else "nothing"
    if [*output] not in inputs:  # Each row of a table is read and written, as elements are.
        return "relu"
    # A condition has one byte for each element.
    tensors = inputs[1:] if name == "where" else inputs
    if sum(is_streamed(shape, output, l2_bytes) for shape in tensors) > 1:
        return "add"
    return (
        "strided" if any(1 < math.prod(shape) < math.prod(output) for shape in inputs) else "relu"
    )


def operator_of(row, l2_bytes=math.inf):
    """The operator of a row of model_ops_f32, on a device whose L2 holds so many bytes."""
    name, output = row["op"], json.loads("[" + row["output_shape"].strip("()") + "]")
    inputs = json.loads(row["input_shapes"])
    times, measured = int(row["times"]), float(row["latency_us"])
    rows, cols = math.prod(output[:-1]), output[-1]

    shapes = ["x".join(map(str, shape)) for shape in (output, *inputs)]

    def make(kind, *extents):
        called = kind if kind in ("softmax", "layernorm") else name.rsplit(".", 1)[-1]
        if kind == "product":
            called = "bmm" if name in ("matmul", "bmm") else "linear"
        return Operator(
            name, kind, extents, times, measured, f"{called} {shapes[0]} of {'; '.join(shapes[1:])}"
        )

    if name == "addmm":
        (_, (m, k), (_, n)) = inputs
        return make("product", 1, m, n, k)
    if name in ("matmul", "bmm"):
        *batch, m, n = output
        return make("product", math.prod(batch), m, n, inputs[0][-1])
    if PRODUCTS.search(name):
        return make("product", 1, rows, cols, inputs[0][-1])
    if NOTHING.search(name):
        return make("nothing")
    if name == "softmax":
        return make("softmax", rows, cols)
    if NORMS.search(name):
        return make("layernorm", rows, cols)
    if name == "gelu":
        return make("gelu", rows, cols)
    return make(elementwise_of(name.rsplit(".", 1)[-1], output, inputs, l2_bytes), rows, cols)


def kind_of(operator):
    """For the table of errors by kind."""
    if operator.kind == "product":
        return "batched products" if operator.extents[0] > 1 else "linear"
    return (
        operator.kind
        if operator.kind in ("softmax", "layernorm", "strided", "nothing")
        else "elementwise"
    )


class Learned:
    """Times of products by a trained predictor, on the data set of model_ops_f32; of all else by `latency`.

    A row of the data set is told by its model and its task, "NAME OUTPUT of INPUT; INPUT on DEVICE".
    """

    name = "learned"

    def __init__(self, options):
        from ftuner.learned import kinds
        from ftuner.learned.dataset import Dataset

        data, trained = Dataset.load(options.dataset), kinds.load(options.predictor)
        data = data.select(
            np.array([bool(LEARNED.match(data.task_names[task])) for task in data.task])
        )
        self.known = {}
        for row, time in enumerate(trained.predict(data)):
            self.known[str(data.model[row]), data.task_names[data.task[row]]] = float(time)

    def predictor_for(self, model, latency):
        """The predictor of one model on the device of another predictor."""

        def times(operators):
            found = latency.times(operators)
            for i, operator in enumerate(operators):
                found[i] = self.known.get((model, f"{operator.key} on {latency.device}"), found[i])
            return found

        return types.SimpleNamespace(name=self.name, times=times)


def table_of_softmax(options, report):
    """Softmax of memory_ops_f32, long enough to compare with that of models, by columns."""
    latency = {card: Latency(device) for card, device in CARDS.items()}
    ratios = {}
    for row in read_rows(options.data / "memory_ops_f32.csv.gz"):
        rows, columns, card = int(row["rows"]), int(row["cols"]), row["device"]
        if row["op"] != "softmax" or card not in CARDS or 8 * rows * columns < MIN_SOFTMAX:
            continue
        took = float(row["latency_us"])
        time = latency[card].memory(Operator("softmax", "softmax", (rows, columns))) + OFFSETS[card]
        limit = next((limit for limit in COLUMNS if columns <= limit), None)
        if limit is not None:
            ratios.setdefault((card, limit), []).append(
                (time / took, 8e-3 * rows * columns / (took - OFFSETS[card]))
            )
    report.line(
        f"\nSoftmax of memory_ops_f32 from {MIN_SOFTMAX / 1e9:g} GB on: predicted with the offset of the host over "
        "measured, geometric mean; median of the GB/s measured without it"
    )
    report.table(
        ["card", "columns up to", "rows", "predicted over measured", "GB/s"],
        [
            [
                card,
                limit,
                len(pairs),
                error(math.exp(sum(math.log(ratio) for ratio, _ in pairs) / len(pairs)), 1),
                f"{np.median([speed for _, speed in pairs]):.0f}",
            ]
            for (card, limit), pairs in sorted(ratios.items())
        ],
    )


def operators_part(options, report):
    """Models of model_ops_f32; the mean error of each predictor."""
    models = {}
    for row in read_rows(options.data / "model_ops_f32.csv.gz"):
        models.setdefault(
            (row["device"], row["model"], int(row["batch"]), int(row["seq"])), []
        ).append(row)
    consistent, apart, by_kind, in_order = [], [], {}, []
    strided, softmax, bandwidths = [], [], {}
    names = []
    learned = Learned(options) if options.predictor else None
    for key, rows in models.items():
        end = next(float(row["latency_us"]) for row in rows if row["op"] == "end_to_end")
        latency = Latency(CARDS[key[0]])
        l2_bytes = latency.found.figures["l2_bytes"] * latency.found.constants["stream_l2_share"]
        operators = [operator_of(row, l2_bytes) for row in rows if row["op"] != "end_to_end"]
        measured = sum(operator.times * operator.measured_us for operator in operators)
        is_consistent = abs(measured / end - 1) <= options.consistent
        cells, errors = [], []
        for predictor in [latency, *([learned.predictor_for(key[1], latency)] if learned else [])]:
            times = predictor.times(operators)
            if predictor.name not in names:
                names.append(predictor.name)
            for gap in options.gaps:
                total = replayed(kernels_of(operators, times), gap)
                cells.append(error(total, end))
                errors.append(total / end - 1)
            for operator, time in zip(operators, times):
                total = by_kind.setdefault((key[0], kind_of(operator)), {}).setdefault(
                    predictor.name, [0.0, 0.0]
                )
                total[0] += operator.times * time
                total[1] += operator.times * operator.measured_us
        times = latency.times(operators)
        alike = latency.times(
            [
                dataclasses.replace(operator, kind="relu")
                if operator.kind == "strided"
                else operator
                for operator in operators
            ]
        )
        if is_consistent:
            in_order.append((key[0], replayed(kernels_of(operators, alike)) / end - 1))
        for operator, time, other in zip(operators, times, alike):
            took = operator.measured_us
            if operator.kind == "strided":
                strided.append(
                    (
                        is_consistent,
                        *(math.log((one + OFFSETS[key[0]]) / took) for one in (time, other)),
                    )
                )
            if operator.kind == "softmax":
                size = 8 * math.prod(operator.extents) / 1e9
                softmax.append(
                    [
                        *key[:3],
                        operator.extents[1],
                        f"{size:.2f}",
                        f"{took / 1000:.2f}",
                        error(time, took),
                    ]
                )
            if operator.kind in IN_ORDER and took >= 1000:
                moved = 4 * IN_ORDER[operator.kind] * math.prod(operator.extents) / 1e3
                bandwidths.setdefault(key[0], []).append((moved / took, moved / time))
        row = [*key, f"{end / 1000:,.1f}", error(measured, end), *cells]
        (consistent if is_consistent else apart).append((row, [measured / end - 1, *errors]))
    predicted = [f"{name}, gaps of {gap:g} µs" for name in names for gap in options.gaps]
    header = ["card", "model", "batch", "T", "measured ms", "sum of measured operators", *predicted]
    report.line(
        "\nPyTorch in f32 (NeuSight), models of model_ops_f32: over the measured forward pass"
    )
    report.table(header, [row for row, _ in consistent])
    means = [mean([errors[i] for _, errors in consistent]) for i in range(1 + len(predicted))]
    report.line(
        f"\nMean error of {len(consistent)} models: "
        + ", ".join(f"{name} {value}" for name, value in zip(header[5:], means))
    )
    report.table(
        ["mean error", "models", *header[5:], f"{names[0]}, all elements in their order"],
        [
            [
                card,
                len(rows),
                *(mean([errors[i] for errors in rows]) for i in range(len(header) - 5)),
                mean([value for one, value in in_order if card in (one, "all")]),
            ]
            for card in [*CARDS, "all"]
            for rows in [[errors for row, errors in consistent if card in (row[0], "all")]]
        ],
    )
    report.line(f"\nApart: measured operators are off by more than {options.consistent:.0%}")
    report.table(header, [row for row, _ in apart])
    report.line("\nPredicted over measured time of operators, all models of a card together")
    report.table(
        ["card", "operators", "share of measured time", *names],
        [
            [
                card,
                kind,
                f"{next(iter(totals.values()))[1] / sum(next(iter(t.values()))[1] for (c, _), t in by_kind.items() if c == card):.1%}",
                *(error(*totals[name]) if totals[name][0] else "0" for name in names),
            ]
            for (card, kind), totals in sorted(by_kind.items())
        ],
    )
    report.line(
        "\nOperators whose operands do not lie alike: mean |log(predicted + offset of the host over measured)| by single "
        "elements, whose constant was fitted to such rows, and as elements in their order"
    )
    report.table(
        ["models", "rows", "single elements", "in their order"],
        [
            [name, len(rows), *(mean([values[i] for values in rows]) for i in (1, 2))]
            for name, rows in (
                ("all", strided),
                ("not apart", [values for values in strided if values[0]]),
            )
        ],
    )
    report.line("\nElementwise operators in their order of at least 1 ms: GB/s")
    report.table(
        ["card", "operators", "measured", "predicted"],
        [
            [card, len(rows), *(f"{min(values):.0f} to {max(values):.0f}" for values in zip(*rows))]
            for card, rows in bandwidths.items()
        ],
    )
    report.line("\nSoftmax: predicted over measured")
    report.table(["card", "model", "batch", "columns", "GB", "measured ms", names[0]], softmax)
    table_of_softmax(options, report)
    if not consistent:  # There is no mean error.
        return []
    return [
        sum(abs(errors[1 + i * len(options.gaps)]) for _, errors in consistent) / len(consistent)
        for i in range(len(names))
    ]


def fitted_attention(options, report):
    """Fused attention; says how good it is."""
    from ftuner.describe import descriptions
    from ftuner.latency import vendor

    measured_on = vendor.device_of(descriptions.resolve(ATTENTION_CARD).text)
    attention, count, mean_error = fused_attention.fit(options.data, measured_on)
    report.line(
        f"\nFused attention: {attention.start:.0f} cycles for a block and {attention.score:.3f} for each score, fitted to "
        f"{count} rows of attention_encoder ({ATTENTION_CARD}, heads of {fused_attention.HEAD_DIM}), mean error {mean_error:.1%}"
    )
    ratios = fused_attention.spread(options.data)
    report.line(
        f"Of {len(ratios)} shapes of these the slowest framework takes {np.median(ratios):.2f} times as long as the fastest in "
        f"the median, {np.percentile(ratios, 90):.2f} in 9 of 10 at most, and {ratios.max():.2f} at most"
    )
    for kernel in ("flash_attention", "vllm_flash_attn", "trtllm"):
        checked, mean_error, ratio = fused_attention.check(
            attention,
            options.data,
            vendor.device_of(descriptions.resolve("a100-80gb").text),
            "a100",
            kernel,
        )
        report.line(
            f"Of {checked} rows of {kernel} of attention_serving (a100, causal), which it was not fitted to: {mean_error:.1%}, "
            f"predicted over measured {ratio:.2f}"
        )
    return attention


def encoder_cases(data):
    """Milliseconds of bert_encoder by card, type and implementation, and by batch and tokens.

    An implementation in several frameworks, each with its own host, counts once for each.
    """
    rows = [
        row
        for row in read_rows(data / "bert_encoder.csv")
        if row["device"] in ENCODER_CARDS
        and row["implementation"] in encoder_layers.IMPLEMENTATIONS
    ]
    frameworks = {}
    for row in rows:
        frameworks.setdefault(row["implementation"], set()).add(row["framework"])
    cases = {}
    for row in rows:
        name = row["implementation"]
        column = f"{name}, {row['framework']}" if len(frameworks[name]) > 1 else name
        times = cases.setdefault((row["device"], row["dtype"], name, column), {})
        times[int(row["batch"]), int(row["seq"])] = float(row["latency_ms"])
    return cases


def encoder_part(options, report):
    """BERT-base of bert_encoder; the mean error of each card and type."""
    attention = fitted_attention(options, report)
    cases = encoder_cases(options.data)
    gap, intervals, rows, errors, shares = options.gaps[0], [], {}, {}, {}
    for (card, dtype, name, column), measured in sorted(cases.items()):
        predictor = Latency(ENCODER_CARDS[card], dtype, attention)
        layers = {sizes: encoder_layers.layer_of(name, dtype, *sizes) for sizes in measured}
        kernels = {
            sizes: kernels_of(layer, predictor.times(layer), predictor.seconds(layer))
            * encoder_layers.LAYERS
            for sizes, layer in layers.items()
        }
        for sizes, layer in layers.items():
            times = predictor.times(layer)
            of_attention = sum(
                time for operator, time in zip(layer, times) if operator.kind == "attention"
            )
            if of_attention:
                shares.setdefault(sizes[1], []).append(of_attention / sum(times))
        smallest = min(measured, key=math.prod)
        interval = launch_interval(kernels[smallest], 1000 * measured[smallest], gap)
        kernels_only = {sizes: replayed(kernels[sizes], gap) / 1000 for sizes in measured}
        ahead = max(0.0, measured[smallest] - kernels_only[smallest])
        intervals.append(
            [
                card,
                dtype,
                column,
                len(layers[smallest]),
                len(kernels[smallest]) // encoder_layers.LAYERS,
                f"{measured[smallest]:.2f}",
                f"{interval:.1f}",
                f"{ahead:.2f}",
            ]
        )
        for sizes, time in measured.items():
            total = replayed(kernels[sizes], gap, interval) / 1000
            is_of_host = len(kernels[sizes]) * interval / 1000 > HOST_SHARE * total
            says = (
                "fitted"
                if sizes == smallest
                else f"{error(total, time)}{', host' if is_of_host else ''}"
            )
            rows.setdefault((card, dtype, *sizes), {})[column] = (
                f"{time:.2f}: {kernels_only[sizes]:.2f}, {total:.2f} ({says})"
            )
            if sizes == smallest:
                continue
            errors_by_column = errors.setdefault((card, dtype), {})
            for selection in ("all", *(() if is_of_host else ("kernels",))):
                errors_by_column.setdefault((column, selection), []).append(total / time - 1)
                errors_by_column.setdefault((f"{column}, host ahead", selection), []).append(
                    (kernels_only[sizes] + ahead) / time - 1
                )
    names = [
        *dict.fromkeys(
            column
            for name in encoder_layers.IMPLEMENTATIONS
            for (_, _, implementation, column) in sorted(cases)
            if implementation == name
        )
    ]
    report.line(
        "Predicted share of fused attention in the kernels of a layer, by tokens of a sequence: "
        + ", ".join(
            f"{tokens}: {min(values):.1%} to {max(values):.1%}"
            for tokens, values in sorted(shares.items())
        )
    )
    report.line(
        "\nHost: operators of a layer, kernels of it with those that sum slices, ms measured of one sequence of 32 tokens, "
        "the launch interval in µs at which the replay takes as long, and the ms ahead of the first kernel that would make "
        "it as long without an interval"
    )
    report.table(
        ["card", "type", "implementation", "operators", "kernels", "ms", "interval", "ahead"],
        intervals,
    )
    report.line(
        "\nBERT-base, twelve layers (bert_encoder): measured ms: predicted ms of the kernels alone, and with the host (its "
        f"error; host: issuing the kernels takes more than {HOST_SHARE:.0%} of that)"
    )
    report.table(
        ["card", "type", "batch", "T", *names],
        [
            [*key, *(by_column.get(name, "–") for name in names)]
            for key, by_column in sorted(rows.items())
        ],
    )
    ahead = f"{AHEAD}, host ahead"
    for selection, where in (
        ("all", "all rows but those that the host's interval was fitted to"),
        ("kernels", "of these, rows whose time is not the host's"),
    ):
        report.line(f"\nMean error: {where}")
        report.table(
            ["card", "type", *names, "all", ahead],
            [
                [
                    *key,
                    *(mean(by_column.get((name, selection), [])) for name in names),
                    mean(
                        [value for name in names for value in by_column.get((name, selection), [])]
                    ),
                    mean(by_column.get((ahead, selection), [])),
                ]
                for key, by_column in sorted(errors.items())
            ],
        )
    return [
        sum(map(abs, judged)) / len(judged)
        for by_column in errors.values()
        for judged in [[value for name in names for value in by_column.get((name, "all"), [])]]
    ]


def compiled_part(options, report):
    """The models of the paper's end-to-end figure, compiled by FTuner."""
    import full_models
    from ftuner.describe import prediction

    warnings.simplefilter("ignore")  # Warnings of torch.export about versions to come.
    published = {}
    for row in read_rows(options.data / "ftuner_paper" / "end_to_end_v100.csv"):
        published.setdefault((row["model"], int(row["batch"])), []).append(row)
    rows = []
    for (name, batch), cases in published.items():
        built = full_models.build(name.replace("-", "_"), options.layers)
        exported = full_models.export(built, batch, 128)
        lengths = [{"T": int(row["T"])} for row in cases]
        kept = {} if options.cost_model is None else {"cost_model": options.cost_model}
        found = prediction.predict(exported.text, lengths, device="v100", **kept)
        for row, one in zip(cases, found):
            rows.append(
                [
                    name,
                    batch,
                    row["T"],
                    one.kernels,
                    f"{one.sum / 1000:.2f}",
                    f"{one.latency / 1000:.2f}",
                    *(
                        f"{float(row[key]):.2f} ({one.latency / 1000 / float(row[key]):.2f})"
                        if row[key]
                        else "–"
                        for key in ("vendor_ms", "roller_ms", "haotuner_ms", "ftuner_ms")
                    ),
                ]
            )
    report.line(
        "\nModels of the FTuner paper on a V100, f32: ms predicted for FTuner's kernels here; the paper's measured ms, "
        "and predicted over these"
    )
    report.table(
        [
            "model",
            "batch",
            "T",
            "kernels",
            "sum",
            "replay",
            "paper: vendor",
            "Roller",
            "HAOTuner",
            "FTuner",
        ],
        rows,
    )
    return []


def microseconds(text):
    value = float(text)
    if not 0 <= value <= 1e6:
        raise argparse.ArgumentTypeError(
            f"expected microseconds from 0 to 1000000, but got '{text}'"
        )
    return value


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=pathlib.Path, required=True, metavar="DATA")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument(
        "--gaps",
        nargs="+",
        type=microseconds,
        default=[0.0, 5.0],
        metavar="MICROSECONDS",
        help="behind each operator (default: 0 and 5)",
    )
    parser.add_argument(
        "--consistent",
        type=float,
        default=0.12,
        metavar="SHARE",
        help="how far measured operators may be off the forward pass (default: 0.12)",
    )
    parser.add_argument(
        "--goal", type=float, default=0.12, metavar="SHARE", help="of mean errors (default: 0.12)"
    )
    parser.add_argument("--predictor", metavar="FILE")
    parser.add_argument("--dataset", metavar="FILE")
    parser.add_argument("--cost-model", help="of the compiled models")
    parser.add_argument("--layers", type=int, help="of the compiled models (default: as published)")
    parser.add_argument("--write", type=pathlib.Path, metavar="FILE")
    options = parser.parse_args()
    if bool(options.predictor) != bool(options.dataset):
        parser.error("expected both of --predictor and --dataset, or none")
    if options.write and not options.write.resolve().parent.is_dir():
        parser.error(f"cannot write '{options.write}': expected a folder that is there")
    report = reports.Report()
    report.line(reports.stamp())
    parts = {"operators": operators_part, "encoder": encoder_part, "compiled": compiled_part}
    errors = [value for part in options.parts for value in parts[part](options, report)]
    if options.write:
        options.write.write_text(report.text, encoding="utf-8")
    return 1 if options.goal and any(value > options.goal for value in errors) else 0


if __name__ == "__main__":
    sys.exit(main())
