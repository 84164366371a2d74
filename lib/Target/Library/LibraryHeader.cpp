//===- LibraryHeader.cpp - The header of a library ------------------------===//
#include "FTuner/Dialect/UKernel/Bridge/PlanAttributes.h"
#include "FTuner/Dialect/UKernel/IR/UKernel.h"
#include "FTuner/HostAbi/HostAbi.h"
#include "FTuner/Target/Library.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace ftuner {

/// Text that cannot end a comment.
static std::string toComment(StringRef text) {
  std::string result;
  for (char c : text)
    result += llvm::isAlnum(c) || StringRef("_-.$@:+ ").contains(c) ? c : '?';
  return result;
}

/// The type of a scalar in C.
static StringRef toCType(Type type) {
  if (type.isF16())
    return "_Float16";
  if (type.isBF16())
    return "__bf16";
  if (type.isF32())
    return "float";
  if (type.isF64())
    return "double";
  if (type.isInteger(1))
    return "uint8_t";
  if (type.isInteger(8))
    return "int8_t";
  if (type.isInteger(16))
    return "int16_t";
  if (type.isInteger(32))
    return "int32_t";
  return "int64_t"; // And index.
}

namespace {
/// The declarations of one function.
class FunctionHeader {
public:
  FunctionHeader(func::FuncOp function, raw_ostream &os)
      : function(function), type(getAbiType(function)), os(os) {
    chooseNames();
  }

  void write();

private:
  void chooseNames();
  void writeComment();
  void writeShape(RankedTensorType tensor, ArrayAttr symbols);
  void writeSizesComment();
  void writePrototype(StringRef result, const Twine &name,
                      ArrayRef<std::string> parameters);
  ArrayAttr getSymbols(unsigned argument) {
    return argument < function.getNumArguments()
               ? function.getArgAttrOfType<ArrayAttr>(
                     argument, ukernel::UKernelDialect::kShapeAttrName)
               : ArrayAttr();
  }
  std::vector<std::string> getBuffers();
  std::vector<std::string> getSizesAndScalars();
  /// Macros that a compiler must define to have the types of the scalars.
  SmallVector<StringRef> getConditions();

  func::FuncOp function;
  FunctionType type;
  /// Parameters in C for the arguments and the results.
  std::vector<std::string> inputs, outputs;
  raw_ostream &os;
};
} // namespace

/// Chooses names of the source where C takes them, and argN and resultN. No
/// parameter has the name of another one, nor of a size.
void FunctionHeader::chooseNames() {
  llvm::StringSet<> taken;
  for (StringRef name : {"workspace", "stream", "result_sizes"})
    taken.insert(name);
  auto choose = [&](StringRef key, StringRef prefix, TypeRange types,
                    std::vector<std::string> &names) {
    for (auto [index, valueType] : llvm::enumerate(types)) {
      StringRef source = getValueName(function, key, index);
      std::string base =
          source.empty() ? (prefix + Twine(index)).str() : toIdentifier(source);
      auto tensor = dyn_cast<RankedTensorType>(valueType);
      int64_t rank = tensor && key == "arguments" ? tensor.getRank() : 0;
      std::string name = base;
      auto isTaken = [&] {
        bool found = taken.contains(name);
        for (int64_t dim = 0; dim < rank; ++dim)
          found |= taken.contains(name + "_size" + std::to_string(dim));
        return found;
      };
      for (unsigned i = 1; isTaken(); ++i)
        name = base + "_" + std::to_string(i);
      taken.insert(name);
      for (int64_t dim = 0; dim < rank; ++dim)
        taken.insert(name + "_size" + std::to_string(dim));
      names.push_back(std::move(name));
    }
  };
  choose("arguments", "arg", type.getInputs(), inputs);
  choose("results", "result", type.getResults(), outputs);
}

void FunctionHeader::writeShape(RankedTensorType tensor, ArrayAttr symbols) {
  os << tensor.getElementType() << '[';
  for (auto [dim, size] : llvm::enumerate(tensor.getShape())) {
    os << (dim ? ", " : "");
    auto symbol = symbols && dim < symbols.size()
                      ? dyn_cast<StringAttr>(symbols[dim])
                      : StringAttr();
    if (symbol)
      os << toComment(symbol.getValue());
    else if (ShapedType::isDynamic(size))
      os << '?';
    else
      os << size;
  }
  os << ']';
}

/// Says where the sizes of each result stand.
void FunctionHeader::writeSizesComment() {
  int64_t first = 0;
  for (auto [index, output] : llvm::enumerate(type.getResults())) {
    int64_t rank = cast<RankedTensorType>(output).getRank();
    if (rank > 0) {
      os << " *   result_sizes[" << first;
      if (rank > 1)
        os << ".." << first + rank - 1;
      os << "]  the sizes of " << outputs[index] << '\n';
    }
    first += rank;
  }
}

void FunctionHeader::writeComment() {
  auto source = function->getAttrOfType<StringAttr>(kSourceNameAttrName);
  os << "/* " << toComment(source ? source.getValue() : function.getName())
     << '\n';
  for (auto [index, input] : llvm::enumerate(type.getInputs())) {
    os << " *   " << inputs[index] << "  ";
    if (auto tensor = dyn_cast<RankedTensorType>(input))
      writeShape(tensor, getSymbols(index));
    else
      os << input;
    os << '\n';
  }
  for (auto [index, output] : llvm::enumerate(type.getResults())) {
    os << " *   " << outputs[index] << "  ";
    writeShape(cast<RankedTensorType>(output), {});
    os << '\n';
  }
  writeSizesComment();
  os << " */\n";
}

std::vector<std::string> FunctionHeader::getBuffers() {
  std::vector<std::string> buffers;
  for (auto [index, input] : llvm::enumerate(type.getInputs()))
    if (isa<RankedTensorType>(input))
      buffers.push_back("const void *" + inputs[index]);
  for (const std::string &output : outputs)
    buffers.push_back("void *" + output);
  return buffers;
}

std::vector<std::string> FunctionHeader::getSizesAndScalars() {
  std::vector<std::string> sizes, scalars;
  for (auto [index, input] : llvm::enumerate(type.getInputs())) {
    const std::string &name = inputs[index];
    auto tensor = dyn_cast<RankedTensorType>(input);
    if (!tensor) {
      scalars.push_back((toCType(input) + " " + name).str());
      continue;
    }
    for (int64_t dim = 0; dim < tensor.getRank(); ++dim)
      if (tensor.isDynamicDim(dim))
        sizes.push_back("int64_t " + name + "_size" + std::to_string(dim));
  }
  sizes.insert(sizes.end(), scalars.begin(), scalars.end());
  return sizes;
}

SmallVector<StringRef> FunctionHeader::getConditions() {
  auto has = [&](auto predicate) {
    return llvm::any_of(type.getInputs(), predicate);
  };
  SmallVector<StringRef> conditions;
  if (has([](Type input) { return input.isF16(); }))
    conditions.push_back("defined(__FLT16_MAX__)");
  if (has([](Type input) { return input.isBF16(); }))
    conditions.push_back("defined(__BFLT16_MAX__)");
  return conditions;
}

void FunctionHeader::writePrototype(StringRef result, const Twine &name,
                                    ArrayRef<std::string> parameters) {
  constexpr size_t width = 80;
  // Types such as _Float16 are extensions of C and C++.
  std::string line = getConditions().empty() ? "" : "__extension__ ";
  line += (result + " " + name + "(").str();
  std::string indent(line.size(), ' ');
  for (auto [index, parameter] : llvm::enumerate(parameters)) {
    std::string text =
        parameter + (index + 1 < parameters.size() ? "," : ");\n");
    if (index > 0 && line.size() + 1 + text.size() > width) {
      os << line << '\n';
      line = indent + text;
    } else {
      line += (index > 0 ? " " : "") + text;
    }
  }
  os << line;
}

void FunctionHeader::write() {
  std::string name = function.getName().str();
  std::vector<std::string> sizes = getSizesAndScalars(), parameters = sizes;
  SmallVector<StringRef> conditions = getConditions();
  os << '\n';
  if (!conditions.empty())
    os << "#if " << llvm::join(conditions, " && ") << '\n';
  writeComment();
  parameters.push_back("int64_t *result_sizes");
  writePrototype("int32_t", name + "_result_sizes", parameters);
  parameters = sizes;
  if (parameters.empty())
    parameters.push_back("void");
  writePrototype("int64_t", name + "_workspace_size", parameters);
  parameters = getBuffers();
  parameters.insert(parameters.end(), sizes.begin(), sizes.end());
  parameters.push_back("void *workspace");
  parameters.push_back("void *stream");
  writePrototype("int32_t", name, parameters);
  if (!conditions.empty())
    os << "#endif\n";
}

void writeLibraryHeader(ModuleOp module, const PtxImages &ptx,
                        StringRef fileName, StringRef libraryName,
                        raw_ostream &os) {
  FailureOr<DeviceSpec> device = deviceOf(module);
  std::string guard = "FTUNER_LIBRARY_" + libraryName.upper() + "_H";
  os << "/* " << toComment(fileName) << " - compiled by FTuner for "
     << (succeeded(device) ? toComment(device->name) + " (" : std::string("("))
     << ptx.own.target.chip()
     << (ptx.portable
             ? ", and other architectures from " + ptx.portable->target.chip()
             : std::string())
     << R"().
 *
 * Every function has three forms. NAME_result_sizes writes all sizes of all
 * results to result_sizes; NAME_workspace_size returns bytes of workspace; NAME
 * launches the kernels on a stream and does not wait for them.
 *
 *   argN         a tensor: contiguous, row-major memory of the device; or a
 *                scalar by value. It has the name that the source gives it, as
 *                a word of C
 *   argN_sizeD   size of dimension D of argN
 *   resultN      memory for a result, which overlaps nothing else; likewise
 *   workspace    memory of NAME_workspace_size bytes, aligned to 256; may be
 *                null for 0 bytes
 *   stream       a CUstream, or ftrt_emulator_stream(), for which memory is the
 *                host's
 *
 * In shapes a name stands for one size wherever it occurs, ? for any size. A
 * code other than 0 and a negative workspace are errors; ftrt_last_error() says
 * which.
 */
#ifndef )"
     << guard << "\n#define " << guard << R"(

#include <FTuner/Runtime/ftrt.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kernels and the manifest, for ftrt_prepare() and ftrt_release(). */
extern ftrt_module )"
     << getModuleSymbol(libraryName) << ";\n";
  for (auto function : module.getOps<func::FuncOp>())
    if (getAbiType(function))
      FunctionHeader(function, os).write();
  os << "\n#ifdef __cplusplus\n}\n#endif\n\n#endif /* " << guard << " */\n";
}

} // namespace ftuner
