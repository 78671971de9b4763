// Threads that share the pieces of a loop.
//
// A pool of threads waits for work and is shared by all callers. Compared with OpenMP, a child
// process made by fork() starts a pool of its own instead of waiting for threads that do not
// exist there, and a thread that cannot be started is done without.
//
// What runs in several threads neither allocates memory nor throws: the first exception in a thread
// needs memory for the bookkeeping of the C++ library, and without it the process ends. Callers
// allocate before, for every place that a thread may take, and std::bad_alloc is thrown there.
#pragma once

#include <cstddef>
#include <type_traits>

namespace tessella {

using Pieces = void (*)(const void* context, std::size_t place, std::size_t begin,
                        std::size_t end) noexcept;

// The number of threads that share `count` pieces, `chunk` of them at a time: at least 1, and at
// most `threads`.
std::size_t thread_places(std::size_t count, std::size_t chunk, int threads);

// Calls pieces(context, place, begin, end) for consecutive ranges of at most `chunk` that cover
// [0, count), each once, in up to `places` threads of which the caller is one. Each thread has a
// place of its own, from 0 to places - 1. Ranges are handed out as threads become free, so a core
// that is busy elsewhere does less. Returns when all are done.
void share_pieces(std::size_t count, std::size_t chunk, std::size_t places, Pieces pieces,
                  const void* context);

// The same for a function object body(place, begin, end), which several threads call at once.
template <class Body>
void parallel_for(std::size_t count, std::size_t chunk, std::size_t places, const Body& body) {
  static_assert(std::is_nothrow_invocable_v<const Body&, std::size_t, std::size_t, std::size_t>,
                "what runs in several threads must not throw");
  share_pieces(
      count, chunk, places,
      [](const void* context, std::size_t place, std::size_t begin, std::size_t end) noexcept {
        (*static_cast<const Body*>(context))(place, begin, end);
      },
      &body);
}

}  // namespace tessella
