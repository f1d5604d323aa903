#pragma once
/// The language that all headers need. Every public header reaches this one before its first declaration.
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
// An #error that ends the compilation: a file that there is not. Thousands of errors would follow any other.
#include "Ferrite needs C++20: compile with -std=c++20 (g++ 12, clang 14 or newer)"
#endif
