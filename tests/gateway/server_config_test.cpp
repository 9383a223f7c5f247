// Flags, the file with the same names, and what is said about mistakes.
#include "gateway/api/config.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

using namespace incipit::gateway;

namespace {

std::string refusal(const std::vector<std::string>& arguments) {
  try {
    static_cast<void>(read_config(arguments));
    return "";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

class ConfigFile {
 public:
  explicit ConfigFile(std::string_view text)
      : path_(std::filesystem::temp_directory_path() / "incipit-config-test.toml") {
    std::ofstream(path_) << text;
  }

  ~ConfigFile() { std::filesystem::remove(path_); }

  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("without flags the default model is served on this machine only") {
  const Config config = read_config({}).value();
  CHECK(config.model == "default");
  CHECK(config.host == "127.0.0.1");
  CHECK(config.port == 8787);
  CHECK(config.body_limit == 33554432);
  CHECK(!config.virtual_clock);
  CHECK(!config.settings_before_tools);
}

TEST_CASE("flags are read, with or without an equals sign") {
  const Config config = read_config({"--port=0", "--model", "tiny", "--kv-memory", "2G",
                                     "--virtual-clock", "--threads", "3", "--max-queue=0"})
                            .value();
  CHECK(config.port == 0);
  CHECK(config.model == "tiny");
  CHECK(config.kv_memory == std::size_t{2} << 30);
  CHECK(config.virtual_clock);
  CHECK(config.threads == 3);
  CHECK(config.max_queue == 0);
}

TEST_CASE("a file sets the same names and flags win over it") {
  const ConfigFile file(
      "# ours\nmodel = \"tiny\"\nport = 9000\nkv-memory = \"1G\"\nvirtual-clock = true\n"
      "keep-billing-line = false\nsettings-before-tools = true\n");
  const Config config = read_config({"--config", file.path(), "--port", "9001"}).value();
  CHECK(config.model == "tiny");
  CHECK(config.port == 9001);
  CHECK(config.kv_memory == std::size_t{1} << 30);
  CHECK(config.virtual_clock);
  CHECK(!config.keep_billing_line);
  CHECK(config.settings_before_tools);
}

TEST_CASE("an unknown flag is named with the nearest known one") {
  CHECK(refusal({"--prot", "1"}) == "--prot is not known; did you mean --port?");
  CHECK(refusal({"--virtual"}) == "--virtual is not known; did you mean --virtual-clock?");
  CHECK(refusal({"--kv-memry", "1G"}) == "--kv-memry is not known; did you mean --kv-memory?");
  CHECK(refusal({"--colour", "red"}) == "--colour is not known; --help lists what there is");
  CHECK(refusal({"-x"}).find("-x") != std::string::npos);
}

TEST_CASE("where clients find the gateway must be an address, without its last slash") {
  CHECK(read_config({"--public-url", "https://host/api/"}).value().public_url
        == "https://host/api");
  for (const std::string text :
       {"", "host", "://host", "ftp://host", "http://", "http://a b", "http://a?b"}) {
    CAPTURE(text);
    CHECK(refusal({"--public-url", text}).find("https://host/path") != std::string::npos);
  }
}

TEST_CASE("an abbreviated flag is not guessed") {
  CHECK(refusal({"--mod", "tiny"}) != "");
}

TEST_CASE("a value that makes no sense is named with its flag and what is possible") {
  CHECK(refusal({"--port", "70000"}) == "--port '70000': expected a whole number from 0 to 65535");
  CHECK(refusal({"--port", "8o"}).find("--port '8o'") != std::string::npos);
  CHECK(refusal({"--threads", "0"}).find("--threads '0'") != std::string::npos);
  CHECK(refusal({"--context", "-5"}).find("at least 16") != std::string::npos);
  CHECK(refusal({"--backend", "abacus"}) == "--backend 'abacus': expected auto, cpu or cuda");
  CHECK(refusal({"--kv-memory", "lots"}).find("512M") != std::string::npos);
  CHECK(refusal({"--body-limit", "0"}) != "");
  CHECK(refusal({"--request-timeout", "0"}) != "");
  CHECK(refusal({"--port"}).find("port") != std::string::npos);
  CHECK(refusal({"--port", "1", "--port", "2"}).find("port") != std::string::npos);
  CHECK(refusal({"--virtual-clock=yes"}).find("virtual-clock") != std::string::npos);
  CHECK(refusal({"model.gguf"}) != "");
}

TEST_CASE("a mistake in the file is named with file and line") {
  const auto in_file = [](std::string_view text) {
    const ConfigFile file(text);
    return refusal({"--config", file.path()});
  };
  const std::string unknown = in_file("model = \"tiny\"\nprot = 1\n");
  CHECK(unknown.find("incipit-config-test.toml line 2: prot is not known; did you mean port?")
        != std::string::npos);
  CHECK(in_file("port = 70000\n").find("line 1: port '70000'") != std::string::npos);
  CHECK(in_file("port = [1]\n").find("line 1: port") != std::string::npos);
  CHECK(in_file("port = 1.5\n").find("line 1: port") != std::string::npos);
  CHECK(in_file("virtual-clock = \"maybe\"\n").find("true or false") != std::string::npos);
  CHECK(in_file("\nport = = 1\n").find("line 2") != std::string::npos);
  CHECK(in_file("config = \"other.toml\"\n").find("config is not known") != std::string::npos);
  CHECK(refusal({"--config", "/tmp"}).find("folder") != std::string::npos);
  CHECK(refusal({"--config", "/nowhere.toml"}).find("/nowhere.toml") != std::string::npos);
}

TEST_CASE("sizes have binary units in any spelling") {
  CHECK(parse_size("1000") == 1000);
  CHECK(parse_size("1K") == 1024);
  CHECK(parse_size("3kb") == 3072);
  CHECK(parse_size("512M") == std::size_t{512} << 20);
  CHECK(parse_size("512 MiB") == std::size_t{512} << 20);
  CHECK(parse_size("2G") == std::size_t{2} << 30);
  CHECK(parse_size("1TiB") == std::size_t{1} << 40);
  for (const std::string_view text :
       {"", "M", "-1", "1.5G", "1X", "1MM", "1 M M", "99999999999999T", "1G2"}) {
    CAPTURE(text);
    CHECK(!parse_size(text));
  }
}

TEST_CASE("help fits a screen and names every flag that can be given") {
  CHECK(!read_config({"--help"}));
  CHECK(!read_config({"-h"}));
  const std::string_view text = help_text();
  CHECK(std::count(text.begin(), text.end(), '\n') <= 24);
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  CHECK(longest <= 80);
  for (const std::string flag : {"model",
                                 "host",
                                 "port",
                                 "backend",
                                 "threads",
                                 "context",
                                 "kv-memory",
                                 "max-queue",
                                 "max-connections",
                                 "request-timeout",
                                 "body-limit",
                                 "files-memory",
                                 "batches-memory",
                                 "batch-concurrency",
                                 "public-url",
                                 "keys",
                                 "limits",
                                 "log",
                                 "virtual-clock",
                                 "keep-billing-line",
                                 "settings-before-tools",
                                 "strict-betas",
                                 "config"}) {
    CAPTURE(flag);
    CHECK(text.find("  --" + flag + ' ') != std::string_view::npos);
  }
}

TEST_CASE("a model is called by its name, or by its file's") {
  CHECK(model_id("default") == "SmolLM2-135M-Instruct");
  CHECK(model_id("gemma3-270m") == "gemma3-270m");
  CHECK(model_id("tiny") == "tiny");
  CHECK(model_id("/models/My Model.Q8_0.gguf") == "My-Model.Q8_0");
  CHECK(model_id("/models/Qwen3-0.6B/") == "Qwen3-0.6B");
}

TEST_CASE("a model that is not there is named with the way to get it") {
  CHECK(model_path("tiny") == "tiny");
  CHECK_THROWS_WITH_AS(model_path("/nowhere/x.gguf"), doctest::Contains("/nowhere/x.gguf"),
                       std::runtime_error);
  const char* before = std::getenv("INCIPIT_MODELS");
  const std::string kept = before == nullptr ? "" : before;
  ::setenv("INCIPIT_MODELS", "/nowhere", 1);
  CHECK_THROWS_WITH_AS(model_path("gemma3-270m"),
                       doctest::Contains("/nowhere/gemma-3-270m-q4_k_m.gguf"), std::runtime_error);
  CHECK_THROWS_WITH_AS(model_path("default"), doctest::Contains("./incipit serve"),
                       std::runtime_error);
  if (before == nullptr) {
    ::unsetenv("INCIPIT_MODELS");
  } else {
    ::setenv("INCIPIT_MODELS", kept.c_str(), 1);
  }
}
