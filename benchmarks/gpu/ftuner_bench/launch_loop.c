/* Times calls in a loop of C: nanoseconds of a call on the host.
 *
 * Launches return before their kernels end, and the driver's queue holds about
 * a thousand of them: loops are kept below that, and the caller waits for the
 * device between them. */
#define _POSIX_C_SOURCE 199309L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

/* A compiled function of three tensors and one size (docs/abi.md). */
typedef int32_t (*product)(void *, void *, void *, int64_t, void *, void *);

/* Calls f for each of `count` sizes in turn. Returns nanoseconds of a call, or
 * -1 minus the code of a call that failed. */
double ftuner_bench_call(void *f, void *a, void *b, void *c,
                         const int64_t *sizes, int32_t count, int32_t rounds,
                         void *workspace, void *stream) {
  const product run = (product)(uintptr_t)f;
  const double start = now();
  for (int32_t round = 0; round < rounds; ++round)
    for (int32_t i = 0; i < count; ++i) {
      const int32_t code = run(a, b, c, sizes[i], workspace, stream);
      if (code != 0)
        return -1.0 - code;
    }
  return (now() - start) / ((double)rounds * count);
}

typedef int32_t (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned,
                                 unsigned, unsigned, unsigned, void *, void **,
                                 void **);
typedef int32_t (*load_data)(void **, const void *);
typedef int32_t (*get_function)(void **, void *, const char *);
typedef int32_t (*set_attribute)(void *, int32_t, int32_t);

static void *driver;

/* The kernel `name` of an image, by the driver alone. Returns the driver's
 * code, or -1 where the driver itself cannot be opened. */
int32_t ftuner_bench_load(const char *driver_path, const void *image,
                          const char *name, int32_t shared_bytes,
                          void **function) {
  void *module = NULL;
  driver = dlopen(driver_path, RTLD_NOW);
  if (!driver)
    return -1;
  const load_data load =
      (load_data)(uintptr_t)dlsym(driver, "cuModuleLoadData");
  const get_function get =
      (get_function)(uintptr_t)dlsym(driver, "cuModuleGetFunction");
  const set_attribute set =
      (set_attribute)(uintptr_t)dlsym(driver, "cuFuncSetAttribute");
  if (!load || !get || !set)
    return -1;
  int32_t code = load(&module, image);
  if (code == 0)
    code = get(function, module, name);
  /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  if (code == 0 && shared_bytes > 48 * 1024)
    code = set(*function, 8, shared_bytes);
  return code;
}

/* Nanoseconds of a bare cuLaunchKernel, or -1 minus the code that failed. */
double ftuner_bench_launch(void *function, uint32_t grid, uint32_t block,
                           uint32_t shared_bytes, void *stream,
                           void **parameters, int32_t rounds) {
  const launch_kernel launch =
      (launch_kernel)(uintptr_t)dlsym(driver, "cuLaunchKernel");
  if (!launch)
    return -1.0;
  const double start = now();
  for (int32_t round = 0; round < rounds; ++round) {
    const int32_t code = launch(function, grid, 1, 1, block, 1, 1, shared_bytes,
                                stream, parameters, NULL);
    if (code != 0)
      return -1.0 - code;
  }
  return (now() - start) / rounds;
}
