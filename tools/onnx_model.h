#pragma once
/// ONNX files in the commands of `ferrite`. In a build without the component onnx these functions throw ValueError,
/// which says so.
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

#include "bench.h"

namespace ferrite::tools {

/// Returns whether a file name ends with .onnx.
bool is_onnx(const std::filesystem::path& path);

/// Throws the ValueError of a build without ONNX.
[[noreturn]] void refuse_onnx(const std::filesystem::path& path);
/// Returns the extent of an axis of a model's input; nullopt where the file leaves it open.
std::optional<std::int64_t> extent_of(const std::string& axis);

/// Prints the inputs, outputs, parameters and operations of a model.
void info_onnx(const std::filesystem::path& path, std::ostream& out);
/// Runs a model. `input` is an array (.npy) for a model with one input, or tensors by the names of the inputs (.npz,
/// .safetensors). The first output is written to .npy, all outputs to .npz and .safetensors by their names; without a
/// file they are printed.
void run_onnx(const std::filesystem::path& path, const std::filesystem::path& input,
              const std::filesystem::path& output, std::ostream& out);
/// Writes the parameters of a model in another format, by their names.
void convert_onnx(const std::filesystem::path& from, const std::filesystem::path& to, std::ostream& out);
/// Times a model, eager or compiled, on random numbers. First extents that the file leaves open are the batch, others
/// the steps; integers are 0.
void bench_onnx(const std::filesystem::path& path, const BenchOptions& options, std::ostream& out);

}  // namespace ferrite::tools
