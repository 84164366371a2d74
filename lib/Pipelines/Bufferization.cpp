#include "FTuner/Pipelines/Pipelines.h"

void ftuner::buildBufferizationPipeline(mlir::OpPassManager &pm) {}
