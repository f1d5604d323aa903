/// Reads names, descriptions and types from a CLI::App.
#include "described.h"

#include <algorithm>

namespace ferrite::tools {
namespace {

/// Splits a text at a separator: "a|b" -> a, b.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.size(), text.find(separator, at));
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

DescribedOption described_option(const CLI::Option& o) {
  DescribedOption d{.description = o.get_description(), .is_word = o.get_positional(), .is_required = o.get_required()};
  if (d.is_word) d.names = {o.get_name(true)};
  for (const std::string& name : o.get_snames()) d.names.push_back("-" + name);
  for (const std::string& name : o.get_lnames()) d.names.push_back("--" + name);
  if (o.get_items_expected_max() == 0) return d;
  d.otherwise = o.get_default_str();
  d.type = o.get_type_name();
  d.type = d.type.substr(0, d.type.find(':'));  // without the text that a check adds
  if (d.type.starts_with('{')) d.choices = parts_of(d.type.substr(1, d.type.size() - 2), ',');
  d.is_file = d.type.starts_with("FILE");
  if (d.type.starts_with("FILE(")) d.endings = parts_of(d.type.substr(5, d.type.size() - 6), '|');
  return d;
}

DescribedCommand described_command(const CLI::App& app, bool named) {
  DescribedCommand d{.name = named ? app.get_name() : "", .description = app.get_description()};
  for (const CLI::Option* o : app.get_options()) d.options.push_back(described_option(*o));
  return d;
}

}  // namespace

std::vector<DescribedCommand> described(const CLI::App& app) {
  std::vector<DescribedCommand> all = {described_command(app, false)};
  for (const CLI::App* command : app.get_subcommands({})) all.push_back(described_command(*command, true));
  return all;
}

}  // namespace ferrite::tools
