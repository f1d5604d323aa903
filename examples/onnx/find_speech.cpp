// Finds the speech in a recording: an ONNX model, Silero VAD, run as a stream of frames of 32 ms.
#include <ferrite/exchange/onnx_stream.h>
#include <ferrite/ferrite.h>

#include <iostream>

using namespace ferrite;

int main(int argc, char** argv) try {
  if (argc != 3) throw ValueError("find_speech MODEL.onnx RECORDING.wav, of 16 kHz");
  const io::Audio audio = io::read_wav(argv[2]);
  if (audio.rate != 16000) throw ValueError("the recording must have 16000 samples a second");
  const std::vector<float> samples = select(audio.samples, 0, 0).to_vector<float>();
  const onnx::Model model = onnx::read(argv[1], {.frozen = true, .constants = {{"sr", full({}, 16000, Dtype::i64)}}});
  onnx::Stream stream(model, {.steps = {{"input", {1, 576}}, {"state", {2, 1, 128}}}, .states = {{"state", "stateN"}}});
  bool speaking = false;
  for (std::size_t at = 0; at + 512 <= samples.size(); at += 512) {
    const auto frame = stream.input("input");  // 64 samples of the frame before, and 512
    std::copy(frame.end() - 64, frame.end(), frame.begin());
    std::copy_n(samples.begin() + static_cast<std::ptrdiff_t>(at), 512, frame.begin() + 64);
    stream.step();
    if (const bool now = stream.output("output")[0] >= (speaking ? 0.35F : 0.5F); now != speaking) {
      std::cout << static_cast<double>(at) / 16000 << (now ? " s: speech\n" : " s: none\n");
      speaking = now;
    }
  }
} catch (const std::exception& e) {
  std::cerr << "find_speech: " << e.what() << '\n';
  return 1;
}
