//===- CalibrationTest.cpp - Files of constants, and device figures -------===//
#include "FTuner/CostModel/Calibration.h"
#include "../DamagedText.h"
#include "../RandomSeed.h"
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/Device/DeviceSpec.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ftuner;

static const char *const good = R"({
  "name": "card",
  "constants": {
    "fma": 1.25,
    "launch": 0
  },
  "deviation": 0.1,
  "origin": "30 rows of a CSV",
  "fit": {
    "rows": 30,
    "error_before": 0.2,
    "error_after": 0.1
  },
  "timing": {
    "offset_us": 25,
    "floor_us": 40
  }
}
)";

static std::string edited(llvm::StringRef from, llvm::StringRef to) {
  std::string text = good;
  size_t position = text.find(from.str());
  EXPECT_NE(position, std::string::npos) << from.str();
  return text.replace(position, from.size(), to.str());
}

static std::string errorOf(llvm::StringRef json) {
  llvm::Expected<Calibration> calibration = parseCalibration(json, "my.json");
  if (calibration)
    return "no error";
  return llvm::toString(calibration.takeError());
}

static Calibration load(llvm::StringRef name) {
  llvm::Expected<Calibration> calibration = loadCalibration(name);
  if (calibration)
    return *calibration;
  ADD_FAILURE() << llvm::toString(calibration.takeError());
  return {};
}

static DeviceSpec loadDevice(llvm::StringRef name) {
  llvm::Expected<DeviceSpec> device = loadDeviceSpec(name);
  if (device)
    return *device;
  ADD_FAILURE() << llvm::toString(device.takeError());
  return {};
}

TEST(Calibration, ReadsAFile) {
  llvm::Expected<Calibration> read = parseCalibration(good, "my.json");
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  EXPECT_EQ(read->name, "card");
  EXPECT_EQ(read->constants.fma, 1.25);
  EXPECT_EQ(read->constants.launch, 0);
  EXPECT_EQ(read->deviation, 0.1);
  EXPECT_EQ(read->origin, "30 rows of a CSV");
  ASSERT_TRUE(read->fit && read->timing);
  EXPECT_EQ(read->fit->rows, 30);
  EXPECT_EQ(read->fit->errorAfter, 0.1);
  EXPECT_EQ(read->timing->offsetMicroseconds, 25);
  EXPECT_EQ(read->timing->floorMicroseconds, 40);
  // What the file leaves out is the global calibration's.
  LatencyConstants global = load("global").constants;
  EXPECT_EQ(read->constants.globalLatency, global.globalLatency);
  EXPECT_EQ(read->constants.dramShare, global.dramShare);
}

TEST(Calibration, BuiltinOnesLoadUnderTheirNames) {
  std::vector<std::string> names = builtinCalibrationNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_NE(std::find(names.begin(), names.end(), "global"), names.end());
  for (const std::string &name : names) {
    Calibration calibration = load(name);
    EXPECT_EQ(calibration.name, name);
    EXPECT_FALSE(calibration.origin.empty()) << name;
    EXPECT_NE(calibration.command.find("ftuner calibrate"), std::string::npos)
        << name;
    EXPECT_FALSE(calibration.data.empty()) << name;
    // One for a device serves a device that is built in.
    if (name != "global") {
      EXPECT_EQ(loadDevice(name).name, name);
    }
  }
}

TEST(Calibration, TheGlobalOneNamesEveryConstant) {
  std::string text;
  {
    llvm::Expected<Calibration> none =
        parseCalibration(R"({"name": "x", "constants": {}})", "x.json");
    ASSERT_TRUE(static_cast<bool>(none)) << llvm::toString(none.takeError());
    EXPECT_EQ(toJson(*none)["constants"], toJson(load("global"))["constants"]);
    EXPECT_EQ(none->deviation, load("global").deviation);
  }
  size_t count = 0;
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  ++count;                                                                     \
  EXPECT_LE(LOW, VALUE) << NAME;                                               \
  EXPECT_LE(VALUE, HIGH) << NAME;
#include "FTuner/CostModel/LatencyConstants.def"
  EXPECT_EQ(toJson(load("global")).getObject("constants")->size(), count);
}

// A fit is better than the constants that it started from, and no constant is
// at a bound. A lower bound of 0 is allowed: no measurement determined the
// constant.
TEST(Calibration, BuiltinOnesAreFits) {
  for (const std::string &name : builtinCalibrationNames()) {
    Calibration calibration = load(name);
    ASSERT_TRUE(calibration.fit.has_value()) << name;
    EXPECT_LT(calibration.fit->errorAfter, calibration.fit->errorBefore)
        << name;
#define FTUNER_LATENCY_CONSTANT(MEMBER, NAME, UNIT, VALUE, LOW, HIGH, TEXT)    \
  if (LOW > 0)                                                                 \
    EXPECT_GT(calibration.constants.MEMBER, LOW * 1.001)                       \
        << name << ": " << NAME;                                               \
  EXPECT_LT(calibration.constants.MEMBER, HIGH * 0.999) << name << ": " << NAME;
#include "FTuner/CostModel/LatencyConstants.def"
  }
}

TEST(Calibration, ADeviceGetsItsOwnThatOfItsDieOrTheGlobalOne) {
  for (auto [name, expected] : {std::pair("t4", "t4"),
                                {"a100-pcie", "a100-pcie"},
                                {"a100", "a100-pcie"},
                                {"a100-80gb", "a100-80gb"},
                                {"a40", "a40"},
                                {"v100", "v100"},
                                {"v100-pcie", "v100-pcie"},
                                {"p100", "p100-pcie"},
                                {"h100", "h100"},
                                {"h200", "h200"},
                                {"a6000", "a6000"},
                                {"rtx3090", "rtx3090"},
                                {"rtx4090", "global"},
                                {"l40s", "global"},
                                {"l4", "global"},
                                {"k80", "global"},
                                {"b200", "global"}})
    EXPECT_EQ(defaultCalibration(loadDevice(name)).name, expected) << name;
  DeviceSpec device = loadDevice("t4");
  device.name = "my card";
  EXPECT_EQ(defaultCalibration(device).name, "t4");
  // A live H100 uses the calibration of its die by FTuner's own kernels.
  DeviceSpec h100 = loadDevice("h100");
  h100.name = "nvidia-h100";
  EXPECT_EQ(defaultCalibration(h100).name, "h200");
  // What prices FTuner's kernels where the device has one of the vendor's.
  EXPECT_EQ(kernelCalibration(loadDevice("h100")).name, "h200");
  EXPECT_EQ(kernelCalibration(loadDevice("h200")).name, "h200");
  EXPECT_EQ(kernelCalibration(h100).name, "h200");
  EXPECT_EQ(kernelCalibration(loadDevice("t4")).name, "t4");
  EXPECT_EQ(kernelCalibration(loadDevice("a100-80gb")).name, "a100-80gb");
  EXPECT_EQ(kernelCalibration(loadDevice("b200")).name, "global");
  device.die.clear();
  EXPECT_EQ(defaultCalibration(device).name, "global");
}

// Constants that no measurement gave do not call themselves global.
TEST(Calibration, ProblemsTakeTheGlobalOne) {
  EXPECT_EQ(CostModelOptions().calibration.name, "global");
  EXPECT_EQ(toJson(CostModelOptions().calibration), toJson(load("global")));
  EXPECT_EQ(Calibration().name, "start");
}

TEST(Calibration, RoundTripsThroughJson) {
  for (const std::string &name : builtinCalibrationNames()) {
    Calibration calibration = load(name);
    std::string text =
        llvm::formatv("{0:2}", llvm::json::Value(toJson(calibration)));
    llvm::Expected<Calibration> again = parseCalibration(text, "again.json");
    ASSERT_TRUE(static_cast<bool>(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(toJson(*again), toJson(calibration)) << name;
  }
}

TEST(Calibration, ReadsAPath) {
  llvm::SmallString<128> path;
  int descriptor = -1;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("calibration", "json",
                                                  descriptor, path));
  {
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << good;
  }
  EXPECT_EQ(load(path).constants.fma, 1.25);
  llvm::sys::fs::remove(path);
}

namespace {
struct BadEdit {
  const char *from, *to, *error;
};
} // namespace

TEST(CalibrationErrors, NameTheLineTheFieldAndWhatIsExpected) {
  EXPECT_EQ(errorOf(good), "no error");
  const BadEdit edits[] = {
      {"\"fma\": 1.25", "\"fma\": 0.5",
       "my.json:4: field 'constants.fma': expected a number from 0.85 to 1.6, "
       "but "
       "got 0.5"},
      {"\"fma\": 1.25", "\"fma\": 1e300",
       "my.json:4: field 'constants.fma': expected a number from 0.85 to 1.6, "
       "but "
       "got 1.0000000000000001e+300"},
      {"\"fma\": 1.25", "\"fma\": \"1\"",
       "my.json:4: field 'constants.fma': expected a number, but got \"1\""},
      {"\"fma\": 1.25", "\"fma\": null",
       "my.json:4: field 'constants.fma': expected a number, but got null"},
      {"\"launch\": 0", "\"launch\": -1",
       "my.json:5: field 'constants.launch': expected a number from 0 to 100, "
       "but got -1"},
      {"\"launch\": 0", "\"launch\": 0,\n\"zeta\": 2",
       "my.json:6: field 'constants.zeta': expected a constant of the latency "
       "model"},
      {"\"launch\": 0", "\"fma\": 1",
       "my.json:5: field 'fma': expected one occurrence, but it already stands "
       "in line 4"},
      {"\"deviation\": 0.1", "\"deviation\": 0",
       "my.json:7: field 'deviation': expected a number from 0.001 to 2, but "
       "got 0"},
      {"\"deviation\": 0.1", "\"deviations\": 0.1",
       "my.json:7: field 'deviations': expected a field of the calibration "
       "schema"},
      {"\"card\"", "\"\"",
       "my.json:2: field 'name': expected a string of 1 to 128 printable "
       "characters, but got \"\""},
      {"  \"name\": \"card\",\n", "",
       "my.json:17: field 'name': expected a string, but the field is missing"},
      {"\"30 rows of a CSV\"", "30",
       "my.json:8: field 'origin': expected a string of at most 4096 bytes, "
       "but "
       "got 30"},
      {"\"deviation\": 0.1", "\"command\": 3",
       "my.json:7: field 'command': expected a string of at most 4096 bytes, "
       "but got 3"},
      {"\"deviation\": 0.1", "\"data\": {\"a.csv\": \"12\"}",
       "my.json:7: field 'data.a.csv': expected the 64 hexadecimal digits of a "
       "SHA-256, but got \"12\""},
      {"\"rows\": 30", "\"rows\": 30.5",
       "my.json:10: field 'fit.rows': expected a whole number, but got 30.5"},
      {"\"rows\": 30", "\"rows\": -1",
       "my.json:10: field 'fit.rows': expected a number from 0 to "
       "1e+12, but got -1"},
      {"    \"rows\": 30,\n", "",
       "my.json:9: field 'fit.rows': expected a number, but the field is "
       "missing"},
      {"\"offset_us\": 25", "\"offset_ms\": 25",
       "my.json:15: field 'timing.offset_ms': expected a field of 'timing'"},
      {"\"fma\": 1.25", "\"fma\": NaN", "my.json:4:12: invalid JSON value"},
  };
  for (const BadEdit &edit : edits)
    EXPECT_EQ(errorOf(edited(edit.from, edit.to)), edit.error);
  EXPECT_EQ(errorOf(R"({"name": "x"})"),
            "my.json:1: field 'constants': expected an object with the "
            "constants, but the field is missing");
  EXPECT_EQ(errorOf(R"({"name": "x", "constants": [1]})"),
            "my.json:1: field 'constants': expected an object, but got [1]");
  EXPECT_EQ(errorOf("[]"),
            "my.json:1: expected an object with the fields of a calibration");
}

TEST(CalibrationErrors, NeverCrashOnDamagedTexts) {
  RandomSeed seed;
  std::mt19937 random(seed);
  for (int round = 0; round < 20000; ++round) {
    std::string error = errorOf(damage(good, random));
    EXPECT_TRUE(error == "no error" || error.rfind("my.json:", 0) == 0)
        << error;
  }
}

TEST(CalibrationErrors, SayWhatIsMissing) {
  auto loadError = [](llvm::StringRef name) -> std::string {
    llvm::Expected<Calibration> calibration = loadCalibration(name);
    if (calibration)
      return "no error";
    return llvm::toString(calibration.takeError());
  };
  EXPECT_EQ(loadError("no/such.json"),
            "cannot read calibration file 'no/such.json': No such file or "
            "directory");
  std::string unknown = loadError("t5");
  EXPECT_EQ(unknown.rfind("unknown calibration 't5': expected the path of a "
                          "JSON file or one of a100-80gb, a100-pcie,",
                          0),
            0u)
      << unknown;
}

TEST(LatencyDevice, HoldsTheFiguresOfTheDevice) {
  LatencyDevice p100 = latencyDevice(loadDevice("p100-pcie"));
  EXPECT_EQ(p100.smCount, 56);
  EXPECT_EQ(p100.clockMhz, 1328);
  EXPECT_EQ(p100.fp32Lanes, 64);
  EXPECT_EQ(p100.warpSchedulers, 2);
  EXPECT_EQ(p100.issueSlots, 4);
  EXPECT_EQ(p100.loadStoreLanes, 16);
  EXPECT_EQ(p100.dramGbps, 732);
  EXPECT_EQ(p100.l2Bytes, 4 << 20);
  EXPECT_EQ(p100.sharedMemoryPerSmBytes, 65536);
  EXPECT_EQ(p100.maxThreadsPerSm, 2048);
  EXPECT_EQ(p100.maxBlocksPerSm, 32);
  EXPECT_EQ(p100.registersPerSm, 65536);
  EXPECT_EQ(p100.boardPowerWatts, 250);
  EXPECT_EQ(p100.nodeEfficiency, 1);
}

TEST(LatencyDevice, WithoutABoardPowerHasNoLimit) {
  DeviceSpec device = loadDevice("t4");
  device.boardPowerWatts = std::nullopt;
  EXPECT_TRUE(std::isinf(latencyDevice(device).boardPowerWatts));
}

TEST(LatencyDevice, SmallerProcessesAreNeverLessEfficient) {
  EXPECT_EQ(nodeEfficiency(28), 0.6);
  EXPECT_EQ(nodeEfficiency(16), 1);
  EXPECT_EQ(nodeEfficiency(12), 1);
  EXPECT_EQ(nodeEfficiency(8), 1.75);
  EXPECT_EQ(nodeEfficiency(7), 2.15);
  EXPECT_EQ(nodeEfficiency(5), 3.06);
  EXPECT_EQ(nodeEfficiency(4), 3.06);
  double last = nodeEfficiency(0.1);
  for (double nm = 0.1; nm < 1000; nm *= 1.01) {
    EXPECT_LE(nodeEfficiency(nm), last + 1e-12) << nm;
    EXPECT_GT(nodeEfficiency(nm), 0) << nm;
    last = nodeEfficiency(nm);
  }
  // Between 12 (1) and 8 (1.75).
  EXPECT_NEAR(nodeEfficiency(10), 1.2861, 1e-4);
}

TEST(ChoiceConfidence, GrowsWithTheLead) {
  Calibration calibration;
  calibration.deviation = 0.07;
  EXPECT_DOUBLE_EQ(choiceConfidence(calibration, 10, 10), 0.5);
  // The normal distribution at ln(1.1) / (0.07 · √2) = 0.9628.
  EXPECT_NEAR(choiceConfidence(calibration, 10, 11), 0.8322, 1e-4);
  EXPECT_NEAR(choiceConfidence(calibration, 1, 100), 1, 1e-12);
  double last = 0.5;
  for (double second = 10; second < 20; second += 0.1) {
    double confidence = choiceConfidence(calibration, 10, second);
    EXPECT_GE(confidence, last);
    last = confidence;
  }
  // A less certain model is less sure of the same lead.
  Calibration vague = calibration;
  vague.deviation = 0.2;
  EXPECT_LT(choiceConfidence(vague, 10, 11),
            choiceConfidence(calibration, 10, 11));
}

TEST(MeasurementGain, IsTheMeanOfWhatTheFasterOfTwoGains) {
  Calibration calibration;
  calibration.deviation = 0.07;
  double spread = 0.07 * std::sqrt(2);
  EXPECT_NEAR(measurementGain(calibration, 10, 10),
              spread / std::sqrt(2 * std::acos(-1.0)), 1e-12);
  EXPECT_NEAR(measurementGain(calibration, 1, 100), 0, 1e-12);
  double last = 1;
  for (double second : {10.0, 10.1, 10.5, 11.0, 12.0, 15.0}) {
    // The integral of max(0, x - lead) over the normal density.
    double lead = std::log(second / 10), sum = 0, step = 1e-5;
    for (double x = lead; x < lead + 1; x += step)
      sum += step * (x - lead) * std::exp(-x * x / (2 * spread * spread));
    sum /= spread * std::sqrt(2 * std::acos(-1.0));
    double gain = measurementGain(calibration, 10, second);
    EXPECT_NEAR(gain, sum, 1e-6);
    EXPECT_LT(gain, last);
    last = gain;
  }
}
