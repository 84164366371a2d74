//===- MeasurerFactory.h - Measurers by name --------------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_SETUP_MEASURERFACTORY_H
#define FTUNER_SEARCH_SETUP_MEASURERFACTORY_H

#include "FTuner/Measure/Measurer.h"
#include "FTuner/Search/Setup/SearchSetup.h"

namespace ftuner {

/// Makes the measurer that a setup names, for a device that outlives it:
/// "recorded:FILE", "command:CMD", "model:NAME" and "cost-model", the search's
/// own one. Others are errors: a GPU needs kernels, which the core has not.
llvm::Expected<std::unique_ptr<Measurer>>
makeMeasurer(const SearchSetup &setup, const DeviceSpec &device);

/// The means of one search with that measurer, as the options say.
SearchContext measuringContext(const SearchSetup &setup, Measurer *measurer);

} // namespace ftuner

#endif // FTUNER_SEARCH_SETUP_MEASURERFACTORY_H
