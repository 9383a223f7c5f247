#!/usr/bin/env bash
# An outside project without CMake: the SDK by pkg-config. Run in an empty folder, with PKG_CONFIG_PATH
# set to the prefix's lib/pkgconfig.
set -euo pipefail
read -ra cflags <<<"$(pkg-config --cflags incipit)"
read -ra libs <<<"$(pkg-config --libs incipit)"
${CXX:-c++} -std=c++20 -O1 "${cflags[@]}" "$(dirname "$0")/../main.cpp" -o consumer "${libs[@]}"
LD_LIBRARY_PATH="$(pkg-config --variable=libdir incipit)" ./consumer
