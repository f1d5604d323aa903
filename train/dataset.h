#pragma once
/// Data sets: numbered examples, each a tuple of tensors, and the batches that are made of them.
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

/// The description of one field (a position in the tuples of all examples): whether it holds sequences, and their
/// padding.
struct Field {
  /// True for a sequence [T, ...], whose T may differ between examples. Batches pad it and hold its lengths.
  bool sequence = false;
  /// The value that pads shorter sequences at their end. For targets of a cross entropy use its `ignore_index`.
  double padding = 0;

  bool operator==(const Field&) const = default;
};

/// One field of all examples, held in memory. A tensor [N, ...] converts to a column: example i holds row i.
class Column {
 public:
  /// Makes a column of the rows of a tensor [N, ...]. Throws ShapeError for a tensor of rank 0.
  Column(Tensor rows);
  /// Makes a column of concatenated sequences: steps [sum of lengths, ...], lengths i64 or i32 [N]. Throws ShapeError
  /// when they do not fit each other and for a length below 0, DtypeError for lengths that are not integers.
  Column(Tensor steps, const Tensor& lengths, double padding);

  std::int64_t size() const { return size_; }
  const Field& field() const { return field_; }
  /// Returns a view of what example i, which must exist, holds.
  Tensor operator[](std::int64_t i) const;
  /// Returns the number of steps of example i, which must exist; 0 if the column does not hold sequences.
  std::int64_t length(std::int64_t i) const;
  /// Returns a hash of all elements and lengths of the column, for fingerprints.
  std::uint64_t hash() const;
  /// Returns the rows of several examples, [B, ...]. The column must not hold sequences.
  Tensor rows(std::span<const std::int64_t> examples) const;

 private:
  Tensor all_;
  Field field_;
  std::int64_t size_;
  std::vector<std::int64_t> begins_;  ///< first step of each sequence, then the end of the last one
};

/// Returns a column of concatenated sequences: steps [sum of lengths, ...], lengths i64 or i32 [N].
Column sequences(Tensor steps, const Tensor& lengths, double padding = 0);
/// Returns a column of sequences [T, ...] of different lengths. Throws ShapeError when they differ in other extents or
/// have rank 0, ValueError for none.
Column sequences(std::span<const Tensor> each, double padding = 0);

/// Examples joined along a new first axis; sequences are padded to the longest.
struct Batch {
  Tensors fields;   ///< each field of the examples: [B, ...], sequences [B, T, ...]
  Tensors lengths;  ///< lengths of each field: i64 [B] for sequences, undefined for others
  /// The replicas over which batch norms compute their statistics, if this is a part of a batch that several ranks
  /// train on (FitOptions::parallel); else null.
  const nn::Replicas* replicas = nullptr;

  std::int64_t size() const { return fields[0].shape()[0]; }  ///< returns the number of examples
  /// Returns the first field, by convention the input. Throws as `field`.
  const Tensor& x() const { return field(0); }
  /// Returns the second field, by convention the target. Throws as `field`.
  const Tensor& y() const { return field(1); }
  /// Returns field i. Throws ValueError for a field that does not exist.
  const Tensor& field(std::size_t i) const;
  /// Returns the lengths of the first field, and the replicas, for layers: `net(b.x(), b.context())`.
  nn::Context context() const { return {.lengths = lengths[0], .replicas = replicas}; }
  /// Returns the number of steps of the target [B, T, ...] that count, i64 [B]: its own lengths, or those of the first
  /// field if the target has the same T; undefined if all steps count.
  Tensor target_lengths() const;
};

/// The key of an example's random numbers: its place in the order of an epoch, and the loader's seed.
struct ExampleKey {
  std::uint64_t seed = 0;   ///< LoaderOptions::seed
  std::uint64_t epoch = 0;  ///< number of the epoch
  std::uint64_t place = 0;  ///< place of the example in the order of the epoch

  /// Returns the key for a named draw: draws with different names are independent.
  RandomKey operator()(std::string_view name) const;
};

/// Numbered examples, each a tuple of tensors: inputs, targets, and whatever else a step needs. It is a handle: copies
/// share the examples. Several threads may read it.
///
///   const train::Dataset points({x, y});                                    // row i of each tensor
///   const train::Dataset words({train::sequences(steps, lengths), labels});  // padded in batches
///   const train::Dataset waves(1000, [](std::int64_t i) { return Tensors{wave(i), target(i)}; });
class Dataset {
 public:
  /// The source of a set's examples, to derive from when the other constructors do not suffice. Several threads may
  /// call it at once.
  class Source {
   public:
    virtual ~Source() = default;
    virtual std::int64_t size() const = 0;
    virtual const std::vector<Field>& fields() const = 0;
    /// Returns example i, 0 <= i < size(). `key` is for random changes (`augment`).
    virtual Tensors example(std::int64_t i, const ExampleKey& key) const = 0;
    /// Returns the first extent of the longest sequence field of example i; 0 if it has none.
    virtual std::int64_t length(std::int64_t i) const;
    /// Returns a text that identifies these examples, for checkpoints: values in memory as a hash. By default: the
    /// types, and of up to 64 examples hashes of integers and means of floats to four digits.
    virtual std::string fingerprint() const;
    /// Returns several examples as a batch. By default they are made one by one and joined.
    virtual Batch batch(std::span<const std::int64_t> examples, const ExampleKey& key, std::int64_t least_length) const;
  };

  explicit Dataset(std::shared_ptr<const Source> source);
  /// Makes a set of columns of equal size. Throws ValueError for none, ShapeError for different sizes.
  Dataset(std::vector<Column> columns);
  Dataset(std::initializer_list<Column> columns) : Dataset(std::vector<Column>(columns)) {}
  /// Makes a set whose examples a function computes on demand. The function must return the same example for the same
  /// number, and several threads may call it. `fields` says which of its tensors are sequences; by default none is.
  /// Throws ValueError for a size below 0 and a null function.
  Dataset(std::int64_t size, std::function<Tensors(std::int64_t)> example, std::vector<Field> fields = {});
  /// Collects examples from a generator until it returns nullopt, and keeps them in memory.
  static Dataset collect(const std::function<std::optional<Tensors>()>& next, std::vector<Field> fields = {});

  std::int64_t size() const { return source_->size(); }
  const std::vector<Field>& fields() const { return source_->fields(); }
  /// Returns example i. Throws ShapeError unless 0 <= i < size().
  Tensors operator[](std::int64_t i) const;
  /// Returns the first extent of the longest sequence of example i; 0 without sequences. Throws as operator[].
  std::int64_t length(std::int64_t i) const;

  /// Returns a text that identifies this set: "200 examples: f32[24, 1], f32[1] (1f0c2d3e)". Of tensors in memory every
  /// value counts. Of examples that functions make, up to 64 are compared, their floats by means of four digits, which
  /// are the same on every processor; `~` marks such means.
  std::string fingerprint() const;

  /// Returns the set of the examples with these numbers, in that order; numbers may repeat. Throws ShapeError for a
  /// number that does not exist.
  Dataset subset(std::vector<std::int64_t> examples) const;
  /// Returns the set of the first `n` examples, or of all if there are fewer.
  Dataset first(std::int64_t n) const;
  /// Returns the set in which a function changes each example on demand. `fields` describes the examples after the
  /// change; by default the fields stay as they are. Throws ValueError for a null function.
  Dataset map(std::function<Tensors(const Tensors&)> f, std::vector<Field> fields = {}) const;
  /// Returns the set in which a function changes each example at random. Draws with the key depend on the seed, the
  /// epoch and the place in its order alone, not on the thread.
  ///
  ///   data.augment([](const Tensors& e, const train::ExampleKey& key) {
  ///     return Tensors{e[0] + normal(e[0].shape(), key("noise"), 0, 0.01), e[1]};
  ///   });
  Dataset augment(std::function<Tensors(const Tensors&, const ExampleKey&)> f) const;
  /// Returns the examples of this set followed by those of another. Throws ValueError when their fields differ.
  Dataset operator+(const Dataset& behind) const;

  /// Returns several examples as one batch. Throws ShapeError for no examples, a number that does not exist, and
  /// examples whose dtypes or shapes differ other than in the lengths of sequences.
  Batch batch(std::span<const std::int64_t> examples) const { return batch(examples, ExampleKey{}); }
  /// Returns several examples as one batch. `key` is the random key of the first one, for `augment`. Sequences are
  /// padded to the longest, or to `least_length` if that is more.
  Batch batch(std::span<const std::int64_t> examples, const ExampleKey& key, std::int64_t least_length = 0) const;
  /// Returns all examples as one batch.
  Batch all() const;

 private:
  std::shared_ptr<const Source> source_;
};

}  // namespace ferrite::train
