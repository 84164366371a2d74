set(FTUNER_LIBRARY_DIR ${PROJECT_SOURCE_DIR}/lib)

# Links libraries. MLIR and LLVM stand for what this build links of them: shared
# libraries or static ones (FTunerLLVM).
#   ftuner_link(TARGET VISIBILITY library...)
function(ftuner_link target visibility)
  foreach(library IN LISTS ARGN)
    if(library MATCHES "^(MLIR|LLVM)$")
      set(library ${FTUNER_${library}_LIBS})
    endif()
    target_link_libraries(${target} ${visibility} ${library})
  endforeach()
endfunction()

# Declares one of FTuner's static libraries. Those in lib/ are what FTuner::Compiler
# is made of (FTunerInstall).
#   ftuner_library(NAME source... [DEPENDS target...] [LINK library...])
function(ftuner_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  ftuner_link(${name} PUBLIC ${ARG_LINK})
  ftuner_use_precompiled_headers(${name} ${ARG_LINK})
  cmake_path(IS_PREFIX FTUNER_LIBRARY_DIR ${CMAKE_CURRENT_SOURCE_DIR} is_compiler)
  if(is_compiler)
    set_property(GLOBAL APPEND PROPERTY FTUNER_COMPILER_LIBRARIES ${name})
  endif()
endfunction()

# Declares the baseline of a folder, a published search strategy (lib/Baselines).
#   ftuner_baseline(NAME source...)
function(ftuner_baseline name)
  ftuner_library(FTuner${name} ${ARGN} LINK FTunerBaselines LLVM)
  set_property(GLOBAL APPEND PROPERTY FTUNER_BASELINES FTuner${name})
endfunction()

# Declares one of FTuner's programs; all share MLIR and LLVM.
#   ftuner_tool(NAME source... [LINK library...])
function(ftuner_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  ftuner_link(${name} PRIVATE ${ARG_LINK} MLIR LLVM)
  ftuner_use_precompiled_headers(${name} MLIR)
endfunction()

# Declares a GoogleTest program and registers it with ctest, as several tests where
# it is long.
#   ftuner_unit_test(NAME source... [LINK library...] [SHARDS count])
function(ftuner_unit_test name)
  cmake_parse_arguments(ARG "" "SHARDS" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  ftuner_link(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  ftuner_use_precompiled_headers(${name} ${ARG_LINK})
  if(NOT ARG_SHARDS)
    add_test(NAME ${name} COMMAND ${name})
    ftuner_describe_test(${name})
    return()
  endif()
  foreach(shard RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${shard} - 1")
    add_test(NAME ${name}/${shard} COMMAND ${name})
    set_tests_properties(${name}/${shard} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
    ftuner_describe_test(${name}/${shard})
  endforeach()
endfunction()

# Embeds the files of a folder: a script generates the definition of FUNCTION, whose
# source SOURCE_VARIABLE names. Of JSON files this is `llvm::ArrayRef<BuiltinFile>
# ftuner::FUNCTION()` (FTuner/Support/BuiltinFiles.h). The folder is also
# share/ftuner/FOLDER, in a build tree and where FTuner is installed, for the Python
# package.
#   ftuner_embed(SOURCE_VARIABLE FOLDER FUNCTION [SUFFIX json] [SCRIPT EmbedFiles])
function(ftuner_embed source_variable folder function)
  cmake_parse_arguments(ARG "" "SUFFIX;SCRIPT" "" ${ARGN})
  if(NOT ARG_SUFFIX)
    set(ARG_SUFFIX json)
  endif()
  if(NOT ARG_SCRIPT)
    set(ARG_SCRIPT EmbedFiles)
  endif()
  set(script ${PROJECT_SOURCE_DIR}/cmake/${ARG_SCRIPT}.cmake)
  set(directory ${CMAKE_CURRENT_SOURCE_DIR}/${folder})
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${function}.cpp)
  file(GLOB files CONFIGURE_DEPENDS ${directory}/*.${ARG_SUFFIX})
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -DFOLDER=${directory} -DFUNCTION=${function}
            -P ${script}
    DEPENDS ${files} ${script}
    COMMENT "Embedding ${folder}"
    VERBATIM)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/share/ftuner)
  file(CREATE_LINK ${directory} ${PROJECT_BINARY_DIR}/share/ftuner/${folder} SYMBOLIC)
  if(FTUNER_INSTALL)
    install(DIRECTORY ${folder}/ DESTINATION share/ftuner/${folder}
            FILES_MATCHING PATTERN "*.${ARG_SUFFIX}")
  endif()
  set(${source_variable} ${source} PARENT_SCOPE)
endfunction()

# Declares the codegen path of a folder: its model, free of MLIR, and in IR/ its
# emitter. The folder's proof.json, if it has one, is share/ftuner/proofs/<name>.json,
# the families of `ftuner check-gpu`.
#   ftuner_codegen_path(NAME MODEL source... IR source...)
function(ftuner_codegen_path name)
  cmake_parse_arguments(ARG "" "" "MODEL;IR" ${ARGN})
  ftuner_library(FTuner${name}Model ${ARG_MODEL}
    LINK FTunerCodegenTileModel FTunerSchedule LLVM)
  ftuner_library(FTuner${name}
    ${ARG_IR}
    DEPENDS FTunerUKernelIncGen
    LINK FTuner${name}Model FTunerCodegenTile FTunerUKernelDialect MLIR LLVM)
  target_include_directories(FTuner${name} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}
                             ${CMAKE_CURRENT_SOURCE_DIR})
  set(proof ${CMAKE_CURRENT_SOURCE_DIR}/proof.json)
  if(EXISTS ${proof})
    string(TOLOWER ${name} lower)
    set(proofs ${PROJECT_BINARY_DIR}/share/ftuner/proofs)
    file(MAKE_DIRECTORY ${proofs})
    file(CREATE_LINK ${proof} ${proofs}/${lower}.json SYMBOLIC)
    if(FTUNER_INSTALL)
      install(FILES ${proof} DESTINATION share/ftuner/proofs RENAME ${lower}.json)
    endif()
  endif()
  set_property(GLOBAL APPEND PROPERTY FTUNER_CODEGEN_MODELS FTuner${name}Model)
  set_property(GLOBAL APPEND PROPERTY FTUNER_CODEGEN_EMITTERS FTuner${name})
endfunction()
