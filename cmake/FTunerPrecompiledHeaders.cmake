# Precompiled headers of MLIR and LLVM: parsing these is nine tenths of what most sources
# take to compile. Clang's are small and are read in parts; GCC's have over a gigabyte.
# Sources include what they use all the same: with the option off, nothing else is there.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  set(ftuner_precompiles ON)
else()
  set(ftuner_precompiles OFF)
endif()
option(FTUNER_PRECOMPILED_HEADERS "Precompile headers of MLIR and LLVM" ${ftuner_precompiles})
if(FTUNER_PRECOMPILED_HEADERS AND NOT ftuner_precompiles)
  message(FATAL_ERROR "FTUNER_PRECOMPILED_HEADERS needs Clang, but the compiler is ${CMAKE_CXX_COMPILER_ID}")
endif()

set(FTUNER_LLVM_HEADERS
  llvm/ADT/APFloat.h
  llvm/ADT/DenseMap.h
  llvm/ADT/MapVector.h
  llvm/ADT/STLExtras.h
  llvm/ADT/StringExtras.h
  llvm/ADT/StringMap.h
  llvm/Support/Format.h
  llvm/Support/FormatVariadic.h
  llvm/Support/JSON.h
  llvm/Support/MathExtras.h
  llvm/Support/MemoryBuffer.h
  llvm/Support/raw_ostream.h)
set(FTUNER_MLIR_HEADERS
  ${FTUNER_LLVM_HEADERS}
  mlir/Dialect/Affine/IR/AffineOps.h
  mlir/Dialect/Arith/IR/Arith.h
  mlir/Dialect/ControlFlow/IR/ControlFlowOps.h
  mlir/Dialect/Func/IR/FuncOps.h
  mlir/Dialect/GPU/IR/GPUDialect.h
  mlir/Dialect/LLVMIR/LLVMDialect.h
  mlir/Dialect/LLVMIR/NVVMDialect.h
  mlir/Dialect/Linalg/IR/Linalg.h
  mlir/Dialect/Math/IR/Math.h
  mlir/Dialect/MemRef/IR/MemRef.h
  mlir/Dialect/SCF/IR/SCF.h
  mlir/Dialect/Tensor/IR/Tensor.h
  mlir/Dialect/Vector/IR/VectorOps.h
  mlir/IR/ImplicitLocOpBuilder.h
  mlir/IR/PatternMatch.h
  mlir/IR/TypeUtilities.h
  mlir/Pass/PassManager.h
  mlir/Transforms/GreedyPatternRewriteDriver.h)

# Declares what holds the precompiled headers of a library.
function(ftuner_precompile library)
  set(target FTuner${library}Headers)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${target}.cpp)
  if(NOT EXISTS ${source})
    file(WRITE ${source} "")
  endif()
  list(TRANSFORM FTUNER_${library}_HEADERS REPLACE "(.+)" "<\\1>" OUTPUT_VARIABLE headers)
  add_library(${target} OBJECT ${source})
  target_precompile_headers(${target} PRIVATE ${headers})
  # Precompiled headers name files of this build, so no other may get them from ccache. What
  # is compiled with them may be shared: it depends on what the file here says.
  set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "")
  file(CONFIGURE OUTPUT CMakeFiles/${target}.dir/cmake_pch.hxx.pch.sum
    CONTENT "LLVM ${LLVM_PACKAGE_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}: ${headers}\n" @ONLY)
endfunction()

if(FTUNER_PRECOMPILED_HEADERS)
  ftuner_precompile(LLVM)
  ftuner_precompile(MLIR)
  # Clang forgets that libstdc++ calls deprecated functions of its own on purpose.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-deprecated-declarations>)
endif()

# ftuner_use_precompiled_headers(TARGET library...): those of MLIR or LLVM, where the target
# links one of these.
function(ftuner_use_precompiled_headers target)
  if(NOT FTUNER_PRECOMPILED_HEADERS)
    return()
  endif()
  foreach(library MLIR LLVM)
    if(NOT library IN_LIST ARGN)
      continue()
    endif()
    # As CMake's REUSE_FROM, but with Ninja by a path within the build: so builds in other
    # folders find in ccache what this one compiled.
    set(headers ${PROJECT_BINARY_DIR}/CMakeFiles/FTuner${library}Headers.dir/cmake_pch.hxx.pch)
    get_target_property(sources ${target} SOURCES)
    set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS ${headers})
    add_dependencies(${target} FTuner${library}Headers)
    if(CMAKE_GENERATOR MATCHES "Ninja")
      file(RELATIVE_PATH headers ${CMAKE_BINARY_DIR} ${headers})
    endif()
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Winvalid-pch -include-pch ${headers}>")
    # Headers serve libraries and programs if both are compiled alike.
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
      target_compile_options(${target} PRIVATE -fPIC)
    endif()
    return()
  endforeach()
endfunction()
