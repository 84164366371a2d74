//===- CodegenPaths.cpp - The registered codegen paths --------------------===//
#include "FTuner/Codegen/IR/CodegenPath.h"
#include "mlir/IR/DialectRegistry.h"

#ifndef FTUNER_CODEGEN_PATHS
#define FTUNER_CODEGEN_PATHS "FTuner/Codegen/CodegenPaths.def"
#endif

namespace ftuner {
#define FTUNER_CODEGEN_PATH(PATH, GATE)                                        \
  const CodegenPath &PATH##Path();                                             \
  void PATH##Register(mlir::DialectRegistry &registry);
#include FTUNER_CODEGEN_PATHS
} // namespace ftuner

using namespace ftuner;

mlir::LogicalResult CodegenPath::emitTiles(mlir::ImplicitLocOpBuilder &builder,
                                           BlockTiles &tiles,
                                           TileEmitter emit) {
  using State = llvm::SmallVector<mlir::Value>;
  auto emitOne = [&](const TileEmission &tile,
                     mlir::ValueRange) -> mlir::FailureOr<State> {
    if (failed(emit(tile)))
      return mlir::failure();
    return State();
  };
  return mlir::success(succeeded(tiles.forEach(builder, {}, emitOne)));
}

mlir::LogicalResult CodegenPath::emitBlock(mlir::ImplicitLocOpBuilder &builder,
                                           BlockTiles &tiles) const {
  return emitTiles(builder, tiles, [&](const TileEmission &tile) {
    return emitTile(builder, tile);
  });
}

const CodegenPath *ftuner::findCodegenPath(const CodegenModel &model) {
  static const CodegenPath *const paths[] = {
#define FTUNER_CODEGEN_PATH(PATH, GATE) &PATH##Path(),
#include FTUNER_CODEGEN_PATHS
  };
  for (const CodegenPath *path : paths)
    if (&path->model() == &model)
      return path;
  return nullptr;
}

void ftuner::registerUKernelDialect(mlir::DialectRegistry &registry) {
  registry.insert<ukernel::UKernelDialect>();
#define FTUNER_CODEGEN_PATH(PATH, GATE) PATH##Register(registry);
#include FTUNER_CODEGEN_PATHS
}
