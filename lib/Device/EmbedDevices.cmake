# Writes a C++ file with the text of every built-in device description.
#   cmake -DOUTPUT=FILE -DDIRECTORY=DIR -P EmbedDevices.cmake
file(GLOB files "${DIRECTORY}/*.json")
list(SORT files)
set(entries "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" text)
  string(APPEND entries "    {\"${name}\", R\"ftuner(${text})ftuner\"},\n")
endforeach()
set(content "// Generated from lib/Device/devices.
#include \"BuiltinDevices.h\"

static const ftuner::BuiltinDevice devices[] = {
${entries}};

llvm::ArrayRef<ftuner::BuiltinDevice> ftuner::builtinDevices() {
  return devices;
}
")
file(WRITE "${OUTPUT}" "${content}")
