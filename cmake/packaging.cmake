# cmake --install: the program, the library (self-contained: internal libraries are linked in), its header,
# a pkg-config file.
install(TARGETS turboquant RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS turboquant_lib LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/turboquant DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# Relative to the file itself, so that --prefix at install time is enough.
file(RELATIVE_PATH TQ_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(${CMAKE_SOURCE_DIR}/cmake/turboquant.pc.in ${CMAKE_BINARY_DIR}/turboquant.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/turboquant.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
