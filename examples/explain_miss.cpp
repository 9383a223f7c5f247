// Why did the second request not read what the first one wrote? Without a server: by the bytes.
#include <incipit/incipit.h>

#include <iostream>
#include <string>

namespace {

incipit::Prompt prompt_at(const std::string& time) {
  incipit::Prompt prompt("claude-opus-5-5");
  prompt
      .tool({.name = "search",
             .description = "Search",
             .input_schema = incipit::JsonText(R"({"type":"object"})")})
      .system("You are a careful assistant. It is " + time + ". " + std::string(2000, '.'))
      .breakpoint()
      .user("Hello");
  return prompt;
}

}  // namespace

int main() {
  // [explain_miss]
  const auto first = incipit::Fingerprint::of(prompt_at("09:15").request());
  const auto second = incipit::Fingerprint::of(prompt_at("09:16").request());
  const incipit::CacheMiss miss = incipit::compare(first, second);
  std::cout << to_string(miss.reason) << " at " << miss.path << ", byte " << miss.byte_offset
            << " of the body\n  before: " << miss.before << "\n  after:  " << miss.after
            << "\n  about " << miss.tokens_lost << " tokens lost\n";
  // [/explain_miss]
  return miss.reason == incipit::MissReason::system_changed ? 0 : 1;
}
