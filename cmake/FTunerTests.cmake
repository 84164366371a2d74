# Tests of ctest and what they take. test/times.txt has the seconds of one core of
# each test that takes more than a few: those start first, so that no core idles
# at the end, and all others have the label `quick`.
include(ProcessorCount)

set(FTUNER_TEST_TIMES ${PROJECT_SOURCE_DIR}/test/times.txt)
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FTUNER_TEST_TIMES})

# ftuner_describe_test(NAME [label...]): the cost and the labels of a test.
function(ftuner_describe_test name)
  set(labels ${ARGN})
  file(STRINGS ${FTUNER_TEST_TIMES} lines REGEX "^[0-9]+ ")
  set(seconds 1)
  foreach(line IN LISTS lines)
    if(line MATCHES "^([0-9]+) (.+)$" AND CMAKE_MATCH_2 STREQUAL name)
      set(seconds ${CMAKE_MATCH_1})
    endif()
  endforeach()
  if(seconds EQUAL 1)
    list(APPEND labels quick)
  endif()
  set_tests_properties(${name} PROPERTIES COST ${seconds} LABELS "${labels}")
endfunction()

# ftuner_test_jobs(VARIABLE): how many jobs a test with many runs at once. A few tests
# beside each other keep all cores busy, and leave none idle when one of them ends.
function(ftuner_test_jobs variable)
  ProcessorCount(count)
  math(EXPR jobs "${count} / 4")
  if(jobs LESS 1)
    set(jobs 1)
  endif()
  set(${variable} ${jobs} PARENT_SCOPE)
endfunction()
