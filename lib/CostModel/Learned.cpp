//===- Learned.cpp - Times of a trained predictor -------------------------===//
//
// A predictor (Predictor.h) predicts the time of a program's trees, or the
// ratio of that time to the prediction of `latency`. It is far more expensive
// than `latency`, which therefore ranks first: `learned` orders the best
// programs of each shape anew.
//
// A program keeps the time that `latency` predicts if it is unknown to the
// predictor: no program of the training had such features or as many
// statements.
//
//===----------------------------------------------------------------------===//
#include "FTuner/CostModel/CostModel.h"
#include "FTuner/CostModel/Predictor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include <cmath>
#include <unordered_map>

using namespace ftuner;

/// Programs of one network evaluation: enough to keep vectors busy, and few
/// enough for their features to be small.
static constexpr size_t kBatch = 256;

namespace {
struct LearnedOptions {
  /// A built-in predictor or a file; empty for the built-in one.
  std::string model;
  int64_t programs = 64;
};

/// A program and its shape.
using ProgramKey = llvm::SmallVector<int64_t, 40>;

class Evaluator final : public CostEvaluator {
public:
  Evaluator(const Workload &workload, const DeviceSpec &device,
            const CostModelOptions &options,
            std::shared_ptr<const Predictor> predictor);

  double score(llvm::ArrayRef<int64_t> shape, const Program &program) override {
    double score = 0;
    scoreEach(program, shape, score);
    return score;
  }
  void scoreAll(llvm::ArrayRef<Program> programs,
                llvm::ArrayRef<const FamilyCosts *> costs,
                llvm::ArrayRef<int64_t> shape,
                llvm::MutableArrayRef<double> scores) override {
    std::vector<llvm::ArrayRef<int64_t>> shapes(programs.size(), shape);
    scoreEach(programs, shapes, scores);
  }
  void scoreEach(llvm::ArrayRef<Program> programs,
                 llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                 llvm::MutableArrayRef<double> scores) override;
  CostBreakdown evaluate(llvm::ArrayRef<int64_t> shape,
                         const Program &program) override;
  std::optional<ChoiceConfidence> confidence(double first,
                                             double second) const override;
  std::vector<std::string> remarks() const override;

private:
  void countUnknown(const Program &program, llvm::StringRef reason) {
    if (numUnknown++ == 0)
      firstUnknown = (program.family->str() + " with " + reason).str();
  }

  const Workload &workload;
  const DeviceSpec &device;
  std::shared_ptr<const Predictor> predictor;
  std::unique_ptr<CostEvaluator> latency;
  /// With the deviation of the predictor, if that is known.
  Calibration calibration;
  std::optional<PredictorDeviation> deviation;
  std::vector<float> figures;
  /// Scores so far: a search comes back to its best programs.
  std::unordered_map<ProgramKey, double, ProgramNumbersHash> known;
  /// Programs that the predictor knows nothing of, and why the first one.
  size_t numUnknown = 0;
  std::string firstUnknown;
};
} // namespace

Evaluator::Evaluator(const Workload &workload, const DeviceSpec &device,
                     const CostModelOptions &options,
                     std::shared_ptr<const Predictor> predictor)
    : workload(workload), device(device), predictor(std::move(predictor)),
      latency(
          findCostModel("latency")->createEvaluator(workload, device, options)),
      calibration(options.calibration),
      deviation(this->predictor->deviation(device.name)),
      figures(this->predictor->encodeDevice(latencyDevice(device))) {
  if (deviation && deviation->withinShape > 0)
    calibration.deviation = deviation->withinShape;
}

void Evaluator::scoreEach(llvm::ArrayRef<Program> programs,
                          llvm::ArrayRef<llvm::ArrayRef<int64_t>> shapes,
                          llvm::MutableArrayRef<double> scores) {
  for (size_t first = 0; first < programs.size(); first += kBatch) {
    // The new ones, each once.
    std::vector<double *> places;
    std::vector<double> byLatency;
    std::vector<const Program *> asked;
    std::vector<PredictorProgram> trees;
    std::vector<std::pair<size_t, const double *>> answers;
    llvm::ArrayRef<Program> batch =
        programs.slice(first, std::min(kBatch, programs.size() - first));
    for (auto [index, program] : llvm::enumerate(batch)) {
      llvm::ArrayRef<int64_t> shape = shapes[first + index];
      ProgramKey key = programNumbers(program);
      llvm::append_range(key, shape);
      auto [it, isNew] = known.try_emplace(std::move(key), 0.0);
      answers.emplace_back(first + index, &it->second);
      if (!isNew)
        continue;
      // A program that is unknown to the predictor keeps this score.
      double score = it->second = latency->score(shape, program);
      PredictorProgram read =
          predictorProgram(workload, program, shape, device);
      if (std::string reason = predictor->unknownIn(read); !reason.empty()) {
        countUnknown(program, reason);
        continue;
      }
      places.push_back(&it->second);
      byLatency.push_back(-score);
      asked.push_back(&program);
      trees.push_back(std::move(read));
    }
    std::vector<const PredictorProgram *> pointers;
    for (const PredictorProgram &program : trees)
      pointers.push_back(&program);
    std::vector<double> values(trees.size());
    predictor->predict(pointers, figures, values);
    for (auto [place, value, time, program] :
         llvm::zip_equal(places, values, byLatency, asked)) {
      if (std::isfinite(value))
        *place = -(predictor->corrects() ? value * time : value);
      else
        countUnknown(*program, "a prediction that is no finite number");
    }
    for (auto [index, answer] : answers)
      scores[index] = *answer;
  }
}

CostBreakdown Evaluator::evaluate(llvm::ArrayRef<int64_t> shape,
                                  const Program &program) {
  // The terms of `latency`, and how far it is off.
  CostBreakdown breakdown = latency->evaluate(shape, program);
  double time = -breakdown.score;
  double score = this->score(shape, program);
  breakdown.terms.push_back({"correction", -score - time, -1});
  breakdown.figures.push_back({"latency_time", time, 0});
  if (deviation)
    breakdown.figures.push_back({"log_deviation", deviation->overall, 0});
  breakdown.score = 0;
  for (const CostTerm &term : breakdown.terms)
    breakdown.score += term.weight * term.value;
  return breakdown;
}

std::optional<ChoiceConfidence> Evaluator::confidence(double first,
                                                      double second) const {
  return ChoiceConfidence{choiceConfidence(calibration, -first, -second),
                          measurementGain(calibration, -first, -second)};
}

std::vector<std::string> Evaluator::remarks() const {
  std::vector<std::string> lines;
  std::vector<std::string> trained;
  for (const auto &[name, rows] : predictor->devices())
    if (rows > 0)
      trained.push_back(name);
  if (!llvm::is_contained(trained, device.name))
    lines.push_back(
        "cost model 'learned' was trained on " +
        (trained.empty() ? "no device" : llvm::join(trained, ", ")) +
        (predictor->devices().count(device.name)
             ? ", and adapted to " + device.name + " without times"
             : ", and not on " + device.name) +
        ": nothing says how far it is off there");
  std::string usual = defaultCalibration(device).name;
  if (predictor->corrects() && calibration.name != usual)
    lines.push_back("cost model 'learned' corrects 'latency' with the "
                    "constants of calibration '" +
                    usual + "', and not of '" + calibration.name +
                    "': nothing says how far it is off with these");
  if (numUnknown > 0)
    lines.push_back(std::to_string(numUnknown) + " of " +
                    std::to_string(known.size()) +
                    " programs have the time of 'latency', since the predictor "
                    "says nothing of them, e.g. " +
                    firstUnknown);
  return lines;
}

static const OptionTable<LearnedOptions> &ownOptions() {
  static const OptionTable<LearnedOptions> table = {
      option("learned-model", &LearnedOptions::model,
             "The cost model 'learned' takes its predictor from a built-in "
             "one, such as 'h200', or from a file of 'ftuner learn'; without "
             "one, 'h200' counts")
          .file(OptionFile::Access::Read)
          .orBuiltin(builtinPredictorNames),
      option("learned-programs", &LearnedOptions::programs,
             "The cost model 'learned' reorders this number of a shape's best "
             "programs by 'latency'")
          .within(1, 1 << 20),
  };
  return table;
}

static constexpr const char *kDefaultPredictor = "h200";

namespace {
class LearnedCostModel final : public CostModel {
public:
  llvm::StringRef name() const override { return "learned"; }
  bool predictsTime() const override { return true; }
  OptionDecls options() const override { return ownOptions().decls(); }
  llvm::Expected<std::shared_ptr<const CostModelData>>
  load(const OptionValues &given) const override {
    std::string name = ownOptions().read(given).model;
    if (name.empty())
      return nullptr;
    llvm::Expected<std::shared_ptr<const Predictor>> predictor =
        loadPredictor(name);
    if (!predictor)
      return optionError("learned-model",
                         llvm::toString(predictor.takeError()));
    return std::move(*predictor);
  }
  std::optional<Prefilter>
  prefilter(const CostModelOptions &options) const override {
    return Prefilter{findCostModel("latency"),
                     ownOptions().read(options.own).programs};
  }
  std::string calibrationName(const CostModelOptions &options) const override {
    return options.calibration.name + "+predictor-" +
           predictorOf(options)->hash().take_front(12).str();
  }

  std::unique_ptr<CostEvaluator>
  createEvaluator(const Workload &workload, const DeviceSpec &device,
                  const CostModelOptions &options) const override {
    return std::make_unique<Evaluator>(workload, device, options,
                                       predictorOf(options));
  }

private:
  /// Returns the loaded predictor, or else the built-in one.
  std::shared_ptr<const Predictor>
  predictorOf(const CostModelOptions &options) const {
    auto loaded = options.loaded.find(this);
    if (loaded != options.loaded.end())
      return std::static_pointer_cast<const Predictor>(loaded->second);
    return llvm::cantFail(loadPredictor(kDefaultPredictor));
  }
};
} // namespace

namespace ftuner {
const CostModel &learnedCostModel() {
  static const LearnedCostModel model;
  return model;
}
} // namespace ftuner
