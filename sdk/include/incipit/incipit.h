// All of the SDK.
#pragma once

#include "incipit/anthropic.h"
#include "incipit/client.h"
#include "incipit/cost.h"
#include "incipit/error.h"
#include "incipit/fingerprint.h"
#include "incipit/json.h"
#include "incipit/openai.h"
#include "incipit/page.h"
#include "incipit/prompt.h"
#include "incipit/schema.h"
#include "incipit/stream.h"
#include "incipit/tools.h"
#include "incipit/transport.h"
#include "incipit/usage.h"
