/// A frozen net as a library for Arduino and PlatformIO. The files follow Arduino's library specification, revision 2.2
/// (https://arduino.github.io/arduino-cli/latest/library-specification/), and PlatformIO's library.json
/// (https://docs.platformio.org/en/latest/manifests/library-json/).
#include <string_view>

#include "ferrite/exchange/freeze/c_text.h"
#include "ferrite/exchange/freeze/folder_text.h"
#include "ferrite/exchange/freeze_folders.h"
#include "ferrite/tensor/error.h"

namespace ferrite::exchange {
namespace {

/// For the Arduino IDE and arduino-cli. "@ports" says how many inputs and outputs the net has.
constexpr std::string_view kProperties = R"text(name=@name
version=1.0.0
author=Your Name
maintainer=Your Name <you@example.com>
sentence=A trained neural net of @ports, as plain C.
paragraph=One step reads the inputs and writes the outputs; the net keeps its state between steps and takes no)text"
                                         R"text( heap. Written by ferrite freeze.
category=Signal Input/Output
url=https://example.com/
architectures=*
includes=@name.h
)text";

/// For PlatformIO, whose names have dashes instead of underlines.
constexpr std::string_view kManifest = R"text({
  "name": "@dashed",
  "version": "1.0.0",
  "description": "A trained neural net of @ports, as plain C. Written by ferrite freeze.",
  "keywords": ["neural-network", "signal", "inference"],
  "authors": [{ "name": "Your Name", "email": "you@example.com", "maintainer": true }],
  "frameworks": "*",
  "platforms": "*",
  "headers": "@name.h",
  "examples": [{ "name": "Stream", "base": "examples/Stream", "files": ["Stream.ino"] }]
}
)text";

/// The example: it steps the net on an analog pin.
constexpr std::string_view kSketch = R"text(// Sends what the net makes of an analog signal, one line for each step.
#include <@name.h>

static @name stream;
static float x[@NAME_INPUTS];
static float y[@NAME_OUTPUTS];

void setup() {
  Serial.begin(115200);
  @name_init(&stream);
  if (@name_check(&stream) != 0) Serial.println("The outputs differ from those of the trained net: see @name_check.");
  @name_reset(&stream);
}

void loop() {
  // Give the net what it was trained on; here the input of pin A0 is between 0 and 1.
  for (int i = 0; i < @NAME_INPUTS; ++i) x[i] = analogRead(A0) / 1023.0f;
  if (@name_step(&stream, x, y) != 0) return;
  for (int i = 0; i < @NAME_OUTPUTS; ++i) {
    if (i > 0) Serial.print(' ');
    Serial.print(y[i], 6);
  }
  Serial.println();
  delay(10);
}
)text";

std::string counted(std::int64_t n, const std::string& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

/// Returns a name with single dashes for underlines, none at its end.
std::string dashed(const std::string& name) {
  std::string to;
  for (const char c : name)
    if (c != '_') {
      to += c;
    } else if (to.back() != '-') {
      to += '-';
    }
  if (to.back() == '-') to.pop_back();
  return to;
}

}  // namespace

std::map<std::string, std::string> arduino_folder(const FrozenNet& net, const std::string& name) {
  const detail::StepPorts ports = detail::step_ports(net, name);
  if (name.size() > 50) throw ValueError("arduino_folder: '" + name + "' has more than 50 characters");
  const std::string sizes = counted(ports.inputs, "input") + " and " + counted(ports.outputs, "output");
  const auto text = [&](std::string_view of) {
    return detail::named(detail::replaced(detail::replaced(std::string(of), "@ports", sizes), "@dashed", dashed(name)),
                         name);
  };
  return {{"library.properties", text(kProperties)},
          {"library.json", text(kManifest)},
          {"src/" + name + ".h", net.header},
          {"src/" + name + ".c", net.source},
          {"examples/Stream/Stream.ino", text(kSketch)}};
}

}  // namespace ferrite::exchange
