#pragma once
/// What the commands of `ferrite` do with ONNX files. In a build without the component onnx they throw ValueError,
/// which says so.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

#include "bench.h"

namespace ferrite::tools {

/// Whether a name ends with .onnx.
bool is_onnx(const std::filesystem::path& path);

/// Throws what commands say where the build has no ONNX.
[[noreturn]] void refuse_onnx(const std::filesystem::path& path);
/// The extent of an axis as a model's input tells it: none where the file leaves it open.
std::optional<std::int64_t> extent_of(const std::string& axis);

/// Inputs, outputs, parameters, operations of a model.
void info_onnx(const std::filesystem::path& path, std::ostream& out);
/// Runs a model: `input` is an array (.npy) for a model of one input, or tensors by the names of the inputs (.npz,
/// .safetensors); the first output goes to .npy, all to .npz and .safetensors by their names, or they are printed.
void run_onnx(const std::filesystem::path& path, const std::filesystem::path& input,
              const std::filesystem::path& output, std::ostream& out);
/// Writes the parameters of a model in another format, by their names.
void convert_onnx(const std::filesystem::path& from, const std::filesystem::path& to, std::ostream& out);
/// Times a model, eager or compiled, on random numbers: first extents that the file leaves open are the batch, others
/// the steps; integers are 0.
void bench_onnx(const std::filesystem::path& path, const BenchOptions& options, std::ostream& out);

}  // namespace ferrite::tools
