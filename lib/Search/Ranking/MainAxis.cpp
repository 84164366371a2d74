//===- MainAxis.cpp - The axis that programs combine along ----------------===//
#include "FTuner/Search/Ranking/MainAxis.h"
#include "FTuner/Workload/Sampling.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ftuner;

unsigned ftuner::mainAxisOf(const SearchProblem &problem) {
  return problem.options.mainAxis == MainAxis::Largest
             ? problem.workload.largestSpaceAxis()
             : problem.workload.mainAxis();
}

bool ftuner::combinesAlongMainAxis(const SearchProblem &problem,
                                   const ScheduleSpace &space) {
  return llvm::is_contained(space.combineAxes, mainAxisOf(problem));
}

std::vector<std::string> ftuner::mainAxisRemarks(const SearchProblem &problem,
                                                 const CandidateSet &set) {
  std::vector<std::string> remarks;
  if (problem.options.mainAxis != MainAxis::Largest)
    return remarks;
  const Workload &workload = problem.workload;
  unsigned main = mainAxisOf(problem);
  const std::string &name = workload.axes[main].name;
  const CodegenModel *last = nullptr;
  for (const Candidate &candidate : set.candidates) {
    const CodegenModel *path = &candidate.family.path();
    if (std::exchange(last, path) == path)
      continue;
    auto space = path->createSpace(workload, problem.device);
    if (combinesAlongMainAxis(problem, *space))
      continue;
    auto names = llvm::map_range(space->combineAxes, [&](unsigned axis) {
      return workload.axes[axis].name;
    });
    remarks.push_back("main-axis = largest: path '" + path->name().str() +
                      "' cannot combine two uKernels along " + name +
                      ", the largest axis" +
                      (space->combineAxes.empty()
                           ? std::string()
                           : ", only along " + llvm::join(names, ", ")) +
                      "; its programs have one uKernel");
  }
  for (unsigned axis : workload.spaceAxes().list())
    if (axis != main &&
        largestSize(workload.axes[axis]) > workload.axes[main].range.min)
      remarks.push_back("main-axis = largest: " + name +
                        " is the largest axis of the range, but " +
                        workload.axes[axis].name +
                        " is larger for some of its shapes");
  return remarks;
}
