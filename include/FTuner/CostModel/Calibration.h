//===- Calibration.h - Constants that measurements give ---------*- C++ -*-===//
//
// What the latency model needs beside a device's data sheet, in JSON files
// apart from the descriptions (lib/CostModel/calibrations/*.json, schema in
// docs/calibration.md): for all devices ("global"), or for one. A device
// without a calibration uses the calibration of a device with the same die, or
// else the global one.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_COSTMODEL_CALIBRATION_H
#define FTUNER_COSTMODEL_CALIBRATION_H

#include "FTuner/CostModel/LatencyFormulas.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ftuner {

struct DeviceSpec;

/// Errors of fitted constants on the rows that they were fitted to.
struct CalibrationFit {
  int64_t rows = 0;
  /// Means of |predicted / measured - 1| with the constants that the fit
  /// started from, and with its own.
  double errorBefore = 0, errorAfter = 0;
  /// Mean of |predicted / measured - 1| on rows that the fit did not see. For
  /// global constants, the rows of each device are predicted by constants that
  /// were fitted to the other devices.
  std::optional<double> errorUnseen = std::nullopt;
};

/// Overheads of the measurements of the fitted rows. They belong to the host
/// and the way of measuring; predictions never use them.
struct CalibrationTiming {
  /// Microseconds that the measurement adds to each launch, and the minimum
  /// that it ever reports.
  double offsetMicroseconds = 0, floorMicroseconds = 0;
};

struct Calibration {
  /// Name of the device, or "global"; "start" for the constants where fits
  /// start, which no measurement gave.
  std::string name = "start";
  /// The device's chip, such as GH100: the calibration serves other devices of
  /// it. Empty if it serves the one device only.
  std::string die;
  /// True if the constants were fitted to FTuner's kernels, and not to the
  /// vendor's.
  bool isOfOwnKernels = false;
  LatencyConstants constants;
  /// Standard deviation of ln(predicted / measured) between kernels for one
  /// shape. A lead is compared with it (docs/latency.md).
  double deviation = 0.08;
  /// Names the measurements that the constants were fitted to, with their date.
  std::string origin;
  /// The command that fitted the constants, and the files of its rows with
  /// their SHA-256. Empty where they are not known.
  std::string command;
  std::vector<std::pair<std::string, std::string>> data;
  std::optional<CalibrationFit> fit;
  std::optional<CalibrationTiming> timing;
};

/// Parses and checks a calibration (schema: docs/calibration.md). Constants
/// that it does not name, and a missing deviation, come from the global one.
/// An error names `sourceName`, the line and the field, and says what was
/// expected.
llvm::Expected<Calibration> parseCalibration(llvm::StringRef json,
                                             llvm::StringRef sourceName);
/// Writes a calibration, with all constants, that `parseCalibration` reads back
/// unchanged.
llvm::json::Object toJson(const Calibration &calibration);
/// A built-in calibration by name, or else the file at that path. The error for
/// an unknown name lists the built-in ones.
llvm::Expected<Calibration> loadCalibration(llvm::StringRef nameOrPath);
/// Returns the built-in calibration for devices without a calibration.
const Calibration &globalCalibration();
/// The built-in calibration of the device's name; else the first, by name, of
/// its die; else the global one.
Calibration defaultCalibration(const DeviceSpec &device);
/// The built-in calibration for FTuner's own kernels on a device: the first, by
/// name, of its die that came from them, since constants are cycles of its SMs
/// and shares of rates that the device states; else `defaultCalibration`.
Calibration kernelCalibration(const DeviceSpec &device);
/// Mean error of devices left out of the global constants, as a share: how far
/// times by them may be off. None for the calibration of a device.
std::optional<double> transferError(const Calibration &calibration);
/// Names of the built-in calibrations, sorted.
std::vector<std::string> builtinCalibrationNames();

/// The figures of a device that the latency formulas take. Without a board
/// power the device has no power limit.
LatencyDevice latencyDevice(const DeviceSpec &device);

/// Returns the work per energy of a process of `processNm` nanometres (above 0)
/// relative to one of 16 nm. docs/devices.md has the table; between its rows it
/// is a power of the feature size, beyond them it stays.
double nodeEfficiency(double processNm);

/// Returns the probability, 0.5 to 1, that a program with the predicted time
/// `first` is really at least as fast as one with `second` (microseconds,
/// second ≥ first): the normal distribution at ln(second / first) over √2 times
/// the deviation.
double choiceConfidence(const Calibration &calibration, double first,
                        double second);

/// Returns the mean gain of measuring both programs and taking the faster one,
/// against taking the first, as a share of the first one's time. With d =
/// ln(second / first) and s = √2 times the deviation, it is the mean of
/// max(0, X − d) for a normal X of deviation s: s · φ(d / s) − d · (1 − Φ(d /
/// s)). It falls from 0.4 · s for equal times to 0.
double measurementGain(const Calibration &calibration, double first,
                       double second);

} // namespace ftuner

#endif // FTUNER_COSTMODEL_CALIBRATION_H
