// A program: steps in order, each in phases, each phase in units that threads take as they come free.
#include <time.h>
#ifdef __linux__
#include <pthread.h>
#include <sched.h>
#endif

#include <chrono>

#include "channels.h"
#include "strassen.h"
#include "winograd.h"

static bool is_done(const Step *steps, int64_t index, int team);

// Whether a step takes the one after it along: not if it is itself taken along by one before.
static bool takes_along(const Step *steps, int64_t index, int team) {
  if (index < 0 || (steps[index].kind != WIDENED && steps[index].kind != NARROWED)) return false;
  return !is_done(steps, index, team);
}

// Whether a step is done with one of the two before it.
static bool is_done(const Step *steps, int64_t index, int team) {
  if (takes_along(steps, index - 1, team)) return true;
  if (index < 2 || steps[index - 2].kind != NARROWED || !is_by_lines(steps + index - 2, team)) return false;
  return takes_along(steps, index - 2, team);
}

static int64_t phases(const Step *steps, int64_t index, int team) {
  if (is_done(steps, index, team)) return 0;
  const Step &s = steps[index];
  if (s.kind == STRASSEN) return strassen_phases(s, team);
  return s.kind == WINOGRAD || s.kind == SMALL_WINOGRAD ? winograd_phases(s, team) : 1;
}

// What can be shared out: lines, pixels or vectors.
static int64_t pieces(const Step &s) {
  switch (s.kind) {
    case AVERAGE: return s.batch * s.depth / LANES;
    case LAYER_NORM: return s.batch * s.height * s.width;
    case SUM: return s.batch * s.height * s.width * s.depth / LANES;
    default: return s.batch * s.out_height;
  }
}

static int64_t units(const Step &s, int64_t phase, int team) {
  if (s.kind == WINOGRAD || s.kind == SMALL_WINOGRAD) return winograd_units(s, phase, team);
  if (s.kind == CONVOLUTION) {
    Cut cut(s, team);
    return cut.by_rows * cut.by_panels;
  }
  if (s.kind == STRASSEN) return strassen_units(s, phase, team);
  if (s.kind == NARROWED && is_by_lines(&s, team)) return s.batch * team;
  if (s.kind == WIDENED || s.kind == NARROWED) return Widening(s, (&s)[1], team).units((&s)[1]);
  return team == 1 ? 1 : least(pieces(s), 4 * team);
}

static void perform(const Step &s, int64_t phase, int64_t unit, int64_t of, int team) {
  Share share(pieces(s), unit, of);
  switch (s.kind) {
    case CONVOLUTION: return convolution(s, unit, team);
    case WINOGRAD:
    case SMALL_WINOGRAD: return winograd(s, phase, unit, team);
    case DEPTHWISE: return depthwise(s, share);
    case MAX_POOL: return max_pool(s, share);
    case AVERAGE: return average(s, share);
    case LAYER_NORM: return layer_norm(s, share);
    case BORDER: return border(s, share, false);
    case BORDER_FIRST: return border(s, share, true);
    case WIDENED: return widened(&s, unit, team);
    case NARROWED: return is_by_lines(&s, team) ? narrowed(&s, unit, team) : widened(&s, unit, team);
    case STRASSEN: return strassen(s, phase, unit, team);
    default: return sum(s, share);
  }
}

struct alignas(64) Counter {
  std::atomic<int64_t> value{0};
};

// One phase of one step. Each thread begins with units of its own, which follow what it did before and lie in its
// cache, and then helps the others. One that comes late finds its units taken and goes on to the next phase.
struct Phase {
  const Step *step;
  int64_t index, units;
  Counter *next;  // for each thread the unit that it takes next
  Counter *done;
};

struct Run {
  std::vector<Phase> phases_;
  std::vector<Counter> counters_;
  int team;

  Run(const Step *steps, int64_t count, int team) : team(team) {
    for (int64_t i = 0; i < count; i++)
      for (int64_t p = 0; p < phases(steps, i, team); p++)
        phases_.push_back({steps + i, p, units(steps[i], p, team), nullptr, nullptr});
    counters_ = std::vector<Counter>(phases_.size() * (team + 1));
    Counter *at = counters_.data();
    for (auto &phase : phases_) phase.next = at, phase.done = at + team, at += team + 1;
  }

  void take_part(int thread, double *seconds) {
    const Step *first = phases_.empty() ? nullptr : phases_[0].step;
    for (auto &phase : phases_) {
      double since = seconds ? now() : 0;
      phase.done->value.fetch_add(units_taken(phase, thread), std::memory_order_acq_rel);
      wait(phase);
      if (seconds) seconds[phase.step - first] += now() - since;
    }
  }

  int64_t units_taken(Phase &phase, int thread) {
    int64_t taken = 0;
    for (int other = 0; other < team; other++) {
      int owner = (thread + other) % team;
      Share own(phase.units, owner, team);
      for (int64_t unit; (unit = own.first + phase.next[owner].value.fetch_add(1)) < own.last; taken++)
        perform(*phase.step, phase.index, unit, phase.units, team);
    }
    return taken;
  }

  static void wait(const Phase &phase) {
    for (int turns = 0; phase.done->value.load(std::memory_order_acquire) < phase.units; turns++)
      if (turns > 2000) std::this_thread::yield();
  }

  static double now() {
    timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
  }
};

// Threads that sleep until there is something to run; the caller is one of the team.
class Team {
 public:
  void run(const Step *steps, int64_t count, int threads, double *seconds) {
    std::lock_guard<std::mutex> one_at_a_time(running_);
    auto run = std::make_shared<Run>(steps, count, threads);
    hire(threads - 1);
    keep_off_the_core_of_the_caller();
    {
      std::lock_guard<std::mutex> guard(mutex_);
      run_ = run, number_++;
    }
    if (threads > 1) called_.notify_all();
    run->take_part(0, seconds);
  }

 private:
  void hire(int wanted) {
    for (int index = (int)hired_.size(); index < wanted; index++) {
      std::thread thread([this, index] { work(index); });
      hired_.push_back(thread.native_handle());
      thread.detach();
      avoided_ = -1;
    }
  }

  // A thread that wakes up on the core of the caller, who goes on computing, waits until the system moves it: that can
  // take longer than all there is to do.
  void keep_off_the_core_of_the_caller() {
#ifdef __linux__
    int core = sched_getcpu();
    cpu_set_t others;
    if (core < 0 || core == avoided_ || sched_getaffinity(0, sizeof others, &others)) return;
    CPU_CLR(core, &others);
    if (CPU_COUNT(&others) < (int)hired_.size()) return;
    for (pthread_t thread : hired_) pthread_setaffinity_np(thread, sizeof others, &others);
    avoided_ = core;
#endif
  }

  void work(int index) {
    for (uint64_t seen = 0;;) {
      std::shared_ptr<Run> run;
      // A caller that comes back at once finds the team awake.
      auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
      while (number_.load() == seen && std::chrono::steady_clock::now() < until) continue;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        called_.wait(lock, [&] { return number_ != seen; });
        seen = number_, run = run_;
      }
      if (index < run->team - 1) run->take_part(index + 1, nullptr);
    }
  }

  std::mutex running_, mutex_;
  std::condition_variable called_;
  std::shared_ptr<Run> run_;
  std::atomic<uint64_t> number_{0};
  std::vector<std::thread::native_handle_type> hired_;
  int avoided_ = -1;
};

static Team *team = new Team();  // never destroyed: its threads sleep until the process ends

// Performs steps with a team of threads; `seconds`, if given, collects the time of the caller per step.
void run(const Step *steps, int64_t count, int threads, double *seconds) { team->run(steps, count, threads, seconds); }

// A forked process has none of the threads, and locks as they happened to be: it begins with a team of its own.
void after_fork() { team = new Team(); }
