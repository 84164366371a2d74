//===- SearchOptions.cpp - Options that several strategies read -----------===//
#include "FTuner/Search/Problem/SearchOptions.h"

using namespace ftuner;

/// Families that a plan may have at most: kernels that nobody can read or ship.
static constexpr int64_t maxFamilies = 1024;
/// Programs and candidates of one shape: beyond what any workload has.
static constexpr int64_t maxPrograms = 1 << 20;
/// Blocks that an SM of any device could hold.
static constexpr int64_t maxBlocksOfSm = 1024;

const OptionTable<SearchOptions> &ftuner::commonOptions() {
  using Options = SearchOptions;
  static const OptionTable<SearchOptions> table = {
      option("top-k", &Options::topK, "Programs kept for each shape")
          .within(1, maxPrograms),
      option("max-kernels", &Options::maxKernels,
             "Most kernel families of one workload")
          .within(1, maxFamilies),
      option("least-gain", &Options::minGain,
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
