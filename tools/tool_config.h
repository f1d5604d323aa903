#pragma once
/// The configuration of `ferrite train`: a TOML file, each key of which is asked for once.
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

/// What a configuration is refused for, with file, line and key.
class ConfigError : public ValueError {
 public:
  using ValueError::ValueError;
};

/// A table of a TOML file (toml.io/en/v1.0.0), read key by key. What nobody has asked for when `finish` is called is
/// refused: a key that is misspelt must not pass in silence. Errors are ConfigErrors that name file, line and key.
class Config {
 public:
  /// Throws IoError for a file that cannot be read, ValueError for one that is no TOML.
  static Config read(const std::filesystem::path& path);
  Config(Config&&) noexcept;
  Config& operator=(Config&&) noexcept;
  ~Config();

  bool has(std::string_view key) const;
  /// Refuses a key that is there where it has no effect: "training.momentum: is for sgd".
  void only_where(bool it_applies, std::string_view key, const std::string& otherwise) const;
  /// A table in this one; an empty one where it is missing.
  Config& table(std::string_view key);

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string otherwise);
  std::vector<std::string> texts(std::string_view key);  ///< one text or a list of them; none where it is missing
  std::int64_t whole(std::string_view key, std::int64_t otherwise, std::int64_t least);
  std::vector<std::int64_t> wholes(std::string_view key);
  double number(std::string_view key, double otherwise);
  bool flag(std::string_view key, bool otherwise);

  /// Refuses a value: "run.toml:12: training.optimizer: there is no 'adm'; did you mean 'adam'?".
  [[noreturn]] void refuse(std::string_view key, const std::string& what) const;
  /// What a function gives that uses the value of a key: what it refuses is refused with file, line and key.
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
  /// Refuses a text that is none of these.
  std::string one_of(std::string_view key, std::string otherwise, const std::vector<std::string_view>& known);
  /// Refuses every key, of this table and of those in it, that was never asked for.
  void finish() const;

 private:
  struct Table;
  explicit Config(std::unique_ptr<Table> table);
  std::unique_ptr<Table> table_;
};

}  // namespace ferrite::tools
