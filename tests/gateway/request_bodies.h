// Short ways to write request bodies in tests.
#pragma once

#include "gateway/api/anthropic_request.h"
#include "gateway/api/error.h"

#include <string>
#include <string_view>

namespace incipit::gateway {

// A gateway whose loaded model has tools, spoken to in the older version.
inline RequestContext older_version() {
  RequestContext context;
  context.local_model = "smollm2-135m";
  return context;
}

inline RequestContext newer_version() {
  RequestContext context = older_version();
  context.version_2026_10_21 = true;
  return context;
}

inline RequestContext with_beta(std::string_view beta) {
  RequestContext context = older_version();
  context.betas.emplace_back(beta);
  return context;
}

inline std::string body_of(std::string_view model, std::string_view messages,
                           std::string_view more = "") {
  std::string body = R"({"model":")";
  body.append(model).append(R"(","max_tokens":16,"messages":)").append(messages);
  if (!more.empty()) body.append(",").append(more);
  return body + "}";
}

constexpr std::string_view sonnet = "claude-sonnet-4-6";
constexpr std::string_view hello = R"([{"role":"user","content":"hello"}])";

// A body with these messages.
inline std::string messages(std::string_view list) {
  return body_of(sonnet, list);
}

// A body with one user message of these blocks.
inline std::string blocks(std::string_view list) {
  return messages(R"([{"role":"user","content":[)" + std::string(list) + "]}]");
}

// A plain body with these top-level fields more.
inline std::string fields(std::string_view more, std::string_view model = sonnet) {
  return body_of(model, hello, more);
}

// What `parse_messages` says against a body: its message, or "" when it accepts it.
inline std::string complaint(std::string_view body,
                             const RequestContext& context = older_version()) {
  try {
    (void)parse_messages(body, context);
    return "";
  } catch (const ApiError& error) {
    return error.what();
  }
}

inline Conversation conversation(std::string_view body,
                                 const RequestContext& context = older_version()) {
  return parse_messages(body, context).conversation;
}

}  // namespace incipit::gateway
