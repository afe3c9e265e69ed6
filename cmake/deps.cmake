# Every third-party dependency, in one place. All are Debian packages (docs/decisions/).
find_package(Threads REQUIRED)
if(CMAKE_CROSSCOMPILING)
  include(deps_cross)
  return()
endif()
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
# Highway (float CPU kernels) is used as headers alone: its library holds dispatch state that is not wanted.
find_path(TQ_HIGHWAY_INCLUDE_DIR hwy/highway.h REQUIRED)
find_path(TQ_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
pkg_check_modules(Oniguruma REQUIRED IMPORTED_TARGET oniguruma)
pkg_check_modules(Utf8proc REQUIRED IMPORTED_TARGET libutf8proc)
# Command line and line editing (libedit, BSD licence): the program only.
find_package(CLI11 REQUIRED)
pkg_check_modules(Libedit REQUIRED IMPORTED_TARGET libedit)
# The server: Boost.Beast and Boost.Asio as headers, metrics, logs.
find_path(TQ_BOOST_INCLUDE_DIR boost/beast/version.hpp REQUIRED)
find_path(TQ_PROMETHEUS_INCLUDE_DIR prometheus/registry.h REQUIRED)
find_library(TQ_PROMETHEUS_LIBRARY prometheus-cpp-core REQUIRED)
find_package(spdlog REQUIRED)
# Downloads and their hashes.
pkg_check_modules(Curl REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(Crypto REQUIRED IMPORTED_TARGET libcrypto)
if(TQ_TESTS AND NOT TQ_FUZZ)
  find_package(GTest REQUIRED)
endif()
