//===- SearchOptions.cpp - Options that several strategies read -----------===//
#include "FTuner/Search/Problem/SearchOptions.h"

using namespace ftuner;

/// Maximum number of families in a plan: more kernels could not be shipped.
static constexpr int64_t maxFamilies = 1024;
/// Maximum number of programs and candidates of one shape: no workload has
/// more.
static constexpr int64_t maxPrograms = 1 << 20;
/// Blocks that an SM of any device could hold.
static constexpr int64_t maxBlocksOfSm = 1024;

const OptionTable<SearchOptions> &ftuner::commonOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("top-k", &Options::topK,
             "The plan keeps this number of programs for each shape")
          .within(1, maxPrograms),
      option("max-kernels", &Options::maxKernels,
             "A workload has at most this number of kernel families")
          .basic()
          .within(1, maxFamilies),
      option("least-gain", &Options::minGain,
             "A kernel family joins the plan only if it saves at least this "
             "share of the mean time")
          .within(0, 1),
      option("tensor-maps", &Options::tensorMaps,
             "Kernels may take tensor maps, which their hosts encode"),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::tileRuleOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option(
          "tile-rule", &Options::tileRule,
          "Tile sizes are 'divisors' of the range's extents, or also sizes "
          "that suit the device ('aligned')",
          {{"divisors", TileRule::Divisors}, {"aligned", TileRule::Aligned}}),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::candidateOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("pool", &Options::pool,
             "A shape's programs are exact partitions ranked only by score "
             "('exact'), may also pad less than a row of threads ('tight'), or "
             "have one uKernel ('single')",
             {{"exact", ProgramPool::Exact},
              {"tight", ProgramPool::Tight},
              {"single", ProgramPool::Single}}),
      option("main-axis", &Options::mainAxis,
             "Two uKernels are combined along the largest 'dynamic' space "
             "axis, or along the 'largest' of all space axes, batch and static "
             "ones included; a path that cannot combine along it has programs "
             "of one uKernel",
             {{"dynamic", MainAxis::Dynamic}, {"largest", MainAxis::Largest}}),
      option("batch-tiles", &Options::batchTiles,
             "Blocks of products may compute several elements of batch axes"),
      option("split-k", &Options::splitK,
             "Kernels with few blocks may split the reduction (k of a product, "
             "long rows) into slices, which a second kernel adds up, if the "
             "cost model predicts a gain")
          .basic(),
      option("sliced-k", &Options::slicedK,
             "Threads of a block may divide the steps along k of products with "
             "few blocks, if the cost model predicts a gain"),
  };
  return table;
}

const OptionTable<SearchOptions> &ftuner::zetaOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("zeta", &Options::zeta,
             "SetBound allows this number of active blocks on an SM; 0 takes "
             "the device's default")
          .within(0, maxBlocksOfSm),
  };
  return table;
}

llvm::ArrayRef<const OptionTable<SearchOptions> *> ftuner::sharedOptions() {
  static const OptionTable<SearchOptions> *const tables[] = {
      &commonOptions(), &tileRuleOptions(), &candidateOptions(),
      &zetaOptions()};
  return tables;
}

llvm::Error SearchOptions::check() const {
  for (const OptionTable<SearchOptions> *table : sharedOptions())
    if (llvm::Error error = table->check(*this))
      return error;
  return measureOptions().check(measuring);
}
