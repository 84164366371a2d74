# Writes a C++ file with the text of every JSON file of a folder (BuiltinFiles.h).
#   cmake -DOUTPUT=FILE -DFOLDER=DIR -DFUNCTION=NAME -P EmbedFiles.cmake
file(GLOB files "${FOLDER}/*.json")
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(APPEND entries "    {\"${name}\", R\"ftuner(${text})ftuner\"},\n")
endforeach()
get_filename_component(folder "${FOLDER}" NAME)
set(content "// Generated from ${folder}/*.json.
#include \"FTuner/Support/BuiltinFiles.h\"

static const ftuner::BuiltinFile files[] = {
${entries}};

namespace ftuner {
llvm::ArrayRef<BuiltinFile> ${FUNCTION}() { return files; }
} // namespace ftuner
")
file(WRITE "${OUTPUT}" "${content}")
