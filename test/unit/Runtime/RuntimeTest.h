//===- RuntimeTest.h - Modules for tests of libftrt -------------*- C++ -*-===//
#ifndef FTUNER_TEST_UNIT_RUNTIME_RUNTIMETEST_H
#define FTUNER_TEST_UNIT_RUNTIME_RUNTIMETEST_H

#include "FTuner/Runtime/ftrt.h"
#include "FakeDriver.h"
#include <cstring>
#include <deque>
#include <elf.h>
#include <gtest/gtest.h>
#include <string>

/// A compiled library as it would be linked into a program: a module with its
/// images and kernels. Released at the end of its life.
class TestModule {
public:
  explicit TestModule(const std::vector<std::string> &names = {"first",
                                                               "second"}) {
    for (const std::string &name : names) {
      strings.push_back(name);
      kernels.push_back({strings.back().c_str(), &module, nullptr});
    }
    for (ftrt_kernel &kernel : kernels)
      pointers.push_back(&kernel);
    module.abi_version = FTRT_ABI_VERSION;
    module.name = "model";
    module.manifest = "{}";
    update();
  }
  ~TestModule() {
    if (module.handle) {
      EXPECT_EQ(ftrt_release(&module), FTRT_SUCCESS) << ftrt_last_error();
    }
  }
  TestModule(const TestModule &) = delete;

  /// Text that names all kernels.
  std::string getText() const {
    std::string text;
    for (const ftrt_kernel &kernel : kernels)
      text += std::string(".visible .entry ") + kernel.name + "()\n";
    return text;
  }

  ftrt_image &addPTX(uint32_t architecture) {
    return addPTX(architecture, getText());
  }
  ftrt_image &addPTX(uint32_t architecture, const std::string &text) {
    strings.push_back(text);
    return add({FTRT_IMAGE_PTX, architecture, strings.back().c_str(),
                strings.back().size() + 1});
  }
  /// An ELF header with one section of text.
  ftrt_image &addCubin(uint32_t architecture) {
    std::string text = getText();
    Elf64_Ehdr header = {};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = EM_CUDA;
    header.e_shoff = sizeof(header) + text.size() + 1;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = 1;
    Elf64_Shdr section = {};
    section.sh_type = SHT_PROGBITS;
    section.sh_offset = sizeof(header);
    section.sh_size = text.size() + 1;
    std::string data(reinterpret_cast<char *>(&header), sizeof(header));
    data.append(text.c_str(), text.size() + 1);
    data.append(reinterpret_cast<char *>(&section), sizeof(section));
    strings.push_back(data);
    return add({FTRT_IMAGE_CUBIN, architecture, strings.back().data(),
                strings.back().size()});
  }
  /// A host image with a kernel for each entry, in the order of the names.
  ftrt_host_image &addHost(const std::vector<void (*)(void **)> &entries,
                           uint32_t functionCount) {
    functions.assign(functionCount, nullptr);
    hostKernels.clear();
    for (size_t i = 0; i < entries.size(); ++i)
      hostKernels.push_back({kernels[i].name, entries[i], 0, 32, 1});
    host = {functions.data(), functionCount,
            static_cast<uint32_t>(hostKernels.size()), hostKernels.data()};
    add({FTRT_IMAGE_HOST, 0, &host, sizeof(host)});
    return host;
  }
  ftrt_image &add(const ftrt_image &image) {
    images.push_back(image);
    update();
    return images.back();
  }

  ftrt_kernel *operator[](size_t i) { return &kernels[i]; }

  ftrt_module module = {};
  std::vector<ftrt_image> images;
  std::deque<ftrt_kernel> kernels;
  std::vector<ftrt_kernel *> pointers;
  std::vector<void *> functions;
  std::vector<ftrt_host_kernel> hostKernels;
  ftrt_host_image host = {};

private:
  void update() {
    module.images = images.data();
    module.image_count = static_cast<uint32_t>(images.size());
    module.kernels = pointers.data();
    module.kernel_count = pointers.size();
  }

  std::deque<std::string> strings;
};

/// Tests over the fake driver, with device 0 selected.
class RuntimeTest : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("FTRT_CUDA_DRIVER", FTUNER_FAKE_DRIVER, 1);
    setenv("FTRT_EMULATOR", FTUNER_FAKE_EMULATOR, 1);
    fake::fake_driver_reset();
    ASSERT_EQ(ftrt_device_select(0), FTRT_SUCCESS) << ftrt_last_error();
    launches.clear();
    driver.onLaunch = [](const fake::Launch &launch) {
      launches.push_back(launch);
    };
  }
  void TearDown() override {
    fake::fake_driver_reset();
    EXPECT_EQ(driver.librariesLoaded, 0) << "a module was not released";
  }

  int32_t launch(ftrt_kernel *kernel, uint32_t dynamicSharedBytes = 0) {
    return ftrt_launch(kernel, 3, 128, dynamicSharedBytes, nullptr, nullptr);
  }

  fake::Control &driver = *fake::fake_driver_control();
  /// Those that the driver accepted, in tests of one thread.
  static std::vector<fake::Launch> launches;
};

#define EXPECT_SUCCESS(call) EXPECT_EQ(call, FTRT_SUCCESS) << ftrt_last_error()
#define ASSERT_SUCCESS(call) ASSERT_EQ(call, FTRT_SUCCESS) << ftrt_last_error()
/// The call fails with the code, and its words contain the text.
#define EXPECT_FAILURE(call, code, text)                                       \
  do {                                                                         \
    EXPECT_EQ(call, code);                                                     \
    EXPECT_NE(std::string(ftrt_last_error()).find(text), std::string::npos)    \
        << "got: " << ftrt_last_error();                                       \
  } while (false)

#endif // FTUNER_TEST_UNIT_RUNTIME_RUNTIMETEST_H
