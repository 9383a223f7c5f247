// The endpoints below /v1/files. Source: anthropic-wire section 16.
#pragma once

#include "gateway/api/routes.h"

namespace incipit::gateway {

// All throw ApiError. Any thread.
Response upload_file(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response list_files(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response show_file(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response download_file(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response delete_file(const HttpRequest&, Services&, const Scope&, RequestRecord&);

}  // namespace incipit::gateway
