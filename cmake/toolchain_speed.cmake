# ccache and mold when the machine has them: neither changes what is built.
find_program(TQ_CCACHE ccache)
if(TQ_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TQ_CCACHE})
endif()
find_program(TQ_MOLD mold)
if(TQ_MOLD AND NOT CMAKE_CROSSCOMPILING)
  add_link_options(-fuse-ld=mold)
endif()
