# Compiles a file of MLIR to a shared library, anew whenever the file or the
# compiler changes.
#
#   ftuner_add_library(NAME
#     MLIR file           # relative to the current source folder
#     DEVICE device       # name of a built-in device, or path of a description
#     [EMULATOR]          # kernels for the emulator, too
#     [HOST_CPU name]     # processor of the host code; "native" for this one
#     [CUBINS arch...]    # such as sm_90; needs ptxas. "auto": if there is one
#     [OPTIONS option...] # more options of ftuner-translate, e.g. --max-kernels=8
#   )
#
# The target NAME brings the generated header NAME.h and FTuner::ftrt with it. Its
# functions are described in the header; its module object is NAME_module.
function(ftuner_add_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG
    "EMULATOR" "MLIR;DEVICE;HOST_CPU" "CUBINS;OPTIONS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "ftuner_add_library(${name}): unknown argument ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  foreach(argument MLIR DEVICE)
    if(NOT ARG_${argument})
      message(FATAL_ERROR "ftuner_add_library(${name}): expected ${argument}")
    endif()
  endforeach()
  if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
    message(FATAL_ERROR "ftuner_add_library(${name}): expected a C identifier as name")
  endif()

  get_filename_component(source ${ARG_MLIR} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
  if(NOT EXISTS ${source})
    message(FATAL_ERROR "ftuner_add_library(${name}): cannot find ${source}")
  endif()
  set(dependencies ${source} FTuner::ftuner-translate)
  set(device ${ARG_DEVICE})
  if(device MATCHES "[./]")
    get_filename_component(device ${device} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    list(APPEND dependencies ${device})
  endif()
  # Programs that call no function of the runtime themselves may not name it.
  set(options --device=${device} --library-name=${name}
    --rpath=$<TARGET_FILE_DIR:FTuner::ftrt>)
  if(ARG_EMULATOR)
    list(APPEND options --emulator)
  endif()
  if(ARG_HOST_CPU)
    list(APPEND options --host-cpu=${ARG_HOST_CPU})
  endif()
  if(ARG_CUBINS)
    string(JOIN "," architectures ${ARG_CUBINS})
    list(APPEND options --cubins=${architectures})
  endif()

  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}.ftuner)
  set(library ${folder}/lib${name}.so)
  set(header ${folder}/${name}.h)
  file(MAKE_DIRECTORY ${folder})
  add_custom_command(
    OUTPUT ${library} ${header}
    COMMAND FTuner::ftuner-translate ${source} --ftuner-to-library ${options} ${ARG_OPTIONS}
            -o ${library} --header=${header}
    DEPENDS ${dependencies}
    COMMENT "Compiling ${ARG_MLIR} for ${ARG_DEVICE}"
    VERBATIM)
  add_custom_target(${name}_compilation DEPENDS ${library} ${header})

  add_library(${name} SHARED IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
    IMPORTED_LOCATION ${library}
    IMPORTED_SONAME lib${name}.so
    INTERFACE_INCLUDE_DIRECTORIES ${folder}
    INTERFACE_LINK_LIBRARIES FTuner::ftrt)
  add_dependencies(${name} ${name}_compilation)
endfunction()
