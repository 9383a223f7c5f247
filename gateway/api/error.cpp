#include "gateway/api/error.h"

#include <incipit/json.h>

namespace incipit::gateway {

std::string error_body(const ApiError& error, std::string_view request_id) {
  std::string body;
  JsonWriter json(body);
  json.begin_object().key("type").string("error");
  json.key("error").begin_object().key("type").string(error.type);
  json.key("message").string(error.what());
  if (!error.error_code.empty()) {
    json.key("details").begin_object().key("error_code").string(error.error_code).end_object();
  }
  json.end_object().key("request_id");
  if (request_id.empty()) {
    json.null();
  } else {
    json.string(request_id);
  }
  json.end_object();
  return body;
}

}  // namespace incipit::gateway
