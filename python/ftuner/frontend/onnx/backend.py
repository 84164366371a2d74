"""ONNX's interface of backends; `ftuner.onnx_backend` has the public names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, helper, shape_inference
from onnx.backend.base import Backend as _Base
from onnx.backend.base import BackendRep, Device, DeviceType, namedtupledict

from ... import api
from ...compiler import SourceText
from ...host import runtime
from ...host.function import Function
from ...host.memory.dlpack import DeviceArray
from .. import onnx


class CompiledModel(BackendRep):
    """A model that `Backend.prepare` compiled.

    Attributes:
        function: takes the model's inputs, in their order.
    """

    def __init__(self, function: Function, model: ModelProto, gpu: int | None) -> None:
        self.function = function
        self._gpu = gpu
        kept = {tensor.name for tensor in model.graph.initializer}
        self._inputs = [value.name for value in model.graph.input if value.name not in kept]
        names = [value.name for value in model.graph.output]
        self._results: Callable[..., tuple[Any, ...]] = namedtupledict("Outputs", names)

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Runs on arrays of NumPy: in the inputs' order, by their names, or the only one."""
        if isinstance(inputs, Mapping):
            given: Sequence[Any] = [inputs[name] for name in self._inputs]
        else:
            given = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        arguments: list[Any] = [np.asarray(value, order="C") for value in given]
        if self._gpu is not None:
            arguments = [DeviceArray.from_numpy(array, self._gpu) for array in arguments]
        results = self.function(*arguments)
        results = results if isinstance(results, tuple) else (results,)
        if self._gpu is not None:
            results = tuple(result.numpy() for result in results)
        return self._results(*results)


class Backend(_Base):
    """The backend that `onnx.backend.test` and other programs call."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **options: Any) -> CompiledModel:
        """Compiles a model. Raises what `ftuner.compile` raises."""
        place = Device(device)
        gpu = place.device_id if place.type == DeviceType.CUDA else None
        if gpu is not None:
            options.setdefault("device", f"cuda:{gpu}")
        projections = options.pop("projections", "joined")
        imported = onnx.import_proto(model, options.pop("ranges", None), projections=projections)
        source = SourceText.of_model(imported)
        module = api.compile(source, emulate=gpu is None, **options)
        return CompiledModel(module.functions[imported.name], model, gpu)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Runs one operator on arrays; of the version of operators `opset_version`, if given."""
        version = options.pop("opset_version", None)
        names = [name for name in dict.fromkeys(node.input) if name]
        values = inputs if isinstance(inputs, Mapping) else dict(zip(names, inputs))
        arrays = {name: np.asarray(values[name]) for name in names}
        results = [name for name in node.output if name]
        graph = helper.make_graph(
            [node],
            "node",
            [_value_of(name, array.dtype, array.shape) for name, array in arrays.items()],
            [helper.make_empty_tensor_value_info(name) for name in results]
            if outputs_info is None
            else [_value_of(name, *info) for name, info in zip(results, outputs_info)],
        )
        imports = [helper.make_opsetid(node.domain, version)] if version is not None else None
        model = helper.make_model(graph, opset_imports=imports)
        if outputs_info is None:
            model = shape_inference.infer_shapes(model)
        return cls.prepare(model, device, **options).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Returns whether the device's kind is known and there is one."""
        try:
            place = Device(device)
        except (AttributeError, ValueError):
            return False
        return place.type == DeviceType.CPU or runtime.get().has_device()


def _value_of(name: str, dtype: Any, shape: Sequence[int]) -> Any:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape)


prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device
is_compatible = Backend.is_compatible
