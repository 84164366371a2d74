//===- MeasurerFactory.cpp - Measurers by name ----------------------------===//
#include "FTuner/Search/Setup/MeasurerFactory.h"
#include "FTuner/Measure/CommandMeasurer.h"
#include "FTuner/Measure/CostModelMeasurer.h"
#include "FTuner/Measure/MeasurementLog.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"

using namespace ftuner;

static llvm::Error makeError(const llvm::Twine &text) {
  return llvm::createStringError("option --measurer: " + text);
}

static llvm::Expected<std::unique_ptr<Measurer>>
makeModel(const CostModel &model, const SearchSetup &setup,
          const DeviceSpec &device) {
  if (!model.predictsTime())
    return makeError("cost model '" + model.name() + "' predicts no time");
  CostModelOptions options = setup.costOptions(device);
  return std::make_unique<CostModelMeasurer>(device, model, options);
}

static llvm::Expected<std::unique_ptr<Measurer>>
makeRecorded(llvm::StringRef path, const DeviceSpec &device) {
  if (!llvm::sys::fs::is_regular_file(path))
    return makeError("expected a log of measurements, but '" + path +
                     "' is no file");
  llvm::Expected<MeasurementLog> log = MeasurementLog::read(path, device.name);
  if (!log)
    return makeError(llvm::toString(log.takeError()));
  if (log->size() == 0)
    return makeError("expected measurements of device '" + device.name +
                     "', but '" + path + "' has none");
  return std::make_unique<RecordedMeasurer>(std::move(*log));
}

llvm::Expected<std::unique_ptr<Measurer>>
ftuner::makeMeasurer(const SearchSetup &setup, const DeviceSpec &device) {
  const MeasureOptions &options = setup.options.measuring;
  auto [kind, argument] = splitMeasurerName(options.measurer);
  if (kind == "recorded")
    return makeRecorded(argument, device);
  if (kind == "command")
    return std::make_unique<CommandMeasurer>(device, argument.str(),
                                             options.commandSeconds);
  if (kind == "cost-model")
    return makeModel(*setup.costModel, setup, device);
  if (kind == "model")
    if (const CostModel *model = findCostModel(argument))
      return makeModel(*model, setup, device);
  return makeError("'" + options.measurer +
                   "' measures no times for this pass alone");
}

SearchContext ftuner::measuringContext(const SearchSetup &setup,
                                       Measurer *measurer) {
  const MeasureOptions &options = setup.options.measuring;
  SearchContext context;
  context.measurer = measurer;
  if (measurer) {
    context.budget = options.budget;
    context.log = options.log;
  }
  return context;
}
