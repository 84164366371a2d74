// Checks of calls, and times by events, for programs that measure a card.

#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call)                                                                               \
  do {                                                                                            \
    cudaError_t error = (call);                                                                   \
    if (error != cudaSuccess) {                                                                   \
      std::fprintf(stderr, "error: %s: %s\n", #call, cudaGetErrorString(error));                  \
      std::exit(1);                                                                               \
    }                                                                                             \
  } while (0)

struct Timer {
  cudaEvent_t start, end;
  Timer() {
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
  }
  // Least of five, seconds, of work on the default stream, or on `stream`.
  template <typename F> double operator()(F run, cudaStream_t stream = nullptr) {
    run();
    double best = 1e30;
    for (int turn = 0; turn < 5; ++turn) {
      CHECK(cudaEventRecord(start, stream));
      run();
      CHECK(cudaEventRecord(end, stream));
      CHECK(cudaEventSynchronize(end));
      float milliseconds;
      CHECK(cudaEventElapsedTime(&milliseconds, start, end));
      best = std::min(best, milliseconds * 1e-3);
    }
    CHECK(cudaGetLastError());
    return best;
  }
};
