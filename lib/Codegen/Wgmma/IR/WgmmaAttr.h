//===- WgmmaAttr.h - The schedule of the wgmma path in IR ---------*- C++
//-*-===//
#ifndef FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAATTR_H
#define FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAATTR_H

#include "FTuner/Dialect/UKernel/IR/UKernel.h"

#define GET_ATTRDEF_CLASSES
#include "WgmmaAttr.h.inc"

#endif // FTUNER_LIB_CODEGEN_WGMMA_IR_WGMMAATTR_H
