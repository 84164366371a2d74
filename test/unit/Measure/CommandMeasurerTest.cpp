//===- CommandMeasurerTest.cpp - Commands that measure --------------------===//
#include "FTuner/Measure/CommandMeasurer.h"
#include "FTuner/Codegen/Simt/SimtSchedule.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "FTuner/Workload/Contraction.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <chrono>

using namespace ftuner;

namespace {
class CommandMeasurerTest : public testing::Test {
protected:
  CommandMeasurerTest()
      : device(llvm::cantFail(loadDeviceSpec("h200"))),
        workload(Workload::matmul({1, 4096, 1}, SizeRange::fixed(2304),
                                  SizeRange::fixed(768))),
        family(simtFamily({16, 16, 2, 1}, {8}, 4, 16)) {
    llvm::SmallString<64> name;
    EXPECT_FALSE(llvm::sys::fs::createTemporaryFile("command", "txt", name));
    path = name.str().str();
  }
  ~CommandMeasurerTest() override { llvm::sys::fs::remove(path); }

  llvm::Expected<Measurement> measure(std::string command,
                                      int64_t seconds = 60) const {
    CommandMeasurer measurer(device, std::move(command), seconds);
    return measurer.measure(workload, family, {17, 2304, 768});
  }
  /// The error, and whether it ends the measuring.
  std::pair<std::string, bool> failure(std::string command,
                                       int64_t seconds = 60) const {
    llvm::Expected<Measurement> answer = measure(std::move(command), seconds);
    if (answer)
      return {"", false};
    llvm::Error error = answer.takeError();
    bool isOver = error.isA<MeasurerFailed>();
    return {llvm::toString(std::move(error)), isOver};
  }

  DeviceSpec device;
  Workload workload;
  KernelFamily family;
  std::string path;
};
} // namespace

TEST_F(CommandMeasurerTest, ReadsTheAnswer) {
  llvm::Expected<Measurement> answer =
      measure(R"(echo '{"microseconds": 12.5, "registers": 40, "note": "x"}')");
  ASSERT_TRUE(bool(answer)) << llvm::toString(answer.takeError());
  EXPECT_EQ(answer->microseconds, 12.5);
  EXPECT_EQ(answer->registersPerThread, 40);
  EXPECT_EQ(answer->spillBytes, std::nullopt);
}

TEST_F(CommandMeasurerTest, WritesTheRequest) {
  llvm::cantFail(
      measure("cat > " + path + R"(; echo '{"microseconds": 1}')").takeError());
  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  llvm::StringRef text = (*buffer)->getBuffer();
  EXPECT_EQ(text.count('\n'), 1u);
  llvm::json::Value value = llvm::cantFail(llvm::json::parse(text));
  const llvm::json::Object &request = *value.getAsObject();
  EXPECT_EQ(request.size(), 4u);
  EXPECT_EQ(request.getString("device"), "h200");
  EXPECT_EQ(request.getString("workload"),
            workload.fingerprint(FingerprintOf::Kernels));
  EXPECT_EQ(*request.getArray("shape"), llvm::json::Array({17, 2304, 768}));
  EXPECT_EQ(request.getObject("family")->getString("path"), "simt");
}

TEST_F(CommandMeasurerTest, AnErrorSpeaksAgainstTheKernel) {
  EXPECT_EQ(failure(R"(echo '{"error": "no launch"}')"),
            std::pair(std::string("no launch"), false));
  EXPECT_EQ(failure(R"(echo '{"error": ""}')"),
            std::pair(std::string("the command gave no reason"), false));
}

TEST_F(CommandMeasurerTest, WhateverElseEndsTheMeasuring) {
  auto expectOver = [&](const std::string &command, llvm::StringRef text) {
    auto [error, isOver] = failure(command);
    EXPECT_TRUE(isOver) << command;
    EXPECT_EQ(error, ("measurer 'command:" + command + "': " + text).str());
  };
  expectOver("exit 3", "expected exit status 0, but got 3");
  expectOver("true", "expected a line of JSON on its standard output, but got "
                     "nothing");
  expectOver("echo 12.5",
             "expected a field 'microseconds' above 0 or a text 'error', but "
             "got '12.5'");
  expectOver("echo '{\"microseconds\": 0}'",
             "expected a field 'microseconds' above 0 or a text 'error', but "
             "got '{\"microseconds\": 0}'");
  expectOver("echo '{\"microseconds\": \"1\"}'",
             "expected a field 'microseconds' above 0 or a text 'error', but "
             "got '{\"microseconds\": \"1\"}'");
  expectOver("echo '{\"microseconds\": 1'",
             "expected one line of JSON, but got '{\"microseconds\": 1'");
  expectOver("echo '{\"microseconds\": 1}'; echo '{\"microseconds\": 2}'",
             "expected one line of JSON, but got '{\"microseconds\": 1}\n"
             "{\"microseconds\": 2}'");
  auto [error, isOver] = failure("/nowhere/simulator 2>/dev/null");
  EXPECT_TRUE(isOver);
  EXPECT_TRUE(llvm::StringRef(error).contains("expected exit status 0"))
      << error;
}

TEST_F(CommandMeasurerTest, ATimeLimitEndsTheCommandAndWhatItStarted) {
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(
      failure("sleep 30; echo '{\"microseconds\": 1}'; echo x > " + path, 1),
      std::pair(std::string("the command took longer than 1 s"), false));
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST_F(CommandMeasurerTest, EachAnswerIsKeptAtOnce) {
  // The second request ends the measuring: the first one is in the log.
  std::string command = "n=$(cat " + path + "); echo x$n > " + path +
                        "; [ -z \"$n\" ] && echo '{\"microseconds\": 7}'";
  llvm::sys::fs::remove(path);
  {
    EXPECT_FALSE(llvm::sys::fs::exists(path));
  }
  std::string log = path + ".jsonl";
  llvm::sys::fs::remove(log);
  CommandMeasurer measurer(device, "touch " + path + "; " + command, 60);
  LoggingMeasurer logging(measurer, MeasurementLog("h200", measurer.name()),
                          log, 100);
  std::vector<MeasurementRequest> requests;
  for (int64_t rows : {16, 32, 48})
    requests.push_back({&workload, family, {rows, 2304, 768}});
  for (llvm::Expected<Measurement> &answer : logging.measure(requests)) {
    llvm::Error error = answer.takeError();
    EXPECT_TRUE(error.isA<MeasurerFailed>());
    llvm::consumeError(std::move(error));
  }
  MeasurementLog read =
      llvm::cantFail(MeasurementLog::read(log, "h200", measurer.name()));
  EXPECT_EQ(read.size(), 1u);
  ASSERT_TRUE(read.find(requests[0]));
  EXPECT_EQ(read.find(requests[0])->measurement.microseconds, 7);
  // Nor is the third one asked.
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_EQ((*buffer)->getBuffer(), "xx\n");
  llvm::sys::fs::remove(log);
}
