# Writes a C++ file with the bytes of every predictor of a folder (lib/CostModel/BuiltinPredictors.h).
#   cmake -DOUTPUT=FILE -DFOLDER=DIR -DFUNCTION=NAME -P EmbedPredictors.cmake
file(GLOB files "${FOLDER}/*.predictor")
list(SORT files)
set(arrays "")
set(entries "")
set(number 0)
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "static const unsigned char file${number}[] = {${bytes}};\n")
  string(APPEND entries "    {\"${name}\", file${number}, sizeof file${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
get_filename_component(folder "${FOLDER}" NAME)
file(WRITE "${OUTPUT}" "// Generated from ${folder}/*.predictor.
#include \"BuiltinPredictors.h\"

${arrays}
namespace ftuner {
static const BuiltinPredictor files[] = {
${entries}};

llvm::ArrayRef<BuiltinPredictor> ${FUNCTION}() { return files; }
} // namespace ftuner
")
