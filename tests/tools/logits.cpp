// Logits of chosen positions of a prompt, for comparison with an independent implementation.
//
//   incipit-logits MODEL TOKENS.bin ROWS.bin OUT.f32 [chunk]
//
// TOKENS: int32 token ids. ROWS: int32 ascending positions. OUT: float32 [rows][vocab]. The prompt
// is prefilled in calls of `chunk` rows (512 by default) on the cpu backend.
#include "gateway/model/checkpoint.h"
#include "gateway/model/model.h"
#include "kernels/backend.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace incipit;

std::vector<std::int32_t> read_integers(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::int32_t> values(bytes.size() / sizeof(std::int32_t));
  std::copy_n(bytes.data(), values.size() * sizeof(std::int32_t),
              reinterpret_cast<char*>(values.data()));
  return values;
}

void write_logits(const std::string& model_path, const std::vector<std::int32_t>& tokens,
                  const std::vector<std::int32_t>& rows, const std::string& out_path, int chunk) {
  constexpr int block_tokens = 64;
  const auto checkpoint = gateway::open_checkpoint(model_path);
  const auto backend = kernels::make_backend("cpu", {});
  const auto model = gateway::load_model(*checkpoint, *backend, 0);
  const auto total = static_cast<int>(tokens.size());
  std::vector<std::int32_t> table(
      static_cast<std::size_t>((total + block_tokens - 1) / block_tokens));
  std::iota(table.begin(), table.end(), 0);
  model->allocate_kv(static_cast<int>(table.size()), block_tokens);

  std::ofstream out(out_path, std::ios::binary);
  if (!out) throw std::runtime_error(out_path + ": cannot be written");
  std::vector<float> logits;
  auto wanted = rows.begin();
  for (int begin = 0; begin < total; begin += chunk) {
    const int count = std::min(chunk, total - begin);
    gateway::Batch batch;
    batch.tokens.assign(tokens.begin() + begin, tokens.begin() + begin + count);
    batch.spans.push_back({0, count, begin, table.data()});
    for (; wanted != rows.end() && *wanted < begin + count; ++wanted) {
      batch.logits_rows.push_back(*wanted - begin);
    }
    logits.resize(batch.logits_rows.size() * static_cast<std::size_t>(model->info().vocab_size));
    model->forward(batch, logits);
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size() * sizeof(float)));
  }
  if (wanted != rows.end()) throw std::runtime_error("a row lies beyond the end of the prompt");
  if (!out.flush()) throw std::runtime_error(out_path + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    std::fprintf(stderr, "usage: incipit-logits MODEL TOKENS.bin ROWS.bin OUT.f32 [chunk]\n");
    return 2;
  }
  try {
    const int chunk = argc == 6 ? std::atoi(argv[5]) : 512;
    if (chunk < 1) throw std::runtime_error("the chunk must be a positive number of rows");
    write_logits(argv[1], read_integers(argv[2]), read_integers(argv[3]), argv[4], chunk);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "incipit-logits: %s\n", error.what());
    return 1;
  }
  return 0;
}
