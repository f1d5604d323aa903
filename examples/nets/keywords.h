#pragma once
/// The ten keywords, and when a detector says that it has heard one.
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string_view>

namespace nets {

inline constexpr std::array<std::string_view, 10> kKeywords{"yes",   "no", "up",  "down", "left",
                                                            "right", "on", "off", "stop", "go"};
/// The net's outputs: the probability of no keyword, then those of the keywords.
inline constexpr std::size_t kClasses = kKeywords.size() + 1;

/// Turns probabilities of frames of 10 ms into events: a keyword is heard when its mean over the last eight frames
/// rises above a threshold, and at most once in 0.8 s.
class Detector {
 public:
  explicit Detector(float threshold = 0.7F) : threshold_(threshold) {}

  /// Takes the probabilities of a frame; returns the number of a keyword that was heard now.
  std::optional<std::size_t> frame(std::span<const float> probabilities) {
    auto& oldest = last_[at_];
    at_ = (at_ + 1) % last_.size();
    for (std::size_t k = 0; k < kKeywords.size(); ++k) {
      sum_[k] += probabilities[k + 1] - oldest[k];
      oldest[k] = probabilities[k + 1];
    }
    if (pause_ > 0) --pause_;
    const auto best = static_cast<std::size_t>(std::max_element(sum_.begin(), sum_.end()) - sum_.begin());
    if (pause_ > 0 || sum_[best] < threshold_ * static_cast<float>(last_.size())) return {};
    pause_ = 80;
    return best;
  }

 private:
  float threshold_;
  std::array<std::array<float, kKeywords.size()>, 8> last_{};
  std::array<float, kKeywords.size()> sum_{};
  std::size_t at_ = 0;
  int pause_ = 0;
};

}  // namespace nets
