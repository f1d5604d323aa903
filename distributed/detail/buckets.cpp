/// Filling, sending and emptying buckets of gradients.
#include "ferrite/distributed/detail/buckets.h"

#include "ferrite/tensor/ops.h"

namespace ferrite::mpi::detail {
namespace {

Tensor add(const Tensor& a, const Tensor& b) { return a + b; }

}  // namespace

std::vector<Bucket> buckets_of(const std::vector<Parameter>& parameters, const std::vector<std::size_t>& order,
                               std::int64_t bytes) {
  std::vector<Bucket> all;
  std::int64_t filled = 0;
  for (const std::size_t i : order) {
    const Parameter& p = parameters[i];
    const bool another = all.empty() || filled >= bytes || parameters[all.back().parameters[0]].dtype() != p.dtype();
    if (another) all.emplace_back(), filled = 0;
    all.back().parameters.push_back(i);
    all.back().numel += p.numel();
    filled += p.numel() * size_of(p.dtype());
  }
  return all;
}

Gradients::Gradients(const std::vector<Parameter>& parameters, const Route& route, const Tree& tree, const Leaves& own)
    : parameters_(parameters), route_(route), reached_(parameters.size()), alone_(parameters.size()) {
  for (std::size_t i = 0; i < parameters.size(); ++i) trees_.emplace_back(tree, own, add);
}

void Gradients::plan(const std::vector<Bucket>& buckets, const std::vector<char>& known) {
  buckets_ = &buckets;
  known_ = &known;
  bucket_of_.assign(parameters_.size(), buckets.size());
  missing_.clear();
  missing_in_all_ = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    missing_.push_back(buckets[b].parameters.size());
    missing_in_all_ += missing_.back();
    for (const std::size_t i : buckets[b].parameters) bucket_of_[i] = b;
  }
}

void Gradients::arrived(int shard, std::size_t parameter, const Tensor& gradient) {
  if (bucket_of_[parameter] == buckets_->size() || (!known_->empty() && !(*known_)[parameter]))
    throw ValueError("mpi: step: the loss did not depend on parameter '" + parameters_[parameter].name() +
                     "' in the first step, and does now; compute with the same parameters in every step, or make "
                     "another DataParallel");
  reached_[parameter] = 1;
  give(shard, parameter, gradient);
}

void Gradients::give(int shard, std::size_t parameter, const Tensor& gradient) {
  LocalTree& tree = trees_[parameter];
  tree.give(shard, gradient);
  if (!tree.complete()) return;
  --missing_[bucket_of_[parameter]];
  --missing_in_all_;
  send_complete();
}

/// Buckets leave in their order, which is the same on every rank.
void Gradients::send_complete() {
  while (sent_.size() < buckets_->size() && missing_[sent_.size()] == 0) {
    const Bucket& bucket = (*buckets_)[sent_.size()];
    if (missing_in_all_ > 0) ++early_;
    if (route_.alone) {
      for (const std::size_t i : bucket.parameters) alone_[i] = trees_[i].take()[0];
      sent_.emplace_back();
      continue;
    }
    std::vector<std::vector<Tensor>> nodes;  // by node: the parameters' flat gradients
    for (const std::size_t i : bucket.parameters) {
      const Tensors own = trees_[i].take();
      nodes.resize(own.size());
      for (std::size_t k = 0; k < own.size(); ++k) nodes[k].push_back(reshape(own[k], {-1}));
    }
    Tensors whole;
    for (const auto& flat : nodes)
      whole.push_back(flat.size() == 1 ? flat[0] : concat(std::span<const Tensor>(flat), 0));
    sent_.push_back(start(route_, whole, bucket.numel));
  }
}

void Gradients::fill(int shard) {
  for (const Bucket& bucket : *buckets_)
    for (const std::size_t i : bucket.parameters)
      if (!trees_[i].has(shard)) give(shard, i, zeros(parameters_[i].shape(), parameters_[i].dtype()));
}

Tensors Gradients::finish(const Tensor& count, const std::vector<char>& known) {
  Tensors all(parameters_.size());
  for (std::size_t b = 0; b < buckets_->size(); ++b) {
    const Bucket& bucket = (*buckets_)[b];
    const Tensor divisor = cast(count, parameters_[bucket.parameters[0]].dtype());
    if (route_.alone) {
      for (const std::size_t i : bucket.parameters)
        if (known[i]) all[i] = alone_[i] / divisor;
      continue;
    }
    const Tensor mean = wait(route_, sent_[b]) / divisor;
    std::int64_t begin = 0;
    for (const std::size_t i : bucket.parameters) {
      const std::int64_t end = begin + parameters_[i].numel();
      if (known[i]) all[i] = reshape(slice(mean, 0, begin, end), parameters_[i].shape());
      begin = end;
    }
  }
  return all;
}

}  // namespace ferrite::mpi::detail
