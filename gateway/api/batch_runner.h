// Runs the requests of batches, a few at a time, when live requests leave room.
#pragma once

#include "gateway/api/batches.h"
#include "gateway/api/routes.h"

#include <memory>

namespace incipit::gateway {

class BatchRunner {
 public:
  // Starts a thread. `services` and its batches outlive the runner; at most `concurrency` requests
  // run at once.
  BatchRunner(Services& services, int concurrency);
  // Gives up what is running.
  ~BatchRunner();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace incipit::gateway
