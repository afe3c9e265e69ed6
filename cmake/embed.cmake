# Files that become part of the program, as they are.
#
# tq_embed(page_files.cc HEADER server/page/page_files.h FUNCTION tq::server::PageFiles TYPE PageFile FILES a.html b.css)
#   writes ${CMAKE_CURRENT_BINARY_DIR}/page_files.cc whenever a file changes: FUNCTION() gives a span of
#   TYPE{name, tag, body}, tag: of the content (SHA-256, cut).
# The same file is the script that writes it (cmake -P).
if(CMAKE_SCRIPT_MODE_FILE)
  set(bodies "")
  set(entries "")
  set(number 0)
  foreach(file IN LISTS FILES)
    file(READ ${file} bytes HEX)
    file(SHA256 ${file} tag)
    string(SUBSTRING ${tag} 0 16 tag)
    get_filename_component(name ${file} NAME)
    if(bytes STREQUAL "")
      message(FATAL_ERROR "${file}: expected some bytes, found none")
    endif()
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes ${bytes})
    string(APPEND bodies "constexpr char kBody${number}[] = {${bytes}};\n")
    string(APPEND entries "    {\"${name}\", \"${tag}\", {kBody${number}, sizeof(kBody${number})}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(REGEX MATCH "^(.*)::([A-Za-z]+)$" whole ${FUNCTION})
  file(WRITE ${OUT} "// Written by cmake/embed.cmake.\n#include \"${HEADER}\"\n\nnamespace ${CMAKE_MATCH_1} {\nnamespace {\n\n"
       "${bodies}\nconstexpr ${TYPE} kFiles[] = {\n${entries}};\n\n}  // namespace\n\n"
       "std::span<const ${TYPE}> ${CMAKE_MATCH_2}() { return kFiles; }\n\n}  // namespace ${CMAKE_MATCH_1}\n")
  return()
endif()

set(TQ_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_FILE})

function(tq_embed out)
  cmake_parse_arguments(ARG "" "HEADER;FUNCTION;TYPE" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set(path ${CMAKE_CURRENT_BINARY_DIR}/${out})
  add_custom_command(
    OUTPUT ${path}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARG_FILES}" -DHEADER=${ARG_HEADER} -DFUNCTION=${ARG_FUNCTION}
            -DTYPE=${ARG_TYPE} -DOUT=${path} -P ${TQ_EMBED_SCRIPT}
    DEPENDS ${ARG_FILES} ${TQ_EMBED_SCRIPT}
    COMMENT "Embedding ${out}"
    VERBATIM)
endfunction()
