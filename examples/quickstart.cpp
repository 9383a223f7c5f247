// A long text asked about twice: the second question reads it from the cache.
//   ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_API_KEY=any example_quickstart handbook.txt
#include <incipit/incipit.h>

#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

namespace {

std::string read_file(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void ask(const std::string& handbook, const std::string& question) {
  // [quickstart]
  incipit::Client client;  // ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
  incipit::Prompt prompt("claude-sonnet-5");
  prompt.system(handbook).breakpoint(incipit::Ttl::one_hour).user(question);

  auto stream = client.stream(prompt.request({.max_tokens = 40}));
  for (const auto& event : stream)
    if (const auto* text = event.text()) std::cout << *text << std::flush;

  const incipit::Usage& usage = stream.message().usage;  // read, written, plain, out
  std::cout << "\n"
            << usage.cache_read_input_tokens << " read, " << usage.cache_creation_input_tokens()
            << " written, " << usage.input_tokens << " plain; "
            << incipit::cost(usage, "claude-sonnet-5").value().text() << "\n";
  // [/quickstart]
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) throw std::runtime_error("usage: example_quickstart FILE");
  const std::string handbook = read_file(words[1]);
  ask(handbook, "Which clause covers late delivery?");
  ask(handbook, "And which one returns?");

} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
