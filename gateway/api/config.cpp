#include "gateway/api/config.h"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/variables_map.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <set>
#include <sstream>
#include <stdexcept>
// NOLINTNEXTLINE(readability-identifier-naming): the library's name
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace incipit::gateway {

namespace {

namespace po = boost::program_options;

// One row per name: flags, file and messages are all made from it.
struct Option {
  std::string_view name;
  bool is_switch;  // no value on the command line, true or false in the file
  // Throws std::runtime_error with what is possible, without the name.
  void (*set)(Config& config, const std::string& value);
};

template <int low, int high>
int integer(const std::string& text) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || value < low || value > high) {
    throw std::runtime_error(high == std::numeric_limits<int>::max()
                                 ? fmt::format("expected a whole number of at least {}", low)
                                 : fmt::format("expected a whole number from {} to {}", low, high));
  }
  return value;
}

std::size_t size(const std::string& text) {
  const std::optional<std::size_t> bytes = parse_size(text);
  if (!bytes || *bytes == 0) throw std::runtime_error("expected a size such as 512M or 2G");
  return *bytes;
}

bool truth(const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  throw std::runtime_error("expected true or false");
}

std::string not_empty(const std::string& text) {
  if (text.empty()) throw std::runtime_error("expected a value");
  return text;
}

std::string base_url(const std::string& text) {
  const std::size_t scheme = text.find("://");
  const std::string_view protocol = std::string_view(text).substr(0, scheme);
  if ((protocol != "http" && protocol != "https") || text.size() == scheme + 3
      || text.find_first_of(" \t\r\n?#") != std::string::npos) {
    throw std::runtime_error("expected an address such as https://host or https://host/path");
  }
  return text.substr(0, text.find_last_not_of('/') + 1);
}

constexpr int any = std::numeric_limits<int>::max();

constexpr std::array options{
    Option{"model", false, [](Config& c, const std::string& v) { c.model = not_empty(v); }},
    Option{"host", false, [](Config& c, const std::string& v) { c.host = not_empty(v); }},
    Option{"port", false, [](Config& c, const std::string& v) { c.port = integer<0, 65535>(v); }},
    Option{"backend", false,
           [](Config& c, const std::string& v) {
             if (v != "auto" && v != "cpu" && v != "cuda") {
               throw std::runtime_error("expected auto, cpu or cuda");
             }
             c.backend = v;
           }},
    Option{"threads", false,
           [](Config& c, const std::string& v) { c.threads = integer<1, 1024>(v); }},
    Option{"context", false,
           [](Config& c, const std::string& v) { c.context = integer<16, any>(v); }},
    Option{"kv-memory", false, [](Config& c, const std::string& v) { c.kv_memory = size(v); }},
    Option{"max-queue", false,
           [](Config& c, const std::string& v) { c.max_queue = integer<0, 1'000'000>(v); }},
    Option{"max-connections", false,
           [](Config& c, const std::string& v) { c.max_connections = integer<1, 100'000>(v); }},
    Option{"request-timeout", false,
           [](Config& c, const std::string& v) { c.request_timeout = integer<1, 1'000'000>(v); }},
    Option{"body-limit", false, [](Config& c, const std::string& v) { c.body_limit = size(v); }},
    Option{"files-memory", false,
           [](Config& c, const std::string& v) { c.files_memory = size(v); }},
    Option{"batches-memory", false,
           [](Config& c, const std::string& v) { c.batches_memory = size(v); }},
    Option{"batch-concurrency", false,
           [](Config& c, const std::string& v) { c.batch_concurrency = integer<1, 64>(v); }},
    Option{"public-url", false,
           [](Config& c, const std::string& v) { c.public_url = base_url(v); }},
    Option{"keys", false, [](Config& c, const std::string& v) { c.keys = not_empty(v); }},
    Option{"limits", false, [](Config& c, const std::string& v) { c.limits = parse_limits(v); }},
    Option{"log", false, [](Config& c, const std::string& v) { c.log = not_empty(v); }},
    Option{"virtual-clock", true,
           [](Config& c, const std::string& v) { c.virtual_clock = truth(v); }},
    Option{"keep-billing-line", true,
           [](Config& c, const std::string& v) { c.keep_billing_line = truth(v); }},
    Option{"settings-before-tools", true,
           [](Config& c, const std::string& v) { c.settings_before_tools = truth(v); }},
    Option{"strict-betas", true,
           [](Config& c, const std::string& v) { c.strict_betas = truth(v); }},
};

const Option* find_option(std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(),
                                  [&](const Option& option) { return option.name == name; });
  return found == options.end() ? nullptr : &*found;
}

// Insertions, deletions and replacements between two words.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, replaced}));
    }
  }
  return row.back();
}

// "; did you mean --port?", or the way to the list.
std::string suggestion(std::string_view unknown, std::string_view dashes) {
  std::string_view best;
  std::size_t least = 3;
  std::vector<std::string_view> names{"help", "config"};
  for (const Option& option : options)
    names.push_back(option.name);
  for (const std::string_view name : names) {
    // Half a name counts too: "virtual" for "virtual-clock".
    const bool starts = unknown.size() >= 3 && name.starts_with(unknown);
    const std::size_t distance = starts ? 0 : edit_distance(unknown, name);
    if (distance < least) {
      least = distance;
      best = name;
    }
  }
  return best.empty() ? "; --help lists what there is"
                      : fmt::format("; did you mean {}{}?", dashes, best);
}

void set(Config& config, const Option& option, const std::string& value, std::string_view where) {
  try {
    option.set(config, value);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(fmt::format("{} '{}': {}", where, value, error.what()));
  }
}

void read_file(Config& config, const std::string& file) {
  if (std::error_code ignored; std::filesystem::is_directory(file, ignored)) {
    throw std::runtime_error(fmt::format("--config {}: this is a folder, not a file", file));
  }
  toml::table table;
  try {
    table = toml::parse_file(file);
  } catch (const toml::parse_error& error) {
    throw std::runtime_error(
        fmt::format("{} line {}: {}", file, error.source().begin.line, error.description()));
  }
  for (const auto& [key, node] : table) {
    const std::string name(key.str());
    const std::string where = fmt::format("{} line {}: {}", file, key.source().begin.line, name);
    const Option* option = find_option(name);
    if (option == nullptr) {
      throw std::runtime_error(where + " is not known" + suggestion(name, ""));
    }
    std::string value;
    if (const auto* text = node.as_string()) {
      value = text->get();
    } else if (const auto* number = node.as_integer()) {
      value = std::to_string(number->get());
    } else if (const auto* boolean = node.as_boolean()) {
      value = boolean->get() ? "true" : "false";
    } else {
      throw std::runtime_error(where + ": expected a string, a whole number, true or false");
    }
    set(config, *option, value, where);
  }
}

std::filesystem::path models_folder() {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const std::string folder = variable("INCIPIT_MODELS"); !folder.empty()) return folder;
  std::filesystem::path cache = variable("XDG_CACHE_HOME");
  if (cache.empty()) cache = std::filesystem::path(variable("HOME")) / ".cache";
  return cache / "incipit" / "models";
}

}  // namespace

std::optional<Config> read_config(const std::vector<std::string>& arguments) {
  po::options_description description;
  description.add_options()("help,h", "")("config", po::value<std::string>(), "");
  for (const Option& option : options) {
    const std::string name(option.name);
    if (option.is_switch) {
      description.add_options()(name.c_str(), "");
    } else {
      description.add_options()(name.c_str(), po::value<std::string>(), "");
    }
  }
  po::variables_map given;
  try {
    // No guessing: "--m" today must not mean something else tomorrow.
    const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(description).positional({}).style(style).run(),
        given);
  } catch (const po::unknown_option& error) {
    std::string name = error.get_option_name();
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    throw std::runtime_error(fmt::format("--{} is not known{}", name, suggestion(name, "--")));
  } catch (const po::too_many_positional_options_error&) {
    throw std::runtime_error("serve takes flags only; --help lists them");
  } catch (const po::error& error) {
    throw std::runtime_error(error.what());
  }
  if (given.count("help") > 0) return std::nullopt;
  Config config;
  if (given.count("config") > 0) read_file(config, given["config"].as<std::string>());
  for (const Option& option : options) {
    const std::string name(option.name);
    if (given.count(name) == 0) continue;
    const std::string value = option.is_switch ? "true" : given[name].as<std::string>();
    set(config, option, value, "--" + name);
  }
  return config;
}

std::string_view help_text() {
  return R"(usage: incipit serve [flags]      a local Messages API with prompt caching
  --model NAME         default (SmolLM2-135M), gemma3-270m, tiny (random),
                       or a GGUF file or safetensors directory
  --host ADDRESS       where to listen, 127.0.0.1; elsewhere needs --keys
  --port N             8787; 0 = a free one
  --backend NAME       auto, cpu or cuda  --threads N  one per core
  --context N          positions, at most the model's own
  --kv-memory SIZE     for cached keys and values, 512M or 2G; two full contexts
  --files-memory SIZE  1G for uploads  --batches-memory SIZE  1G for batches
  --batch-concurrency N  requests of batches that run at once, 2
  --public-url URL     the address of results_url; what the client asked for
  --max-queue N        may wait before 529, 256  --max-connections N  1024
  --request-timeout S  longest time for one request, 3600
  --body-limit SIZE    largest message, 32M; batches 256M, files 500M
  --keys FILE          JSON lines {"key", "organization", "workspace"}
  --limits LIST        per minute: requests=N,input-tokens=N,output-tokens=N
  --log FILE           one JSON line per request; standard error
  --virtual-clock      POST /incipit/clock {"advance_seconds": n} moves the time
  --keep-billing-line  leave x-anthropic-billing-header texts in the prompt
  --settings-before-tools  other thinking or effort: nothing cached is read
  --strict-betas       refuse anthropic-beta values that are not known
  --config FILE        TOML with the same names; flags win
Endpoints: /v1/messages, /v1/messages/count_tokens, /v1/messages/batches,
/v1/files, /v1/models, /metrics, /incipit/entries, /health.
)";
}

std::optional<std::size_t> parse_size(std::string_view text) {
  std::size_t number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{}) return std::nullopt;
  std::string unit(end, text.data() + text.size());
  if (unit.starts_with(' ')) unit.erase(0, 1);
  for (char& c : unit) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 32);
  }
  for (const std::string_view tail : {"IB", "B"}) {  // K, KB and KiB are the same
    if (unit.ends_with(tail)) {
      unit.resize(unit.size() - tail.size());
      break;
    }
  }
  constexpr std::string_view units = "KMGT";
  int shift = 0;
  if (unit.size() == 1 && units.find(unit.front()) != std::string_view::npos) {
    shift = 10 * (static_cast<int>(units.find(unit.front())) + 1);
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  if (number > (std::numeric_limits<std::size_t>::max() >> shift)) return std::nullopt;
  return number << shift;
}

std::filesystem::path model_path(const std::string& name) {
  if (name == "tiny" || name == "tiny-thinking") return name;
  std::filesystem::path path = name;
  const bool is_named = name == "default" || name == "gemma3-270m";
  if (is_named) {
    path = models_folder()
           / (name == "default" ? "SmolLM2-135M-Instruct.Q4_1.gguf" : "gemma-3-270m-q4_k_m.gguf");
  }
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored)) return path;
  if (is_named) {
    throw std::runtime_error(
        fmt::format("the model file {} is missing; ./incipit serve --model {} "
                    "downloads it",
                    path.string(), name));
  }
  throw std::runtime_error(fmt::format(
      "--model {}: no such file or directory; the known names are default, gemma3-270m, tiny "
      "and tiny-thinking",
      name));
}

std::string model_id(const std::string& name) {
  if (name == "default") return "SmolLM2-135M-Instruct";
  if (name == "gemma3-270m" || name == "tiny" || name == "tiny-thinking") return name;
  const std::filesystem::path path = std::filesystem::absolute(name).lexically_normal();
  std::string id = (path.has_filename() ? path : path.parent_path()).filename().string();
  if (id.ends_with(".gguf")) id.resize(id.size() - 5);
  std::replace(id.begin(), id.end(), ' ', '-');
  return id;
}

}  // namespace incipit::gateway
