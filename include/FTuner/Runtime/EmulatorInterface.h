/*===- EmulatorInterface.h - Between libftrt and the emulator ---*- C -*-===//
 *
 * libftrt opens libftrt_emulator at run time and runs the kernels of host
 * images (ftrt_host_image) through this table. Plain C, no dependency.
 *
 *===----------------------------------------------------------------------===*/
#ifndef FTUNER_RUNTIME_EMULATORINTERFACE_H
#define FTUNER_RUNTIME_EMULATORINTERFACE_H

#include "FTuner/Runtime/ftrt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever this table, or the list of functions, changes. */
#define FTRT_EMULATOR_VERSION 6

/* The name of the one function that libftrt_emulator exports. */
#define FTRT_EMULATOR_GET_INTERFACE "ftrt_emulator_get_interface"

typedef struct {
  uint32_t version; /* FTRT_EMULATOR_VERSION */
  uint32_t function_count;
  /* What kernels call, in the order of FTuner/Emulator/HostFunctions.def. An
   * image's own table, ftrt_host_image::functions, takes the first
   * ftrt_host_image::function_count of them; an image that asks for more than
   * there are is for a newer emulator. */
  void *const *functions;
  /* Runs a kernel to its end, its blocks on all cores. The image's functions
   * must be filled in. `parameters` as for cuLaunchKernel; a grid of 0 blocks
   * runs nothing and succeeds. Unless it is null, `check` is called about ten
   * times a second, by the thread that launches; once it returns other than 0,
   * the launch ends, with some of its blocks not run or half run.
   *
   * Returns FTRT_SUCCESS, or, after writing words to `message` (at most
   * `capacity` bytes with the terminating zero):
   *   FTRT_ERROR_INVALID_ARGUMENT  the kernel or the parameters are null
   *   FTRT_ERROR_LAUNCH_FAILED     a configuration that no GPU or not this
   *                                kernel accepts, or an error in the kernel
   *   FTRT_ERROR_NO_EMULATOR       this machine's processor lacks instructions
   *                                that host images use
   *   FTRT_ERROR_INTERRUPTED       `check` said so
   * Safe from many threads; launches run one after another. */
  int32_t (*launch)(const ftrt_host_kernel *kernel, uint32_t grid_x,
                    uint32_t block_x, uint32_t dynamic_shared_bytes,
                    void **parameters, int32_t (*check)(void), char *message,
                    uint64_t capacity);
  /* Writes the tensor map that kernels of the emulator take: 128 bytes at
   * `map`, a multiple of 64. The other arguments are those of the driver's
   * cuTensorMapEncodeTiled, in its order and with its numbers; `sizes` in
   * elements, `strides` in bytes, one less than `rank`. Returns FTRT_SUCCESS,
   * or FTRT_ERROR_INVALID_ARGUMENT for what the driver refuses, after writing
   * words as `launch` does. Safe from many threads; allocates nothing unless
   * it fails. */
  int32_t (*encode_tensor_map)(void *map, uint32_t element_type, uint32_t rank,
                               void *address, const uint64_t *sizes,
                               const uint64_t *strides, const uint32_t *box,
                               const uint32_t *element_strides,
                               uint32_t interleave, uint32_t swizzle,
                               uint32_t l2_promotion, uint32_t fill,
                               char *message, uint64_t capacity);
} ftrt_emulator_interface;

/* The one exported symbol of libftrt_emulator; never null, valid for good. */
const ftrt_emulator_interface *ftrt_emulator_get_interface(void);

#ifdef __cplusplus
}
#endif

#endif /* FTUNER_RUNTIME_EMULATORINTERFACE_H */
