// multipart/form-data: an upload's body to its parts. Source: RFC 7578, RFC 2046 section 5.1.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit::gateway {

struct FormPart {
  std::string name;
  std::optional<std::string> filename;  // as sent, folders and all
  std::string content_type;             // empty: none was named
  std::string_view content;             // within the body
};

// `content_type` is the request's header, null when there is none. Throws ApiError 400 that says
// what is not as it should be, and at which byte. Linear in the body.
[[nodiscard]] std::vector<FormPart> parse_form_data(const std::string* content_type,
                                                    std::string_view body);

}  // namespace incipit::gateway
