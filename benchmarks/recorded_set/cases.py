"""The modules of the recorded set, from examples, paper and integration tests.

Every module is made anew from this tree and is the same in each run.
"""

import os
import random
import re
import sys
import tempfile
from dataclasses import dataclass, replace

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TESTS = os.path.join(ROOT, "test", "Integration")
sys.path[:0] = [TESTS, os.path.join(ROOT, "benchmarks", "cpu")]
import batches
import dense_full_size
import dense_sweep
import harness
import kernel_families
import kernel_quality
import library
import models
import random_modules
import roundings
import workloads

# Devices of five generations, with and without asynchronous copies.
DEVICES = ("v100", "t4", "a100", "h200", "b200")
# The integration tests' two devices, in turn.
TEST_DEVICES = ("h200", "t4")
RANDOM_MODULES = range(1, 25)
# Folders of modules that are tests themselves.
MODULE_FOLDERS = (
    "test/tools/Inputs",
    "test/tools/ftuner-run",
    "test/tools/ftuner-translate",
    "test/Target",
)
# Beside the default search, which all other cases run.
SEARCHES = {
    "roller": ["--strategy=roller"],
    "exhaustive": ["--strategy=exhaustive"],
    "sia": ["--cost-model=sia"],
    "sia-program": ["--cost-model=sia-program"],
    "roller by sia-program": ["--strategy=roller", "--cost-model=sia-program"],
    "aligned tiles": ["--tile-rule=aligned"],
    "divisors": ["--tile-rule=divisors"],
    "tight pool": ["--pool=tight"],
    "exact pool": ["--pool=exact"],
    "near the paper": ["--filter=paper", "--pool=exact", "--cost-model=sia"],
    "near the artifact": ["--filter=artifact", "--pool=single"],
    "largest axis": ["--main-axis=largest"],
    "four kernels": ["--max-kernels=4", "--top-k=3"],
    "global calibration": ["--calibration=global"],
}


@dataclass(frozen=True)
class Case:
    """A module and how it is translated.

    name: a file's name without its ending. description: of the device, where it is
    no built-in one. flags: of ftuner-translate. assembles: whether ptxas may be found.
    """

    name: str
    text: str
    device: str
    flags: tuple = ()
    description: str = ""
    assembles: bool = False


def case(label, text, device, *flags, **keywords):
    label = label.replace("·", "").replace("=", "")
    return Case(
        re.sub(r"[^\w.-]+", "_", f"{label}_{device}").lower(),
        text,
        device,
        tuple(flags),
        **keywords,
    )


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def text_of(write, *arguments, **keywords):
    """Returns the text of a module from a function that writes it to a path."""
    with tempfile.TemporaryDirectory() as folder:
        return read(write(os.path.join(folder, "module.mlir"), *arguments, **keywords))


def examples():
    folder = os.path.join(ROOT, "examples")
    for file in sorted(os.listdir(folder)):
        if file.endswith(".mlir"):
            for device in DEVICES:
                yield case(f"example {file[:-5]}", read(os.path.join(folder, file)), device)


def products():
    """Dense and BatchMatmul of the paper, attention's two products."""
    for device in DEVICES:
        for label, rows in workloads.RANGES.items():
            yield case(
                f"dense {label}", text_of(workloads.write, rows, epilogue="bias_gelu"), device
            )
        heads = {"b": "B", "h": 12, "m": "S", "n": "T", "k": 64}
        yield case(
            "attention scores",
            batches.Batched(
                "bmhk", "bnhk", "bhmn", heads, batch=2, scale=True, extras=("bn",)
            ).text(),
            device,
        )
        values = {"b": "B", "h": 12, "m": "S", "n": 64, "k": "T"}
        yield case(
            "attention values",
            batches.Batched("bhmk", "bkhn", "bmhn", values, batch=2).text(),
            device,
        )
    for device in ("v100", "h200"):
        yield case("batch matmul", text_of(workloads.write_batch_matmul), device)


def searches():
    dense = models.Matmul(m="M", n=768, k=768, ranges={"M": "#ukernel.range<1 to 64>"})
    scores = batches.group()[4][1]
    for label, flags in SEARCHES.items():
        yield case(f"search {label} dense", dense.text(), "h200", *flags)
        if label != "exhaustive":
            yield case(f"search {label} batches", scores.text(), "v100", *flags)
    yield case(
        "ptxas feedback",
        models.Matmul(n=512, k=256).text(),
        "a100",
        "--ptxas-feedback",
        "--max-kernels=4",
        assembles=True,
    )


def of_integration_tests():
    for index, (label, model, *_) in enumerate(dense_sweep.cases(TEST_DEVICES)):
        yield case(f"sweep {label}", model.text(), TEST_DEVICES[index % 2])
    for index, (label, model, _) in enumerate(batches.group()):
        yield case(f"batches {label}", model.text(), TEST_DEVICES[index % 2])
    for device, cost_model, transposed, rows, n, k, _ in kernel_quality.CORNERS:
        model = models.Matmul(
            m="M",
            n=n,
            k=k,
            transpose_a=transposed[0] == "T",
            transpose_b=transposed[1] == "T",
            ranges={"M": rows},
        )
        yield case(
            f"corner {transposed} {n} {k} {cost_model}",
            model.text(),
            device,
            f"--cost-model={cost_model}",
        )
    for device in kernel_quality.ODD_DEVICES:
        n, k = kernel_quality.ODD_SIZES
        yield case(
            "odd sizes",
            models.Matmul(m="M", n=n, k=k, transpose_b=True, epilogue="bias_gelu").text(),
            device,
        )
    for device in ("rtx3090", "orin-nano", "p4", "k80"):
        yield case(
            "dense NT",
            text_of(workloads.write, workloads.RANGES["M = T"], transpose_b=True),
            device,
        )
    yield case("library chain", library.CHAIN, "h200")
    yield case("library sizes", library.SIZES, "h200")
    for index in range(6):
        kinds = {f"%{kind}": (kind, roundings.np.zeros(1)) for kind in roundings.TYPES}
        chain = roundings.Chain(random.Random(roundings.SEED + index), kinds, roundings.LENGTH)
        yield case(
            f"roundings chain {index}",
            chain.function("f", False) + chain.function("g", True),
            "h200",
        )
    for narrow in ("f16", "bf16"):
        for operand in ("f32", "f16"):
            fill = {
                "name": "f",
                "operand": operand,
                "narrow": narrow,
                "identity": roundings.IDENTITY,
            }
            text = roundings.PRODUCT.format(
                body=roundings.ROUNDED.format(narrow=narrow),
                widen=roundings.WIDENED.format(narrow=narrow),
                **fill,
            )
            yield case(f"roundings product {operand} {narrow}", text, "h200")
        yield case(
            f"roundings sums {narrow}",
            roundings.SUMS.format(narrow=narrow, identity=roundings.IDENTITY),
            "h200",
        )
    for seed in RANDOM_MODULES:
        module = random_modules.Module(seed)
        yield case(f"random {seed}", module.text, module.device)


def with_given_plans(bin_dir, only):
    """Families that are given: pairs of heights, odd ones too, and balanced partitions."""
    run = harness.Harness(bin_dir)

    def given(label, model, device, families):
        one = case(label, "", device)
        if not re.search(only, one.name):
            return one  # not wanted: its workload need not be formed
        plan = f"<families = [{', '.join(families)}], choices = [], general = 0, unaligned_general = {len(families) - 1}>"
        path, problems = kernel_families.form(run, label.replace(" ", "_"), model.text(), plan)
        if problems:
            raise RuntimeError(f"{label}: {' '.join(problems)}")
        return replace(one, text=read(path))

    pairs = list(kernel_families.PAIRS.items())
    family = kernel_families.family
    for index, (label, parts) in enumerate(pairs):
        device = TEST_DEVICES[index % 2]
        yield given(
            f"given {label}",
            models.Matmul(n=64, k=48, epilogue="bias_n"),
            device,
            [family(parts, 2, 4), family(parts[-1:], 2, 1)],
        )
        yield given(
            f"given {label} odd",
            models.Matmul(n=61, k=37, transpose_b=True, epilogue="residual"),
            device,
            [family(parts)],
        )
        yield given(
            f"given {label} balanced",
            models.Matmul(n="N", k=17),
            device,
            [family(parts, balanced=7), family(parts[-1:])],
        )
    for index, (label, model, _) in enumerate(batches.group()):
        parts = pairs[index % len(pairs)][1]
        yield given(
            f"given batches {label}",
            model,
            TEST_DEVICES[index % 2],
            [family(parts, batch_axes=model.batch_axes())],
        )
    description = read(dense_full_size.made_up_device(run))
    for label, rows in workloads.RANGES.items():
        yield case(
            f"dense {label}",
            text_of(workloads.write, rows, epilogue="bias_gelu"),
            "made-up",
            description=description,
        )


def of_other_tests():
    """Modules of lit tests that hold nothing of the dialect but ranges, by their first function's name.

    What the program refuses is recorded as that.
    """
    for folder in MODULE_FOLDERS:
        for file in sorted(os.listdir(os.path.join(ROOT, folder))):
            text = read(os.path.join(ROOT, folder, file)) if file.endswith(".mlir") else ""
            for part in text.split("\n// -----"):
                function = re.search(r"^\s*func\.func @(\w+)", part, re.MULTILINE)
                if function and not re.search(
                    r"#ukernel\.(?!range)|\bukernel\.(?!shape|symbols)", part
                ):
                    yield case(f"lit {file[:-5]} {function.group(1)}", part, "h200")


def all_cases(bin_dir, only=""):
    """Every case whose name a regular expression finds. Names are unique.

    bin_dir: programs that form the workloads of given plans.
    """
    found = [
        *examples(),
        *products(),
        *searches(),
        *of_integration_tests(),
        *with_given_plans(bin_dir, only),
        *of_other_tests(),
    ]
    names = [one.name for one in found]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise RuntimeError(f"cases of one name: {', '.join(sorted(repeated))}")
    return [one for one in found if re.search(only, one.name)]
