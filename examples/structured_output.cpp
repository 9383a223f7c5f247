// A reply that is a C++ value.
#include <incipit/incipit.h>

#include <iostream>
#include <string>
#include <vector>

// [described]
enum class Priority { low, high };

struct Ticket {
  std::string title;
  Priority priority{};
  std::vector<std::string> labels;
};

template <>
struct incipit::Described<Priority> {
  static constexpr std::array values = {std::pair(Priority::low, std::string_view("low")),
                                        std::pair(Priority::high, std::string_view("high"))};
};

template <>
struct incipit::Described<Ticket> {
  static constexpr auto fields =
      std::tuple(field("title", &Ticket::title, "At most ten words"),
                 field("priority", &Ticket::priority), field("labels", &Ticket::labels));
};

// [/described]

int main() try {
  // [structured_output]
  const incipit::Client client;
  incipit::Prompt prompt("claude-sonnet-5-5");
  prompt.user("The login page shows a blank screen since this morning. Make a ticket.");
  const incipit::Message reply =
      client.send(prompt.request({.output_format = incipit::output_format<Ticket>()}));
  const auto ticket = incipit::parsed_output<Ticket>(reply);  // ParseError names what does not fit
  std::cout << ticket.title << (ticket.priority == Priority::high ? " (high)" : " (low)") << "\n";
  // [/structured_output]
  for (const std::string& label : ticket.labels)
    std::cout << "  " << label << "\n";

} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
