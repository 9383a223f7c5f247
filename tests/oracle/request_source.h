// Random conversations as clients hold them, written out as request bodies: turns are appended,
// edited and taken back, markers move, settings change, and now and then something is wrong.
#pragma once

#include "usage_oracle.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace incipit::oracle {

// One block of a conversation. `text` is the description of a tool, the input of a call.
struct Piece {
  enum class Kind { tool, text, call, result, thought } kind = Kind::text;
  std::string text = {};
  std::string name = {};                // of a tool; a thought's signature
  std::string id = {};                  // of a call and of its result
  std::string schema = {};              // of a tool
  std::vector<std::string> parts = {};  // of a result; one part is written as a string as well
  bool is_error = false, is_deferred = false;
  std::string marker = {};              // cache_control as JSON text, or empty
  std::vector<std::string> inner = {};  // the same for each part
};

struct Message {
  std::string role;
  std::vector<Piece> blocks;
};

struct Session {
  Workspace workspace;
  std::string model;
  std::vector<Piece> tools, system;
  std::vector<Message> messages;
  std::string billing;  // Claude Code's first system block, or empty
  std::string tool_choice, thinking, effort, format, automatic;
  int next_id = 0;
  std::vector<Piece> thought;  // begins the next reply; none or one
};

// What happens next in the test.
struct Step {
  std::int64_t advance = 0;  // milliseconds
  Workspace workspace;
  // More than one: the same request at once, differently spelled.
  std::vector<std::string> bodies;
  bool only_counts = false;  // count_tokens
  bool fails = false;        // after its arrival, before its response
  // For `replied`; negative where the reply is not gone on from.
  int session = -1;
};

class RequestSource {
 public:
  explicit RequestSource(std::uint64_t seed);
  Step next();
  // The reply to a step began with a thought, which comes back with the next turn.
  void replied(int session, const std::string& thought, const std::string& signature);

 private:
  int below(int count);
  bool chance(int percent);
  std::string words(int most);
  Piece text_piece(int most);
  Piece tool_piece();
  Session fresh();
  void append_exchange(Session& session);
  void append_tool_loop(Session& session);
  static void begin_with_thought(Session& session, Message& reply);
  void change(Session& session);
  void change_setting(Session& session);
  void prepare_end(Session& session);
  void mark(Session& session);
  void mark_at_random(Session& session);
  void spoil(Session& session, std::string& more);
  std::string written(const Session& session, const std::string& more, bool only_counts);
  std::string written(const Piece& piece);
  std::string quoted(const std::string& text);
  std::string object(std::vector<std::string> members);
  std::string blank();

  std::mt19937_64 generator_;
  std::vector<Session> sessions_, earlier_;
  std::vector<std::vector<Piece>> shared_tools_, shared_system_;
};

}  // namespace incipit::oracle
