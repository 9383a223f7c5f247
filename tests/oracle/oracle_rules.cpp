// Which rules a body breaks: cache semantics sections 2, 3 and 5, wire sections 4, 6, 7 and 8.
#include "usage_oracle.h"

#include <algorithm>
#include <array>
#include <set>

namespace incipit::oracle {

namespace json = boost::json;

namespace {

using Complaints = std::vector<Complaint>;

const json::value* member(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}

std::string text_member(const json::object& object, std::string_view name) {
  const json::value* value = member(object, name);
  return value ? std::string(value->as_string()) : std::string();
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

void complain(Complaints& complaints, std::string text, bool is_whole = true) {
  complaints.push_back({400, "invalid_request_error", std::move(text), is_whole});
}

// One cache_control. `place` is the block's path as E-2 writes it, `path` as E-3 does.
struct Marker {
  std::string place;
  bool is_hour = false;
};

class Markers {
 public:
  explicit Markers(Complaints& complaints) : complaints_(complaints) {}

  // 0, 5 or 60 minutes.
  int read(const json::object& owner, const std::string& place, const std::string& path) {
    const json::value* value = member(owner, "cache_control");
    if (!value) return 0;
    const json::object& control = value->as_object();
    const std::string at = path + (path.empty() ? "" : ".") + "cache_control";
    if (!control.contains("type")) {
      complain(complaints_, at + ".type: Field required", false);
    } else if (control.at("type") != "ephemeral") {
      complain(complaints_, at + ".type: Input should be 'ephemeral'");
    }
    if (control.contains("ttl") && control.at("ttl") != "5m" && control.at("ttl") != "1h") {
      complain(complaints_, at + ".ephemeral.ttl: Input should be '5m' or '1h'");
    }
    for (const auto& [name, ignored] : control) {
      if (name != "type" && name != "ttl") {
        complain(complaints_,
                 at + ".ephemeral." + std::string(name) + ": Extra inputs are not permitted");
      }
    }
    const bool is_hour = control.contains("ttl") && control.at("ttl") == "1h";
    if (place.empty()) return is_hour ? 60 : 5;
    list_.push_back({place, is_hour});
    return is_hour ? 60 : 5;
  }

  // After all explicit ones: the top-level marker and what its target carries, in minutes.
  void finish(int automatic, int on_target) {
    if (automatic > 0 && on_target == 0) list_.push_back({"", automatic == 60});
    if (automatic > 0 && on_target > 0 && automatic != on_target) {
      complain(complaints_, std::string("Top-level cache_control has ttl='")
                                + (automatic == 60 ? "1h" : "5m")
                                + "' but the target block already has cache_control with ttl='"
                                + (on_target == 60 ? "1h" : "5m") + "'");
    }
    if (list_.size() > 4) {
      complain(complaints_, "A maximum of 4 blocks with cache_control may be provided. Found "
                                + std::to_string(list_.size()) + ".");
    }
    bool short_seen = false;
    for (const Marker& marker : list_) {
      if (marker.is_hour && short_seen) {
        if (marker.place.empty()) {
          complain(complaints_, "cache_control", false);
        } else {
          complain(complaints_,
                   marker.place
                       + ".cache_control.ttl: a ttl='1h' cache_control block must not come after a "
                         "ttl='5m' cache_control block. Note that blocks are processed in the "
                         "following order: `tools`, `system`, `messages`.");
        }
      }
      short_seen = short_seen || !marker.is_hour;
    }
  }

 private:
  Complaints& complaints_;
  std::vector<Marker> list_;
};

std::string element(const std::string& list, std::size_t index) {
  return list + "." + std::to_string(index);
}

void check_tools(const json::object& body, Markers& markers, Complaints& complaints) {
  const json::value* tools = member(body, "tools");
  if (!tools || tools->as_array().empty()) return;
  std::set<std::string> names;
  bool all_deferred = true;
  const json::array& list = tools->as_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json::object& tool = list[i].as_object();
    const std::string name = text_member(tool, "name");
    if (!names.insert(name).second) complain(complaints, "tools: Tool names must be unique.");
    const json::value* defer = member(tool, "defer_loading");
    const bool deferred = defer && defer->as_bool();
    all_deferred = all_deferred && deferred;
    const int ttl = markers.read(tool, element("tools", i), element("tools", i) + ".custom");
    if (deferred && ttl > 0) {
      complain(complaints, "Tool '" + name
                               + "' cannot have both defer_loading=true and cache_control set. "
                                 "Tools with defer_loading cannot use prompt caching.");
    }
  }
  if (all_deferred) {
    complain(complaints,
             "At least one tool must have defer_loading=false. All tools cannot be deferred.");
  }
}

void check_system(const json::object& body, Markers& markers, Complaints& complaints) {
  const json::value* system = member(body, "system");
  if (!system || !system->is_array()) return;
  const json::array& list = system->as_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = element("system", i);
    const int ttl = markers.read(list[i].as_object(), path, path);
    if (!text_member(list[i].as_object(), "text").empty()) continue;
    complain(complaints, ttl > 0 ? path + ": cache_control cannot be set for empty text blocks"
                                 : "system: text content blocks must be non-empty");
  }
}

void check_text(const std::string& text, int ttl, const std::string& place,
                Complaints& complaints) {
  if (text.empty() && ttl > 0) {
    complain(complaints, place + ".text: cache_control cannot be set for empty text blocks");
  } else if (text.empty()) {
    complain(complaints, "messages: text content blocks must be non-empty");
  } else if (is_blank(text)) {
    complain(complaints, "messages: text content blocks must contain non-whitespace text");
  }
}

// Marker of a block and of what is inside it; the last marker met, in minutes.
int read_block(const json::object& block, const std::string& place, Markers& markers,
               Complaints& complaints) {
  const std::string type = text_member(block, "type");
  if (type == "thinking") {
    if (block.contains("cache_control")) {
      complain(complaints, place + ".thinking.cache_control: Extra inputs are not permitted");
    }
    // The source of these requests marks a signature that it has spoilt.
    if (text_member(block, "signature").starts_with("spoilt")) {
      complain(complaints, place + ": ", false);
    }
    return 0;
  }
  int inner = 0;
  const json::value* content = member(block, "content");
  if (type == "tool_result" && content && content->is_array()) {
    const json::array& parts = content->as_array();
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::string part = element(place + ".content", i);
      inner = std::max(inner, markers.read(parts[i].as_object(), part,
                                           element(place + ".tool_result.content", i) + ".text"));
    }
  }
  const int ttl = markers.read(block, place, place + "." + type);
  if (type == "text") check_text(text_member(block, "text"), ttl, place, complaints);
  return std::max(ttl, inner);
}

// Section 4.1. Returns the marker on the last block.
int check_messages(const json::array& messages, const ModelFacts& model, Markers& markers,
                   Complaints& complaints) {
  if (messages.empty()) {
    complain(complaints, "messages: at least one message is required");
    return 0;
  }
  int last = 0;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const json::object& message = messages[i].as_object();
    const std::string role = text_member(message, "role");
    const json::value& content = message.at("content");
    const std::string place = element("messages", i);
    const bool is_last = i + 1 == messages.size();
    const bool is_empty =
        content.is_string() ? content.as_string().empty() : content.as_array().empty();
    if (is_empty && !(is_last && role == "assistant")) {
      complain(complaints, place
                               + ": all messages must have non-empty content except for the "
                                 "optional final assistant message");
    } else if (content.is_string() && !is_empty) {
      check_text(std::string(content.as_string()), 0, place, complaints);
      last = 0;
    } else if (content.is_array()) {
      const json::array& blocks = content.as_array();
      for (std::size_t j = 0; j < blocks.size(); ++j) {
        last =
            read_block(blocks[j].as_object(), element(place + ".content", j), markers, complaints);
      }
    }
    if (role != "system") continue;
    const std::string before = i > 0 ? text_member(messages[i - 1].as_object(), "role") : "";
    const std::string after = is_last ? "" : text_member(messages[i + 1].as_object(), "role");
    const bool is_placed = (before == "user" || before == "system")
                           && (after.empty() || after == "assistant" || after == "system");
    if (!model.system_messages || !is_placed) complain(complaints, "messages", false);
  }
  if (text_member(messages.front().as_object(), "role") == "assistant") {
    complain(complaints, "messages: first message must use the \"user\" role");
  }
  return last;
}

void check_prefill(const json::array& messages, const ModelFacts& model, Complaints& complaints) {
  if (messages.empty()) return;
  const json::object& message = messages.back().as_object();
  if (text_member(message, "role") != "assistant") return;
  if (!model.prefill) {
    complain(complaints,
             "This model does not support assistant message prefill. The conversation must end "
             "with a user message.");
  }
  const json::value& content = message.at("content");
  std::string text;
  if (content.is_string()) {
    text = content.as_string();
  } else if (!content.as_array().empty()) {
    text = text_member(content.as_array().back().as_object(), "text");
  }
  if (!text.empty() && is_blank(text.substr(text.size() - 1))) {
    complain(complaints, "messages: final assistant content cannot end with trailing whitespace");
  }
}

// Section 4.2, for conversations in which user and assistant take turns.
void check_pairs(const json::array& messages, Complaints& complaints) {
  std::set<std::string> all;
  std::vector<std::string> open;
  std::size_t opened_at = 0;
  const auto blocks_of = [&](std::size_t i) {
    const json::value& content = messages[i].as_object().at("content");
    static const json::array none;
    return content.is_array() ? &content.as_array() : &none;
  };
  const auto complain_open = [&](const std::set<std::string>& answered) {
    std::string ids;
    for (const std::string& id : open) {
      if (!answered.contains(id)) ids += (ids.empty() ? "" : ", ") + id;
    }
    if (ids.empty()) return;
    complain(complaints, element("messages", opened_at)
                             + ": `tool_use` ids were found without `tool_result` blocks "
                               "immediately after: "
                             + ids
                             + ". Each `tool_use` block must have a corresponding `tool_result` "
                               "block in the next message.");
  };
  for (std::size_t i = 0; i < messages.size(); ++i) {
    std::set<std::string> answered;
    bool is_first = true;
    std::vector<std::string> calls;
    const json::array& blocks = *blocks_of(i);
    for (std::size_t j = 0; j < blocks.size(); ++j) {
      const json::object& block = blocks[j].as_object();
      const std::string type = text_member(block, "type");
      if (type == "tool_use") {
        calls.push_back(text_member(block, "id"));
        if (!all.insert(calls.back()).second) {
          complain(complaints, "messages: `tool_use` ids must be unique");
        }
      } else if (type == "tool_result") {
        const std::string id = text_member(block, "tool_use_id");
        if (std::ranges::find(open, id) == open.end()) {
          complain(complaints, element(element("messages", i) + ".content", j)
                                   + ": unexpected `tool_use_id` found in `tool_result` blocks: "
                                   + id
                                   + ". Each `tool_result` block must have a corresponding "
                                     "`tool_use` block in the previous message.");
        } else if (is_first) {
          answered.insert(id);
        }
      } else {
        is_first = false;
      }
    }
    complain_open(answered);
    open = calls;
    opened_at = i;
  }
  complain_open({});
}

// Section 7.3: not with prefill.
void check_format(const json::object& body, const json::array& messages, Complaints& complaints) {
  const json::value* config = member(body, "output_config");
  if (!config || !member(config->as_object(), "format") || messages.empty()) return;
  if (text_member(messages.back().as_object(), "role") == "assistant")
    complain(complaints, "", false);
}

constexpr std::array<std::string_view, 5> efforts = {"low", "medium", "high", "xhigh", "max"};

void check_thinking(const json::object& body, const ModelFacts& model, Complaints& complaints) {
  const json::value* value = member(body, "thinking");
  if (!value) return;
  const std::string type = text_member(value->as_object(), "type");
  std::string effort;
  if (const json::value* config = member(body, "output_config")) {
    effort = text_member(config->as_object(), "effort");
  }
  if (effort.empty()) effort = model.default_effort;
  const bool beyond_high = std::ranges::find(efforts, effort) - efforts.begin() > 2;
  const Cell cell = type == "adaptive"        ? model.adaptive
                    : type == "enabled"       ? model.enabled
                    : type == "between_tools" ? model.between_tools
                                              : model.disabled;
  const std::string instead =
      " Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
  if (cell == Cell::no && type == "adaptive") {
    complain(complaints, "adaptive thinking is not supported on this model");
  } else if (cell == Cell::no) {
    const bool own_words =
        type == "disabled"
        && (model.id == "claude-sonnet-5-5" || model.id == "claude-mythos-preview");
    complain(complaints,
             own_words ? "\"thinking.type"
                       : "\"thinking.type." + type + "\" is not supported for this model."
                             + (type == "between_tools" ? "" : instead),
             !own_words);
  } else if (cell == Cell::to_high && beyond_high) {
    if (type == "disabled") {
      complain(complaints, "output_config.effort '" + effort
                               + "' is not supported when thinking is disabled on this model. Use "
                                 "effort 'high' or below, or enable thinking.");
    } else {
      complain(complaints, "output_config.effort '" + effort + "'", false);
    }
  }
  const json::value* budget = member(value->as_object(), "budget_tokens");
  if (budget && budget->as_int64() < 1024) {
    complain(complaints, "thinking.enabled.budget_tokens: ", false);
  }
  const json::value* most = member(body, "max_tokens");
  if (budget && most && budget->as_int64() >= most->as_int64()) {
    complain(complaints, "`max_tokens` must be greater than `thinking.budget_tokens`", false);
  }
}

void check_choice(const json::object& body, const ModelFacts& model, Complaints& complaints) {
  const json::value* value = member(body, "tool_choice");
  if (!value) return;
  const json::object& choice = value->as_object();
  const std::string type = text_member(choice, "type");
  if (type != "any" && type != "tool") return;
  const json::value* tools = member(body, "tools");
  const bool has_tools = tools && !tools->as_array().empty();
  if (type == "any" && !has_tools) {
    complain(complaints, "tool_choice.any may only be specified while providing tools");
  }
  if (type == "tool") {
    const std::string name = text_member(choice, "name");
    const bool found =
        has_tools && std::ranges::any_of(tools->as_array(), [&](const json::value& tool) {
          return text_member(tool.as_object(), "name") == name;
        });
    if (!found) complain(complaints, "Tool '" + name + "' not found in provided tools");
  }
  if (!model.forced_tools) {
    complain(complaints,
             "tool_choice: type \"tool\" and \"any\" are not supported for this model.");
  }
  const json::value* thinking = member(body, "thinking");
  if (thinking && text_member(thinking->as_object(), "type") == "enabled") {
    complain(complaints, "", false);  // 6.4 gives no text
  }
}

// Section 18, C-90, and the cap of section 4.
void check_max_tokens(const json::object& body, const ModelFacts& model, Complaints& complaints) {
  const json::value* most = member(body, "max_tokens");
  if (!most) return complain(complaints, "max_tokens: Field required");
  const std::int64_t count = most->as_int64();
  if (count < 0) complain(complaints, "max_tokens: must be greater than or equal to 0");
  if (count > model.most_output) {
    complain(complaints,
             "max_tokens: " + std::to_string(count) + " > " + std::to_string(model.most_output)
                 + ", which is the maximum allowed number of output tokens for ",
             false);
  }
  if (count != 0) return;
  const json::value* stream = member(body, "stream");
  const json::value* thinking = member(body, "thinking");
  const json::value* config = member(body, "output_config");
  const json::value* choice = member(body, "tool_choice");
  const std::string chosen = choice ? text_member(choice->as_object(), "type") : "";
  if ((stream && stream->as_bool())
      || (thinking && text_member(thinking->as_object(), "type") == "enabled")
      || (config && member(config->as_object(), "format")) || chosen == "any" || chosen == "tool") {
    complain(complaints, "max_tokens: 0", false);
  }
}

constexpr std::array<std::string_view, 17> fields = {
    "model",          "max_tokens",   "messages", "system",        "stream",
    "stop_sequences", "temperature",  "top_p",    "top_k",         "metadata",
    "tools",          "tool_choice",  "thinking", "output_config", "service_tier",
    "cache_control",  "inference_geo"};

}  // namespace

std::vector<Complaint> complaints_of(const json::object& body) {
  Complaints complaints;
  for (const auto& [name, ignored] : body) {
    if (std::ranges::find(fields, std::string_view(name)) == fields.end()) {
      complain(complaints, std::string(name) + ": Extra inputs are not permitted");
    }
  }
  const std::string name = text_member(body, "model");
  const ModelFacts* model = facts_of(name);
  if (!model) {
    complaints.push_back({404, "not_found_error", "model: " + name, true});
    return complaints;
  }
  Markers markers(complaints);
  const int automatic = markers.read(body, "", "");
  check_tools(body, markers, complaints);
  check_system(body, markers, complaints);
  const json::array& messages = body.at("messages").as_array();
  const int on_target = check_messages(messages, *model, markers, complaints);
  markers.finish(automatic, on_target);
  check_prefill(messages, *model, complaints);
  check_pairs(messages, complaints);
  check_format(body, messages, complaints);
  check_thinking(body, *model, complaints);
  check_choice(body, *model, complaints);
  check_max_tokens(body, *model, complaints);
  return complaints;
}

}  // namespace incipit::oracle
