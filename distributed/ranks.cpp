/// The implementation of train::Parallel, with which `fit` is one training of all ranks.
#include "ferrite/distributed/ranks.h"

#include <algorithm>

#include "ferrite/distributed/checkpoint.h"
#include "ferrite/distributed/detail/joint_step.h"
#include "ferrite/distributed/detail/link.h"
#include "ferrite/distributed/detail/spread_states.h"
#include "ferrite/tensor/define.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::mpi {
namespace {

using train::Batch;
using train::StepOutput;

/// The tensors of a batch in one list, and for each field whether it has lengths.
struct Flat {
  Tensors tensors;
  std::vector<bool> with_lengths;

  explicit Flat(const Batch& batch) {
    const std::int64_t rows = batch.size();
    const auto add = [&](const Tensor& x) {
      if (x.rank() < 1 || x.shape()[0] != rows)
        throw ShapeError("fit: on several ranks every field of a batch must have its rows first: [" +
                         std::to_string(rows) + ", ...], got " + x.spec().str());
      tensors.push_back(x);
    };
    for (const Tensor& x : batch.fields) add(x);
    for (const Tensor& l : batch.lengths) {
      with_lengths.push_back(l.defined());
      if (l.defined()) add(l);
    }
  }
  Batch part(const ShardBatch& shard) const {
    Batch batch;
    std::size_t next = 0;
    for (std::size_t i = 0; i < with_lengths.size(); ++i) batch.fields.push_back(shard.tensors[next++]);
    for (const bool defined : with_lengths) batch.lengths.push_back(defined ? shard.tensors[next++] : Tensor());
    batch.replicas = shard.context.replicas;
    return batch;
  }
};

class Run final : public train::ParallelRun {
 public:
  Run(const World& world, const nn::Module& model, nn::Optimizer* optimizer, const RanksOptions& o)
      : world_(world),
        optimizer_(optimizer),
        joint_(world, model, optimizer ? optimizer->parameters() : std::vector<Parameter>{},
               {"fit", o.shards, o.bucket_bytes, o.variables}) {
    if (!optimizer) return;
    std::vector<Variable> states;
    for (const auto& s : optimizer->states()) states.push_back(s.variable);
    broadcast(world, states);
    if (o.shard_optimizer && world.size() > 1) spread_.emplace(world, *optimizer);
  }

  Joined gradients(const Batch& batch, const train::Forward& forward) override { return joined(batch, forward, true); }
  Joined evaluate(const Batch& batch, const train::Forward& forward) override { return joined(batch, forward, false); }

  void update(const Tensors& gradients) override {
    if (spread_) {
      spread_->step(gradients);
    } else {
      optimizer_->step(gradients);
    }
  }

  Tensor whole(const Tensor& prediction, std::int64_t rows) override {
    const Tensor own = contiguous(prediction);
    Shape shape = own.shape();
    const std::int64_t mine = shape[0];
    shape[0] = 1;
    const auto each = static_cast<std::size_t>(shape.numel() * size_of(own.dtype()));
    std::vector<std::size_t> counts;
    const int shards = joint_.shards(), of_rank = shards / world_.size();
    for (int r = 0; r < world_.size(); ++r) {
      const std::int64_t begin = rows_of_shard(rows, shards, r * of_rank).begin,
                         end = rows_of_shard(rows, shards, (r + 1) * of_rank - 1).end;
      counts.push_back(static_cast<std::size_t>(end - begin) * each);
    }
    if (counts[static_cast<std::size_t>(world_.rank())] != static_cast<std::size_t>(mine) * each)
      throw ShapeError("fit: the prediction of this rank has not the rows of its part: " + own.spec().str());
    shape[0] = rows;
    Tensor all = Tensor::empty({shape, own.dtype()});
    world_.link()->gather(own.raw(), counts, define::Writer::raw(all));
    return all;
  }

  bool is_main() const override { return world_.rank() == 0; }
  bool any(bool yes) override { return world_.any(yes); }
  std::string first_text(const std::string& own) override { return detail::first_text(world_, own); }

  void check_equal(std::uint64_t number, const std::string& differ) override {
    const Tensor own = Tensor::from({static_cast<std::int64_t>(number)});
    const bool differs = world_.broadcast(own).item<std::int64_t>() != own.item<std::int64_t>();
    if (!world_.any(differs)) return;
    together_ = true;
    throw ValueError("fit: the ranks " + differ);
  }

  void save(const std::filesystem::path& path, const train::TrainingParts& parts,
            const train::Checkpoint& checkpoint) override {
    if (spread_) spread_->make_whole(false);
    save_checkpoint(world_, path, parts, checkpoint);
    if (spread_) spread_->release();
  }

  std::optional<train::Checkpoint> load(const std::filesystem::path& path, const train::TrainingParts& parts) override {
    if (!world_.any(is_main() && std::filesystem::exists(path))) return std::nullopt;
    train::Checkpoint checkpoint = load_checkpoint(world_, path, parts);
    if (spread_) spread_->release();
    return checkpoint;
  }

  void end() override {
    if (spread_) spread_->make_whole(true);
  }
  void abandon() noexcept override {
    if (!together_ && !joint_.refused_count()) world_.link()->leave();
  }

 private:
  Joined joined(const Batch& batch, const train::Forward& forward, bool with_gradients) {
    const Flat flat(batch);
    std::vector<Tensor> predictions(static_cast<std::size_t>(joint_.shards()));
    const ShardFunction f = [&](const ShardBatch& shard) {
      StepOutput out = forward(flat.part(shard));
      if (!out.count.defined())
        throw ValueError(
            "fit: on several ranks a forward pass gives the sum of its losses and StepOutput::count, of how many: the "
            "mean of a part does not say how many losses it covers");
      if (out.prediction.defined()) {
        if (out.prediction.rank() < 1 || out.prediction.shape()[0] != shard.rows.size())
          throw ShapeError("fit: on several ranks a prediction must have the rows of its part first: [" +
                           std::to_string(shard.rows.size()) + ", ...], got " + out.prediction.spec().str());
        predictions[static_cast<std::size_t>(shard.shard)] = detach(out.prediction);
      }
      return Sum(std::move(out.loss), std::move(out.count));
    };
    detail::JointStep::Joined sums =
        joint_.run(joint_.cut(flat.tensors), f, {.gradients = with_gradients, .least_count = 0});
    std::erase_if(predictions, [](const Tensor& p) { return !p.defined(); });
    Joined all{
        .loss = cast(sums.loss / sums.count, sums.dtype), .count = sums.count, .gradients = std::move(sums.gradients)};
    if (!predictions.empty())
      all.prediction = predictions.size() == 1 ? predictions[0] : concat(std::span<const Tensor>(predictions), 0);
    return all;
  }

  const World& world_;
  nn::Optimizer* optimizer_;
  detail::JointStep joint_;
  std::optional<detail::SpreadStates> spread_;
  bool together_ = false;  ///< whether all ranks throw the exception that is thrown
};

class Ranks final : public train::Parallel {
 public:
  Ranks(const World& world, const RanksOptions& options) : world_(world), options_(options) {}
  std::unique_ptr<train::ParallelRun> begin(const nn::Module& model, nn::Optimizer* optimizer) const override {
    return std::make_unique<Run>(world_, model, optimizer, options_);
  }

 private:
  const World& world_;
  RanksOptions options_;
};

}  // namespace

std::shared_ptr<const train::Parallel> ranks(const World& world, const RanksOptions& options) {
  return std::make_shared<Ranks>(world, options);
}

}  // namespace ferrite::mpi
