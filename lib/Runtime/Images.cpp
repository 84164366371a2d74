//===- Images.cpp - Checks and chooses the images of a module -------------===//
#include "Images.h"
#include "Errors.h"
#include <cstring>
#include <elf.h>

using namespace ftrt;

static int32_t invalid(const ftrt_module &module, const std::string &why) {
  return fail(FTRT_ERROR_INVALID_ARGUMENT,
              format("module '%s': %s", module.name, why.c_str()));
}

/// Returns the fault of a cubin, or an empty string. The driver does not learn
/// its size, so a truncated one would make it read beyond the end.
static std::string checkCubin(const ftrt_image &image) {
  Elf64_Ehdr header;
  if (image.bytes < sizeof(header))
    return format("expected an ELF file, but got %llu bytes",
                  static_cast<unsigned long long>(image.bytes));
  std::memcpy(&header, image.data, sizeof(header));
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64)
    return "expected a 64-bit ELF file";
  auto endsWithin = [&](uint64_t offset, uint64_t size, uint64_t count) {
    return offset <= image.bytes && size * count <= image.bytes - offset;
  };
  if (!endsWithin(header.e_shoff, header.e_shentsize, header.e_shnum) ||
      !endsWithin(header.e_phoff, header.e_phentsize, header.e_phnum))
    return format("it is truncated after %llu bytes",
                  static_cast<unsigned long long>(image.bytes));
  if (header.e_shentsize != sizeof(Elf64_Shdr))
    return header.e_shnum ? "expected 64-bit ELF sections" : "";
  const char *sections = static_cast<const char *>(image.data) + header.e_shoff;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section, sections + i * sizeof(section), sizeof(section));
    if (section.sh_type != SHT_NOBITS &&
        !endsWithin(section.sh_offset, section.sh_size, 1))
      return format("it is truncated after %llu bytes",
                    static_cast<unsigned long long>(image.bytes));
  }
  return "";
}

static std::string checkHostImage(const ftrt_image &image) {
  if (image.bytes < sizeof(ftrt_host_image))
    return format("expected %zu bytes, but got %llu", sizeof(ftrt_host_image),
                  static_cast<unsigned long long>(image.bytes));
  const auto &host = *static_cast<const ftrt_host_image *>(image.data);
  if (host.function_count && !host.functions)
    return "expected a table of functions, but got null";
  if (host.kernel_count && !host.kernels)
    return "expected kernels, but got null";
  for (uint32_t i = 0; i < host.kernel_count; ++i) {
    if (!host.kernels[i].name)
      return format("kernel %u: expected a name, but got null", i);
    if (!host.kernels[i].entry)
      return format("kernel '%s': expected an entry, but got null",
                    host.kernels[i].name);
  }
  return "";
}

/// Compute capability times 10.
static uint32_t capabilityOf(const ftrt_image &image) {
  return image.architecture & ~FTRT_ARCHITECTURE_EXACT;
}

static std::string checkImage(const ftrt_image &image) {
  if (image.kind < FTRT_IMAGE_PTX || image.kind > FTRT_IMAGE_HOST)
    return format("expected a kind from %d to %d, but got %u", FTRT_IMAGE_PTX,
                  FTRT_IMAGE_HOST, image.kind);
  if (!image.data || image.bytes == 0)
    return "expected data, but got none";
  if (image.kind == FTRT_IMAGE_HOST)
    return checkHostImage(image);
  if (capabilityOf(image) < 10)
    return format("expected an architecture of at least 10, but got %u",
                  capabilityOf(image));
  if (image.kind == FTRT_IMAGE_CUBIN)
    return checkCubin(image);
  if (static_cast<const char *>(image.data)[image.bytes - 1] != '\0')
    return "expected text that ends in a zero";
  return "";
}

int32_t ftrt::checkModule(const ftrt_module *module) {
  if (!module)
    return fail(FTRT_ERROR_INVALID_ARGUMENT, "expected a module, but got null");
  // Nothing after the version may be read before it is known.
  if (module->abi_version != FTRT_ABI_VERSION)
    return fail(
        FTRT_ERROR_VERSION,
        format("expected a module for version %d of the API of libftrt, "
               "but got one for version %u",
               FTRT_ABI_VERSION, module->abi_version));
  if (!module->name)
    return fail(FTRT_ERROR_INVALID_ARGUMENT,
                "expected a module with a name, but got null");
  if (module->image_count && !module->images)
    return invalid(*module, "expected images, but got null");
  for (uint32_t i = 0; i < module->image_count; ++i) {
    std::string why = checkImage(module->images[i]);
    if (!why.empty())
      return invalid(*module, format("image %u: %s", i, why.c_str()));
  }
  if (module->kernel_count && !module->kernels)
    return invalid(*module, "expected kernels, but got null");
  for (uint64_t i = 0; i < module->kernel_count; ++i) {
    auto number = static_cast<unsigned long long>(i);
    const ftrt_kernel *kernel = module->kernels[i];
    if (!kernel || !kernel->name)
      return invalid(*module, format("kernel %llu: expected a kernel with a "
                                     "name, but got null",
                                     number));
    if (kernel->module != module)
      return invalid(*module, format("kernel '%s' belongs to another module",
                                     kernel->name));
  }
  return FTRT_SUCCESS;
}

const ftrt_image *ftrt::chooseImage(const ftrt_module &module, int major,
                                    int minor) {
  const uint32_t device = 10 * major + minor;
  const ftrt_image *cubin = nullptr, *ptx = nullptr, *exactPtx = nullptr;
  for (uint32_t i = 0; i < module.image_count; ++i) {
    const ftrt_image &image = module.images[i];
    uint32_t capability = capabilityOf(image);
    if (isExact(image)) {
      if (capability != device)
        continue;
      if (image.kind == FTRT_IMAGE_CUBIN)
        return &image;
      if (image.kind == FTRT_IMAGE_PTX && !exactPtx)
        exactPtx = &image;
      continue;
    }
    if (capability > device)
      continue;
    bool sameMajor = capability / 10 == static_cast<uint32_t>(major);
    if (image.kind == FTRT_IMAGE_CUBIN && sameMajor &&
        (!cubin || capability > cubin->architecture))
      cubin = &image;
    if (image.kind == FTRT_IMAGE_PTX &&
        (!ptx || capability > ptx->architecture))
      ptx = &image;
  }
  return exactPtx ? exactPtx : cubin ? cubin : ptx;
}

bool ftrt::hasVariants(const ftrt_module &module) {
  bool isFound[2] = {false, false};
  for (uint32_t i = 0; i < module.image_count; ++i)
    if (module.images[i].kind != FTRT_IMAGE_HOST)
      isFound[isExact(module.images[i])] = true;
  return isFound[0] && isFound[1];
}

const ftrt_host_image *ftrt::findHostImage(const ftrt_module &module) {
  for (uint32_t i = 0; i < module.image_count; ++i)
    if (module.images[i].kind == FTRT_IMAGE_HOST)
      return static_cast<const ftrt_host_image *>(module.images[i].data);
  return nullptr;
}

std::string ftrt::describeImage(const ftrt_image &image) {
  const char *suffix = isExact(image) ? "a" : "";
  switch (image.kind) {
  case FTRT_IMAGE_PTX:
    return format("PTX for sm_%u%s", capabilityOf(image), suffix);
  case FTRT_IMAGE_CUBIN:
    return format("a cubin for sm_%u%s", capabilityOf(image), suffix);
  default:
    return "a host image";
  }
}

std::string ftrt::describeImages(const ftrt_module &module) {
  std::string words = module.image_count ? "" : "no image";
  for (uint32_t i = 0; i < module.image_count; ++i) {
    if (i)
      words += i + 1 == module.image_count ? " and " : ", ";
    words += describeImage(module.images[i]);
  }
  return words;
}
