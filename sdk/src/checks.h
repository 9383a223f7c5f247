// The rules that a request must keep before it is sent, a function for each group. Private to the
// SDK.
#pragma once

#include "incipit/anthropic.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace incipit {

// A place in a request, as links to the places around it, so that one that is in order costs
// nothing: the text is put together for an error only. Must not outlive its parent.
class Path {
 public:
  explicit Path(std::string_view name) : name_(name) {}

  Path(const Path& parent, std::string_view name) : parent_(&parent), name_(name) {}

  Path(const Path& parent, std::size_t index) : parent_(&parent), index_(index) {}

  [[nodiscard]] std::string text() const;

 private:
  const Path* parent_ = nullptr;
  std::string_view name_;
  std::optional<std::size_t> index_;
};

// Throws PromptError: the message is the path and `why`.
[[noreturn]] void refuse(std::string_view rule, const Path& path, const std::string& why);

// Nothing but white space, or nothing at all.
[[nodiscard]] bool is_blank(std::string_view text);

// ASCII letters, digits, `_` and `-`; at least one, at most `longest`.
[[nodiscard]] bool is_identifier(std::string_view text, std::size_t longest);

// An excerpt that can stand in an error message.
[[nodiscard]] std::string shown(std::string_view text);

// Which of the two wire versions: 2023-06-01 takes a few things more (W-4).
enum class WireVersion : std::uint8_t { of_2023, of_2026 };

// W-1: refuses text that is not UTF-8, with the offset of the first such byte.
void check_utf8(const Path& path, std::string_view text);

// A block alone: its text, and whether it may stand in a message of that role (sections 4.1
// and 4.2).
void check_block(const Path& path, const ContentBlock& block, MessageRole role,
                 WireVersion version);

// A text block of the system prompt.
void check_system_block(const Path& path, const TextBlock& block);

// A tool alone (section 6.1, E-7).
void check_tool(const Path& path, const Tool& tool);

// Whether messages from the one at `first` on follow each other as they may, and whether each call
// has its result. What is before `first` is taken to be in order, and is not looked at.
struct TurnRules {
  std::size_t first = 0;  // the first message of a turn
  bool open = false;      // more will be appended: the last calls need no results yet
  bool continued =
      false;  // the messages continue others that are not here (`thread`, section 18.1)
};

void check_turns(const std::vector<MessageParam>& messages, const TurnRules& rules);

// ------------------------------------------------------------------------------------ markers

// Whether the API takes a marker on that block: not on thinking (E-6), empty text (E-5), and
// unknown kinds other than those that section 2 lists.
[[nodiscard]] bool can_be_marked(const ContentBlock& block);
[[nodiscard]] bool can_be_marked(const TextBlock& block);
[[nodiscard]] bool can_be_marked(const Tool& tool);

// The last that can, or null. (No std::views::reverse: clang 14 cannot read libstdc++'s views.)
template <class Blocks>
[[nodiscard]] auto last_markable(Blocks& blocks) {
  const auto found = std::find_if(blocks.rbegin(), blocks.rend(),
                                  [](const auto& block) { return can_be_marked(block); });
  return found == blocks.rend() ? nullptr : &*found;
}

// Of the markers on the block and inside it the longest-lived: that is what acts at its end (C-12).
[[nodiscard]] std::optional<Ttl> marker_of(const ContentBlock& block);

// Throws for E-1, E-2, E-8 and E-9. Returns the slots in use, the automatic marker's included.
int check_markers(const MessageRequest& request);

// Takes every marker away, those inside tool results and documents too, and the automatic one.
void clear_markers(MessageRequest& request);

// ----------------------------------------------------------------------------------- requests

// Whether its messages continue a thread (section 18.1): what came before, and tools and system,
// are not here.
[[nodiscard]] bool continues_thread(const MessageRequest& request);

// What `check` does; with `messages` false a request without messages passes, which
// `Client::prewarm` completes.
void check_request(const MessageRequest& request, WireVersion version, bool messages);

}  // namespace incipit
