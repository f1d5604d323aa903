/// Data sets of PNG files, which are listed once and decoded on demand.
#include "ferrite/train/png_folder.h"

#include "ferrite/io/class_folders.h"
#include "ferrite/tensor/ops.h"

namespace ferrite::train {
namespace {

void check_channels(int channels) {
  if (channels != 0 && channels != 1 && channels != 3 && channels != 4)
    throw ValueError("png folder: channels must be 1, 3, 4 or 0 (as the file says), got " + std::to_string(channels));
}

Tensor channel(const Tensor& picture, std::int64_t c) { return slice(picture, 0, c, c + 1); }

}  // namespace

Tensor with_channels(const Tensor& picture, int channels) {
  check_channels(channels);
  const std::int64_t C = picture.rank() == 3 ? picture.shape()[0] : 0;
  if (C < 1 || C > 4)
    throw ShapeError("png folder: a picture must be [C, H, W] with C in 1..4, got " + picture.shape().str());
  if (channels == 0 || C == channels) return picture;
  const bool grey = C <= 2;
  if (channels == 1)
    return grey ? channel(picture, 0)
                : 0.299 * channel(picture, 0) + 0.587 * channel(picture, 1) + 0.114 * channel(picture, 2);
  const Tensor first = channel(picture, 0);
  const Tensor colour = grey ? concat({first, first, first}) : slice(picture, 0, 0, 3);
  if (channels == 3) return colour;
  return concat({colour, C % 2 == 0 ? channel(picture, C - 1) : ones_like(first)});
}

PngFolder png_folder(const std::filesystem::path& root, const PngFolderOptions& o) {
  check_channels(o.channels);
  const auto folders = std::make_shared<const io::ClassFolders>(io::list_class_folders(root, {".png"}));
  const auto example = [=](std::int64_t i) {
    const Tensor picture = io::read_png(folders->files[static_cast<std::size_t>(i)], o.most_values);
    return Tensors{with_channels(picture, o.channels), folders->labels[i]};
  };
  return {Dataset(std::ssize(folders->files), example, std::vector<Field>(2)), folders->classes, folders->labels};
}

}  // namespace ferrite::train
