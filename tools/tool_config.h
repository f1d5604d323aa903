#pragma once
/// The configuration of `ferrite train`: a TOML file, each key of which is read once.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ferrite/tensor/error.h"

namespace ferrite::tools {

/// Thrown for a configuration that is refused; names the file, line and key.
class ConfigError : public ValueError {
 public:
  using ValueError::ValueError;
};

/// A table of a TOML file (toml.io/en/v1.0.0), read key by key. `finish` refuses keys that were never read, so that a
/// misspelt key is not silently ignored. Errors are ConfigErrors that name file, line and key.
class Config {
 public:
  /// Reads a file. Throws IoError for a file that cannot be read, ValueError for one that is not TOML.
  static Config read(const std::filesystem::path& path);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  bool has(std::string_view key) const;
  /// Refuses a key that is present although it has no effect: "training.momentum: is for sgd".
  void only_where(bool it_applies, std::string_view key, const std::string& otherwise) const;
  /// Returns a table in this one; an empty table if the key is missing.
  Config& table(std::string_view key);

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string otherwise);
  std::vector<std::string> texts(std::string_view key);  ///< one text or a list of them; empty if missing
  std::int64_t whole(std::string_view key, std::int64_t otherwise, std::int64_t least);
  std::vector<std::int64_t> wholes(std::string_view key);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);

  /// Refuses a value: "run.toml:12: training.optimizer: there is no 'adm'; did you mean 'adam'?".
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;
  /// Returns the result of f, which uses the value of a key. An Error that f throws is thrown again as one that names
  /// file, line and key.
  template <class F>
  auto with(std::string_view key, F f) const {
    try {
      return f();
    } catch (const ConfigError&) {
      throw;
    } catch (const IoError&) {
      throw;
    } catch (const Error& e) {
      refuse(key, e.what());
    }
  }
  /// Returns a text, and refuses one that is not in `known`.
  std::string one_of(std::string_view key, std::string otherwise, const std::vector<std::string_view>& known);
  /// Refuses every key, of this table and of those in it, that was never read.
  void finish() const;

 private:
  struct Table;
  explicit Config(std::unique_ptr<Table> table);
  std::unique_ptr<Table> table_;
};

}  // namespace ferrite::tools
