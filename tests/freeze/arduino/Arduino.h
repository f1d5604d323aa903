#pragma once
/// As much of Arduino's interface as the example of a library needs, for check_library.py.
#include <stdint.h>

#define A0 14

/* The port writes through the board. */
class SerialPort {
 public:
  void begin(unsigned long) {}
  void print(char);
  void print(const char*);
  void print(double value, int digits = 2);
  void println() { print('\n'); }
  template <typename... Values>
  void println(Values... values) {
    print(values...);
    println();
  }
};
extern SerialPort Serial;

int analogRead(uint8_t pin);
void delay(unsigned long milliseconds);
void setup();
void loop();
