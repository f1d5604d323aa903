#pragma once
/// Folders around a frozen net: a library for Arduino and PlatformIO, and a module for browsers.
#include <map>
#include <string>

#include "ferrite/exchange/freeze.h"

namespace ferrite::exchange {

/// Returns a library for Arduino and PlatformIO: library.properties, library.json, src/<name>.h, src/<name>.c and the
/// example examples/Stream/Stream.ino, which steps the net on an analog pin. The keys are the paths within the folder,
/// with slashes; the values are the texts of the files. `name` is the one that the net was frozen with.
///
///   for (const auto& [path, text] : exchange::arduino_folder(c, "detector")) write("detector/" + path, text);
///
/// Throws ValueError for a net that is not the step of a stream with one input and one output of floats, and for a name
/// of more than 50 characters.
std::map<std::string, std::string> arduino_folder(const FrozenNet& net, const std::string& name = "net");

/// Returns a module for browsers and node: <name>.c, <name>.h and <name>_wasm.c, which clang compiles to WebAssembly as
/// README.md says, the ES module <name>.js with its types <name>.d.ts, the audio processor worklet.js, and a page,
/// index.html. The keys are the names of the files, the values their texts. `name` is the one that the net was frozen
/// with.
///
/// Throws ValueError for a net that is not the step of a stream with one input and one output of floats, and for one
/// that strides or looks ahead.
std::map<std::string, std::string> browser_folder(const FrozenNet& net, const std::string& name = "net");

}  // namespace ferrite::exchange
