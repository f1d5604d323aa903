#pragma once
/// PyTorch's states of optimisers: reading `torch.save(optimizer.state_dict(), path)`, and writing it.
#include <cstddef>
#include <filesystem>
#include <string_view>
#include <vector>

#include "ferrite/io/tensor_file.h"
#include "ferrite/nn/optim/optimizer.h"

namespace ferrite::io {

/// Gives an optimiser the state of one of PyTorch's, so that it goes on where that one stopped: moments, counts of
/// steps and learning rates, by group. Parameters are paired by their order in each group, as PyTorch does; moments of
/// weights that are transposed in files are transposed like them, f16 to f64 become the parameter's dtype. For a part
/// of a checkpoint: load_torch_optimizer(adam, read_torch(path, "optimizer")).
///
/// Options other than the learning rate must be those of the file, missing ones off: otherwise the next step would be
/// neither PyTorch's nor what the program says. A momentum that a schedule of the optimiser changes is taken from the
/// file. Steps are counted for each parameter, here and there.
///
/// Throws IoError, its message beginning with the file, for another number of groups or parameters, other options or
/// shapes, states that are missing, do not fit or that the optimiser does not have; ValueError for an optimiser that
/// PyTorch does not have (Lion). Nothing is changed then.
void load_torch_optimizer(nn::Optimizer& optimizer, const TensorFile& file);
void load_torch_optimizer(nn::Optimizer& optimizer, const std::filesystem::path& path, std::string_view key = "");

/// The bytes of a file that `optimizer.load_state_dict(torch.load(path, weights_only=True))` takes, for an optimiser of
/// the same class whose groups have the same parameters in the same order. Throws ValueError for an optimiser that
/// PyTorch does not have.
std::vector<std::byte> serialize_torch_optimizer(const nn::Optimizer& optimizer);

/// Writes that file so that an old one is replaced as a whole or not at all (AtomicFile). Throws IoError.
void write_torch_optimizer(const std::filesystem::path& path, const nn::Optimizer& optimizer);

}  // namespace ferrite::io
