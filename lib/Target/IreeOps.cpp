//===- IreeOps.cpp - Operations of IREE in generic form -------------------===//
#include "IreeOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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

Operation *iree::buildDispatch(ImplicitLocOpBuilder &b,
                               const Dispatch &dispatch) {
  SmallVector<Value> argumentSizes, resultSizes;
  for (Value argument : dispatch.arguments)
    appendDynamicSizes(b, argument, argumentSizes);
  appendDynamicSizes(b, dispatch.resultLike, resultSizes);
  auto segments = llvm::map_to_vector(
      ArrayRef<size_t>{dispatch.workload.size(), dispatch.arguments.size(),
                       argumentSizes.size(), resultSizes.size()},
      [](size_t size) { return static_cast<int32_t>(size); });
  auto entry = SymbolRefAttr::get(
      b.getStringAttr(dispatch.executable),
      FlatSymbolRefAttr::get(b.getStringAttr(dispatch.entry)));
  SmallVector<Value> operands;
  for (ArrayRef<Value> values :
       {ArrayRef(dispatch.workload), ArrayRef(dispatch.arguments),
        ArrayRef(argumentSizes), ArrayRef(resultSizes)})
    llvm::append_range(operands, values);
  return create(
      b, "flow.dispatch",
      {b.getNamedAttr("entry_points", b.getArrayAttr({entry})),
       b.getNamedAttr("operandSegmentSizes", b.getDenseI32ArrayAttr(segments)),
       b.getNamedAttr("tied_operands",
                      b.getIndexArrayAttr({dispatch.tied.value_or(-1)}))},
      operands, dispatch.result);
}

iree::ExecutableBuilder::ExecutableBuilder(ModuleOp module, StringRef name,
                                           StringRef ptx)
    : b(module.getLoc(), OpBuilder::atBlockBegin(module.getBody())) {
  MLIRContext *context = module.getContext();
  std::string objects =
      ("executable.objects<{#hal.executable.target<\"cuda\", "
       "\"cuda-nvptx-fb\"> = [#hal.executable.object<{path = \"" +
       name + ".ptx\", data = dense<\"0x" + llvm::toHex(ptx) + "\"> : vector<" +
       Twine(ptx.size()) + "xi8>}>]}>")
          .str();
  Operation *source =
      create(b, "hal.executable.source",
             {b.getNamedAttr("objects", halAttribute(context, objects)),
              b.getNamedAttr("sym_name", b.getStringAttr(name)),
              b.getNamedAttr("sym_visibility", b.getStringAttr("private"))},
             {}, {}, /*regions=*/1);
  b.createBlock(&source->getRegion(0));
  Operation *end = create(b, "hal.executable.source_end", {});
  b.setInsertionPoint(end);
}

/// The block of a region of an export: the device and the workload.
static Block *createBlock(ImplicitLocOpBuilder &b, Region &region) {
  auto device = OpaqueType::get(b.getStringAttr("hal"), "device");
  SmallVector<Type> types{device, b.getIndexType(), b.getIndexType()};
  return b.createBlock(&region, {}, types,
                       SmallVector<Location>(types.size(), b.getLoc()));
}

void iree::ExecutableBuilder::add(const Export &kernel) {
  MLIRContext *context = b.getContext();
  auto bindings = llvm::map_to_vector(kernel.isReadOnly, [](bool isReadOnly) {
    return std::string("#hal.pipeline.binding<storage_buffer") +
           (isReadOnly ? ", ReadOnly>" : ">");
  });
  auto properties = llvm::to_vector<8>(ArrayRef<NamedAttribute>{
      b.getNamedAttr(
          "layout",
          halAttribute(context, "pipeline.layout<constants = " +
                                    Twine(kernel.constants) + ", bindings = [" +
                                    llvm::join(bindings, ", ") + "]>")),
      b.getNamedAttr("ordinal", b.getIndexAttr(count++)),
      b.getNamedAttr("sym_name", b.getStringAttr(kernel.name)),
      b.getNamedAttr("sym_visibility", b.getStringAttr("public")),
      b.getNamedAttr("workgroup_local_memory",
                     b.getIndexAttr(kernel.sharedMemoryBytes)),
      b.getNamedAttr("workgroup_size",
                     b.getIndexArrayAttr({kernel.threads, 1, 1}))});
  if (kernel.fallback)
    properties.push_back(
        b.getNamedAttr("condition_fallback",
                       FlatSymbolRefAttr::get(context, *kernel.fallback)));
  Operation *op = create(b, "hal.executable.export", properties, {}, {},
                         /*regions=*/2);
  OpBuilder::InsertionGuard guard(b);
  // No launch at all without a block.
  Block *grid = createBlock(b, op->getRegion(0));
  Value blocks = grid->getArgument(2);
  Value one = arith::ConstantIndexOp::create(b, 1);
  Value others = arith::MinUIOp::create(b, blocks, one);
  create(b, "hal.return", {}, {blocks, others, others});
  if (!kernel.fallback)
    return;
  Block *condition = createBlock(b, op->getRegion(1));
  Value number = arith::ConstantIndexOp::create(b, kernel.condition);
  Value isMeant = arith::CmpIOp::create(b, arith::CmpIPredicate::eq,
                                        condition->getArgument(1), number);
  create(b, "hal.return", {}, isMeant);
}
