//===- SearchOptionList.cpp - All options of a search ---------------------===//
#include "FTuner/Search/Setup/SearchOptionList.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"

using namespace ftuner;

template <typename T>
static std::vector<std::string> itemNames(llvm::ArrayRef<const T *> items) {
  std::vector<std::string> names;
  for (const T *item : items)
    names.push_back(item->name().str());
  return names;
}

using Models = llvm::SmallVector<const CodegenModel *>;

/// Returns the paths that the option "paths" names; for "auto", the paths that
/// compete by default.
static llvm::Expected<Models> parsePaths(llvm::StringRef names) {
  if (names == kAutoPaths)
    return defaultCodegenModels();
  return parseCodegenModels(names);
}

/// Reads "failed-paths", names of codegen paths and gates. A path stands for
/// all of its families.
static llvm::Expected<llvm::SmallVector<Gate>>
parseFailedPaths(llvm::StringRef names) {
  llvm::SmallVector<Gate> known(codegenGates());
  for (const CodegenModel *model : codegenModels())
    if (!llvm::is_contained(known, Gate{model}))
      known.push_back({model});
  return parseGates(names, known, "codegen paths and gates");
}

llvm::Expected<ChosenPaths> ftuner::readPaths(const SearchChoice &choice) {
  llvm::Expected<Models> named = parsePaths(choice.paths);
  if (!named)
    return named.takeError();
  auto proven = parseGates(choice.provenPaths);
  if (!proven)
    return proven.takeError();
  auto failed = parseFailedPaths(choice.failedPaths);
  if (!failed)
    return failed.takeError();
  // To name a path opens all of its gates.
  if (choice.paths != kAutoPaths)
    return ChosenPaths{std::move(*named)};
  ChosenPaths chosen;
  auto isOpen = [&](const Gate &gate) {
    if (llvm::is_contained(*failed, gate))
      return false;
    if (!llvm::is_contained(codegenGates(), gate))
      return true;
    bool isProven = llvm::is_contained(*proven, gate);
    (isProven ? chosen.proven : chosen.unproven).push_back(gate);
    return isProven;
  };
  for (const CodegenModel *model : codegenModels()) {
    if (!isOpen({model}))
      continue;
    chosen.models.push_back(model);
    for (const ScheduleField &field : model->scheduleFields())
      if (field.isGated && !isOpen({model, &field}))
        chosen.closedFields.push_back(&field);
  }
  return chosen;
}

const OptionTable<SearchChoice> &ftuner::searchChoiceOptions() {
  static const OptionTable<SearchChoice> table = {
      option("strategy", &SearchChoice::strategy,
             "The strategy plans the kernels of each workload")
          .basic()
          .oneOf(itemNames(searchStrategies())),
      option("cost-model", &SearchChoice::costModel,
             "The cost model ranks programs")
          .basic()
          .oneOf(itemNames(costModels())),
      option("paths", &SearchChoice::paths,
             "These codegen paths compete, separated by commas; with 'auto' "
             "all paths do except gated families, which join if 'proven-paths' "
             "names them")
          .basic()
          .checkedBy([](llvm::StringRef names) {
            return parsePaths(names).takeError();
          }),
      option("proven-paths", &SearchChoice::provenPaths,
             "These gates are open with 'auto', separated by commas: 'ftuner "
             "check-gpu' proved their families on the card")
          .checkedBy([](llvm::StringRef names) {
            return parseGates(names).takeError();
          }),
      option("failed-paths", &SearchChoice::failedPaths,
             "These codegen paths and gates are left out of 'auto', separated "
             "by commas: they have families that failed on the card")
          .checkedBy([](llvm::StringRef names) {
            return parseFailedPaths(names).takeError();
          }),
  };
  return table;
}

const OptionList &ftuner::searchOptionList() {
  static const OptionList list = [] {
    OptionList list;
    list.add({"search", ""}, searchChoiceOptions().decls());
    list.add({"search", ""}, commonOptions().decls());
    list.add({"search", "", "Measurement"}, measureOptions().decls());
    for (const SearchStrategy *strategy : searchStrategies()) {
      bool isBaseline = llvm::is_contained(baselines(), strategy);
      list.add({isBaseline ? "baseline" : "strategy", strategy->name().str()},
               strategy->options());
    }
    for (const CostModel *model : costModels())
      list.add({"cost model", model->name().str()}, model->options());
    return list;
  }();
  return list;
}

SearchOptions ftuner::readSearchOptions(const OptionValues &given) {
  SearchOptions options;
  options.own = given;
  for (const OptionTable<SearchOptions> *table : sharedOptions()) {
    table->read(given, options);
    for (const OptionDecl *decl : table->decls())
      options.own.erase(decl->name);
  }
  measureOptions().read(given, options.measuring);
  for (const OptionDecl *decl :
       joined({searchChoiceOptions().decls(), measureOptions().decls()}))
    options.own.erase(decl->name);
  options.cost.own = options.own;
  return options;
}
