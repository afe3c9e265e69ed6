# tq_library(base SOURCES a.cc b.cc DEPS fmt::fmt)      -> static library tq_base
function(tq_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(tq_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(tq_${name} PUBLIC tq_flags ${ARG_DEPS})
endfunction()

# tq_test(base SOURCES a_test.cc DEPS tq_base)          -> ctest entries base.*
function(tq_test name)
  if(NOT TQ_TESTS OR TQ_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name}_tests ${ARG_SOURCES})
  target_link_libraries(${name}_tests PRIVATE tq_flags ${ARG_DEPS} GTest::gtest GTest::gtest_main)
  target_compile_definitions(${name}_tests PRIVATE
    TQ_TEST_DATA="${CMAKE_BINARY_DIR}/test_data" TQ_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_test(NAME ${name} COMMAND ${name}_tests)
  # A refused allocation is an answer, also under a sanitizer.
  set_tests_properties(${name} PROPERTIES TIMEOUT 900 ENVIRONMENT
    "ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=allocator_may_return_null=1")
endfunction()

# tq_fuzz(safetensors SOURCES f.cc DEPS tq_weights)     -> fuzz_safetensors, preset `fuzz` only
function(tq_fuzz name)
  if(NOT TQ_FUZZ)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(fuzz_${name} ${ARG_SOURCES})
  target_link_libraries(fuzz_${name} PRIVATE tq_flags ${ARG_DEPS})
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  if(NOT TARGET fuzz_all)
    add_custom_target(fuzz_all)
  endif()
  add_dependencies(fuzz_all fuzz_${name})
endfunction()
