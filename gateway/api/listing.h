// Everything that answers without generating: models, token counts, health, metrics, entries,
// clock.
#pragma once

#include "gateway/api/routes.h"

namespace incipit::gateway {

// All throw ApiError. Any thread.
Response count_tokens(const HttpRequest&, Services&, const Scope&,
                      RequestRecord&);  // wire section 13
Response list_models(const HttpRequest&, Services&, const Scope&, RequestRecord&);  // section 14
Response show_model(const HttpRequest&, Services&, const Scope&, RequestRecord&);   // section 14
Response show_health(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response show_metrics(const HttpRequest&, Services&, const Scope&, RequestRecord&);
Response list_entries(const HttpRequest&, Services&, const Scope&,
                      RequestRecord&);  // live cache entries
Response advance_clock(const HttpRequest&, Services&, const Scope&,
                       RequestRecord&);  // {"advance_seconds": n}

}  // namespace incipit::gateway
