//===- RankerTest.cpp - Rankings follow from their arguments --------------===//
#include "../DeviceTest.h"
#include "../StubModel.h"
#include "FTuner/Search/Planning/RankedStrategy.h"
#include "FTuner/Search/Setup/StrategyRegistry.h"
#include "FTuner/Workload/Contraction.h"

using namespace ftuner;

namespace {
class RankerTest : public DeviceTest {
protected:
  RankerTest()
      : workload(Workload::matmul({1, 24}, SizeRange::fixed(640),
                                  SizeRange::fixed(64))) {
    stub.maxRows = 4;
    stub.maxWorkersM = 8;
  }

  SearchProblem problem(llvm::StringRef costModel) const {
    return {workload, device, path, *findCostModel(costModel), {}};
  }
  std::unique_ptr<ProgramRanker> ranker(const SearchProblem &problem,
                                        const RankedStrategy &strategy) const {
    auto ranker = llvm::cantFail(strategy.makeRanker(problem, {}));
    ranker->prepare(RangeSamples(workload).shapes);
    return ranker;
  }

  Workload workload;
  StubModel stub;
  const CodegenModel *path = &stub;
};
} // namespace

/// Programs, best first, and their ratings, and what the ranker counted.
static std::string textOf(const ProgramRanker &ranker,
                          const RankedShape &ranked) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << tileText(ranked.shape) << " of " << ranked.numRated << "\n";
  for (const RankedFamily &program : ranked.programs)
    os << ranker.table.families[program.family].str() << " " << program.score
       << "\n";
  Plan plan;
  ranker.report(ranked, plan);
  for (const SearchStatistic &statistic : plan.statistics)
    os << statistic.name << " " << statistic.value << "\n";
  return text;
}

TEST_F(RankerTest, NoCallChangesAnother) {
  const Shape shapes[] = {
      {1, 640, 64}, {7, 640, 64}, {24, 640, 64}, {96, 640, 64}};
  for (const SearchStrategy *strategy : searchStrategies())
    for (const char *costModel : {"sia", "latency", "learned"}) {
      SCOPED_TRACE(strategy->name().str() + " by " + costModel);
      // All of FTuner's own strategies rank.
      const auto &ranking = static_cast<const RankedStrategy &>(*strategy);
      SearchProblem p = problem(costModel);
      auto forth = ranker(p, ranking), back = ranker(p, ranking);
      std::vector<RankedShape> first, second;
      for (const Shape &shape : shapes)
        first.push_back(llvm::cantFail(forth->rank(shape)));
      for (const Shape &shape : llvm::reverse(shapes))
        second.insert(second.begin(), llvm::cantFail(back->rank(shape)));
      for (size_t i = 0; i < first.size(); ++i) {
        EXPECT_EQ(textOf(*forth, first[i]), textOf(*back, second[i]));
        EXPECT_EQ(textOf(*forth, first[i]),
                  textOf(*forth, llvm::cantFail(forth->rank(shapes[i]))));
        // Ratings do not depend on the shape that was ranked last.
        const RankedFamily &best = first[i].programs.front();
        const KernelFamily &family = forth->table.families[best.family];
        KernelResources resources = stub.resources(workload, family);
        for (size_t neighbour = 0; neighbour < first.size(); ++neighbour)
          EXPECT_EQ(
              forth->rate(family, resources, shapes[i], first[neighbour]),
              back->rate(family, resources, shapes[i], second[neighbour]));
        EXPECT_EQ(forth->rate(family, resources, shapes[i], first[i]),
                  best.score);
      }
    }
}
