//===- MeasurerFactory.h - Measurers by name --------------------*- C++ -*-===//
#ifndef FTUNER_SEARCH_SETUP_MEASURERFACTORY_H
#define FTUNER_SEARCH_SETUP_MEASURERFACTORY_H

#include "FTuner/Measure/Measurer.h"
#include "FTuner/Search/Setup/SearchSetup.h"

namespace ftuner {

/// Makes the measurer that a setup names, for a device that outlives it:
/// "recorded:FILE", "command:CMD", "model:NAME", or "cost-model", the search's
/// own model. Other names are errors: a GPU needs kernels, which the core
/// cannot make.
llvm::Expected<std::unique_ptr<Measurer>>
makeMeasurer(const SearchSetup &setup, const DeviceSpec &device);

/// Returns the context of one search with a measurer, which may be null, by the
/// setup's options.
SearchContext measuringContext(const SearchSetup &setup, Measurer *measurer);

} // namespace ftuner

#endif // FTUNER_SEARCH_SETUP_MEASURERFACTORY_H
