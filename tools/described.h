#pragma once
/// A command line as data, from which completion and the manual page are made.
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace ferrite::tools {

/// An option of a command, or one of its words.
struct DescribedOption {
  std::vector<std::string> names{};  ///< "-h", "--help"; without dashes for a word
  std::string description{};
  std::string type{};  ///< as the help writes it; empty for flags
  std::string otherwise{};
  std::vector<std::string> choices{};  ///< the words a and b of a type {a,b}
  std::vector<std::string> endings{};  ///< the endings .a and .b of a type FILE(.a|.b)
  bool is_word = false, is_file = false, is_required = false;

  bool takes_value() const { return !is_word && !type.empty(); }
};

/// A command with its options and words.
struct DescribedCommand {
  std::string name{}, description{};
  std::vector<DescribedOption> options{};  ///< in the order of the help, including words
};

/// Returns the command itself, without a name, followed by its subcommands.
std::vector<DescribedCommand> described(const CLI::App& app);

}  // namespace ferrite::tools
