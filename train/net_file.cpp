/// Files of whole nets: the format is recognised, its reader does the rest.
#include "ferrite/train/net_file.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "ferrite/io/guitarml.h"
#include "ferrite/io/module_file.h"
#include "ferrite/io/nam.h"
#include "ferrite/io/rtneural.h"
#include "ferrite/io/safetensors.h"
#include "ferrite/io/text_file.h"
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

/// Returns the net that the words in a file's metadata describe, with the file's weights.
dsl::Network network_in(const io::TensorFile& file, std::string_view where) {
  const io::Metadata metadata = file.metadata();
  const auto words = metadata.find(kWords);
  if (words == metadata.end())
    throw IoError(std::string(where) + ": does not say what net it is of: the metadata " + kWords +
                  " is missing; train::save_net and `ferrite train` write it");
  dsl::Network net = parse_words(words->second).build(/*seed=*/0);
  io::load(net, file);
  net.eval();
  return net;
}

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Whether a file begins as JSON does; safetensors files begin with a length of 8 bytes.
bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{' && !(text.size() > 8 && text[8] == '{' && text[7] == 0);
}

}  // namespace

NetFile parse_net(std::span<const std::byte> bytes, std::string_view where) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!is_json(text)) {
    const io::TensorFile file = io::parse_safetensors(bytes, where);
    const std::optional<double> rate = rate_in(file.metadata(), where);
    return {std::make_unique<dsl::Network>(network_in(file, where)), "ferrite", rate};
  }
  NetFile result;
  if (text.find("\"model_data\"") != std::string_view::npos) {
    result = {io::parse_guitarml(bytes, where), "guitarml"};
  } else if (text.find("\"architecture\"") != std::string_view::npos) {
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
  return network_in(io::read_safetensors(path), path.string());
}

void save_net(const dsl::Network& net, const std::string& words, const std::filesystem::path& path,
              const SaveNetOptions& options) {
  const auto refuse = [](const std::string& what) { throw ValueError("save_net: " + what); };
  const dsl::Network described = parse_words(words).build(/*seed=*/0);
  const auto same = [](const auto& a, const auto& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](const auto& x, const auto& y) {
             return x.name == y.name && x.variable.shape() == y.variable.shape();
           });
  };
  if (!same(net.named_parameters(), described.named_parameters()) ||
      !same(net.named_buffers(), described.named_buffers()))
    refuse("the words do not describe the net; they give\n" + described.summary());
  io::Metadata metadata{{kWords, words}};
  if (options.rate) {
    if (!(std::isfinite(*options.rate) && *options.rate > 0)) refuse("the rate must be positive");
    char digits[32];
    metadata[kRate] = std::string(digits, std::to_chars(digits, digits + sizeof digits, *options.rate).ptr);
  }
  io::save(net, path, {.metadata = metadata});
}

}  // namespace ferrite::train
