// Which bytes of a request the cache sees, and where two requests first differ in them.
// Source: anthropic-cache-semantics sections 1, 9 and 19 (C-95 to C-102).
#pragma once

#include "incipit/anthropic.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// Why the second of two requests cannot read what the first one wrote.
enum class MissReason : std::uint8_t {
  none,  // nothing differs: the first is a prefix of the second
  model_changed,
  system_changed,
  tools_changed,
  messages_changed,
  unavailable  // another rendered setting differs (tool_choice, thinking, effort, output format, …)
};

// The wire's word for it ("system_changed"); "none" for none.
[[nodiscard]] std::string_view to_string(MissReason reason);

struct CacheMiss {
  MissReason reason = MissReason::none;
  // Of the second request: `system.0.text`, `tools.3.input_schema.properties.city`, `tool_choice`.
  // Where the second has nothing (a tool is gone): what should hold it.
  std::string path;
  // Of the first differing byte in the second request's body (`to_json`).
  std::size_t byte_offset = 0;
  std::string before;            // some bytes of the first request around that place, and
  std::string after;             // of the second; cut at characters
  std::int64_t tokens_lost = 0;  // estimate, by length, of what could have been read (C-97, C-102)
  std::string explanation;       // one sentence for a person
};

struct FingerprintState;

// The cache-relevant bytes of a request, block by block. Markers, max_tokens, metadata, stream,
// stop sequences and the other settings of C-9 are not part of it. A value; copies share the bytes.
class Fingerprint {
 public:
  // Throws PromptError as `to_json` does.
  [[nodiscard]] static Fingerprint of(const MessageRequest& request);

  // Of the whole: the same for requests that the cache cannot tell apart.
  [[nodiscard]] std::string hex() const;

  // Bytes of the prompt (tools, system, messages).
  [[nodiscard]] std::size_t bytes() const;

  // Bytes of memory that it takes, shared by its copies.
  [[nodiscard]] std::size_t memory() const;

  friend bool operator==(const Fingerprint& a, const Fingerprint& b);

  // Where `b` leaves the path of `a`. Checks in the order of the hosted diagnostics: model and
  // speed, system, tools, messages (C-96), then the other settings; names the first difference, and
  // counts as lost all behind the earliest one in rendering order. More messages at the end of `b`
  // are no difference; fewer are none either, since what is left is a prefix. `prompt_tokens` of
  // `a`, when known, gives `tokens_lost`; without it four bytes count as a token.
  friend CacheMiss compare(const Fingerprint& a, const Fingerprint& b, std::int64_t prompt_tokens);

 private:
  explicit Fingerprint(std::shared_ptr<const FingerprintState> state);

  std::shared_ptr<const FingerprintState> state_;
};

[[nodiscard]] CacheMiss compare(const Fingerprint& a, const Fingerprint& b,
                                std::int64_t prompt_tokens = 0);

}  // namespace incipit
