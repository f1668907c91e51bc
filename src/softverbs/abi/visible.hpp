#pragma once

/// A function of libibverbs that programs are to find here first: the library is compiled with hidden
/// visibility.
#define GDRBENCH_VERB extern "C" __attribute__((visibility("default")))
