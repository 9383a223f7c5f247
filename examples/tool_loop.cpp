// A tool made of a C++ function; the loop that lets the model use it.
#include <incipit/incipit.h>

#include <iostream>
#include <string>

// [tool]
struct Place {
  std::string city;
  std::optional<int> days;
};

template <>
struct incipit::Described<Place> {
  static constexpr auto fields = std::tuple(field("city", &Place::city, "Name of the city"),
                                            field("days", &Place::days, "Days ahead, 1 to 7"));
};

// [/tool]

int main() try {
  // [tool_loop]
  const incipit::Client client;
  const auto weather =
      incipit::runnable<Place>("get_weather", "The weather of a city", [](const Place& place) {
        if (place.city.empty()) throw incipit::ToolError("city is empty; name one");
        return place.city + ": 12 degrees, rain for " + std::to_string(place.days.value_or(1))
               + " days";
      });

  incipit::Prompt prompt("claude-sonnet-4-6");
  prompt.tool(weather.definition)
      .system("You answer questions about the weather. Use the tool.")
      .user("What is the weather in Oslo?");
  incipit::ToolRunner runner(client, prompt, {weather},
                             {.parameters = {.max_tokens = 64}, .max_iterations = 4});
  while (const auto reply = runner.next()) {
    for (const incipit::ContentBlock& block : reply->content) {
      if (const auto* call = block.get_if<incipit::ToolUseBlock>())
        std::cout << call->name << " " << call->input.text() << "\n";
    }
    std::cout << reply->text() << "\n";
  }
  std::cout << runner.iterations() << " requests, " << runner.usage().cache_read_input_tokens
            << " tokens read from the cache\n";

  // [/tool_loop]
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
