//===- MeasurementLog.h - Measurements that are kept ------------*- C++ -*-===//
//
// A file of JSON lines, one for each measurement (docs/measurements.md): the
// device, the workload's operands and axes, the family as in the manifest, the
// shape, and what was found or why nothing was. Lines are only ever added, so a
// search that stops can go on from its log, and a log of one machine is a table
// of recorded measurements for others.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_MEASURE_MEASUREMENTLOG_H
#define FTUNER_MEASURE_MEASUREMENTLOG_H

#include "FTuner/Device/DeviceSpec.h"
#include "FTuner/Measure/Measurer.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <string>

namespace ftuner {

/// Measurements of one device by workload, family and shape.
class MeasurementLog {
public:
  /// Of the device of that name.
  explicit MeasurementLog(llvm::StringRef device) : device(device.str()) {}

  /// Reads the lines of the device; those of others are left aside. Later lines
  /// replace earlier ones of the same kernel and shape. An error names the
  /// line. A missing file is an empty log.
  static llvm::Expected<MeasurementLog> read(llvm::StringRef path,
                                             llvm::StringRef device);

  /// What was found, or the reason why nothing was; null for what was never
  /// asked.
  struct Entry {
    Measurement measurement;
    std::string failure;
  };
  const Entry *find(const MeasurementRequest &request) const;
  void add(const MeasurementRequest &request, const Entry &entry);
  size_t size() const { return entries.size(); }

  /// The line of a measurement, without the line's end.
  std::string line(const MeasurementRequest &request, const Entry &entry) const;

private:
  static std::string keyOf(const MeasurementRequest &request);
  llvm::Error readLine(llvm::StringRef text);

  std::string device;
  llvm::StringMap<Entry> entries;
};

/// Answers from a log alone: a table of recorded measurements.
class RecordedMeasurer final : public Measurer {
public:
  explicit RecordedMeasurer(MeasurementLog log) : log(std::move(log)) {}

  llvm::StringRef name() const override { return "recorded"; }
  bool measuresTime() const override { return true; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;

private:
  MeasurementLog log;
};

/// Asks another measurer for what the log does not know, at most `budget`
/// times, and adds the answers to the log and its file. An answer whose time is
/// none (0, negative, not finite) is a failure.
class LoggingMeasurer final : public Measurer {
public:
  /// The other measurer outlives this one. Without a path nothing is written.
  LoggingMeasurer(Measurer &inner, MeasurementLog log, std::string path,
                  int64_t budget)
      : inner(inner), log(std::move(log)), path(std::move(path)),
        budget(budget) {}

  llvm::StringRef name() const override { return inner.name(); }
  bool measuresTime() const override { return inner.measuresTime(); }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;
  /// How often the other measurer may still be asked.
  int64_t budgetLeft() const { return budget; }

private:
  Measurer &inner;
  MeasurementLog log;
  std::string path;
  int64_t budget;
};

} // namespace ftuner

#endif // FTUNER_MEASURE_MEASUREMENTLOG_H
