#pragma once
/// A command line as data: what completion and the manual page say of it.
#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace ferrite::tools {

/// An option, or a word behind the command.
struct DescribedOption {
  std::vector<std::string> names{};  ///< "-h", "--help"; one without dashes for a word
  std::string description{};
  std::string type{};  ///< as the help writes it; empty for flags
  std::string otherwise{};
  std::vector<std::string> choices{};  ///< of {a,b}
  std::vector<std::string> endings{};  ///< of FILE(.a|.b)
  bool is_word = false, is_file = false, is_required = false;

  bool takes_value() const { return !is_word && !type.empty(); }
};

struct DescribedCommand {
  std::string name{}, description{};
  std::vector<DescribedOption> options{};  ///< in the order of the help, words among them
};

/// The command itself, without a name, and then its subcommands.
std::vector<DescribedCommand> described(const CLI::App& app);

}  // namespace ferrite::tools
