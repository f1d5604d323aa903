#pragma once
/// Checks the language standard that all headers need. Every public header includes this one before its first
/// declaration.
#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 202002L
// Includes a file that does not exist, since a missing file ends the compilation: after any other #error thousands of
// errors would follow.
#include "Ferrite needs C++20: compile with -std=c++20 (g++ 12, clang 14 or newer)"
#endif
