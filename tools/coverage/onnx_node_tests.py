#!/usr/bin/env python3
"""Runs the node tests of ONNX (onnx.backend.test) by FTuner's backend, in the emulator.

Each test is a model of one operator, or of the function that ONNX defines it by (`_expanded`), with
inputs and the results that the package onnx wants of them, its own tolerance included. A test ends as

  passed   the results are ONNX's.
  refused  by one sentence for each node, which names the operator and says what to change.
  unclear  refused by other words.
  wrong    the results are others.
  crashed  the process ended, another exception was raised, or it took too long.

--write makes the page docs/onnx-node-tests.md. The command fails if a test is unclear, wrong or crashed.
"""

import argparse
import collections
import datetime
import json
import multiprocessing
import os
import re
import sys
import warnings

import apart

PASSED, REFUSED, UNCLEAR, WRONG, CRASHED = OUTCOMES = (
    "passed",
    "refused",
    "unclear",
    "wrong",
    "crashed",
)

#: The form of a refusal: the operator, the reason, and the change to make.
SENTENCE = re.compile(
    r"cannot import '[^']+': the operator ([^\s(]+)[^;]*(?: is not supported: | needs its input )[^;]+; \S.*"
)

PATH = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
    "docs",
    "onnx-node-tests.md",
)

#: Longer than any test takes.
SECONDS = 300


def cases(pattern=None):
    """The node tests by their names without `test_`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found = collect_testcases(None)
    wanted = re.compile(pattern or "")
    return {case.name.removeprefix("test_"): case for case in found if wanted.search(case.name)}


def operator_of(name, all_cases):
    """The operator that a test is about; that of the operator's own test for a function."""
    own = all_cases.get(re.sub(r"_expanded(_ver\d+)?$", "", name), all_cases[name])
    nodes = [
        node for node in own.model.graph.node if node.op_type != "Constant"
    ] or own.model.graph.node
    node = nodes[0]
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def is_of_ftuner(case):
    """Returns whether all inputs and results are tensors of elements that FTuner has."""
    from onnx import TensorProto

    own = {
        TensorProto.DataType.Value(name)
        for name in (
            "BOOL",
            "INT8",
            "INT16",
            "INT32",
            "INT64",
            "UINT8",
            "UINT16",
            "UINT32",
            "UINT64",
            "FLOAT16",
            "BFLOAT16",
            "FLOAT",
            "DOUBLE",
        )
    }
    graph = case.model.graph
    return all(
        value.type.HasField("tensor_type") and value.type.tensor_type.elem_type in own
        for value in [*graph.input, *graph.output]
    )


def outcome_of(case, options):
    """How a test ends, and the words with it."""
    from onnx.backend.test.runner import Runner, _normalize_tensor

    import ftuner
    from ftuner.onnx_backend import Backend

    try:
        compiled = Backend.prepare(case.model, "CPU", **options)
        for inputs, wanted in case.data_sets:
            results = compiled.run([_normalize_tensor(value) for value in inputs])
            wanted = [_normalize_tensor(value) for value in wanted]
            # The runner allows bfloat16 two units in the last place; so for float16.
            has_halves = any(getattr(value, "dtype", None) == "float16" for value in wanted)
            tolerance = max(case.rtol, 2**-9) if has_halves else case.rtol
            try:
                Runner.assert_similar_outputs(wanted, results, rtol=tolerance, atol=case.atol)
            except AssertionError as error:
                return WRONG, " ".join(str(error).split())[:400]
    except ftuner.CompileError as error:
        words = str(error)
        # The message lists all refused nodes, each in its line.
        are_sentences = all(SENTENCE.fullmatch(line) for line in words.split("\n"))
        return (REFUSED if are_sentences else UNCLEAR), words
    except Exception as error:
        return CRASHED, f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    return PASSED, ""


def run_apart(case, options):
    """Runs `outcome_of` in a separate process, since the importer may end its process."""

    def work(tell):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tell(json.dumps(outcome_of(case, options)).encode()[:60000])

    answer, code = apart.run_isolated(work, SECONDS)
    if code:
        return CRASHED, f"the process ended with code {code}"
    return tuple(json.loads(answer))


def run(chosen, options, jobs):
    """The outcomes by the tests' names."""
    # Loaded before the processes split, so that they do not load it again.
    import ftuner.onnx_backend  # noqa: F401
    from ftuner.frontend.importing import torch_mlir

    for module in ("extras.onnx_importer", "ir", "passmanager"):
        torch_mlir.load(module, "these tests")
    names = list(chosen)
    parts = [names[first::jobs] for first in range(jobs)]
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def work(part):
        for name in part:
            queue.put((name, run_apart(chosen[name], options)))

    workers = [context.Process(target=work, args=(part,)) for part in parts]
    for worker in workers:
        worker.start()
    outcomes = {}
    for number in range(len(names)):
        name, outcome = queue.get()
        outcomes[name] = outcome
        if outcome[0] not in (PASSED, REFUSED):
            print(f"{outcome[0]} {name}: {outcome[1]}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{number + 1} of {len(names)}", end="", file=sys.stderr)
    for worker in workers:
        worker.join()
    return {name: outcomes[name] for name in names}


PAGE = """# The node tests of ONNX

`tools/coverage/onnx_node_tests.py --write` runs every node test of the package onnx by
[FTuner's backend](torch-mlir.md#onnxs-backend) in the emulator and writes this page. A test is a model
of one operator, or of the function that ONNX defines it by (`_expanded` in its name), with inputs and
the results that are wanted. It passes if the results have the wanted types and shapes, and equal the wanted
values within the test's own tolerance; those of float16 within two units in the last place, as ONNX's
runner allows for bfloat16. A model that FTuner does not take must be refused by one sentence, which
names the operator and says what to change.

{date}, onnx {onnx}, iree-base-compiler {iree}:

| tests | number | passed | refused | wrong, crashed or unclear |
|---|---|---|---|---|
{totals}

Most tests give axes, shapes, pads and the like as inputs of the model. A program for a GPU needs these
when it is compiled, so such a test is refused; models that people export have them as constants.

## By operator

| operator | tests | passed | refused | wrong, crashed or unclear |
|---|---|---|---|---|
{operators}

## What refusals say

Of each operator, without the names of file and node; `…` stands for names of values.

| operator | tests | sentence |
|---|---|---|
{sentences}
"""


def page(outcomes, all_cases):
    """The page of the docs."""
    from importlib.metadata import version

    def row(words, found):
        counts = collections.Counter(outcome for outcome, _ in found)
        bad = sum(counts[outcome] for outcome in (UNCLEAR, WRONG, CRASHED))
        return f"| {words} | {len(found)} | {counts[PASSED]} | {counts[REFUSED]} | {bad} |"

    def plain(words):
        words = re.sub(r"^cannot import '[^']*': the operator ", "", words.partition("\n")[0])
        words = re.sub(r" \(node [^)]*\)", "", words)
        return re.sub(r"'[^']*'", "…", words).replace("|", "\\|")

    own = {name for name, case in all_cases.items() if is_of_ftuner(case)}
    totals = [
        row("all", [*outcomes.values()]),
        row(
            "whose inputs and results are tensors of elements that FTuner has",
            [outcome for name, outcome in outcomes.items() if name in own],
        ),
        row(
            "of these, without the expanded functions",
            [
                outcome
                for name, outcome in outcomes.items()
                if name in own and "_expanded" not in name
            ],
        ),
    ]
    by_operator = collections.defaultdict(list)
    sentences = collections.Counter()
    for name, outcome in outcomes.items():
        operator = operator_of(name, all_cases)
        by_operator[operator].append(outcome)
        if outcome[0] == REFUSED:
            sentences[operator, plain(outcome[1])] += 1
    return PAGE.format(
        date=datetime.date.today().isoformat(),
        onnx=version("onnx"),
        iree=version("iree-base-compiler"),
        totals="\n".join(totals),
        operators="\n".join(
            row(operator, found) for operator, found in sorted(by_operator.items())
        ),
        sentences="\n".join(
            f"| {operator} | {count} | {words} |"
            for (operator, words), count in sorted(sentences.items())
        ),
    )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--filter", metavar="REGEX", help="only tests whose name has it")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="writes every outcome with its words")
    parser.add_argument("--write", action="store_true", help="writes docs/onnx-node-tests.md")
    arguments = parser.parse_args()
    if arguments.write and arguments.filter:
        parser.error("--write: expected all tests, but got --filter")
    chosen = cases(arguments.filter)
    outcomes = run(chosen, {"max_kernels": 1}, arguments.jobs)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(outcomes, file, indent=0)
    if arguments.write:
        with open(PATH, "w") as file:
            file.write(page(outcomes, chosen))
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    print(", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES))
    return any(counts[outcome] for outcome in (UNCLEAR, WRONG, CRASHED))


if __name__ == "__main__":
    sys.exit(main())
