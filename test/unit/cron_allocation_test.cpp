// The search allocates nothing: it runs in a server process, where memory that is never asked for cannot run
// out.

#include "qinglong_sched/core/occurrence.hpp"
#include "qinglong_sched/core/schedule.hpp"
#include "zone_from_system.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

bool is_counting = false;
std::size_t allocations = 0;

void* counted(void* memory) {
    allocations += is_counting ? 1 : 0;
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

} // namespace

// All forms of new that are not replaced here call one of these two.
void* operator new(std::size_t size) {
    return counted(std::malloc(size == 0 ? 1 : size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    const auto step = static_cast<std::size_t>(alignment);
    return counted(std::aligned_alloc(step, (size + step) / step * step));
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace qinglong::core {
namespace {

using test::zone_from_system;

template<typename F>
std::size_t allocations_in(F body) {
    allocations = 0;
    is_counting = true;
    body();
    is_counting = false;
    return allocations;
}

TEST(CronAllocation, TheCounterCounts) {
    std::string text;
    EXPECT_EQ(allocations_in([&] { text.reserve(1000); }), 1U);
    struct alignas(64) Wide {
        char bytes[64];
    };
    std::vector<Wide> wide;
    EXPECT_EQ(allocations_in([&] { wide.reserve(10); }), 1U);
    EXPECT_EQ(allocations_in([] {}), 0U);
}

TEST(CronAllocation, TheSearchAllocatesNothing) {
    std::size_t found = 0;
    for (const char* text :
         {"* * * * * *", "* * * * *", "*/5 * * * *", "30 2 * * *", "0 0 1 1 *", "0 0 29 2 *", "0 0 29 2 1",
          "0 0 31 * *", "0 0 L * *", "0 0 LW * *", "0 0 15W,1W,31W * *", "0 0 * * 5#5", "0 0 * * 1-5#L",
          "0 9-17 * * MON-FRI", "0 0 1,15 * 3", "59 59 23 31 12 *", "0 0 30 2 *", "15,45 1-3 * 3,10 SUN"}) {
        CronExpression expression;
        CronError error;
        ASSERT_TRUE(parse_cron(text, expression, error)) << text;
        // With rules for ever, without, with rules that ended, half an hour, a lost day, before the year
        // 1900.
        for (const char* name : {"America/New_York", "Europe/London", "UTC", "Asia/Kathmandu",
                                 "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia",
                                 "Africa/Casablanca", "Antarctica/Troll", "Asia/Manila"}) {
            Schedule schedule;
            schedule.expression = expression;
            schedule.zone = zone_from_system(name).view();
            // Around changes, after the last one that is written down, and in later rounds of 400 years.
            for (const std::int64_t begin :
                 {kMinInstant, std::int64_t{-3800000000}, std::int64_t{-1}, std::int64_t{1330257600},
                  std::int64_t{1710054000}, std::int64_t{1730613600}, schedule.zone.cycle_from - 1,
                  schedule.zone.cycle_from + 6000000, schedule.zone.cycle_from + kCycleSeconds - 1,
                  schedule.zone.cycle_from + 5 * kCycleSeconds + 6000000, kMaxInstant - kCycleSeconds}) {
                for (const Overlap overlap : {Overlap::first, Overlap::both, Overlap::second}) {
                    schedule.rules.overlap = overlap;
                    schedule.rules.gap = overlap == Overlap::both ? Gap::skip : Gap::shift;
                    const std::size_t counted = allocations_in([&] {
                        std::int64_t after = begin;
                        for (int i = 0; i < 20; ++i) {
                            std::uint32_t steps = 0;
                            if (!next_occurrence(expression, schedule.zone, after, after, schedule.rules,
                                                 &steps)) {
                                break;
                            }
                            ++found;
                        }
                        (void)count_occurrences(expression, schedule.zone, begin, after, kCountCap,
                                                schedule.rules);
                        (void)schedule.next(begin * 1000);
                    });
                    ASSERT_EQ(counted, 0U) << text << " in " << name << " after " << begin;
                }
            }
        }
    }
    EXPECT_GT(found, 100000U);
}

} // namespace
} // namespace qinglong::core
