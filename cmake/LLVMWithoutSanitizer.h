//===- LLVMWithoutSanitizer.h - LLVM's headers as its libraries --*- C++
//-*-===//
//
// Included ahead of every source that is compiled with AddressSanitizer.
// Headers of LLVM would poison memory that its libraries, which know nothing of
// the sanitizer, use again: they are told what the libraries were told.
//
//===----------------------------------------------------------------------===//
#ifndef FTUNER_CMAKE_LLVMWITHOUTSANITIZER_H
#define FTUNER_CMAKE_LLVMWITHOUTSANITIZER_H

// What runs kernels is compiled without LLVM.
#if __has_include("llvm/Support/Compiler.h")
#include "llvm/Support/Compiler.h"

#undef LLVM_ADDRESS_SANITIZER_BUILD
#define LLVM_ADDRESS_SANITIZER_BUILD 0
#define __asan_poison_memory_region(p, size)
#define __asan_unpoison_memory_region(p, size)
#endif

#endif // FTUNER_CMAKE_LLVMWITHOUTSANITIZER_H
