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
#include "Compiled.h"

#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <memory>

// Makes the Python object of a tensor (libtorch_python).
__attribute__((visibility("default"))) PyObject *
THPVariable_Wrap(at::TensorBase &&tensor);

using namespace ftuner_calls;

namespace {

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

/// The documentation of the function that serves what is declined, for help().
PyObject *documentationOfMethod(PyObject *self, void *) {
  return PyObject_GetAttrString(
      reinterpret_cast<MethodObject *>(self)->otherwise, "__doc__");
}

/// Its name, as every function of Python has one.
PyObject *nameOfMethod(PyObject *self, void *) {
  return PyObject_GetAttrString(
      reinterpret_cast<MethodObject *>(self)->otherwise, "__name__");
}

PyGetSetDef methodAttributes[] = {
    {"__doc__", documentationOfMethod, nullptr, nullptr, nullptr},
    {"__name__", nameOfMethod, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

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
  /// A callable that returns the function, or None where there is none for this
  /// call; null after it was called.
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
  methodType.tp_getset = methodAttributes;
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
