//===- CommandMeasurer.h - A command that measures --------------*- C++ -*-===//
#ifndef FTUNER_MEASURE_COMMANDMEASURER_H
#define FTUNER_MEASURE_COMMANDMEASURER_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Measure/Measurer.h"
#include <string>

namespace ftuner {

/// Runs a command line of the user's, e.g. a simulator, once for each request
/// (docs/measurements.md): the request is a line of JSON on its standard input,
/// the answer one on its standard output, `microseconds` or an `error`. Takes
/// it longer than the limit, the kernel has no measurement. A command that does
/// not run, ends with another status than 0 or says anything else ends the
/// measuring.
class CommandMeasurer final : public Measurer {
public:
  /// The device outlives the measurer. The command is for /bin/sh.
  CommandMeasurer(const DeviceSpec &device, std::string command,
                  int64_t secondsLimit)
      : device(device), command(std::move(command)),
        title("command:" + this->command), secondsLimit(secondsLimit) {}

  llvm::StringRef name() const override { return title; }
  bool measuresTime() const override { return true; }
  size_t batchSize() const override { return 1; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;

private:
  llvm::Expected<Measurement> run(const MeasurementRequest &request) const;
  llvm::Error failed(const llvm::Twine &reason) const;

  const DeviceSpec &device;
  std::string command, title;
  int64_t secondsLimit;
};

} // namespace ftuner

#endif // FTUNER_MEASURE_COMMANDMEASURER_H
