#pragma once
/// How fingerprints are made of the parts of a training and of the examples of a source, and compared.
#include <cstdint>
#include <string>
#include <string_view>

#include "ferrite/tensor/tensor.h"
#include "ferrite/train/checkpoint.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train::detail {

/// The shortest decimal that reads back as the same double.
std::string exact(double value);

/// The hash that `hash_of` begins with.
inline constexpr std::uint64_t kHash = 14695981039346656037U;

/// Continues a hash with the bits of a tensor: FNV-1a over words of eight bytes.
std::uint64_t hash_of(const Tensor& x, std::uint64_t h = kHash);

/// Continues a hash with a type and the bits of a tensor.
std::uint64_t typed_hash_of(const Tensor& x, std::uint64_t h = kHash);

/// Eight hexadecimal digits of a hash.
std::string digits_of(std::uint64_t hash);

/// Up to eight numbers as text; of more, how many they are and a hash.
std::string text_of(const std::vector<double>& values);

/// The entries of a model: its layers with their options, under "net.<path>".
void add_net(Fingerprint& all, const nn::Module& model);

/// The entries of everything that parts tell of themselves, and `TrainingParts::also`.
Fingerprint fingerprint_of(const TrainingParts& parts);

/// What a schedule is: its summary, or, of a function, rates at steps up to `state.steps`, which it has given before.
std::string schedule_text(const nn::Schedule& schedule, const nn::ScheduleState& state);

/// What differs between the fingerprint of a file and that of this training. An entry that only the file has counts
/// where `everything` is compared, or where this training has an entry of the same first part.
std::vector<Change> differences(const Fingerprint& before, const Fingerprint& now, bool everything);

/// Whether `allowed` names the entry or a part that it belongs to: "optimizer" allows "optimizer.betas".
bool allows(const std::vector<std::string>& allowed, std::string_view name);

/// The types of an example, "f32[?, 2], i64[]"; empty of no examples.
std::string types_of(const Dataset::Source& source);

/// " ~0.2913 9c2e01ab": for each field of up to 64 examples the weighted mean of |x| of floats, to four digits, the
/// hash of others.
std::string samples_of(const Dataset::Source& source);

}  // namespace ferrite::train::detail
