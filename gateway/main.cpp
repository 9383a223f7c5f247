// The program: flags, model, engine, ledger, server, signals. Owns everything.
#include "gateway/api/batch_runner.h"
#include "gateway/api/config.h"
#include "gateway/http/server.h"
#include "gateway/model/checkpoint.h"

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <vector>

namespace incipit::gateway {

namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds grace{30};        // for running requests after a signal
constexpr std::chrono::seconds ending_grace{3};  // for telling what is left that it ends

void note(const std::string& text) {
  fmt::print(stderr, "{}\n", text);
}

// SIGINT and SIGTERM are taken from construction on. The first one ends `wait`, a later one the
// program, at once.
class Signals {
 public:
  Signals() : set_(context_, SIGINT, SIGTERM) {
    set_.async_wait([](const boost::system::error_code&, int) {});
  }

  void wait() {
    context_.run();
    set_.clear();
    const auto end_now = [](int) { std::_Exit(0); };
    std::signal(SIGINT, end_now);
    std::signal(SIGTERM, end_now);
  }

 private:
  asio::io_context context_;
  asio::signal_set set_;
};

// Each connection is an open file; the usual soft limit of 1,024 is less than --max-connections
// needs.
void raise_file_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // a refusal is no reason not to serve
}

ServerOptions server_options(const Config& config) {
  ServerOptions options;
  options.host = config.host;
  options.port = static_cast<std::uint16_t>(config.port);
  options.loopback_only = config.keys.empty();
  options.max_connections = config.max_connections;
  options.body_limits.message = config.body_limit;
  return options;
}

void run(const Config& config) {
  const auto began = std::chrono::steady_clock::now();
  const Keys keys = config.keys.empty() ? Keys() : Keys(config.keys);
  const std::unique_ptr<RequestLog> log = config.log.empty()
                                              ? std::make_unique<RequestLog>()
                                              : std::make_unique<RequestLog>(config.log);
  raise_file_limit();
  auto bound = std::make_unique<Server>(server_options(config));  // a port in use is told first

  const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(model_path(config.model));
  const Tokenizer tokenizer(checkpoint->tokenizer());
  const ChatTemplate chat_template(checkpoint->config(), checkpoint->tokenizer());
  const std::unique_ptr<kernels::Backend> backend =
      kernels::make_backend(config.backend, {.threads = config.threads, .max_isa = {}});
  const std::unique_ptr<Model> model = load_model(*checkpoint, *backend, config.context);
  const ModelInfo& info = model->info();

  Clock clock = config.virtual_clock ? Clock::frozen() : Clock();
  Ledger ledger;
  EngineOptions engine_options;
  engine_options.kv_memory = config.kv_memory;
  engine_options.max_queue = config.max_queue;
  Engine engine(*model, clock, engine_options);
  const ReplyGuides guides(chat_template, tokenizer);
  Metrics metrics;
  RateLimits limits(config.limits);
  Diagnostics diagnostics(clock);
  Files files(clock, config.files_memory);
  Batches batches(clock, config.batches_memory);
  Services services{
      engine, ledger, tokenizer, chat_template, guides, info,        model_id(config.model),
      clock,  keys,   *log,      metrics,       limits, diagnostics, files,
      batches};
  services.public_url = config.public_url;
  services.virtual_clock = config.virtual_clock;
  services.keep_billing_line = config.keep_billing_line;
  services.settings_before_tools = config.settings_before_tools;
  services.strict_betas = config.strict_betas;
  services.request_timeout = std::chrono::seconds(config.request_timeout);

  auto batch_runner = std::make_unique<BatchRunner>(services, config.batch_concurrency);
  const std::unique_ptr<Server> server = std::move(bound);  // ends before what it uses
  server->start(services);
  const std::chrono::duration<double> loading = std::chrono::steady_clock::now() - began;
  const auto blocks = static_cast<std::size_t>(engine.stats().blocks_total);
  note(fmt::format("model    {} ({}, {} M parameters, {} chat format, context {})", info.name,
                   info.architecture, (info.parameters + 500'000) / 1'000'000, chat_template.name(),
                   info.context));
  note(fmt::format("backend  {}", backend->description()));
  note(fmt::format("kv       {} MiB for {} tokens",
                   blocks * model->kv_block_bytes(engine_options.block_tokens) >> 20,
                   blocks * static_cast<std::size_t>(engine_options.block_tokens)));
  note(fmt::format("loaded   in {:.1f} s", loading.count()));
  if (config.virtual_clock) note("clock    virtual: POST /incipit/clock moves it");
  Signals signals;  // before the line that says it may be used
  fmt::print("listening on {}\n", server->address());
  std::fflush(stdout);

  signals.wait();
  note("stopping: running requests may end; a second signal ends at once");
  batch_runner.reset();  // nobody could read what still came out
  server->stop_accepting();
  if (!server->wait_until_idle(grace)) {
    engine.cancel_all();
    server->wait_until_idle(ending_grace);
  }
}

}  // namespace

}  // namespace incipit::gateway

int main(int argc, char** argv) {
  namespace program = incipit::gateway;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error to handle, not an end
  try {
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!arguments.empty() && arguments.front() == "serve") {
      arguments.erase(arguments.begin());
    } else if (!arguments.empty() && !arguments.front().starts_with('-')) {
      if (arguments.front() != "help") {
        throw std::runtime_error(
            fmt::format("unknown command '{}'; the command is serve", arguments.front()));
      }
      arguments = {"--help"};
    }
    const std::optional<program::Config> config = program::read_config(arguments);
    if (!config) {
      fmt::print("{}", program::help_text());
      return 0;
    }
    program::run(*config);
    return 0;
  } catch (const std::exception& error) {
    program::note(fmt::format("incipit-gateway: {}", error.what()));
    return 2;
  }
}
