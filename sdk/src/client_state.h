// What the copies of a client share. Private to the SDK.
#pragma once

#include "conversation_memory.h"
#include "incipit/client.h"
#include "sender.h"

#include <memory>

namespace incipit {

struct Client::State {
  explicit State(const ClientOptions& options);

  ClientOptions given;  // without what the environment adds
  Sender sender;
  std::shared_ptr<ConversationMemory> conversations = std::make_shared<ConversationMemory>();

  // For pages and results, which may outlive the client.
  [[nodiscard]] static std::shared_ptr<const Sender> sender_of(
      const std::shared_ptr<State>& state) {
    return {state, &state->sender};
  }
};

}  // namespace incipit
