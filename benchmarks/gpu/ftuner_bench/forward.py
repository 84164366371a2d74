"""Whole models and memory-bound operators compiled by FTuner alone, kernel by kernel.

Of each case one function serves all sizes; PyTorch computes the same eagerly and by
torch.compile. Beside the time of a call, the times of the kernels that each way launches are
recorded, as PyTorch's profiler sees them: what the cost model predicts can be held against them.
Errors are against the same module in float64.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import buffers, bundle, models
from .machine import Call
from .session import Session, within
from .ways import check, compile_ahead

ROUNDS = 7
# Calls that are profiled; of each kernel the median counts. Sizes of a case that are.
PROFILED = 5
PROFILED_SIZES = 2
# What torch.compile needs for a model; with less time left it is left out.
COMPILE_SECONDS = 45.0


@dataclasses.dataclass(frozen=True)
class Case:
    """A module with one dynamic size T, the extent along `axes` of each of its arguments.

    build: the module, small or of full size. shapes: of the arguments for T = size, whether small.
    tokens: the number of values where arguments are tokens, else 0.
    """

    name: str
    title: str
    type: str
    build: Callable[[bool], torch.nn.Module]
    shapes: Callable[[int, bool], tuple[tuple[int, ...], ...]]
    sizes: tuple[int, ...]
    axes: tuple[tuple[int, ...], ...] = ((0,),)
    tokens: int = 0

    def inputs(self, size: int, small: bool, device: str, seed: int) -> tuple[torch.Tensor, ...]:
        # On the device: the host takes seconds for the largest.
        generator = torch.Generator(device=device).manual_seed(seed)
        shapes = self.shapes(size, small)
        if self.tokens:
            most = 100 if small else self.tokens
            return tuple(
                torch.randint(0, most, shape, generator=generator, device=device)
                for shape in shapes
            )
        return tuple(
            torch.randn(shape, generator=generator, device=device).to(buffers.TYPES[self.type])
            for shape in shapes
        )

    def grid(self, small: bool) -> tuple[int, ...]:
        return (8, 3) if small else self.sizes


class _Softmax(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


class _Sum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(-1)


class _Gelu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(x)


class _RmsNorm(torch.nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)
        return (wide * scale).to(x.dtype) * self.weight


class _AddLayerNorm(torch.nn.Module):
    """A layer norm behind a residual addition."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.norm(x + residual)


ROWS = (128, 2048, 16384)


def _rows(
    name: str, type: str, width: int, build: Callable[[int], torch.nn.Module], arguments: int = 1
) -> Case:
    """An operator on rows [T, width]."""

    def sized(small: bool) -> int:
        return 64 if small else width

    return Case(
        f"{name}_{width}_{type}",
        f"{name} of [T, {width}], {type}",
        type,
        lambda small: build(sized(small)),
        lambda size, small: ((size, sized(small)),) * arguments,
        ROWS,
        ((0,),) * arguments,
    )


def _model(name: str, type: str, batch: int) -> Case:
    (model,) = (one for one in models.MODELS if one.name == name)
    return Case(
        f"{name}_{type}_{batch}",
        f"{model.title}, batch {batch}, {type}",
        type,
        lambda small: models.build(model, small, layers=1 if small else None),
        lambda size, small: ((min(batch, 2) if small else batch, size),),
        (128, 32, 1),
        ((1,),),
        model.vocabulary,
    )


class _Epilogue(torch.nn.Module):
    """Products of the first argument, and what follows them."""

    def layers(self) -> list[torch.nn.Linear]:
        """The products, without their biases."""
        raise NotImplementedError

    def after(self, products: Sequence[torch.Tensor], *others: torch.Tensor) -> torch.Tensor:
        """Computes what follows the products, by operators of PyTorch."""
        raise NotImplementedError


class _Bias(_Epilogue):
    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.linear = torch.nn.Linear(inner, outer)

    def layers(self) -> list[torch.nn.Linear]:
        return [self.linear]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)

    def after(self, products: Sequence[torch.Tensor], *others: torch.Tensor) -> torch.Tensor:
        return products[0] + self.linear.bias


class _BiasGelu(_Bias):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(self.linear(x))

    def after(self, products: Sequence[torch.Tensor], *others: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.gelu(products[0] + self.linear.bias)


class _Residual(_Bias):
    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        return self.linear(x) + residual

    def after(self, products: Sequence[torch.Tensor], *others: torch.Tensor) -> torch.Tensor:
        return products[0] + self.linear.bias + others[0]


class _Gate(_Epilogue):
    """The gated half of a layer of Llama."""

    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.gate = torch.nn.Linear(inner, outer, bias=False)
        self.up = torch.nn.Linear(inner, outer, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(self.gate(x)) * self.up(x)

    def layers(self) -> list[torch.nn.Linear]:
        return [self.gate, self.up]

    def after(self, products: Sequence[torch.Tensor], *others: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.silu(products[0]) * products[1]


def _epilogue(
    name: str, inner: int, outer: int, build: Callable[[int, int], torch.nn.Module]
) -> Case:
    """A product [T, inner] · [inner, outer] and what follows it, in f16."""
    few = 32  # Divides the widths of a rehearsal.

    def shapes(size: int, small: bool) -> tuple[tuple[int, ...], ...]:
        widths = (inner, outer) if build is _Residual else (inner,)
        return tuple((size, width // few if small else width) for width in widths)

    return Case(
        f"{name}_{outer}_f16",
        f"{name} of [T, {inner}] · [{inner}, {outer}], f16",
        "f16",
        lambda small: build(inner // few, outer // few) if small else build(inner, outer),
        shapes,
        (1024, 128, 100, 32, 2048),
        ((0,),) * (2 if build is _Residual else 1),
    )


EPILOGUES = (
    _epilogue("linear", 768, 2304, _Bias),
    _epilogue("linear_gelu", 768, 3072, _BiasGelu),
    _epilogue("linear_residual", 3072, 768, _Residual),
    _epilogue("linear_residual", 4096, 4096, _Residual),
    _epilogue("linear_gate", 4096, 11008, _Gate),
)

# Operators come first: PyTorch compiles them in seconds, and models in half a minute.
CASES = (
    _rows("softmax", "f32", 768, lambda width: _Softmax()),
    _rows("softmax", "f16", 4096, lambda width: _Softmax()),
    _rows("add_layer_norm", "f32", 768, _AddLayerNorm, 2),
    _rows("add_layer_norm", "f16", 768, _AddLayerNorm, 2),
    _rows("rms_norm", "f16", 4096, _RmsNorm),
    _rows("sum", "f32", 4096, lambda width: _Sum()),
    _rows("gelu", "f16", 3072, lambda width: _Gelu()),
    _model("bert_base", "f32", 16),
    _model("bert_base", "f16", 16),
    _model("bert_base", "f16", 1),
    _model("gpt2", "f16", 1),
)


REHEARSED = ("add_layer_norm_768_f32", "bert_base_f32_16", "linear_gelu_3072_f16")


def cases(part: str, small: bool) -> tuple[Case, ...]:
    """The cases of a part; in a rehearsal a model, an operator, and an epilogue."""
    every = EPILOGUES if part == "epilogues" else CASES
    return tuple(case for case in every if case.name in REHEARSED) if small else every


def product_of(case: Case) -> str:
    """The name of the function that computes only the products of a case."""
    return f"{case.name}_product"


def module_of(case: Case, small: bool) -> torch.nn.Module:
    torch.manual_seed(0)
    return case.build(small).to(buffers.TYPES[case.type]).eval().requires_grad_(False)


def prepare(
    part: str,
    small: bool,
    folder: pathlib.Path,
    compile_text: Callable[[str, pathlib.Path], None],
    say: Callable[[str], None],
) -> None:
    """Compiles all cases into `folder`: a library, and the names of the function's last arguments
    with those that are no parameters of the module."""
    from torch.export import Dim

    import ftuner.torch

    folder.mkdir(parents=True)

    def compile_case(
        case: Case, module: torch.nn.Module, inputs: Sequence[torch.Tensor], name: str
    ) -> Any:
        size = Dim("T", min=1, max=max(case.grid(small)))
        axes_of = case.axes[: len(inputs)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = ftuner.torch.export(
                module,
                tuple(inputs),
                dynamic_shapes=tuple({axis: size for axis in axes} for axes in axes_of),
                name=name,
            )
        compile_text(exported.text, folder / f"{name}.so.xz")
        return exported

    for case in cases(part, small):
        module, inputs = module_of(case, small), case.inputs(8, small, "cpu", 0)
        exported = compile_case(case, module, inputs, case.name)
        if isinstance(module, _Epilogue):
            # The products alone, which are of one shape.
            weight = module.layers()[0].weight
            alone = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=False)
            compile_case(case, alone.to(weight.dtype), inputs[:1], product_of(case))
        own = {key for key, _ in [*module.named_parameters(), *module.named_buffers()]}
        constants = {key: tensor for key, tensor in exported.parameters.items() if key not in own}
        (folder / f"{case.name}.json").write_text(
            json.dumps(list(exported.parameters)), encoding="utf-8"
        )
        torch.save(constants, folder / f"{case.name}.pt")
        say(case.title)


def measure(session: Session) -> bool:
    folder = session.folder(session.part.name)
    if folder is None:
        return True
    passed = True
    every = cases(session.part.name, session.machine.rehearsal)
    with torch.no_grad():
        for number, case in enumerate(every):
            share = within(session, len(every) - number)
            done: list[int] = []
            wanted = case.grid(session.machine.rehearsal)
            try:
                module = module_of(case, session.machine.rehearsal).to(session.machine.device)
                ways = _ways(session, case, module, folder)
                exact = module_of(case, session.machine.rehearsal).to(session.machine.device)
                exact = exact.double()
                uncaptured: set[str] = set()
                if "compile" in ways:
                    compile_ahead(ways["compile"], _inputs(session, case, wanted[0]))
                # No size takes as long as the compiler.
                share.restart()
                for size in wanted:
                    if not share.allows() and done:
                        break
                    is_profiled = bool(case.tokens) or len(done) < PROFILED_SIZES
                    passed &= _size(session, case, size, ways, exact, uncaptured, is_profiled)
                    done.append(size)
            except Exception as error:  # of one case: the others go on
                passed = False
                session.write(
                    "error", message=f"{case.name}: {type(error).__name__}: {error}", traceback=""
                )
                print(f"FAILED {case.name}: {type(error).__name__}: {error}", flush=True)
            session.coverage(case.name, list(wanted), done, "forward")
            session.machine.tidy()
    return passed


def _ways(
    session: Session, case: Case, module: torch.nn.Module, folder: pathlib.Path
) -> dict[str, Callable[..., torch.Tensor]]:
    """The ways to run a case by their names."""
    import ftuner

    library = bundle.unpack_to_file(folder / f"{case.name}.so.xz")
    function = ftuner.load(library).functions[case.name]
    state = {
        **dict(module.named_parameters()),
        **dict(module.named_buffers()),
        **torch.load(folder / f"{case.name}.pt", map_location=session.machine.device),
    }
    names = json.loads((folder / f"{case.name}.json").read_text(encoding="utf-8"))
    parameters = [state[name].detach().contiguous() for name in names]
    ways: dict[str, Callable[..., torch.Tensor]] = {
        "ftuner": function.keeping(len(parameters), lambda memory: parameters),
        "eager": module.forward,
    }
    if isinstance(module, _Epilogue):
        ways["ftuner_unfused"] = _unfused(case, module, folder)
    is_late = bool(case.tokens) and session.seconds_left() < COMPILE_SECONDS
    if is_late:
        session.write("note", text=f"{case.title}: no time was left for torch.compile")
    if "compile" not in session.skipped_peers and not is_late:
        torch._dynamo.reset()

        # A code object of its own for each case: recompilations are counted by code.
        def forward(*inputs: torch.Tensor) -> torch.Tensor:
            return module(*inputs)

        forward.__code__ = forward.__code__.replace(co_name=f"forward_{case.name}")
        ways["compile"] = torch.compile(forward, dynamic=True)
    return ways


def _unfused(case: Case, module: _Epilogue, folder: pathlib.Path) -> Callable[..., torch.Tensor]:
    """FTuner's products alone, and PyTorch's operators behind them."""
    import ftuner

    name = product_of(case)
    product = ftuner.load(bundle.unpack_to_file(folder / f"{name}.so.xz")).functions[name]
    weights = [layer.weight.detach().contiguous() for layer in module.layers()]

    def forward(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return module.after([product(x, weight) for weight in weights], *others)

    return forward


def _size(
    session: Session,
    case: Case,
    size: int,
    ways: dict[str, Callable[..., torch.Tensor]],
    exact: torch.nn.Module,
    uncaptured: set[str],
    is_profiled: bool,
) -> bool:
    """uncaptured: ways that a graph did not take, which are not tried again."""
    inputs = _inputs(session, case, size)
    wide = [tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs]
    sets = [inputs, *_copies(session, inputs)] if not case.tokens else [inputs]
    checked = check(session, f"{case.name}, T={size}", case.type, ways, sets, exact(*wide))
    modes = ("graph_warm", "graph_cold") if not case.tokens else ("graph_warm", "plain_warm")
    for mode in modes:
        for way, summary, rest in checked.times(session, mode, ROUNDS, uncaptured):
            session.write(
                "forward",
                case=case.name,
                size=size,
                how=way,
                mode=mode,
                microseconds=summary,
                **rest,
            )
    for way, bound in checked.calls.items() if is_profiled else ():
        session.write(
            "kernels", case=case.name, size=size, how=way, kernels=_kernels(session, bound[0])
        )
    return checked.passed


def _inputs(session: Session, case: Case, size: int) -> tuple[torch.Tensor, ...]:
    """The arguments for T = size, of which T alone is dynamic."""
    small, device = session.machine.rehearsal, session.machine.device
    inputs = case.inputs(size, small, device, session.seed + size)
    for tensor, axes in zip(inputs, case.axes):
        for axis in range(tensor.ndim):
            if axis not in axes:
                torch._dynamo.mark_static(tensor, axis)
    return inputs


def _copies(session: Session, inputs: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, ...]]:
    """As many as a cold cache takes; results need about as much memory as inputs."""
    bytes_each = 2 * sum(tensor.numel() * tensor.element_size() for tensor in inputs)
    count = min(64, max(1, round(buffers.COLD_FACTOR * session.machine.cache_bytes / bytes_each)))
    return [tuple(tensor.clone() for tensor in inputs) for _ in range(count)]


def _kernels(session: Session, call: Call) -> list[list[Any]]:
    """The kernels of a call in their order: name, and the median of microseconds."""
    if session.machine.rehearsal:
        return []
    activities = [torch.profiler.ProfilerActivity.CUDA]
    call()
    session.machine.synchronize()
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(PROFILED):
            call()
        session.machine.synchronize()
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        profile.export_chrome_trace(file.name)
        events = json.loads(pathlib.Path(file.name).read_text(encoding="utf-8"))["traceEvents"]
    kinds = ("kernel", "gpu_memcpy", "gpu_memset")
    found = sorted(
        (event["ts"], event["name"], event["dur"]) for event in events if event.get("cat") in kinds
    )
    count = len(found) // PROFILED
    if not count or count * PROFILED != len(found):
        return [[name, duration] for _, name, duration in found]
    return [
        [
            found[place][1],
            sorted(found[place + count * turn][2] for turn in range(PROFILED))[PROFILED // 2],
        ]
        for place in range(count)
    ]
