/*===- ftrt.h - C API between compiled host code and a kernel launcher ----===*
 *
 * Compiled host code launches its kernels through these functions and through
 * nothing else. The CPU emulator implements them (FTuner/Emulator/Emulator.h);
 * they are made so that a runtime over the CUDA driver can, too. Plain C, no
 * dependency.
 *
 * Every function that returns int32_t returns FTRT_SUCCESS (0) or one of the
 * FTRT_ERROR codes below; ftrt_last_error() then explains it in words. Host
 * code passes a non-zero code on to its own caller.
 *
 *===----------------------------------------------------------------------===*/
#ifndef FTUNER_RUNTIME_FTRT_H
#define FTUNER_RUNTIME_FTRT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FTRT_SUCCESS = 0,
  /* An argument is null or out of its range. */
  FTRT_ERROR_INVALID_ARGUMENT = 1,
  /* No loaded image holds a kernel of that name. */
  FTRT_ERROR_UNKNOWN_KERNEL = 2,
  /* The launch was refused, or the kernel failed while it ran. */
  FTRT_ERROR_LAUNCH_FAILED = 3,
  /* Host code itself gave up through ftrt_fail(). */
  FTRT_ERROR_HOST = 4
};

/* A kernel as host code names it: one static object per entry. */
typedef struct {
  /* Name of the entry in its image, zero-terminated; never null. */
  const char *name;
  /* Belongs to the runtime, which may resolve the kernel once and keep the
   * result here. Starts out as null; host code never reads it. */
  void *handle;
} ftrt_kernel;

/* Launches grid_x blocks of block_x threads on `stream`.
 *
 *   dynamic_shared_bytes  size of the dynamic shared memory of a block, bytes
 *   stream                the caller's stream: a CUstream for the CUDA driver,
 *                         a ftuner::emulator::Emulator * for the emulator
 *   parameters            one pointer per kernel parameter, each to a value of
 *                         the parameter's own type (as for cuLaunchKernel)
 *
 * A grid of 0 blocks launches nothing and succeeds. The emulator finishes the
 * kernel before it returns; the CUDA driver does not wait. */
int32_t ftrt_launch(ftrt_kernel *kernel, uint32_t grid_x, uint32_t block_x,
                    uint32_t dynamic_shared_bytes, void *stream,
                    void **parameters);

/* Records `message` (copied) as the calling thread's last error and returns
 * FTRT_ERROR_HOST. For checks that host code makes by itself, such as sizes
 * that do not fit each other. */
int32_t ftrt_fail(const char *message);

/* The calling thread's last error in words; empty where there was none. Valid
 * until the thread's next call of a function of this API. */
const char *ftrt_last_error(void);

#ifdef __cplusplus
}
#endif

#endif /* FTUNER_RUNTIME_FTRT_H */
