//===- OptionListJson.cpp - The options of the pipeline as JSON -----------===//
#include "FTuner/Pipelines/Pipelines.h"
#include "FTuner/Schedule/CodegenModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include <cmath>

using namespace ftuner;

/// Version of the format; docs/extending/options.md has a log of changes.
static constexpr int64_t version = 2;

static llvm::json::Value toJson(const OptionValue &value) {
  return std::visit([](const auto &v) { return llvm::json::Value(v); }, value);
}

/// A bound of an option, as the option's type has it.
static llvm::json::Value toJson(double bound, const OptionDecl &decl) {
  if (std::holds_alternative<int64_t>(decl.defaultValue))
    return static_cast<int64_t>(bound);
  return bound;
}

static void write(const DeclaredOption &option, llvm::json::OStream &json) {
  const OptionDecl &decl = *option.decl;
  json.attribute("name", decl.name);
  json.attribute("type", decl.typeName());
  json.attribute("text", decl.text);
  json.attribute("default", toJson(decl.defaultValue));
  json.attribute("level", nameOf(decl.level));
  json.attribute("group", option.group());
  if (std::isfinite(decl.min))
    json.attribute("min", toJson(decl.min, decl));
  if (std::isfinite(decl.max))
    json.attribute("max", toJson(decl.max, decl));
  if (!decl.atLeast.empty())
    json.attribute("at_least", decl.atLeast);
  if (!decl.atMost.empty())
    json.attribute("at_most", decl.atMost);
  if (!decl.choices.empty())
    json.attribute("values", llvm::json::Array(decl.choices));
  if (!decl.files.empty())
    json.attributeArray("files", [&] {
      for (const OptionFile &file : decl.files)
        json.object([&] {
          json.attribute("prefix", file.prefix);
          json.attribute("access", nameOf(file.access));
        });
    });
  if (decl.builtinNames)
    json.attribute("builtin", llvm::json::Array(decl.builtinNames()));
  json.attribute("help", option.help);
  json.attributeArray("read_by", [&] {
    for (const OptionReader &reader : option.readers)
      json.object([&] {
        json.attribute("kind", reader.kind);
        if (!reader.name.empty())
          json.attribute("name", reader.name);
      });
  });
}

static void write(const OptionPreset &preset, llvm::json::OStream &json) {
  json.attribute("name", preset.name);
  json.attributeObject("values", [&] {
    for (const auto &[name, value] : preset.values)
      json.attribute(name, toJson(value));
  });
}

/// The table of a path's schedules; attributes have their parameters by `key`.
static void write(const ScheduleTable &table, llvm::json::OStream &json) {
  json.attribute("summary", table.summary);
  json.attribute("tiles", table.tiles);
  json.attributeArray("fields", [&] {
    for (const ScheduleField &field : table.fields)
      json.object([&] {
        json.attribute("name", field.name);
        json.attribute("key", field.key);
        json.attribute("type", field.isFlag ? "switch" : "integer");
        json.attribute("text", field.text);
        json.attribute("default", field.otherwise);
        json.attribute("optional", field.isOptional);
        json.attribute("gated", field.isGated);
        json.attribute("takes", field.legalValues());
      });
  });
  json.attributeArray("rules", [&] {
    for (const ScheduleRule &rule : table.rules)
      json.value(rule.expected);
  });
}

void ftuner::writeOptionList(llvm::raw_ostream &os) {
  auto options = llvm::to_vector(pipelineOptionList().options());
  llvm::sort(options, [](const DeclaredOption &a, const DeclaredOption &b) {
    return a.decl->name < b.decl->name;
  });
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("version", version);
    json.attributeArray("options", [&] {
      for (const DeclaredOption &option : options)
        json.object([&] { write(option, json); });
    });
    json.attributeArray("presets", [&] {
      for (const OptionPreset &preset : optionPresets())
        json.object([&] { write(preset, json); });
    });
    json.attributeArray("paths", [&] {
      for (const CodegenModel *path : codegenModels())
        json.object([&] {
          json.attribute("name", path->name());
          json.attribute("gated",
                         llvm::is_contained(codegenGates(), Gate{path}));
          json.attributeObject("schedule",
                               [&] { write(path->scheduleTable(), json); });
        });
    });
  });
  os << '\n';
}
