#pragma once
/// The sizes of a WaveNet in a `.nam` file, read and written.
#include <string>

#include "ferrite/io/nam/document.h"
#include "ferrite/nn/layers/wavenet.h"

namespace ferrite::io::detail::nam {

/// What `config` says, but for head_scale, which is the last of the weights. Throws IoError for what is not supported
/// and for sizes that do not fit.
nn::WavenetOptions wavenet_options(Object config);

/// The object `config`. `newer` becomes true where it has keys that files of version 0.5 do not have. Throws IoError
/// beginning with `where` for an activation that the format does not have.
std::string config_of(const nn::WavenetOptions& options, std::string_view where, bool& newer);

/// A number in the fewest digits that read back as the same f64, with a sign for -0.
void append_number(std::string& out, double value);

}  // namespace ferrite::io::detail::nam
