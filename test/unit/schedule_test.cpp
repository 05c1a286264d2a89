// The instants of each kind of schedule, and what a claim of it leads to.

#include "qinglong_sched/core/decision.hpp"
#include "qinglong_sched/core/instant.hpp"
#include "qinglong_sched/core/stable_hash.hpp"

#include <gtest/gtest.h>

#include <random>

using namespace qinglong::core;

namespace {

constexpr std::int64_t kMinute = 60000;

Schedule cron(std::string_view text) {
    Schedule schedule;
    CronError error;
    EXPECT_TRUE(parse_cron(text, schedule.expression, error)) << text;
    return schedule;
}

// Counting is next() repeated.
void expect_count_agrees(const Schedule& schedule, std::int64_t from, std::int64_t until) {
    std::uint64_t visited = 0;
    for (std::int64_t at = from - 1;;) {
        const auto next = schedule.next(at);
        if (!next || *next >= until) {
            break;
        }
        ASSERT_GT(*next, at);
        at = *next;
        ++visited;
    }
    EXPECT_EQ(schedule.count(from, until), visited) << from << " " << until;
}

} // namespace

TEST(Instant, StrictRfc3339) {
    const std::pair<const char*, std::int64_t> good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-03-29T09:30:00Z", 1774776600000},
        {"2026-03-29T09:30:00.5Z", 1774776600500},
        {"2026-03-29T09:30:00.123+02:00", 1774769400123},
        {"2024-02-29T23:59:59-00:30", 1709252999000},
        {"9999-12-31T23:59:59.999Z", 253402300799999},
    };
    for (const auto& [text, ms] : good) {
        EXPECT_EQ(parse_instant(text), ms) << text;
    }
    for (const char* text : {"",
                             "2026-03-29",
                             "2026-03-29T09:30Z",
                             "2026-03-29 09:30:00Z",
                             "2026-03-29t09:30:00Z",
                             "2026-03-29T09:30:00z",
                             "2026-03-29T09:30:00",
                             "2026-03-29T09:30:00.Z",
                             "2026-03-29T09:30:00.1234Z",
                             "2026-03-29T09:30:00+2:00",
                             "2026-03-29T09:30:00+0200",
                             "2026-03-29T09:30:00+24:00",
                             "2026-03-29T09:30:00+02:60",
                             "2026-02-29T09:30:00Z",
                             "2026-13-01T09:30:00Z",
                             "2026-00-01T09:30:00Z",
                             "2026-03-00T09:30:00Z",
                             "2026-03-29T24:00:00Z",
                             "2026-03-29T09:60:00Z",
                             "2016-12-31T23:59:60Z",
                             "1969-12-31T23:59:59Z",
                             "9999-12-31T23:59:59-00:01",
                             "2026-03-29T09:30:00Z ",
                             " 2026-03-29T09:30:00Z",
                             "+2026-03-29T09:30:00Z",
                             "2026-03-29T09:30:00Zulu"}) {
        EXPECT_FALSE(parse_instant(text)) << text;
    }
    std::mt19937_64 random(7);
    for (int i = 0; i < 100000; ++i) {
        const auto ms = static_cast<std::int64_t>(random() % 253402300800000U);
        ASSERT_EQ(parse_instant(print_instant(ms)), ms);
    }
    EXPECT_EQ(print_instant(1774776600000), "2026-03-29T09:30:00Z");
    EXPECT_EQ(print_instant(1774776600007), "2026-03-29T09:30:00.007Z");
}

TEST(StableHash, NeverChanges) {
    EXPECT_EQ(stable_hash(""), 0xefd01f60ba992926U);
    EXPECT_EQ(stable_hash("nightly-backup"), stable_hash(std::string("nightly-") + "backup"));
    EXPECT_EQ(due_delay_ms("nightly-backup", 0), 0);
    std::uint64_t sum = 0;
    for (int i = 0; i < 10000; ++i) {
        const std::int64_t delay = due_delay_ms("trigger-" + std::to_string(i), 1000);
        ASSERT_GE(delay, 0);
        ASSERT_LE(delay, 1000);
        sum += static_cast<std::uint64_t>(delay);
    }
    EXPECT_NEAR(static_cast<double>(sum) / 10000, 500, 15); // spread over the whole range
}

TEST(Schedule, IntervalIsAGridFromItsAnchor) {
    const Schedule schedule = interval_schedule(10'500, 1'500);
    EXPECT_EQ(schedule.next(0), 10'500);
    EXPECT_EQ(schedule.next(10'499), 10'500);
    EXPECT_EQ(schedule.next(10'500), 12'000);
    EXPECT_EQ(schedule.next(11'999), 12'000);
    EXPECT_EQ(schedule.next(12'000), 13'500);
    EXPECT_EQ(schedule.count(0, 10'500), 0U);
    EXPECT_EQ(schedule.count(0, 10'501), 1U);
    EXPECT_EQ(schedule.count(10'500, 12'000), 1U);
    EXPECT_EQ(schedule.count(10'501, 12'000), 0U);
    EXPECT_EQ(schedule.count(0, kMaxTimeMs), kCountCap);
    EXPECT_FALSE(schedule.next(kMaxTimeMs - 1));
    EXPECT_FALSE(schedule.ends());
    std::mt19937_64 random(1);
    for (int i = 0; i < 2000; ++i) {
        const Schedule some = interval_schedule(static_cast<std::int64_t>(random() % 100000),
                                                1000 + static_cast<std::int64_t>(random() % 5000));
        const auto from = static_cast<std::int64_t>(random() % 200000);
        expect_count_agrees(some, from, from + static_cast<std::int64_t>(random() % 200000));
    }
}

TEST(Schedule, OnceHasOneInstant) {
    const Schedule schedule = once_schedule(1'234'567);
    EXPECT_EQ(schedule.next(0), 1'234'567);
    EXPECT_EQ(schedule.next(1'234'566), 1'234'567);
    EXPECT_FALSE(schedule.next(1'234'567));
    EXPECT_EQ(schedule.count(0, 1'234'567), 0U);
    EXPECT_EQ(schedule.count(0, 1'234'568), 1U);
    EXPECT_EQ(schedule.count(1'234'568, 2'000'000), 0U);
    EXPECT_TRUE(schedule.ends());
}

TEST(Schedule, StartIsInclusiveAndEndExclusive) {
    Schedule schedule = cron("* * * * *");
    schedule.begin_ms = 2 * kMinute;
    schedule.end_ms = 4 * kMinute;
    EXPECT_EQ(schedule.next(0), 2 * kMinute);
    EXPECT_EQ(schedule.next(2 * kMinute), 3 * kMinute);
    EXPECT_FALSE(schedule.next(3 * kMinute));
    EXPECT_EQ(schedule.count(0, 10 * kMinute), 2U);
    schedule.begin_ms += 1; // not a whole second
    EXPECT_EQ(schedule.next(0), 3 * kMinute);
    schedule.end_ms += 1;
    EXPECT_EQ(schedule.next(3 * kMinute), 4 * kMinute);
    EXPECT_FALSE(schedule.next(4 * kMinute));
    for (std::int64_t from = 0; from < 6 * kMinute; from += 12345) {
        expect_count_agrees(schedule, from, from + 2 * kMinute);
    }
}

TEST(Decision, TheThreeDispositions) {
    const Schedule schedule = cron("* * * * *");
    const Timing skip{MisfirePolicy::skip, 30000, 0};
    const Timing fire{MisfirePolicy::fire_once, 30000, 0};
    EXPECT_EQ(decide(schedule, skip, {std::nullopt, 60001, 70000}),
              (Decision{Disposition::initialize, 70000, 120000, std::nullopt}));
    EXPECT_EQ(decide(schedule, skip, {120000, 0, 130000}),
              (Decision{Disposition::admit, 130000, 180000, 120000}));
    EXPECT_EQ(decide(schedule, skip, {120000, 0, 150000}),
              (Decision{Disposition::admit, 150000, 180000, 120000}));
    EXPECT_EQ(decide(schedule, skip, {120000, 0, 150001}),
              (Decision{Disposition::skip, 150001, 180000, std::nullopt}));
    EXPECT_EQ(decide(schedule, fire, {120000, 0, 1000000}),
              (Decision{Disposition::admit, 1000000, 1020000, 120000}));
}

TEST(Decision, JitterShiftsDueAndLateAlikeAndDropsNothing) {
    const Schedule schedule = cron("* * * * *");
    const Timing timing{MisfirePolicy::skip, 10000, 90000}; // more than a minute later
    EXPECT_EQ(decide(schedule, timing, {120000, 0, 209999})->disposition, Disposition::initialize);
    EXPECT_EQ(decide(schedule, timing, {120000, 0, 210000}),
              (Decision{Disposition::admit, 210000, 180000, 120000}));
    EXPECT_EQ(decide(schedule, timing, {120000, 0, 220000})->disposition, Disposition::admit);
    EXPECT_EQ(decide(schedule, timing, {120000, 0, 220001})->disposition, Disposition::skip);
    // One occurrence after the other, though the next is in the past already when one is admitted.
    std::int64_t cursor = 120000;
    for (int i = 0; i < 100; ++i) {
        const ClaimTimes claim{cursor, 0, cursor + timing.delay_ms};
        const auto decision = decide(schedule, timing, claim);
        ASSERT_EQ(decision->scheduled_for_ms, cursor);
        ASSERT_EQ(count_passed(schedule, timing, claim, *decision).coalesced, 0U);
        ASSERT_EQ(decision->next_fire_at_ms, cursor + kMinute);
        cursor += kMinute;
    }
}

TEST(Decision, EveryOccurrenceIsAccountedFor) {
    std::mt19937_64 random(3);
    const auto below = [&](std::int64_t limit) { return static_cast<std::int64_t>(random()) & (limit - 1); };
    for (int i = 0; i < 5000; ++i) {
        Schedule schedule =
            i % 2 == 0 ? cron("*/7 * * * * *") : interval_schedule(below(8192), 1000 + below(4096));
        if (i % 3 == 0) {
            schedule.end_ms = 100'000 + below(65536);
        }
        const Timing timing{i % 4 < 2 ? MisfirePolicy::skip : MisfirePolicy::fire_once, below(8192),
                            below(16384)};
        std::uint64_t accounted = 0;
        std::optional<std::int64_t> cursor;
        std::int64_t now = below(65536);
        bool ended = false;
        while (now < 300'000 && !ended) {
            const ClaimTimes claim{cursor, 0, now};
            const auto decision = decide(schedule, timing, claim);
            ASSERT_TRUE(decision);
            const Passed passed = count_passed(schedule, timing, claim, *decision);
            accounted += passed.skipped + passed.coalesced + (decision->scheduled_for_ms ? 1 : 0);
            if (decision->next_fire_at_ms && cursor) {
                ASSERT_GE(*decision->next_fire_at_ms, *cursor);
            }
            ended = !decision->next_fire_at_ms;
            cursor = decision->next_fire_at_ms;
            now = std::max(now + 1, cursor.value_or(0) + timing.delay_ms) + below(4096) * (i % 5);
        }
        ASSERT_EQ(accounted, schedule.count(1, ended ? kMaxTimeMs : *cursor));
    }
}

TEST(Decision, AScheduleThatEnds) {
    const Timing timing{MisfirePolicy::skip, 1000, 0};
    const Schedule once = once_schedule(5000);
    EXPECT_EQ(decide(once, timing, {std::nullopt, 1000, 2000}),
              (Decision{Disposition::initialize, 2000, 5000, std::nullopt}));
    EXPECT_EQ(decide(once, timing, {5000, 1000, 5500}),
              (Decision{Disposition::admit, 5500, std::nullopt, 5000}));
    EXPECT_EQ(decide(once, timing, {5000, 1000, 6001}),
              (Decision{Disposition::skip, 6001, std::nullopt, std::nullopt}));
    EXPECT_EQ(
        count_passed(once, timing, {5000, 1000, 6001}, *decide(once, timing, {5000, 1000, 6001})).skipped,
        1U);
    // Nothing left at all: finished without counting anything.
    const ClaimTimes after{5001, 1000, 6000};
    EXPECT_EQ(decide(once, timing, after), (Decision{Disposition::skip, 6000, std::nullopt, std::nullopt}));
    EXPECT_EQ(count_passed(once, timing, after, *decide(once, timing, after)).skipped, 0U);
    // A schedule that was not meant to end, and never fires, is damage and not an end.
    EXPECT_FALSE(decide(cron("0 0 30 2 *"), timing, {std::nullopt, 1000, 2000}));
}
