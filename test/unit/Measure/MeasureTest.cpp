//===- MeasureTest.cpp - Measurers that need no kernel --------------------===//
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Measure/CostModelMeasurer.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Schedule/FamilyJson.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <set>

using namespace ftuner;

namespace {

class MeasureTest : public testing::Test {
protected:
  MeasureTest()
      : device(llvm::cantFail(loadDeviceSpec("h200"))),
        workload(Workload::matmul({1, 4096, 1}, SizeRange::fixed(2304),
                                  SizeRange::fixed(768))),
        pair(simtFamily({16, 16, 3, 4}, {7, 8}, 4, 16)),
        single(simtFamily({16, 16, 2, 1}, {8}, 4, 16)) {
    pair.balancedSms = 132;
    llvm::SmallString<64> name;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("log", "jsonl", name));
    path = name.str().str();
    llvm::sys::fs::remove(path);
  }
  ~MeasureTest() override { llvm::sys::fs::remove(path); }

  MeasurementRequest request(const KernelFamily &family, int64_t rows) const {
    return {&workload, family, {rows, 2304, 768}};
  }
  void write(llvm::StringRef text) const {
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << text;
    ASSERT_FALSE(code);
  }
  std::string readError() const {
    auto log = MeasurementLog::read(path, "h200");
    return log ? "" : llvm::toString(log.takeError());
  }

  DeviceSpec device;
  Workload workload;
  KernelFamily pair, single;
  std::string path;
};

/// Counts how often it is asked, and fails for shapes of one row.
class CountingMeasurer final : public Measurer {
public:
  llvm::StringRef name() const override { return "counting"; }
  bool measuresTime() const override { return true; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override {
    std::vector<llvm::Expected<Measurement>> answers;
    for (const MeasurementRequest &request : requests) {
      ++count;
      if (request.shape[0] == 1) {
        answers.push_back(llvm::createStringError("one row"));
        continue;
      }
      Measurement measurement;
      measurement.microseconds = 0.1 * request.shape[0];
      measurement.spillBytes = 4;
      answers.push_back(measurement);
    }
    return answers;
  }
  int count = 0;
};

TEST_F(MeasureTest, FamiliesSurviveJson) {
  for (const KernelFamily &family : {pair, single}) {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::json::OStream json(os);
    json.object([&] { writeFamily(json, family); });
    auto value = llvm::cantFail(llvm::json::parse(text));
    KernelFamily read = llvm::cantFail(parseFamily(*value.getAsObject()));
    EXPECT_EQ(read, family) << text;
    (*value.getAsObject())["path"] = "none";
    auto unknown = parseFamily(*value.getAsObject());
    ASSERT_FALSE(unknown);
    EXPECT_NE(llvm::toString(unknown.takeError()).find("field 'path'"),
              std::string::npos);
  }
}

TEST_F(MeasureTest, KeysTellWhatBecomesOfFactors) {
  std::set<std::string> keys;
  auto add = [&](llvm::function_ref<void(ContractionParts &)> change) {
    Workload changed = workload;
    changeContraction(changed, change);
    keys.insert(changed.fingerprint(FingerprintOf::Kernels));
  };
  add([](ContractionParts &) {});
  add([](ContractionParts &parts) {
    parts.multipliedType = ElementType::TF32;
  });
  add([](ContractionParts &parts) {
    parts.multipliedType = ElementType::TF32;
    parts.truncatesFactors = true;
  });
  // And of sums.
  add([](ContractionParts &parts) {
    parts.epilogue = {{OperationKind::Function}};
  });
  EXPECT_EQ(keys.size(), 4u);
}

TEST_F(MeasureTest, CostModelsAnswerAsDevicesWould) {
  CostModelMeasurer measurer(device, *findCostModel("latency"), {});
  KernelFamily illegal = pair;
  illegal.tiles.front()[matmulAxes.n] = 60;
  auto answers = measurer.measure(
      {request(pair, 53), request(illegal, 53), request(single, 4000)});
  ASSERT_EQ(answers.size(), 3u);
  ASSERT_TRUE(static_cast<bool>(answers[0]));
  ASSERT_TRUE(static_cast<bool>(answers[2]));
  EXPECT_GT(*answers[0]->microseconds, 1);
  EXPECT_GT(*answers[2]->microseconds, *answers[0]->microseconds);
  EXPECT_GT(*answers[0]->registersPerThread, 16);
  ASSERT_FALSE(answers[1]);
  EXPECT_NE(llvm::toString(answers[1].takeError()).find("tile"),
            std::string::npos);
}

TEST_F(MeasureTest, ALogIsReadBackAndGoneOnFrom) {
  CountingMeasurer inner;
  {
    LoggingMeasurer logging(inner, MeasurementLog("h200"), path, 3);
    auto answers = logging.measure({request(pair, 53), request(single, 53),
                                    request(pair, 53), request(pair, 1),
                                    request(pair, 100)});
    EXPECT_EQ(inner.count, 3);
    EXPECT_EQ(logging.budgetLeft(), 0);
    ASSERT_TRUE(static_cast<bool>(answers[2]));
    EXPECT_EQ(*answers[2]->microseconds, 0.1 * 53);
    for (size_t i : {3, 4}) {
      ASSERT_FALSE(answers[i]);
      EXPECT_EQ(llvm::toString(answers[i].takeError()),
                i == 3 ? "one row" : "the budget of measurements is spent");
    }
    for (size_t i : {0, 1})
      EXPECT_TRUE(static_cast<bool>(answers[i]));
  }
  MeasurementLog log = llvm::cantFail(MeasurementLog::read(path, "h200"));
  EXPECT_EQ(log.size(), 3u);
  EXPECT_EQ(llvm::cantFail(MeasurementLog::read(path, "a100")).size(), 0u);
  ASSERT_TRUE(log.find(request(pair, 53)));
  EXPECT_EQ(log.find(request(pair, 53))->measurement.spillBytes, 4);
  EXPECT_EQ(log.find(request(pair, 54)), nullptr);

  LoggingMeasurer next(inner, log, path, 10);
  for (auto &answer : next.measure({request(pair, 53), request(pair, 100)}))
    EXPECT_TRUE(static_cast<bool>(answer));
  EXPECT_EQ(inner.count, 4);
  EXPECT_EQ(llvm::cantFail(MeasurementLog::read(path, "h200")).size(), 4u);

  // Another range, the same kernel; another layout, another one.
  Workload other = Workload::matmul({7, 9, 1}, SizeRange::fixed(2304),
                                    SizeRange::fixed(768));
  Workload transposed = Workload::matmul({1, 4096, 1}, SizeRange::fixed(2304),
                                         SizeRange::fixed(768), true);
  RecordedMeasurer recorded(llvm::cantFail(MeasurementLog::read(path, "h200")));
  auto known = recorded.measure(other, pair, {53, 2304, 768});
  EXPECT_TRUE(static_cast<bool>(known));
  auto unknown = recorded.measure(transposed, pair, {53, 2304, 768});
  ASSERT_FALSE(unknown);
  EXPECT_NE(llvm::toString(unknown.takeError()).find("recorded measurement"),
            std::string::npos);
}

TEST_F(MeasureTest, DamagedLogsNameTheLine) {
  MeasurementLog log("h200");
  std::string line = log.line(request(pair, 53), {{5.5, 90, 0}, ""});
  write(line + "\n\n" + line + "\n");
  EXPECT_EQ(readError(), "");
  auto damaged = [&](llvm::StringRef from, llvm::StringRef to) {
    std::string text = line;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from.str();
    text.replace(at, from.size(), to);
    write(line + "\n" + text + "\n");
    return readError();
  };
  for (auto [from, to] :
       {std::pair("\"shape\":[53", "\"shape\":[0"),
        std::pair("\"shape\":", "\"form\":"), std::pair("5.5", "-5.5"),
        std::pair("\"format_version\":3", "\"format_version\":2"),
        std::pair("\"format_version\":3", "\"format_version\":4"),
        std::pair("\"stages\":3", "\"stages\":\"x\""),
        std::pair("{\"format", "[{\"format")})
    EXPECT_EQ(damaged(from, to).rfind(path + ":2: ", 0), 0u)
        << damaged(from, to);
}

TEST_F(MeasureTest, ALogKeepsMeasurersApart) {
  CountingMeasurer inner;
  CostModelMeasurer model(device, *findCostModel("latency"), {});
  EXPECT_EQ(model.name(), "model:latency@global");
  auto ask = [&](Measurer &measurer) {
    LoggingMeasurer logging(
        measurer,
        llvm::cantFail(MeasurementLog::read(path, "h200", measurer.name())),
        path, 10);
    return llvm::cantFail(logging.measure(workload, pair, {53, 2304, 768}))
        .microseconds;
  };
  std::optional<double> predicted = ask(model);
  EXPECT_NE(predicted, 0.1 * 53);
  EXPECT_EQ(ask(inner), 0.1 * 53);
  EXPECT_EQ(inner.count, 1);
  // Each goes on from its own lines.
  EXPECT_EQ(ask(model), predicted);
  EXPECT_EQ(ask(inner), 0.1 * 53);
  EXPECT_EQ(inner.count, 1);
  // Who reads all of them says so.
  MeasurementLog log = llvm::cantFail(MeasurementLog::read(path, "h200"));
  EXPECT_EQ(log.measurers(), "counting,model:latency@global");
  EXPECT_EQ(RecordedMeasurer(log).name(),
            "recorded (counting,model:latency@global)");
  // So does a model whose constants are others, and one whose predictor is.
  CostModelOptions own;
  own.calibration = defaultCalibration(device);
  CostModelMeasurer ofDevice(device, *findCostModel("latency"), own);
  EXPECT_EQ(ofDevice.name(), "model:latency@h200");
  std::optional<double> other = ask(ofDevice);
  EXPECT_NE(other, predicted);
  EXPECT_EQ(ask(ofDevice), other);
  EXPECT_EQ(ask(model), predicted);
  CostModelMeasurer learned(device, *findCostModel("learned"), own);
  EXPECT_TRUE(learned.name().starts_with("model:learned@h200+predictor-"));
}

TEST_F(MeasureTest, ALineThatWasCutOffIsNone) {
  MeasurementLog log("h200");
  std::string first = log.line(request(pair, 53), {{5.5, 90, 0}, ""});
  std::string second = log.line(request(pair, 54), {{6.5, 90, 0}, ""});
  CountingMeasurer inner;
  auto sizeOf = [&](llvm::StringRef text) {
    write(text);
    return llvm::cantFail(MeasurementLog::read(path, "h200")).size();
  };
  auto goOn = [&](llvm::StringRef text) {
    write(text);
    LoggingMeasurer logging(
        inner, llvm::cantFail(MeasurementLog::read(path, "h200")), path, 10);
    llvm::cantFail(logging.measure(workload, pair, {60, 2304, 768}));
    llvm::cantFail(logging.measure(workload, pair, {61, 2304, 768}));
    return llvm::cantFail(MeasurementLog::read(path, "h200")).size();
  };
  EXPECT_EQ(sizeOf(first + "\n" + second), 2u);
  EXPECT_EQ(sizeOf(first + "\n" + second.substr(0, 40)), 1u);
  EXPECT_EQ(sizeOf(first.substr(0, 40)), 0u);
  // Elsewhere it is an error.
  write(first.substr(0, 40) + "\n" + second + "\n");
  EXPECT_EQ(readError().rfind(path + ":1: ", 0), 0u);
  // New lines begin behind a whole line, and in place of another.
  EXPECT_EQ(goOn(first + "\n" + second + "\n"), 4u);
  EXPECT_EQ(goOn(first + "\n" + second), 4u);
  EXPECT_EQ(goOn(first + "\n" + second.substr(0, 40)), 3u);
  EXPECT_EQ(goOn(""), 2u);
}

} // namespace
