//===- MmaAttr.h - The schedule of the mma path in IR ---------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_MMA_IR_MMAATTR_H
#define FTUNER_LIB_CODEGEN_MMA_IR_MMAATTR_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#define GET_ATTRDEF_CLASSES
#include "MmaAttr.h.inc"

#endif // FTUNER_LIB_CODEGEN_MMA_IR_MMAATTR_H
