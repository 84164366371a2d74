//===- TreeTrainer.cpp - Trains boosted trees -----------------------------===//
//
// XGBoost's C interface, of which only what has been the same from version 1.6
// on is taken.
//
//===----------------------------------------------------------------------===//
#include "TreeTrainer.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/DynamicLibrary.h"
#include <cmath>
#include <cstdlib>
#include <limits>

using namespace ftuner;

namespace {
using Handle = void *;
using Length = uint64_t;
} // namespace

struct TreeTrainer::Library {
  const char *(*lastError)() = nullptr;
  int (*matrixCreate)(const float *, Length, Length, float, Handle *) = nullptr;
  int (*matrixSet)(Handle, const char *, const float *, Length) = nullptr;
  int (*matrixFree)(Handle) = nullptr;
  int (*create)(const Handle *, Length, Handle *) = nullptr;
  int (*setParameter)(Handle, const char *, const char *) = nullptr;
  int (*update)(Handle, int, Handle) = nullptr;
  int (*evaluate)(Handle, int, Handle *, const char **, Length,
                  const char **) = nullptr;
  int (*predict)(Handle, Handle, int, unsigned, int, Length *,
                 const float **) = nullptr;
  int (*save)(Handle, const char *, Length *, const char **) = nullptr;
  int (*free)(Handle) = nullptr;
};

TreeTrainer::TreeTrainer(std::unique_ptr<Library> library)
    : library(std::move(library)) {}

TreeTrainer::~TreeTrainer() = default;

llvm::Expected<std::unique_ptr<TreeTrainer>>
TreeTrainer::open(const std::string &path) {
  std::vector<std::string> names = {"libxgboost.so.0", "libxgboost.so"};
  const char *given = std::getenv("FTUNER_XGBOOST_LIBRARY");
  if (!path.empty())
    names = {path};
  else if (given && *given)
    names = {given};
  llvm::sys::DynamicLibrary opened;
  std::string why;
  for (const std::string &name : names) {
    opened = llvm::sys::DynamicLibrary::getPermanentLibrary(name.c_str(), &why);
    if (opened.isValid())
      break;
  }
  if (!opened.isValid())
    return llvm::createStringError(
        "expected XGBoost's library: install the package 'libxgboost0', or "
        "'xgboost-cpu' of Python, and name its file by the environment "
        "variable FTUNER_XGBOOST_LIBRARY (" +
        why + ")");
  auto library = std::make_unique<Library>();
  std::string missing;
  auto find = [&](auto &function, const char *symbol) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        opened.getAddressOfSymbol(symbol));
    if (!function)
      missing = symbol;
  };
  find(library->lastError, "XGBGetLastError");
  find(library->matrixCreate, "XGDMatrixCreateFromMat");
  find(library->matrixSet, "XGDMatrixSetFloatInfo");
  find(library->matrixFree, "XGDMatrixFree");
  find(library->create, "XGBoosterCreate");
  find(library->setParameter, "XGBoosterSetParam");
  find(library->update, "XGBoosterUpdateOneIter");
  find(library->evaluate, "XGBoosterEvalOneIter");
  find(library->predict, "XGBoosterPredict");
  find(library->save, "XGBoosterSaveModelToBuffer");
  find(library->free, "XGBoosterFree");
  if (!missing.empty())
    return llvm::createStringError(
        "expected XGBoost's library from version 1.6 on, but there is no '" +
        missing + "'");
  return std::unique_ptr<TreeTrainer>(new TreeTrainer(std::move(library)));
}

/// The error of "[3]\ttrain-rmse:0.25".
static double errorIn(llvm::StringRef line) {
  double error = std::numeric_limits<double>::infinity();
  line.rsplit(':').second.trim().getAsDouble(error);
  return error;
}

llvm::Expected<std::string>
TreeTrainer::trainJson(const TrainingRows &rows, const TreeOptions &options,
                       std::vector<float> *predictions) const {
  const Library &xgb = *library;
  std::string failure;
  auto check = [&](int result) {
    if (result != 0 && failure.empty())
      failure = xgb.lastError();
    return result == 0;
  };
  auto fail = [&] { return llvm::createStringError("XGBoost: " + failure); };
  Handle matrix = nullptr, booster = nullptr;
  auto cleanup = llvm::make_scope_exit([&] {
    if (booster)
      xgb.free(booster);
    if (matrix)
      xgb.matrixFree(matrix);
  });
  if (!check(
          xgb.matrixCreate(rows.features.data(), rows.size(), rows.numFeatures,
                           std::numeric_limits<float>::quiet_NaN(), &matrix)))
    return fail();
  auto set = [&](const char *field, const std::vector<float> &values) {
    return values.empty() ||
           check(xgb.matrixSet(matrix, field, values.data(), values.size()));
  };
  if (!set("label", rows.labels) || !set("weight", rows.weights) ||
      !set("base_margin", rows.baseScores) ||
      !check(xgb.create(&matrix, 1, &booster)))
    return fail();
  for (const auto &[name, value] :
       {std::pair("objective", std::string("reg:squarederror")),
        std::pair("tree_method", std::string("exact")),
        std::pair("nthread", std::string("1")),
        std::pair("verbosity", std::string("0")),
        std::pair("max_depth", std::to_string(options.maxDepth)),
        std::pair("eta", std::to_string(options.eta)),
        std::pair("gamma", std::to_string(options.gamma)),
        std::pair("min_child_weight", std::to_string(options.minChildWeight)),
        std::pair("seed", std::to_string(options.seed))})
    if (!check(xgb.setParameter(booster, name, value.c_str())))
      return fail();
  double minError = std::numeric_limits<double>::infinity();
  int64_t unchanged = 0;
  for (int64_t round = 0;
       round < options.maxRounds && unchanged < options.patience; ++round) {
    const char *name = "train", *line = nullptr;
    if (!check(xgb.update(booster, static_cast<int>(round), matrix)) ||
        !check(xgb.evaluate(booster, static_cast<int>(round), &matrix, &name, 1,
                            &line)))
      return fail();
    double error = errorIn(line);
    unchanged = error < minError ? 0 : unchanged + 1;
    minError = std::min(minError, error);
  }
  Length length = 0;
  const char *text = nullptr;
  if (!check(xgb.save(booster, R"({"format":"json"})", &length, &text)))
    return fail();
  std::string json(text, length);
  if (predictions) {
    const float *values = nullptr;
    if (!check(xgb.predict(booster, matrix, 0, 0, 0, &length, &values)))
      return fail();
    predictions->assign(values, values + length);
  }
  return json;
}

llvm::Expected<BoostedTrees>
TreeTrainer::train(const TrainingRows &rows, const TreeOptions &options) const {
  llvm::Expected<std::string> json = trainJson(rows, options);
  if (!json)
    return json.takeError();
  return BoostedTrees::parse(*json);
}
