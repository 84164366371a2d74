#!/usr/bin/env python3
"""The experiments of CDMPP (EuroSys 2024) in miniature, on published measurements (docs/learned-data.md, docs/learned.md).

    benchmarks/cpu/cdmpp_experiments.py leave-device-out --data FOLDER --state FOLDER --write FILE.md

Subcommands: unseen-shapes, leave-device-out, sampling (random against k-means), error-and-cmd, transforms, losses, positions,
positions-tuned (of tuned kernels), leave-model-out, tuned (ranking of tuned kernels, and of a card left out), schedule-search,
latents (a figure of latent vectors), sizes (of networks).

Data sets are made once in the folder --state, and each part of an experiment is kept there in a line of JSON: an interrupted
run goes on. --scale takes fewer or more programs than the tables. Times are of published measurements; FTuner's own kernels
were not measured for this.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import reports
import torch
from ftuner.latency import fit
from ftuner.latency.measurements import readers
from ftuner.latency.measurements.rows import Devices
from ftuner.latency.model import model
from ftuner.learned import boosted, network, sampling, sources, training, transfer
from ftuner.learned.dataset import Dataset
from ftuner.study import charts

PRODUCTS = ("gemm_latency_train.csv.gz", "gemm_latency_h100.csv.gz")
TUNED = ("gemm_configs_rtx3090.csv.gz", "conv_configs.csv.gz")
TOKENS = ("gemm_f16_tokens.csv.gz",)
CARDS = ("t4", "a100-pcie", "p100-pcie", "v100-pcie", "p4", "h100")
FORMS = ("times", "correction")


class State:
    """Results of an experiment's parts, in a file of lines of JSON: each with its inputs and its commit."""

    def __init__(self, study: Study, name: str) -> None:
        self.study = study
        self.path = study.state / f"{name}.jsonl"
        self.known: dict[str, Any] = {}
        self.commits: dict[str, str] = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                entry = json.loads(line)
                text = json.dumps(entry["part"])
                self.known[text], self.commits[text] = (
                    entry["found"],
                    entry.get("commit", "unknown"),
                )

    def part(self, run: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        """Returns the result of `run`, from the file if it is there."""
        key = [run.__name__, self.study.scale, self.study.settings(), *arguments]
        text = json.dumps(key)
        if text not in self.known:
            start = time.process_time()
            found = run(*arguments)
            found["cpu_s"] = round(time.process_time() - start, 2)
            self.known[text], self.commits[text] = found, self.study.commit
            with self.path.open("a") as file:
                file.write(
                    json.dumps({"part": key, "found": found, "commit": self.study.commit}) + "\n"
                )
            print(f"{text}: {json.dumps(found)}", file=sys.stderr, flush=True)
        self.study.commits.add(self.commits[text])
        return self.known[text]


@dataclasses.dataclass
class Products:
    """f32 products of vendors' libraries: trees, and the launches that the latency model predicts."""

    data: Dataset
    rows: Any

    def of_card(self, card: str) -> Any:
        return self.data.device == self.data.device_names.index(card)


# How networks are tuned for another card or model.
TUNING: dict[str, Any] = dict(epochs=20, rate=1e-3, decay=1e-5, batch=256, target_batch=128)


class Study:
    """Data and settings of all experiments."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.folder = Path(options.data)
        self.state = Path(options.state)
        self.state.mkdir(parents=True, exist_ok=True)
        self.scale = options.scale
        self.epochs = options.epochs
        self.commit = reports.commit()
        # Those at which the parts of the table were run.
        self.commits: set[str] = set()

    def settings(self) -> dict[str, Any]:
        """Settings that parts depend on, beside their arguments and the scale."""
        return {"epochs": self.epochs, "tuning": TUNING}

    def dataset(self, name: str, files: tuple[str, ...]) -> Dataset:
        path = self.state / f"{name}.dataset"
        if not path.exists():
            command = [
                sys.executable,
                "-m",
                "ftuner",
                "learn",
                "data",
                *(str(self.folder / file) for file in files),
            ]
            subprocess.run([*command, "-o", str(path)], check=True, stdout=subprocess.DEVNULL)
        return Dataset.load(str(path))

    @functools.cached_property
    def products(self) -> Products:
        data = self.dataset("products", PRODUCTS)
        mapping = {
            f"{file}:{name}": device
            for file in PRODUCTS
            for name, device in sources.CARDS.get(sources.stem(file), {}).items()
        }
        rows = readers.read([self.folder / file for file in PRODUCTS], Devices(mapping))
        rows = rows[rows.is_fit]
        if not np.array_equal(rows.microseconds, data.microseconds):
            sys.exit("expected the rows of the data set; remove it")
        # Numbers of statements that a hundredth of programs or fewer have: no sample would teach their heads.
        sizes = np.array([len(trees[0].ordering) for trees in data.trees])
        kept = np.isin(
            sizes,
            [
                size
                for size, count in zip(*np.unique(sizes, return_counts=True))
                if count > len(data) / 100
            ],
        )
        return Products(data.select(kept), rows[kept])

    def count(self, number: int) -> int:
        return max(20, int(number * self.scale))

    def pick(self, mask: Any, number: int, seed: int = 0) -> Any:
        """Indices of so many rows (times the scale) of a mask."""
        rows = np.flatnonzero(mask)
        rng = np.random.default_rng(seed)
        return np.sort(rng.choice(rows, min(self.count(number), len(rows)), replace=False))

    def options(self, **changes: Any) -> training.Options:
        usual = dict(
            epochs=self.epochs,
            batch=training.SMALL_BATCH,
            rate=training.SMALL_RATE,
            decay=training.SMALL_DECAY,
        )
        return training.Options(**{**usual, **changes})


def errors(predicted: Any, data: Dataset) -> dict[str, Any]:
    return dict(training.errors(predicted, data.microseconds))


def with_prediction(data: Dataset, predicted: Any) -> Dataset:
    return dataclasses.replace(data, predicted=predicted)


def own_constants(products: Products, indices: Any, start: Any = None) -> Any:
    """Constants of the latency model for the one card that the rows are of, fitted to them."""
    return fit.fit_own(
        products.rows[indices], *((start.constants, start.offset) if start else (model().start(),))
    )


def predicted_of(products: Products, indices: Any, fitted: Any) -> Any:
    return products.rows[indices].predict(fitted.constants, fitted.offset)


# Unseen shapes -----------------------------------------------------------------------------------------------------------


def unseen_shapes(study: Study, options: argparse.Namespace) -> list[str]:
    """All six cards together, trained on folds 1 to 4 and judged by fold 0."""
    state = State(study, "unseen-shapes")
    products = study.products
    data = products.data
    known = {card: study.pick(products.of_card(card) & (data.fold != 0), 1500) for card in CARDS}
    unseen = {card: study.pick(products.of_card(card) & (data.fold == 0), 1000) for card in CARDS}

    @functools.cache
    def base() -> tuple[Dataset, Dataset]:
        """Both, with predictions by constants that were fitted to the former for each card."""
        own = {card: own_constants(products, rows) for card, rows in known.items()}
        return tuple(
            with_prediction(
                data.select(np.concatenate([*rows_by_card.values()])),
                np.concatenate(
                    [predicted_of(products, rows, own[card]) for card, rows in rows_by_card.items()]
                ),
            )
            for rows_by_card in (known, unseen)
        )  # type: ignore[return-value]

    def unseen_of(kind: str, form: str, seed: int) -> dict[str, Any]:
        learned, judged = base()
        if kind == "latency":
            times = judged.predicted
        else:
            times = trained_on(study, learned, kind, form, seed).predict(judged)
        found = {
            card: errors(times[judged.device == index], judged.select(judged.device == index))
            for index, card in enumerate(data.device_names)
        }
        return {"all": errors(times, judged), "cards": found}

    rows = []
    kinds = [
        ("latency", "times"),
        *((kind, form) for form in ("correction", "times") for kind in KINDS),
    ]
    for kind, form in kinds:
        seeds = range(1 if kind in ("latency", "boosted-trees") else options.repeats)
        found = [state.part(unseen_of, kind, form, seed) for seed in seeds]
        cells = [
            percent(statistics.mean(one["cards"][card]["mean"] for one in found)) for card in CARDS
        ]
        every = {
            name: statistics.mean(one["all"][name] for one in found)
            for name in ("mean", "within_10", "within_20", "rank")
        }
        rows.append(
            [kind, "" if kind == "latency" else form, *cells, percent(every["mean"]), percent(every["within_10"]),
             percent(every["within_20"]), f"{every['rank']:.4f}", f"{statistics.mean(one['cpu_s'] for one in found):.0f}"]
        )  # fmt: skip
    return [
        f"f32 products of cuBLAS, mean error of unseen shapes (fold 0), {study.count(1500)} programs of each card to learn from "
        f"(folds 1 to 4), {study.count(1000)} to judge by; {options.repeats} seeds of networks, {study.epochs} epochs. `latency` has "
        "constants that were fitted to the same programs to learn from.",
        "",
        *reports.table(
            ["predictor", "learns", *CARDS, "all", "within 10 %", "within 20 %", "rank", "CPU s"],
            rows,
        ),
    ]


KINDS = ("cdmpp", "no-structure", "boosted-trees")


def trained_on(study: Study, data: Dataset, kind: str, form: str, seed: int) -> Any:
    if kind == "boosted-trees":
        return boosted.train(data, corrects=form == "correction", seed=seed)
    options = study.options(corrects=form == "correction", structure=kind == "cdmpp", seed=seed)
    return training.train(data, network.SMALL, options)


# A card left out ---------------------------------------------------------------------------------------------------------


class LeftOut:
    """One card that predictors have not seen, beside the others that they were trained on."""

    def __init__(self, study: Study, card: str) -> None:
        self.study, self.card = study, card
        products = self.products = study.products
        data = products.data
        others = [other for other in CARDS if other != card]
        self.known = {other: study.pick(products.of_card(other), 500) for other in others}
        self.pool = study.pick(products.of_card(card) & (data.fold != 0), 600)
        self.unseen = study.pick(products.of_card(card) & (data.fold == 0), 600)

    @functools.cached_property
    def fitted(self) -> Any:
        """Constants of the other cards, for one that no row is of."""
        return fit.fit_global(
            self.products.rows[np.concatenate([*self.known.values()])], model().start()
        )

    @functools.cached_property
    def source(self) -> Dataset:
        own = [own_constants(self.products, rows, self.fitted) for rows in self.known.values()]
        return with_prediction(
            self.products.data.select(np.concatenate([*self.known.values()])),
            np.concatenate(
                [
                    predicted_of(self.products, rows, one)
                    for rows, one in zip(self.known.values(), own)
                ]
            ),
        )

    def target(self, indices: Any, constants: Any) -> Dataset:
        return with_prediction(
            self.products.data.select(indices), predicted_of(self.products, indices, constants)
        )

    @functools.cache
    def trained(self, kind: str, form: str, seed: int) -> Any:
        return trained_on(self.study, self.source, kind, form, seed)

    @functools.cache
    def sample(self, count: int, way: str, seed: int) -> Any:
        """Indices of sampled tasks, and the radius."""
        if not count:
            return self.pool[:0], float("nan")
        pool = self.products.data.select(self.pool)
        rows = (
            sampling.standard_features(pool)
            if way == "features"
            else self.trained("cdmpp", "times", 0).latents(pool)
        )
        choose = sampling.random_tasks if way == "random" else sampling.sample_tasks
        found = choose(rows, list(pool.task), count, seed)
        return self.pool[np.isin(pool.task, found.tasks)], found.radius

    def refitted(self, indices: Any) -> Any:
        return own_constants(self.products, indices, self.fitted) if len(indices) else self.fitted

    def run(
        self, kind: str, form: str, count: int, way: str, alpha: float, seed: int
    ) -> dict[str, Any]:
        sampled, radius = self.sample(count, way, seed)
        constants = self.refitted(sampled)
        judged = self.target(self.unseen, constants)
        if kind == "latency":
            return errors(judged.predicted, judged)
        pool = self.target(self.pool, constants)
        labelled = self.target(sampled, constants) if count else None
        before = self.trained(kind, form, seed % 2)
        if kind == "boosted-trees":
            return errors(
                (
                    transfer.tune(before, self.source, labelled, seed) if labelled else before
                ).predict(judged),
                judged,
            )
        tuned = before
        if count or alpha:
            tuning = training.Tuning(**TUNING, alpha=alpha, seed=seed)
            tuned = training.finetune(
                before, self.source, pool if alpha else None, labelled, tuning
            )
        found = errors(tuned.predict(judged), judged)
        found["radius"] = radius
        found["cmd"] = float(
            training.discrepancy(
                torch.from_numpy(tuned.latents(self.source)),
                torch.from_numpy(tuned.latents(judged)),
            )
        )
        return found


def _left_out(study: Study) -> Callable[..., dict[str, Any]]:
    known: dict[str, LeftOut] = {}

    def left_out(card: str, *arguments: Any) -> dict[str, Any]:
        if card not in known:
            known.clear()  # Cards come one after the other; each has its own predictors.
            known[card] = LeftOut(study, card)
        return known[card].run(*arguments)

    return left_out


TASKS = (0, 10, 20, 50, 100)


def leave_device_out(study: Study, options: argparse.Namespace) -> list[str]:
    """Errors of a card that was left out, by the number of its tasks that were measured."""
    state = State(study, "leave-device-out")
    run = _left_out(study)
    # With CMD only where there are tasks: what it does without is told by `sampling`.
    ways = {
        ("latency", "refitted"): 0.0, ("cdmpp", "correction"): 0.0, ("cdmpp", "correction, CMD"): 1.0,
        ("boosted-trees", "correction"): 0.0, ("cdmpp", "times"): 0.0, ("cdmpp", "times, CMD"): 1.0, ("boosted-trees", "times"): 0.0,
    }  # fmt: skip
    found: dict[tuple[str, str, int], list[list[float]]] = {}
    for card in options.cards:
        for (kind, form), alpha in ways.items():
            for count in TASKS[alpha > 0 :]:
                seeds = range(options.repeats if count else 1)
                learns = form.split(",")[0]
                errors_by_seed = [
                    state.part(run, card, kind, learns, count, "features", alpha, seed)["mean"]
                    for seed in seeds
                ]
                found.setdefault((kind, form, count), []).append(errors_by_seed)
    rows = []
    for (kind, form, count), cards in found.items():
        means = [statistics.mean(one) for one in cards]
        rows.append([kind, form, count, *map(percent, means), percent(statistics.mean(means))])
    text = [
        f"f32 products of cuBLAS, each card left out: {study.count(500)} programs of each of the other five to learn from, so many tasks "
        f"(one program each) of the card itself, chosen by k-means of features from {study.count(600)}; mean error of up to "
        f"{study.count(600)} other shapes of it (fold 0). {options.repeats} samples where there are tasks. `latency` has constants of the "
        "other cards, refitted to the same tasks; corrections are of its predictions with these constants. Networks are tuned for "
        f"{TUNING['epochs']} epochs, boosted trees as `ftuner learn finetune` does it.",
        "",
        *reports.table(["predictor", "learns", "tasks", *options.cards, "mean"], rows),
    ]
    if options.figure:
        series = [
            charts.Series(
                f"{kind}, {form}",
                [
                    100 * statistics.mean(statistics.mean(x) for x in found[kind, form, n])
                    if (kind, form, n) in found
                    else None
                    for n in TASKS
                ],
                number,
            )
            for number, (kind, form) in enumerate(ways)
            # Times of networks are off by so much that no other line would be seen.
            if (kind, form.split(",")[0]) != ("cdmpp", "times")
        ]
        write_figure(
            options.figure,
            "Mean error of a card left out",
            "tasks measured",
            "mean error (%)",
            list(TASKS),
            series,
        )
    return text


def sampling_experiment(study: Study, options: argparse.Namespace) -> list[str]:
    """CMD and 50 tasks by k-means, against tasks at random, and no fine-tuning."""
    state = State(study, "sampling")
    run = _left_out(study)
    ways = {
        "no fine-tuning": (0, "k-means", 0.0), "CMD, no task": (0, "k-means", 1.0), "50 random, CMD": (50, "random", 1.0),
        "50 k-means, CMD": (50, "k-means", 1.0), "50 k-means of features, CMD": (50, "features", 1.0), "50 k-means": (50, "k-means", 0.0),
    }  # fmt: skip
    text = []
    for form in options.forms:
        cells: dict[str, list[list[float]]] = {way: [] for way in ways}
        for card in CARDS:
            for way, (count, choice, alpha) in ways.items():
                seeds = range(options.repeats if count or alpha else min(2, options.repeats))
                errors_by_seed = [
                    state.part(run, card, "cdmpp", form, count, choice, alpha, seed)
                    for seed in seeds
                ]
                cells[way].append([one["mean"] for one in errors_by_seed])
        best, random, none = (
            cells[way] for way in ("50 k-means, CMD", "50 random, CMD", "no fine-tuning")
        )
        ahead = [
            statistics.mean(a) < min(statistics.mean(b), statistics.mean(c))
            for a, b, c in zip(best, random, none)
        ]
        pairs = [sum(x < y for x, y in zip(a, b)) for a, b in zip(best, random)]
        rows = [
            [
                way,
                *(percent(statistics.mean(one)) for one in errors_by_seed),
                percent(statistics.mean(statistics.mean(one) for one in errors_by_seed)),
            ]
            for way, errors_by_seed in cells.items()
        ]
        text += [
            f"**{form}**: mean error of the card left out ({study.count(500)} programs of each of the other cards, {TUNING['epochs']} epochs of "
            f"tuning), {options.repeats} repeats. CMD with 50 tasks of k-means is ahead of random tasks "
            f"and of no fine-tuning on {sum(ahead)} of {len(CARDS)} cards ({', '.join(c for c, a in zip(CARDS, ahead) if a) or 'none'}); of "
            f"{options.repeats} pairs with random tasks it wins {', '.join(map(str, pairs))}.",
            "",
            *reports.table(["way", *CARDS, "mean"], rows),
            "",
        ]
    return text


def error_and_cmd(study: Study, options: argparse.Namespace) -> list[str]:
    """Error against the discrepancy of latent vectors, of each part of `sampling` that has run."""
    state = State(study, "sampling")
    points = []
    for key, found in state.known.items():
        _, scale, settings, *arguments = json.loads(key)
        if scale == study.scale and settings == study.settings() and "cmd" in found:
            card, _, form, count, way, alpha, seed = arguments
            study.commits.add(state.commits[key])
            points.append((form, card, count, way, alpha, seed, found["cmd"], found["mean"]))
    if not points:
        sys.exit("expected parts of `sampling`: run it first")
    rows = []
    for form in FORMS:
        for label, mask in {
            "all": lambda p: True, "no fine-tuning": lambda p: not p[2] and not p[4], "50 tasks": lambda p: p[2] == 50,
        }.items():  # fmt: skip
            chosen = [p for p in points if p[0] == form and mask(p)]
            if len(chosen) > 2:
                rank = training.rank_correlation(
                    np.array([p[6] for p in chosen]), np.array([p[7] for p in chosen])
                )
                rows.append([form, label, len(chosen), f"{rank:.2f}" if rank is not None else "-"])
    if options.figure:
        body = []
        names = [card for card in CARDS if any(p[1] == card for p in points)]
        for number, card in enumerate(names):
            chosen = sorted((p[6], 100 * p[7]) for p in points if p[1] == card and p[0] == "times")
            body.append((card, chosen, number))
        write_scatter(options.figure, body)
    return [
        "Rank correlation of the error of a card left out with the discrepancy (CMD) of latent vectors of the other cards' programs and "
        "its own, over the parts of `sampling`.",
        "",
        *reports.table(["learns", "parts", "number", "rank correlation"], rows),
    ]


def latents(study: Study, options: argparse.Namespace) -> list[str]:
    """Latent vectors of all cards' programs in two dimensions (t-SNE), with a card left out, before and after tuning with CMD."""
    state = State(study, "latents")
    left_out = LeftOut(study, LATENTS_OF)
    names = [*left_out.known, LATENTS_OF]

    def embedded(form: str, seed: int) -> dict[str, Any]:
        from sklearn.manifold import TSNE

        before = left_out.trained("cdmpp", form, seed)
        judged = left_out.target(left_out.unseen, left_out.refitted(left_out.pool[:0]))
        sampled, _ = left_out.sample(50, "features", seed)
        constants = left_out.refitted(sampled)
        tuned = training.finetune(
            before,
            left_out.source,
            left_out.target(left_out.pool, constants),
            left_out.target(sampled, constants),
            training.Tuning(**TUNING, seed=seed),
        )
        found: dict[str, Any] = {
            "cards": [
                *np.repeat(
                    [*range(len(left_out.known))], [len(rows) for rows in left_out.known.values()]
                ).tolist()
            ]
        }
        found["cards"] += [len(left_out.known)] * len(judged)
        for name, predictor in (("before", before), ("after", tuned)):
            z = [predictor.latents(part) for part in (left_out.source, judged)]
            rows = np.concatenate(z)
            rows = (rows - z[0].mean(0)) / np.maximum(z[0].std(0), 1e-6)
            found[name] = {
                "cmd": float(training.discrepancy(*map(torch.from_numpy, z))),
                "mean": errors(predictor.predict(judged), judged)["mean"],
                "places": np.round(
                    TSNE(random_state=seed, perplexity=30).fit_transform(rows), 2
                ).tolist(),
            }
        return found

    found = state.part(embedded, "times", 0)
    if options.figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 4.2), layout="constrained")
        cards = np.array(found["cards"])
        for axes, (when, title) in zip(
            figure.subplots(1, 2),
            (("before", "not tuned"), ("after", "tuned with CMD and 50 tasks")),
        ):
            places = np.array(found[when]["places"])
            for number, name in enumerate(names):
                own = places[cards == number]
                is_left_out = name == LATENTS_OF
                axes.scatter(
                    *own.T,
                    s=8 if is_left_out else 4,
                    color="black" if is_left_out else f"C{number}",
                    label=name,
                    linewidths=0,
                )
            axes.set(title=f"{title}: CMD {found[when]['cmd']:.2f}", xticks=[], yticks=[])
        figure.legend(
            *axes.get_legend_handles_labels(),
            loc="outside lower center",
            ncols=len(names),
            frameon=False,
            markerscale=3,
        )
        figure.savefig(options.figure)
    rows = [
        [when, f"{found[when]['cmd']:.3f}", percent(found[when]["mean"])]
        for when in ("before", "after")
    ]
    return [
        f"Latent vectors z of programs of the five other cards and of the {LATENTS_OF}, which was left out, with times; in the figure by t-SNE. CMD "
        f"between the others' and its own, and the mean error of its times, before and after tuning with CMD and 50 tasks.",
        "",
        *reports.table(["", "CMD", "mean error"], rows),
    ]


LATENTS_OF = "v100-pcie"


# Transforms, losses, positions -------------------------------------------------------------------------------------------


def _variants(
    study: Study,
    options: argparse.Namespace,
    name: str,
    variants: dict[str, dict[str, Any]],
    is_tuned: bool = False,
) -> list[str]:
    """Each variant, trained on one card's shapes (or tuned configurations) and judged by others of the card."""
    state = State(study, "variants")
    cards = CONVOLUTION if is_tuned else VARIANT_CARDS
    first = next(iter(variants))

    def variant_of(card: str, seed: int, changes: dict[str, Any]) -> dict[str, Any]:
        changes = dict(changes)
        # Microseconds of the unit of labels.
        unit = changes.pop("unit", 1.0)
        data = study.dataset("tuned", TUNED) if is_tuned else study.products.data
        on_card = data.device == data.device_names.index(card)
        learned = data.select(study.pick(on_card & (data.fold != 0), 800, seed))
        judged = data.select(study.pick(on_card & (data.fold == 0), 800, seed))
        labels = dataclasses.replace(learned, microseconds=learned.microseconds / unit)
        trained = training.train(
            labels, network.SMALL, study.options(seed=seed, batch=64, **changes)
        )
        return errors(trained.predict(judged) * unit, judged)

    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for seed in range(options.repeats):
        for card in cards:
            for label, changes in variants.items():
                cells.setdefault((card, label), []).append(
                    state.part(variant_of, card, seed, changes)
                )

    def mean(card: str, label: str, figure: str) -> float:
        # Predictions that are all equal have no rank.
        return statistics.mean(one[figure] or 0.0 for one in cells[card, label])

    rows = []
    for label in variants:
        errors_of = [[one["mean"] for one in cells[card, label]] for card in cards]
        wins = [
            ""
            if label == first
            else f"{sum(a['mean'] < b['mean'] for a, b in zip(cells[card, first], cells[card, label]))}"
            for card in cards
        ]
        others = [
            f"{mean(card, label, 'rank'):.3f}"
            if is_tuned
            else f"{mean(card, label, 'rmse') / 1e3:.3g}"
            for card in cards
        ]
        rows.append(
            [
                label,
                *(
                    f"{percent(statistics.mean(one))} ± {100 * deviation(one):.1f}"
                    for one in errors_of
                ),
                *wins,
                *others,
            ]
        )
    ahead = [
        card for card in cards
        if all(mean(card, first, "mean") < mean(card, label, "mean") for label in variants if label != first)
    ]  # fmt: skip
    programs = (
        "configurations of one convolution on one card" if is_tuned else "f32 products of one card"
    )
    other = "rank correlation" if is_tuned else "RMSE in ms"
    return [
        f"{name}: {programs}, {study.count(800)} programs to learn from and {study.count(800)} of other "
        f"{'configurations' if is_tuned else 'shapes'} to judge by, times, {study.epochs} epochs of batches of 64; {options.repeats} "
        "repeats in pairs (programs and weights of a repeat are the same for all). Mean error ± deviation, in how many repeats "
        f"`{first}` is ahead, {other}. `{first}` is ahead of all others on {len(ahead)} of {len(cards)} cards ({', '.join(ahead) or 'none'}).",
        "",
        *reports.table(
            [
                "",
                *cards,
                *(f"ahead, {card}" for card in cards),
                *(f"{other.split(' in')[0]}, {card}" for card in cards),
            ],
            rows,
        ),
    ]


VARIANT_CARDS = ("t4", "a100-pcie", "p100-pcie")
POSITIONS: dict[str, dict[str, Any]] = {
    "positions": {"transform": "box-cox"}, "none": {"positions": False}, "no structure": {"structure": False}
}  # fmt: skip


def transforms(study: Study, options: argparse.Namespace) -> list[str]:
    variants: dict[str, dict[str, Any]] = {
        kind: {"transform": kind} for kind in ("box-cox", "yeo-johnson", "quantile", "none")
    }
    # Both power transforms are alike for labels much greater than 1.
    variants["yeo-johnson of ms"] = {"transform": "yeo-johnson", "unit": 1e3}
    return _variants(study, options, "Transforms of labels", variants)


def losses(study: Study, options: argparse.Namespace) -> list[str]:
    kinds = ("both", "squared", "relative", "squared-relative")
    variants = {
        kind: {"transform": "box-cox"} if kind == "both" else {"loss": kind} for kind in kinds
    }
    return _variants(study, options, "Losses", variants)


def positions(study: Study, options: argparse.Namespace) -> list[str]:
    return _variants(study, options, "Positions of statements", POSITIONS)


def positions_tuned(study: Study, options: argparse.Namespace) -> list[str]:
    return _variants(study, options, "Positions of statements", POSITIONS, is_tuned=True)


def sizes(study: Study, options: argparse.Namespace) -> list[str]:
    """The paper's network beside the small one, on the same programs of one card."""
    state = State(study, "sizes")
    data = study.products.data
    on_card = study.products.of_card("t4")
    learned = data.select(study.pick(on_card & (data.fold != 0), 800))
    judged = data.select(study.pick(on_card & (data.fold == 0), 800))
    networks = {"small": network.SMALL, "paper": network.Architecture()}

    def size_of(size: str, rate: float) -> dict[str, Any]:
        trained = training.train(learned, networks[size], study.options(batch=64, rate=rate))
        numbers = network.parameters_of(trained.predictor)
        return {
            **errors(trained.predict(judged), judged),
            "numbers": numbers,
            "trained": errors(trained.predict(learned), learned)["mean"],
        }

    rows = []
    for size, rate in (
        ("small", training.SMALL_RATE),
        ("paper", training.SMALL_RATE),
        ("paper", 1e-4),
        ("paper", 1.68e-5),
    ):
        found = state.part(size_of, size, rate)
        rows.append(
            [
                size,
                found["numbers"],
                rate,
                percent(found["trained"]),
                percent(found["mean"]),
                f"{found['rank']:.4f}",
                f"{found['cpu_s']:.0f}",
            ]
        )
    return [
        f"f32 products on the T4: {len(learned)} programs to learn from, {len(judged)} of other shapes to judge by, times, {study.epochs} epochs of "
        "batches of 64, one seed.",
        "",
        *reports.table(
            [
                "network",
                "numbers",
                "rate",
                "mean error, learned",
                "mean error, unseen",
                "rank",
                "CPU s",
            ],
            rows,
        ),
    ]


# Models left out ---------------------------------------------------------------------------------------------------------


def leave_model_out(study: Study, options: argparse.Namespace) -> list[str]:
    """f16 products of language models, each left out, with and without CMD."""
    state = State(study, "leave-model-out")
    data = study.dataset("tokens", TOKENS)
    cards = sorted(set(np.array(data.device_names)[np.unique(data.device)]))
    names = sorted(set(data.model.tolist()))

    def model_out(name: str, form: str, kind: str, alpha: float, seed: int) -> dict[str, Any]:
        of_model = data.model == name
        learned = data.select(study.pick(~of_model, 2000, seed))
        judged = data.select(study.pick(of_model, 800, seed))
        if kind == "latency":
            return errors(judged.predicted, judged)
        trained = trained_on(study, learned, kind, form, seed)
        if alpha:
            tuning = training.Tuning(**TUNING, alpha=alpha, seed=seed)
            trained = training.finetune(trained, learned, judged, None, tuning)
        return errors(trained.predict(judged), judged)

    ways = {
        "latency": ("times", "latency", 0.0), "cdmpp, times": ("times", "cdmpp", 0.0), "cdmpp, times, CMD": ("times", "cdmpp", 1.0),
        "boosted-trees, times": ("times", "boosted-trees", 0.0), "no-structure, times": ("times", "no-structure", 0.0),
        "cdmpp, correction": ("correction", "cdmpp", 0.0), "boosted-trees, correction": ("correction", "boosted-trees", 0.0),
    }  # fmt: skip
    rows = []
    for label, (form, kind, alpha) in ways.items():
        means = [
            statistics.mean(
                state.part(model_out, name, form, kind, alpha, seed)["mean"]
                for seed in range(options.repeats)
            )
            for name in names
        ]
        rows.append([label, *map(percent, means), percent(statistics.mean(means))])
    return [
        f"f16 products of language models on {', '.join(cards)} (their kernels are not known: trees of a proxy), each model left out: "
        f"{study.count(2000)} programs of the others to learn from, {study.count(800)} to judge by, {options.repeats} repeats. `latency` has "
        "the constants that the compiler takes, which were fitted to rows of all these models: it has no model left out.",
        "",
        *reports.table(["", *names, "mean"], rows),
    ]


# Tuned kernels -----------------------------------------------------------------------------------------------------------


def tuned(study: Study, options: argparse.Namespace) -> list[str]:
    """Rank correlation of programs of one task, within a card and on a card left out."""
    state = State(study, "tuned")
    data = study.dataset("tuned", TUNED)
    sets = {data.device_names[index]: data.device == index for index in np.unique(data.device)}

    def within_card(card: str, kind: str, form: str, seed: int) -> dict[str, Any]:
        card_programs = data.select(np.flatnonzero(sets[card]))
        is_unseen = (
            np.random.default_rng(seed).permutation(len(card_programs)) < len(card_programs) // 5
        )
        judged = card_programs.select(is_unseen)
        if kind == "latency":
            return errors(judged.predicted, judged)
        learned = card_programs.select(study.pick(~is_unseen, 2500, seed))
        return errors(trained_on(study, learned, kind, form, seed).predict(judged), judged)

    # Files of states know the part by its former name.
    within_card.__name__ = "within"

    def card_out(card: str, kind: str, count: int, seed: int) -> dict[str, Any]:
        others = [name for name in CONVOLUTION if name != card]
        learned = Dataset.concatenate(
            [data.select(study.pick(sets[name], 1500, seed)) for name in others]
        )
        target = data.select(np.flatnonzero(sets[card]))
        rng = np.random.default_rng(seed)
        sampled = np.zeros(len(target), bool)
        sampled[rng.permutation(len(target))[:count]] = True
        judged = target.select(~sampled)
        if kind == "nearest card":
            # Boosted trees of the card with the most similar figures; trees of own programs correct their times.
            vectors = {
                name: data.device_vectors[data.device_names.index(name)] for name in CONVOLUTION
            }
            nearest = min(
                others, key=lambda name: float(np.abs(vectors[name] - vectors[card]).sum())
            )
            of_nearest = boosted.train(
                data.select(study.pick(sets[nearest], 3000, seed)), seed=seed
            )
            as_nearest = dataclasses.replace(
                target, device=np.full(len(target), data.device_names.index(nearest))
            )
            target = with_prediction(target, of_nearest.predict(as_nearest))
            judged, own = target.select(~sampled), target.select(sampled)
            times = (
                boosted.train(own, corrects=True, seed=seed).predict(judged)
                if count
                else judged.predicted
            )
            return errors(times, judged)
        trained = trained_on(study, learned, kind, "times", seed)
        if kind == "boosted-trees":
            return errors(
                (
                    transfer.tune(trained, learned, target.select(sampled), seed)
                    if count
                    else trained
                ).predict(judged),
                judged,
            )
        if count:
            tuning = training.Tuning(**TUNING, seed=seed)
            trained = training.finetune(
                trained,
                learned,
                judged.select(study.pick(np.ones(len(judged), bool), 600, seed)),
                target.select(sampled),
                tuning,
            )
        return errors(trained.predict(judged), judged)

    rows = []
    for card in sets:
        has_latency = np.isfinite(data.predicted[sets[card]]).all()
        kinds = [
            *([("latency", "times")] if has_latency else []),
            *((kind, "times") for kind in KINDS),
        ]
        if has_latency:
            kinds.append(("cdmpp", "correction"))
        for kind, form in kinds:
            found = [
                state.part(within_card, card, kind, form, seed) for seed in range(options.repeats)
            ]
            rows.append([card, kind, form, *_means(found)])
    text = [
        f"Programs of one task on one card: {study.count(2500)} to learn from (`latency`: none; the constants that the compiler takes), a "
        f"fifth of all to judge by, {options.repeats} repeats, networks with {study.epochs} epochs. rtx3090: CLBlast's Xgemm; others: one image "
        "convolution.",
        "",
        *reports.table(
            ["card", "predictor", "learns", "rank correlation", "mean error", "within 10 %"], rows
        ),
        "",
    ]
    rows = []
    for card in CONVOLUTION:
        neighbours = _neighbours(data, sets, card)
        for name, rank in neighbours.items():
            rows.append([card, f"times of {name}", 0, f"{rank:.3f}", "", ""])
        for kind in (*KINDS, "nearest card"):
            for count in (0, 50):
                found = [
                    state.part(card_out, card, kind, count, seed) for seed in range(options.repeats)
                ]
                rows.append([card, kind, count, *_means(found)])
    return text + [
        f"The same convolution with a card left out: {study.count(1500)} configurations of each of the other two to learn from, and so many of "
        "its own at random. `times of` another card: its measured times as the ranking. `nearest card`: boosted trees of the card whose "
        "figures are most alike, and with own programs a correction of what they predict.",
        "",
        *reports.table(
            [
                "card left out",
                "predictor",
                "own programs",
                "rank correlation",
                "mean error",
                "within 10 %",
            ],
            rows,
        ),
    ]


CONVOLUTION = ("a4000", "w6600", "mi250x")


def _means(found: list[dict[str, Any]]) -> list[str]:
    # Predictions that are all equal have no rank.
    mean = {
        name: statistics.mean(one[name] or 0.0 for one in found)
        for name in ("rank", "mean", "within_10")
    }
    return [f"{mean['rank']:.3f}", percent(mean["mean"]), percent(mean["within_10"])]


def _neighbours(data: Dataset, sets: dict[str, Any], card: str) -> dict[str, float]:
    """Rank correlation of a card's times with other cards' times, over configurations that both ran."""

    def by_features(name: str) -> dict[bytes, float]:
        rows = np.flatnonzero(sets[name])
        return {
            b"".join(t.features.tobytes() for t in data.trees[row]): float(data.microseconds[row])
            for row in rows.tolist()
        }

    own = by_features(card)
    found = {}
    for name in CONVOLUTION:
        if name != card:
            other = by_features(name)
            both = [key for key in own if key in other]
            rank = training.rank_correlation(
                np.array([other[key] for key in both]), np.array([own[key] for key in both])
            )
            found[name] = float("nan") if rank is None else rank
    return found


def schedule_search(study: Study, options: argparse.Namespace) -> list[str]:
    """The best configuration of Xgemm on an RTX 3090 that so many measurements find."""
    state = State(study, "schedule-search")
    data = study.dataset("tuned", TUNED)
    programs = data.select(np.flatnonzero(data.device == data.device_names.index("rtx3090")))
    best = float(programs.microseconds.min())

    def search(kind: str, seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        measured: list[int] = []
        found = {}
        for rounds in range(SEARCH_ROUNDS):
            left = np.setdiff1d(np.arange(len(programs)), measured)
            if kind == "random" or (rounds == 0 and kind != "latency"):
                chosen = rng.choice(left, SEARCH_BATCH, replace=False)
            elif kind == "latency":
                chosen = left[np.argsort(programs.predicted[left], kind="stable")[:SEARCH_BATCH]]
            else:
                known = programs.select(np.array(measured))
                if kind == "boosted-trees":
                    predictor: Any = boosted.train(known, seed=seed, rounds=100)
                else:
                    settings = study.options(
                        epochs=30,
                        batch=32,
                        seed=seed,
                        structure=not kind.startswith("no-structure"),
                        corrects=kind.endswith("correction"),
                    )
                    predictor = training.train(known, network.SMALL, settings)
                candidates = rng.choice(left, min(len(left), 3000), replace=False)
                times = predictor.predict(programs.select(candidates))
                # Most by prediction, some at random.
                keep = SEARCH_BATCH * 9 // 10
                chosen = candidates[np.argsort(times, kind="stable")[:keep]]
                rest = np.setdiff1d(left, chosen)
                chosen = np.concatenate(
                    [chosen, rng.choice(rest, SEARCH_BATCH - keep, replace=False)]
                )
            measured += [int(one) for one in chosen]
            found[str(len(measured))] = best / float(programs.microseconds[measured].min())
        return {"best": found}

    kinds = ("random", "latency", "boosted-trees", "no-structure", "cdmpp", "cdmpp, correction")
    points = [str(SEARCH_BATCH * (number + 1)) for number in range(SEARCH_ROUNDS)]
    rows, series = [], []
    for number, kind in enumerate(kinds):
        seeds = range(1 if kind == "latency" else options.repeats)
        found = [state.part(search, kind, seed) for seed in seeds]
        means = [statistics.mean(one["best"][point] for one in found) for point in points]
        rows.append(
            [
                kind,
                *(percent(value) for value in means),
                f"{statistics.mean(one['cpu_s'] for one in found):.0f}",
            ]
        )
        series.append(charts.Series(kind, [100 * value for value in means], number))
    if options.figure:
        write_figure(
            options.figure,
            "Best configuration found",
            "measurements",
            "% of the best of all",
            [float(p) for p in points],
            series,
        )
    return [
        f"Xgemm of 4096³ on an RTX 3090, {len(programs)} configurations: speed of the best that was measured over that of the best of all, after so "
        f"many measurements, {SEARCH_BATCH} at a time: nine tenths by prediction, others and the first {SEARCH_BATCH} at random; {options.repeats} "
        "repeats. `latency` has constants that were fitted to rows of this file, and learns nothing.",
        "",
        *reports.table(["chosen by", *points, "CPU s"], rows),
    ]


SEARCH_BATCH, SEARCH_ROUNDS = 40, 6


# Output ------------------------------------------------------------------------------------------------------------------


def percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def deviation(values: list[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def write_figure(
    path: str,
    title: str,
    x: str,
    y: str,
    places: list[float],
    series: list[charts.Series],
    has_marks: bool = False,
) -> None:
    figure = charts.lines(title, x, y, places, series, has_marks=has_marks)
    Path(path).write_text(charts.document(figure, series))


def write_scatter(path: str, points: list[tuple[str, list[tuple[float, float]], int]]) -> None:
    """Marks of each card, by the frame of a figure of lines."""
    places = sorted({x for _, marks, _ in points for x, _ in marks})
    series = []
    for label, marks, number in points:
        values: dict[float, float | None] = {place: None for place in places}
        values.update(dict(marks))
        series.append(charts.Series(label, list(values.values()), number))
    title = "Error and discrepancy of a card left out"
    write_figure(
        path, title, "CMD of latent vectors", "mean error (%)", places, series, has_marks=True
    )


EXPERIMENTS: dict[str, Callable[[Study, argparse.Namespace], list[str]]] = {
    "unseen-shapes": unseen_shapes,
    "leave-device-out": leave_device_out,
    "sampling": sampling_experiment,
    "error-and-cmd": error_and_cmd,
    "transforms": transforms,
    "losses": losses,
    "positions": positions,
    "positions-tuned": positions_tuned,
    "sizes": sizes,
    "latents": latents,
    "leave-model-out": leave_model_out,
    "tuned": tuned,
    "schedule-search": schedule_search,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", choices=EXPERIMENTS)
    parser.add_argument("--data", required=True, metavar="FOLDER", help="published measurements")
    parser.add_argument(
        "--state", required=True, metavar="FOLDER", help="where data sets and finished parts are"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of numbers of programs (default: %(default)s)"
    )
    parser.add_argument("--epochs", type=int, default=20, help="of training (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=3, help="default: %(default)s")
    parser.add_argument(
        "--cards",
        nargs="+",
        choices=CARDS,
        default=CARDS,
        help="of `leave-device-out` (default: all)",
    )
    parser.add_argument(
        "--forms",
        nargs="+",
        choices=FORMS,
        default=["times"],
        help="of `sampling` (default: times)",
    )
    parser.add_argument(
        "--write", metavar="FILE.md", help="file to write (default: standard output)"
    )
    parser.add_argument("--figure", metavar="FILE.svg", help="figure to write, where there is one")
    options = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    study = Study(options)
    table = EXPERIMENTS[options.experiment](study, options)
    command = f"benchmarks/cpu/cdmpp_experiments.py {options.experiment} --repeats={options.repeats} --scale={options.scale:g} --epochs={options.epochs}"
    others = (
        f", with parts of {', '.join(sorted(study.commits))}"
        if study.commits - {study.commit}
        else ""
    )
    text = "\n".join(
        [
            f"Made on {datetime.date.today()} by `{command}` at commit {study.commit}{others}.",
            "",
            *table,
            "",
        ]
    )
    if options.write:
        Path(options.write).write_text(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
