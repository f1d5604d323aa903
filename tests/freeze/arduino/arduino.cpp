// The stand-in for an Arduino core: setup, then eight times loop.
#include "Arduino.h"

extern "C" {
#include "board.h"
}

SerialPort Serial;

void SerialPort::print(char c) {
  const char text[2] = {c, 0};
  board_print(text);
}

void SerialPort::print(const char* text) { board_print(text); }

void SerialPort::print(double value, int digits) {
  if (value < 0) print('-');
  double scale = 1;
  for (int i = 0; i < digits; ++i) scale *= 10;
  uint64_t number = static_cast<uint64_t>((value < 0 ? -value : value) * scale + 0.5);
  char text[24];
  int at = sizeof text - 1;
  text[at] = 0;
  for (int i = 0; i <= digits || number > 0; ++i, number /= 10) {
    if (i == digits) text[--at] = '.';
    text[--at] = static_cast<char>('0' + number % 10);
  }
  print(text + at);
}

int analogRead(uint8_t) {
  static uint32_t state = 1;
  state = state * 1664525u + 1013904223u;
  return static_cast<int>(state >> 22);
}

void delay(unsigned long) {}

int main() {
  setup();
  for (int i = 0; i < 8; ++i) loop();
  return 0;
}
