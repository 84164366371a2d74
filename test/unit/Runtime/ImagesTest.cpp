//===- ImagesTest.cpp - Choice and checks of a module's images ------------===//
#include "RuntimeTest.h"

using namespace fake;

namespace {
/// An image by its kind and architecture: "p80" is PTX, "c80" a cubin, "c90a"
/// one for this architecture alone.
void addImages(TestModule &model, const std::vector<const char *> &images) {
  for (const char *image : images) {
    uint32_t architecture = std::atoi(image + 1);
    if (std::strchr(image, 'a'))
      architecture |= FTRT_ARCHITECTURE_EXACT;
    if (*image == 'p')
      model.addPTX(architecture);
    else
      model.addCubin(architecture);
  }
}

struct Choice {
  std::vector<const char *> images;
  int device; ///< 0: sm_90, 1: sm_86, 2: sm_100, 3: sm_80, 4: sm_75
  int expected;
};

TEST_F(RuntimeTest, ChoosesTheImage) {
  const Choice choices[] = {
      // A cubin before PTX, whatever the order.
      {{"p90", "c90"}, 0, 1},
      {{"c90", "p90"}, 0, 0},
      // Of cubins the highest minor version that is not above the device's.
      {{"c80", "c86", "c89"}, 1, 1},
      {{"c86", "c80"}, 1, 0},
      {{"c86", "c80"}, 3, 1},
      // A cubin of another major version never fits.
      {{"c80", "c86", "p75"}, 0, 2},
      {{"c90", "p80"}, 2, 1},
      {{"c100", "p80"}, 0, 1},
      // A cubin of a higher minor version does not, either.
      {{"c86", "p75"}, 3, 1},
      // Of PTX the highest that is not above the device.
      {{"p75", "p90", "p80"}, 0, 1},
      {{"p75", "p90", "p80"}, 1, 2},
      {{"p75", "p90", "p80"}, 2, 1},
      {{"p75", "p90", "p80"}, 4, 0},
      // An exact one before all others, a cubin before PTX.
      {{"c90", "p90", "p90a", "c90a"}, 0, 3},
      {{"c90", "p90", "p90a"}, 0, 2},
      {{"c90a", "p90a"}, 0, 0},
      // On no other device, older or newer, of its major version or not.
      {{"p90a", "c90a", "p90"}, 2, 2},
      {{"p80a", "c80a", "p75"}, 1, 2},
      {{"p86a", "c86a", "c80"}, 3, 2},
      {{"p75a", "p75"}, 0, 1},
  };
  for (const Choice &choice : choices) {
    TestModule model;
    addImages(model, choice.images);
    ASSERT_SUCCESS(ftrt_device_select(choice.device));
    ASSERT_SUCCESS(launch(model[0]));
    EXPECT_EQ(launches.back().image, model.images[choice.expected].data)
        << "choice " << &choice - choices;
  }
}

TEST_F(RuntimeTest, NoImageForTheDevice) {
  TestModule model;
  addImages(model, {"c86", "c90", "p90"});
  model.addHost({}, 0);
  ASSERT_SUCCESS(ftrt_device_select(3));
  EXPECT_FAILURE(
      launch(model[0]), FTRT_ERROR_NO_IMAGE,
      "module 'model': expected a cubin for sm_80 or PTX for at most sm_80, "
      "for device 3 (Fake 80), but the module holds a cubin for sm_86, a cubin "
      "for sm_90, PTX for sm_90 and a host image");
  ASSERT_SUCCESS(ftrt_device_select(4));
  EXPECT_FAILURE(launch(model[0]), FTRT_ERROR_NO_IMAGE,
                 "a cubin for sm_70 to sm_75 or PTX for at most sm_75");
  TestModule exact;
  addImages(exact, {"c90a", "p90a"});
  for (int device : {1, 2, 3, 4}) {
    ASSERT_SUCCESS(ftrt_device_select(device));
    EXPECT_FAILURE(
        launch(exact[0]), FTRT_ERROR_NO_IMAGE,
        "but the module holds a cubin for sm_90a and PTX for sm_90a");
  }
  TestModule empty;
  EXPECT_FAILURE(launch(empty[0]), FTRT_ERROR_NO_IMAGE,
                 "the module holds no image");
}

//===----------------------------------------------------------------------===//
// Modules with two images, each with kernels of its own
//===----------------------------------------------------------------------===//

constexpr uint32_t kExact90 = 90 | FTRT_ARCHITECTURE_EXACT;

/// "first" is in both images, "exact" and "portable" in one.
struct TwoImages : TestModule {
  TwoImages() : TestModule({"first", "exact", "portable"}) {
    addPTX(kExact90, ".entry first()\n.entry exact()\n");
    addPTX(80, ".entry first()\n.entry portable()\n");
  }
  int32_t ask(void *stream = nullptr) {
    isExact = -1;
    return ftrt_image_is_exact(&module, stream, &isExact);
  }
  int32_t isExact = -1;
};

TEST_F(RuntimeTest, TellsWhichImageIsTaken) {
  const int expected[] = {1, 0, 0, 0}; // 9.0, 8.6, 10.0, 8.0
  TwoImages model;
  for (bool isPrepared : {false, true})
    for (int device = 0; device < 4; ++device) {
      ASSERT_SUCCESS(ftrt_device_select(device));
      if (isPrepared) {
        ASSERT_SUCCESS(ftrt_prepare(&model.module, nullptr));
      }
      ASSERT_SUCCESS(model.ask());
      EXPECT_EQ(model.isExact, expected[device]) << device;
    }
  ASSERT_SUCCESS(ftrt_device_select(4));
  EXPECT_FAILURE(model.ask(), FTRT_ERROR_NO_IMAGE,
                 "but the module holds PTX for sm_90a and PTX for sm_80");
  EXPECT_FAILURE(ftrt_image_is_exact(&model.module, nullptr, nullptr),
                 FTRT_ERROR_INVALID_ARGUMENT, "expected a place");
  fake::fake_driver_clear_context();
  EXPECT_FAILURE(model.ask(), FTRT_ERROR_DRIVER, "expected a CUDA context");
}

TEST_F(RuntimeTest, TheEmulatorTakesWhatTheEnvironmentSays) {
  TwoImages model;
  void *stream = ftrt_emulator_stream();
  ASSERT_SUCCESS(model.ask(stream));
  EXPECT_EQ(model.isExact, 1);
  for (auto [text, expected] :
       {std::pair("portable", 0), {"exact", 1}, {"", 1}}) {
    setenv("FTRT_EMULATOR_IMAGE", text, 1);
    ASSERT_SUCCESS(model.ask(stream));
    EXPECT_EQ(model.isExact, expected) << text;
  }
  setenv("FTRT_EMULATOR_IMAGE", "sm_90", 1);
  EXPECT_FAILURE(model.ask(stream), FTRT_ERROR_INVALID_ARGUMENT,
                 "module 'model': FTRT_EMULATOR_IMAGE: expected 'exact' or "
                 "'portable', but got 'sm_90'");
  // It is nobody else's.
  ASSERT_SUCCESS(model.ask());
  EXPECT_EQ(model.isExact, 1);
  unsetenv("FTRT_EMULATOR_IMAGE");
}

TEST_F(RuntimeTest, PreparesWhatTheImageHas) {
  for (auto [device, has, lacks] : {std::tuple(0, 1, 2), {1, 2, 1}}) {
    TwoImages model;
    ASSERT_SUCCESS(ftrt_device_select(device));
    ftrt_fail("before");
    ASSERT_SUCCESS(ftrt_prepare(&model.module, nullptr));
    EXPECT_STREQ(ftrt_last_error(), "before");
    int lookups = driver.calls[cuLibraryGetKernel];
    ASSERT_SUCCESS(launch(model[0]));
    ASSERT_SUCCESS(launch(model[has]));
    EXPECT_EQ(driver.calls[cuLibraryGetKernel], lookups);
    EXPECT_FAILURE(launch(model[lacks]), FTRT_ERROR_UNKNOWN_KERNEL,
                   model[lacks]->name);
  }
  // With images of one kind all kernels must be there.
  for (uint32_t architecture : {kExact90, 80u}) {
    TestModule model({"first", "exact"});
    model.addPTX(architecture, ".entry first()\n");
    ASSERT_SUCCESS(ftrt_device_select(0));
    EXPECT_FAILURE(ftrt_prepare(&model.module, nullptr),
                   FTRT_ERROR_UNKNOWN_KERNEL, "kernel 'exact'");
  }
}

TEST_F(RuntimeTest, ACubinThatFailsIsReportedNotReplaced) {
  TestModule model;
  addImages(model, {"c90", "p90"});
  driver.failures[cuLibraryLoadData] = ftrt::cuda::CUDA_ERROR_NO_BINARY_FOR_GPU;
  EXPECT_FAILURE(launch(model[0]), FTRT_ERROR_DRIVER,
                 "a cubin for sm_90: cuLibraryLoadData: error 209");
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 1);
}

//===----------------------------------------------------------------------===//
// Corrupt modules
//===----------------------------------------------------------------------===//

struct Corruption {
  void (*apply)(TestModule &);
  int32_t code;
  const char *words;
};

/// The first section of the cubin reaches one byte beyond its end.
void growSection(const ftrt_image &cubin) {
  auto *data = static_cast<char *>(const_cast<void *>(cubin.data));
  auto *header = reinterpret_cast<Elf64_Ehdr *>(data);
  Elf64_Shdr section;
  std::memcpy(&section, data + header->e_shoff, sizeof(section));
  section.sh_size = cubin.bytes - section.sh_offset + 1;
  std::memcpy(data + header->e_shoff, &section, sizeof(section));
}

const Corruption corruptions[] = {
    {[](TestModule &m) { m.module.abi_version = 77; }, FTRT_ERROR_VERSION,
     "expected a module for version 1 of the API of libftrt, but got one for "
     "version 77"},
    {[](TestModule &m) { m.module.name = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT,
     "expected a module with a name, but got null"},
    {[](TestModule &m) { m.module.images = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "expected images, but got null"},
    {[](TestModule &m) { m.module.kernels = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "expected kernels, but got null"},
    {[](TestModule &m) { m.pointers[1] = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "kernel 1: expected a kernel with a name"},
    {[](TestModule &m) { m.kernels[1].name = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "kernel 1: expected a kernel with a name"},
    {[](TestModule &m) { m.kernels[1].module = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "kernel 'second' belongs to another module"},
    {[](TestModule &m) { m.images[0].kind = 4; }, FTRT_ERROR_INVALID_ARGUMENT,
     "module 'model': image 0: expected a kind from 1 to 3, but got 4"},
    {[](TestModule &m) { m.images[0].kind = 0; }, FTRT_ERROR_INVALID_ARGUMENT,
     "expected a kind from 1 to 3, but got 0"},
    {[](TestModule &m) { m.images[1].data = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 1: expected data, but got none"},
    {[](TestModule &m) { m.images[1].bytes = 0; }, FTRT_ERROR_INVALID_ARGUMENT,
     "image 1: expected data, but got none"},
    {[](TestModule &m) { m.images[0].architecture = 0; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 0: expected an architecture"},
    {[](TestModule &m) { m.images[0].architecture = FTRT_ARCHITECTURE_EXACT; },
     FTRT_ERROR_INVALID_ARGUMENT,
     "image 0: expected an architecture of at least 10, but got 0"},
    {[](TestModule &m) { --m.images[0].bytes; }, FTRT_ERROR_INVALID_ARGUMENT,
     "image 0: expected text that ends in a zero"},
    {[](TestModule &m) { m.images[1].bytes = 63; }, FTRT_ERROR_INVALID_ARGUMENT,
     "image 1: expected an ELF file, but got 63 bytes"},
    {[](TestModule &m) { --m.images[1].bytes; }, FTRT_ERROR_INVALID_ARGUMENT,
     "image 1: it is truncated after"},
    {[](TestModule &m) { m.images[1].bytes = 100; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 1: it is truncated after 100 bytes"},
    {[](TestModule &m) { growSection(m.images[1]); },
     FTRT_ERROR_INVALID_ARGUMENT, "image 1: it is truncated after"},
    {[](TestModule &m) { m.images[1].data = m.images[2].data; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 1: expected a 64-bit ELF file"},
    {[](TestModule &m) { m.images[2].bytes = 8; }, FTRT_ERROR_INVALID_ARGUMENT,
     "image 2: expected 24 bytes, but got 8"},
    {[](TestModule &m) { m.host.functions = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 2: expected a table of functions"},
    {[](TestModule &m) { m.host.kernels = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 2: expected kernels, but got null"},
    {[](TestModule &m) { m.hostKernels[1].name = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT, "image 2: kernel 1: expected a name"},
    {[](TestModule &m) { m.hostKernels[1].entry = nullptr; },
     FTRT_ERROR_INVALID_ARGUMENT,
     "image 2: kernel 'second': expected an entry"},
};

TEST_F(RuntimeTest, CorruptModulesAreRefused) {
  auto entry = [](void **) {};
  for (const Corruption &corruption : corruptions) {
    TestModule model;
    model.addPTX(80);
    model.addCubin(90);
    model.addHost({entry, entry}, 3);
    corruption.apply(model);
    EXPECT_FAILURE(ftrt_prepare(&model.module, nullptr), corruption.code,
                   corruption.words);
    EXPECT_FAILURE(ftrt_prepare(&model.module, ftrt_emulator_stream()),
                   corruption.code, corruption.words);
    EXPECT_FAILURE(launch(model[0]), corruption.code, corruption.words);
    int32_t isExact = 0;
    EXPECT_FAILURE(ftrt_image_is_exact(&model.module, nullptr, &isExact),
                   corruption.code, corruption.words);
    EXPECT_FAILURE(ftrt_release(&model.module), corruption.code,
                   corruption.words);
    EXPECT_EQ(model.module.handle, nullptr);
    EXPECT_EQ(model[0]->handle, nullptr);
  }
  EXPECT_EQ(driver.calls[cuLibraryLoadData], 0);
  EXPECT_FAILURE(ftrt_prepare(nullptr, nullptr), FTRT_ERROR_INVALID_ARGUMENT,
                 "expected a module, but got null");
  EXPECT_FAILURE(ftrt_release(nullptr), FTRT_ERROR_INVALID_ARGUMENT,
                 "expected a module, but got null");
}

TEST_F(RuntimeTest, KernelsBeyondTheirModule) {
  TestModule model;
  model.addPTX(80);
  ftrt_kernel alone = {"alone", nullptr, nullptr};
  EXPECT_FAILURE(launch(&alone), FTRT_ERROR_INVALID_ARGUMENT,
                 "kernel 'alone' belongs to no module");
  ftrt_kernel unlisted = {"first", &model.module, nullptr};
  EXPECT_FAILURE(launch(&unlisted), FTRT_ERROR_INVALID_ARGUMENT,
                 "module 'model' does not list kernel 'first'");
  ftrt_kernel unnamed = {nullptr, &model.module, nullptr};
  EXPECT_FAILURE(launch(&unnamed), FTRT_ERROR_INVALID_ARGUMENT,
                 "expected a kernel with a name, but got null");
}
} // namespace
