/// Reads TOML files by toml++, and refuses unknown keys.
#include "tool_config.h"

#include <map>
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "ferrite/io/suggest.h"
#include "ferrite/tensor/error.h"

namespace ferrite::tools {

struct Config::Table {
  std::string file, path;  ///< such as "run.toml" and "training"
  std::shared_ptr<const toml::table> root;
  const toml::table* here;  ///< null if the table is missing
  std::set<std::string, std::less<>> asked{};
  std::map<std::string, Config, std::less<>> tables{};

  const toml::node* find(std::string_view key) {
    asked.emplace(key);
    return here ? here->get(key) : nullptr;
  }
  std::string full(std::string_view key) const {
    return path.empty() ? std::string(key) : path + "." + std::string(key);
  }
};

namespace {

std::string line_of(const toml::node* node) {
  return node ? ":" + std::to_string(node->source().begin.line) : std::string();
}

}  // namespace

Config::Config(std::unique_ptr<Table> table) : table_(std::move(table)) {}
Config::Config(Config&&) noexcept = default;
Config& Config::operator=(Config&&) noexcept = default;
Config::~Config() = default;

Config Config::read(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) throw IoError(path.string() + ": there is no such file");
  try {
    auto root = std::make_shared<const toml::table>(toml::parse_file(path.string()));
    const toml::table* here = root.get();
    return Config(
        std::make_unique<Table>(Table{.file = path.string(), .path = {}, .root = std::move(root), .here = here}));
  } catch (const toml::parse_error& e) {
    throw ConfigError(path.string() + ":" + std::to_string(e.source().begin.line) + ": " +
                      std::string(e.description()));
  }
}

bool Config::has(std::string_view key) const { return table_->find(key) != nullptr; }

void Config::only_where(bool it_applies, std::string_view key, const std::string& otherwise) const {
  if (has(key) && !it_applies) refuse(key, otherwise);
}

Config& Config::table(std::string_view key) {
  const auto found = table_->tables.find(key);
  if (found != table_->tables.end()) return found->second;
  const toml::node* node = table_->find(key);
  if (node && !node->is_table()) refuse(key, "must be a table");
  return table_->tables
      .emplace(std::string(key), Config(std::make_unique<Table>(Table{.file = table_->file,
                                                                      .path = table_->full(key),
                                                                      .root = table_->root,
                                                                      .here = node ? node->as_table() : nullptr})))
      .first->second;
}

void Config::refuse(std::string_view key, const std::string& what) const {
  const toml::node* node = table_->here ? table_->here->get(key) : nullptr;
  throw ConfigError(table_->file + line_of(node ? node : table_->here) + ": " + table_->full(key) + ": " + what);
}

std::string Config::text(std::string_view key) {
  if (!has(key)) refuse(key, "is missing");
  return text(key, {});
}

std::string Config::text(std::string_view key, std::string otherwise) {
  const toml::node* node = table_->find(key);
  if (!node) return otherwise;
  if (!node->is_string()) refuse(key, "must be a text");
  return **node->as_string();
}

std::vector<std::string> Config::texts(std::string_view key) {
  const toml::node* node = table_->find(key);
  if (!node) return {};
  if (node->is_string()) return {**node->as_string()};
  std::vector<std::string> all;
  if (!node->is_array()) refuse(key, "must be a text or a list of texts");
  for (const toml::node& one : *node->as_array()) {
    if (!one.is_string()) refuse(key, "must be a text or a list of texts");
    all.push_back(**one.as_string());
  }
  return all;
}

std::int64_t Config::whole(std::string_view key, std::int64_t otherwise, std::int64_t least) {
  const toml::node* node = table_->find(key);
  if (!node) return otherwise;
  if (!node->is_integer()) refuse(key, "must be a whole number");
  const std::int64_t value = **node->as_integer();
  if (value < least) refuse(key, "must be at least " + std::to_string(least) + ", got " + std::to_string(value));
  return value;
}

std::vector<std::int64_t> Config::wholes(std::string_view key) {
  const toml::node* node = table_->find(key);
  if (!node) return {};
  if (!node->is_array()) refuse(key, "must be a list of whole numbers");
  std::vector<std::int64_t> all;
  for (const toml::node& one : *node->as_array()) {
    if (!one.is_integer()) refuse(key, "must be a list of whole numbers");
    all.push_back(**one.as_integer());
  }
  return all;
}

double Config::number(std::string_view key, double otherwise) {
  const toml::node* node = table_->find(key);
  if (!node) return otherwise;
  if (!node->is_number()) refuse(key, "must be a number");
  return *node->value<double>();
}

bool Config::flag(std::string_view key, bool otherwise) {
  const toml::node* node = table_->find(key);
  if (!node) return otherwise;
  if (!node->is_boolean()) refuse(key, "must be true or false");
  return **node->as_boolean();
}

std::string Config::one_of(std::string_view key, std::string otherwise, const std::vector<std::string_view>& known) {
  std::string chosen = text(key, std::move(otherwise));
  for (const std::string_view k : known)
    if (k == chosen) return chosen;
  const std::string_view near = io::detail::nearest(chosen, known);
  std::string list;
  for (const std::string_view k : known) list += (list.empty() ? "" : ", ") + std::string(k);
  refuse(key, "there is no '" + chosen + "'; " +
                  (near.empty() ? "there are " + list : "did you mean '" + std::string(near) + "'?"));
}

void Config::finish() const {
  if (!table_->here) return;
  const std::vector<std::string_view> known(table_->asked.begin(), table_->asked.end());
  for (const auto& [key, node] : *table_->here) {
    if (table_->asked.contains(key.str())) continue;
    const std::string_view near = io::detail::nearest(key.str(), known);
    std::string keys;
    for (const std::string_view k : known) keys += (keys.empty() ? "" : ", ") + std::string(k);
    refuse(key.str(),
           near.empty() ? "unknown key; there are " + keys : "unknown key; did you mean '" + std::string(near) + "'?");
  }
  for (const auto& [key, table] : table_->tables) table.finish();
}

}  // namespace ferrite::tools
