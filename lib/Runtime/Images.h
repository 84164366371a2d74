//===- Images.h - Checks and chooses the images of a module -----*- C++ -*-===//
#ifndef FTUNER_LIB_RUNTIME_IMAGES_H
#define FTUNER_LIB_RUNTIME_IMAGES_H

#include "Api.h"
#include <string>

namespace ftrt {

/// Checks what a compiled library says of itself, so that nothing of it is
/// followed blindly: the version, null pointers, kinds of images, their ends
/// (the zero of PTX, the size that the ELF header of a cubin tells), kernels
/// that belong to another module. Fails with FTRT_ERROR_VERSION or
/// FTRT_ERROR_INVALID_ARGUMENT.
int32_t checkModule(const ftrt_module *module);

/// The image for a device of compute capability major.minor: a cubin or else
/// PTX for exactly this one; else the cubin of the same major and the highest
/// minor version that is not above the device's, else the PTX of the highest
/// version that is not above it. Null if there is none.
const ftrt_image *chooseImage(const ftrt_module &module, int major, int minor);

/// Returns whether the image runs only on devices of one compute capability.
inline bool isExact(const ftrt_image &image) {
  return image.architecture & FTRT_ARCHITECTURE_EXACT;
}

/// Returns whether the module holds images for only one compute capability
/// beside portable ones: each kind lacks kernels that the other has.
bool hasVariants(const ftrt_module &module);

/// The host image; null if there is none.
const ftrt_host_image *findHostImage(const ftrt_module &module);

/// "a cubin for sm_90, PTX for sm_80 and a host image".
std::string describeImages(const ftrt_module &module);

/// "PTX for sm_90".
std::string describeImage(const ftrt_image &image);

} // namespace ftrt

#endif // FTUNER_LIB_RUNTIME_IMAGES_H
