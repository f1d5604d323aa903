// A library whose interface grows or breaks: by it scripts/test-packages abi shows that its verdict notices both.
#pragma once

struct Options {
  int size;
#ifdef BREAKS
  int more;
#endif
};

extern "C" int run(const Options* options);
#ifdef GROWS
extern "C" int stop(const Options* options);
#endif
