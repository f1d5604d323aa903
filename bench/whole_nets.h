#pragma once
/// Nets of layers without a recurrence, trained as a whole.
#include "jobs.h"

namespace bench {

/// Returns whether a kind is one of these nets: cnn, of images [28, 28], conv2d(H) and conv2d(2 H), 3 x 3, each with
/// relu and max_pool2d(2), and linear(10); or transformer, of T steps of H features, two layers with 4 heads and
/// products of 4 H, last step, linear(10).
bool is_whole_net(const std::string& kind);

/// Returns the job of a name. train: mean cross-entropy, gradients and Adam; compiled: the same as one compiled
/// function.
std::function<void()> whole_net_job(const std::string& name, const Cell& cell);

}  // namespace bench
