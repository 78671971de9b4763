#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace tessella {
namespace {

constexpr std::size_t kMostHelpers = 1023;  // of the whole process, whatever is asked for
// How long a thread looks for the next event before it sleeps. Being woken takes about as long.
constexpr std::chrono::microseconds kPatience(40);

// A call of share_pieces. Lives on the stack of the caller, who stays until `inside` is zero.
struct Job {
  const std::size_t count, chunk;
  const Pieces pieces;
  const void* const context;
  std::atomic<std::size_t> next{0};
  std::size_t open = 0;                // helpers that may still join; of the pool's mutex
  std::atomic<std::size_t> inside{0};  // helpers at work; raised under the pool's mutex
  Job* following = nullptr;            // of the pool's mutex

  Job(std::size_t count_, std::size_t chunk_, Pieces pieces_, const void* context_)
      : count(count_), chunk(chunk_), pieces(pieces_), context(context_) {}

  void work(std::size_t place) noexcept {
    for (std::size_t begin; (begin = next.fetch_add(chunk)) < count;)
      pieces(context, place, begin, std::min(count, begin + chunk));
  }
};

template <class Condition>
bool happens_soon(const Condition& condition) {
  const auto start = std::chrono::steady_clock::now();
  while (!condition()) {
    if (std::chrono::steady_clock::now() - start > kPatience) return false;
    std::this_thread::yield();  // somebody else may need this core to make it happen
  }
  return true;
}

// Never destroyed: its threads wait until the process ends.
class Pool {
 public:
  void run(Job& job, std::size_t helpers) noexcept {
    open(job, helpers);
    job.work(0);
    close(job);
  }

 private:
  void open(Job& job, std::size_t helpers) {
    std::size_t sleeping;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      wanted_ += helpers;
      start_helpers();
      job.open = helpers;
      job.following = jobs_;
      jobs_ = &job;
      opened_.fetch_add(1);
      sleeping = std::min(sleeping_, helpers);
    }
    for (; sleeping > 0; --sleeping) something_opened_.notify_one();
  }

  // As many as all jobs want together, or as the system allows.
  void start_helpers() noexcept {
    while (helpers_ < std::min(wanted_, kMostHelpers)) {
      try {
        std::thread(&Pool::serve, this).detach();
      } catch (const std::system_error&) {
        return;
      } catch (const std::bad_alloc&) {
        return;
      }
      ++helpers_;
    }
  }

  // Waits for the helpers that are at work, not for those that have not come yet.
  void close(Job& job) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Job** link = &jobs_;
      while (*link != &job) link = &(*link)->following;
      *link = job.following;
      wanted_ -= job.open;
      job.open = 0;
    }
    const auto left = [&] { return job.inside.load() == 0; };
    if (happens_soon(left)) return;
    std::unique_lock<std::mutex> lock(mutex_);
    ++waiting_;
    somebody_left_.wait(lock, left);
    --waiting_;
  }

  Job* job_that_is_open() const {
    Job* job = jobs_;
    while (job != nullptr && job->open == 0) job = job->following;
    return job;
  }

  void serve() noexcept {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      Job* const job = job_that_is_open();
      if (job == nullptr) {
        wait_for_a_job(lock);
        continue;
      }
      const std::size_t place = job->open--;
      job->inside.fetch_add(1);
      lock.unlock();
      job->work(place);
      lock.lock();
      --wanted_;
      // With the last helper gone the job may cease to exist: it is not touched afterwards.
      if (job->inside.fetch_sub(1) == 1 && waiting_ > 0) somebody_left_.notify_all();
    }
  }

  void wait_for_a_job(std::unique_lock<std::mutex>& lock) {
    const std::size_t seen = opened_.load();
    const auto opened = [&] { return opened_.load() != seen; };
    lock.unlock();
    const bool soon = happens_soon(opened);
    lock.lock();
    if (soon) return;
    ++sleeping_;
    something_opened_.wait(lock, opened);
    --sleeping_;
  }

  std::mutex mutex_;
  std::condition_variable something_opened_, somebody_left_;
  std::atomic<std::size_t> opened_{0};  // jobs so far; raised under the mutex
  // Of the mutex:
  Job* jobs_ = nullptr;
  std::size_t helpers_ = 0;   // threads
  std::size_t wanted_ = 0;    // places of all jobs that are taken or open
  std::size_t sleeping_ = 0;  // helpers that have to be woken
  std::size_t waiting_ = 0;   // callers that have to be woken
};

std::atomic<Pool*> the_pool{nullptr};

#if defined(_WIN32)
constexpr bool kForkIsNoticed = true;  // there is none
#else
// In a child process only the thread that called fork() exists. Whatever the pool of the parent was
// doing, and whoever held its mutex, the child leaves it alone and makes another one.
void forget_the_pool() { the_pool.store(nullptr); }
const bool kForkIsNoticed = pthread_atfork(nullptr, nullptr, &forget_the_pool) == 0;
#endif

// Null when there is no memory for one.
Pool* pool() noexcept {
  Pool* present = the_pool.load();
  if (present != nullptr) return present;
  std::unique_ptr<Pool> made(new (std::nothrow) Pool);  // has no threads yet
  if (the_pool.compare_exchange_strong(present, made.get())) return made.release();
  return present;
}

}  // namespace

std::size_t thread_places(std::size_t count, std::size_t chunk, int threads) {
  const std::size_t ranges = (count + chunk - 1) / chunk;
  const std::size_t allowed = static_cast<std::size_t>(std::max(threads, 1));
  return std::max<std::size_t>(1, std::min({ranges, allowed, kMostHelpers + 1}));
}

void share_pieces(std::size_t count, std::size_t chunk, std::size_t places, Pieces pieces,
                  const void* context) {
  Pool* const helpers = places > 1 && kForkIsNoticed ? pool() : nullptr;
  if (helpers == nullptr) {
    if (count > 0) pieces(context, 0, 0, count);
    return;
  }
  Job job(count, chunk, pieces, context);
  helpers->run(job, places - 1);
}

}  // namespace tessella
