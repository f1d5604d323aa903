// NeuralAudio on .nam nets, as bench/compare/nam.py asks for them.
#include <NeuralAudio/NeuralModel.h>

#include <filesystem>
#include <memory>
#include <stdexcept>

#include "stream_peer.h"

int main(int count, char** words) {
  return serve(count, words, [](const char* path, int block) {
    NeuralAudio::NeuralModelLoader loader;
    loader.SetDefaultMaxAudioBufferSize(block);
    std::shared_ptr<NeuralAudio::NeuralModel> model(loader.CreateFromFile(std::filesystem::path(path), true));
    if (!model) throw std::runtime_error("not loaded");
    return [model](float* x, float* y, int n) { model->Process(x, y, static_cast<std::size_t>(n)); };
  });
}
