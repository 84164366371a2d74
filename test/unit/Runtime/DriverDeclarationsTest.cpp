//===- DriverDeclarationsTest.cpp - CudaDriver.h against cuda.h -----------===//
//
// Checked by the compiler: that our declarations pass the same values as those
// of cuda.h, which are in the global namespace here, and that our symbols are
// those that cuda.h means by the names (it defines cuMemAlloc as
// cuMemAlloc_v2).
//
//===----------------------------------------------------------------------===//
#include <cuda.h>

#include "../../../lib/Runtime/CudaDriver.h"
#include <gtest/gtest.h>
#include <string_view>
#include <type_traits>

namespace {
/// How a value is passed: its size and, of a pointer, what it points to (0
/// where that is no value).
template <typename T>
constexpr size_t pointeeBytes() {
  using Pointee = std::remove_pointer_t<T>;
  if constexpr (std::is_scalar_v<Pointee>)
    return sizeof(Pointee);
  return 0;
}
template <typename T>
constexpr size_t describe() {
  if constexpr (std::is_pointer_v<T>)
    return 100 + pointeeBytes<T>();
  else
    return sizeof(T);
}

template <typename A, typename B>
struct IsSameCall : std::false_type {};
template <typename R, typename S, typename... A, typename... B>
struct IsSameCall<R (*)(A...), S (*)(B...)> {
  static constexpr bool getValue() {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return describe<R>() == describe<S>() &&
             (... && (describe<A>() == describe<B>()));
  }
  static constexpr bool value = getValue();
};

#define FTRT_STRING(text) #text
#define FTRT_EXPANDED_STRING(text) FTRT_STRING(text)
/// Drivers before CUDA 12.8 have the first version alone, and later ones have
/// it, too; its parameters are the same.
constexpr std::string_view kFirstVersions[] = {"cuEventElapsedTime"};
constexpr bool isSymbol(std::string_view symbol, std::string_view meant) {
  for (std::string_view first : kFirstVersions)
    if (symbol == first)
      return true;
  return symbol == meant;
}

#define FTRT_CHECK(name, symbol, parameters)                                   \
  static_assert(IsSameCall<decltype(&::name), int(*) parameters>::value,       \
                "parameters of " #name);                                       \
  static_assert(isSymbol(#symbol, FTRT_EXPANDED_STRING(name)),                 \
                "symbol of " #name);
FTRT_DRIVER_FUNCTIONS(FTRT_CHECK)
FTRT_OPTIONAL_DRIVER_FUNCTIONS(FTRT_CHECK)
#undef FTRT_CHECK

#define FTRT_CHECK_VALUE(name)                                                 \
  static_assert(ftrt::cuda::name == static_cast<int>(::name), #name);
FTRT_CHECK_VALUE(CUDA_SUCCESS)
FTRT_CHECK_VALUE(CUDA_ERROR_INVALID_VALUE)
FTRT_CHECK_VALUE(CUDA_ERROR_OUT_OF_MEMORY)
FTRT_CHECK_VALUE(CUDA_ERROR_NOT_INITIALIZED)
FTRT_CHECK_VALUE(CUDA_ERROR_DEINITIALIZED)
FTRT_CHECK_VALUE(CUDA_ERROR_NO_DEVICE)
FTRT_CHECK_VALUE(CUDA_ERROR_INVALID_DEVICE)
FTRT_CHECK_VALUE(CUDA_ERROR_INVALID_CONTEXT)
FTRT_CHECK_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU)
FTRT_CHECK_VALUE(CUDA_ERROR_INVALID_PTX)
FTRT_CHECK_VALUE(CUDA_ERROR_INVALID_HANDLE)
FTRT_CHECK_VALUE(CUDA_ERROR_NOT_FOUND)
FTRT_CHECK_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS)
FTRT_CHECK_VALUE(CUDA_ERROR_LAUNCH_TIMEOUT)
FTRT_CHECK_VALUE(CUDA_ERROR_ASSERT)
FTRT_CHECK_VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR)
FTRT_CHECK_VALUE(CUDA_ERROR_LAUNCH_FAILED)
FTRT_CHECK_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
FTRT_CHECK_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)
FTRT_CHECK_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
FTRT_CHECK_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
FTRT_CHECK_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
FTRT_CHECK_VALUE(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)
FTRT_CHECK_VALUE(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)
FTRT_CHECK_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
FTRT_CHECK_VALUE(CU_JIT_ERROR_LOG_BUFFER)
FTRT_CHECK_VALUE(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
FTRT_CHECK_VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL)
FTRT_CHECK_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
FTRT_CHECK_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED)
FTRT_CHECK_VALUE(CU_STREAM_NON_BLOCKING)
FTRT_CHECK_VALUE(CU_EVENT_DEFAULT)
#undef FTRT_CHECK_VALUE

TEST(DriverDeclarationsTest, AgreeWithTheHeaderOfCuda) {
  // The checks above are the test.
}
} // namespace
