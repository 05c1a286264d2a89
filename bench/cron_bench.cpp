// How fast the engine finds and counts occurrences: expression parsed, zone at hand.

#include "qinglong_sched/core/occurrence.hpp"

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdlib>
#include <vector>

namespace {

using namespace qinglong::core;

constexpr std::int64_t kHourSeconds = 3600;
constexpr std::int64_t kDaySeconds = 86400;
constexpr std::int64_t kYear2024 = 1704067200;
constexpr std::int64_t kYear2100 = 4102444800;

std::int64_t second_of(std::chrono::sys_days date) {
    return date.time_since_epoch().count() * kDaySeconds;
}

// New York's rule of 2007, from then on: as many spans as a zone out of a database has.
std::vector<ZoneSpan> make_new_york() {
    using namespace std::chrono;
    std::vector<ZoneSpan> spans{{std::numeric_limits<std::int64_t>::min(), -5 * 3600}};
    for (int y = 2007; y < 2900; ++y) {
        spans.push_back({second_of(sys_days(year(y) / March / Sunday[2])) + 7 * kHourSeconds, -4 * 3600});
        spans.push_back({second_of(sys_days(year(y) / November / Sunday[1])) + 6 * kHourSeconds, -5 * 3600});
    }
    return spans;
}

ZoneView new_york() {
    static const std::vector<ZoneSpan> spans = make_new_york();
    return {spans, kYear2100};
}

ZoneView utc() {
    static const std::vector<ZoneSpan> spans{{std::numeric_limits<std::int64_t>::min(), 0}};
    return {spans, 0};
}

CronExpression parsed(const char* text) {
    CronExpression expression;
    CronError error;
    if (!parse_cron(text, expression, error)) {
        std::abort();
    }
    return expression;
}

// Occurrence after occurrence; starts over from `begin` where `end` is passed.
void walk(benchmark::State& state, const char* text, ZoneView zone, std::int64_t begin, std::int64_t end,
          InstantRules rules = {}) {
    const CronExpression expression = parsed(text);
    std::int64_t after = begin;
    for ([[maybe_unused]] auto _ : state) {
        std::int64_t next = 0;
        if (!next_occurrence(expression, zone, after, next, rules)) {
            next = begin;
        }
        benchmark::DoNotOptimize(next);
        after = next < end ? next : begin;
    }
    state.SetItemsProcessed(state.iterations());
}

constexpr std::int64_t kGap = 1710054000;     // 2024-03-10T07:00Z
constexpr std::int64_t kOverlap = 1730613600; // 2024-11-03T06:00Z

void plain_every_5_minutes_utc(benchmark::State& state) {
    walk(state, "*/5 * * * *", utc(), kYear2024, kYear2100);
}
void plain_every_5_minutes_new_york(benchmark::State& state) {
    walk(state, "*/5 * * * *", new_york(), kYear2024, kYear2100);
}
void plain_daily_new_york(benchmark::State& state) {
    walk(state, "30 9 * * *", new_york(), kYear2024, kYear2100);
}
void plain_working_hours_new_york(benchmark::State& state) {
    walk(state, "0 9-17 * * 1-5", new_york(), kYear2024, kYear2100);
}
void plain_month_end_new_york(benchmark::State& state) {
    walk(state, "0 18 LW * *", new_york(), kYear2024, kYear2100);
}
void dst_gap_wall_clock(benchmark::State& state) {
    walk(state, "*/10 1-3 * * *", new_york(), kGap - 7200, kGap + 7200);
}
void dst_gap_interval(benchmark::State& state) {
    walk(state, "*/15 * * * *", new_york(), kGap - 3600, kGap + 3600);
}
void dst_overlap_wall_clock(benchmark::State& state) {
    walk(state, "*/10 0-3 * * *", new_york(), kOverlap - 7200, kOverlap + 7200);
}
void dst_overlap_interval(benchmark::State& state) {
    walk(state, "*/15 * * * *", new_york(), kOverlap - 7200, kOverlap + 7200);
}
void dst_every_gap(benchmark::State& state) {
    walk(state, "30 2 8-14 3 SUN", new_york(), kYear2024, kYear2100,
         {Gap::shift, Overlap::first, DayMatch::both});
}
void sparse_leap_day(benchmark::State& state) {
    walk(state, "0 0 29 2 *", new_york(), kYear2024, kYear2100);
}
void sparse_leap_monday(benchmark::State& state) {
    walk(state, "0 0 29 2 1", new_york(), kYear2024, kYear2100, {Gap::shift, Overlap::first, DayMatch::both});
}
void sparse_fifth_monday_of_february(benchmark::State& state) {
    walk(state, "0 0 * 2 1#5", new_york(), kYear2024, kYear2100);
}
void never(benchmark::State& state) {
    walk(state, "0 0 30 2 *", new_york(), kYear2024, kYear2100);
}

void count(benchmark::State& state, const char* text, std::int64_t seconds) {
    const CronExpression expression = parsed(text);
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(
            count_occurrences(expression, new_york(), kYear2024, kYear2024 + seconds, UINT64_MAX));
    }
}

void count_million_minutes(benchmark::State& state) {
    count(state, "* * * * *", 60'000'000);
}
void count_ten_years_of_working_hours(benchmark::State& state) {
    count(state, "*/5 1-17 * * 1-5", 3650 * kDaySeconds);
}

void parse(benchmark::State& state) {
    CronExpression expression;
    CronError error;
    for ([[maybe_unused]] auto _ : state) {
        benchmark::DoNotOptimize(parse_cron("*/15 9-17 1,15,L JAN-JUN mon-fri", expression, error));
    }
    state.SetItemsProcessed(state.iterations());
}

BENCHMARK(plain_every_5_minutes_utc);
BENCHMARK(plain_every_5_minutes_new_york);
BENCHMARK(plain_daily_new_york);
BENCHMARK(plain_working_hours_new_york);
BENCHMARK(plain_month_end_new_york);
BENCHMARK(dst_gap_wall_clock);
BENCHMARK(dst_gap_interval);
BENCHMARK(dst_overlap_wall_clock);
BENCHMARK(dst_overlap_interval);
BENCHMARK(dst_every_gap);
BENCHMARK(sparse_leap_day);
BENCHMARK(sparse_leap_monday);
BENCHMARK(sparse_fifth_monday_of_february);
BENCHMARK(never);
BENCHMARK(count_million_minutes);
BENCHMARK(count_ten_years_of_working_hours);
BENCHMARK(parse);

} // namespace

BENCHMARK_MAIN();
