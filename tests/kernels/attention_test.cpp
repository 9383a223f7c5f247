#include "tests/kernels/attention_reference.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace incipit::kernels::test {
namespace {

const Shape shapes[] = {
    {9, 3, 64, 64, 0},    // SmolLM2
    {4, 1, 256, 64, 70},  // Gemma 3 with a window
    {2, 2, 16, 16, 0},   {4, 2, 32, 16, 33},  {6, 2, 24, 16, 1},
    {8, 2, 128, 64, 0},  {20, 1, 32, 64, 64},
};

std::vector<float> zeros(const Sequence& sequence) {
  return std::vector<float>(static_cast<std::size_t>(sequence.length) * sequence.out_width());
}

// The outputs when the whole sequence is taken at once.
std::vector<float> whole(Backend& backend, Sequence& sequence, unsigned cache_seed = 1) {
  Cache cache(sequence.shape, sequence.length, cache_seed);
  auto q = zeros(sequence);
  auto out = zeros(sequence);
  run_rows(backend, sequence, cache, 1, 0, sequence.length, q, out);
  return out;
}

}  // namespace

TEST_CASE("attention matches float64 for every level, shape and ragged length") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level, 2);
    for (const Shape& shape : shapes) {
      for (const int length : {1, 15, 63, 65, 130}) {
        CAPTURE(level);
        CAPTURE(shape.head_dim);
        CAPTURE(length);
        Sequence sequence(shape, length, 5);
        Cache cache(shape, length, 2);
        auto q = zeros(sequence);
        auto out = zeros(sequence);
        run_rows(*backend, sequence, cache, 1, 0, length, q, out);
        double worst = 0;
        for (int position = 0; position<length; position += length> 70 ? 9 : 1) {
          for (int head = 0; head < shape.heads; ++head) {
            const std::size_t at =
                static_cast<std::size_t>(position) * sequence.out_width() + head * shape.head_dim;
            const auto expected =
                reference_attention(sequence, cache, 1, q.data() + at, position, head);
            for (int d = 0; d < shape.head_dim; ++d) {
              const double error = std::fabs(out[at + d] - expected[d]);
              // Values reach about 6; queries are rounded to eight bits.
              worst = std::max(worst, std::isnan(error) ? 1e9 : error);
            }
          }
        }
        CHECK(worst < 0.02);
      }
    }
  }
}

TEST_CASE("append_kv writes rotated keys and plain values, and leaves rotated queries") {
  for (const std::string& level : cpu_isa_levels()) {
    for (const RopePairing pairing : {RopePairing::halves, RopePairing::interleaved}) {
      for (const bool norms : {false, true}) {
        auto backend = backend_at(level);
        const Shape shape{4, 2, 24, 16, 0};
        const int length = 37;
        Sequence sequence(shape, length, 3);
        sequence.pairing = pairing;
        if (norms) {
          sequence.q_norm = random_floats(24, 8);
          sequence.k_norm = random_floats(24, 9);
        }
        Cache cache(shape, length, 4);
        auto q = zeros(sequence);
        auto out = zeros(sequence);
        run_rows(*backend, sequence, cache, 1, 0, length, q, out);
        for (int p = 0; p < length; ++p) {
          const float* row = sequence.qkv.data() + static_cast<std::size_t>(p) * sequence.width();
          for (int head = 0; head < 8; ++head) {
            double x[24];
            double squares = 0;
            for (int d = 0; d < 24; ++d)
              squares += std::pow(row[head * 24 + d], 2);
            for (int d = 0; d < 24; ++d) {
              x[d] = row[head * 24 + d];
              if (norms && head < 6) {
                x[d] *= (head < 4 ? sequence.q_norm : sequence.k_norm)[d]
                        / std::sqrt(squares / 24 + 1e-6);
              }
            }
            double expected[24];
            for (int i = 0; i < 12; ++i) {
              const bool halves = pairing == RopePairing::halves;
              const int a = halves ? i : 2 * i;
              const int b = halves ? i + 12 : 2 * i + 1;
              const double cosine = sequence.cos[p * 12 + i];
              const double sine = sequence.sin[p * 12 + i];
              expected[a] = head < 6 ? x[a] * cosine - x[b] * sine : x[a];
              expected[b] = head < 6 ? x[b] * cosine + x[a] * sine : x[b];
            }
            for (int d = 0; d < 24; ++d) {
              if (head < 4) {
                const float got = q[static_cast<std::size_t>(p) * 96 + head * 24 + d];
                CHECK(std::fabs(got - expected[d]) < 1e-5);
              } else {
                const float got = bf16_value(cache.at(1, head >= 6, head % 2, p)[d]);
                CHECK(std::fabs(got - expected[d]) <= std::fabs(expected[d]) / 256 + 1e-5);
              }
            }
          }
        }
        // Layer 0 and the slots after the last position still hold what was there.
        CHECK(cache.at(0, false, 0, 5)[0] == 0x7fc0);
        CHECK(cache.at(1, true, 1, 47)[23] == 0x7fc0);
      }
    }
  }
}

TEST_CASE("keys and values are rounded to the nearest bf16, ties to even") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level);
    Sequence sequence({1, 1, 16, 16, 0}, 1, 1);
    for (int d = 0; d < 16; ++d)
      sequence.qkv[32 + d] = 1.0F + static_cast<float>(d) / 512;
    Cache cache(sequence.shape, 1, 1);
    auto q = zeros(sequence);
    auto out = zeros(sequence);
    run_rows(*backend, sequence, cache, 0, 0, 1, q, out);
    for (int d = 0; d < 16; ++d) {
      CHECK(bf16_value(cache.at(0, true, 0, 0)[d]) == rounded_to_bf16(sequence.qkv[32 + d]));
    }
  }
}

TEST_CASE("attention has the same bits for any chunks, blocks, threads and level") {
  for (const Shape& shape : shapes) {
    Sequence sequence(shape, 200, 11);
    std::vector<float> expected;
    for (const std::string& level : cpu_isa_levels()) {
      for (const int threads : {1, 2}) {
        auto backend = backend_at(level, threads);
        const auto all = whole(*backend, sequence, threads);
        if (expected.empty()) expected = all;
        CAPTURE(level);
        CAPTURE(shape.head_dim);
        CHECK(same_bits(all.data(), expected.data(), all.size()));
        for (const int chunk : {1, 7, 64, 65}) {
          Cache cache(shape, sequence.length, 20 + chunk);
          auto q = zeros(sequence);
          auto out = zeros(sequence);
          for (int begin = 0; begin < sequence.length; begin += chunk) {
            run_rows(*backend, sequence, cache, 1, begin, std::min(begin + chunk, sequence.length),
                     q, out);
          }
          CAPTURE(chunk);
          CHECK(same_bits(out.data(), expected.data(), out.size()));
        }
      }
    }
  }
}

TEST_CASE("attention has the same bits with blocks of 16 and of 64 tokens") {
  auto backend = backend_at("");
  Sequence small({4, 2, 32, 16, 40}, 150, 3);
  Sequence large({4, 2, 32, 64, 40}, 150, 3);
  const auto a = whole(*backend, small);
  const auto b = whole(*backend, large);
  CHECK(same_bits(a.data(), b.data(), a.size()));
}

TEST_CASE("long contexts, split at 1024 positions, have the same bits in prefill and decode") {
  for (const int window : {0, 600}) {
    const Shape shape{3, 1, 32, 64, window};
    Sequence sequence(shape, 2300, 17);
    std::vector<float> expected;
    for (const std::string& level : cpu_isa_levels()) {
      CAPTURE(level);
      CAPTURE(window);
      auto backend = backend_at(level, 2);
      Cache cache(shape, sequence.length, 6);
      auto q = zeros(sequence);
      auto out = zeros(sequence);
      run_rows(*backend, sequence, cache, 1, 0, sequence.length, q, out);
      if (expected.empty()) {
        expected = out;
        for (const int position : {1023, 1024, 2047, 2048, 2299}) {
          const std::size_t at = static_cast<std::size_t>(position) * 96 + 32;
          const auto reference =
              reference_attention(sequence, cache, 1, q.data() + at, position, 1);
          for (int d = 0; d < 32; ++d) {
            CHECK(std::fabs(out[at + d] - reference[d]) < 0.01);
          }
        }
      }
      CHECK(same_bits(out.data(), expected.data(), out.size()));
      auto alone = zeros(sequence);
      for (const int position : {0, 1000, 1023, 1024, 1025, 1700, 2047, 2048, 2299}) {
        run_rows(*backend, sequence, cache, 1, position, position + 1, q, alone);
        const std::size_t at = static_cast<std::size_t>(position) * 96;
        CHECK(same_bits(alone.data() + at, expected.data() + at, 96));
      }
      run_rows(*backend, sequence, cache, 1, 2040, 2060, q, alone);
      const std::size_t at = std::size_t{2040} * 96;
      CHECK(same_bits(alone.data() + at, expected.data() + at, std::size_t{20} * 96));
    }
  }
}

TEST_CASE("several sequences in one call do not see each other") {
  for (const std::string& level : cpu_isa_levels()) {
    auto backend = backend_at(level, 2);
    const Shape shape{6, 2, 32, 16, 0};
    Sequence first(shape, 50, 1);
    Sequence second(shape, 90, 2);
    const auto first_alone = whole(*backend, first);
    const auto second_alone = whole(*backend, second);

    Cache cache(shape, 160, 9);
    const std::vector<std::int32_t> second_table(cache.table.begin() + 4, cache.table.end());
    std::vector<float> qkv = second.qkv;
    qkv.insert(qkv.end(), first.qkv.begin(), first.qkv.end());
    const int width = first.width();
    std::vector<float> q(static_cast<std::size_t>(140) * 192);
    std::vector<float> out(q.size());
    QkvArguments append;
    append.qkv = rows_of(qkv, 140, width);
    append.rope = {second.cos.data(), second.sin.data(), RopePairing::halves};
    append.q_out = rows_of(q, 140, 192);
    const SequenceSpan spans[] = {{90, 50, 0, cache.table.data()}, {0, 90, 0, second_table.data()}};
    backend->append_kv(append, cache.pool, 0, spans);
    backend->attention({rows_of(q, 140, 192), first.scale(), 0, rows_of(out, 140, 192)}, cache.pool,
                       0, spans);
    CHECK(same_bits(out.data(), second_alone.data(), second_alone.size()));
    CHECK(same_bits(out.data() + second_alone.size(), first_alone.data(), first_alone.size()));
  }
}

TEST_CASE("infinite or NaN values of later rows leave earlier rows alone") {
  for (const std::string& level : cpu_isa_levels()) {
    for (const int window : {0, 20}) {
      auto backend = backend_at(level, 2);
      const Shape shape{6, 2, 32, 16, window};
      Sequence sequence(shape, 100, 1);
      const auto clean = whole(*backend, sequence);
      const int broken = 77;
      float* row = sequence.qkv.data() + static_cast<std::size_t>(broken) * sequence.width();
      for (int d = 0; d < 32; ++d) {
        row[8 * 32 + d] = d % 2 == 0 ? INFINITY : NAN;  // values of kv head 0
        row[6 * 32 + d] = NAN;                          // keys of kv head 0
      }
      const auto out = whole(*backend, sequence);
      const std::size_t at = static_cast<std::size_t>(broken) * 192;
      CHECK(same_bits(out.data(), clean.data(), at));
      CHECK(std::isnan(out[at]));
      for (int head = 3; head < 6; ++head) {
        const std::size_t last = std::size_t{99} * 192 + head * 32;
        CHECK(same_bits(out.data() + last, clean.data() + last, 32));
      }
      if (window > 0) {
        const std::size_t later = static_cast<std::size_t>(broken + window) * 192;
        CHECK(same_bits(out.data() + later, clean.data() + later, clean.size() - later));
      }
    }
  }
}

TEST_CASE("copy_block copies the first tokens of every layer and head, and no more") {
  auto backend = backend_at("");
  const Shape shape{2, 2, 16, 16, 0};
  Cache cache(shape, 64, 1, 3);
  for (std::size_t i = 0; i < cache.memory.size(); ++i) {
    cache.memory[i] = static_cast<std::uint16_t>(i % 30011);
  }
  const auto before = cache.memory;
  backend->copy_block(cache.pool, 2, 5, 7);
  const std::size_t block = cache.layout.block_bytes() / 2;
  for (std::size_t i = 0; i < cache.memory.size(); ++i) {
    const bool copied = i / block == 5 && i % block / 16 % 16 < 7;
    const std::uint16_t expected = copied ? before[i - 3 * block] : before[i];
    REQUIRE(cache.memory[i] == expected);
  }
}

}  // namespace incipit::kernels::test
