//===- torch_calls.cpp - Calls of compiled functions with tensors ---------===//
//
// A module of CPython that calls compiled functions with PyTorch's tensors. It
// serves the common call alone: plain tensors (no subclass, no mode, no view
// that conjugates or negates) that are contiguous, aligned, of the right types
// and sizes, and numbers. Whatever else a call has is for the Python code of
// FTuner, which raises the errors, copies what must be copied, and so on. So
// this file has no message for an argument that does not fit: it declines.
//
//   call of the package:  Method, which becomes `__call__` of the package's
//                         class of functions; calls what that was before
//                         where it declines
//   call in a graph:      GraphCall(tensors..., scalars..., sizes..., out=);
//                         calls `otherwise` where it declines
//
// Why not PyTorch's stable ABI: it has no way from a Python object to its
// tensor, and an operator that is called through torch.ops takes longer for
// its dispatch than the whole call here. So the module is compiled against the
// PyTorch, and the Python, that a user has.
//
//===----------------------------------------------------------------------===//
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty_ops.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/GradMode.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

extern "C" {
// Only PyTorch with CUDA has it.
__attribute__((weak)) int32_t aoti_torch_get_current_cuda_stream(int32_t device,
                                                                 void **stream);
}
// Makes the Python object of a tensor (libtorch_python).
__attribute__((visibility("default"))) PyObject *
THPVariable_Wrap(at::TensorBase &&tensor);

namespace {

/// Alignment of a workspace (docs/abi.md).
constexpr size_t kAlignment = 256;

//===----------------------------------------------------------------------===//
// References to Python objects
//===----------------------------------------------------------------------===//

/// A reference that this object owns.
class Reference {
public:
  explicit Reference(PyObject *object = nullptr) : object(object) {}
  Reference(Reference &&other) : object(std::exchange(other.object, nullptr)) {}
  Reference &operator=(Reference &&other) {
    std::swap(object, other.object);
    return *this;
  }
  ~Reference() { Py_XDECREF(object); }

  static Reference share(PyObject *object) {
    return Reference(Py_XNewRef(object));
  }
  PyObject *get() const { return object; }
  PyObject *release() { return std::exchange(object, nullptr); }
  explicit operator bool() const { return object != nullptr; }

private:
  PyObject *object;
};

/// Releases the GIL as long as it lives.
class WithoutGil {
public:
  WithoutGil() : state(PyEval_SaveThread()) {}
  ~WithoutGil() { PyEval_RestoreThread(state); }
  WithoutGil(const WithoutGil &) = delete;

private:
  PyThreadState *state;
};

//===----------------------------------------------------------------------===//
// The process
//===----------------------------------------------------------------------===//

/// Values that `configure` sets for the rest of the process.
struct Process {
  /// The types of plain tensors: torch.Tensor and torch.nn.Parameter.
  PyTypeObject *tensor = nullptr, *parameter = nullptr;
  /// Bytes from the beginning of a tensor's Python object to the at::Tensor.
  size_t offset = 0;
  /// The emulator's stream.
  void *emulatorStream = nullptr;
  /// `ftrt_device_select`.
  int32_t (*selectDevice)(int32_t) = nullptr;
  /// Has signals heeded during launches; returns true once all later calls do
  /// without it.
  PyObject *heed = nullptr;
  bool isHeeding = false;
  /// Raises the runtime's error of a code and what failed.
  PyObject *check = nullptr;
  /// The attribute of the package's functions that has a FunctionObject.
  PyObject *fast = nullptr;
  /// Calls in graphs that were served here.
  long long graphCalls = 0;
};
Process process;

/// The tensor of a plain tensor's Python object, null for other objects.
const at::Tensor *tensorOf(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  if (type != process.tensor && type != process.parameter)
    return nullptr;
  return reinterpret_cast<const at::Tensor *>(
      reinterpret_cast<const char *>(object) + process.offset);
}

/// The dispatch keys that a tensor may have that is nothing but memory of a
/// backend.
uint64_t plainKeys(c10::DispatchKey key, c10::BackendComponent backend) {
  return (c10::DispatchKeySet(key) |
          c10::getAutogradRelatedKeySetFromBackend(backend) |
          c10::getAutocastRelatedKeySetFromBackend(backend))
      .raw_repr();
}
const uint64_t plainCpuKeys =
    plainKeys(c10::DispatchKey::CPU, c10::BackendComponent::CPUBit);
const uint64_t plainCudaKeys =
    plainKeys(c10::DispatchKey::CUDA, c10::BackendComponent::CUDABit);

/// Returns whether a tensor is nothing but memory of a CPU or of a GPU of CUDA.
bool isPlain(const at::Tensor &tensor) {
  uint64_t keys = tensor.key_set().raw_repr();
  return tensor.defined() &&
         (!(keys & ~plainCpuKeys) || !(keys & ~plainCudaKeys));
}

//===----------------------------------------------------------------------===//
// Calls of C functions
//===----------------------------------------------------------------------===//

/// Parameters of a function of docs/abi.md: pointers and integers of 64 bits,
/// and floating-point scalars. The two kinds are passed apart from each other,
/// each in the order of the parameters: on x86-64 and AArch64 under Linux the
/// first eight scalars are in registers, of which a callee reads the low bits
/// of its type, and so are the first integers; further integers lie one behind
/// the other, 8 bytes each. A callee reads those that it has, so one type of
/// functions with many parameters serves all with fewer.
class Parameters {
public:
  static constexpr size_t kMaxScalars = 8, kMaxIntegers = 128;

  void add(int64_t integer) { integers[integerCount++] = integer; }
  void add(const void *pointer) { add(reinterpret_cast<intptr_t>(pointer)); }
  /// Adds a floating-point scalar by the bits of its type.
  void addScalar(uint64_t bits) {
    std::memcpy(&scalars[scalarCount++], &bits, sizeof(bits));
  }

  template <typename Result>
  Result call(void *function) const {
    if (integerCount <= kFewIntegers)
      return call<Result>(function, std::make_index_sequence<kMaxScalars>(),
                          std::make_index_sequence<kFewIntegers>());
    return call<Result>(function, std::make_index_sequence<kMaxScalars>(),
                        std::make_index_sequence<kMaxIntegers>());
  }

private:
  static constexpr size_t kFewIntegers = 16;

  template <typename Type, size_t>
  using Repeated = Type;

  template <typename Result, size_t... S, size_t... I>
  Result call(void *function, std::index_sequence<S...>,
              std::index_sequence<I...>) const {
    using Pointer = Result (*)(Repeated<double, S>..., Repeated<int64_t, I>...);
    return reinterpret_cast<Pointer>(function)(scalars[S]..., integers[I]...);
  }

  // What was not added is passed, too, but not read.
  double scalars[kMaxScalars];
  int64_t integers[kMaxIntegers];
  size_t scalarCount = 0, integerCount = 0;
};

//===----------------------------------------------------------------------===//
// Compiled functions
//===----------------------------------------------------------------------===//

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

bool Compiled::readTensor(const Argument &argument, PyObject *given, Call &call,
                          bool isFirst) const {
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

bool Compiled::readScalar(Kind kind, PyObject *given, Call &call) const {
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

bool Compiled::read(PyObject *const *given, Call &call) const {
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

bool Compiled::readOutputs(PyObject *const *out, const Plan &plan,
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

bool Compiled::makePlan(const Call &call, Plan &plan) const {
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
const Plan *Compiled::plan(const Call &call, Plan &unkept) {
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

at::Tensor allocate(c10::IntArrayRef sizes, at::ScalarType type,
                    c10::Device device) {
  // Otherwise PyTorch may fill the memory.
  if (device.is_cpu() && !at::globalContext().deterministicAlgorithms())
    return at::Tensor(at::detail::empty_cpu(sizes, type));
  return at::_ops::empty_memory_format::call(
      c10::fromIntArrayRefSlow(sizes), type, c10::kStrided, device,
      /*pin_memory=*/false, std::nullopt);
}

/// Runs without the GIL. Returns the runtime's code.
int32_t Compiled::launch(const Call &call, const Plan &plan,
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

Outcome Compiled::serve(PyObject *const *given, bool inGraph,
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

//===----------------------------------------------------------------------===//
// Types of Python
//===----------------------------------------------------------------------===//

/// Tensors that a call makes, mostly one.
class NewTensors {
public:
  explicit NewTensors(size_t count) {
    if (count > 1)
      several.resize(count);
  }
  at::Tensor *get() { return several.empty() ? &single : several.data(); }

private:
  at::Tensor single;
  std::vector<at::Tensor> several;
};

/// A list of new tensors, or what the function makes of several.
PyObject *wrap(const Compiled &function, at::Tensor *made, bool asList) try {
  size_t count = function.results.size();
  if (count == 1 && !asList)
    return THPVariable_Wrap(std::move(made[0]));
  Reference objects(asList ? PyList_New(static_cast<Py_ssize_t>(count))
                           : PyTuple_New(static_cast<Py_ssize_t>(count)));
  if (!objects)
    return nullptr;
  for (size_t i = 0; i < count; ++i) {
    PyObject *object = THPVariable_Wrap(std::move(made[i]));
    if (!object)
      return nullptr;
    if (asList)
      PyList_SET_ITEM(objects.get(), static_cast<Py_ssize_t>(i), object);
    else
      PyTuple_SET_ITEM(objects.get(), static_cast<Py_ssize_t>(i), object);
  }
  if (asList || !function.resultsType)
    return objects.release();
  return PyObject_Call(function.resultsType.get(), objects.get(), nullptr);
} catch (const std::exception &error) {
  if (!PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, error.what());
  return nullptr;
}

/// A compiled function as an object of Python, which only this file reads.
struct FunctionObject {
  PyObject_HEAD Compiled *compiled;
};

PyTypeObject functionType = {PyVarObject_HEAD_INIT(nullptr, 0)};

/// The integers of a sequence; throws nothing, sets an exception of Python.
template <typename Number>
bool readNumbers(PyObject *object, std::vector<Number> &numbers) {
  Reference items(PySequence_Fast(object, "expected a sequence of numbers"));
  if (!items)
    return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    long long number =
        PyLong_AsLongLong(PySequence_Fast_GET_ITEM(items.get(), i));
    if (number == -1 && PyErr_Occurred())
      return false;
    numbers.push_back(static_cast<Number>(number));
  }
  return true;
}

/// Reads `(kind, types, bytes, sizes)`.
bool readArgument(PyObject *object, Argument &argument) {
  int kind = 0;
  unsigned long long types = 0;
  long long bytes = 0;
  PyObject *sizes = nullptr;
  if (!PyArg_ParseTuple(object, "iKLO", &kind, &types, &bytes, &sizes))
    return false;
  argument.kind = static_cast<Kind>(kind);
  argument.types = types;
  argument.bytes = bytes;
  return readNumbers(sizes, argument.sizes);
}

bool readArguments(PyObject *list, Compiled &compiled) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); ++i) {
    compiled.arguments.emplace_back();
    if (!readArgument(PyTuple_GET_ITEM(list, i), compiled.arguments.back()))
      return false;
  }
  return true;
}

/// Reads tuples `(type, bytes, rank)`.
bool readResults(PyObject *list, Compiled &compiled) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(list); ++i) {
    int type = 0;
    long long bytes = 0, rank = 0;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(list, i), "iLL", &type, &bytes,
                          &rank))
      return false;
    compiled.results.push_back(
        {static_cast<at::ScalarType>(type), bytes, static_cast<size_t>(rank)});
  }
  return true;
}

PyObject *makeFunction(PyTypeObject *type, PyObject *args, PyObject *) {
  unsigned long long run = 0, resultSizes = 0, workspaceSize = 0;
  PyObject *name = nullptr, *arguments = nullptr, *equals = nullptr,
           *results = nullptr, *resultsType = nullptr;
  int hasEmulator = 0;
  if (!PyArg_ParseTuple(args, "UKKKO!OO!Op", &name, &run, &resultSizes,
                        &workspaceSize, &PyTuple_Type, &arguments, &equals,
                        &PyTuple_Type, &results, &resultsType, &hasEmulator))
    return nullptr;
  auto compiled = std::make_unique<Compiled>();
  auto pointer = [](unsigned long long address) {
    return reinterpret_cast<void *>(static_cast<uintptr_t>(address));
  };
  compiled->run = pointer(run);
  compiled->resultSizes = pointer(resultSizes);
  compiled->workspaceSize = pointer(workspaceSize);
  compiled->hasEmulator = hasEmulator;
  compiled->name = Reference::share(name);
  if (resultsType != Py_None)
    compiled->resultsType = Reference::share(resultsType);
  if (!readArguments(arguments, *compiled) ||
      !readNumbers(equals, compiled->equals) ||
      !readResults(results, *compiled))
    return nullptr;
  PyObject *self = type->tp_alloc(type, 0);
  if (!self)
    return nullptr;
  reinterpret_cast<FunctionObject *>(self)->compiled = compiled.release();
  return self;
}

void deleteFunction(PyObject *self) {
  delete reinterpret_cast<FunctionObject *>(self)->compiled;
  Py_TYPE(self)->tp_free(self);
}

/// `__call__` of the package's functions.
struct MethodObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  /// Python's code, for what is declined here.
  PyObject *otherwise;
};

/// Calls a function with arguments and `out`, null if not given. Returns null
/// and sets no exception if it declines.
PyObject *tryCall(Compiled &compiled, PyObject *const *given, PyObject *out) {
  PyObject *const *outputs = nullptr;
  size_t count = compiled.results.size();
  if (out && (PyTuple_CheckExact(out) || PyList_CheckExact(out))) {
    if (static_cast<size_t>(PySequence_Fast_GET_SIZE(out)) != count)
      return nullptr;
    outputs = PySequence_Fast_ITEMS(out);
  } else if (out && out != Py_None) {
    if (count != 1)
      return nullptr;
    outputs = &out;
  }
  NewTensors made(outputs ? 0 : count);
  if (compiled.call(given, /*inGraph=*/false, outputs, made.get()) !=
      Outcome::Done)
    return nullptr;
  return outputs ? Py_NewRef(out) : wrap(compiled, made.get(), false);
}

PyObject *callMethod(PyObject *self, PyObject *const *given, size_t flags,
                     PyObject *keywords) {
  PyObject *otherwise = reinterpret_cast<MethodObject *>(self)->otherwise;
  auto declined = [&] {
    return PyObject_Vectorcall(otherwise, given, flags, keywords);
  };
  auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
  PyObject *out = nullptr;
  for (Py_ssize_t i = 0; keywords && i < PyTuple_GET_SIZE(keywords); ++i) {
    PyObject *keyword = PyTuple_GET_ITEM(keywords, i);
    PyObject *value = given[count + static_cast<size_t>(i)];
    if (!PyUnicode_CompareWithASCIIString(keyword, "out"))
      out = value;
    else if (value != Py_None ||
             PyUnicode_CompareWithASCIIString(keyword, "stream"))
      return declined();
  }
  // Modes of Python see what Python's code does.
  if (!count || c10::impl::TorchDispatchModeTLS::any_modes_set())
    return declined();
  Reference function(PyObject_GetAttr(given[0], process.fast));
  if (!function) {
    PyErr_Clear();
    return declined();
  }
  if (Py_TYPE(function.get()) != &functionType)
    return declined();
  Compiled &compiled =
      *reinterpret_cast<FunctionObject *>(function.get())->compiled;
  if (count - 1 != compiled.arguments.size())
    return declined();
  PyObject *results = tryCall(compiled, given + 1, out);
  return results || PyErr_Occurred() ? results : declined();
}

PyObject *bindMethod(PyObject *self, PyObject *object, PyObject *) {
  if (!object)
    return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject *makeMethod(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *otherwise = nullptr;
  if (!PyArg_ParseTuple(args, "O", &otherwise))
    return nullptr;
  PyObject *self = type->tp_alloc(type, 0);
  if (!self)
    return nullptr;
  auto *method = reinterpret_cast<MethodObject *>(self);
  method->vectorcall = callMethod;
  method->otherwise = Py_NewRef(otherwise);
  return self;
}

void deleteMethod(PyObject *self) {
  Py_DECREF(reinterpret_cast<MethodObject *>(self)->otherwise);
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject methodType = {PyVarObject_HEAD_INIT(nullptr, 0)};

/// State of a call in a graph.
struct GraphCall {
  size_t argumentCount = 0;
  /// True if the results are a list even if there is one.
  bool asList = false;
  /// Gives the function, or None where there is none for this call; null once
  /// it was asked.
  Reference resolve;
  /// Serves whatever is declined here, with the same arguments.
  Reference otherwise;
  Reference function;
  /// Arguments and dimensions whose sizes decide whether the function or
  /// PyTorch computes a call, the Python object that decides, null if the
  /// function computes all, and its answers.
  std::vector<std::pair<size_t, size_t>> places;
  Reference decide;
  std::map<std::vector<int64_t>, bool> decided;
  const std::pair<const std::vector<int64_t>, bool> *last = nullptr;

  /// Returns 1 if the function computes a call, 0 if PyTorch does or the
  /// tensors are none of the usual ones; -1: an exception is set.
  int isFunctions(PyObject *const *given);
};

int GraphCall::isFunctions(PyObject *const *given) {
  if (!decide)
    return 1;
  int64_t sizes[Call::kMax];
  for (size_t i = 0; i < places.size(); ++i) {
    const at::Tensor *tensor = tensorOf(given[places[i].first]);
    if (!tensor || !isPlain(*tensor) ||
        places[i].second >= static_cast<size_t>(tensor->dim()))
      return 0;
    sizes[i] = tensor->sizes()[places[i].second];
  }
  if (last && std::equal(last->first.begin(), last->first.end(), sizes))
    return last->second;
  std::vector<int64_t> key(sizes, sizes + places.size());
  auto found = decided.find(key);
  if (found == decided.end()) {
    Reference numbers(PyTuple_New(static_cast<Py_ssize_t>(key.size())));
    for (size_t i = 0; numbers && i < key.size(); ++i) {
      PyObject *number = PyLong_FromLongLong(key[i]);
      if (!number)
        return -1;
      PyTuple_SET_ITEM(numbers.get(), static_cast<Py_ssize_t>(i), number);
    }
    Reference answer(numbers ? PyObject_CallOneArg(decide.get(), numbers.get())
                             : nullptr);
    int is = answer ? PyObject_IsTrue(answer.get()) : -1;
    if (is < 0)
      return -1;
    found = decided.emplace(std::move(key), is != 0).first;
  }
  last = &*found;
  return last->second;
}

struct GraphCallObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  GraphCall *call;
  /// Attributes, such as the name that graphs print.
  PyObject *attributes;
};

PyObject *callInGraph(PyObject *self, PyObject *const *given, size_t flags,
                      PyObject *keywords) {
  GraphCall &call = *reinterpret_cast<GraphCallObject *>(self)->call;
  auto declined = [&] {
    return PyObject_Vectorcall(call.otherwise.get(), given, flags, keywords);
  };
  PyObject *const *out = nullptr;
  if (keywords && PyTuple_GET_SIZE(keywords)) {
    // It is the only keyword that graphs write.
    if (PyTuple_GET_SIZE(keywords) != 1)
      return declined();
    out = given + PyVectorcall_NARGS(flags);
  }
  // Profilers see the operator.
  if (static_cast<size_t>(PyVectorcall_NARGS(flags)) != call.argumentCount ||
      at::hasCallbacks() || c10::impl::TorchDispatchModeTLS::any_modes_set())
    return declined();
  int isFunctions = call.isFunctions(given);
  if (isFunctions < 0)
    return nullptr;
  if (!isFunctions)
    return declined();
  if (call.resolve) {
    // Other threads may do the same at the same time; the first function stays.
    Reference resolve = Reference::share(call.resolve.get());
    Reference function(PyObject_CallNoArgs(resolve.get()));
    if (!function)
      return nullptr;
    if (function.get() != Py_None && !call.function)
      call.function = std::move(function);
    call.resolve = Reference();
  }
  if (!call.function)
    return declined();
  Compiled &compiled =
      *reinterpret_cast<FunctionObject *>(call.function.get())->compiled;
  if (out && compiled.results.size() != 1)
    return declined();
  NewTensors made(out ? 0 : compiled.results.size());
  switch (compiled.call(given, /*inGraph=*/true, out, made.get())) {
  case Outcome::Failed:
    return nullptr;
  case Outcome::Declined:
    return declined();
  case Outcome::Done:
    break;
  }
  ++process.graphCalls;
  if (out)
    return Py_NewRef(*out);
  return wrap(compiled, made.get(), call.asList);
}

PyObject *makeGraphCall(PyTypeObject *type, PyObject *args, PyObject *) {
  PyObject *resolve = nullptr, *otherwise = nullptr, *decide = nullptr,
           *places = nullptr;
  int argumentCount = 0, asList = 0;
  if (!PyArg_ParseTuple(args, "ipOOOO!", &argumentCount, &asList, &resolve,
                        &otherwise, &decide, &PyTuple_Type, &places))
    return nullptr;
  auto call = std::make_unique<GraphCall>();
  call->argumentCount = static_cast<size_t>(argumentCount);
  call->asList = asList;
  call->resolve = Reference::share(resolve);
  call->otherwise = Reference::share(otherwise);
  if (decide != Py_None)
    call->decide = Reference::share(decide);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i) {
    int argument = 0, dimension = 0;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(places, i), "ii", &argument,
                          &dimension))
      return nullptr;
    if (argument < 0 || argument >= argumentCount || dimension < 0 ||
        static_cast<size_t>(i) >= Call::kMax) {
      PyErr_SetString(PyExc_ValueError, "expected places of sizes");
      return nullptr;
    }
    call->places.emplace_back(argument, dimension);
  }
  PyObject *self = type->tp_alloc(type, 0);
  if (!self)
    return nullptr;
  auto *object = reinterpret_cast<GraphCallObject *>(self);
  object->vectorcall = callInGraph;
  object->call = call.release();
  return self;
}

int visitGraphCall(PyObject *self, visitproc visit, void *arg) {
  auto *object = reinterpret_cast<GraphCallObject *>(self);
  Py_VISIT(object->attributes);
  if (GraphCall *call = object->call) {
    Py_VISIT(call->resolve.get());
    Py_VISIT(call->otherwise.get());
    Py_VISIT(call->function.get());
    Py_VISIT(call->decide.get());
  }
  return 0;
}

void deleteGraphCall(PyObject *self) {
  PyObject_GC_UnTrack(self);
  auto *object = reinterpret_cast<GraphCallObject *>(self);
  Py_CLEAR(object->attributes);
  delete object->call;
  Py_TYPE(self)->tp_free(self);
}

PyTypeObject graphCallType = {PyVarObject_HEAD_INIT(nullptr, 0)};

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// Finds the at::Tensor in the Python object of a tensor whose TensorImpl has
/// an address; 0 where it is not found.
size_t findTensor(PyObject *object, uintptr_t address) {
  auto *bytes = reinterpret_cast<const char *>(object);
  auto size = static_cast<size_t>(Py_TYPE(object)->tp_basicsize);
  for (size_t at = sizeof(PyObject); at + sizeof(address) <= size;
       at += sizeof(address)) {
    uintptr_t word = 0;
    std::memcpy(&word, bytes + at, sizeof(word));
    if (word == address)
      return at;
  }
  return 0;
}

/// configure(sample, address, parameter_type, emulator_stream, select_device,
/// heed, check): `sample` is a torch.Tensor whose TensorImpl has the address.
PyObject *configure(PyObject *, PyObject *args) {
  PyObject *sample = nullptr, *parameter = nullptr, *heed = nullptr,
           *check = nullptr;
  unsigned long long address = 0, stream = 0, selectDevice = 0;
  if (!PyArg_ParseTuple(args, "OKO!KKOO", &sample, &address, &PyType_Type,
                        &parameter, &stream, &selectDevice, &heed, &check))
    return nullptr;
  size_t offset = findTensor(sample, static_cast<uintptr_t>(address));
  if (!offset) {
    PyErr_SetString(PyExc_RuntimeError,
                    "cannot find the tensor in its Python object");
    return nullptr;
  }
  process.tensor = Py_TYPE(sample);
  process.parameter = reinterpret_cast<PyTypeObject *>(parameter);
  process.offset = offset;
  process.emulatorStream =
      reinterpret_cast<void *>(static_cast<uintptr_t>(stream));
  process.selectDevice = reinterpret_cast<int32_t (*)(int32_t)>(
      static_cast<uintptr_t>(selectDevice));
  // They stay until the process ends.
  Py_INCREF(process.tensor);
  Py_INCREF(parameter);
  process.heed = Py_NewRef(heed);
  process.check = Py_NewRef(check);
  Py_RETURN_NONE;
}

/// scalar_type(tensor): the number of its type of elements.
PyObject *scalarType(PyObject *, PyObject *object) {
  const at::Tensor *tensor = tensorOf(object);
  if (!tensor) {
    PyErr_SetString(PyExc_TypeError, "expected a tensor");
    return nullptr;
  }
  return PyLong_FromLong(static_cast<long>(tensor->scalar_type()));
}

PyObject *takeGraphCalls(PyObject *, PyObject *) {
  return PyLong_FromLongLong(std::exchange(process.graphCalls, 0));
}

PyMethodDef methods[] = {{"configure", configure, METH_VARARGS, nullptr},
                         {"scalar_type", scalarType, METH_O, nullptr},
                         {"take_graph_calls", takeGraphCalls, METH_NOARGS,
                          "Calls in graphs since it was asked before."},
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "ftuner_torch_calls",
                          "Calls of compiled functions with tensors.",
                          -1,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

void describe(PyTypeObject &type, const char *name, size_t size, newfunc make,
              destructor destroy, size_t vectorcall = 0) {
  type.tp_name = name;
  type.tp_basicsize = static_cast<Py_ssize_t>(size);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_new = make;
  type.tp_dealloc = destroy;
  if (!vectorcall)
    return;
  type.tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  type.tp_call = PyVectorcall_Call;
  type.tp_vectorcall_offset = static_cast<Py_ssize_t>(vectorcall);
}

} // namespace

PyMODINIT_FUNC PyInit_ftuner_torch_calls() {
  describe(functionType, "ftuner_torch_calls.Function", sizeof(FunctionObject),
           makeFunction, deleteFunction);
  describe(methodType, "ftuner_torch_calls.Method", sizeof(MethodObject),
           makeMethod, deleteMethod, offsetof(MethodObject, vectorcall));
  methodType.tp_flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  methodType.tp_descr_get = bindMethod;
  describe(graphCallType, "ftuner_torch_calls.GraphCall",
           sizeof(GraphCallObject), makeGraphCall, deleteGraphCall,
           offsetof(GraphCallObject, vectorcall));
  graphCallType.tp_flags |= Py_TPFLAGS_HAVE_GC;
  graphCallType.tp_traverse = visitGraphCall;
  graphCallType.tp_dictoffset = offsetof(GraphCallObject, attributes);
  graphCallType.tp_getattro = PyObject_GenericGetAttr;
  graphCallType.tp_setattro = PyObject_GenericSetAttr;
  Reference module(PyModule_Create(&definition));
  process.fast = PyUnicode_InternFromString("_fast");
  if (!module || !process.fast)
    return nullptr;
  const std::pair<const char *, PyTypeObject *> types[] = {
      {"Function", &functionType},
      {"Method", &methodType},
      {"GraphCall", &graphCallType}};
  for (auto [name, type] : types)
    if (PyType_Ready(type) ||
        PyModule_AddObjectRef(module.get(), name,
                              reinterpret_cast<PyObject *>(type)))
      return nullptr;
  return module.release();
}
