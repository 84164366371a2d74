//===- HostAbi.cpp - Attributes that carry the host ABI ---------*- C++ -*-===//
#include "FTuner/Transforms/HostAbi.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace ftuner {

FunctionType getAbiType(func::FuncOp func) {
  auto type =
      func->getAttrOfType<TypeAttr>(ukernel::UKernelDialect::kAbiTypeAttrName);
  return type ? dyn_cast<FunctionType>(type.getValue()) : FunctionType();
}

/// Words that no C or C++ compiler takes as a function's name.
static bool isReserved(StringRef name) {
  static const llvm::StringSet<> words = {
      "alignas", "alignof",   "and",      "asm",      "auto",     "bool",
      "break",   "case",      "catch",    "char",     "class",    "concept",
      "const",   "constexpr", "continue", "decltype", "default",  "delete",
      "do",      "double",    "else",     "enum",     "explicit", "export",
      "extern",  "false",     "float",    "for",      "friend",   "goto",
      "if",      "inline",    "int",      "long",     "mutable",  "namespace",
      "new",     "noexcept",  "not",      "nullptr",  "operator", "or",
      "private", "protected", "public",   "register", "requires", "restrict",
      "return",  "short",     "signed",   "sizeof",   "static",   "struct",
      "switch",  "template",  "this",     "throw",    "true",     "try",
      "typedef", "typeid",    "typename", "typeof",   "union",    "unsigned",
      "using",   "virtual",   "void",     "volatile", "while",    "xor"};
  return words.contains(name) || name.starts_with("ftrt_");
}

std::string toIdentifier(StringRef name) {
  std::string result;
  for (char c : name)
    result += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (result.empty() || llvm::isDigit(result.front()) || isReserved(result))
    result = "f_" + result;
  return result;
}

std::string uniqueName(StringRef base, llvm::StringSet<> &taken) {
  std::string name = base.str();
  for (unsigned i = 1; !taken.insert(name).second; ++i)
    name = (base + "_" + Twine(i)).str();
  return name;
}

llvm::StringSet<> collectSymbols(Operation *module) {
  llvm::StringSet<> symbols;
  for (Operation &op : module->getRegion(0).getOps())
    if (auto name =
            op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName()))
      symbols.insert(name.getValue());
  return symbols;
}

SmallVector<Type> getSizeFunctionInputs(FunctionType abiType) {
  SmallVector<Type> inputs;
  for (Type type : abiType.getInputs())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      inputs.append(tensor.getNumDynamicDims(),
                    IndexType::get(type.getContext()));
  for (Type type : abiType.getInputs())
    if (!isa<RankedTensorType>(type))
      inputs.push_back(type);
  return inputs;
}

} // namespace ftuner
