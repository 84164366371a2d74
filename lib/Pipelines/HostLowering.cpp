#include "FTuner/Pipelines/Pipelines.h"

void ftuner::buildHostLoweringPipeline(mlir::OpPassManager &pm) {}
