// A conversation whose marker moves with it: each turn reads what the turn before wrote.
#include <incipit/incipit.h>

#include <iomanip>
#include <iostream>
#include <string>

int main() try {
  const incipit::Client client;
  std::string rules;
  for (int i = 1; i <= 120; ++i)
    rules += "Rule " + std::to_string(i) + ": answer briefly, and say so when you do not know.\n";

  // [cached_chat]
  incipit::Prompt prompt("claude-sonnet-5");
  prompt.system(rules);
  incipit::SessionCost session;
  std::cout << "  read written  plain  hit\n";
  for (const char* question : {"What is rule 7?", "And rule 8?", "Which rule is the last?"}) {
    prompt.user(question).auto_breakpoints();  // the system prompt, and the end of the conversation
    const incipit::Message reply = client.send(prompt.request({.max_tokens = 24}));
    prompt.assistant(reply);  // goes back byte for byte

    const incipit::Usage& usage = reply.usage;
    session.add(usage, prompt.model());
    std::cout << std::setw(6) << usage.cache_read_input_tokens << std::setw(8)
              << usage.cache_creation_input_tokens() << std::setw(7) << usage.input_tokens
              << std::setw(4) << static_cast<int>(100 * usage.hit_ratio()) << "%\n";
  }
  std::cout << session.total().text() << " spent, " << session.saved().text()
            << " saved against no cache\n";

  // [/cached_chat]
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
