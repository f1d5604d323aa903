#pragma once
/// The commands of `ferrite`.
#include <filesystem>
#include <iosfwd>

/// What the `ferrite` command does, without its command line: results go to `out`.
namespace ferrite::tools {

/// Names, dtypes, shapes and sizes of all tensors, the layers that they tell, metadata.
void info(const std::filesystem::path& path, std::ostream& out);

/// The instruction set in use, and those that FERRITE_ISA may name.
void about(std::ostream& out);

/// Writes the tensors of one file in the format that the other's name ends with, in the dtypes that they are stored in;
/// `widen` makes f32 of F16 and BF16, i32 of I8. What has no dtype here becomes wider in any case (U8, I16), and `out`
/// says so. `progress` gets a line on long work.
void convert(const std::filesystem::path& from, const std::filesystem::path& to, std::ostream& out, bool widen,
             std::ostream* progress);

/// Compares two files tensor by tensor: the largest difference, and relative to max(1, largest |b|). True: all names
/// and shapes agree and no difference is above the tolerance.
bool diff(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance, std::ostream& out);

}  // namespace ferrite::tools
