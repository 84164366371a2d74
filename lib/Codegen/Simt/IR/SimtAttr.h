//===- SimtAttr.h - The schedule of the SIMT path in IR ---------*- C++ -*-===//
#ifndef FTUNER_LIB_CODEGEN_SIMT_IR_SIMTATTR_H
#define FTUNER_LIB_CODEGEN_SIMT_IR_SIMTATTR_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#define GET_ATTRDEF_CLASSES
#include "SimtAttr.h.inc"

#endif // FTUNER_LIB_CODEGEN_SIMT_IR_SIMTATTR_H
