//===- KernelTable.h - What is known of kernels -----------------*- C++ -*-===//
#ifndef FTUNER_KERNEL_MEASURE_KERNELTABLE_H
#define FTUNER_KERNEL_MEASURE_KERNELTABLE_H

#include "FTuner/Kernel/Measure/KernelCompiler.h"
#include "FTuner/Kernel/Measure/OperatorRegistry.h"
#include "FTuner/Measure/Measurer.h"
#include "llvm/ADT/StringMap.h"
#include <map>

namespace ftuner {

/// A `Value` for each kernel that was asked for: by its operator and family, as
/// shapes share kernels. Values stay where they are.
template <typename Value>
class KernelTable {
public:
  /// The registry outlives the table.
  explicit KernelTable(const OperatorRegistry &operators)
      : operators(operators) {}

  struct NewKernels {
    std::vector<KernelCompiler::Job> jobs;
    /// One for each job.
    std::vector<Value *> values;
  };
  /// Adds the kernels of requests that are new, each once. Their names are
  /// those of the workload, with "_k" and a number of its own.
  NewKernels add(llvm::ArrayRef<MeasurementRequest> requests) {
    NewKernels result;
    for (const MeasurementRequest &request : requests) {
      const OperatorRegistry::Entry *entry = operators.find(*request.workload);
      if (!entry)
        continue;
      llvm::StringMap<Value> &known = values[entry];
      auto [place, isNew] = known.try_emplace(request.family.str());
      if (!isNew)
        continue;
      result.jobs.push_back(
          {entry->op, request.family,
           entry->workload.name + "_k" + std::to_string(known.size() - 1)});
      result.values.push_back(&place->second);
    }
    return result;
  }

  /// The operator of a request and what is known of its kernel, which was
  /// added; an error for a workload whose operator the registry does not have.
  llvm::Expected<std::pair<const OperatorRegistry::Entry *, const Value *>>
  find(const MeasurementRequest &request) const {
    const OperatorRegistry::Entry *entry = operators.find(*request.workload);
    if (!entry)
      return llvm::createStringError("the operator of workload '" +
                                     request.workload->name + "' is not known");
    return std::pair(entry,
                     &values.at(entry).find(request.family.str())->second);
  }

private:
  const OperatorRegistry &operators;
  std::map<const OperatorRegistry::Entry *, llvm::StringMap<Value>> values;
};

} // namespace ftuner

#endif // FTUNER_KERNEL_MEASURE_KERNELTABLE_H
