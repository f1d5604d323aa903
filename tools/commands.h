#pragma once
/// The commands `ferrite info`, `about`, `convert` and `diff`.
#include <filesystem>
#include <iosfwd>

/// The functions that the `ferrite` command calls, without its command line: results are written to `out`.
namespace ferrite::tools {

/// Prints the names, dtypes, shapes and sizes of all tensors of a file, the layers recognised in them, and the
/// metadata.
void info(const std::filesystem::path& path, std::ostream& out);

/// Prints the instruction set in use, and those that FERRITE_ISA may name.
void about(std::ostream& out);

/// Writes the tensors of `from` to `to` in the format that its ending names, in the dtypes in which they are stored.
/// `widen` converts F16 and BF16 to f32, I8 to i32. Tensors without a matching dtype are always widened (U8, I16);
/// `out` says so. `progress` gets a line during long work.
void convert(const std::filesystem::path& from, const std::filesystem::path& to, std::ostream& out, bool widen,
             std::ostream* progress);

/// Compares two files tensor by tensor and prints the largest difference of each, also relative to max(1, largest |b|).
/// Returns whether all names and shapes agree and no relative difference exceeds the tolerance.
bool diff(const std::filesystem::path& a, const std::filesystem::path& b, double tolerance, std::ostream& out);

}  // namespace ferrite::tools
