#pragma once
/// Data sets: examples by number, each a tuple of tensors, and the batches that are made of them.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ferrite/nn/module.h"
#include "ferrite/tensor/ops.h"
#include "ferrite/tensor/random.h"

namespace ferrite::train {

/// What all examples have in common at one place of their tuples.
struct Field {
  /// Whether the first extent differs from example to example: a sequence [T, ...]. Batches pad it and tell lengths.
  bool sequence = false;
  /// What is put behind the end of shorter sequences. Targets of a cross entropy take its `ignore_index`.
  double padding = 0;

  bool operator==(const Field&) const = default;
};

/// One field of all examples, held in memory. A tensor [N, ...] is one: example i holds row i.
class Column {
 public:
  /// Throws ShapeError for a tensor of rank 0.
  Column(Tensor rows);
  /// Sequences one behind the other: steps [sum of lengths, ...], lengths i64 or i32 [N]. Throws ShapeError when they
  /// do not fit each other and for a length below 0, DtypeError for lengths that are no integers.
  Column(Tensor steps, const Tensor& lengths, double padding);

  std::int64_t size() const { return size_; }
  const Field& field() const { return field_; }
  /// Of example i, which must exist: what it holds, a view, and the length of a sequence (0 where it is none).
  Tensor operator[](std::int64_t i) const;
  std::int64_t length(std::int64_t i) const;
  /// A hash of all that it holds.
  std::uint64_t hash() const;
  /// Rows of several examples [B, ...], where it is no sequence.
  Tensor rows(std::span<const std::int64_t> examples) const;

 private:
  Tensor all_;
  Field field_;
  std::int64_t size_;
  std::vector<std::int64_t> begins_;  ///< of sequences, and the end of the last one
};

/// A column of sequences: steps [sum of lengths, ...] one behind the other, lengths [N].
Column sequences(Tensor steps, const Tensor& lengths, double padding = 0);
/// A column of sequences from tensors [T, ...] of their own lengths. Throws ShapeError when what follows T differs.
Column sequences(std::span<const Tensor> each, double padding = 0);

/// Examples joined along a new first axis: sequences padded to the longest of them.
struct Batch {
  Tensors fields;   ///< by place in the tuple: [B, ...], sequences [B, T, ...]
  Tensors lengths;  ///< by place: i64 [B] of sequences, undefined for other fields
  /// Where this is a part of a batch that several ranks train on (FitOptions::parallel): over what batch norms take
  /// their numbers.
  const nn::Replicas* replicas = nullptr;

  std::int64_t size() const { return fields[0].shape()[0]; }
  /// The first field, by custom the input, and the second, the target. Throw ValueError where there is none.
  const Tensor& x() const { return field(0); }
  const Tensor& y() const { return field(1); }
  /// Throws ValueError for a field that there is not.
  const Tensor& field(std::size_t i) const;
  /// The lengths of the first field, for layers: `net(b.x(), b.context())`.
  nn::Context context() const { return {.lengths = lengths[0], .replicas = replicas}; }
  /// i64 [B], how many steps of the target [B, T, ...] count: its own lengths, else those of the first field where the
  /// target has as many steps; undefined: all.
  Tensor target_lengths() const;
};

/// Which random numbers belong to an example: its place in the order of an epoch, and the loader's seed.
struct ExampleKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t place = 0;

  /// The key of a draw of that name: draws of different names are independent.
  RandomKey operator()(std::string_view name) const;
};

/// Examples by number, each a tuple of tensors: inputs, targets, and whatever a step needs. A handle: copies share what
/// they hold. May be read by several threads.
///
///   const train::Dataset points({x, y});                                    // row i of each tensor
///   const train::Dataset words({train::sequences(steps, lengths), labels});  // padded in batches
///   const train::Dataset waves(1000, [](std::int64_t i) { return Tensors{wave(i), target(i)}; });
class Dataset {
 public:
  /// How examples are made. To be derived from where the other constructors do not suffice; all calls may come from
  /// several threads at once.
  class Source {
   public:
    virtual ~Source() = default;
    virtual std::int64_t size() const = 0;
    virtual const std::vector<Field>& fields() const = 0;
    /// Example i, 0 <= i < size(). `key` is for random changes (`augment`).
    virtual Tensors example(std::int64_t i, const ExampleKey& key) const = 0;
    /// The first extent of its longest sequence field; 0 where there is none.
    virtual std::int64_t length(std::int64_t i) const;
    /// What tells these examples from others, for checkpoints: values that are held in memory as a hash. Not
    /// overridden: types, hashes of integers and means of floats, four digits each, of up to 64 examples.
    virtual std::string fingerprint() const;
    /// Several examples as a batch; not overridden, they are made one by one and joined.
    virtual Batch batch(std::span<const std::int64_t> examples, const ExampleKey& key, std::int64_t least_length) const;
  };

  explicit Dataset(std::shared_ptr<const Source> source);
  /// Columns of equal size. Throws ValueError for none, ShapeError for different sizes.
  Dataset(std::vector<Column> columns);
  Dataset(std::initializer_list<Column> columns) : Dataset(std::vector<Column>(columns)) {}
  /// Examples made when they are asked for, by a function that gives the same for the same number and may be called by
  /// several threads. `fields` tells which of its tensors are sequences; none given: none is. Throws ValueError for a
  /// size below 0 and a null function.
  Dataset(std::int64_t size, std::function<Tensors(std::int64_t)> example, std::vector<Field> fields = {});
  /// What a generator gives until it gives nothing, kept in memory.
  static Dataset collect(const std::function<std::optional<Tensors>()>& next, std::vector<Field> fields = {});

  std::int64_t size() const { return source_->size(); }
  const std::vector<Field>& fields() const { return source_->fields(); }
  /// Example i. Throws ShapeError unless 0 <= i < size().
  Tensors operator[](std::int64_t i) const;
  /// The first extent of the longest sequence of example i, 0 without sequences. Throws as operator[].
  std::int64_t length(std::int64_t i) const;

  /// What tells this set from others, in words: "200 examples: f32[24, 1], f32[1] (1f0c2d3e)". Tensors in memory count
  /// with every value. What functions make is looked at in up to 64 examples, floats by means of four digits, which are
  /// the same on every processor; `~` stands before them.
  std::string fingerprint() const;

  /// The examples of these numbers, in that order; one may stand there several times. Throws ShapeError for one that
  /// there is not.
  Dataset subset(std::vector<std::int64_t> examples) const;
  /// The first `n` examples, or all.
  Dataset first(std::int64_t n) const;
  /// Each example changed by a function when it is asked for. `fields` as the function leaves them; none given: as
  /// they were.
  Dataset map(std::function<Tensors(const Tensors&)> f, std::vector<Field> fields = {}) const;
  /// The same at random: draws made with the key are the same for a seed, an epoch and a place in its order, whichever
  /// thread makes them.
  ///
  ///   data.augment([](const Tensors& e, const train::ExampleKey& key) {
  ///     return Tensors{e[0] + normal(e[0].shape(), key("noise"), 0, 0.01), e[1]};
  ///   });
  Dataset augment(std::function<Tensors(const Tensors&, const ExampleKey&)> f) const;
  /// The examples of both, one set behind the other. Throws ValueError when their fields differ.
  Dataset operator+(const Dataset& behind) const;

  /// Several examples as one batch. Throws ShapeError for no examples, one that there is not, and examples whose
  /// shapes differ other than in the lengths of sequences.
  Batch batch(std::span<const std::int64_t> examples) const { return batch(examples, ExampleKey{}); }
  /// The same with the key of the first of them, for `augment`; sequences are padded to `least_length` at least.
  Batch batch(std::span<const std::int64_t> examples, const ExampleKey& key, std::int64_t least_length = 0) const;
  /// All examples as one batch.
  Batch all() const;

 private:
  std::shared_ptr<const Source> source_;
};

}  // namespace ferrite::train
