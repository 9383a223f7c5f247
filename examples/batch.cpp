// Many requests at half the price, with results that are read as they come.
#include <incipit/incipit.h>

#include <iostream>
#include <string>
#include <vector>

int main() try {
  // [batch]
  const incipit::Client client;
  std::vector<incipit::BatchRequest> requests;
  for (const char* city : {"Oslo", "Bergen", "Tromso"}) {
    incipit::Prompt prompt("claude-haiku-5-5");
    prompt.system("One sentence.").breakpoint(incipit::Ttl::one_hour).user(city);
    requests.push_back({city, prompt.request({.max_tokens = 64})});
  }
  const auto batch = client.batches().create(requests);
  const auto ended = client.batches().wait(batch.id, std::chrono::seconds(1));
  auto results = client.batches().results(ended);
  for (const incipit::BatchResult& result : results) {
    std::cout << result.custom_id << ": " << (result.message ? result.message->text() : result.type)
              << "\n";
  }

  // [/batch]
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
