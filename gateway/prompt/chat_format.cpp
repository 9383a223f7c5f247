#include "gateway/prompt/chat_format.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace incipit::gateway {

namespace {

using Family = ChatTemplate::Family;

#define INCIPIT_FUNCTION_JSON \
  R"({"type": "function", "function": {"name": "$n", "description": "$d", "parameters": $s}})"

// Tools as in Hermes. Families whose own templates know none get them too: their replies are held
// to the format anyway.
#define INCIPIT_TOOLS_OPEN                                                       \
  "# Tools\n\n"                                                                  \
  "You may call one or more functions to assist with the user query.\n\n"        \
  "You are provided with function signatures within <tools></tools> XML tags:\n" \
  "<tools>\n"
#define INCIPIT_TOOLS_CLOSE                                                               \
  "\n</tools>\n\n"                                                                        \
  "For each function call, return a json object with function name and arguments within " \
  "<tool_call></tool_call> XML tags:\n"                                                   \
  "<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n</tool_call>"
#define INCIPIT_CALL "<tool_call>\n{\"name\": \"$n\", \"arguments\": $t}\n</tool_call>"
#define INCIPIT_RESULT "<tool_response>\n$e$t\n</tool_response>"

// Qwen2, Qwen2.5, Qwen3 and others.
constexpr ChatFormat chatml{
    .family = Family::chatml,
    .name = "chatml",
    .marker = "<|im_start|>",
    .system_open = "<|im_start|>system\n",
    .system_close = "<|im_end|>\n",
    .later_system_open = "<|im_start|>system\n",
    .user_open = "<|im_start|>user\n",
    .user_close = "<|im_end|>\n",
    .assistant_open = "<|im_start|>assistant\n",
    .assistant_close = "<|im_end|>\n",
    .join = "\n",
    .tools_open = "<|im_start|>system\n" INCIPIT_TOOLS_OPEN,
    .tool = INCIPIT_FUNCTION_JSON,
    .tool_join = "\n",
    .tools_close = INCIPIT_TOOLS_CLOSE,
    .tools_then_system = "\n\n",
    .tools_then_turn = "<|im_end|>\n",
    .call = INCIPIT_CALL,
    .calls_join = "\n",
    .result = INCIPIT_RESULT,
    .stops = {"<|im_end|>", "<|endoftext|>", ""},
};

// SmolLM2's template leaves tools to the caller; its calls are a list. The instructions are close
// to those of its training, but let it answer without a call.
constexpr ChatFormat smollm2 = [] {
  ChatFormat format = chatml;
  format.name = "smollm2";
  format.tools_open =
      "<|im_start|>system\n"
      "You are an expert in composing functions. You are given a question and a set of possible "
      "functions.\nBased on the question, you will need to make one or more function/tool calls "
      "to achieve the purpose.\nYou have access to the following tools:\n<tools>[";
  format.tool_join = ", ";
  format.tools_close =
      "]</tools>\nTool calls MUST strictly adhere to the following format, with parameters of the "
      "correct type. If no function call is needed, answer without one.\n"
      "<tool_call>[\n{\"name\": \"func_name1\", \"arguments\": {\"argument1\": \"value1\", "
      "\"argument2\": \"value2\"}},\n(more tool calls as required)\n]</tool_call>";
  format.call_syntax = ChatTemplate::CallSyntax::listed;
  format.call = R"({"name": "$n", "arguments": $t})";
  format.calls_open = "<tool_call>[\n";
  format.calls_join = ",\n";
  format.calls_close = "\n]</tool_call>";
  return format;
}();

#define INCIPIT_LLAMA_TOOLS                                                                       \
  "You have access to the following functions. To call a function, please respond with JSON for " \
  "a "                                                                                            \
  "function call. Respond in the format {\"name\": function name, \"parameters\": dictionary of " \
  "argument name and its value}. Do not use variables.\n\n"
#define INCIPIT_LLAMA_HEADER(role) "<|start_header_id|>" role "<|end_header_id|>\n\n"

constexpr ChatFormat llama3{
    .family = Family::llama3,
    .name = "llama3",
    .marker = "<|start_header_id|>",
    .system_open = INCIPIT_LLAMA_HEADER("system"),
    .system_close = "<|eot_id|>",
    .later_system_open = INCIPIT_LLAMA_HEADER("system"),
    .user_open = INCIPIT_LLAMA_HEADER("user"),
    .user_close = "<|eot_id|>",
    .assistant_open = INCIPIT_LLAMA_HEADER("assistant"),
    .assistant_close = "<|eot_id|>",
    .join = "\n",
    .tools_open = INCIPIT_LLAMA_HEADER("system") INCIPIT_LLAMA_TOOLS,
    .tool = INCIPIT_FUNCTION_JSON,
    .tool_join = "\n\n",
    .tools_then_system = "\n\n",
    .tools_then_turn = "\n\n<|eot_id|>",
    .call_syntax = ChatTemplate::CallSyntax::bare,
    .call = R"({"name": "$n", "parameters": $t})",
    .calls_join = "\n",
    .result = "$e$t",
    .result_is_turn = true,
    .result_open = INCIPIT_LLAMA_HEADER("ipython"),
    .result_close = "<|eot_id|>",
    .stops = {"<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"},
};

// The template's own date, never the clock's: a prompt that changes at midnight cannot be cached.
#define INCIPIT_LLAMA_DATES "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

// Llama 3.1 to 3.3: dates, and tools in the system turn.
constexpr ChatFormat llama31 = [] {
  ChatFormat format = llama3;
  format.system_open = INCIPIT_LLAMA_HEADER("system") INCIPIT_LLAMA_DATES;
  format.always_has_system = true;
  format.tools_open = INCIPIT_LLAMA_HEADER(
      "system") "Environment: ipython\n" INCIPIT_LLAMA_DATES INCIPIT_LLAMA_TOOLS;
  return format;
}();

// Mistral with [INST] as tokens. A SentencePiece vocabulary puts the blank after them by itself.
constexpr ChatFormat mistral{
    .family = Family::mistral,
    .name = "mistral",
    .marker = "[INST]",
    .system_open = "[INST]",
    .system_close = "[/INST]",
    .system_joins_user = true,
    .user_open = "[INST]",
    .user_close = "[/INST]",
    .assistant_open = "",
    .assistant_close = "</s>",
    .join = "\n",
    .tools_open = "[AVAILABLE_TOOLS][",
    .tool = INCIPIT_FUNCTION_JSON,
    .tool_join = ", ",
    .tools_close = "][/AVAILABLE_TOOLS]",
    .tools_then_system = "[INST]",
    .call_syntax = ChatTemplate::CallSyntax::bracketed,
    .call = R"({"name": "$n", "arguments": $t, "id": "$i"})",
    .calls_open = "[TOOL_CALLS][",
    .calls_join = ", ",
    .calls_close = "]",
    .result = R"([TOOL_RESULTS]{"content": "$e$q", "call_id": "$i"}[/TOOL_RESULTS])",
    .result_is_turn = true,
    .stops = {"</s>", "", ""},
};

// Mistral 7B 0.1 and 0.2 spell [INST] out and know no tools of their own.
constexpr ChatFormat early_mistral = [] {
  ChatFormat format = mistral;
  format.marker = "</s>";
  format.system_open = format.user_open = "[INST] ";
  format.system_close = format.user_close = " [/INST]";
  format.tools_open = "[INST] " INCIPIT_TOOLS_OPEN;
  format.tool_join = "\n";
  format.tools_close = INCIPIT_TOOLS_CLOSE;
  format.tools_then_system = format.tools_then_turn = "\n\n";
  format.tools_join_user = true;
  format.call_syntax = ChatTemplate::CallSyntax::tagged;
  format.call = INCIPIT_CALL;
  format.calls_open = format.calls_close = {};
  format.calls_join = "\n";
  format.result = INCIPIT_RESULT;
  format.result_is_turn = false;
  return format;
}();

constexpr ChatFormat gemma{
    .family = Family::gemma,
    .name = "gemma",
    .marker = "<start_of_turn>",
    .system_open = "<start_of_turn>user\n",
    .system_close = "<end_of_turn>\n",
    .system_joins_user = true,
    .user_open = "<start_of_turn>user\n",
    .user_close = "<end_of_turn>\n",
    .assistant_open = "<start_of_turn>model\n",
    .assistant_close = "<end_of_turn>\n",
    .join = "\n",
    .tools_open = "<start_of_turn>user\n" INCIPIT_TOOLS_OPEN,
    .tool = INCIPIT_FUNCTION_JSON,
    .tool_join = "\n",
    .tools_close = INCIPIT_TOOLS_CLOSE,
    .tools_then_system = "\n\n",
    .tools_then_turn = "\n\n",
    .tools_join_user = true,
    .call = INCIPIT_CALL,
    .calls_join = "\n",
    .result = INCIPIT_RESULT,
    .stops = {"<end_of_turn>", "<eos>", ""},
};

// The made-up model: one token per marker, everything else bytes, so that counts are plain sums.
constexpr ChatFormat tiny{
    .family = Family::tiny,
    .name = "tiny",
    .marker = "<|tools|>",
    .system_open = "<|system|>",
    .system_close = "<|end|>",
    .later_system_open = "<|system|>",
    .user_open = "<|user|>",
    .user_close = "<|end|>",
    .assistant_open = "<|assistant|>",
    .assistant_close = "<|end|>",
    .join = "",
    .tools_open = "<|tools|>",
    .tool = "$N$D$s",
    .tools_then_system = "<|end|><|system|>",
    .tools_then_turn = "<|end|>",
    .call = "$N$t",
    .result = "$t",
    .stops = {"<|end|>", "", ""},
};

#undef INCIPIT_FUNCTION_JSON
#undef INCIPIT_TOOLS_OPEN
#undef INCIPIT_TOOLS_CLOSE
#undef INCIPIT_CALL
#undef INCIPIT_RESULT
#undef INCIPIT_LLAMA_TOOLS
#undef INCIPIT_LLAMA_HEADER
#undef INCIPIT_LLAMA_DATES

const ChatFormat* format_of(const ModelConfig& config, const TokenizerSpec& spec) {
  const auto says = [&](std::string_view text) {
    return spec.chat_template.find(text) != std::string::npos;
  };
  if (spec.kind == TokenizerSpec::Kind::bytes) return &tiny;
  if (says("<start_of_turn>") || config.architecture == "gemma3") return &gemma;
  if (says("<|im_start|>")) return says("SmolLM") ? &smollm2 : &chatml;
  if (says("<|start_header_id|>")) return says("Cutting Knowledge Date") ? &llama31 : &llama3;
  if (says("[INST]") && !says("<<SYS>>")) {
    const auto inst = std::ranges::find(spec.pieces, "[INST]");
    const bool is_token = inst != spec.pieces.end()
                          && spec.types.at(static_cast<std::size_t>(inst - spec.pieces.begin()))
                                 == TokenizerSpec::TokenType::control;
    return is_token ? &mistral : &early_mistral;
  }
  return nullptr;
}

}  // namespace

const ChatFormat& recognise_format(const ModelConfig& config, const TokenizerSpec& spec) {
  const ChatFormat* format = format_of(config, spec);
  if (format == nullptr) {
    throw std::runtime_error(
        (spec.chat_template.empty() ? "the model file has no chat template"
                                    : "the model's chat template is of no supported family")
        + std::string(
            "; supported are chatml (SmolLM2, Qwen2, Qwen3), llama3, mistral, gemma (also "
            "without a template, by architecture gemma3) and tiny"));
  }
  const auto marker = std::ranges::find(spec.pieces, format->marker);
  if (marker == spec.pieces.end()) {
    throw std::runtime_error("the model's chat template is of family " + std::string(format->name)
                             + ", but its vocabulary has no token " + std::string(format->marker));
  }
  return *format;
}

}  // namespace incipit::gateway
