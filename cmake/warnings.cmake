# One place for warning flags; every target links tq_flags.
add_library(tq_flags INTERFACE)
target_compile_options(tq_flags INTERFACE -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion
                                          -ffp-contract=off -fno-fast-math)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: "a" + std::string warns about an overlap that cannot be.
  target_compile_options(tq_flags INTERFACE -Wno-restrict)
endif()
if(TQ_WERROR)
  target_compile_options(tq_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_compile_options(tq_flags INTERFACE -Wthread-safety)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # The portable baseline; everything faster is chosen at run time.
  target_compile_options(tq_flags INTERFACE -march=x86-64-v2)
endif()
target_include_directories(tq_flags INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include
                                              ${CMAKE_SOURCE_DIR}/tests)
