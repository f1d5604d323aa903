/// Steps that are made of a copy of a layer: of one with a computed parameter, and of the layers inside another.
#include "ferrite/nn/detail/states.h"
#include "ferrite/nn/detail/stream_steps.h"
#include "ferrite/tensor/recorder.h"

namespace ferrite::nn::detail {
namespace {

/// The step of a copy, which takes the layer's values when it is told to.
class StepOfCopy final : public Step {
 public:
  using Make = std::function<std::unique_ptr<Step>(const Layer& copy)>;
  using Compute = std::function<void(const Layer& copy)>;

  /// `compute` gives the copy what the layer has no variable for; null: there is nothing.
  StepOfCopy(const Layer& layer, std::unique_ptr<Layer> copy, Make make, Compute compute)
      : parameters_(layer.named_parameters()),
        buffers_(layer.named_buffers()),
        states_(layer.named_states()),
        copy_(std::move(copy)),
        make_(std::move(make)),
        compute_(std::move(compute)) {
    if (compute_) compute_(*copy_);
    step_ = make_(*copy_);
  }
  StepOfCopy(const StepOfCopy& o)
      : Step(o),
        parameters_(o.parameters_),
        buffers_(o.buffers_),
        states_(o.states_),
        copy_(evaluating_copy(*o.copy_)),
        make_(o.make_),
        compute_(o.compute_),
        step_(make_(*copy_)) {
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
  std::int64_t sure(std::int64_t n, Inputs x) const override { return step_->sure(n, x); }
  void run_several(std::int64_t n, Inputs x, void* y) override { step_->run_several(n, x, y); }
  void refresh() override {
    take_values(parameters_, copy_->named_parameters());
    take_values(buffers_, copy_->named_buffers());
    take_values(states_, copy_->named_states());
    if (compute_) compute_(*copy_);
    step_->refresh();
  }
  void each(const StepVisitor& see) override { step_->each(see); }
  std::unique_ptr<Step> clone() const override { return std::make_unique<StepOfCopy>(*this); }

 private:
  std::vector<Named<Parameter>> parameters_;  ///< of the layer, which the stream follows
  std::vector<Named<Buffer>> buffers_;
  std::vector<Named<State>> states_;
  std::unique_ptr<Layer> copy_;
  Make make_;
  Compute compute_;
  std::unique_ptr<Step> step_;
};

}  // namespace

std::unique_ptr<Step> step_of_copy(const Layer& layer, std::unique_ptr<Layer> copy,
                                   std::function<std::unique_ptr<Step>(const Layer& copy)> make) {
  return std::make_unique<StepOfCopy>(layer, std::move(copy), std::move(make), nullptr);
}

std::unique_ptr<Step> computed_step(const Layer& layer, const std::string& name, std::function<Tensor()> compute,
                                    const StepRows& in) {
  std::size_t at = 0;
  while (layer.named_parameters()[at].name != name) ++at;
  const Parameter original = layer.named_parameters()[at].variable;
  return std::make_unique<StepOfCopy>(
      layer, evaluating_copy(layer), [in](const Layer& copy) { return step_of(copy, in); },
      [at, original, compute = std::move(compute)](const Layer& copy) {
        (void)original.peek();  // throws where a value would become a constant of a program
        const NewFrame frame;
        copy.named_parameters()[at].variable.assign(compute());
      });
}

}  // namespace ferrite::nn::detail
