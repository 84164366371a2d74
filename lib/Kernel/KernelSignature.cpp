//===- KernelSignature.cpp - The parameters of a kernel -------------------===//
#include "FTuner/Kernel/KernelSignature.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ftuner;
using ukernel::ParameterAccess;
using ukernel::ParameterKind;

/// Parameters of one group stay in the order that they are added in.
static int groupOf(ParameterKind kind) {
  switch (kind) {
  case ParameterKind::Pointer:
    return 0;
  case ParameterKind::Size:
    return 1;
  case ParameterKind::Stride:
    return 2;
  case ParameterKind::Scalar:
  case ParameterKind::ScalarLow:
  case ParameterKind::ScalarHigh:
    return 3;
  case ParameterKind::TensorMap:
    return 4;
  case ParameterKind::Part:
    return 5;
  }
  llvm_unreachable("every kind is in a group");
}

static bool isHalved(Type type) {
  return type.isIndex() || type.getIntOrFloatBitWidth() == 64;
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

void KernelSignature::add(KernelParameter parameter) {
  auto *place = llvm::upper_bound(
      parameters, parameter,
      [](const KernelParameter &added, const KernelParameter &other) {
        return groupOf(added.kind) < groupOf(other.kind);
      });
  parameters.insert(place, std::move(parameter));
}

void KernelSignature::addPointer(unsigned operand, const Twine &name,
                                 Type elementType, ParameterAccess access) {
  add({ParameterKind::Pointer, name.str(), elementType, access, {}, operand});
}

void KernelSignature::addAxisSize(unsigned axis, const Twine &name,
                                  MLIRContext *context) {
  add({ParameterKind::Size,
       name.str(),
       IntegerType::get(context, 32),
       std::nullopt,
       {},
       std::nullopt,
       axis});
}

void KernelSignature::addSize(unsigned operand, unsigned dim, const Twine &name,
                              MLIRContext *context) {
  add({ParameterKind::Size,
       name.str(),
       IntegerType::get(context, 32),
       std::nullopt,
       {},
       operand,
       dim});
}

void KernelSignature::addStride(unsigned operand, unsigned dim,
                                const Twine &name, MLIRContext *context) {
  add({ParameterKind::Stride,
       name.str(),
       IntegerType::get(context, 32),
       std::nullopt,
       {},
       operand,
       dim});
}

void KernelSignature::addScalar(unsigned operand, const Twine &name,
                                Type type) {
  if (type.isInteger(1))
    type = IntegerType::get(type.getContext(), 8);
  KernelParameter whole{ParameterKind::Scalar, name.str(), type,
                        std::nullopt,          {},         operand};
  if (!isHalved(type))
    return add(whole);
  for (ParameterKind half :
       {ParameterKind::ScalarLow, ParameterKind::ScalarHigh}) {
    whole.kind = half;
    add(whole);
  }
}

unsigned KernelSignature::addTensorMap(const TensorMap &described,
                                       ArrayRef<Attribute> sizes,
                                       ArrayRef<Attribute> strides) {
  std::optional<unsigned> number =
      find(ParameterKind::Pointer, described.operand);
  assert(number && "expected an operand with a pointer");
  const KernelParameter &pointer = parameters[*number];
  Builder b(pointer.type.getContext());
  const TensorMapBox &box = described.box;
  auto map = ukernel::TensorMapAttr::get(
      b.getContext(), pointer.name, b.getArrayAttr(sizes),
      b.getArrayAttr(strides), box.sizes, box.swizzleBytes,
      box.l2PromotionBytes, box.fitBelow);
  Type type =
      described.roundsToTF32 ? b.getType<FloatTF32Type>() : pointer.type;
  unsigned count = 0;
  for (const KernelParameter &parameter : parameters) {
    if (parameter.kind != ParameterKind::TensorMap ||
        parameter.operand != described.operand)
      continue;
    if (parameter.map == map && parameter.type == type)
      return parameter.index;
    ++count;
  }
  std::string name = pointer.name + "_map";
  if (count)
    name += std::to_string(count);
  add({ParameterKind::TensorMap, name, type, std::nullopt, map,
       described.operand, count});
  return count;
}

void KernelSignature::addPart(MLIRContext *context) {
  add({ParameterKind::Part,
       "first_part_blocks",
       IntegerType::get(context, 32),
       std::nullopt,
       {},
       std::nullopt});
}

ArrayAttr KernelSignature::toAttribute(MLIRContext *context) const {
  Builder b(context);
  SmallVector<Attribute> descriptions;
  for (const KernelParameter &parameter : parameters) {
    NamedAttrList fields;
    fields.set("kind", b.getStringAttr(stringifyParameterKind(parameter.kind)));
    if (!parameter.name.empty())
      fields.set("name", b.getStringAttr(parameter.name));
    if (parameter.type)
      fields.set("type", TypeAttr::get(parameter.type));
    if (parameter.access)
      fields.set("access",
                 b.getStringAttr(stringifyParameterAccess(*parameter.access)));
    if (parameter.map)
      fields.set("map", parameter.map);
    descriptions.push_back(fields.getDictionary(context));
  }
  return b.getArrayAttr(descriptions);
}

KernelSignature KernelSignature::of(ukernel::EntryAttr entry) {
  KernelSignature signature;
  for (auto fields : entry.getParameters().getAsRange<DictionaryAttr>()) {
    KernelParameter parameter;
    // The attribute's verifier has seen to the kinds.
    parameter.kind = *ukernel::symbolizeParameterKind(
        fields.getAs<StringAttr>("kind").getValue());
    if (auto name = fields.getAs<StringAttr>("name"))
      parameter.name = name.str();
    if (auto type = fields.getAs<TypeAttr>("type"))
      parameter.type = type.getValue();
    if (auto access = fields.getAs<StringAttr>("access"))
      parameter.access = ukernel::symbolizeParameterAccess(access.getValue());
    parameter.map = fields.getAs<ukernel::TensorMapAttr>("map");
    signature.parameters.push_back(std::move(parameter));
  }
  return signature;
}

//===----------------------------------------------------------------------===//
// In the kernel
//===----------------------------------------------------------------------===//

FunctionType KernelSignature::getFunctionType(MLIRContext *context) const {
  auto types = llvm::map_to_vector(
      parameters, [&](const KernelParameter &parameter) -> Type {
        switch (parameter.kind) {
        case ParameterKind::Pointer:
          return MemRefType::get({}, parameter.type);
        case ParameterKind::Scalar:
          return parameter.type;
        case ParameterKind::TensorMap:
          return LLVM::LLVMPointerType::get(context);
        default:
          return IntegerType::get(context, 32);
        }
      });
  return FunctionType::get(context, types, {});
}

std::optional<unsigned> KernelSignature::find(ParameterKind kind,
                                              std::optional<unsigned> operand,
                                              unsigned index) const {
  auto it = llvm::find_if(parameters, [&](const KernelParameter &parameter) {
    return parameter.kind == kind && parameter.operand == operand &&
           parameter.index == index;
  });
  if (it == parameters.end())
    return std::nullopt;
  return it - parameters.begin();
}

Value KernelSignature::toIndex(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                               std::optional<unsigned> number) const {
  if (!number)
    return {};
  return arith::IndexCastOp::create(b, b.getIndexType(),
                                    func.getArgument(*number));
}

Value KernelSignature::pointer(gpu::GPUFuncOp func, unsigned operand) const {
  std::optional<unsigned> number = find(ParameterKind::Pointer, operand);
  return number ? func.getArgument(*number) : Value();
}

Value KernelSignature::axisSize(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                                unsigned axis) const {
  return toIndex(b, func, find(ParameterKind::Size, std::nullopt, axis));
}

Value KernelSignature::size(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                            unsigned operand, unsigned dim) const {
  return toIndex(b, func, find(ParameterKind::Size, operand, dim));
}

Value KernelSignature::stride(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                              unsigned operand, unsigned dim) const {
  return toIndex(b, func, find(ParameterKind::Stride, operand, dim));
}

Value KernelSignature::part(ImplicitLocOpBuilder &b,
                            gpu::GPUFuncOp func) const {
  return toIndex(b, func, find(ParameterKind::Part, std::nullopt));
}

Value KernelSignature::scalar(ImplicitLocOpBuilder &b, gpu::GPUFuncOp func,
                              unsigned operand, Type type) const {
  if (std::optional<unsigned> number = find(ParameterKind::Scalar, operand)) {
    Value value = func.getArgument(*number);
    if (type.isInteger(1))
      value = arith::TruncIOp::create(b, type, value);
    return value;
  }
  std::optional<unsigned> low = find(ParameterKind::ScalarLow, operand);
  if (!low)
    return {};
  Type whole = b.getI64Type();
  auto extended = [&](unsigned number) -> Value {
    return arith::ExtUIOp::create(b, whole, func.getArgument(number));
  };
  Value half = arith::ConstantOp::create(b, b.getI64IntegerAttr(32));
  Value high = arith::ShLIOp::create(b, extended(*low + 1), half);
  Value value = arith::OrIOp::create(b, high, extended(*low));
  if (type.isIndex())
    return arith::IndexCastOp::create(b, type, value);
  if (type.isInteger())
    return value;
  return arith::BitcastOp::create(b, type, value);
}

Value KernelSignature::tensorMap(gpu::GPUFuncOp func, unsigned operand,
                                 unsigned number) const {
  return func.getArgument(*find(ParameterKind::TensorMap, operand, number));
}

bool KernelSignature::hasAxisSize(unsigned axis) const {
  return find(ParameterKind::Size, std::nullopt, axis).has_value();
}

bool KernelSignature::hasSize(unsigned operand, unsigned dim) const {
  return find(ParameterKind::Size, operand, dim).has_value();
}

bool KernelSignature::hasPart() const {
  return find(ParameterKind::Part, std::nullopt).has_value();
}

bool KernelSignature::hasTensorMaps() const {
  return llvm::any_of(parameters, [](const KernelParameter &parameter) {
    return parameter.kind == ParameterKind::TensorMap;
  });
}

//===----------------------------------------------------------------------===//
// On the host
//===----------------------------------------------------------------------===//

KernelSignature::LaunchOperands KernelSignature::launchOperands(
    ImplicitLocOpBuilder &b, ValueRange operands,
    llvm::function_ref<Value(const KernelParameter &)> sizeOf) const {
  LaunchOperands result;
  for (const KernelParameter &parameter : parameters)
    if (parameter.kind == ParameterKind::Size)
      result.sizes.push_back(sizeOf(parameter));
  for (auto [number, operand] : llvm::enumerate(operands)) {
    if (find(ParameterKind::Pointer, number) ||
        find(ParameterKind::Scalar, number) ||
        find(ParameterKind::ScalarLow, number))
      result.args.push_back(
          operand.getType().isInteger(1)
              ? arith::ExtUIOp::create(b, b.getI8Type(), operand).getResult()
              : operand);
    memref::ExtractStridedMetadataOp metadata;
    for (const KernelParameter &parameter : parameters) {
      if (parameter.kind != ParameterKind::Stride ||
          parameter.operand != number)
        continue;
      if (!metadata)
        metadata = memref::ExtractStridedMetadataOp::create(b, operand);
      result.strides.push_back(metadata.getStrides()[parameter.index]);
    }
  }
  return result;
}

FailureOr<SmallVector<Value>>
KernelSignature::valuesOf(ukernel::LaunchOp launch) const {
  SmallVector<Value> buffers, scalars;
  for (Value arg : launch.getArgs())
    (isa<MemRefType>(arg.getType()) ? buffers : scalars).push_back(arg);
  // The operands of each group, in the order of `groupOf`, and what they are.
  const std::pair<StringRef, ValueRange> groups[] = {
      {"buffers", buffers},
      {"sizes", launch.getSizes()},
      {"strides", launch.getStrides()},
      {"scalars", scalars},
      {"tensor maps", {}},
      {"parts", launch.getParts()}};
  size_t taken[std::size(groups)] = {};
  SmallVector<Value> values;
  for (const KernelParameter &parameter : parameters) {
    int group = groupOf(parameter.kind);
    if (parameter.kind == ParameterKind::ScalarHigh) {
      values.push_back(values.back());
      continue;
    }
    if (parameter.kind == ParameterKind::TensorMap) {
      values.push_back({});
      continue;
    }
    size_t number = taken[group]++;
    ValueRange given = groups[group].second;
    values.push_back(number < given.size() ? given[number] : Value());
  }
  for (auto [count, group] : llvm::zip_equal(taken, groups))
    if (count != group.second.size())
      return launch.emitOpError("expected ")
             << count << " " << group.first
             << " for the kernel's parameters, but got " << group.second.size();
  return values;
}
