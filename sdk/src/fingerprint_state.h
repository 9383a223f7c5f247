// What a fingerprint keeps: the body, and digests of the pieces of it that the cache sees. Private
// to the SDK.
#pragma once

#include "incipit/fingerprint.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace incipit {

struct Digest {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
};

// In the order in which they are rendered (C-1).
enum class Section : std::uint8_t { tools, system, messages };

// A tool, a system text, or a content block.
struct PromptBlock {
  Section section = Section::tools;
  std::size_t index = 0;  // of the tool, text or message
  std::size_t part = 0;   // of the content block in its message
  MessageRole role = MessageRole::user;
  bool thinking = false;
  std::size_t offset = 0;  // in the body
  std::size_t size = 0;
  std::size_t visible = 0;  // bytes that the cache sees
  Digest digest = {};
};

// Something other than text that is rendered, or changes how that is done, before a section (C-54).
struct RenderedSetting {
  Section before;  // system or messages
  std::string name;
  std::string path;   // in the body; empty when the setting is not there and its default holds
  std::string value;  // of a default, that default
};

struct FingerprintState {
  std::string body;   // to_json
  std::string model;  // without a date
  std::vector<PromptBlock> blocks;
  std::vector<RenderedSetting> settings;
  bool thinking_dropped = false;  // blocks of earlier turns are left out by the API (C-64)
  std::size_t bytes = 0;          // visible ones of all blocks
  Digest digest;

  // Those of one section, which are neighbours.
  [[nodiscard]] std::vector<const PromptBlock*> in(Section section) const {
    std::vector<const PromptBlock*> found;
    for (const PromptBlock& block : blocks) {
      if (block.section == section) found.push_back(&block);
    }
    return found;
  }
};

}  // namespace incipit
