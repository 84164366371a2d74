//===- Results.h - What functions of the driver return ----------*- C++ -*-===//
#ifndef FTUNER_LIB_CUDAEMULATOR_RESULTS_H
#define FTUNER_LIB_CUDAEMULATOR_RESULTS_H

#include <string>

namespace ftuner {

using CUresult = int; // an enum in cuda.h

// RESULT(name, number, name in cuda.h)
#define FTUNER_CUDA_RESULTS(RESULT)                                            \
  RESULT(kSuccess, 0, "CUDA_SUCCESS")                                          \
  RESULT(kInvalidValue, 1, "CUDA_ERROR_INVALID_VALUE")                         \
  RESULT(kOutOfMemory, 2, "CUDA_ERROR_OUT_OF_MEMORY")                          \
  RESULT(kInvalidDevice, 101, "CUDA_ERROR_INVALID_DEVICE")                     \
  RESULT(kInvalidImage, 200, "CUDA_ERROR_INVALID_IMAGE")                       \
  RESULT(kNoBinaryForGpu, 209, "CUDA_ERROR_NO_BINARY_FOR_GPU")                 \
  RESULT(kInvalidHandle, 400, "CUDA_ERROR_INVALID_HANDLE")                     \
  RESULT(kIllegalState, 401, "CUDA_ERROR_ILLEGAL_STATE")                       \
  RESULT(kNotFound, 500, "CUDA_ERROR_NOT_FOUND")                               \
  RESULT(kLaunchFailed, 719, "CUDA_ERROR_LAUNCH_FAILED")                       \
  RESULT(kNotSupported, 801, "CUDA_ERROR_NOT_SUPPORTED")                       \
  RESULT(kCaptureUnsupported, 900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")    \
  RESULT(kCaptureInvalidated, 901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED")    \
  RESULT(kCaptureMerge, 902, "CUDA_ERROR_STREAM_CAPTURE_MERGE")                \
  RESULT(kCaptureUnmatched, 903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED")        \
  RESULT(kCaptureUnjoined, 904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED")          \
  RESULT(kCaptureIsolation, 905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION")        \
  RESULT(kCaptureImplicit, 906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT")          \
  RESULT(kCapturedEvent, 907, "CUDA_ERROR_CAPTURED_EVENT")                     \
  RESULT(kCaptureWrongThread, 908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD")   \
  RESULT(kInvalidClusterSize, 912, "CUDA_ERROR_INVALID_CLUSTER_SIZE")

enum : CUresult {
#define FTUNER_RESULT(name, number, text) name = number,
  FTUNER_CUDA_RESULTS(FTUNER_RESULT)
#undef FTUNER_RESULT
};

/// Keeps words about an error, which `cuGetErrorString` gives, prints them, and
/// returns the error.
CUresult fail(CUresult error, const std::string &words);

} // namespace ftuner

#endif // FTUNER_LIB_CUDAEMULATOR_RESULTS_H
