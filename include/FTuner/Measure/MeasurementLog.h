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
#include "llvm/Support/JSON.h"
#include <memory>
#include <set>
#include <string>

namespace ftuner {

/// Measurements of one device by workload, family and shape.
class MeasurementLog {
public:
  /// Creates a log of a device and a measurer, by their names; an empty name
  /// stands for all measurers.
  explicit MeasurementLog(llvm::StringRef device, llvm::StringRef measurer = {})
      : device(device.str()), measurer(measurer.str()) {}

  /// Reads the lines of the device and the measurer; those of others are left
  /// aside, but not those that name no measurer. Later lines replace earlier
  /// ones of the same kernel and shape. An error names the line; a last line
  /// that was cut off is none. A missing file is an empty log.
  static llvm::Expected<MeasurementLog> read(llvm::StringRef path,
                                             llvm::StringRef device,
                                             llvm::StringRef measurer = {});

  /// A measurement, or the reason why there is none. Programs that were never
  /// measured have no entry.
  struct Entry {
    Measurement measurement;
    std::string failure;
  };
  const Entry *find(const MeasurementRequest &request) const;
  /// Equal for requests that have one entry.
  static std::string keyOf(const MeasurementRequest &request);
  void add(const MeasurementRequest &request, const Entry &entry);
  size_t size() const { return entries.size(); }
  /// Names of the measurers of all lines, joined by commas.
  std::string measurers() const;

  /// The line of a measurement, without the line's end.
  std::string line(const MeasurementRequest &request, const Entry &entry) const;

private:
  llvm::Error readLine(llvm::StringRef text);

  std::string device, measurer;
  llvm::StringMap<Entry> entries;
  /// Named by lines that were read.
  std::set<std::string> named;
};

/// `device`, `workload`, `family` and `shape`, as fields of the open object.
void writeRequest(llvm::json::OStream &json, llvm::StringRef device,
                  const MeasurementRequest &request);

/// Answers from a log alone: a table of recorded measurements.
class RecordedMeasurer final : public Measurer {
public:
  explicit RecordedMeasurer(MeasurementLog log);

  /// "recorded", and in brackets who measured, if the log knows.
  llvm::StringRef name() const override { return title; }
  bool measuresTime() const override { return true; }
  using Measurer::measure;
  std::vector<llvm::Expected<Measurement>>
  measure(llvm::ArrayRef<MeasurementRequest> requests) override;

private:
  MeasurementLog log;
  std::string title;
};

/// Asks another measurer for what the log does not know, at most `budget`
/// times, and adds the answers to the log and its file, batch by batch. An
/// answer whose time is none (0, negative, not finite) is a failure. What was
/// not measured (`NotMeasured`) costs nothing and is not kept; after a
/// `MeasurerFailed` nothing more is asked.
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
  /// Asks for requests that the log does not know.
  llvm::Error ask(llvm::ArrayRef<MeasurementRequest> requests);
  llvm::Error append(llvm::StringRef lines);

  Measurer &inner;
  MeasurementLog log;
  std::string path;
  int64_t budget;
  /// Why nothing is asked any more; empty as long as the measurer answers.
  std::string failure;
  bool hasAppended = false;
  /// By the request's place in the log, why it was not measured.
  llvm::StringMap<std::string> unanswered;
};

} // namespace ftuner

#endif // FTUNER_MEASURE_MEASUREMENTLOG_H
