// Is this prompt worth a marker? Counted before anything is paid for.
#include <incipit/incipit.h>

#include <iostream>
#include <string>

int main() try {
  std::string catalogue;
  for (int i = 0; i < 300; ++i)
    catalogue += "Item " + std::to_string(i) + " costs " + std::to_string(i * 3) + " crowns.\n";

  // [count_before_send]
  const std::string model = "claude-sonnet-4-6";
  const std::int64_t minimum =
      1024;  // tokens; a shorter prefix is not cached (docs/prompt-caching.md)
  const incipit::Client client;
  incipit::Prompt prompt(model);
  prompt.system(catalogue).user("What does item 17 cost?");

  const std::int64_t tokens = client.count_tokens(prompt.request());
  std::cout << tokens << " tokens, " << minimum << " are needed\n";
  const auto reads = incipit::break_even_reads(model, incipit::Ttl::one_hour);
  std::cout << "one hour pays after " << reads.value() << " reads\n";
  if (tokens < minimum) return 0;

  incipit::Prompt warm(model);
  warm.system(catalogue).breakpoint(incipit::Ttl::one_hour);
  const incipit::Message written = client.prewarm(warm.request());  // max_tokens 0: no answer
  std::cout << written.usage.cache_creation_1h << " written for an hour, "
            << incipit::cost(written.usage, model).value().text() << "\n";

  // [/count_before_send]
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
