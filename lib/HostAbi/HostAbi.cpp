//===- HostAbi.cpp - Attributes that carry the host ABI ---------*- C++ -*-===//
#include "FTuner/HostAbi/HostAbi.h"

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/TargetParser/Triple.h"
#include <array>
#include <dlfcn.h>

using namespace mlir;

namespace ftuner {

FunctionType getAbiType(func::FuncOp func) {
  auto type =
      func->getAttrOfType<TypeAttr>(ukernel::UKernelDialect::kAbiTypeAttrName);
  return type ? dyn_cast<FunctionType>(type.getValue()) : FunctionType();
}

ArrayRef<int64_t> getUnsigned(func::FuncOp func, StringRef key) {
  auto given = func->getAttrOfType<DictionaryAttr>(kUnsignedAttrName);
  auto numbers =
      given ? given.getAs<DenseI64ArrayAttr>(key) : DenseI64ArrayAttr();
  return numbers ? numbers.asArrayRef() : ArrayRef<int64_t>();
}

StringRef getValueName(FunctionOpInterface func, StringRef key,
                       unsigned index) {
  auto given = func->getAttrOfType<DictionaryAttr>(kNamesAttrName);
  auto names = given ? given.getAs<ArrayAttr>(key) : ArrayAttr();
  auto name = names && index < names.size() ? dyn_cast<StringAttr>(names[index])
                                            : StringAttr();
  return name ? name.getValue() : StringRef();
}

std::string describeArgument(FunctionOpInterface func, unsigned index) {
  StringRef name = getValueName(func, "arguments", index);
  return name.empty() ? "argument " + std::to_string(index)
                      : "argument '" + name.str() + "'";
}

std::string sourcePosition(Location location, bool hasFolder) {
  std::string text;
  location->walk([&](Location inner) {
    // Importers of graphs name nodes; a position says more.
    if (auto named = dyn_cast<NameLoc>(inner); named && text.empty())
      text = named.getName().str();
    auto position = dyn_cast<FileLineColLoc>(inner);
    if (!position)
      return WalkResult::advance();
    StringRef file = position.getFilename().getValue();
    text = llvm::formatv("{0}:{1}:{2}",
                         hasFolder ? file : llvm::sys::path::filename(file),
                         position.getLine(), position.getColumn());
    return WalkResult::interrupt();
  });
  return text;
}

SmallVector<std::string> argumentWords(FunctionOpInterface func) {
  SmallVector<std::string> words;
  llvm::StringSet<> taken;
  unsigned count = func.getNumArguments();
  if (auto type = func->getAttrOfType<TypeAttr>(
          ukernel::UKernelDialect::kAbiTypeAttrName))
    if (auto abiType = dyn_cast<FunctionType>(type.getValue()))
      count = abiType.getNumInputs();
  for (unsigned index = 0; index < count; ++index) {
    StringRef name = getValueName(func, "arguments", index);
    words.push_back(uniqueName(
        name.empty() ? "arg" + std::to_string(index) : toWord(name), taken));
  }
  return words;
}

/// Returns whether a function of the name is another one to a linker or to
/// LLVM: one that LLVM knows, or anything that the C library of this process
/// exports.
static bool isLibraryFunction(StringRef name) {
  static const llvm::TargetLibraryInfoImpl library(
      llvm::Triple("x86_64-unknown-linux-gnu"));
  static const std::array<void *, 2> loaded = {
      dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD),
      dlopen("libm.so.6", RTLD_LAZY | RTLD_NOLOAD)};
  llvm::LibFunc function;
  return name == "main" || library.getLibFunc(name, function) ||
         llvm::any_of(loaded, [&](void *handle) {
           return handle && dlsym(handle, name.str().c_str());
         });
}

/// Macros of <stdint.h>, such as INT32_MAX, and NULL.
static bool isMacro(StringRef name) {
  auto starts = [&](StringRef prefix) { return name.starts_with(prefix); };
  auto ends = [&](StringRef suffix) { return name.ends_with(suffix); };
  return name == "NULL" ||
         (llvm::any_of(ArrayRef<StringRef>{"INT", "UINT", "PTRDIFF_",
                                           "SIG_ATOMIC_", "SIZE_", "WCHAR_",
                                           "WINT_"},
                       starts) &&
          llvm::any_of(ArrayRef<StringRef>{"_MAX", "_MIN", "_C", "_WIDTH"},
                       ends));
}

/// Names that the standards of C and C++ leave to the implementation, those of
/// <stdint.h>, macros of GNU C, and what linkers define.
static bool isLeftToCompiler(StringRef name) {
  return name.starts_with("_") || name.ends_with("_t") || name == "linux" ||
         name == "unix" || name == "end" || name == "edata" ||
         name == "etext" || isMacro(name);
}

/// Names that no C or C++ compiler takes as a function's, and those that mean
/// something else.
static bool isReserved(StringRef name) {
  static const llvm::StringSet<> words = [] {
    constexpr llvm::StringLiteral text =
        "alignas alignof and and_eq asm auto bitand bitor bool break case "
        "catch "
        "char char8_t char16_t char32_t class co_await co_return co_yield "
        "compl "
        "concept const const_cast consteval constexpr constinit continue "
        "decltype default delete do double dynamic_cast else enum explicit "
        "export extern false float for friend goto if inline int long mutable "
        "namespace new noexcept not not_eq nullptr operator or or_eq private "
        "protected public register reinterpret_cast requires restrict return "
        "short signed sizeof static static_assert static_cast struct switch "
        "template this thread_local throw true try typedef typeid typename "
        "typeof typeof_unqual union unsigned using virtual void volatile "
        "wchar_t while xor xor_eq";
    SmallVector<StringRef> list;
    text.split(list, ' ');
    llvm::StringSet<> result;
    result.insert(list.begin(), list.end());
    return result;
  }();
  return words.contains(name) || name.starts_with_insensitive("ftrt_") ||
         name.starts_with_insensitive("ftuner_") || isLeftToCompiler(name) ||
         isLibraryFunction(name);
}

std::string toWord(StringRef name) {
  std::string result;
  for (char c : name)
    result += llvm::isAlnum(c) || c == '_' ? c : '_';
  if (result.empty() || llvm::isDigit(result.front()))
    result = "f_" + result;
  return result;
}

std::string toIdentifier(StringRef name) {
  std::string result = toWord(name);
  return isReserved(result) ? "f_" + result : result;
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
