#include "incipit/fingerprint.h"

#include "fingerprint_state.h"
#include "json_slices.h"
#include "visible_json.h"

#include <algorithm>
#include <array>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace incipit {
namespace {

Digest digest_of(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.high64, hash.low64};
}

// Model names and their defaults: sections 7.1 and 7.2 of the wire, 9 and C-64 of the cache.

// A dated id shares its entries with the alias (C-6).
std::string without_date(const std::string& model) {
  const std::size_t dash = model.rfind('-');
  if (dash == std::string::npos || model.size() - dash != 9) return model;
  const bool is_date = model.find_first_not_of("0123456789", dash + 1) == std::string::npos;
  return is_date ? model.substr(0, dash) : model;
}

bool is_of_fifth_generation(std::string_view model) {
  constexpr std::array families = {"claude-fable", "claude-mythos", "claude-opus-5",
                                   "claude-sonnet-5", "claude-haiku-5"};
  return std::ranges::any_of(families,
                             [&](std::string_view family) { return model.starts_with(family); });
}

std::string_view default_effort(std::string_view model) {
  return model == "claude-opus-5-5" || model == "claude-haiku-5-5" ? "\"medium\"" : "\"high\"";
}

// Earlier thinking is taken out of the prompt once a user turn is more than tool results (C-64).
bool drops_thinking(std::string_view model) {
  constexpr std::array models = {"claude-opus-4",   "claude-opus-4-0",   "claude-opus-4-1",
                                 "claude-sonnet-4", "claude-sonnet-4-0", "claude-sonnet-4-5",
                                 "claude-haiku-4-5"};
  return model.starts_with("claude-3") || std::ranges::find(models, model) != models.end();
}

// Builds the state of a request. Sections that the body lacks are empty arrays to it.
class Reader {
 public:
  explicit Reader(const MessageRequest& request) : request_(request) {
    state_.body = to_json(request);
    state_.model = without_date(request.model);
    members_ = json_members(state_.body);
  }

  FingerprintState read() {
    read_tools();
    const auto system = json_items(value_of("system"));
    for (std::size_t i = 0; i < system.size(); ++i)
      add({.section = Section::system, .index = i}, system[i]);
    read_messages();
    read_settings();
    read_extra();
    finish();
    return std::move(state_);
  }

 private:
  std::string_view value_of(std::string_view name) const {
    const auto found = std::ranges::find_if(
        members_, [&](const JsonMemberSlice& member) { return member.is_named(name); });
    return found == members_.end() ? std::string_view() : found->value;
  }

  void add(PromptBlock block, std::string_view json) {
    const VisibleJson visible = visible_json(json);
    block.offset = static_cast<std::size_t>(json.data() - state_.body.data());
    block.size = json.size();
    block.visible = visible.text.size();
    block.digest = digest_of(visible.text);
    state_.bytes += block.visible;
    state_.blocks.push_back(block);
  }

  // Deferred ones are not rendered (C-73). Web tools are, but behind the entries of the others: to
  // switch them on or off leaves those alone (section 9).
  void read_tools() {
    const auto tools = json_items(value_of("tools"));
    for (const bool web : {false, true}) {
      for (std::size_t i = 0; i < std::min(tools.size(), request_.tools.size()); ++i) {
        const Tool& tool = request_.tools[i];
        const bool is_web =
            tool.type.starts_with("web_search_") || tool.type.starts_with("web_fetch_");
        if (!tool.defer_loading && is_web == web) {
          add({.section = Section::tools, .index = i}, tools[i]);
        }
      }
    }
  }

  // Before which message thinking is not rendered any more.
  std::size_t thinking_from() const {
    if (!drops_thinking(state_.model)) return 0;
    for (std::size_t i = request_.messages.size(); i > 0; --i) {
      const MessageParam& message = request_.messages[i - 1];
      const bool asks = std::ranges::any_of(
          message.content, [](const ContentBlock& block) { return !block.is<ToolResultBlock>(); });
      if (message.role == MessageRole::user && asks) return i;
    }
    return 0;
  }

  static std::vector<std::string_view> content_of(std::string_view message) {
    for (const JsonMemberSlice& member : json_members(message)) {
      if (member.is_named("content")) return json_items(member.value);
    }
    return {};
  }

  void read_messages() {
    const std::size_t thinking_from_message = thinking_from();
    const auto messages = json_items(value_of("messages"));
    for (std::size_t i = 0; i < std::min(messages.size(), request_.messages.size()); ++i) {
      const MessageParam& message = request_.messages[i];
      const auto content = content_of(messages[i]);
      for (std::size_t j = 0; j < std::min(content.size(), message.content.size()); ++j) {
        const ContentBlock& block = message.content[j];
        look_at(block, i, j);
        const bool thinking = block.is<ThinkingBlock>() || block.is<RedactedThinkingBlock>();
        if (thinking && i < thinking_from_message) {
          state_.thinking_dropped = true;
          continue;
        }
        add({.section = Section::messages,
             .index = i,
             .part = j,
             .role = message.role,
             .thinking = thinking},
            content[j]);
      }
    }
  }

  // Whether there is an image or a switch of citations anywhere is rendered before the messages, or
  // the system prompt (section 9).
  void look_at(const ContentBlock& block, std::size_t message, std::size_t part) {
    const auto note = [&](std::string& path) {
      if (path.empty()) {
        path = "messages." + std::to_string(message) + ".content." + std::to_string(part);
      }
    };
    if (block.is<ImageBlock>()) note(image_);
    if (const auto* found = block.get_if<SearchResultBlock>()) {
      if (found->citations) note(citations_);
    }
    if (const auto* document = block.get_if<DocumentBlock>()) {
      if (document->citations) note(citations_);
      if (const auto* source = std::get_if<ContentSource>(&document->source)) {
        for (const ContentBlock& inside : source->content)
          look_at(inside, message, part);
      }
    }
    if (const auto* result = block.get_if<ToolResultBlock>()) {
      for (const ContentBlock& inside : result->content)
        look_at(inside, message, part);
    }
  }

  void set(Section before, std::string name, std::string path, std::string value) {
    state_.settings.push_back({before, std::move(name), std::move(path), std::move(value)});
  }

  // What is set explicitly to its default is rendered as if it were not (section 9).
  void set_from_body(Section before, const std::string& path, std::string_view json,
                     std::string_view standard) {
    const std::string value = visible_json(json).text;
    set(before, path, json.empty() ? "" : path, json.empty() ? std::string(standard) : value);
  }

  void read_settings() {
    set_from_body(Section::system, "speed", value_of("speed"), "\"standard\"");
    std::string_view effort;
    std::string_view format;
    for (const JsonMemberSlice& member : json_members(value_of("output_config"))) {
      if (member.is_named("effort")) {
        effort = member.value;
      } else if (member.is_named("format")) {
        format = member.value;
      } else {
        const std::string path = "output_config." + json_unescaped(member.key);
        set_from_body(Section::system, path, member.value, "");
      }
    }
    set_from_body(Section::system, "output_config.format", format, "");
    set(Section::system, "citations", citations_, citations_.empty() ? "off" : "on");
    set_from_body(Section::messages, "tool_choice", value_of("tool_choice"),
                  request_.tools.empty() ? R"({"type":"none"})" : R"({"type":"auto"})");
    read_thinking();
    set_from_body(Section::messages, "output_config.effort", effort, default_effort(state_.model));
    set(Section::messages, "image", image_, image_.empty() ? "none" : "some");
  }

  // How thinking is displayed is not rendered (C-68).
  void read_thinking() {
    const bool adaptive = is_of_fifth_generation(state_.model);
    std::string value = adaptive ? R"({"type":"adaptive"})" : R"({"type":"disabled"})";
    const std::string_view json = value_of("thinking");
    if (!json.empty()) value = visible_json(json_without(json, "display")).text;
    set(Section::messages, "thinking", json.empty() ? "" : "thinking", std::move(value));
  }

  // Members of betas, other than those that say what to do with the request and not what it is.
  void read_extra() {
    constexpr std::array known = {
        "model",          "max_tokens",     "tools",       "system",
        "messages",       "cache_control",  "tool_choice", "thinking",
        "output_config",  "stop_sequences", "temperature", "top_p",
        "top_k",          "stream",         "metadata",    "service_tier",
        "speed",          "inference_geo",  "container",   "diagnostics",
        "billing_policy", "thread",         "fallbacks",   "fallback_credit_token"};
    for (const JsonMemberSlice& member : members_) {
      const std::string name = json_unescaped(member.key);
      if (std::ranges::find(known, name) != known.end()) continue;
      set_from_body(Section::system, name, member.value, "");
    }
    std::ranges::sort(state_.settings, {}, &RenderedSetting::name);  // their order says nothing
  }

  void finish() {
    std::string all = state_.model + '\0';
    for (const RenderedSetting& setting : state_.settings) {
      // One that is as if it were not there must not count.
      if (setting.value.empty()) continue;
      all.append(setting.name).append(1, '\0').append(setting.value).append(1, '\0');
    }
    for (const PromptBlock& block : state_.blocks) {
      all += static_cast<char>(block.section);
      all += static_cast<char>(block.role);
      for (const std::uint64_t half : {block.digest.high, block.digest.low}) {
        for (unsigned shift = 0; shift < 64; shift += 8)
          all += static_cast<char>(half >> shift);
      }
    }
    state_.digest = digest_of(all);
  }

  const MessageRequest& request_;
  FingerprintState state_;
  std::vector<JsonMemberSlice> members_;
  std::string image_;  // where the first one is
  std::string citations_;
};

}  // namespace

Fingerprint::Fingerprint(std::shared_ptr<const FingerprintState> state)
    : state_(std::move(state)) {}

Fingerprint Fingerprint::of(const MessageRequest& request) {
  return Fingerprint(std::make_shared<const FingerprintState>(Reader(request).read()));
}

std::string Fingerprint::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {state_->digest.high, state_->digest.low}) {
    for (unsigned shift = 64; shift > 0; shift -= 4)
      text += digits[(half >> (shift - 4)) & 15U];
  }
  return text;
}

std::size_t Fingerprint::bytes() const {
  return state_->bytes;
}

std::size_t Fingerprint::memory() const {
  std::size_t bytes = sizeof(FingerprintState) + state_->body.capacity()
                      + state_->blocks.capacity() * sizeof(PromptBlock);
  for (const RenderedSetting& setting : state_->settings)
    bytes += sizeof setting + setting.value.size();
  return bytes;
}

bool operator==(const Fingerprint& a, const Fingerprint& b) {
  return a.state_->digest == b.state_->digest;
}

}  // namespace incipit
