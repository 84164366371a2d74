//===- DeviceErrorsTest.cpp - Bad device descriptions ---------------------===//
#include "../DamagedText.h"
#include "../RandomSeed.h"
#include "FTuner/Device/DeviceSpec.h"
#include "llvm/ADT/StringRef.h"
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

static const char *const good = R"({
  "name": "test",
  "architecture": "Test",
  "compute_capability": "9.0",
  "sm_count": 10,
  "clock_mhz": 1000,
  "fp32_tflops": 2.56,
  "dram_gbps": 500,
  "l2_mib": 4,
  "shared_memory_per_sm_bytes": 102400,
  "shared_memory_per_block_bytes": 49152,
  "registers_per_sm": 65536,
  "max_registers_per_thread": 255,
  "max_threads_per_sm": 2048,
  "max_threads_per_block": 1024,
  "max_blocks_per_sm": 32
}
)";

/// The good description with one text replaced.
static std::string edited(llvm::StringRef from, llvm::StringRef to) {
  std::string text = good;
  size_t position = text.find(from.str());
  EXPECT_NE(position, std::string::npos) << from.str();
  return text.replace(position, from.size(), to.str());
}

static std::string errorOf(llvm::StringRef json) {
  llvm::Expected<DeviceSpec> device = parseDeviceSpec(json, "my.json");
  if (device)
    return "no error";
  return llvm::toString(device.takeError());
}

TEST(DeviceErrors, GoodFileHasNone) {
  EXPECT_EQ(errorOf(good), "no error");
  EXPECT_EQ(errorOf(edited("\"name\"", "\"source\": \"a sheet\", \"name\"")),
            "no error");
  EXPECT_EQ(
      errorOf(edited("\"name\"", "\"source\": {\"all\": \"a\", \"sm_count\": "
                                 "\"b\"}, \"name\"")),
      "no error");
}

TEST(DeviceErrors, OtherMakersDevicesAreNotCompiledFor) {
  EXPECT_EQ(errorOf("{\n  \"name\": \"w6600\",\n  \"figures\": {}\n}"),
            "my.json:3: field 'figures': expected the description of a CUDA "
            "device, but this one has the figures that learned predictors "
            "read, and no kernels are made for it (docs/learned-data.md)");
}

TEST(DeviceErrors, MeasuredRatesFitThePeaks) {
  auto with = [](llvm::StringRef fields) {
    return errorOf(edited("\"l2_mib\"", (fields + ",\n  \"l2_mib\"").str()));
  };
  EXPECT_EQ(with("\"measured_dram_gbps\": 400, "
                 "\"measured_shared_memory_gbps\": 1200, "
                 "\"measured_fp32_tflops\": 2.4"),
            "no error");
  // Both bandwidths or none.
  EXPECT_EQ(with("\"measured_dram_gbps\": 400"),
            "my.json:18: field 'measured_shared_memory_gbps': expected a "
            "positive number beside 'measured_dram_gbps', but the field is "
            "missing");
  EXPECT_EQ(
      with("\"measured_shared_memory_gbps\": 1200"),
      "my.json:18: field 'measured_dram_gbps': expected a positive number "
      "beside 'measured_shared_memory_gbps', but the field is missing");
  // In another unit.
  EXPECT_EQ(with("\"measured_dram_gbps\": 4"),
            "my.json:9: field 'measured_dram_gbps': expected 0.05 to 4 times "
            "the peak 500.0, but got 4");
  EXPECT_EQ(with("\"measured_fp32_tflops\": 2400"),
            "my.json:9: field 'measured_fp32_tflops': expected 0.05 to 4 times "
            "the peak 2.6, but got 2400");
  EXPECT_EQ(with("\"measured_dram_gbps\": 0"),
            "my.json:9: field 'measured_dram_gbps': expected a positive "
            "number, but got 0");
}

TEST(DeviceErrors, PeaksOfTensorCoresFitTheDevice) {
  auto with = [](llvm::StringRef fields) {
    return errorOf(
        edited("\"dram_gbps\"", (fields + ",\n  \"dram_gbps\"").str()));
  };
  EXPECT_EQ(with("\"f16_tflops\": 10.24, \"i8_tops\": 20.48"), "no error");
  EXPECT_EQ(with("\"f16_tflops\": 10.24, \"bf16_tflops\": 10.24"), "no error");
  EXPECT_EQ(with("\"i8_tops\": 20480"),
            "my.json:8: field 'i8_tops': expected 16 to 131072 operations per "
            "SM and cycle (i8_tops / (sm_count * clock_mhz)), but got "
            "2048000.0");
  EXPECT_EQ(with("\"f16_tflops\": 0.1"),
            "my.json:8: field 'f16_tflops': expected 16 to 131072 operations "
            "per SM and cycle (f16_tflops / (sm_count * clock_mhz)), but got "
            "10.0");
  EXPECT_EQ(with("\"bf16_tflops\": 10.24"),
            "my.json:8: field 'bf16_tflops': expected the peak of f16 (field "
            "'f16_tflops'), whose units multiply bf16, but got 10.24");
  EXPECT_EQ(with("\"bf16_tflops\": -1"),
            "my.json:8: field 'bf16_tflops': expected a positive number, but "
            "got -1");
}

TEST(DeviceErrors, DefaultRegistersPerBlockAreThoseOfTheSm) {
  llvm::Expected<DeviceSpec> device = parseDeviceSpec(good, "my.json");
  ASSERT_TRUE(static_cast<bool>(device)) << llvm::toString(device.takeError());
  EXPECT_EQ(device->registersPerBlock, 65536);
}

namespace {
struct BadEdit {
  const char *from, *to, *error;
};
} // namespace

TEST(DeviceErrors, NameTheLineTheFieldAndWhatIsExpected) {
  const BadEdit edits[] = {
      {"\"sm_count\": 10", "\"sm_count\": -3",
       "my.json:5: field 'sm_count': expected a positive integer, but got -3"},
      {"\"sm_count\": 10", "\"sm_count\": 0",
       "my.json:5: field 'sm_count': expected a positive integer, but got 0"},
      {"\"sm_count\": 10", "\"sm_count\": 2.5",
       "my.json:5: field 'sm_count': expected a positive integer, but got 2.5"},
      {"\"sm_count\": 10", "\"sm_count\": \"10\"",
       "my.json:5: field 'sm_count': expected a positive integer, but got "
       "\"10\""},
      {"\"sm_count\": 10", "\"sm_count\": null",
       "my.json:5: field 'sm_count': expected a positive integer, but got "
       "null"},
      {"\"sm_count\": 10", "\"sm_count\": [10]",
       "my.json:5: field 'sm_count': expected a positive integer, but got "
       "[10]"},
      {"\"sm_count\": 10", "\"sm_count\": 1000000",
       "my.json:5: field 'sm_count': expected at most 4096, but got 1000000"},
      {"  \"sm_count\": 10,\n", "",
       "my.json:16: field 'sm_count': expected a positive integer, but the "
       "field is missing"},
      {"\"sm_count\": 10", "\"sm_count\": 10, \"sm_count\": 12",
       "my.json:5: field 'sm_count': expected one occurrence, but it already "
       "stands in line 5"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4,\n  \"zeta\": 2",
       "my.json:10: field 'zeta': expected a field of the device schema"},
      {"\"dram_gbps\": 500", "\"dram_gbps\": false",
       "my.json:8: field 'dram_gbps': expected a positive number, but got "
       "false"},
      {"\"dram_gbps\": 500", "\"dram_gbps\": 1e300",
       "my.json:8: field 'dram_gbps': expected at most 1000000, but got "
       "1.0000000000000001e+300"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4, \"board_power_watts\": 0",
       "my.json:9: field 'board_power_watts': expected a positive number, but "
       "got 0"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4, \"process_nm\": \"4N\"",
       "my.json:9: field 'process_nm': expected a positive number, but got "
       "\"4N\""},
      {"\"l2_mib\": 4", "\"l2_mib\": 4,\n\"load_store_units_per_sm\": 2.5",
       "my.json:10: field 'load_store_units_per_sm': expected a positive "
       "integer, but got 2.5"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4, \"warp_schedulers_per_sm\": null",
       "my.json:9: field 'warp_schedulers_per_sm': expected a positive "
       "integer, but got null"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4, \"issue_slots_per_sm\": 3",
       "my.json:9: field 'issue_slots_per_sm': expected at least one for each "
       "of 4 warp schedulers (field 'warp_schedulers_per_sm'), but got 3"},
      {"\"test\"", "\"\"",
       "my.json:2: field 'name': expected a string of 1 to 128 printable "
       "characters, but got \"\""},
      {"\"test\"", "7",
       "my.json:2: field 'name': expected a string of 1 to 128 printable "
       "characters, but got 7"},
      {"\"9.0\"", "9.0",
       "my.json:4: field 'compute_capability': expected a compute capability "
       "that the compiler knows, such as \"9.0\", but got 9"},
      {"\"9.0\"", "\"9.7\"",
       "my.json:4: field 'compute_capability': expected a compute capability "
       "that the compiler knows, such as \"9.0\", but got \"9.7\""},
      {"\"9.0\"", "\"-9.0\"",
       "my.json:4: field 'compute_capability': expected a compute capability "
       "that the compiler knows, such as \"9.0\", but got \"-9.0\""},
      {"49152", "204800",
       "my.json:11: field 'shared_memory_per_block_bytes': expected at most "
       "102400 (field 'shared_memory_per_sm_bytes'), but got 204800"},
      {"\"max_threads_per_block\": 1024", "\"max_threads_per_block\": 4096",
       "my.json:15: field 'max_threads_per_block': expected at most 2048 "
       "(field 'max_threads_per_sm'), but got 4096"},
      {"\"max_threads_per_block\": 1024", "\"max_threads_per_block\": 16",
       "my.json:15: field 'max_threads_per_block': expected at least one warp "
       "of 32 threads, but got 16"},
      {"2.56", "2560",
       "my.json:7: field 'fp32_tflops': expected 1 to 4096 operations per SM "
       "and cycle (fp32_tflops / (sm_count * clock_mhz)), but got 256000.0"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4, \"source\": 3",
       "my.json:9: field 'source': expected a string, or an object with a "
       "string for each field, but got 3"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4, \"source\": {\"foo\": \"x\"}",
       "my.json:9: field 'source': expected the name of a field or 'all', but "
       "got 'foo'"},
      {"\"l2_mib\": 4", "\"l2_mib\": 4 \"x\": 5",
       "my.json:9:15: expected , or } after object property"},
  };
  for (const BadEdit &edit : edits)
    EXPECT_EQ(errorOf(edited(edit.from, edit.to)), edit.error);
}

TEST(DeviceErrors, RefuseWhatIsNoObject) {
  for (const char *text :
       {"", "   ", "[]", "3", "\"x\"", "null", "{", "}", "{}", "{\"name\"",
        "{\"name\": \"", "\xff\xfe", "{\"a\\u0000b\": 1}", "not json at all",
        "{\"name\": \"x\\", "]]]", "}{"}) {
    std::string error = errorOf(text);
    EXPECT_EQ(error.rfind("my.json:", 0), 0u) << text << " gave " << error;
  }
}

TEST(DeviceErrors, RefuseDeepNestingAndLargeTexts) {
  std::string deep(200000, '[');
  EXPECT_EQ(errorOf(deep), "my.json:1: expected at most 16 levels of nesting");
  std::string objects;
  for (int i = 0; i < 50000; ++i)
    objects += "{\"a\":\n";
  EXPECT_EQ(errorOf(objects),
            "my.json:17: expected at most 16 levels of nesting");
  std::string large(3 << 20, ' ');
  EXPECT_EQ(errorOf(large),
            "my.json: expected at most 1048576 bytes, but got 3145728");
}

TEST(DeviceErrors, NeverCrashOnDamagedTexts) {
  RandomSeed seed;
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::string error = errorOf(damage(good, random));
    EXPECT_TRUE(error == "no error" || error.rfind("my.json:", 0) == 0)
        << error;
  }
}

TEST(LoadDeviceSpecErrors, SayWhatIsMissing) {
  auto loadError = [](llvm::StringRef name) -> std::string {
    llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
    if (device)
      return "no error";
    return llvm::toString(device.takeError());
  };
  EXPECT_EQ(loadError("no/such.json"),
            "cannot read device file 'no/such.json': No such file or "
            "directory");
  EXPECT_EQ(loadError("such.json"),
            "cannot read device file 'such.json': No such file or directory");
  EXPECT_EQ(loadError("/"),
            "cannot read device file '/': expected a regular file");
  std::string unknown = loadError("h201");
  EXPECT_EQ(unknown.rfind("unknown device 'h201': expected the path of a JSON "
                          "file or one of a100, a100-80gb, a100-pcie,",
                          0),
            0u)
      << unknown;
  EXPECT_NE(loadError(""), "no error");
}
