/// Files of whole nets: the format is recognised, its reader does the rest.
#include "ferrite/train/net_file.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <set>
#include <utility>

#include "ferrite/io/any_file.h"
#include "ferrite/io/guitarml.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/text_file.h"
#include "ferrite/tensor/storage_limit.h"
#include "ferrite/train/words.h"

namespace ferrite::train {

namespace {

constexpr const char* kWords = "ferrite.net";
constexpr const char* kRate = "ferrite.rate";

std::optional<double> rate_in(const io::Metadata& metadata, std::string_view where) {
  const auto found = metadata.find(kRate);
  if (found == metadata.end()) return std::nullopt;
  const std::string& text = found->second;
  double rate = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), rate);
  if (fault != std::errc() || end != text.data() + text.size() || !(std::isfinite(rate) && rate > 0))
    throw IoError(std::string(where) + ": the metadata " + kRate + " is not a positive number: '" + text + "'");
  return rate;
}

/// Returns the net that the words in a file's metadata describe, with the file's weights. A file of so many bytes
/// cannot have weights with more elements.
dsl::Network network_in(const io::TensorFile& file, std::uintmax_t bytes, std::string_view where) {
  const io::Metadata metadata = file.metadata();
  const auto words = metadata.find(kWords);
  if (words == metadata.end())
    throw IoError(std::string(where) + ": does not say what net it is of: the metadata " + kWords +
                  " is missing; train::save_net and `ferrite train` write it");
  dsl::Network net = [&] {
    try {
      const ferrite::detail::StorageLimit limit(static_cast<std::int64_t>(std::max<std::uintmax_t>(bytes, 1U << 22U)));
      return parse_words(words->second).build(/*seed=*/0);
    } catch (const Error& e) {
      throw IoError(std::string(where) + ": the metadata " + kWords + " describes no net of this file: " + e.what());
    }
  }();
  io::load(net, file);
  net.eval();
  return net;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Returns the keys of the outermost object of a JSON text, for what looks like one.
std::set<std::string_view> outer_keys(std::string_view text) {
  std::set<std::string_view> keys;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') ++depth;
    if (text[i] == '}' || text[i] == ']') --depth;
    if (text[i] != '"') continue;
    const std::size_t begin = ++i;
    while (i < text.size() && text[i] != '"') i += text[i] == '\\' ? 2U : 1U;
    const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    if (depth == 1 && next != std::string_view::npos && text[next] == ':') keys.insert(text.substr(begin, i - begin));
  }
  return keys;
}

}  // namespace

NetFile parse_net(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (io::file_format(bytes, bytes.size()) != io::FileFormat::json) {
    const io::TensorFile file = io::parse_safetensors(bytes, where);
    const std::optional<double> rate = rate_in(file.metadata(), where);
    return {std::make_unique<dsl::Network>(network_in(file, bytes.size(), where)), "ferrite", rate};
  }
  const std::set<std::string_view> keys = outer_keys(text);
  NetFile result;
  if (keys.contains("model_data")) {
    result = {io::parse_guitarml(bytes, where), "guitarml"};
  } else if (keys.contains("architecture")) {
    io::NamModel model = io::parse_nam(bytes, where);
    result = {std::move(model.layer), "nam", model.sample_rate};
  } else {
    result = {io::parse_rtneural(bytes, where), "rtneural"};
  }
  result.net->eval();
  return result;
}

NetFile read_net(const std::filesystem::path& path) { return parse_net(bytes_of(io::read_text(path)), path.string()); }

dsl::Network read_network(const std::filesystem::path& path) {
  const io::TensorFile file = io::read_safetensors(path);
  return network_in(file, std::filesystem::file_size(path), path.string());
}

void save_net(const dsl::Network& net, const std::string& words, const std::filesystem::path& path,
              const SaveNetOptions& options) {
  const auto refuse = [](const std::string& what) { throw ValueError("save_net: " + what); };
  const dsl::Network described = parse_words(words).build(/*seed=*/0);
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
             return x.name == y.name && x.variable.spec() == y.variable.spec();
           });
  };
  const bool same_settings = std::ranges::equal(net.settings(), described.settings(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.value == y.value;
  });
  if (net.summary() != described.summary() || !same_settings ||
      !same(net.named_parameters(), described.named_parameters()) ||
      !same(net.named_buffers(), described.named_buffers()))
    refuse("the words do not describe the net; they give\n" + described.summary());
  io::Metadata metadata = options.metadata;
  for (const auto& [key, value] : metadata)
    if (key.starts_with("ferrite.")) refuse("the metadata '" + key + "' is of the kind that it writes itself");
  metadata[kWords] = words;
  if (options.rate) {
    if (!(std::isfinite(*options.rate) && *options.rate > 0)) refuse("the rate must be positive");
    char digits[32];
    metadata[kRate] = std::string(digits, std::to_chars(digits, digits + sizeof digits, *options.rate).ptr);
  }
  io::save(net, path, {.metadata = metadata});
}

}  // namespace ferrite::train
