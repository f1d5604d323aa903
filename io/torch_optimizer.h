#pragma once
/// PyTorch's optimiser states: reading and writing files of `torch.save(optimizer.state_dict(), path)`.
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::io {

/// Loads the state of a PyTorch optimiser, so that training resumes where PyTorch stopped: moments, step counts and
/// learning rates, by group. Parameters are paired by their order in each group, as in PyTorch; moments of weights that
/// are transposed in files are transposed like them, f16 to f64 become the parameter's dtype. For a part of a
/// checkpoint: load_torch_optimizer(adam, read_torch(path, "optimizer")).
///
/// Options other than the learning rate must equal those of the file, and those that the file lacks must be off:
/// otherwise the next step would be neither PyTorch's nor the one that the program asks for. A momentum that a schedule
/// of the optimiser changes is taken from the file. Both libraries count steps for each parameter.
///
/// Throws IoError, its message beginning with the file, for another number of groups or parameters, other options or
/// shapes, states that are missing, do not fit or that the optimiser does not have; ValueError for an optimiser that
/// PyTorch does not have (Lion). The optimiser is then unchanged.
void load_torch_optimizer(nn::Optimizer& optimizer, const TensorFile& file);
/// Loads the state of a PyTorch optimiser from the part `key` of a file. Throws as the other form and as read_torch.
void load_torch_optimizer(nn::Optimizer& optimizer, const std::filesystem::path& path, std::string_view key = "");

/// Returns the bytes of a file that `optimizer.load_state_dict(torch.load(path, weights_only=True))` loads, for an
/// optimiser of the same class whose groups have the same parameters in the same order. Throws ValueError for an
/// optimiser that PyTorch does not have.
std::vector<std::byte> serialize_torch_optimizer(const nn::Optimizer& optimizer);

/// Writes the state of an optimiser for PyTorch; an old file is replaced as a whole or not at all (AtomicFile). Throws
/// as serialize_torch_optimizer, and IoError where the file cannot be written.
void write_torch_optimizer(const std::filesystem::path& path, const nn::Optimizer& optimizer);

}  // namespace ferrite::io
