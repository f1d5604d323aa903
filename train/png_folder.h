#pragma once
/// Folders of pictures as data sets: a part of the component `png` of the package, as io/png.h.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ferrite/io/png.h"
#include "ferrite/train/dataset.h"

namespace ferrite::train {

struct PngFolderOptions {
  /// Of every picture, whatever its file has: 1 (grey), 3 (red, green, blue) or 4 (and opacity); 0: as the file says.
  int channels = 3;
  std::int64_t most_values = io::kMostPngValues;  ///< that a picture may have
};

/// Pictures and what they show.
struct PngFolder {
  Dataset data;                      ///< examples (picture f32 [C, H, W] in 0..1, class i64 [])
  std::vector<std::string> classes;  ///< their names, by number
  Tensor labels;                     ///< i64 [N], the classes of all examples, for `split` and `balanced_weights`
};

/// The PNG files under a folder, which has a folder for each class (io::list_class_folders: classes sorted by name,
/// then files). They are listed at once; each is read when its example is asked for, so the threads of a DataLoader
/// decode them. Grey becomes colour by repetition, and colour grey as 0.299 red + 0.587 green + 0.114 blue; opacity is
/// left out, or is 1 where a file has none.
///
///   const auto [pictures, classes, labels] = train::png_folder("flowers");
///   const train::DataLoader loader(pictures, {.batch_size = 32, .threads = 2});
///
/// Pictures of several sizes do not make a batch: bring them to one by `map`. Throws ValueError for another number of
/// channels, and as io::list_class_folders; reading an example throws as io::read_png.
PngFolder png_folder(const std::filesystem::path& root, const PngFolderOptions& options = {});

/// A picture f32 [C, H, W] with C in 1..4 as one of 1, 3 or 4 channels, by the same rules; 0: as it is. Throws
/// ShapeError, and ValueError for another number of channels.
Tensor with_channels(const Tensor& picture, int channels);

}  // namespace ferrite::train
