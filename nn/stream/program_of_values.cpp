/// A step of several values that is written in operations.
#include <algorithm>

#include "ferrite/compile/open_scan.h"
#include "ferrite/nn/detail/joined_steps.h"
#include "ferrite/nn/detail/steps.h"
#include "ferrite/nn/step_graph.h"

namespace ferrite::nn::detail {
namespace {

using ferrite::detail::OpenScan;

class ProgramOfValues final : public Step {
 public:
  ProgramOfValues(std::span<const StepRows> rows, const std::function<Tensor(const Tensors&)>& together) {
    std::vector<Spec> specs;
    for (const StepRows& r : rows) {
      specs.push_back(spec_of(r));
      bytes_.push_back(bytes_of(r));
    }
    const auto body = [&](const Tensors&, const Tensors& x) -> ScanStep { return {{}, {together(x)}}; };
    scan_ = std::make_unique<OpenScan>(body, std::vector<Spec>{}, specs);
    const Spec& y = scan_->y_spec(0);
    out_ = {rows[0].batch, y.shape.numel() / rows[0].batch, y.dtype};
  }
  ProgramOfValues(const ProgramOfValues& o)
      : Step(o), bytes_(o.bytes_), scan_(std::make_unique<OpenScan>(*o.scan_)), out_(o.out_) {}

  StepRows result() const override { return out_; }
  Runs runs() const override { return Runs::program; }
  bool commits() const override { return false; }
  void run(Inputs x, void* y) override {
    for (std::size_t k = 0; k < bytes_.size(); ++k)
      std::copy_n(static_cast<const std::byte*>(x[k]), bytes_[k], scan_->x(k));
    scan_->run();
    std::copy_n(scan_->y(0), bytes_of(out_), static_cast<std::byte*>(y));
  }
  void refresh() override { scan_->refresh(); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<ProgramOfValues>(*this); }

 private:
  std::vector<std::int64_t> bytes_;  ///< by value
  std::unique_ptr<OpenScan> scan_;
  StepRows out_;
};

}  // namespace

std::unique_ptr<Step> program_of_values(std::span<const StepRows> rows,
                                        const std::function<Tensor(const Tensors&)>& together) {
  return std::make_unique<ProgramOfValues>(rows, together);
}

}  // namespace ferrite::nn::detail
