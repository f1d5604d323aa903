// NeuralAmpModelerCore on .nam nets, as bench/compare/nam.py asks for them; built with NAM_SAMPLE_FLOAT.
#include <filesystem>
#include <memory>

#include "NAM/dsp.h"
#include "NAM/get_dsp.h"
#include "stream_peer.h"

int main(int count, char** words) {
  return serve(count, words, [](const char* path, int block) {
    std::shared_ptr<nam::DSP> model = nam::get_dsp(std::filesystem::path(path));
    model->SetPrewarmOnReset(false);
    model->Reset(48000, block);
    return [model](float* x, float* y, int n) { model->process(&x, &y, n); };
  });
}
