"""Runs FTuner's tools for the integration tests and collects failures."""

import argparse
import concurrent.futures
import itertools
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import covering


def start(documentation, flags=None):
    """Parses the command line: --bin-dir and a test's own flags.

    flags: from a flag's name to what ArgumentParser.add_argument takes for it.
    Returns (Harness, options).
    """
    parser = argparse.ArgumentParser(
        description=documentation, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bin-dir", required=True, help="folder of the built tools")
    for name, settings in (flags or {}).items():
        parser.add_argument(name, **settings)
    options = parser.parse_args()
    return Harness(options.bin_dir), options


#: How many times as many random cases run: FTUNER_TEST_SCALE.
SCALE = int(os.environ.get("FTUNER_TEST_SCALE") or 1)
#: Jobs of a test that run at once: FTUNER_TEST_JOBS, or as many as there are cores.
JOBS = int(os.environ.get("FTUNER_TEST_JOBS") or os.cpu_count())
#: Seed of the test's data: FTUNER_TEST_SEED, or a new one in each run, which a failing test prints.
SEED = int(os.environ.get("FTUNER_TEST_SEED") or random.SystemRandom().randrange(2**32))
_numbers = itertools.count()
#: Random cases that those which run are chosen of, at least.
CANDIDATES = 2000


def next_seed():
    """A seed for NumPy's generators, another one in each call."""
    return [SEED, next(_numbers)]


def random_cases(count):
    """Flags of a test of so many random cases."""
    return {
        "--count": {"type": int, "default": count},
        "--seed": {"type": int, "help": "of the first case; others follow"},
    }


def share(devices, number):
    """All of them, or of the suite one: cases take turns."""
    return devices if SCALE > 1 else [devices[number % len(devices)]]


def add_covering(tests, cases):
    """A job for each of cases, (properties, label, function, *arguments); of the suite for those that have all pairs of
    properties (covering.py)."""
    chosen = (
        range(len(cases))
        if SCALE > 1
        else covering.choose([properties for properties, *_ in cases])[0]
    )
    for index in chosen:
        tests.add(*cases[index][1:])


def add_random_cases(tests, options, make, run):
    """A job for each random case: run(tests, case) of case = make(seed). `options` are of the flags of random_cases.

    A case has `properties()`, a dictionary, and gets its seed as `seed`. Cases that run are chosen for their pairs of
    properties (covering.py), but where the command line names a seed.
    """

    def case_of(seed):
        case = make(seed)
        case.seed = seed
        return case

    if options.seed is not None:
        cases = [case_of(options.seed + index) for index in range(options.count)]
    else:
        count = options.count * SCALE
        candidates = [case_of(SEED + index) for index in range(max(CANDIDATES, 2 * count))]
        chosen, share = covering.choose([case.properties() for case in candidates], count)
        cases = [candidates[index] for index in chosen]
        print(
            f"{len(cases)} random cases, which have {share:.1%} of the pairs of properties",
            flush=True,
        )
    for case in cases:
        tests.add(f"seed {case.seed}", run, tests, case)


#: Environment without a CUDA toolkit: manifests without the assembler's figures, which take longer than the rest.
NO_TOOLKIT = {name: "/nonexistent" for name in ("PATH", "CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")}

#: Flags of ftuner-run for a run in the emulator that checks everything but results.
CHECKED = [
    "--executor=emulator",
    "--check-bounds",
    "--check-races",
    "--thread-order=shuffled",
    "--json",
]


def report_of(result):
    """What one checked run printed, or None; and its problems."""
    problems = [line for line in result.stderr.splitlines() if "error:" in line][:3]
    reports = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    if result.returncode != 0 or len(reports) != 1:
        return None, problems + [f"exit {result.returncode}", result.stdout[-400:]]
    return reports[0], problems


def run_case(tests, case, *flags):
    """Compiles and runs the module of a random case, checked; the kernels that ran, or None, and problems.

    The case has `seed`, `device`, `module()` and `arguments()`, whose last items are those of --args.
    """
    path = tests.write(f"{case.seed}.mlir", case.module())
    arguments = ",".join(argument for _, _, argument in case.arguments())
    result = tests.tool(
        "ftuner-run",
        path,
        "--function=f",
        f"--args={arguments}",
        f"--device={case.device}",
        "--check",
        *CHECKED,
        f"--seed={case.seed % 2**31}",
        "--max-kernels=3",
        *flags,
    )
    report, problems = report_of(result)
    if not report:
        return None, problems
    if not all(checked["ok"] for checked in report["results"]):
        problems.append(
            f"relative errors {[checked['relative_error'] for checked in report['results']]}"
        )
    return [launch["kernel"] for launch in report["launches"]], problems


def launched(report):
    """Names of the kernels of a run, without those that add slices of k up behind their own."""
    return [
        launch["kernel"] for launch in report["launches"] if not launch["kernel"].endswith("_sum")
    ]


def cache_compilations(folder):
    """What CMake builds below a folder is compiled once for all runs, wherever the folder is, if there is ccache."""
    if shutil.which("ccache"):
        os.environ.update(
            CMAKE_CXX_COMPILER_LAUNCHER="ccache", CCACHE_BASEDIR=folder, CCACHE_NOHASHDIR="1"
        )


class Harness:
    """Runs jobs, JOBS at once; each returns a list of problems."""

    def __init__(self, bin_dir):
        self.bin_dir = bin_dir
        self.folder = tempfile.TemporaryDirectory()
        self.jobs = []
        self.descriptions = {}

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w") as file:
            file.write(text)
        return self.path(name)

    def tool(self, name, *args, timeout=900, environment=None):
        """Runs a tool, with additions to its environment; returns the completed process."""
        return subprocess.run(
            [os.path.join(self.bin_dir, name), *args],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, **(environment or {})},
        )

    def translate(self, path, *flags):
        """The PTX of a module and its manifest, from one compilation."""
        outputs = [f"{os.path.splitext(path)[0]}.out.{extension}" for extension in ("ptx", "json")]
        result = self.tool(
            "ftuner-translate",
            path,
            "--ftuner-to-ptx",
            *flags,
            "-o",
            outputs[0],
            f"--manifest={outputs[1]}",
        )
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        with (
            open(outputs[0], encoding="utf-8") as ptx,
            open(outputs[1], encoding="utf-8") as manifest,
        ):
            return ptx.read(), json.load(manifest)

    def add(self, label, function, *args):
        self.jobs.append((label, function, args))

    def describe(self, label, text):
        """What a job found, to be printed behind its label."""
        self.descriptions[label] = f": {text}"

    def finish(self):
        """Runs every job, prints a line for each, and exits."""
        failed = 0

        def run(function, args):
            begin = time.monotonic()
            try:
                problems = function(*args)
            except Exception as error:  # a broken test must not look like a pass
                problems = [f"{type(error).__name__}: {error}"]
            return problems, time.monotonic() - begin

        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            running = [
                (label, pool.submit(run, function, args)) for label, function, args in self.jobs
            ]
            for label, job in running:
                problems, seconds = job.result()
                print(
                    f"{'FAILED' if problems else 'ok    '} {label}{self.descriptions.get(label, '')} ({seconds:.1f} s)",
                    flush=True,
                )
                for problem in problems:
                    print(f"    {problem}", flush=True)
                failed += bool(problems)
        print(f"{len(self.jobs) - failed} passed, {failed} failed")
        if failed:
            print(f"FTUNER_TEST_SEED={SEED} FTUNER_TEST_SCALE={SCALE}")
        sys.exit(1 if failed or not self.jobs else 0)
