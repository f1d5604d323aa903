// A small transformer from a GGUF file, quantised to 8 bits, writes stories, word by word, from its cache of keys.
#include <ferrite/ferrite.h>
#include <ferrite/io/gguf.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

namespace {

/// Returns a number from the file's metadata.
std::int64_t number(const io::GgufMetadata& metadata, const std::string& key) {
  const auto at = metadata.find(key);
  if (at == metadata.end() || !std::holds_alternative<std::uint32_t>(at->second))
    throw IoError("story: the file has no number '" + key + "'");
  return std::get<std::uint32_t>(at->second);
}

}  // namespace

int main(int argc, char** argv) try {
  std::string path = FERRITE_DATA "/story.gguf";
  std::uint64_t seed = 0, stories = 3;
  double temperature = 0.8;
  CLI::App app("Writes stories by a transformer that scripts/make_story.py made");
  app.add_option("FILE", path, "GGUF"), app.add_option("--seed", seed), app.add_option("--stories", stories);
  app.add_option("--temperature", temperature);
  CLI11_PARSE(app, argc, argv);

  const io::GgufMetadata metadata = io::read_gguf_metadata(path);
  const auto words = std::get<std::vector<std::string>>(metadata.at("tokenizer.ggml.tokens"));
  const std::int64_t longest = number(metadata, "story.context_length");
  nn::TransformerLayerOptions block{.dim_feedforward = number(metadata, "story.feed_forward_length"),
                                    .activation = "gelu"};
  block.norm_first = block.causal = true, block.capacity = longest;
  const auto heads = static_cast<int>(number(metadata, "story.attention.head_count"));
  dsl::Builder builder = dsl::tokens(std::ssize(words)).embedding(number(metadata, "story.embedding_length"));
  builder.positions(longest).repeat(static_cast<int>(number(metadata, "story.block_count")),
                                    [&](dsl::Builder& b) { b.transformer(heads, block); });
  auto net = builder.layer_norm().linear(std::ssize(words)).build(/*seed=*/0);
  io::load(net, io::read_gguf(path));  // blocks of 8 bits become floats

  net.eval();
  nn::Stream stream = net.stream();
  for (std::uint64_t story = 0; story < stories; ++story, stream.reset()) {
    const nn::GenerateOptions options{
        .length = longest - 1, .stop = 0, .sampling = {.temperature = temperature}, .seed = seed, .sequence = story};
    const Tensor told = nn::generate(stream, Tensor::from<std::int64_t>({0}), options);
    for (const std::int64_t word : told.to_vector<std::int64_t>()) {
      const std::string& text = words[static_cast<std::size_t>(word)];
      std::cout << text << (text == "." ? "\n" : " ");
    }
    std::cout << '\n';
  }
  return 0;
} catch (const std::exception& e) {
  std::cerr << "story: " << e.what() << '\n';
  return 1;
}
