#include "gateway/model/hf_tokenizer.h"

#include "gateway/model/mapped_file.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace incipit::gateway {
namespace {

namespace fs = std::filesystem;
using Kind = TokenizerSpec::Kind;
using TokenType = TokenizerSpec::TokenType;
using simdjson::dom::element;

constexpr std::string_view word_mark = "\u2581";  // "▁", SentencePiece's blank

// A normalizer, pre-tokenizer or post-processor: the object itself, or the steps of a Sequence.
std::vector<JsonObject> steps_of(const JsonObject& holder, std::string_view key) {
  std::vector<JsonObject> steps;
  const auto whole = holder.object(key);
  if (!whole) return steps;
  for (const std::string_view list : {"normalizers", "pretokenizers", "processors"}) {
    const auto array = whole->array(list);
    if (!array) continue;
    for (const element item : *array) {
      simdjson::dom::object object;
      if (item.get(object) != simdjson::SUCCESS) whole->fail(list, "holds no object");
      steps.emplace_back(object, whole->where() + ": " + std::string(list));
    }
    return steps;
  }
  steps.push_back(*whole);
  return steps;
}

bool is_type(const JsonObject& step, std::string_view type) {
  return step.text("type") == type;
}

struct KnownSplit {
  std::string_view pre;
  std::string_view regex;
};

// The split patterns of the families that we run, as their tokenizer.json spells them.
constexpr KnownSplit known_splits[] = {
    {"llama-bpe",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"qwen2",
     R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
    {"tekken",
     R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)"},
};

// The GGUF name of a byte-level tokenizer's pre-tokenizer.
std::string pre_tokenizer_name(const JsonObject& root, const std::vector<JsonObject>& steps) {
  bool digits = false;
  std::string from_split;
  bool own_regex = false;
  for (const JsonObject& step : steps) {
    if (is_type(step, "Digits")) {
      digits = step.boolean("individual_digits").value_or(false);
      if (!digits)
        step.fail("individual_digits", "is not true; groups of digits are not supported");
    } else if (is_type(step, "ByteLevel")) {
      own_regex = step.boolean("use_regex").value_or(true);
    } else if (is_type(step, "Split") && from_split.empty()) {
      const auto pattern = step.object("pattern");
      const std::string_view regex = pattern ? pattern->text("Regex").value_or("") : "";
      const auto* known =
          std::find_if(std::begin(known_splits), std::end(known_splits),
                       [&](const KnownSplit& split) { return split.regex == regex; });
      if (known == std::end(known_splits)) {
        step.fail("pattern",
                  "is not one that this program knows; supported are those of Llama 3,"
                  " Qwen 2 and 3, Mistral (Tekken), SmolLM and GPT-2");
      }
      from_split = known->pre;
    } else {
      root.fail("pre_tokenizer", "has a step of type \"" + std::string(step.text("type").value_or(""))
                                     + "\", which is not supported with byte-level BPE; supported"
                                       " are Split, Digits and ByteLevel");
    }
  }
  if (!from_split.empty() && !digits && !own_regex) return from_split;
  if (from_split.empty() && own_regex) return digits ? "smollm" : "gpt-2";
  root.fail("pre_tokenizer",
            "combines steps in a way that is not supported; supported are a known"
            " Split before ByteLevel, Digits before ByteLevel, and ByteLevel alone");
}

Kind kind_of(const JsonObject& root, const JsonObject& model) {
  const std::string_view type = model.text("type").value_or("BPE");
  if (type != "BPE") {
    model.fail("type", "is \"" + std::string(type) + "\", which is not supported; supported is BPE"
                           " (byte-level, or with byte_fallback)");
  }
  for (const JsonObject& step : steps_of(root, "pre_tokenizer")) {
    if (is_type(step, "ByteLevel")) return Kind::byte_bpe;
  }
  if (model.boolean("byte_fallback").value_or(false)) return Kind::sentencepiece;
  root.fail("pre_tokenizer",
            "has no ByteLevel step, and the model has no byte_fallback; supported are"
            " byte-level BPE and BPE with byte_fallback");
}

void check_byte_level_normalizer(const JsonObject& root) {
  for (const JsonObject& step : steps_of(root, "normalizer")) {
    // NFC changes nothing in text that is already composed, as nearly all text is.
    if (!is_type(step, "NFC")) {
      root.fail("normalizer", "is of type \"" + std::string(step.text("type").value_or(""))
                                  + "\", which is not supported with byte-level BPE");
    }
  }
}

// SentencePiece's treatment of blanks: " " becomes "▁", and some models put one in front.
bool reads_space_prefix(const JsonObject& root) {
  bool prefix = false;
  for (const JsonObject& step : steps_of(root, "normalizer")) {
    const bool is_blank_rule = is_type(step, "Replace") && step.text("content") == word_mark;
    if (is_type(step, "Prepend") && step.text("prepend") == word_mark) {
      prefix = true;
    } else if (!is_blank_rule) {
      root.fail("normalizer", "does more than replace and prepend blanks, which is not supported");
    }
  }
  for (const JsonObject& step : steps_of(root, "pre_tokenizer")) {
    if (!is_type(step, "Metaspace")) continue;
    const bool old_style = step.boolean("add_prefix_space").value_or(false);
    const std::string_view scheme =
        step.text("prepend_scheme").value_or(old_style ? "first" : "never");
    prefix = prefix || scheme != "never";
  }
  return prefix;
}

void set_piece(TokenizerSpec& spec, std::size_t id, std::string_view piece, TokenType type) {
  while (spec.pieces.size() <= id) {
    spec.pieces.push_back("[PAD" + std::to_string(spec.pieces.size()) + "]");
    spec.types.push_back(TokenType::unused);
  }
  spec.pieces[id] = piece;
  spec.types[id] = type;
}

bool is_byte_piece(std::string_view piece) {
  return piece.size() == 6 && piece.substr(0, 3) == "<0x" && piece.back() == '>';
}

void read_vocabulary(const JsonObject& model, std::int64_t rows, TokenizerSpec& spec) {
  const auto vocabulary = model.object("vocab");
  if (!vocabulary) model.fail("vocab", "is missing");
  for (const auto& member : vocabulary->members()) {
    std::int64_t id = 0;
    if (member.value.get(id) != simdjson::SUCCESS || id < 0 || id >= rows) {
      vocabulary->fail(member.key,
                       "has no id within the embedding table of " + std::to_string(rows) + " rows");
    }
    const bool is_byte = spec.kind == Kind::sentencepiece && is_byte_piece(member.key);
    set_piece(spec, static_cast<std::size_t>(id), member.key,
              is_byte ? TokenType::byte : TokenType::normal);
  }
}

void read_added_tokens(const JsonObject& root, std::int64_t rows, TokenizerSpec& spec) {
  const auto added = root.array("added_tokens");
  if (!added) return;
  for (const element item : *added) {
    simdjson::dom::object object;
    if (item.get(object) != simdjson::SUCCESS) root.fail("added_tokens", "holds no object");
    const JsonObject token(object, root.where() + ": added_tokens");
    const auto id = token.integer("id");
    const auto content = token.text("content");
    if (!id || *id < 0 || !content) root.fail("added_tokens", "has an entry without id or content");
    if (*id >= rows) continue;
    const bool special = token.boolean("special").value_or(false);
    set_piece(spec, static_cast<std::size_t>(*id), *content,
              special ? TokenType::control : TokenType::user_defined);
  }
}

void read_merges(const JsonObject& model, TokenizerSpec& spec) {
  const auto merges = model.array("merges");
  if (!merges) model.fail("merges", "is missing");
  for (const element item : *merges) {
    std::string_view joined;
    simdjson::dom::array pair;
    std::string_view left;
    std::string_view right;
    if (item.get(joined) == simdjson::SUCCESS) {
      spec.merges.emplace_back(joined);
    } else if (item.get(pair) == simdjson::SUCCESS && pair.size() == 2
               && pair.at(0).get(left) == simdjson::SUCCESS
               && pair.at(1).get(right) == simdjson::SUCCESS) {
      spec.merges.push_back(std::string(left) + " " + std::string(right));
    } else {
      model.fail("merges", "holds something other than pairs of pieces");
    }
    const std::string& merge = spec.merges.back();
    if (std::count(merge.begin(), merge.end(), ' ') != 1) {
      model.fail("merges", "holds \"" + merge + "\", which is not two pieces with a blank between");
    }
  }
}

// SentencePiece ranks merges by the score of the piece that they make: an earlier merge makes a
// piece with a higher score. Pieces that no merge makes come last.
void derive_scores(TokenizerSpec& spec) {
  std::unordered_map<std::string, float> score_of;
  float score = 0;
  for (const std::string& merge : spec.merges) {
    std::string made = merge;
    made.erase(made.find(' '), 1);
    score_of.emplace(std::move(made), score);
    score -= 1.0F;
  }
  for (const std::string& piece : spec.pieces) {
    const auto found = score_of.find(piece);
    spec.scores.push_back(found == score_of.end() ? score : found->second);
  }
}

std::int32_t id_of(const TokenizerSpec& spec, std::string_view piece) {
  const auto found = std::find(spec.pieces.begin(), spec.pieces.end(), piece);
  return found == spec.pieces.end() ? -1 : static_cast<std::int32_t>(found - spec.pieces.begin());
}

// "bos_token" in tokenizer_config.json is a string or an object with "content".
std::string token_text(const JsonObject& settings, std::string_view key) {
  const auto value = settings.element(key);
  std::string_view text;
  if (value && value->get(text) == simdjson::SUCCESS) return std::string(text);
  if (!value || !value->is_object()) return "";
  return std::string(settings.object(key)->text("content").value_or(""));
}

// "eos_token_id" in config.json is a number or a list, whose first is the main one.
std::int32_t configured_id(const JsonObject& config, std::string_view key, std::size_t pieces) {
  const auto value = config.element(key);
  if (!value) return -1;
  std::int64_t id = -1;
  simdjson::dom::array list;
  if (value->get(list) == simdjson::SUCCESS) {
    if (list.at(0).get(id) != simdjson::SUCCESS) return -1;
  } else {
    id = *config.integer(key);
  }
  if (id < 0 || static_cast<std::uint64_t>(id) >= pieces) {
    config.fail(key, "is " + std::to_string(id) + ", which is outside the vocabulary of "
                         + std::to_string(pieces));
  }
  return static_cast<std::int32_t>(id);
}

// Whether the post-processor puts a special token in front of a single text.
bool template_begins_with_special(const JsonObject& root) {
  for (const JsonObject& step : steps_of(root, "post_processor")) {
    if (!is_type(step, "TemplateProcessing")) continue;
    const auto single = step.array("single");
    if (!single || single->size() == 0) continue;
    element first;
    element token;
    if (single->at(0).get(first) == simdjson::SUCCESS && first.is_object()
        && first["SpecialToken"].get(token) == simdjson::SUCCESS) {
      return true;
    }
  }
  return false;
}

std::string chat_template_of(const fs::path& directory, const JsonObject* settings) {
  const fs::path file = directory / "chat_template.jinja";
  if (fs::exists(file)) {
    const MappedFile mapped(file);
    return {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
  }
  const auto value = settings == nullptr ? std::nullopt : settings->element("chat_template");
  std::string_view text;
  simdjson::dom::array named;
  if (!value) return "";
  if (value->get(text) == simdjson::SUCCESS) return std::string(text);
  if (value->get(named) != simdjson::SUCCESS) settings->fail("chat_template", "is no text");
  // Several templates by name: the default one, else the first.
  std::string chosen;
  for (const element item : named) {
    std::string_view name;
    if (item["template"].get(text) != simdjson::SUCCESS) continue;
    const bool is_default = item["name"].get(name) == simdjson::SUCCESS && name == "default";
    if (chosen.empty() || is_default) chosen = text;
  }
  return chosen;
}

void read_special_ids(const JsonObject& root, const JsonObject& model, const JsonObject& config,
                      const JsonObject* settings, TokenizerSpec& spec) {
  if (settings != nullptr) {
    if (const std::string bos = token_text(*settings, "bos_token"); !bos.empty()) {
      spec.bos = id_of(spec, bos);
    }
    if (const std::string eos = token_text(*settings, "eos_token"); !eos.empty()) {
      spec.eos = id_of(spec, eos);
    }
  }
  if (spec.bos < 0) spec.bos = configured_id(config, "bos_token_id", spec.pieces.size());
  if (spec.eos < 0) spec.eos = configured_id(config, "eos_token_id", spec.pieces.size());
  if (const auto unknown = model.text("unk_token")) {
    spec.unknown = id_of(spec, *unknown);
    if (spec.unknown >= 0) spec.types[static_cast<std::size_t>(spec.unknown)] = TokenType::unknown;
  }
  const auto asked = settings == nullptr ? std::nullopt : settings->boolean("add_bos_token");
  spec.add_bos = asked.value_or(template_begins_with_special(root)) && spec.bos >= 0;
}

}  // namespace

TokenizerSpec read_hf_tokenizer(const fs::path& directory, const JsonObject& config,
                                std::int64_t rows) {
  const JsonDocument document(directory / "tokenizer.json");
  const JsonObject& root = document.root();
  const auto model = root.object("model");
  if (!model) root.fail("model", "is missing");

  TokenizerSpec spec;
  spec.kind = kind_of(root, *model);
  read_vocabulary(*model, rows, spec);
  read_added_tokens(root, rows, spec);
  read_merges(*model, spec);
  if (spec.kind == Kind::byte_bpe) {
    check_byte_level_normalizer(root);
    spec.pre = pre_tokenizer_name(root, steps_of(root, "pre_tokenizer"));
  } else {
    spec.pre = "default";
    spec.add_space_prefix = reads_space_prefix(root);
    derive_scores(spec);
  }

  const fs::path settings_path = directory / "tokenizer_config.json";
  std::optional<JsonDocument> settings;
  if (fs::exists(settings_path)) settings.emplace(settings_path);
  const JsonObject* settings_root = settings ? &settings->root() : nullptr;
  read_special_ids(root, *model, config, settings_root, spec);
  spec.chat_template = chat_template_of(directory, settings_root);
  return spec;
}

}  // namespace incipit::gateway
