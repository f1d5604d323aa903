/// A step of the stacked WaveNet: the steps of its layers, with rows that are added between them.
#include <algorithm>

#include "ferrite/nn/detail/steps.h"
#include "ferrite/nn/layers/wavenet.h"

namespace ferrite::nn {
namespace {

using detail::StepMemory;

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Where the steps of one layer of an array stand in the list of all.
struct UnitPlaces {
  std::size_t conv, mix, activation, gate = kNone, layer1x1 = kNone, head1x1 = kNone;
};
struct ArrayPlaces {
  std::size_t rechannel = 0, head = 0;
  std::vector<UnitPlaces> units{};
};

template <class T>
class WavenetStep final : public Step {
 public:
  WavenetStep(const Wavenet& net, const StepRows& in) : in_(in), scale_(static_cast<T>(net.head_scale())) {
    StepRows rows = in;
    for (const Wavenet::Array& array : net.arrays()) {
      ArrayPlaces places;
      places.rechannel = add(*array.rechannel, rows);
      rows = steps_.back()->result();
      for (const Wavenet::Unit& u : array.units) places.units.push_back(add_unit(u, rows));
      places.head = add(*array.head, {in.batch, array.head->options().in_channels, in.dtype});
      arrays_.push_back(places);
    }
    out_ = steps_.back()->result();
    for (const auto& s : steps_) width_ = std::max(width_, s->result().width);
    at_once_ = detail::steps_at_once(in.batch * width_ * size_of(in.dtype));
    for (const auto& s : steps_) at_once_ = std::min(at_once_, s->most_at_once());
    make_room();
  }
  WavenetStep(const WavenetStep& o)
      : Step(o),
        in_(o.in_),
        out_(o.out_),
        arrays_(o.arrays_),
        width_(o.width_),
        at_once_(o.at_once_),
        scale_(o.scale_) {
    for (const auto& s : o.steps_) steps_.push_back(s->clone());
    make_room();
  }

  StepRows result() const override { return out_; }
  void run(const void* x, void* y) override {
    through(1, x, y, [](Step& s, const T* from, T* to) { detail::run_step(s, from, to); });
  }
  std::int64_t most_at_once() const override { return at_once_; }
  void run_several(std::int64_t n, const void* x, void* y) override {
    through(n, x, y, [n](Step& s, const T* from, T* to) { detail::run_steps(s, n, from, to); });
  }
  void commit() override {
    for (const auto& s : steps_)
      if (s->commits()) s->commit();
  }
  bool never_throws() const override {
    return std::all_of(steps_.begin(), steps_.end(), [](const auto& s) { return s->never_throws(); });
  }
  Rows run_rows(Rows rows, const void* x, void* y) override {
    through(1, x, y, [rows](Step& s, const T* from, T* to) { detail::run_rows_of(s, rows, from, to); });
    return rows;
  }
  void commit_rows(Rows rows) override {
    for (const auto& s : steps_)
      if (s->commits()) s->commit_rows(rows);
  }
  void refresh() override {
    for (const auto& s : steps_) s->refresh();
  }
  void states(const StateVisitor& see) override {
    for (const auto& s : steps_) s->states(see);
  }
  void states_changed() override {
    for (const auto& s : steps_) s->states_changed();
  }
  std::size_t on_tensors() const override {
    std::size_t n = 0;
    for (const auto& s : steps_) n += s->on_tensors();
    return n;
  }
  std::unique_ptr<Step> clone() const override { return std::make_unique<WavenetStep>(*this); }

 private:
  std::size_t add(const Layer& layer, const StepRows& rows) {
    steps_.push_back(detail::step_of(layer, rows));
    return steps_.size() - 1;
  }
  UnitPlaces add_unit(const Wavenet::Unit& u, const StepRows& rows) {
    UnitPlaces p{};
    p.conv = add(*u.conv, rows);
    const std::int64_t wide = steps_.back()->result().width;
    p.mix = add(*u.mix, in_);
    const StepRows behind{in_.batch, u.gate ? wide / 2 : wide, in_.dtype};
    p.activation = add(*u.activation, behind);
    p.gate = u.gate ? add(*u.gate, behind) : kNone;
    p.layer1x1 = u.layer1x1 ? add(*u.layer1x1, behind) : kNone;
    p.head1x1 = u.head1x1 ? add(*u.head1x1, behind) : kNone;
    return p;
  }
  /// Rows of the widest layer, and a line more: a step may write and read whole packets.
  void make_room() {
    const std::int64_t n = at_once_ * in_.batch * width_ + 64;
    for (StepMemory<T>** room : {&h_, &z_, &other_, &skip_, &gates_}) {
      rooms_.push_back(std::make_unique<StepMemory<T>>(n));
      *room = rooms_.back().get();
    }
  }
  std::int64_t width(std::size_t k) const { return steps_[k]->result().width; }

  /// n steps by run(step, from, to).
  template <class Run>
  void through(std::int64_t n, const void* x, void* y, const Run& run) {
    const std::int64_t rows = n * in_.batch;
    const T* const input = static_cast<const T*>(x);
    bool any = false;  // whether there is a sum for the head
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const ArrayPlaces& a = arrays_[i];
      run(*steps_[a.rechannel], i == 0 ? input : h_->get(), other_->get());
      std::swap(h_, other_);
      for (const UnitPlaces& u : a.units) {
        run_unit(u, rows, input, any, run);
        any = true;
      }
      T* const to = i + 1 == arrays_.size() ? static_cast<T*>(y) : other_->get();
      run(*steps_[a.head], skip_->get(), to);
      if (i + 1 < arrays_.size()) std::swap(skip_, other_);
    }
    T* const out = static_cast<T*>(y);
    for (std::int64_t k = 0; k < rows * out_.width; ++k) out[k] *= scale_;
  }

  template <class Run>
  void run_unit(const UnitPlaces& u, std::int64_t rows, const T* input, bool any, const Run& run) {
    run(*steps_[u.conv], h_->get(), z_->get());
    run(*steps_[u.mix], input, other_->get());
    add_to(z_->get(), other_->get(), rows * width(u.conv));
    if (u.gate == kNone) {
      run(*steps_[u.activation], z_->get(), other_->get());
      std::swap(z_, other_);
    } else {
      gated(u, rows, run);
    }
    const T* given = z_->get();
    std::int64_t wide = width(u.activation);
    if (u.head1x1 != kNone) {
      run(*steps_[u.head1x1], z_->get(), other_->get());
      given = other_->get();
      wide = width(u.head1x1);
    }
    if (any)
      add_to(skip_->get(), given, rows * wide);
    else
      std::copy_n(given, rows * wide, skip_->get());
    if (u.layer1x1 == kNone) return;
    run(*steps_[u.layer1x1], z_->get(), other_->get());
    add_to(h_->get(), other_->get(), rows * width(u.layer1x1));
  }

  /// The first halves of rows, activated, times the second ones.
  template <class Run>
  void gated(const UnitPlaces& u, std::int64_t rows, const Run& run) {
    const std::int64_t C = width(u.activation);
    T* const halves = other_->get();
    const T* const z = z_->get();
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(z + r * 2 * C + C, C, halves + r * C);
    run(*steps_[u.gate], halves, gates_->get());
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(z + r * 2 * C, C, halves + r * C);
    run(*steps_[u.activation], halves, z_->get());
    T* const a = z_->get();
    const T* const g = gates_->get();
    for (std::int64_t k = 0; k < rows * C; ++k) a[k] *= g[k];
  }

  static void add_to(T* to, const T* x, std::int64_t n) {
    for (std::int64_t k = 0; k < n; ++k) to[k] += x[k];
  }

  StepRows in_, out_;
  std::vector<std::unique_ptr<Step>> steps_;
  std::vector<ArrayPlaces> arrays_;
  std::int64_t width_ = 1, at_once_ = 1;
  T scale_;
  std::vector<std::unique_ptr<StepMemory<T>>> rooms_;
  StepMemory<T>*h_ = nullptr, *z_ = nullptr, *other_ = nullptr, *skip_ = nullptr,
  *gates_ = nullptr;  ///< of `rooms_`, exchanged
};

}  // namespace

std::unique_ptr<Step> Wavenet::make_step(const StepRows& in) const {
  (void)whole();
  if (in.dtype == Dtype::f64) return std::make_unique<WavenetStep<double>>(*this, in);
  return std::make_unique<WavenetStep<float>>(*this, in);
}

}  // namespace ferrite::nn
