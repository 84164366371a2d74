//===- SearchContext.cpp - Context of a search ----------------------------===//
#include "FTuner/Search/Problem/SearchContext.h"

using namespace ftuner;

llvm::Expected<std::unique_ptr<LoggingMeasurer>>
SearchContext::openMeasurer(const DeviceSpec &device) const {
  if (!measurer)
    return llvm::createStringError("expected a measurer, but got none");
  if (!measurer->measuresTime())
    return llvm::createStringError("expected a measurer of times, but got '" +
                                   measurer->name() + "'");
  MeasurementLog known(device.name, measurer->name());
  if (!log.empty()) {
    llvm::Expected<MeasurementLog> read =
        MeasurementLog::read(log, device.name, measurer->name());
    if (!read)
      return read.takeError();
    known = std::move(*read);
  }
  return std::make_unique<LoggingMeasurer>(*measurer, std::move(known), log,
                                           budget);
}
