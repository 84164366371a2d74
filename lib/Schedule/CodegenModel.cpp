//===- CodegenModel.cpp - Model of a codegen path -------------------------===//
#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ftuner;

const CodegenModel *ftuner::findCodegenModel(llvm::StringRef name) {
  for (const CodegenModel *model : codegenModels())
    if (model->name() == name)
      return model;
  return nullptr;
}

std::string ftuner::namesOf(llvm::ArrayRef<const CodegenModel *> models,
                            llvm::StringRef separator) {
  return llvm::join(
      llvm::map_range(models,
                      [](const CodegenModel *model) { return model->name(); }),
      separator);
}

std::string ftuner::codegenModelNames() {
  return namesOf(codegenModels(), ", ");
}

llvm::SmallVector<const CodegenModel *> ftuner::defaultCodegenModels() {
  return llvm::to_vector(
      llvm::make_filter_range(codegenModels(), [](const CodegenModel *model) {
        return !llvm::is_contained(codegenGates(), Gate{model});
      }));
}

std::string Gate::name() const {
  return field ? (path->name() + "." + field->name).str() : path->name().str();
}

std::string ftuner::namesOf(llvm::ArrayRef<Gate> gates,
                            llvm::StringRef separator) {
  return llvm::join(
      llvm::map_range(gates, [](const Gate &gate) { return gate.name(); }),
      separator);
}

llvm::Expected<llvm::SmallVector<Gate>>
ftuner::parseGates(llvm::StringRef names, llvm::ArrayRef<Gate> known,
                   llvm::StringRef what) {
  llvm::SmallVector<Gate> named;
  llvm::SmallVector<llvm::StringRef> given;
  if (!names.empty())
    llvm::append_range(given, llvm::split(names, ","));
  for (llvm::StringRef name : given) {
    const Gate *found = llvm::find_if(
        known, [&](const Gate &gate) { return gate.name() == name.trim(); });
    if (found == known.end())
      return llvm::createStringError(
          "expected names of " + what + " (" + namesOf(known, ", ") +
          "), separated by commas, but got '" + name.trim() + "'");
    named.push_back(*found);
  }
  return llvm::to_vector(llvm::make_filter_range(known, [&](const Gate &gate) {
    return llvm::is_contained(named, gate);
  }));
}

llvm::Expected<llvm::SmallVector<const CodegenModel *>>
ftuner::parseCodegenModels(llvm::StringRef names) {
  llvm::SmallVector<const CodegenModel *> named;
  for (llvm::StringRef name : llvm::split(names, ",")) {
    const CodegenModel *model = findCodegenModel(name.trim());
    if (!model)
      return llvm::createStringError(
          "expected names of codegen paths (" + codegenModelNames() +
          "), separated by commas, but got '" + name.trim() + "'");
    named.push_back(model);
  }
  return llvm::to_vector(
      llvm::make_filter_range(codegenModels(), [&](const CodegenModel *model) {
        return llvm::is_contained(named, model);
      }));
}

llvm::Expected<llvm::SmallVector<const CodegenModel *>>
ftuner::supportingModels(llvm::ArrayRef<const CodegenModel *> models,
                         const Workload &workload, const DeviceSpec &device) {
  llvm::SmallVector<const CodegenModel *> supporting;
  llvm::Error reasons = llvm::Error::success();
  for (const CodegenModel *model : models) {
    if (llvm::Error reason = model->supports(workload, device))
      reasons = llvm::joinErrors(std::move(reasons), std::move(reason));
    else
      supporting.push_back(model);
  }
  if (supporting.empty()) {
    if (!reasons)
      return llvm::createStringError("expected a codegen path");
    return reasons;
  }
  llvm::consumeError(std::move(reasons));
  return supporting;
}
