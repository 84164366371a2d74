//===- SearchOptions.cpp - Options of the search, and who reads them ------===//
#include "FTuner/Search/Problem/SearchOptions.h"
#include <array>

using namespace ftuner;

/// Families that a plan may have at most: kernels that nobody can read or ship.
static constexpr int64_t maxFamilies = 1024;
/// Programs and candidates of one shape: beyond what any workload has.
static constexpr int64_t maxPrograms = 1 << 20;
/// Blocks that an SM of any device could hold.
static constexpr int64_t maxBlocksOfSm = 1024;
/// Fewer steps than a million between two thresholds.
static constexpr double minStep = 1e-6;

template <typename T>
static std::vector<std::string> itemNames(llvm::ArrayRef<const T *> items) {
  std::vector<std::string> names;
  for (const T *item : items)
    names.push_back(item->name().str());
  return names;
}

using Models = llvm::SmallVector<const CodegenModel *>;

/// What "paths" names; those that compete by default for "auto".
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
  // Who names a path opens all of its gates.
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
      option("strategy", &SearchChoice::strategy, "Search strategy")
          .oneOf(itemNames(searchStrategies())),
      option("cost-model", &SearchChoice::costModel,
             "Cost model that ranks programs")
          .oneOf(itemNames(costModels())),
      option("paths", &SearchChoice::paths,
             "Codegen paths whose families compete, separated by commas, or "
             "'auto': all but the gated families, and those of 'proven-paths'")
          .checkedBy([](llvm::StringRef names) {
            return parsePaths(names).takeError();
          }),
      option(
          "proven-paths", &SearchChoice::provenPaths,
          "Gates that are open with 'auto', separated by commas: those whose "
          "families 'ftuner check-gpu' proved on the card")
          .checkedBy([](llvm::StringRef names) {
            return parseGates(names).takeError();
          }),
      option("failed-paths", &SearchChoice::failedPaths,
             "Codegen paths and gates that 'auto' leaves out, separated by "
             "commas: "
             "those with families that failed on the card")
          .checkedBy([](llvm::StringRef names) {
            return parseFailedPaths(names).takeError();
          }),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::commonOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("top-k", &Options::topK, "Programs kept for each shape")
          .within(1, maxPrograms),
      option("max-kernels", &Options::maxKernels,
             "Most kernel families of one workload")
          .within(1, maxFamilies),
      option("least-gain", &Options::leastGain,
             "Least share of the mean time that a kernel family must save")
          .within(0, 1),
      option("tensor-maps", &Options::tensorMaps,
             "Whether kernels may take tensor maps, which their hosts encode"),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::tileRuleOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option(
          "tile-rule", &Options::tileRule,
          "Tiles: 'divisors' of the range's extents, or 'aligned', with "
          "more that suit the device",
          {{"divisors", TileRule::Divisors}, {"aligned", TileRule::Aligned}}),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::candidateOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("pool", &Options::pool,
             "Programs of a shape: 'exact' partitions ranked by score alone, "
             "'tight' ones, which pad less than a row of threads, or of a "
             "'single' uKernel",
             {{"exact", ProgramPool::Exact},
              {"tight", ProgramPool::Tight},
              {"single", ProgramPool::Single}}),
      option(
          "main-axis", &Options::mainAxis,
          "Axis along which two uKernels are combined: the largest 'dynamic' "
          "space axis, or the 'largest', batch and static ones included; a "
          "path that cannot combine along it has programs of one uKernel",
          {{"dynamic", MainAxis::Dynamic}, {"largest", MainAxis::Largest}}),
      option("batch-tiles", &Options::batchTiles,
             "Whether blocks of products may compute several elements of batch "
             "axes"),
      option(
          "split-k", &Options::splitK,
          "Whether kernels of products with few blocks may split k into "
          "slices, which a second kernel adds up, and those of few long rows "
          "a row, where the cost model predicts that to be faster"),
      option("sliced-k", &Options::slicedK,
             "Whether threads of a block may share out the steps along k of "
             "products with few blocks, where the cost model predicts that to "
             "be faster"),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::zetaOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("zeta", &Options::zeta,
             "Active blocks for each SM in SetBound; 0: the device's")
          .within(0, maxBlocksOfSm),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::filterOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("filter", &Options::filter,
             "Reading of the filter: algorithm 1 as in the 'paper', with our "
             "'pareto' fronts, or the stages and the ranking of the authors' "
             "'artifact'",
             {{"pareto", FilterReading::Pareto},
              {"paper", FilterReading::Paper},
              {"artifact", FilterReading::Artifact}}),
      option("epsilon-min", &Options::epsilonMin, "Least padding threshold")
          .within(0, 1),
      option("epsilon-max", &Options::epsilonMax, "Largest padding threshold")
          .within(0, 1)
          .atLeast("epsilon-min"),
      option("epsilon-step", &Options::epsilonStep,
             "Stride of the padding threshold")
          .within(minStep, 1),
      option("lambda-max", &Options::lambdaMax, "Largest occupancy threshold")
          .within(0, 1),
      option("lambda-min", &Options::lambdaMin, "Least occupancy threshold")
          .within(0, 1)
          .atMost("lambda-max"),
      option("lambda-step", &Options::lambdaStep,
             "Stride of the occupancy threshold")
          .within(minStep, 1),
      option("psi", &Options::psi,
             "Least share of a shape's best compute-to-memory ratio")
          .within(0, 1),
      option("psi-count-shared", &Options::psiCountShared,
             "Most uKernels of a shape that the filter 'artifact' keeps by "
             "their compute-to-memory ratio of shared memory")
          .within(1, maxPrograms),
      option("psi-count", &Options::psiCount,
             "Most of these that the filter 'artifact' keeps by their "
             "compute-to-memory ratio of registers")
          .within(1, maxPrograms),
      option("active-blocks-per-sm", &Options::activeBlocksPerSm,
             "Blocks for each SM that saturate the device")
          .within(1, maxBlocksOfSm),
      option("max-candidates", &Options::maxCandidates,
             "Most candidates for each shape after the filter")
          .within(1, maxPrograms),
  };
  return table;
}

const OptionList &ftuner::searchOptionList() {
  static const OptionList list = [] {
    OptionList list;
    list.add({"search", ""}, searchChoiceOptions().decls());
    list.add({"search", ""}, commonOptions().decls());
    list.add({"search", ""}, measureOptions().decls());
    for (const SearchStrategy *strategy : searchStrategies())
      list.add({"strategy", strategy->name().str()}, strategy->options());
    for (const CostModel *model : costModels())
      list.add({"cost model", model->name().str()}, model->options());
    return list;
  }();
  return list;
}

/// Tables of the members of SearchOptions itself.
static std::array<const OptionTable<SearchOptions> *, 5> memberTables() {
  return {&commonOptions(), &tileRuleOptions(), &candidateOptions(),
          &zetaOptions(), &filterOptions()};
}

SearchOptions ftuner::readSearchOptions(const OptionValues &given) {
  SearchOptions options;
  options.own = given;
  for (const OptionTable<SearchOptions> *table : memberTables()) {
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

llvm::Error SearchOptions::check() const {
  for (const OptionTable<SearchOptions> *table : memberTables())
    if (llvm::Error error = table->check(*this))
      return error;
  return measureOptions().check(measuring);
}
