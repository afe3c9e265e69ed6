if(TQ_SANITIZE)
  target_compile_options(tq_flags INTERFACE -fsanitize=${TQ_SANITIZE} -fno-omit-frame-pointer
                                            -fno-sanitize-recover=all)
  target_link_options(tq_flags INTERFACE -fsanitize=${TQ_SANITIZE})
endif()
if(TQ_FUZZ)
  target_compile_options(tq_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
