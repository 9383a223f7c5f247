// Files below tests/data.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace incipit {

inline std::string test_data(const std::string& name) {
  std::ifstream file(INCIPIT_TEST_DATA "/" + name, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), "cannot open " << name);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace incipit
