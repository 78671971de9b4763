// Threads that share the pieces of a loop.
//
// A pool of threads waits for work and is shared by all callers. Compared with OpenMP, a child
// process made by fork() starts a pool of its own instead of waiting for threads that do not
// exist there; a thread that cannot be started is done without; and an exception, such as
// std::bad_alloc, reaches the caller instead of ending the process.
#pragma once

#include <cstddef>

namespace tessella {

using Pieces = void (*)(const void* context, std::size_t begin, std::size_t end);

// Calls pieces(context, begin, end) for consecutive ranges of at most `chunk` that cover [0, count),
// each once, in up to `threads` threads of which the caller is one. Ranges are handed out as
// threads become free, so a core that is busy elsewhere does less. Returns when all are done; an
// exception of `pieces` is thrown here after all threads have stopped.
void share_pieces(std::size_t count, std::size_t chunk, int threads, Pieces pieces,
                  const void* context);

// The same for a function object body(begin, end), which several threads call at once.
template <class Body>
void parallel_for(std::size_t count, std::size_t chunk, int threads, const Body& body) {
  share_pieces(
      count, chunk, threads,
      [](const void* context, std::size_t begin, std::size_t end) {
        (*static_cast<const Body*>(context))(begin, end);
      },
      &body);
}

}  // namespace tessella
