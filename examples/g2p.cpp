// Converts words to phonemes with the GRUs that g2p-en trained in PyTorch: scripts/example-data fetches them.
#include <ferrite/ferrite.h>

#include <CLI/CLI.hpp>
#include <iostream>

using namespace ferrite;

constexpr std::int64_t kUnknown = 1, kBegin = 2, kStop = 3, kMostPhonemes = 20;
constexpr const char* kPhonemes =
    "<pad> <unk> <s> </s> AA0 AA1 AA2 AE0 AE1 AE2 AH0 AH1 AH2 AO0 AO1 AO2 AW0 AW1 AW2 AY0 AY1 AY2 B CH D DH EH0 EH1 "
    "EH2 "
    "ER0 ER1 ER2 EY0 EY1 EY2 F G HH IH0 IH1 IH2 IY0 IY1 IY2 JH K L M N NG OW0 OW1 OW2 OY0 OY1 OY2 P R S SH T TH UH0 "
    "UH1 "
    "UH2 UW UW0 UW1 UW2 V W Y Z ZH";

/// Letters in, phonemes out: an encoder reads the word, a decoder begins with its last state and writes.
struct Pronouncer : nn::Module {
  nn::Embedding letters{29, 256};
  nn::Gru encoder{256, 256};
  nn::Embedding phonemes{74, 256};
  nn::GruCell decoder{256, 256};
  nn::Linear head{256, 74};

  std::vector<std::string> names = CLI::detail::split(kPhonemes, ' ');

  Pronouncer() {
    adopt("letters", letters), adopt("encoder", encoder);
    adopt("phonemes", phonemes), adopt("decoder", decoder), adopt("head", head);
  }
  std::string operator()(const std::string& word) const {
    std::vector<std::int64_t> tokens;
    for (const char c : word) tokens.push_back(c >= 'a' && c <= 'z' ? c - 'a' + 3 : kUnknown);
    tokens.push_back(2);  // the end of a word
    Tensor h = encoder.run(letters(Tensor::from(tokens, {1, std::ssize(tokens)}))).state;
    std::string text;
    std::int64_t last = kBegin;
    for (std::int64_t i = 0; i < kMostPhonemes; ++i) {
      h = decoder(phonemes(Tensor::from({last})), h);
      last = argmax(head(h)).item<std::int64_t>();
      if (last == kStop) break;
      text += (text.empty() ? "" : " ") + names[static_cast<std::size_t>(last)];
    }
    return text;
  }
};

/// Returns our name for an array of the package.
std::string our_name(std::string_view theirs) {
  static const std::map<std::string, std::string, std::less<>> names = {{"enc_emb", "letters.weight"},
                                                                        {"enc_w_ih", "encoder.weight_ih_l0"},
                                                                        {"enc_w_hh", "encoder.weight_hh_l0"},
                                                                        {"enc_b_ih", "encoder.bias_ih_l0"},
                                                                        {"enc_b_hh", "encoder.bias_hh_l0"},
                                                                        {"dec_emb", "phonemes.weight"},
                                                                        {"dec_w_ih", "decoder.weight_ih"},
                                                                        {"dec_w_hh", "decoder.weight_hh"},
                                                                        {"dec_b_ih", "decoder.bias_ih"},
                                                                        {"dec_b_hh", "decoder.bias_hh"},
                                                                        {"fc_w", "head.weight"},
                                                                        {"fc_b", "head.bias"}};
  return names.contains(theirs) ? names.find(theirs)->second : std::string(theirs);
}

int main(int argc, char** argv) try {
  CLI::App app("Words to phonemes (ARPAbet), by the network of the package g2p-en");
  std::vector<std::string> words = {"recurrent", "tensor"};
  std::string weights = FERRITE_BUILD "/example-data/g2p.npz";
  app.add_option("WORDS", words, "Words in lower case");
  app.add_option("--weights", weights, "The package's arrays; scripts/example-data fetches them")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Pronouncer pronounce;
  io::load(pronounce, io::read_npz(weights).renamed(our_name));
  for (const std::string& word : words) std::cout << pronounce(word) << '\n';
} catch (const std::exception& e) {
  std::cerr << "g2p: " << e.what() << '\n';
  return 1;
}
