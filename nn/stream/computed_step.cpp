/// The step of a layer one of whose parameters is computed from others.
#include "ferrite/nn/detail/states.h"
#include "ferrite/nn/detail/steps.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

/// A plain copy of the layer with the computed value, and its step: as fast as one without anything to compute.
class Computed final : public Step {
 public:
  Computed(const Layer& layer, const std::string& name, std::function<Tensor()> compute, const StepRows& in)
      : parameters_(layer.named_parameters()),
        buffers_(layer.named_buffers()),
        compute_(std::move(compute)),
        in_(in),
        copy_(copy_in_place_of(layer)) {
    while (parameters_[at_].name != name) ++at_;
    copy_->eval();
    take_computed();
    step_ = step_of(*copy_, in);
  }
  Computed(const Computed& o)
      : Step(o),
        parameters_(o.parameters_),
        buffers_(o.buffers_),
        at_(o.at_),
        compute_(o.compute_),
        in_(o.in_),
        copy_(copy_in_place_of(*o.copy_)),
        step_(step_of(*copy_, in_)) {
    restore_states(*step_, saved_states(*o.step_));
  }

  StepRows result() const override { return step_->result(); }
  Pace pace() const override { return step_->pace(); }
  void run(Inputs x, void* y) override { step_->run(x, y); }
  void commit() override { step_->commit(); }
  bool never_throws() const override { return step_->never_throws(); }
  void advance(Inputs x, void* y) override { step_->advance(x, y); }
  bool skips() const override { return step_->skips(); }
  Rows run_rows(const Rows* rows, Inputs x, void* y) override { return step_->run_rows(rows, x, y); }
  void commit_rows(Rows rows) override { step_->commit_rows(rows); }
  bool commits() const override { return step_->commits(); }
  std::int64_t finishing() const override { return step_->finishing(); }
  Rows finish(Rows rows, std::int64_t i, void* y) override { return step_->finish(rows, i, y); }
  std::int64_t most_at_once() const override { return step_->most_at_once(); }
  void run_several(std::int64_t n, Inputs x, void* y) override { step_->run_several(n, x, y); }
  void refresh() override {
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      if (i != at_) copy_->named_parameters()[i].variable.assign(parameters_[i].variable.peek());
    take_values(buffers_, copy_->named_buffers());
    take_computed();
    step_->refresh();
  }
  void each(const StepVisitor& see) override { step_->each(see); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<Computed>(*this); }

 private:
  void take_computed() const {
    (void)parameters_[at_].variable.peek();  // throws where a value would become a constant of a program
    const NewFrame frame;
    copy_->named_parameters()[at_].variable.assign(compute_());
  }

  std::vector<Named<Parameter>> parameters_;  ///< of the layer, which the stream follows
  std::vector<Named<Buffer>> buffers_;
  std::size_t at_ = 0;  ///< of the computed one
  std::function<Tensor()> compute_;
  StepRows in_;
  std::unique_ptr<Layer> copy_;
  std::unique_ptr<Step> step_;
};

}  // namespace

std::unique_ptr<Step> computed_step(const Layer& layer, const std::string& name, std::function<Tensor()> compute,
                                    const StepRows& in) {
  return std::make_unique<Computed>(layer, name, std::move(compute), in);
}

}  // namespace ferrite::nn::detail
