#!/bin/sh
# Builds libftrt and its tests with ThreadSanitizer in a folder of its own, and
# runs them. Needs a compiler with the sanitizer, and GoogleTest.
#   test/unit/Runtime/check_threads.sh
set -eu
cd "$(dirname "$0")"
root=../../..
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
compile="${CXX:-c++} -std=c++17 -O1 -g -fno-exceptions -fsanitize=thread -Wno-tsan -pthread -I$root/include"

$compile -fPIC -shared $root/lib/Runtime/*.cpp -Wl,-soname,libftrt.so.1 -o "$build/libftrt.so.1" -ldl
$compile -fPIC -shared FakeDriver.cpp -o "$build/libdriver.so"
$compile -fPIC -shared FakeEmulator.cpp -o "$build/libemulator.so"
$compile DevicesTest.cpp EmulatorTest.cpp ImagesTest.cpp LaunchTest.cpp TensorMapsTest.cpp \
  ThreadsTest.cpp \
  -DFTUNER_FAKE_DRIVER="\"$build/libdriver.so\"" \
  -DFTUNER_FAKE_EMULATOR="\"$build/libemulator.so\"" \
  "$build/libftrt.so.1" "$build/libdriver.so" -Wl,-rpath,"$build" \
  -lgtest -lgtest_main -o "$build/tests"
# Some kernels place memory where the sanitizer does not expect it.
setarch -R "$build/tests" --gtest_brief=1
