#pragma once
/// Fingerprints of the parts of a training and of the examples of a source: making and comparing them.
#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"
#include "ferrite/train/checkpoint.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {

/// Returns the shortest decimal that reads back as the same double.
std::string exact(double value);

/// The initial value of a hash.
inline constexpr std::uint64_t kHash = 14695981039346656037U;

/// Continues a hash with the bits of a tensor: FNV-1a over words of eight bytes.
std::uint64_t hash_of(const Tensor& x, std::uint64_t h = kHash);

/// Continues a hash with a type and the bits of a tensor.
std::uint64_t typed_hash_of(const Tensor& x, std::uint64_t h = kHash);

/// Returns a hash folded to eight hexadecimal digits.
std::string digits_of(std::uint64_t hash);

/// Returns up to eight numbers as text; for more, their count and a hash.
std::string text_of(const std::vector<double>& values);

/// Adds the entries of a model: its layers with their options, as "net.<path>".
void add_net(Fingerprint& all, const nn::Module& model);

/// Returns the entries of the model, optimisers and averages of a training, and `TrainingParts::also`.
Fingerprint fingerprint_of(const TrainingParts& parts);

/// Returns a schedule as text: its summary or, for a function, some of its rates at steps up to `state.steps`.
std::string schedule_text(const nn::Schedule& schedule, const nn::ScheduleState& state);

/// Returns the differences between the fingerprint of a file and that of this training. An entry that only the file has
/// counts if `everything` is compared, or if this training has an entry with the same first part.
std::vector<Change> differences(const Fingerprint& before, const Fingerprint& now, bool everything);

/// Returns whether `allowed` names the entry or a part that it belongs to: "optimizer" allows "optimizer.betas".
bool allows(const std::vector<std::string>& allowed, std::string_view name);

/// Returns the types of the first example, "f32[?, 2], i64[]"; empty if there are no examples.
std::string types_of(const Dataset::Source& source);

/// Returns a sample of each field over up to 64 examples, " ~0.2913 9c2e01ab": for floats the weighted mean of |x| to
/// four digits, for others a hash.
std::string samples_of(const Dataset::Source& source);

}  // namespace ferrite::train::detail
