//===- Compiled.h - Compiled functions --------------------------*- C++ -*-===//
#ifndef FTUNER_MEMORY_COMPILED_H
#define FTUNER_MEMORY_COMPILED_H

#include "Process.h"

#include <Parameters.h>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/ops/empty_ops.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

extern "C" {
// Only PyTorch with CUDA has it.
__attribute__((weak)) int32_t aoti_torch_get_current_cuda_stream(int32_t device,
                                                                 void **stream);
}

namespace ftuner_calls {
using ftuner_native::Parameters;

/// Alignment of a workspace (docs/abi.md).
constexpr size_t kAlignment = 256;

enum class Kind { Tensor, F32, F64, Integer };

struct Argument {
  Kind kind = Kind::Tensor;
  /// Element types that a tensor may have, a bit each.
  uint64_t types = 0;
  /// Bytes of an element.
  int64_t bytes = 0;
  /// Sizes of a tensor, negative where calls decide.
  std::vector<int64_t> sizes;
};

struct Result {
  at::ScalarType type;
  int64_t bytes;
  size_t rank;
};

/// Shapes and sizes that follow from the sizes of the arguments and from
/// scalars.
struct Plan {
  /// Shapes of the results, one behind the other.
  std::vector<int64_t> shapes;
  int64_t workspaceBytes = 0;
};

/// Memory that a tensor has.
struct Range {
  uintptr_t begin, end;

  bool overlaps(const Range &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// Values read from the arguments and outputs of a call.
struct Call {
  static constexpr size_t kMax = Parameters::kMaxIntegers;

  bool inGraph = false;
  /// True if a tensor that needs a gradient is declined.
  bool declinesGradients = false;
  c10::Device device = c10::Device(c10::DeviceType::CPU);
  /// Memory of the arguments, then of the outputs.
  Range ranges[kMax];
  size_t rangeCount = 0;
  int64_t sizes[kMax];
  size_t sizeCount = 0;
  /// Scalars of both kinds, these by their bits.
  int64_t integers[kMax];
  size_t integerCount = 0;
  uint64_t floats[Parameters::kMaxScalars];
  size_t floatCount = 0;
  /// Sizes and scalars in the order of the arguments: what a plan depends on.
  int64_t key[kMax + Parameters::kMaxScalars];
  size_t keySize = 0;

  void addSize(int64_t size) { sizes[sizeCount++] = key[keySize++] = size; }
  void addInteger(int64_t integer) {
    integers[integerCount++] = key[keySize++] = integer;
  }
  void addFloat(uint64_t bits) {
    floats[floatCount++] = bits;
    key[keySize++] = static_cast<int64_t>(bits);
  }
  void addSizes(Parameters &parameters) const {
    for (size_t i = 0; i < sizeCount; ++i)
      parameters.add(sizes[i]);
    for (size_t i = 0; i < integerCount; ++i)
      parameters.add(integers[i]);
    for (size_t i = 0; i < floatCount; ++i)
      parameters.addScalar(floats[i]);
  }
};

/// Outcome of an attempt to serve a call.
enum class Outcome {
  Done,
  /// Nothing was done, and Python must do it.
  Declined,
  /// An exception of Python is set.
  Failed
};

/// A compiled function.
class Compiled {
public:
  std::vector<Argument> arguments;
  std::vector<Result> results;
  /// For each dynamic size, the number of the first one that must be equal,
  /// which may be its own.
  std::vector<size_t> equals;
  void *run = nullptr, *resultSizes = nullptr, *workspaceSize = nullptr;
  /// True if the emulator can run it.
  bool hasEmulator = false;
  Reference name;
  /// The named tuple of the results; null: one of them, or a tuple.
  Reference resultsType;

  /// Calls it with as many objects as it has arguments. In a graph, scalars
  /// may be tensors of one element, and gradients are the graph's business. The
  /// caller of the constructor sees to it that there are not too many sizes.
  /// `out` has objects to write the results to; null: `made` gets new tensors.
  Outcome call(PyObject *const *given, bool inGraph, PyObject *const *out,
               at::Tensor *made) {
    try {
      return serve(given, inGraph, out, made);
    } catch (const std::exception &) {
      // PyTorch failed, as it will for Python's code, which has its exception.
      return Outcome::Declined;
    }
  }

private:
  Outcome serve(PyObject *const *given, bool inGraph, PyObject *const *out,
                at::Tensor *made);
  bool read(PyObject *const *given, Call &call) const;
  bool readTensor(const Argument &argument, PyObject *given, Call &call,
                  bool isFirst) const;
  bool readScalar(Kind kind, PyObject *given, Call &call) const;
  bool readOutputs(PyObject *const *out, const Plan &plan, Call &call) const;
  const Plan *plan(const Call &call, Plan &unkept);
  bool makePlan(const Call &call, Plan &plan) const;
  int32_t launch(const Call &call, const Plan &plan, at::Tensor *made) const;

  // As many as Python's code keeps. They stay where they are: other threads
  // may add some while a call runs by one.
  static constexpr size_t kMaxPlans = 4096;
  std::map<std::vector<int64_t>, Plan> plans;
  const std::pair<const std::vector<int64_t>, Plan> *last = nullptr;
};

inline bool Compiled::readTensor(const Argument &argument, PyObject *given,
                                 Call &call, bool isFirst) const {
  const at::Tensor *tensor = tensorOf(given);
  if (!tensor || !isPlain(*tensor) || !tensor->is_contiguous())
    return false;
  if (isFirst)
    call.device = tensor->device();
  else if (tensor->device() != call.device)
    return false;
  auto type = static_cast<unsigned>(tensor->scalar_type());
  if (type >= 64 || !(argument.types >> type & 1))
    return false;
  if (call.declinesGradients && tensor->requires_grad())
    return false;
  c10::IntArrayRef sizes = tensor->sizes();
  if (sizes.size() != argument.sizes.size())
    return false;
  int64_t elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (argument.sizes[i] < 0)
      call.addSize(sizes[i]);
    else if (argument.sizes[i] != sizes[i])
      return false;
    elements *= sizes[i];
  }
  auto begin = reinterpret_cast<uintptr_t>(tensor->const_data_ptr());
  if (begin % static_cast<uintptr_t>(argument.bytes))
    return false;
  call.ranges[call.rangeCount++] = {
      begin, begin + static_cast<uintptr_t>(elements * argument.bytes)};
  return true;
}

inline bool Compiled::readScalar(Kind kind, PyObject *given, Call &call) const {
  double number = 0;
  if (kind == Kind::Integer) {
    if (!PyLong_CheckExact(given))
      return false;
    int overflow = 0;
    long long integer = PyLong_AsLongLongAndOverflow(given, &overflow);
    if (overflow)
      return false;
    call.addInteger(integer);
    return true;
  }
  if (PyFloat_CheckExact(given)) {
    number = PyFloat_AS_DOUBLE(given);
  } else if (PyLong_CheckExact(given)) {
    number = PyLong_AsDouble(given);
    if (number == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      return false;
    }
  } else {
    const at::Tensor *tensor = call.inGraph ? tensorOf(given) : nullptr;
    if (!tensor || !isPlain(*tensor) || !tensor->is_cpu() ||
        tensor->numel() != 1)
      return false;
    if (tensor->scalar_type() == at::kFloat)
      number = *static_cast<const float *>(tensor->const_data_ptr());
    else if (tensor->scalar_type() == at::kDouble)
      number = *static_cast<const double *>(tensor->const_data_ptr());
    else
      return false;
  }
  uint64_t bits = 0;
  if (kind == Kind::F32) {
    auto single = static_cast<float>(number);
    std::memcpy(&bits, &single, sizeof(single));
  } else {
    std::memcpy(&bits, &number, sizeof(number));
  }
  call.addFloat(bits);
  return true;
}

inline bool Compiled::read(PyObject *const *given, Call &call) const {
  bool isFirst = true;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Argument &argument = arguments[i];
    if (argument.kind != Kind::Tensor) {
      if (!readScalar(argument.kind, given[i], call))
        return false;
      continue;
    }
    if (!readTensor(argument, given[i], call, isFirst))
      return false;
    isFirst = false;
  }
  for (size_t i = 0; i < equals.size(); ++i)
    if (call.sizes[i] != call.sizes[equals[i]])
      return false;
  // The device of a call is that of its first tensor.
  return !isFirst && (call.device.is_cuda() || hasEmulator);
}

inline bool Compiled::readOutputs(PyObject *const *out, const Plan &plan,
                                  Call &call) const {
  const int64_t *shape = plan.shapes.data();
  for (size_t i = 0; i < results.size(); ++i) {
    const Result &result = results[i];
    const at::Tensor *tensor = tensorOf(out[i]);
    if (!tensor || !isPlain(*tensor) || !tensor->is_contiguous() ||
        tensor->device() != call.device ||
        tensor->scalar_type() != result.type ||
        (call.declinesGradients && tensor->requires_grad()) ||
        tensor->sizes() != c10::IntArrayRef(shape, result.rank))
      return false;
    shape += result.rank;
    auto begin = reinterpret_cast<uintptr_t>(tensor->data_ptr());
    Range range = {
        begin, begin + static_cast<uintptr_t>(tensor->numel() * result.bytes)};
    if (begin % static_cast<uintptr_t>(result.bytes))
      return false;
    for (size_t other = 0; other < call.rangeCount; ++other)
      if (range.overlaps(call.ranges[other]))
        return false;
    call.ranges[call.rangeCount++] = range;
  }
  return true;
}

inline bool Compiled::makePlan(const Call &call, Plan &plan) const {
  Parameters asked;
  call.addSizes(asked);
  size_t count = 0;
  for (const Result &result : results)
    count += result.rank;
  // A function whose results have no dimensions is given a place all the same.
  plan.shapes.reserve(count + 1);
  plan.shapes.resize(count);
  Parameters askedForShapes = asked;
  askedForShapes.add(plan.shapes.data());
  if (askedForShapes.call<int32_t>(resultSizes) != 0)
    return false;
  plan.workspaceBytes = asked.call<int64_t>(workspaceSize);
  return plan.workspaceBytes >= 0;
}

/// Returns the plan of a call, which may be in `unkept`; null where the
/// function refuses the sizes.
inline const Plan *Compiled::plan(const Call &call, Plan &unkept) {
  if (last &&
      std::equal(call.key, call.key + call.keySize, last->first.begin()))
    return &last->second;
  std::vector<int64_t> key(call.key, call.key + call.keySize);
  auto found = plans.find(key);
  if (found == plans.end()) {
    if (!makePlan(call, unkept))
      return nullptr;
    if (plans.size() >= kMaxPlans)
      return &unkept;
    found = plans.emplace(std::move(key), std::move(unkept)).first;
  }
  last = &*found;
  return &last->second;
}

inline at::Tensor allocate(c10::IntArrayRef sizes, at::ScalarType type,
                           c10::Device device) {
  // Otherwise PyTorch may fill the memory.
  if (device.is_cpu() && !at::globalContext().deterministicAlgorithms())
    return at::Tensor(at::detail::empty_cpu(sizes, type));
  return at::_ops::empty_memory_format::call(
      c10::fromIntArrayRefSlow(sizes), type, c10::kStrided, device,
      /*pin_memory=*/false, std::nullopt);
}

/// Runs without the GIL. Returns the runtime's code.
inline int32_t Compiled::launch(const Call &call, const Plan &plan,
                                at::Tensor *made) const {
  c10::OptionalDeviceGuard guard;
  void *stream = process.emulatorStream;
  if (call.device.is_cuda()) {
    guard.reset_device(call.device);
    // PyTorch makes the context current lazily, a new thread has none.
    if (int32_t code = process.selectDevice(call.device.index()))
      return code;
    if (aoti_torch_get_current_cuda_stream(call.device.index(), &stream))
      TORCH_CHECK(false, "no current stream");
  }
  Parameters parameters;
  for (size_t i = 0; i < call.rangeCount; ++i)
    parameters.add(static_cast<int64_t>(call.ranges[i].begin));
  if (made) {
    const int64_t *shape = plan.shapes.data();
    for (size_t i = 0; i < results.size(); ++i) {
      made[i] =
          allocate({shape, results[i].rank}, results[i].type, call.device);
      shape += results[i].rank;
      parameters.add(made[i].data_ptr());
    }
  }
  at::Tensor workspace;
  uintptr_t address = 0;
  if (plan.workspaceBytes) {
    auto bytes = static_cast<int64_t>(plan.workspaceBytes + kAlignment - 1);
    workspace = allocate(bytes, at::kByte, call.device);
    address = reinterpret_cast<uintptr_t>(workspace.data_ptr());
    address = (address + kAlignment - 1) / kAlignment * kAlignment;
  }
  call.addSizes(parameters);
  parameters.add(static_cast<int64_t>(address));
  parameters.add(stream);
  return parameters.call<int32_t>(run);
}

inline Outcome Compiled::serve(PyObject *const *given, bool inGraph,
                               PyObject *const *out, at::Tensor *made) {
  Call call;
  call.inGraph = inGraph;
  call.declinesGradients = !inGraph && c10::GradMode::is_enabled();
  if (!read(given, call))
    return Outcome::Declined;
  Plan unkept;
  const Plan *found = plan(call, unkept);
  if (!found || (out && !readOutputs(out, *found, call)))
    return Outcome::Declined;
  if (call.device.is_cuda() && !aoti_torch_get_current_cuda_stream)
    return Outcome::Declined;
  if (call.device.is_cpu() && !process.isHeeding) {
    Reference heeds(PyObject_CallNoArgs(process.heed));
    int isHeeding = heeds ? PyObject_IsTrue(heeds.get()) : -1;
    if (isHeeding < 0)
      return Outcome::Failed;
    process.isHeeding = isHeeding;
  }
  int32_t code = 0;
  {
    WithoutGil withoutGil;
    code = launch(call, *found, out ? nullptr : made);
  }
  if (code == 0)
    return Outcome::Done;
  Reference number(PyLong_FromLong(code));
  PyObject *words[] = {number.get(), name.get()};
  Reference none(number ? PyObject_Vectorcall(process.check, words, 2, nullptr)
                        : nullptr);
  if (none)
    PyErr_SetString(PyExc_SystemError, "expected an exception for a code");
  return Outcome::Failed;
}

} // namespace ftuner_calls

#endif // FTUNER_MEMORY_COMPILED_H
