//===- ScheduleAttrTest.cpp - Schedules of every path in IR ---------------===//
#include "FTuner/Codegen/IR/ScheduleAttr.h"
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "ScheduleSamples.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/DialectRegistry.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace ftuner;

namespace {
class ScheduleAttrTest : public ::testing::Test {
protected:
  ScheduleAttrTest() : context(makeRegistry()) {
    dialect = context.getOrLoadDialect<ukernel::UKernelDialect>();
  }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerUKernelDialect(registry);
    return registry;
  }
  static std::string textOf(const Schedule &schedule) {
    return ("#ukernel." + schedule.path().name() + "<" +
            attributeText(schedule) + ">")
        .str();
  }
  /// What a text is parsed to, or null; `errors` has what was said of it.
  Attribute parse(const std::string &text) {
    errors.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
      return success();
    });
    return parseAttribute(text, &context);
  }

  MLIRContext context;
  ukernel::UKernelDialect *dialect;
  std::string errors;
};
} // namespace

TEST_F(ScheduleAttrTest, EveryLegalScheduleReturnsFromText) {
  for (const CodegenModel *path : codegenModels())
    forEachLegalPair(*path, [&](ArrayRef<int64_t> numbers) {
      Schedule schedule(*path, numbers);
      std::string text = textOf(schedule);
      SCOPED_TRACE(text);
      Attribute parsed = parse(text);
      if (llvm::Error error = checkSchedule(schedule)) {
        EXPECT_FALSE(parsed);
        EXPECT_NE(errors.find(llvm::toString(std::move(error))),
                  std::string::npos)
            << errors;
        return;
      }
      ASSERT_TRUE(parsed) << errors;
      auto attribute = cast<ukernel::ScheduleAttrInterface>(parsed);
      EXPECT_EQ(attribute.toSchedule(), schedule);
      EXPECT_EQ(parsed, dialect->makeSchedule(schedule));
      std::string printed;
      llvm::raw_string_ostream(printed) << parsed;
      EXPECT_EQ(printed, text);
    });
}

TEST_F(ScheduleAttrTest, RefusesIllegalNumbersByName) {
  for (const CodegenModel *path : codegenModels())
    forEachIllegalField(*path, [&](const ScheduleField &field,
                                   ArrayRef<int64_t> numbers, int64_t number) {
      // What a flag is not, has no text.
      if (field.isFlag)
        return;
      // Written in full: schedules keep no numbers beyond 32 bits.
      std::string text = ("#ukernel." + path->name() + "<").str();
      llvm::ArrayRef<ScheduleField> fields = path->scheduleFields();
      for (size_t first = 0; first < fields.size();) {
        size_t count = parameterAt(fields, first).size();
        if (!fields[first].isFlag) {
          text += (first ? ", " : "") + fields[first].key.str() + " = ";
          text += count > 1 ? "[" : "";
          for (size_t i = first; i < first + count; ++i)
            text += (i > first ? ", " : "") + std::to_string(numbers[i]);
          text += count > 1 ? "]" : "";
        }
        first += count;
      }
      text += ">";
      EXPECT_FALSE(parse(text)) << text;
      EXPECT_NE(errors.find((path->name() + ": expected " + field.name +
                             " of " + field.legalValues() + ", but got " +
                             std::to_string(number))
                                .str()),
                std::string::npos)
          << text << ": " << errors;
    });
}
