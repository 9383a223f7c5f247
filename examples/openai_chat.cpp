// The same library on OpenAI's wire: OPENAI_BASE_URL, OPENAI_API_KEY.
#include <incipit/openai.h>

#include <iostream>
#include <string>

int main() try {
  // [openai_chat]
  namespace openai = incipit::openai;
  const openai::Client client;
  openai::ChatRequest request;
  request.model = "gpt-5.6-terra";
  request.messages = {{.role = "system", .content = "You are brief."},
                      {.role = "user", .content = "Name a fjord."}};
  request.prompt_cache_key = "fjords";

  auto stream = client.chat_stream(request);
  while (const auto chunk = stream.next())
    std::cout << chunk->content << std::flush;

  if (const auto& usage = stream.completion().usage) {
    std::cout << "\n"
              << usage->cached_tokens.value_or(0) << " of " << usage->input_tokens
              << " tokens cached";
    if (const auto cost = openai::cost(*usage, request.model)) std::cout << ", " << cost->text();
    std::cout << "\n";
  }

  // [/openai_chat]
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
