if(TQ_SANITIZE)
  target_compile_options(tq_flags INTERFACE -fsanitize=${TQ_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
  target_link_options(tq_flags INTERFACE -fsanitize=${TQ_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns of uninitialized and overlapping memory that its own instrumentation makes up; the
    # plain build has all warnings as errors.
    target_compile_options(tq_flags INTERFACE -Wno-error)
  endif()
endif()
if(TQ_FUZZ)
  target_compile_options(tq_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
