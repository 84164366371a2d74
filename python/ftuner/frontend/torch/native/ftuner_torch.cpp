//===- ftuner_torch.cpp - Packaged functions without Python ---------------===//
//
// libftuner_torch.so: the operator ftuner::packaged_product of PyTorch, which
// packages of AOTInductor call, for programs without Python. It is compiled
// against the stable ABI of PyTorch where packages are made or run, by
// `ftuner torch-library` (docs/torch-export.md).
//
// A call carries the compiled library of its function as a tensor of bytes, and
// a text that describes the function (`interface`, written and documented by
// ftuner/torch/packaged.py). The first call of a process with an interface
// loads the library; libftrt.so.1, which runs it, is opened then.
//
// Loading this library registers the operator, unless the process has one
// already: that of Python's package, or of another copy of this library. Either
// does the same, and the first one stays.
//
//===----------------------------------------------------------------------===//
#include "Interface.h"
#include "PyTorch.h"

#include <FTuner/Runtime/ftrt.h>
#include <Parameters.h>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <shared_mutex>

using namespace ftuner_torch;
using ftuner_native::Parameters;

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

extern "C" {
// Of PyTorch with CUDA.
__attribute__((weak)) AOTITorchError
aoti_torch_get_current_cuda_stream(int32_t device_index, void **ret_stream);
}

namespace {

const char kSchema[] = "packaged_product(Tensor[] arguments, Tensor library, "
                       "str interface) -> Tensor";

/// Workspaces begin at multiples of this, in bytes.
constexpr int64_t kAlignment = 256;

//===----------------------------------------------------------------------===//
// The runtime, libftrt.so.1
//===----------------------------------------------------------------------===//

struct Runtime {
  decltype(&ftrt_last_error) lastError;
  decltype(&ftrt_prepare) prepare;
  decltype(&ftrt_emulator_stream) emulatorStream;
  decltype(&ftrt_device_select) selectDevice;

  /// The runtime of the process. Looks for it again after a failure.
  static const Runtime &get() {
    static const Runtime runtime;
    return runtime;
  }

  [[noreturn]] void failWith(const std::string &action) const {
    fail(action + ": " + lastError());
  }

private:
  Runtime() {
    // Compiled libraries name it as what they need, so they find this one.
    void *library = dlopen("libftrt.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
      fail(std::string("cannot load FTuner's runtime: ") + dlerror() +
           "; put libftrt.so.1 beside libftuner_torch.so or on the loader's "
           "search path");
    find(library, "ftrt_last_error", lastError);
    find(library, "ftrt_prepare", prepare);
    find(library, "ftrt_emulator_stream", emulatorStream);
    find(library, "ftrt_device_select", selectDevice);
  }

  template <typename Pointer>
  static void find(void *library, const char *name, Pointer &pointer) {
    pointer = reinterpret_cast<Pointer>(dlsym(library, name));
    if (!pointer)
      fail(std::string("FTuner's runtime has no function '") + name + "'");
  }
};

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

std::string describe(const Tensor &tensor) {
  std::string text = "[";
  const int64_t *sizes = tensor.sizes();
  for (int64_t i = 0, rank = tensor.rank(); i < rank; ++i)
    text += (i ? ", " : "") + std::to_string(sizes[i]);
  return text + "]";
}

/// Makes a CUDA device the current one.
class DeviceGuard {
public:
  explicit DeviceGuard(Device device) {
    if (device.isCuda())
      check(aoti_torch_create_device_guard(device.index, &guard),
            "select a device");
  }
  ~DeviceGuard() {
    if (guard)
      aoti_torch_delete_device_guard(guard);
  }
  DeviceGuard(const DeviceGuard &) = delete;

private:
  DeviceGuardHandle guard = nullptr;
};

void *streamOf(Device device, const Runtime &runtime) {
  if (device.isCpu())
    return runtime.emulatorStream();
  if (!device.isCuda())
    fail("expected tensors on cpu or cuda");
  if (!aoti_torch_get_current_cuda_stream)
    fail("expected a PyTorch with CUDA for tensors on cuda");
  // A new thread has no context yet.
  if (runtime.selectDevice(device.index) != FTRT_SUCCESS)
    runtime.failWith("cannot select device " + std::to_string(device.index));
  void *stream = nullptr;
  check(aoti_torch_get_current_cuda_stream(device.index, &stream),
        "tell the current stream");
  return stream;
}

/// A function of a package, loaded for the rest of the process.
class Function {
public:
  /// Checks and loads the library, whose bytes the tensor has.
  Function(std::string_view text, const Tensor &library);

  /// Calls it with tensors, and then its scalars as tensors of one element.
  Tensor operator()(std::vector<Tensor> arguments) const;

private:
  [[noreturn]] void failIn(const std::string &text) const {
    fail(interface.name + ": " + text);
  }
  void load(const void *bytes);
  void *find(void *library, const std::string &symbol) const {
    void *found = dlsym(library, symbol.c_str());
    if (!found)
      failIn("the packaged library has no '" + symbol + "'");
    return found;
  }
  /// Checks an argument, copies it where functions could not read it, and adds
  /// its dynamic sizes.
  void accept(size_t position, Tensor &tensor, Device device,
              std::vector<int64_t> &symbols, std::vector<int64_t> &sizes) const;
  void prepare(void *stream, const Runtime &runtime) const;

  Interface interface;
  void *run = nullptr, *resultSizes = nullptr, *workspaceSize = nullptr;
  ftrt_module *module = nullptr;
  mutable std::atomic<bool> isPrepared{false};
};

Function::Function(std::string_view text, const Tensor &library)
    : interface(text) {
  if (library.dtype() != aoti_torch_dtype_uint8() ||
      library.elements() != interface.bytes)
    failIn("expected a library of " + std::to_string(interface.bytes) +
           " bytes, but got a tensor of " + std::to_string(library.elements()) +
           " elements");
  Device device = Device::holding(library);
  Tensor copy;
  if (!device.isCpu() || !library.isContiguous())
    copy = copyTo(library, {aoti_torch_device_type_cpu(), 0});
  const void *bytes = (copy.get() ? copy : library).data();
  uint32_t sum = extendChecksum(0, text.data(), interface.checkedCharacters);
  sum = extendChecksum(sum, bytes, static_cast<size_t>(interface.bytes));
  if (sum != interface.checksum)
    failIn("the package is damaged: the checksum of the function is wrong");
  load(bytes);
}

void Function::load(const void *bytes) {
  Runtime::get();
  std::string file = "ftuner-" + interface.name.substr(0, 200);
  int descriptor = memfd_create(file.c_str(), MFD_CLOEXEC | MFD_EXEC);
  if (descriptor < 0 && errno == EINVAL) // A Linux before 6.3.
    descriptor = memfd_create(file.c_str(), MFD_CLOEXEC);
  if (descriptor < 0)
    failIn(std::string("cannot make a file in memory: ") +
           std::strerror(errno));
  auto rest = static_cast<const char *>(bytes);
  for (int64_t left = interface.bytes; left > 0;) {
    ssize_t written = write(descriptor, rest, static_cast<size_t>(left));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      int error = errno;
      close(descriptor);
      failIn(std::string("cannot write a file in memory: ") +
             std::strerror(error));
    }
    rest += written;
    left -= written;
  }
  // The loader knows a library by its path again, so the descriptor, which is
  // part of the path, stays open.
  std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  void *opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!opened) {
    std::string words = dlerror();
    close(descriptor);
    failIn("cannot load the packaged library: " + words);
  }
  module = static_cast<ftrt_module *>(find(opened, "ftuner_module"));
  if (module->abi_version != FTRT_ABI_VERSION)
    failIn("expected a library for version " +
           std::to_string(FTRT_ABI_VERSION) + " of the runtime, but got " +
           std::to_string(module->abi_version));
  run = find(opened, interface.run);
  resultSizes = find(opened, interface.resultSizes);
  workspaceSize = find(opened, interface.workspaceSize);
}

void Function::accept(size_t position, Tensor &tensor, Device device,
                      std::vector<int64_t> &symbols,
                      std::vector<int64_t> &sizes) const {
  const Argument &argument = interface.arguments[position];
  std::string where = "argument " + std::to_string(position);
  if (tensor.dtype() != argument.type.dtype)
    failIn(where + ": expected elements of type " + argument.type.name +
           ", but got another type");
  if (Device::holding(tensor) != device)
    failIn(where + ": expected a tensor on the device of argument 0");
  int64_t rank = static_cast<int64_t>(argument.dimensions.size());
  if (tensor.rank() != rank)
    failIn(where + ": expected " + std::to_string(rank) +
           " dimensions, but got shape " + describe(tensor));
  const int64_t *given = tensor.sizes();
  for (int64_t i = 0; i < rank; ++i) {
    const Dimension &dimension = argument.dimensions[i];
    int64_t expected = dimension.size;
    if (expected < 0) {
      sizes.push_back(given[i]);
      if (dimension.symbol < 0)
        continue;
      int64_t &known = symbols[dimension.symbol];
      if (known < 0)
        known = given[i];
      expected = known;
    }
    if (given[i] != expected)
      failIn(where + ": expected size " + std::to_string(expected) +
             " of dimension " + std::to_string(i) + ", but got shape " +
             describe(tensor));
  }
  if (!tensor.isContiguous() ||
      reinterpret_cast<uintptr_t>(tensor.data()) % argument.type.bytes())
    tensor = copyTo(tensor, device);
}

void Function::prepare(void *stream, const Runtime &runtime) const {
  // After a failure the next call tries again.
  if (isPrepared.load(std::memory_order_acquire))
    return;
  if (runtime.prepare(module, stream) != FTRT_SUCCESS)
    runtime.failWith(interface.name);
  isPrepared.store(true, std::memory_order_release);
}

Tensor Function::operator()(std::vector<Tensor> arguments) const {
  size_t tensors = interface.arguments.size();
  if (arguments.size() != tensors + static_cast<size_t>(interface.scalars))
    failIn("expected " + std::to_string(tensors) + " tensors and " +
           std::to_string(interface.scalars) + " scalars, but got " +
           std::to_string(arguments.size()) + " arguments");
  const Runtime &runtime = Runtime::get();
  Device device = Device::holding(arguments[0]);
  DeviceGuard guard(device);
  std::vector<int64_t> symbols(interface.symbols.size(), -1), sizes;
  for (size_t i = 0; i < tensors; ++i)
    accept(i, arguments[i], device, symbols, sizes);
  std::vector<float> numbers;
  for (size_t i = tensors; i < arguments.size(); ++i)
    numbers.push_back(readScalar(arguments[i]));

  // The pointers of arguments, result, workspace and stream.
  if (tensors + sizes.size() + 3 > Parameters::kMaxIntegers)
    fail("expected at most " + std::to_string(Parameters::kMaxIntegers) +
         " pointers and sizes");
  if (numbers.size() > Parameters::kMaxScalars)
    fail("expected at most " + std::to_string(Parameters::kMaxScalars) +
         " scalars");
  auto addNumbers = [&](Parameters &parameters) {
    for (int64_t size : sizes)
      parameters.add(size);
    for (float number : numbers) {
      uint32_t bits;
      std::memcpy(&bits, &number, sizeof(bits));
      parameters.addScalar(bits);
    }
  };
  Parameters asked;
  addNumbers(asked);
  std::vector<int64_t> resultShape(interface.result.dimensions.size());
  Parameters resultAsked = asked;
  resultAsked.add(resultShape.data());
  if (resultAsked.call<int32_t>(resultSizes) != FTRT_SUCCESS)
    runtime.failWith(interface.name);
  int64_t workspaceBytes = asked.call<int64_t>(workspaceSize);
  if (workspaceBytes < 0)
    runtime.failWith(interface.name);

  void *stream = streamOf(device, runtime);
  prepare(stream, runtime);
  Tensor result = allocate(resultShape, interface.result.type.dtype, device);
  Tensor workspace;
  uintptr_t workspaceAddress = 0;
  if (workspaceBytes) {
    workspace = allocate({workspaceBytes + kAlignment - 1},
                         aoti_torch_dtype_uint8(), device);
    workspaceAddress = reinterpret_cast<uintptr_t>(workspace.data());
    workspaceAddress =
        (workspaceAddress + kAlignment - 1) / kAlignment * kAlignment;
  }

  Parameters given;
  for (size_t i = 0; i < tensors; ++i)
    given.add(arguments[i].data());
  given.add(result.data());
  addNumbers(given);
  given.add(static_cast<int64_t>(workspaceAddress));
  given.add(stream);
  if (given.call<int32_t>(run) != FTRT_SUCCESS)
    runtime.failWith(interface.name);
  return result;
}

/// The function of an interface, loaded at the first call that needs it.
const Function &functionOf(std::string_view interface, const Tensor &library) {
  // Never destroyed, since threads may outlive the end of the program's main.
  static auto &functions =
      *new std::map<std::string, std::unique_ptr<Function>, std::less<>>;
  static auto &mutex = *new std::shared_mutex;
  {
    std::shared_lock<std::shared_mutex> lock(mutex);
    auto found = functions.find(interface);
    if (found != functions.end())
      return *found->second;
  }
  std::unique_lock<std::shared_mutex> lock(mutex);
  auto found = functions.find(interface);
  if (found == functions.end())
    found =
        functions
            .emplace(interface, std::make_unique<Function>(interface, library))
            .first;
  return *found->second;
}

//===----------------------------------------------------------------------===//
// The operator
//===----------------------------------------------------------------------===//

void callOperator(StableIValue *stack, uint64_t, uint64_t) {
  std::vector<Tensor> arguments = takeTensors(stack[0]);
  Tensor library(unbox<AtenTensorHandle>(stack[1]));
  Text interface(stack[2]);
  const Function &function = functionOf(interface.view(), library);
  Tensor result = function(std::move(arguments));
  stack[0] = torch::stable::detail::from(result.release());
}

struct Registration {
  Registration() {
    // What is registered stays until the process ends.
    TorchLibraryHandle definitions = nullptr, implementations = nullptr;
    if (aoti_torch_library_init_fragment("ftuner", __FILE__, __LINE__,
                                         &definitions) != AOTI_TORCH_SUCCESS)
      return;
    // Fails where the operator is defined already.
    if (aoti_torch_library_def(definitions, kSchema) != AOTI_TORCH_SUCCESS)
      return;
    if (aoti_torch_library_init_impl("ftuner", "CompositeExplicitAutograd",
                                     __FILE__, __LINE__,
                                     &implementations) == AOTI_TORCH_SUCCESS)
      torch_library_impl(implementations, "packaged_product", callOperator,
                         TORCH_ABI_VERSION);
  }
};

const Registration registration;

} // namespace
