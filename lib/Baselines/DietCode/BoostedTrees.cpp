//===- BoostedTrees.cpp - Gradient-boosted regression trees ---------------===//
#include "BoostedTrees.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace ftuner;

static llvm::Error makeError(const llvm::Twine &text) {
  return llvm::createStringError("model of XGBoost: " + text);
}

static const llvm::json::Object *find(const llvm::json::Object *from,
                                      llvm::ArrayRef<llvm::StringRef> path) {
  for (llvm::StringRef name : path)
    from = from ? from->getObject(name) : nullptr;
  return from;
}

/// A number that stands as a number, as text, or as text of a list of one.
static llvm::Expected<double> numberIn(const llvm::json::Object &object,
                                       llvm::StringRef name) {
  const llvm::json::Value *value = object.get(name);
  if (value)
    if (std::optional<double> number = value->getAsNumber())
      return *number;
  llvm::StringRef text = value ? value->getAsString().value_or("") : "";
  text.consume_front("[");
  text.consume_back("]");
  double number = 0;
  // The text of a model with several targets has a comma, and is refused.
  if (text.empty() || text.getAsDouble(number) || !std::isfinite(number))
    return makeError("expected a number as '" + name + "'");
  return number;
}

/// A list of a tree, of as many numbers as it has nodes.
static llvm::Expected<std::vector<double>>
listIn(const llvm::json::Object &tree, llvm::StringRef name, size_t count) {
  const llvm::json::Array *list = tree.getArray(name);
  if (!list || list->size() != count)
    return makeError("expected " + llvm::Twine(count) + " numbers as '" + name +
                     "' of a tree");
  std::vector<double> numbers;
  for (const llvm::json::Value &value : *list) {
    std::optional<double> number = value.getAsNumber();
    if (std::optional<bool> flag = value.getAsBoolean())
      number = *flag;
    if (!number)
      return makeError("expected numbers as '" + name + "' of a tree");
    numbers.push_back(*number);
  }
  return numbers;
}

llvm::Expected<BoostedTrees> BoostedTrees::parse(llvm::StringRef json) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(json);
  if (!value)
    return makeError("expected JSON: " + llvm::toString(value.takeError()));
  const llvm::json::Object *learner = find(value->getAsObject(), {"learner"});
  const llvm::json::Object *parameters = find(learner, {"learner_model_param"});
  const llvm::json::Object *objective = find(learner, {"objective"});
  const llvm::json::Object *model =
      find(learner, {"gradient_booster", "model"});
  const llvm::json::Array *trees = model ? model->getArray("trees") : nullptr;
  if (!parameters || !objective || !trees)
    return makeError("expected 'learner' with 'learner_model_param', "
                     "'objective' and 'gradient_booster' of trees");
  llvm::StringRef goal = objective->getString("name").value_or("");
  if (goal != "reg:squarederror")
    return makeError("expected the objective 'reg:squarederror', but got '" +
                     goal + "'");
  BoostedTrees result;
  llvm::Expected<double> base = numberIn(*parameters, "base_score");
  if (!base)
    return base.takeError();
  llvm::Expected<double> numFeatures = numberIn(*parameters, "num_feature");
  if (!numFeatures)
    return numFeatures.takeError();
  result.base = static_cast<float>(*base);
  result.features = static_cast<size_t>(*numFeatures);
  for (const llvm::json::Value &entry : *trees) {
    const llvm::json::Object *tree = entry.getAsObject();
    const llvm::json::Array *children =
        tree ? tree->getArray("left_children") : nullptr;
    if (!children || children->empty())
      return makeError("expected 'left_children' of each tree");
    if (const llvm::json::Array *categories = tree->getArray("categories"))
      if (!categories->empty())
        return makeError("expected numerical features, but got categories");
    size_t count = children->size();
    std::vector<double> lists[5];
    for (auto [list, name] :
         {std::pair(0, "left_children"), std::pair(1, "right_children"),
          std::pair(2, "split_indices"), std::pair(3, "split_conditions"),
          std::pair(4, "default_left")}) {
      llvm::Expected<std::vector<double>> numbers = listIn(*tree, name, count);
      if (!numbers)
        return numbers.takeError();
      lists[list] = std::move(*numbers);
    }
    std::vector<DecisionForest::Node> nodes(count);
    for (size_t i = 0; i < count; ++i) {
      DecisionForest::Node &node = nodes[i];
      node.threshold = static_cast<float>(lists[3][i]);
      node.unknownGoesLeft = lists[4][i] != 0;
      if (lists[0][i] >= 0) {
        // A child comes after its parent, so that every walk ends.
        for (double child : {lists[0][i], lists[1][i]})
          if (!(child > static_cast<double>(i) &&
                child < static_cast<double>(count)))
            return makeError("expected children of a node behind it");
        if (!(lists[2][i] >= 0 && lists[2][i] < *numFeatures))
          return makeError("expected a feature below " +
                           llvm::Twine(result.features));
        node.left = static_cast<uint32_t>(lists[0][i]);
        node.right = static_cast<uint32_t>(lists[1][i]);
        node.input = static_cast<int32_t>(lists[2][i]);
      }
    }
    result.trees.add(nodes);
  }
  return result;
}
