//===- IreeOps.cpp - Operations of IREE in generic form -------------------===//
#include "IreeOps.h"
#include "FTuner/Runtime/IreeImports.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ftuner;

static Attribute halAttribute(MLIRContext *context, const Twine &text) {
  return OpaqueAttr::get(StringAttr::get(context, "hal"), text.str(),
                         NoneType::get(context));
}

static Operation *create(ImplicitLocOpBuilder &b, StringRef name,
                         ArrayRef<NamedAttribute> properties,
                         ValueRange operands = {}, TypeRange results = {},
                         unsigned regions = 0) {
  OperationState state(b.getLoc(), name, operands, results, {});
  if (!properties.empty())
    state.propertiesAttr = b.getDictionaryAttr(properties);
  for (unsigned region = 0; region < regions; ++region)
    state.addRegion();
  return b.create(state);
}

/// Appends the sizes of a tensor that its type does not tell.
static void appendDynamicSizes(ImplicitLocOpBuilder &b, Value tensor,
                               SmallVectorImpl<Value> &sizes) {
  auto type = dyn_cast<RankedTensorType>(tensor.getType());
  for (int64_t dim = 0; type && dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(b.createOrFold<tensor::DimOp>(tensor, dim));
}

/// A block with arguments at the begin of a region.
static Block *createBlock(ImplicitLocOpBuilder &b, Region &region,
                          TypeRange types) {
  return b.createBlock(&region, {}, types,
                       SmallVector<Location>(types.size(), b.getLoc()));
}

static NamedAttribute isPublic(OpBuilder &b, bool value) {
  return b.getNamedAttr("sym_visibility",
                        b.getStringAttr(value ? "public" : "private"));
}

//===----------------------------------------------------------------------===//
// CUDA
//===----------------------------------------------------------------------===//

/// Arguments of the regions of exports: the device and the workload, which is
/// the number of the kernel and the blocks.
static SmallVector<Type> exportArguments(OpBuilder &b) {
  auto device = OpaqueType::get(b.getStringAttr("hal"), "device");
  return {device, b.getIndexType(), b.getIndexType()};
}

/// One of the exports of a choice. IREE takes the first whose condition holds,
/// or the last.
static void buildCudaExport(ImplicitLocOpBuilder &b, const iree::Choice &choice,
                            size_t index, int64_t ordinal) {
  const iree::Kernel &kernel = choice.kernels[index];
  bool isLast = index + 1 == choice.kernels.size();
  MLIRContext *context = b.getContext();
  auto bindings = llvm::map_to_vector(choice.isReadOnly, [](bool isReadOnly) {
    return std::string("#hal.pipeline.binding<storage_buffer") +
           (isReadOnly ? ", ReadOnly>" : ">");
  });
  auto properties = llvm::to_vector<8>(ArrayRef<NamedAttribute>{
      b.getNamedAttr(
          "layout",
          halAttribute(context, "pipeline.layout<constants = " +
                                    Twine(choice.constants) + ", bindings = [" +
                                    llvm::join(bindings, ", ") + "]>")),
      b.getNamedAttr("ordinal", b.getIndexAttr(ordinal)),
      b.getNamedAttr("sym_name", b.getStringAttr(kernel.name)),
      isPublic(b, true),
      b.getNamedAttr("workgroup_local_memory",
                     b.getIndexAttr(kernel.sharedMemoryBytes)),
      b.getNamedAttr("workgroup_size",
                     b.getIndexArrayAttr({kernel.threads, 1, 1}))});
  if (!isLast)
    properties.push_back(b.getNamedAttr(
        "condition_fallback",
        FlatSymbolRefAttr::get(context, choice.kernels[index + 1].name)));
  Operation *op = create(b, "hal.executable.export", properties, {}, {},
                         /*regions=*/2);
  OpBuilder::InsertionGuard guard(b);
  // No launch at all without a block.
  Block *grid = createBlock(b, op->getRegion(0), exportArguments(b));
  Value blocks = grid->getArgument(2);
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value others = arith::MinUIOp::create(b, blocks, one);
  create(b, "hal.return", {}, {blocks, others, others});
  if (isLast)
    return;
  Block *condition = createBlock(b, op->getRegion(1), exportArguments(b));
  Value number = arith::ConstantIndexOp::create(b, kernel.number);
  Value isMeant = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        condition->getArgument(1), number);
  create(b, "hal.return", {}, isMeant);
}

static void buildCudaExecutable(ImplicitLocOpBuilder &b, StringRef name,
                                ArrayRef<iree::Choice> choices,
                                StringRef image) {
  StringRef extension = image.starts_with("\177ELF") ? ".cubin" : ".ptx";
  std::string objects =
      ("executable.objects<{#hal.executable.target<\"cuda\", "
       "\"cuda-nvptx-fb\"> = [#hal.executable.object<{path = \"" +
       name + extension + "\", data = dense<\"0x" + llvm::toHex(image) +
       "\"> : vector<" + Twine(image.size()) + "xi8>}>]}>")
          .str();
  Operation *source = create(
      b, "hal.executable.source",
      {b.getNamedAttr("objects", halAttribute(b.getContext(), objects)),
       b.getNamedAttr("sym_name", b.getStringAttr(name)), isPublic(b, false)},
      {}, {}, /*regions=*/1);
  b.createBlock(&source->getRegion(0));
  int64_t ordinal = 0;
  for (const iree::Choice &choice : choices)
    for (size_t index = 0; index < choice.kernels.size(); ++index)
      buildCudaExport(b, choice, index, ordinal++);
  create(b, "hal.executable.source_end", {});
}

//===----------------------------------------------------------------------===//
// The CPU
//===----------------------------------------------------------------------===//

/// The function that stands for a kernel, in the order of ImportedLaunch.
static func::FuncOp declareImport(ImplicitLocOpBuilder &b,
                                  const iree::Kernel &kernel,
                                  TypeRange arguments) {
  auto import = func::FuncOp::create(b, iree::kImportPrefix + kernel.name,
                                     b.getFunctionType(arguments, {}));
  import.setPrivate();
  import->setAttr("llvm.bareptr", b.getBoolAttr(true));
  return import;
}

/// The function of a choice: takes its tensors, its constants, the number of
/// the kernel and the blocks. One workgroup of it runs the whole grid.
static void buildCpuFunction(ImplicitLocOpBuilder &b,
                             const iree::Choice &choice) {
  auto binding = OpaqueType::get(b.getStringAttr("stream"), "binding");
  auto element = MemRefType::get({}, b.getI8Type());
  size_t tensors = choice.isReadOnly.size();
  SmallVector<Type> types(tensors, binding);
  types.append(choice.constants + 2, b.getI32Type());
  constexpr size_t headSize = sizeof(iree::ImportedLaunch) / sizeof(uint64_t);
  SmallVector<Type> importTypes(headSize, b.getI64Type());
  for (size_t index = 0; index < tensors; ++index)
    importTypes.append({element, b.getI64Type()});
  importTypes.append(choice.constants, b.getI32Type());
  auto imports =
      llvm::map_to_vector(choice.kernels, [&](const iree::Kernel &kernel) {
        return declareImport(b, kernel, importTypes);
      });

  auto function =
      func::FuncOp::create(b, choice.name, b.getFunctionType(types, {}));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(function.addEntryBlock());
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, b.getI64IntegerAttr(value));
  };
  Value zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> common;
  for (size_t index = 0; index < tensors; ++index) {
    Operation *memory = create(b, "stream.binding.subspan", {},
                               {function.getArgument(index), zero}, element);
    auto metadata =
        memref::ExtractStridedMetadataOp::create(b, memory->getResult(0));
    common.push_back(metadata.getBaseBuffer());
    common.push_back(
        arith::IndexCastOp::create(b, b.getI64Type(), metadata.getOffset()));
  }
  llvm::append_range(common,
                     function.getArguments().slice(tensors, choice.constants));
  Value blocks =
      arith::ExtUIOp::create(b, b.getI64Type(), function.getArguments().back());
  auto call = [&](size_t index) {
    const iree::Kernel &kernel = choice.kernels[index];
    SmallVector<Value> arguments = {blocks,
                                    constant(kernel.threads),
                                    constant(kernel.sharedMemoryBytes),
                                    constant(kernel.alignment),
                                    constant(tensors),
                                    constant(choice.constants)};
    llvm::append_range(arguments, common);
    func::CallOp::create(b, imports[index], arguments);
  };

  size_t others = choice.kernels.size() - 1;
  if (others == 0) {
    call(0);
  } else {
    Value number = arith::IndexCastUIOp::create(
        b, b.getIndexType(), function.getArgument(tensors + choice.constants));
    auto cases = llvm::map_to_vector(
        ArrayRef(choice.kernels).drop_back(),
        [](const iree::Kernel &kernel) { return kernel.number; });
    auto chosen =
        scf::IndexSwitchOp::create(b, TypeRange(), number, cases, others);
    OpBuilder::InsertionGuard guard(b);
    for (size_t index = 0; index <= others; ++index) {
      b.createBlock(index < others ? &chosen.getCaseRegions()[index]
                                   : &chosen.getDefaultRegion());
      call(index);
      scf::YieldOp::create(b);
    }
  }
  func::ReturnOp::create(b);
}

static void buildCpuExecutable(ImplicitLocOpBuilder &b, StringRef name,
                               ArrayRef<iree::Choice> choices) {
  Operation *executable = create(
      b, "stream.executable",
      {b.getNamedAttr("sym_name", b.getStringAttr(name)), isPublic(b, false)},
      {}, {}, /*regions=*/1);
  b.createBlock(&executable->getRegion(0));
  for (const iree::Choice &choice : choices) {
    Operation *op = create(
        b, "stream.executable.export",
        {b.getNamedAttr("function_ref",
                        FlatSymbolRefAttr::get(b.getContext(), choice.name)),
         b.getNamedAttr("sym_name", b.getStringAttr(choice.name)),
         isPublic(b, true)},
        {}, {}, /*regions=*/1);
    OpBuilder::InsertionGuard guard(b);
    Block *grid =
        createBlock(b, op->getRegion(0), {b.getIndexType(), b.getIndexType()});
    Value one = arith::ConstantIndexOp::create(b, 1);
    Value any = arith::MinUIOp::create(b, grid->getArgument(1), one);
    create(b, "stream.return", {}, {any, any, any});
  }
  auto module = ModuleOp::create(b);
  create(b, "stream.executable.end", {});
  b.setInsertionPointToStart(module.getBody());
  for (const iree::Choice &choice : choices)
    buildCpuFunction(b, choice);
}

//===----------------------------------------------------------------------===//
// Both
//===----------------------------------------------------------------------===//

void iree::buildExecutable(ModuleOp module, IreeTarget target, StringRef name,
                           ArrayRef<Choice> choices, StringRef image) {
  ImplicitLocOpBuilder b(module.getLoc(),
                         OpBuilder::atBlockBegin(module.getBody()));
  if (target == IreeTarget::Cuda)
    return buildCudaExecutable(b, name, choices, image);
  buildCpuExecutable(b, name, choices);
}

Operation *iree::buildDispatch(ImplicitLocOpBuilder &b,
                               const Dispatch &dispatch) {
  SmallVector<Value> workload = {dispatch.number, dispatch.blocks};
  SmallVector<Value> arguments = dispatch.arguments;
  StringRef entry = dispatch.choice.kernels.front().name;
  if (dispatch.target == IreeTarget::Cpu) {
    entry = dispatch.choice.name;
    for (Value value : workload)
      arguments.push_back(
          b.createOrFold<arith::IndexCastUIOp>(b.getI32Type(), value));
  }
  SmallVector<Value> argumentSizes;
  for (Value argument : arguments)
    appendDynamicSizes(b, argument, argumentSizes);
  auto segments = llvm::map_to_vector(
      ArrayRef<size_t>{workload.size(), arguments.size(), argumentSizes.size(),
                       dispatch.resultSizes.size()},
      [](size_t size) { return static_cast<int32_t>(size); });
  auto entryPoint =
      SymbolRefAttr::get(b.getStringAttr(dispatch.executable),
                         FlatSymbolRefAttr::get(b.getStringAttr(entry)));
  SmallVector<Value> operands;
  for (ArrayRef<Value> values :
       {ArrayRef(workload), ArrayRef(arguments), ArrayRef(argumentSizes),
        ArrayRef(dispatch.resultSizes)})
    llvm::append_range(operands, values);
  return create(
      b, "flow.dispatch",
      {b.getNamedAttr("entry_points", b.getArrayAttr({entryPoint})),
       b.getNamedAttr("operandSegmentSizes", b.getDenseI32ArrayAttr(segments)),
       b.getNamedAttr("tied_operands", b.getIndexArrayAttr(dispatch.tied))},
      operands, dispatch.results);
}
