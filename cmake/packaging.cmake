# cmake --install: the program, the library (self-contained: internal libraries are linked in), its header,
# a pkg-config file.
install(TARGETS turboquant RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS turboquant_lib LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/turboquant DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
configure_file(${CMAKE_SOURCE_DIR}/cmake/turboquant.pc.in ${CMAKE_BINARY_DIR}/turboquant.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/turboquant.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
