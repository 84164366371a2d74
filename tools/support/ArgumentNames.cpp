//===- ArgumentNames.cpp - Names that a module's text gives ---------------===//
#include "ArgumentNames.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace ftuner::tool {

/// Returns the name of an SSA value; empty for one that printers make up.
static llvm::StringRef nameOf(const AsmParserState::SMDefinition &definition) {
  const char *begin = definition.loc.Start.getPointer();
  const char *end = definition.loc.End.getPointer();
  llvm::StringRef name(begin, begin ? end - begin : 0);
  name.consume_front("%");
  llvm::StringRef number = name;
  number.consume_front("arg");
  bool isMadeUp = llvm::all_of(number, llvm::isDigit);
  return isMadeUp ? llvm::StringRef() : name;
}

static void nameArguments(func::FuncOp function, const AsmParserState &text) {
  if (function.isExternal() || !function.isPublic() ||
      function->hasAttr(kNamesAttrName) ||
      function->hasAttr(ukernel::UKernelDialect::kAbiTypeAttrName))
    return;
  const AsmParserState::BlockDefinition *block =
      text.getBlockDef(&function.getBody().front());
  Builder builder(function.getContext());
  llvm::SmallVector<Attribute> names;
  for (BlockArgument argument : function.getArguments()) {
    llvm::StringRef name;
    if (block && argument.getArgNumber() < block->arguments.size())
      name = nameOf(block->arguments[argument.getArgNumber()]);
    if (auto location = dyn_cast<NameLoc>(argument.getLoc());
        location && name.empty())
      name = location.getName();
    names.push_back(builder.getStringAttr(name));
  }
  if (llvm::all_of(
          names, [](Attribute name) { return cast<StringAttr>(name).empty(); }))
    return;
  function->setAttr(kNamesAttrName,
                    builder.getDictionaryAttr(builder.getNamedAttr(
                        "arguments", builder.getArrayAttr(names))));
}

OwningOpRef<ModuleOp> parseNamed(llvm::SourceMgr &sources,
                                 MLIRContext &context) {
  ParserConfig config(&context);
  const llvm::MemoryBuffer *buffer =
      sources.getMemoryBuffer(sources.getMainFileID());
  if (isBytecode(*buffer) || context.allowsUnregisteredDialects())
    return parseSourceFile<ModuleOp>(sources, config);
  Block block;
  AsmParserState text;
  if (failed(parseAsmSourceFile(sources, &block, config, &text)))
    return {};
  auto location = FileLineColLoc::get(&context, buffer->getBufferIdentifier(),
                                      /*line=*/0, /*column=*/0);
  OwningOpRef<ModuleOp> module =
      mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
          &block, &context, location);
  if (module)
    for (auto function : module->getOps<func::FuncOp>())
      nameArguments(function, text);
  return module;
}

} // namespace ftuner::tool
