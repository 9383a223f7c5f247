#include "gateway/prompt/pre_tokenizer.h"

#include <array>
#include <stdexcept>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace incipit::gateway {

namespace {

// Unicode's White_Space. PCRE2's own \s also takes U+180E, which left that property long ago.
constexpr std::string_view white_space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// In the patterns %s stands for the above.
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^%s\p{L}\p{N}]+|[%s]+(?![^%s])|[%s]+)";

// SmolLM cuts out every digit before the GPT-2 pattern sees the rest, so that a digit ends a run of
// blanks as the end of the text does. Said in one pattern.
constexpr std::string_view smollm_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d|\p{N}| ?\p{L}+| ?[^%s\p{L}\p{N}]+|[%s]+(?![^%s\p{N}])|[%s]+)";

constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^%s\p{L}\p{N}]+[\r\n]*)"
    R"(|[%s]*[\r\n]+|[%s]+(?![^%s])|[%s]+)";

constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^%s\p{L}\p{N}]+[\r\n]*)"
    R"(|[%s]*[\r\n]+|[%s]+(?![^%s])|[%s]+)";

constexpr std::string_view tekken_pattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^%s\p{L}\p{N}]+[\r\n/]*|[%s]*[\r\n]+|[%s]+(?![^%s])|[%s]+)";

struct Known {
  std::string_view name;
  std::string_view pattern;
  bool whole_words;
};

// "default" is what a file says that names no pre-tokenizer: byte-level BPE's own is GPT-2's.
constexpr std::array known = {
    Known{"gpt-2", gpt2_pattern, false},    Known{"default", gpt2_pattern, false},
    Known{"smollm", smollm_pattern, false}, Known{"llama-bpe", llama3_pattern, true},
    Known{"llama3", llama3_pattern, true},  Known{"llama-v3", llama3_pattern, true},
    Known{"qwen2", qwen2_pattern, false},   Known{"tekken", tekken_pattern, true},
};

const Known& find_known(std::string_view name) {
  std::string names;
  for (const Known& one : known) {
    if (one.name == (name.empty() ? "default" : name)) return one;
    names += names.empty() ? "" : ", ";
    names += one.name;
  }
  throw std::runtime_error("tokenizer: pre-tokenizer \"" + std::string(name)
                           + "\" is not supported; supported are " + names);
}

std::string expand(std::string_view pattern) {
  std::string text;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.substr(at, 2) == "%s") {
      text += white_space;
      ++at;
    } else {
      text += pattern[at];
    }
  }
  return text;
}

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

}  // namespace

struct PreTokenizer::State {
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool whole_words = false;
};

PreTokenizer::PreTokenizer(std::string_view name) : state_(std::make_unique<State>()) {
  const Known& one = find_known(name);
  const std::string pattern = expand(one.pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  state_->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset,
                                   nullptr));
  if (state_->code == nullptr) {
    throw std::runtime_error("tokenizer: the pattern of pre-tokenizer \"" + std::string(name)
                             + "\" does not compile with this PCRE2: " + pcre2_message(error));
  }
  // Where PCRE2 was built without its compiler, it interprets: slower, same answers.
  pcre2_jit_compile(state_->code.get(), PCRE2_JIT_COMPLETE);
  state_->whole_words = one.whole_words;
}

PreTokenizer::~PreTokenizer() = default;

bool PreTokenizer::takes_whole_words() const {
  return state_->whole_words;
}

void PreTokenizer::split(std::string_view text, std::vector<std::uint32_t>& ends) const {
  const std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create(1, nullptr));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  std::size_t at = 0;
  while (at < text.size()) {
    // The caller vouches for the UTF-8; a check at each call would read the rest of the text again.
    const int found = pcre2_match(state_->code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                                  match.get(), nullptr);
    if (found < 0) {
      throw std::runtime_error("tokenizer: splitting text failed at byte " + std::to_string(at)
                               + ": " + pcre2_message(found));
    }
    at = pcre2_get_ovector_pointer(match.get())[1];
    ends.push_back(static_cast<std::uint32_t>(at));
  }
}

}  // namespace incipit::gateway
