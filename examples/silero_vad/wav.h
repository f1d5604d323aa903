#pragma once
// Sound files of 16-bit samples in one channel.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

struct Sound {
  std::int64_t rate = 16000;
  std::vector<float> samples;
};

/// Throws std::runtime_error for anything but RIFF with PCM of 16 bits in one channel.
inline Sound read_wav(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path.string() + ": cannot open the file");
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto number = [&](std::size_t at, std::size_t width) {
    if (at + width > bytes.size()) throw std::runtime_error(path.string() + ": the file is cut short");
    std::uint32_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
    return value;
  };
  if (!bytes.starts_with("RIFF") || bytes.compare(8, 4, "WAVE") != 0)
    throw std::runtime_error(path.string() + ": not a WAV file");
  Sound sound;
  bool known = false;
  for (std::size_t at = 12; at + 8 <= bytes.size();) {
    const std::string kind = bytes.substr(at, 4);
    const std::size_t size = number(at + 4, 4), begin = at + 8;
    if (kind == "fmt ") {
      if (number(begin, 2) != 1 || number(begin + 2, 2) != 1 || number(begin + 14, 2) != 16)
        throw std::runtime_error(path.string() + ": not 16-bit samples in one channel");
      sound.rate = number(begin + 4, 4);
      known = true;
    } else if (kind == "data") {
      if (!known) throw std::runtime_error(path.string() + ": samples before their format");
      const std::size_t here = std::min(size, bytes.size() - begin);  // a stream's header may say more
      for (std::size_t i = 0; i + 2 <= here; i += 2)
        sound.samples.push_back(static_cast<float>(static_cast<std::int16_t>(number(begin + i, 2))) / 32768.0F);
      return sound;
    }
    at = begin + size + size % 2;
  }
  throw std::runtime_error(path.string() + ": no samples");
}
