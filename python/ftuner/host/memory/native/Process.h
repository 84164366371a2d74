//===- Process.h - Python objects and their tensors -------------*- C++ -*-===//
#ifndef FTUNER_MEMORY_PROCESS_H
#define FTUNER_MEMORY_PROCESS_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace ftuner_calls {

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
inline Process process;

/// The tensor of a plain tensor's Python object, null for other objects.
inline const at::Tensor *tensorOf(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  if (type != process.tensor && type != process.parameter)
    return nullptr;
  return reinterpret_cast<const at::Tensor *>(
      reinterpret_cast<const char *>(object) + process.offset);
}

/// The dispatch keys that a tensor may have that is nothing but memory of a
/// backend.
inline uint64_t plainKeys(c10::DispatchKey key, c10::BackendComponent backend) {
  return (c10::DispatchKeySet(key) |
          c10::getAutogradRelatedKeySetFromBackend(backend) |
          c10::getAutocastRelatedKeySetFromBackend(backend))
      .raw_repr();
}
inline const uint64_t plainCpuKeys =
    plainKeys(c10::DispatchKey::CPU, c10::BackendComponent::CPUBit);
inline const uint64_t plainCudaKeys =
    plainKeys(c10::DispatchKey::CUDA, c10::BackendComponent::CUDABit);

/// Returns whether a tensor is nothing but memory of a CPU or of a GPU of CUDA.
inline bool isPlain(const at::Tensor &tensor) {
  uint64_t keys = tensor.key_set().raw_repr();
  return tensor.defined() &&
         (!(keys & ~plainCpuKeys) || !(keys & ~plainCudaKeys));
}

} // namespace ftuner_calls

#endif // FTUNER_MEMORY_PROCESS_H
