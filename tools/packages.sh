# Sourced by ./quickstart and ./check: installs the Debian packages that are missing.
# Usage: install_packages package...

install_packages() {
  local missing=()
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  echo "Installing: ${missing[*]}"
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "error: root or sudo is needed to install ${missing[*]}" >&2; return 1; }
    sudo=(sudo)
  fi
  "${sudo[@]}" apt-get update -qq
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What a build needs; tests add their own.
BUILD_PACKAGES=(g++ cmake ninja-build pkg-config ccache mold nlohmann-json3-dev libfmt-dev libcli11-dev
                libonig-dev libutf8proc-dev libhwy-dev libedit-dev libxxhash-dev
                libcurl4-openssl-dev libssl-dev libboost-dev prometheus-cpp-dev libspdlog-dev)
TEST_PACKAGES=(libgtest-dev xz-utils python3)
ALL_PACKAGES=(clang-16 libclang-rt-16-dev g++-aarch64-linux-gnu qemu-user)
