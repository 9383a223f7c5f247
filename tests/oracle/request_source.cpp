#include "request_source.h"

#include <algorithm>
#include <array>

namespace incipit::oracle {

namespace {

constexpr std::array<std::string_view, 12> vocabulary = {
    "alder", "birch",       "\xc3\xa9toile", "42", "quay",      "\"so\"",
    "a/b",   "line\nbreak", "moss",          "\\", "tab\tstop", "\xf0\x9f\x8c\xb2"};

const std::string five = R"({"type":"ephemeral"})";
const std::string five_spelled = R"({ "ttl" : "5m", "type" : "ephemeral" })";
const std::string hour = R"({"type":"ephemeral","ttl":"1h"})";

// Every place of a request that may carry a marker, in prompt order.
std::vector<Piece*> places_of(Session& session) {
  std::vector<Piece*> places;
  for (Piece& tool : session.tools) {
    if (!tool.is_deferred) places.push_back(&tool);
  }
  for (Piece& text : session.system)
    places.push_back(&text);
  for (Message& message : session.messages) {
    for (Piece& block : message.blocks) {
      if (block.kind != Piece::Kind::thought) places.push_back(&block);
    }
  }
  return places;
}

bool ends_with_calls(const Session& session) {
  return !session.messages.empty() && session.messages.back().role == "assistant"
         && session.messages.back().blocks.back().kind == Piece::Kind::call;
}

}  // namespace

RequestSource::RequestSource(std::uint64_t seed) : generator_(seed) {
  for (int i = 0; i < 6; ++i) {
    std::vector<Piece> tools, system;
    for (int n = below(5); n > 0; --n)
      tools.push_back(tool_piece());
    for (int n = below(4); n > 0; --n)
      system.push_back(text_piece(chance(50) ? 90 : 15));
    shared_tools_.push_back(tools);
    shared_system_.push_back(system);
  }
  for (int i = 0; i < 8; ++i)
    sessions_.push_back(fresh());
}

int RequestSource::below(int count) {
  return static_cast<int>(generator_() % static_cast<std::uint64_t>(count));
}

bool RequestSource::chance(int percent) {
  return below(100) < percent;
}

std::string RequestSource::words(int most) {
  std::string text;
  for (int n = 1 + below(most); n > 0; --n) {
    text += vocabulary[static_cast<std::size_t>(below(vocabulary.size()))];
    text += ' ';
  }
  return text + static_cast<char>('a' + below(26));
}

Piece RequestSource::text_piece(int most) {
  Piece piece;
  piece.text = words(most);
  return piece;
}

Piece RequestSource::tool_piece() {
  Piece piece;
  piece.kind = Piece::Kind::tool;
  piece.name = "tool_" + std::to_string(below(1'000'000));
  if (chance(80)) piece.text = words(20);
  piece.schema =
      chance(50)
          ? R"({"type":"object"})"
          : R"({"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}}})";
  piece.is_deferred = chance(8);
  return piece;
}

Session RequestSource::fresh() {
  static const std::array<Workspace, 4> workspaces = {
      Workspace{"org-1", "blue"}, Workspace{"org-1", "red"}, Workspace{"org-2", "blue"},
      Workspace{"org-1", "blue"}};
  Session session;
  session.workspace = workspaces[static_cast<std::size_t>(below(workspaces.size()))];
  // Mostly those whose minimum short prompts can reach.
  do {
    const ModelFacts& model = models()[static_cast<std::size_t>(below(models().size()))];
    session.model = chance(50) && !model.alias.empty() ? model.alias : model.id;
  } while (facts_of(session.model)->minimum > 1024 && chance(70));
  session.tools = shared_tools_[static_cast<std::size_t>(below(shared_tools_.size()))];
  if (std::ranges::all_of(session.tools, &Piece::is_deferred)) session.tools.clear();
  session.system = shared_system_[static_cast<std::size_t>(below(shared_system_.size()))];
  if (chance(15)) session.billing = "x-anthropic-billing-header: cc_version=2.1; cch=";
  append_exchange(session);
  if (chance(30)) {
    for (int n = below(12); n > 0; --n)
      append_exchange(session);
  }
  return session;
}

void RequestSource::replied(int session, const std::string& thought, const std::string& signature) {
  Piece piece;
  piece.kind = Piece::Kind::thought;
  piece.text = thought;
  piece.name = signature;
  sessions_[static_cast<std::size_t>(session)].thought.assign(1, piece);
}

void RequestSource::begin_with_thought(Session& session, Message& reply) {
  reply.blocks.insert(reply.blocks.begin(), session.thought.begin(), session.thought.end());
  session.thought.clear();
}

// Ends with the user's turn again.
void RequestSource::append_exchange(Session& session) {
  if (ends_with_calls(session)) session.messages.pop_back();
  if (!session.messages.empty() && session.messages.back().role != "assistant") {
    Message reply{"assistant", {text_piece(6)}};
    begin_with_thought(session, reply);
    session.messages.push_back(std::move(reply));
  }
  Message user{"user", {}};
  for (int n = chance(20) ? 1 + below(5) : 1; n > 0; --n)
    user.blocks.push_back(text_piece(chance(15) ? 60 : 8));
  session.messages.push_back(std::move(user));
}

void RequestSource::append_tool_loop(Session& session) {
  Message calls{"assistant", {}}, results{"user", {}};
  if (chance(40)) calls.blocks.push_back(text_piece(4));
  for (int n = 1 + (chance(30) ? below(14) : below(2)); n > 0; --n) {
    Piece call;
    call.kind = Piece::Kind::call;
    call.id = "toolu_" + std::to_string(session.next_id++);
    call.name = "tool_" + std::to_string(below(3));
    call.text = chance(50) ? R"({"city":"Oslo","days":)" + std::to_string(below(9)) + "}"
                           : R"({"days":)" + std::to_string(below(9)) + R"(,"city":"Oslo"})";
    Piece result;
    result.kind = Piece::Kind::result;
    result.id = call.id;
    for (int parts = chance(70) ? 1 : below(4); parts > 0; --parts)
      result.parts.push_back(words(6));
    result.inner.resize(result.parts.size());
    result.is_error = chance(10);
    calls.blocks.push_back(std::move(call));
    results.blocks.push_back(std::move(result));
  }
  if (chance(20)) std::ranges::shuffle(results.blocks, generator_);
  if (chance(40)) results.blocks.push_back(text_piece(5));
  begin_with_thought(session, calls);
  session.messages.push_back(std::move(calls));
  session.messages.push_back(std::move(results));
}

// One of the changes of section 9, or simply the next turn.
void RequestSource::change(Session& session) {
  const int what = below(100);
  if (what < 15) return;  // the same again
  if (what < 45) return append_exchange(session);
  if (what < 62) return append_tool_loop(session);
  if (what < 66) {
    for (int n = 5 + below(20); n > 0; --n)
      append_exchange(session);
    return;
  }
  if (what < 78) return change_setting(session);
  if (what < 83 && session.messages.size() > 2) {
    // Taken back to an earlier user turn.
    session.messages.resize(
        static_cast<std::size_t>(1 + below(static_cast<int>(session.messages.size()))));
    while (session.messages.back().role != "user")
      session.messages.pop_back();
    return;
  }
  if (what < 88) {
    std::vector<Piece*> places = places_of(session);
    Piece& piece = *places[static_cast<std::size_t>(below(static_cast<int>(places.size())))];
    if (piece.kind == Piece::Kind::call) {
      piece.text = R"({"city":"Rome","days":1})";
    } else if (piece.kind == Piece::Kind::result) {
      piece.is_error = !piece.is_error;
    } else if (piece.kind == Piece::Kind::text) {
      piece.text = words(8);
    } else {
      piece.schema = R"({"properties":{},"type":"object"})";
    }
    return;
  }
  if (what < 91) {
    session.tools.push_back(tool_piece());
    if (session.tools.size() == 1) session.tools.back().is_deferred = false;
    return;
  }
  if (what < 93 && session.tools.size() > 1) {
    std::swap(session.tools.front(), session.tools.back());
    return;
  }
  if (what < 95) {
    session.system.push_back(text_piece(30));
    return;
  }
  if (what < 96) {
    session.model = models()[static_cast<std::size_t>(below(models().size()))].id;
    session.thinking.clear();
    session.thought.clear();
    for (Message& message : session.messages) {
      std::erase_if(message.blocks,
                    [](const Piece& block) { return block.kind == Piece::Kind::thought; });
    }
    return;
  }
  session = fresh();
}

void RequestSource::change_setting(Session& session) {
  switch (below(5)) {
    case 4: {
      static const std::array<const char*, 4> formats = {
          "", "", R"({"type":"json_schema","schema":{"type":"string"}})",
          R"({"type":"json_schema","schema":{"type":"object","additionalProperties":false}})"};
      session.format = formats[static_cast<std::size_t>(below(formats.size()))];
      return;
    }
    case 0: {
      if (session.tools.empty()) return;
      static const std::array<const char*, 5> choices = {
          "", R"({"type":"auto"})", R"({"type":"none"})",
          R"({"type":"auto","disable_parallel_tool_use":true})",
          R"({"type":"auto","disable_parallel_tool_use":false})"};
      session.tool_choice = choices[static_cast<std::size_t>(below(choices.size()))];
      if (chance(25)) session.tool_choice = R"({"type":"any"})";
      if (chance(15) && !session.tools.front().is_deferred) {
        session.tool_choice = R"({"type":"tool","name":")" + session.tools.front().name + "\"}";
      }
      return;
    }
    case 1: {
      static const std::array<const char*, 6> efforts = {"",         "\"low\"",   "\"medium\"",
                                                         "\"high\"", "\"xhigh\"", "null"};
      session.effort = efforts[static_cast<std::size_t>(below(efforts.size()))];
      return;
    }
    default: {
      static const std::array<const char*, 7> settings = {
          "",
          R"({"type":"adaptive"})",
          R"({"type":"adaptive","display":"omitted"})",
          R"({"type":"enabled","budget_tokens":1024})",
          R"({"type":"enabled","budget_tokens":2000})",
          R"({"type":"disabled"})",
          R"({"type":"between_tools"})"};
      session.thinking = settings[static_cast<std::size_t>(below(settings.size()))];
      const ModelFacts& model = *facts_of(session.model);
      const bool is_off = session.thinking.find("disabled") != std::string::npos;
      const bool is_enabled = session.thinking.find("enabled") != std::string::npos;
      const Cell cell = is_off       ? model.disabled
                        : is_enabled ? model.enabled
                        : session.thinking.find("between") != std::string::npos
                            ? model.between_tools
                            : model.adaptive;
      // What the model refuses is tried now and then only.
      if (cell == Cell::no && !chance(10)) session.thinking.clear();
      return;
    }
  }
}

// A request ends with the user, with an instruction in place, or with the beginning of the reply.
void RequestSource::prepare_end(Session& session) {
  const ModelFacts& model = *facts_of(session.model);
  if (chance(8) && model.system_messages && session.messages.back().role == "user") {
    session.messages.push_back({"system", {text_piece(6)}});
    return;
  }
  if (!chance(model.prefill ? 8 : 1)) return;
  Piece beginning = text_piece(3);
  session.messages.push_back({"assistant", {}});
  if (chance(80)) session.messages.back().blocks.push_back(beginning);
}

void RequestSource::mark(Session& session) {
  std::vector<Piece*> places = places_of(session);
  for (Piece* place : places)
    place->marker.clear();
  session.automatic.clear();
  const bool long_lived = chance(30);
  switch (below(8)) {
    case 0:
      return mark_at_random(session);
    case 1:
      if (chance(50)) return;
      session.automatic = long_lived ? hour : five;
      return;
    case 2:
    case 3:
      session.automatic = five;
      if (!session.system.empty()) session.system.back().marker = long_lived ? hour : five;
      return;
    case 4:
      if (!session.tools.empty() && !session.tools.back().is_deferred) {
        session.tools.back().marker = hour;
      }
      [[fallthrough]];
    default: {
      if (!session.system.empty()) session.system.back().marker = long_lived ? hour : five_spelled;
      // The last block, and the one where the marker may have been before.
      Piece& last = *places.back();
      last.marker = long_lived && chance(30) ? hour : five;
      if (long_lived && session.system.empty()) last.marker = hour;
      if (session.messages.size() > 2 && chance(50)) {
        Message& before = session.messages[session.messages.size() - 3];
        if (!before.blocks.empty() && before.blocks.back().marker.empty()) {
          before.blocks.back().marker = last.marker;
        }
      }
      if (last.kind == Piece::Kind::result && !last.parts.empty() && chance(30)) {
        last.inner.back() = last.marker;
        last.marker.clear();
      }
    }
  }
}

// Up to five anywhere, of which the hour comes first mostly.
void RequestSource::mark_at_random(Session& session) {
  std::vector<Piece*> places = places_of(session);
  const int wanted = chance(15) ? 5 : 1 + below(4);
  std::vector<std::size_t> chosen;
  for (int n = wanted; n > 0; --n)
    chosen.push_back(static_cast<std::size_t>(below(static_cast<int>(places.size()))));
  std::ranges::sort(chosen);
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  const int hours = below(static_cast<int>(chosen.size()) + 1);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    places[chosen[i]]->marker = static_cast<int>(i) < hours ? hour : five;
    if (chance(3)) places[chosen[i]]->marker = hour;
  }
  if (chance(20)) session.automatic = chance(70) ? five : hour;
}

// Breaks one rule. `more` is what comes to the top level.
void RequestSource::spoil(Session& session, std::string& more) {
  std::vector<Piece*> places = places_of(session);
  Piece& any = *places[static_cast<std::size_t>(below(static_cast<int>(places.size())))];
  Message& last = session.messages.back();
  switch (below(19)) {
    case 17:
    case 18:
      for (Message& message : session.messages) {
        if (message.blocks.empty()) continue;
        Piece& first = message.blocks.front();
        if (first.kind != Piece::Kind::thought) continue;
        if (chance(50)) {
          first.marker = five;
        } else {
          first.name = "spoilt" + first.name;
        }
        return;
      }
      return;
    case 0:
      any.marker = R"({"type":"ephemeral","ttl":"10m"})";
      return;
    case 1:
      any.marker = R"({"type":"ephemeral","ttl":300})";
      return;
    case 2:
      any.marker = R"({"type":"persistent"})";
      return;
    case 3:
      any.marker = R"({"type":"ephemeral","scope":"global"})";
      return;
    case 4:
      last.blocks.insert(last.blocks.begin(), Piece{});
      last.blocks.front().marker = chance(50) ? five : "";
      return;
    case 5:
      last.blocks.assign(1, Piece{.text = chance(50) ? " \n" : ""});
      return;
    case 6:
      session.tools.push_back(tool_piece());
      session.tools.back().is_deferred = true;
      session.tools.back().marker = five;
      return;
    case 7:
      session.tools.push_back(tool_piece());
      session.tools.push_back(session.tools.front());
      return;
    case 8:
      session.model = chance(50) ? "gpt-4o" : "tortoise";
      return;
    case 9:
      more = R"("colour":"red")";
      return;
    case 10:
      last.blocks.clear();
      return;
    case 11: {
      // An answer gets lost, or a call.
      for (Message& message : session.messages) {
        if (message.blocks.empty() || !message.blocks[0].parts.size()) continue;
        if (chance(50)) {
          message.blocks[0].id += "x";
        } else {
          message.blocks.erase(message.blocks.begin());
          if (message.blocks.empty()) message.blocks.push_back(text_piece(3));
        }
        return;
      }
      return;
    }
    case 12:
      append_tool_loop(session);
      append_tool_loop(session);
      session.messages[session.messages.size() - 2].blocks.back().id =
          session.messages[session.messages.size() - 4].blocks.back().id;
      session.messages.back().blocks.assign(1, text_piece(2));
      return;
    case 13:
      session.messages.erase(session.messages.begin());
      return;
    case 14:
      more = R"("max_tokens":200000)";
      return;
    case 15:
      session.tools.clear();
      session.tool_choice = chance(50) ? R"({"type":"any"})" : R"({"type":"tool","name":"absent"})";
      return;
    default:
      session.system.push_back(Piece{.marker = chance(50) ? five : ""});
      return;
  }
}

Step RequestSource::next() {
  static const std::array<std::int64_t, 9> pauses = {0,      0,       400,     2'000,    15'000,
                                                     90'000, 250'000, 310'000, 3'400'000};
  Step step;
  step.advance = pauses[static_cast<std::size_t>(
      chance(97) ? below(6) : below(static_cast<int>(pauses.size())))];
  if (step.advance > 0) step.advance += below(200);
  step.session = below(static_cast<int>(sessions_.size()));
  Session& session = sessions_[static_cast<std::size_t>(step.session)];
  if (chance(6) && !earlier_.empty()) {
    session = earlier_[static_cast<std::size_t>(below(static_cast<int>(earlier_.size())))];
  }
  change(session);
  session.thought.clear();
  if (session.messages.size() > 45) session = fresh();
  if (chance(5)) {
    earlier_.push_back(session);
    if (earlier_.size() > 12) earlier_.erase(earlier_.begin());
  }

  Session sent = session;
  std::string more;
  prepare_end(sent);
  mark(sent);
  const bool is_spoilt = chance(4);
  if (is_spoilt) spoil(sent, more);
  step.workspace = sent.workspace;
  step.only_counts = chance(4) && !more.starts_with("\"max_tokens");
  step.fails = !step.only_counts && chance(2);
  for (int n = chance(4) ? 2 + below(3) : 1; n > 0; --n)
    step.bodies.push_back(written(sent, more, step.only_counts));
  const bool goes_on = !is_spoilt && !step.only_counts && !step.fails
                       && sent.messages.size() == session.messages.size();
  if (!goes_on || binds_thoughts(*facts_of(session.model)) || chance(30)) step.session = -1;
  // The next turn answers an instruction in place as it does the user.
  if (sent.messages.size() == session.messages.size() + 1 && sent.messages.back().role == "system"
      && chance(50)) {
    session.messages.push_back(sent.messages.back());
    session.messages.push_back({"assistant", {text_piece(4)}});
    session.messages.push_back({"user", {text_piece(5)}});
  }
  return step;
}

std::string RequestSource::blank() {
  static const std::array<const char*, 8> blanks = {"", "", "", "", "", " ", "\n", " \t"};
  return blanks[static_cast<std::size_t>(below(blanks.size()))];
}

// The same text in one of its spellings.
std::string RequestSource::quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += chance(50) ? "\\n" : "\\u000a";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '/' && chance(50)) {
      out += "\\/";
    } else if (c == 'q' && chance(20)) {
      out += "\\u0071";
    } else {
      out += c;
    }
  }
  return out + '"';
}

// Members in any order: those of envelopes are no content.
std::string RequestSource::object(std::vector<std::string> members) {
  std::erase(members, "");
  if (chance(30)) std::ranges::shuffle(members, generator_);
  std::string out = "{";
  for (const std::string& each : members)
    out += (out.size() > 1 ? "," : "") + blank() + each;
  return out + blank() + "}";
}

std::string RequestSource::written(const Piece& piece) {
  const std::string marker = piece.marker.empty() ? "" : "\"cache_control\":" + piece.marker;
  switch (piece.kind) {
    case Piece::Kind::tool:
      return object({"\"name\":" + quoted(piece.name),
                     piece.text.empty() ? "" : "\"description\":" + quoted(piece.text),
                     "\"input_schema\":" + blank() + piece.schema,
                     piece.is_deferred ? "\"defer_loading\":true" : "", marker,
                     chance(20) ? "\"type\":\"custom\"" : ""});
    case Piece::Kind::text:
      return object({"\"type\":\"text\"", "\"text\":" + quoted(piece.text), marker});
    case Piece::Kind::call:
      return object({"\"type\":\"tool_use\"", "\"id\":" + quoted(piece.id),
                     "\"name\":" + quoted(piece.name), "\"input\":" + blank() + piece.text,
                     marker});
    case Piece::Kind::thought:
      return object({"\"type\":\"thinking\"", "\"thinking\":" + quoted(piece.text),
                     "\"signature\":" + quoted(piece.name), marker});
    case Piece::Kind::result:
      break;
  }
  std::string content;
  const bool inner = std::ranges::any_of(piece.inner, [](const auto& m) { return !m.empty(); });
  if (piece.parts.size() == 1 && !inner && chance(50)) {
    content = "\"content\":" + quoted(piece.parts[0]);
  } else if (!piece.parts.empty()) {
    for (std::size_t i = 0; i < piece.parts.size(); ++i) {
      Piece part;
      part.text = piece.parts[i];
      part.marker = piece.inner[i];
      content += (i > 0 ? "," : "") + written(part);
    }
    content = "\"content\":[" + content + "]";
  }
  return object({"\"type\":\"tool_result\"", "\"tool_use_id\":" + quoted(piece.id), content,
                 piece.is_error ? "\"is_error\":true"
                 : chance(20)   ? "\"is_error\":false"
                                : "",
                 marker});
}

std::string RequestSource::written(const Session& session, const std::string& more,
                                   bool only_counts) {
  const auto list = [&](const std::vector<Piece>& pieces) {
    std::string out = "[";
    for (const Piece& piece : pieces)
      out += (out.size() > 1 ? "," : "") + written(piece);
    return out + "]";
  };
  const auto is_plain = [](const std::vector<Piece>& pieces) {
    return pieces.size() == 1 && pieces[0].kind == Piece::Kind::text && pieces[0].marker.empty()
           && !pieces[0].text.empty();
  };
  std::string messages;
  for (const Message& message : session.messages) {
    // Two messages of one role are one turn (4.1).
    const auto is_text = [](const Piece& block) { return block.kind == Piece::Kind::text; };
    std::vector<Piece> blocks = message.blocks;
    if (message.role == "user" && blocks.size() > 1 && std::ranges::all_of(blocks, is_text)
        && chance(30)) {
      messages += (messages.empty() ? "" : ",")
                  + object({"\"role\":\"user\"", "\"content\":" + list({blocks.front()})});
      blocks.erase(blocks.begin());
    }
    const std::string content =
        is_plain(blocks) && chance(50) ? quoted(blocks[0].text) : list(blocks);
    messages += (messages.empty() ? "" : ",")
                + object({"\"role\":\"" + message.role + "\"", "\"content\":" + content});
  }
  std::vector<Piece> system = session.system;
  if (!session.billing.empty()) {
    Piece line;
    line.text = session.billing + std::to_string(below(100'000)) + ";";
    system.insert(system.begin(), line);
  }
  std::vector<std::string> members = {
      "\"model\":\"" + session.model + "\"",
      "\"messages\":" + blank() + "[" + messages + "]",
      session.tools.empty() ? "" : "\"tools\":" + list(session.tools),
      session.tool_choice.empty() ? "" : "\"tool_choice\":" + session.tool_choice,
      session.thinking.empty() ? "" : "\"thinking\":" + session.thinking,
      session.automatic.empty() ? "" : "\"cache_control\":" + session.automatic,
      session.effort.empty() && session.format.empty()
          ? ""
          : "\"output_config\":"
                + object({session.effort.empty() ? "" : "\"effort\":" + session.effort,
                          session.format.empty() ? "" : "\"format\":" + session.format})};
  if (!system.empty()) {
    members.push_back("\"system\":"
                      + (is_plain(system) && chance(50) ? quoted(system[0].text) : list(system)));
  }
  if (!more.empty()) members.push_back(more);
  if (!only_counts) {
    // None of these is part of the prompt (C-9).
    if (more.find("max_tokens") == std::string::npos) {
      members.push_back("\"max_tokens\":" + std::to_string(chance(5) ? 0 : 2001 + below(50)));
    }
    if (chance(30)) members.emplace_back(chance(50) ? "\"stream\":true" : "\"stream\":false");
    if (chance(10)) members.emplace_back("\"metadata\":{\"user_id\":\"u\"}");
    if (chance(10)) members.emplace_back("\"stop_sequences\":[\"END\"]");
    if (chance(10)) members.emplace_back("\"service_tier\":\"auto\"");
  }
  return object(std::move(members));
}

}  // namespace incipit::oracle
