#include "gateway/api/listing.h"

#include "gateway/api/anthropic_request.h"
#include "gateway/api/anthropic_traits.h"
#include "gateway/api/generate.h"
#include "gateway/api/paging.h"
#include "gateway/prompt/encode.h"
#include "incipit/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace incipit::gateway {

namespace {

constexpr std::string_view unknown_date = "1970-01-01T00:00:00Z";

// One entry of the model list, whatever it was made from.
struct ListedModel {
  std::string id;
  std::string display_name;
  std::string created_at{unknown_date};
  std::string line;  // empty = null
  std::string lifecycle = "active";
  int max_output_tokens = 0;
  std::string retires_at;  // empty = null
};

ListedModel listed(const ModelRow& row) {
  return {std::string(row.id),        std::string(row.display_name), std::string(row.created_at),
          std::string(row.line),      std::string(row.lifecycle),    row.max_output_tokens,
          std::string(row.retires_at)};
}

ListedModel local_model(const Services& services) {
  ListedModel model;
  model.id = services.local_model;
  model.display_name = services.model.name + " (local)";
  model.max_output_tokens = services.model.context;
  return model;
}

void supported(JsonWriter& json, std::string_view name, bool truth) {
  json.key(name).begin_object().key("supported").boolean(truth).end_object();
}

// What a request under that name gets from the loaded model: thinking as the name's own model takes
// it, if the loaded one thinks aloud; effort is how long it may think.
void write_capabilities(JsonWriter& json, const std::string& model, bool thinks) {
  const ModelTraits traits = model_traits(model);
  json.key("capabilities").begin_object();
  supported(json, "batch", true);
  for (const std::string_view name : {"citations", "code_execution", "image_input", "pdf_input"}) {
    supported(json, name, false);
  }
  supported(json, "structured_outputs", true);
  json.key("context_management").begin_object().key("supported").boolean(true);
  supported(json, "clear_thinking_20251015", true);
  supported(json, "clear_tool_uses_20250919", true);
  supported(json, "compact_20260112", false);
  json.end_object();
  json.key("effort").begin_object().key("supported").boolean(thinks);
  for (const std::string_view level : {"low", "medium", "high", "xhigh", "max"}) {
    supported(json, level, thinks);
  }
  json.end_object();
  json.key("server_tools").begin_object();
  supported(json, "code_execution", false);
  supported(json, "web_search", false);
  json.end_object();
  json.key("thinking").begin_object().key("supported").boolean(thinks);
  json.key("types").begin_object();
  const auto mode = [&](std::string_view name, Thinking::Type type) {
    const bool taken = traits.thinking[static_cast<std::size_t>(type)] != ThinkingSupport::refused;
    supported(json, name, thinks && taken);
  };
  mode("adaptive", Thinking::Type::adaptive);
  mode("between_tools", Thinking::Type::between_tools);
  mode("disabled", Thinking::Type::disabled);
  mode("enabled", Thinking::Type::enabled);
  json.end_object().end_object().end_object();
}

void write_model(JsonWriter& json, const ListedModel& model, const Services& services) {
  json.begin_object();
  json.key("type").string("model");
  json.key("id").string(model.id);
  json.key("display_name").string(model.display_name);
  json.key("created_at").string(model.created_at);
  const auto string_or_null = [&](std::string_view name, const std::string& text) {
    json.key(name);
    if (text.empty()) {
      json.null();
    } else {
      json.string(text);
    }
  };
  string_or_null("line", model.line);
  json.key("lifecycle").string(model.lifecycle);
  json.key("deprecated_at").null();
  string_or_null("retires_at", model.retires_at);
  json.key("max_input_tokens").integer(services.model.context);
  json.key("max_tokens").integer(model.max_output_tokens);
  write_capabilities(json, model.id, services.chat_template.thinks());
  json.end_object();
}

std::vector<std::string> wanted_lifecycles(const HttpRequest& request) {
  std::vector<std::string> wanted = request.query_values("lifecycle[]");
  const std::vector<std::string> plain = request.query_values("lifecycle");
  wanted.insert(wanted.end(), plain.begin(), plain.end());
  for (const std::string& value : wanted) {
    if (value != "active" && value != "deprecated" && value != "retired") {
      throw invalid_request("lifecycle: Input should be 'active', 'deprecated' or 'retired'");
    }
  }
  if (wanted.empty()) wanted = {"active", "deprecated"};  // retired ones only when asked
  return wanted;
}

}  // namespace

Response count_tokens(const HttpRequest& request, Services& services, const Scope& scope,
                      RequestRecord& record) {
  const MessagesRequest parsed =
      parse_count_tokens(request.body, request_context(request, services, scope));
  record.model = parsed.model;
  record.dropped_billing_lines = parsed.dropped_billing_lines;
  const EncodedPrompt prompt =
      encode(parsed.conversation, services.chat_template, services.tokenizer);
  Response response;
  JsonWriter json(response.body);
  json.begin_object().key("input_tokens");
  json.integer(static_cast<std::int64_t>(prompt.tokens.size()));
  if (!parsed.context_management.empty()) {
    json.key("context_management").raw(parsed.context_management);
  }
  json.end_object();
  return response;
}

Response list_models(const HttpRequest& request, Services& services, const Scope& /*scope*/,
                     RequestRecord& /*record*/) {
  const std::vector<std::string> lifecycles = wanted_lifecycles(request);
  std::vector<ListedModel> models;
  for (const ModelRow& row : model_table()) {
    if (std::find(lifecycles.begin(), lifecycles.end(), row.lifecycle) != lifecycles.end()) {
      models.push_back(listed(row));
    }
  }
  if (std::find(lifecycles.begin(), lifecycles.end(), "active") != lifecycles.end()) {
    models.push_back(local_model(services));
  }

  std::vector<std::string_view> ids;
  for (const ListedModel& model : models)
    ids.emplace_back(model.id);
  const Page page = page_of(request, ids, "model");

  Response response;
  JsonWriter json(response.body);
  json.begin_object().key("data").begin_array();
  for (std::size_t i = page.begin; i < page.end; ++i)
    write_model(json, models[i], services);
  json.end_array();
  write_page_ends(json, page, ids);
  json.end_object();
  return response;
}

Response show_model(const HttpRequest& request, Services& services, const Scope& /*scope*/,
                    RequestRecord& record) {
  const std::string name = percent_decoded(
      std::string_view(request.path).substr(std::string_view("/v1/models/").size()));
  const std::optional<std::string> id = resolve_model(name, services.local_model);
  if (!id) throw ApiError(404, "not_found_error", "model: " + name);
  record.model = *id;
  ListedModel model = local_model(services);
  if (*id != services.local_model) {
    const std::vector<ModelRow>& table = model_table();
    const auto row = std::find_if(table.begin(), table.end(),
                                  [&](const ModelRow& candidate) { return candidate.id == *id; });
    if (row != table.end()) {
      model = listed(*row);
    } else {  // a claude-* name that is newer than the table
      model.id = *id;
      model.display_name = *id;
    }
  }
  Response response;
  JsonWriter json(response.body);
  write_model(json, model, services);
  return response;
}

Response show_health(const HttpRequest& /*request*/, Services& /*services*/, const Scope& /*scope*/,
                     RequestRecord& /*record*/) {
  Response response;
  response.body = R"({"status":"ok"})";
  return response;
}

Response show_metrics(const HttpRequest& /*request*/, Services& services, const Scope& /*scope*/,
                      RequestRecord& /*record*/) {
  Response response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = services.metrics.text(services.engine.stats(),
                                        services.ledger.entries(services.clock.now()).size(),
                                        services.ledger.entries_lost());
  return response;
}

Response list_entries(const HttpRequest& /*request*/, Services& services, const Scope& /*scope*/,
                      RequestRecord& /*record*/) {
  Response response;
  JsonWriter json(response.body);
  json.begin_object().key("entries").begin_array();
  for (const EntryView& entry : services.ledger.entries(services.clock.now())) {
    json.begin_object();
    json.key("model").string(entry.model);
    json.key("organization").string(entry.scope.organization);
    json.key("workspace").string(entry.scope.workspace);
    json.key("tokens").integer(entry.tokens);
    json.key("ttl").string(entry.ttl == Ttl::one_hour ? "1h" : "5m");
    json.key("seconds_left").number(std::round(entry.seconds_left * 1000) / 1000);
    json.key("hits").integer(entry.hits);
    json.key("key").string(fmt::format("{:016x}{:016x}", entry.key.high, entry.key.low));
    json.end_object();
  }
  json.end_array().end_object();
  return response;
}

Response advance_clock(const HttpRequest& request, Services& services, const Scope& /*scope*/,
                       RequestRecord& /*record*/) {
  // Ten years: enough for every test, far from overflow.
  constexpr double most = 3.2e8;
  JsonValue body;
  try {
    body = JsonValue::parse(request.body);
  } catch (const ParseError& error) {
    throw invalid_request(fmt::format("The request body is not valid JSON: {}", error.what()));
  }
  if (!body.is_object()) throw invalid_request("the body must be {\"advance_seconds\": n}");
  for (const JsonMember& member : body.as_object()) {
    if (member.name != "advance_seconds") {
      throw invalid_request(member.name + ": Extra inputs are not permitted");
    }
  }
  const JsonValue* value = body.find("advance_seconds");
  if (value == nullptr) throw invalid_request("advance_seconds: Field required");
  const std::optional<double> seconds = value->as_double();
  if (!seconds) throw invalid_request("advance_seconds: Input should be a valid number");
  if (!(*seconds >= 0 && *seconds <= most)) {
    throw invalid_request(
        fmt::format("advance_seconds: must be between 0 and {}; the clock never goes back", most));
  }
  services.clock.advance(
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*seconds)));
  Response response;
  JsonWriter(response.body).begin_object().key("advanced_seconds").number(*seconds).end_object();
  return response;
}

}  // namespace incipit::gateway
