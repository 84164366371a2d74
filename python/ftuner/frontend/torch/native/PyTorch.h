//===- PyTorch.h - Values from PyTorch --------------------------*- C++ -*-===//
#ifndef FTUNER_TORCH_PYTORCH_H
#define FTUNER_TORCH_PYTORCH_H

#ifndef TORCH_TARGET_VERSION
// The oldest PyTorch that the compiled library runs with, 2.10: the first one
// whose stable ABI has lists and texts.
#define TORCH_TARGET_VERSION (((0ULL + 2) << 56) | ((0ULL + 10) << 48))
#endif

#include <torch/csrc/stable/library.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

extern "C" {
// Of PyTorch 2.13 and later.
__attribute__((weak)) const char *torch_exception_get_what_without_backtrace();
}

namespace ftuner_torch {

[[noreturn]] inline void fail(const std::string &text) {
  throw std::runtime_error("ftuner::packaged_product: " + text);
}

/// Throws where a function of PyTorch failed.
inline void check(AOTITorchError code, const char *action) {
  if (code == AOTI_TORCH_SUCCESS)
    return;
  std::string text = std::string("PyTorch cannot ") + action;
  if (torch_exception_get_what_without_backtrace)
    text += std::string(": ") + torch_exception_get_what_without_backtrace();
  fail(text);
}

/// A handle in the stack of an operator's call.
template <typename Handle>
Handle unbox(StableIValue value) {
  return torch::stable::detail::to<Handle>(value);
}

/// A tensor that this library has a reference to.
class Tensor {
public:
  explicit Tensor(AtenTensorHandle handle = nullptr) : handle(handle) {}
  Tensor(Tensor &&other) : handle(std::exchange(other.handle, nullptr)) {}
  Tensor &operator=(Tensor &&other) {
    std::swap(handle, other.handle);
    return *this;
  }
  ~Tensor() {
    if (handle)
      aoti_torch_delete_tensor_object(handle);
  }

  AtenTensorHandle get() const { return handle; }
  AtenTensorHandle release() { return std::exchange(handle, nullptr); }

  int64_t rank() const {
    int64_t value = 0;
    check(aoti_torch_get_dim(handle, &value), "read a tensor's rank");
    return value;
  }
  const int64_t *sizes() const {
    int64_t *value = nullptr;
    check(aoti_torch_get_sizes(handle, &value), "read a tensor's sizes");
    return value;
  }
  int64_t elements() const {
    int64_t value = 0;
    check(aoti_torch_get_numel(handle, &value), "count a tensor's elements");
    return value;
  }
  int32_t dtype() const {
    int32_t value = 0;
    check(aoti_torch_get_dtype(handle, &value), "read a tensor's type");
    return value;
  }
  int32_t deviceType() const {
    int32_t value = 0;
    check(aoti_torch_get_device_type(handle, &value), "read a tensor's device");
    return value;
  }
  int32_t deviceIndex() const {
    int32_t value = 0;
    check(aoti_torch_get_device_index(handle, &value),
          "read a tensor's device");
    return value;
  }
  bool isContiguous() const {
    bool value = false;
    check(aoti_torch_is_contiguous(handle, &value), "read a tensor's strides");
    return value;
  }
  void *data() const {
    void *value = nullptr;
    check(aoti_torch_get_data_ptr(handle, &value), "read a tensor's address");
    return value;
  }

private:
  AtenTensorHandle handle;
};

struct Device {
  int32_t type;
  int32_t index;

  static Device holding(const Tensor &tensor) {
    return {tensor.deviceType(), tensor.deviceIndex()};
  }
  bool isCpu() const { return type == aoti_torch_device_type_cpu(); }
  bool isCuda() const { return type == aoti_torch_device_type_cuda(); }
  bool operator!=(const Device &other) const {
    return type != other.type || index != other.index;
  }
};

inline Tensor allocate(const std::vector<int64_t> &sizes, int32_t dtype,
                       Device device) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  AtenTensorHandle handle = nullptr;
  check(aoti_torch_empty_strided(static_cast<int64_t>(sizes.size()),
                                 sizes.data(), strides.data(), dtype,
                                 device.type, device.index, &handle),
        "allocate a tensor");
  return Tensor(handle);
}

/// A copy of the tensor, contiguous and aligned, on a device.
inline Tensor copyTo(const Tensor &tensor, Device device) {
  const int64_t *sizes = tensor.sizes();
  Tensor copy =
      allocate({sizes, sizes + tensor.rank()}, tensor.dtype(), device);
  check(aoti_torch_copy_(copy.get(), tensor.get(), /*non_blocking=*/0),
        "copy a tensor");
  return copy;
}

inline std::vector<Tensor> takeTensors(StableIValue value) {
  // The list is ours, and so is a reference to each of its elements.
  std::unique_ptr<StableListOpaque, void (*)(StableListHandle)> list(
      unbox<StableListHandle>(value),
      [](StableListHandle handle) { torch_delete_list(handle); });
  size_t size = 0;
  check(torch_list_size(list.get(), &size), "read a list");
  std::vector<Tensor> tensors;
  tensors.reserve(size);
  for (size_t i = 0; i < size; ++i) {
    StableIValue element = 0;
    check(torch_list_get_item(list.get(), i, &element), "read a list");
    tensors.emplace_back(unbox<AtenTensorHandle>(element));
  }
  return tensors;
}

/// A text of PyTorch's. Its own conversion to std::string would never free it.
class Text {
public:
  explicit Text(StableIValue value)
      : handle(unbox<StringHandle>(value),
               [](StringHandle handle) { torch_delete_string(handle); }) {}

  std::string_view view() const {
    size_t length = 0;
    const char *data = nullptr;
    check(torch_string_length(handle.get(), &length), "read a text");
    check(torch_string_c_str(handle.get(), &data), "read a text");
    return {data, length};
  }

private:
  std::unique_ptr<StringOpaque, void (*)(StringHandle)> handle;
};

/// The only element of a tensor, as f32.
inline float readScalar(const Tensor &tensor) {
  if (tensor.elements() != 1)
    fail("expected scalars of one element, but got one of " +
         std::to_string(tensor.elements()));
  int32_t dtype = tensor.dtype();
  // Reads it if it is of the type, waiting for the device.
  auto read = [&](int32_t type, auto *item, auto value, float *result) {
    if (dtype != type)
      return false;
    check(item(tensor.get(), &value), "read a scalar");
    *result = static_cast<float>(value);
    return true;
  };
  float result = 0;
  if (read(aoti_torch_dtype_float32(), aoti_torch_item_float32, float(),
           &result) ||
      read(aoti_torch_dtype_float64(), aoti_torch_item_float64, double(),
           &result) ||
      read(aoti_torch_dtype_float16(), aoti_torch_item_float16, c10::Half(),
           &result) ||
      read(aoti_torch_dtype_bfloat16(), aoti_torch_item_bfloat16,
           c10::BFloat16(), &result) ||
      read(aoti_torch_dtype_int64(), aoti_torch_item_int64, int64_t(),
           &result) ||
      read(aoti_torch_dtype_int32(), aoti_torch_item_int32, int32_t(),
           &result) ||
      read(aoti_torch_dtype_bool(), aoti_torch_item_bool, bool(), &result))
    return result;
  fail("expected scalars that are numbers, but got one of PyTorch's type " +
       std::to_string(dtype));
}

} // namespace ftuner_torch

#endif // FTUNER_TORCH_PYTORCH_H
