// The model's weights on the backend: projections packed, vectors and rotary tables uploaded.
#pragma once

#include "gateway/model/checkpoint.h"
#include "kernels/backend.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace incipit::gateway {

// A float32 vector in device memory; empty when the model has none.
struct DeviceVector {
  std::unique_ptr<kernels::Buffer> memory;

  [[nodiscard]] const float* data() const {
    return memory ? static_cast<const float*>(memory->data()) : nullptr;
  }
};

struct DeviceRope {
  DeviceVector cos, sin;
};

struct LayerWeights {
  DeviceVector attention_norm;
  std::unique_ptr<kernels::Weight> qkv;  // q rows, then k, then v
  DeviceVector qkv_bias;                 // or empty
  DeviceVector q_norm, k_norm;           // per head, or empty
  std::unique_ptr<kernels::Weight> attention_output;
  DeviceVector attention_output_bias;  // or empty
  DeviceVector post_attention_norm;    // or empty
  DeviceVector feed_forward_norm;
  std::unique_ptr<kernels::Weight> gate_up;  // gate rows, then up
  std::unique_ptr<kernels::Weight> down;
  DeviceVector post_feed_forward_norm;  // or empty
};

struct Weights {
  std::unique_ptr<kernels::Weight> embedding;
  std::vector<LayerWeights> layers;
  DeviceVector output_norm;
  std::unique_ptr<kernels::Weight> output;  // null: the embedding serves as the head
  DeviceRope global_rope;
  DeviceRope local_rope;  // of sliding-window layers, where it differs; else empty

  [[nodiscard]] const kernels::Weight& head() const { return output ? *output : *embedding; }
};

// Reads every tensor once; the checkpoint is not needed afterwards. `context` positions are
// tabulated.
[[nodiscard]] Weights load_weights(const Checkpoint& checkpoint, kernels::Backend& backend,
                                   int context);

}  // namespace incipit::gateway
