// Random bytes from the kernel, drawn in batches so that a login costs no system call for them.
#pragma once

#include <cstddef>
#include <span>

namespace lokadb {

// Fills `out`. Any thread (each has its own batch). Ends the process if the kernel gives none.
void random_bytes(std::span<std::byte> out);

}  // namespace lokadb
