// The files of the web page, as they stand in this folder: the build puts them into the program
// (cmake/embed.cmake).
#pragma once

#include <span>
#include <string_view>

namespace tq::server {

struct PageFile {
  std::string_view name;  // "page.css"
  std::string_view tag;   // another one for other content
  std::string_view body;
};

// Their names differ.
std::span<const PageFile> PageFiles();

}  // namespace tq::server
