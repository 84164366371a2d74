/*===- ftrt.h - C API between compiled code and a device --------*- C -*-===//
 *
 * Compiled host code launches its kernels through these functions and through
 * nothing else. libftrt implements them over the CUDA driver, which it opens at
 * run time, and over the CPU emulator (libftrt_emulator, opened at run time,
 * too); ftuner-run implements those that host code needs by itself. Plain C, no
 * dependency.
 *
 * Every function that returns int32_t returns FTRT_SUCCESS (0) or one of the
 * FTRT_ERROR codes below; ftrt_last_error() then explains it in words, those of
 * the driver included. Host code passes a non-zero code on to its own caller.
 *
 * Every function may be called from any thread at any time, unless it says
 * otherwise. Functions on streams and memory act on the CUDA context that is
 * current to the calling thread (ftrt_device_select, or the one that a
 * framework made current), or on the emulator where the stream is
 * ftrt_emulator_stream().
 *
 *===----------------------------------------------------------------------===*/
#ifndef FTUNER_RUNTIME_FTRT_H
#define FTUNER_RUNTIME_FTRT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever a compiled library of before could not run any more. */
#define FTRT_ABI_VERSION 1

enum {
  FTRT_SUCCESS = 0,
  /* An argument is null or out of its range. */
  FTRT_ERROR_INVALID_ARGUMENT = 1,
  /* No image of the module holds a kernel of that name. */
  FTRT_ERROR_UNKNOWN_KERNEL = 2,
  /* The launch was refused, or the kernel failed while it ran. */
  FTRT_ERROR_LAUNCH_FAILED = 3,
  /* Host code itself gave up through ftrt_fail(). */
  FTRT_ERROR_HOST = 4,
  /* No CUDA driver could be opened, it is too old, or it has no device. */
  FTRT_ERROR_NO_DRIVER = 5,
  /* The driver refused something other than a launch. */
  FTRT_ERROR_DRIVER = 6,
  /* The module holds no image for this device. */
  FTRT_ERROR_NO_IMAGE = 7,
  /* The emulator library could not be opened. */
  FTRT_ERROR_NO_EMULATOR = 8,
  /* The module was compiled for another version of this API. */
  FTRT_ERROR_VERSION = 9,
  /* The caller's own check ended a launch (ftrt_set_interrupt_check). */
  FTRT_ERROR_INTERRUPTED = 10
};

/*===----------------------------------------------------------------------===*
 * Compiled modules: static data of a compiled library
 *===----------------------------------------------------------------------===*/

enum {
  FTRT_IMAGE_PTX = 1,   /* text; `bytes` counts its terminating zero */
  FTRT_IMAGE_CUBIN = 2, /* ELF for one architecture */
  FTRT_IMAGE_HOST = 3   /* an ftrt_host_image, for the emulator */
};

enum {
  /* Added to the architecture of PTX and cubins that run on devices of that
   * compute capability alone, neither older nor newer (90 for sm_90a). A
   * runtime that does not know it takes them for those of a device to come. */
  FTRT_ARCHITECTURE_EXACT = 1 << 16
};

/* The kernels in one form. */
typedef struct {
  uint32_t kind;
  /* Compute capability times 10 (90 for sm_90): of a cubin, the one it is for
   * (it runs on devices of the same major and the same or a higher minor
   * version); of PTX, the least one; or FTRT_ARCHITECTURE_EXACT with the only
   * one. 0 for a host image. */
  uint32_t architecture;
  const void *data;
  uint64_t bytes; /* of a host image the size of ftrt_host_image */
} ftrt_image;

/* A kernel compiled for the emulator. */
typedef struct {
  const char *name;
  /* Runs one thread; `parameters` as for cuLaunchKernel. */
  void (*entry)(void **parameters);
  uint32_t static_shared_bytes;
  /* Threads of a block; launches with another number are refused. */
  uint16_t block_x;
  /* Blocks of a cluster, 0 or 1 without clusters; grids that are no multiple
   * are refused. */
  uint16_t cluster_x;
} ftrt_host_kernel;

typedef struct {
  /* What the kernels call in the emulator; filled in by the runtime before the
   * first launch. The order is that of FTuner/Emulator/HostFunctions.def. */
  void **functions;
  uint32_t function_count;
  uint32_t kernel_count;
  const ftrt_host_kernel *kernels;
} ftrt_host_image;

struct ftrt_module;

/* A kernel as host code names it: one static object per entry. */
typedef struct {
  /* Name of the entry in its image, zero-terminated; never null. */
  const char *name;
  /* Where its images are. Null in code compiled just in time, where the
   * implementation of this API knows the kernels by name. */
  struct ftrt_module *module;
  /* Belongs to the runtime, which resolves the kernel once and keeps the result
   * here. Starts out as null; host code never reads it. */
  void *handle;
} ftrt_kernel;

/* All of a compiled library but its functions. */
typedef struct ftrt_module {
  uint32_t abi_version; /* FTRT_ABI_VERSION */
  uint32_t image_count;
  const char *name;
  const ftrt_image *images;
  ftrt_kernel *const *kernels;
  uint64_t kernel_count;
  /* docs/manifest.md; zero-terminated JSON. */
  const char *manifest;
  /* Belongs to the runtime; starts out as null. */
  void *handle;
} ftrt_module;

/*===----------------------------------------------------------------------===*
 * What compiled host code calls
 *===----------------------------------------------------------------------===*/

/* Launches grid_x blocks of block_x threads on `stream`.
 *
 *   dynamic_shared_bytes  size of the dynamic shared memory of a block, bytes
 *   stream                the caller's stream: a CUstream for the CUDA driver
 *                         (null is its default stream), ftrt_emulator_stream()
 *                         for the emulator
 *   parameters            one pointer per kernel parameter, each to a value of
 *                         the parameter's own type (as for cuLaunchKernel)
 *
 * A grid of 0 blocks launches nothing and succeeds. The emulator finishes the
 * kernel before it returns; the CUDA driver does not wait.
 *
 * The first launch of a kernel on a device loads the module and resolves the
 * kernel; ftrt_prepare() does so ahead of time. The first that needs more than
 * 48 KiB of shared memory raises the kernel's limit. Any other launch allocates
 * nothing, takes no lock and handles no string. Safe while a stream is being
 * captured into a CUDA graph. */
int32_t ftrt_launch(ftrt_kernel *kernel, uint32_t grid_x, uint32_t block_x,
                    uint32_t dynamic_shared_bytes, void *stream,
                    void **parameters);

/* What host code knows of a tensor map: a static object for each kernel's
 * parameter. Numbers are those of the driver (cuda.h). Dimensions go from the
 * innermost, which is contiguous, outwards; entries behind `rank` mean nothing.
 */
typedef struct {
  const char *kernel; /* of both the names, for errors */
  const char *parameter;
  uint32_t element_type; /* CUtensorMapDataType */
  uint32_t rank;
  uint32_t box[5];       /* elements */
  uint32_t swizzle;      /* CUtensorMapSwizzle */
  uint32_t l2_promotion; /* CUtensorMapL2promotion */
} ftrt_tensor_map;

/* Encodes a tensor map, which a kernel takes by value: 128 bytes at `map`. It
 * is for launches on `stream`, whose device must be of compute capability 9.0
 * or above, or the emulator.
 *
 *   address  of the first element, on the device; a multiple of 16
 *   sizes    of each dimension, in elements
 *   strides  of each dimension but the innermost, in elements; multiples of 16
 *            bytes
 *
 * Elements outside become zeros. Of a tensor without elements kernels use no
 * map: it is all zeros. Maps that were encoded lately are kept, so that most
 * calls copy one. Allocates nothing and takes no lock, unless it fails or is
 * the first call of the runtime. Safe while a stream is being captured into a
 * CUDA graph. */
int32_t ftrt_tensor_map_encode(const ftrt_tensor_map *kind, const void *address,
                               const int64_t *sizes, const int64_t *strides,
                               void *stream, void *map);

/* Whether launches on `stream` run the kernels of an image for the device's
 * exact architecture (FTRT_ARCHITECTURE_EXACT): 1 in `exact`, else 0. Host code
 * of modules that hold both kinds of images asks, since each has kernels of its
 * own. In the emulator, which has no architecture, the answer is 1, unless the
 * environment variable FTRT_EMULATOR_IMAGE is "portable".
 *
 * Fails where no image fits the device. Loads nothing, allocates nothing and
 * takes no lock, unless it fails or is the first call of the runtime. Safe
 * while a stream is being captured into a CUDA graph. */
int32_t ftrt_image_is_exact(const ftrt_module *module, void *stream,
                            int32_t *exact);

/* Records `message` (copied) as the calling thread's last error and returns
 * FTRT_ERROR_HOST. For checks that host code makes by itself, such as sizes
 * that do not fit each other. */
int32_t ftrt_fail(const char *message);

/* The same with sizes in the message: {0}, {1}, ... stand for the first of
 * `count` sizes, the second, and so on. */
int32_t ftrt_fail_sizes(const char *message, const int64_t *sizes,
                        int32_t count);

/* The calling thread's last error in words; empty where there was none. Valid
 * until the thread's next call of a function of this API. */
const char *ftrt_last_error(void);

/*===----------------------------------------------------------------------===*
 * What callers of compiled functions may call
 *===----------------------------------------------------------------------===*/

/* Loads the module and resolves all of its kernels for the device of the
 * current context, or for the emulator if `stream` is its stream. Calling it
 * again costs little. */
int32_t ftrt_prepare(ftrt_module *module, void *stream);

/* Unloads the module from all devices. Call it before unloading the library
 * that holds it; nothing of the module may be in use by then. */
int32_t ftrt_release(ftrt_module *module);

/* The stream that runs kernels in the emulator. Never null, also where the
 * emulator library is missing: then launches fail with words. */
void *ftrt_emulator_stream(void);

/* Lets launches in the emulator, which may take long, be ended: while one of
 * the calling thread's runs, that thread calls `check` about ten times a
 * second. Once it returns other than 0, the launch ends as soon as the GPU
 * threads that run have come to a barrier or to their end, and returns
 * FTRT_ERROR_INTERRUPTED, its results undefined. Null, the default, lets every
 * launch run to its end. Other threads are not affected. `check` must not
 * launch anything in the emulator. */
void ftrt_set_interrupt_check(int32_t (*check)(void));

/* Version of CUDA that the driver is for: 12040 for 12.4. */
int32_t ftrt_driver_version(int32_t *version);

/* Number of CUDA devices. */
int32_t ftrt_device_count(int32_t *count);

/* Makes the primary context of a device current to the calling thread. */
int32_t ftrt_device_select(int32_t device);

/* Name of a device, at most `capacity` bytes with the terminating zero. */
int32_t ftrt_device_name(int32_t device, char *name, uint64_t capacity);

/* Bytes of memory of a device. */
int32_t ftrt_device_memory(int32_t device, uint64_t *bytes);

/* An attribute of a device by the driver's number (CUdevice_attribute). */
int32_t ftrt_device_attribute(int32_t device, int32_t attribute,
                              int32_t *value);

/* A stream of the current context that does not wait for the default stream. */
int32_t ftrt_stream_create(void **stream);
int32_t ftrt_stream_destroy(void *stream);

/* Waits until everything on the stream is done. Returns the error of a kernel
 * that failed while it ran. */
int32_t ftrt_stream_synchronize(void *stream);

/* A point of a stream, to time what lies between two. The emulator's stream,
 * which has no time, takes none. */
int32_t ftrt_event_create(void **event);
int32_t ftrt_event_destroy(void *event);
int32_t ftrt_event_record(void *event, void *stream);

/* Waits until the device has come to `end`; the time from `start` to there, in
 * microseconds, with a resolution of about half of one. Both were recorded on
 * streams of one device. Returns the error of a kernel that failed while it
 * ran. */
int32_t ftrt_event_elapsed(void *start, void *end, double *microseconds);

/* Memory of the device that `stream` belongs to, aligned to 256 bytes. 0 bytes
 * give null. */
int32_t ftrt_memory_allocate(uint64_t bytes, void *stream, void **memory);
int32_t ftrt_memory_free(void *memory, void *stream);

/* Copies between memory of the host and of the device, in the order of the
 * stream. Host memory must stay valid until the stream is synchronized. */
int32_t ftrt_memory_copy(void *target, const void *source, uint64_t bytes,
                         void *stream);

#ifdef __cplusplus
}
#endif

#endif /* FTUNER_RUNTIME_FTRT_H */
