#include "incipit/anthropic.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace incipit {
namespace {

template <class Block>
constexpr bool can_be_marked = requires(Block& block) {
  block.cache_control;
};

}  // namespace

std::string_view ContentBlock::type() const {
  return std::visit(
      []<class Block>(const Block& block) -> std::string_view {
        if constexpr (std::is_same_v<Block, TextBlock>) return "text";
        if constexpr (std::is_same_v<Block, ImageBlock>) return "image";
        if constexpr (std::is_same_v<Block, DocumentBlock>) return "document";
        if constexpr (std::is_same_v<Block, SearchResultBlock>) return "search_result";
        if constexpr (std::is_same_v<Block, ThinkingBlock>) return "thinking";
        if constexpr (std::is_same_v<Block, RedactedThinkingBlock>) return "redacted_thinking";
        if constexpr (std::is_same_v<Block, ToolUseBlock>) return "tool_use";
        if constexpr (std::is_same_v<Block, ToolResultBlock>) return "tool_result";
        if constexpr (std::is_same_v<Block, ServerToolUseBlock>) return "server_tool_use";
        if constexpr (std::is_same_v<Block, ContainerUploadBlock>) return "container_upload";
        if constexpr (requires { block.type; }) return block.type;
        return {};
      },
      value_);
}

std::optional<CacheControl> ContentBlock::cache_control() const {
  return std::visit(
      []<class Block>(const Block& block) -> std::optional<CacheControl> {
        if constexpr (can_be_marked<Block>) return block.cache_control;
        return std::nullopt;
      },
      value_);
}

bool ContentBlock::mark(std::optional<CacheControl> marker) {
  return std::visit(
      [&]<class Block>(Block& block) {
        if constexpr (can_be_marked<Block>) block.cache_control = marker;
        return can_be_marked<Block>;
      },
      value_);
}

}  // namespace incipit
