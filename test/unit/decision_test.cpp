#include "qinglong_sched/core/decision.hpp"
#include "zone_from_system.hpp"

#include <gtest/gtest.h>

#include <random>

namespace qinglong::core {
namespace {

using test::zone_from_system;
constexpr MisfirePolicy kSkip = MisfirePolicy::skip;
constexpr MisfirePolicy kFireOnce = MisfirePolicy::fire_once;
constexpr std::optional<std::int64_t> kNone;

Schedule schedule(std::string_view text, const std::string& zone = "UTC") {
    Schedule result;
    CronError error;
    EXPECT_TRUE(parse_cron(text, result.expression, error)) << text;
    result.zone = zone_from_system(zone).view();
    return result;
}

std::optional<Decision> decide(const Schedule& schedule, MisfirePolicy policy, const ClaimTimes& claim,
                               std::int64_t grace_ms) {
    return decide(schedule, Timing{policy, grace_ms}, claim);
}

Decision admit(std::int64_t observed, std::int64_t due, std::int64_t next) {
    return {Disposition::admit, observed, next, due};
}

Decision skip(std::int64_t observed, std::int64_t next) {
    return {Disposition::skip, observed, next, std::nullopt};
}

Decision initialize(std::int64_t observed, std::int64_t next) {
    return {Disposition::initialize, observed, next, std::nullopt};
}

Passed count_passed(const Schedule& schedule, MisfirePolicy policy, const ClaimTimes& claim,
                    std::int64_t grace_ms) {
    return count_passed(schedule, Timing{policy, grace_ms}, claim,
                        *decide(schedule, policy, claim, grace_ms));
}

struct Example {
    int number;
    std::int64_t updated;
    std::optional<std::int64_t> cursor;
    std::int64_t observed;
    std::int64_t grace;
    std::vector<MisfirePolicy> policies;
    Decision expected;
};

const Example kWorkedExamples[] = {
    {1, 201, 60000, 61000, 5000, {kSkip}, admit(61000, 60000, 120000)},
    {2, 201, 60000, 65000, 5000, {kSkip}, admit(65000, 60000, 120000)},
    {3, 201, 60000, 65001, 5000, {kSkip}, skip(65001, 120000)},
    {4, 201, 60000, 630000, 5000, {kSkip}, skip(630000, 660000)},
    {5, 201, 60000, 630000, 5000, {kFireOnce}, admit(630000, 60000, 660000)},
    {6, 201, 60000, 900000, 0, {kSkip}, skip(900000, 960000)},
    {7, 201, 60000, 60000, 0, {kSkip}, admit(60000, 60000, 120000)},
    {8, 30000, kNone, 40000, 5000, {kSkip, kFireOnce}, initialize(40000, 60000)},
    {9, 30000, kNone, 60000, 5000, {kSkip, kFireOnce}, admit(60000, 60000, 120000)},
    {10, 30000, kNone, 65000, 5000, {kSkip}, admit(65000, 60000, 120000)},
    {11, 30000, kNone, 65001, 5000, {kSkip}, skip(65001, 120000)},
    {12, 60000, kNone, 60001, 5000, {kSkip, kFireOnce}, admit(60001, 60000, 120000)},
    {13, 60001, kNone, 60002, 5000, {kSkip, kFireOnce}, initialize(60002, 120000)},
    {14, 0, kNone, 10, 0, {kSkip, kFireOnce}, initialize(10, 60000)},
};

class WorkedExample : public testing::TestWithParam<Example> {};

TEST_P(WorkedExample, IsDecidedAsWritten) {
    const Example& example = GetParam();
    for (const MisfirePolicy policy : example.policies) {
        const auto decision = decide(schedule("* * * * *"), policy,
                                     {example.cursor, example.updated, example.observed}, example.grace);
        ASSERT_TRUE(decision);
        EXPECT_EQ(*decision, example.expected);
    }
}

INSTANTIATE_TEST_SUITE_P(D6, WorkedExample, testing::ValuesIn(kWorkedExamples),
                         [](const auto& param) { return "No" + std::to_string(param.param.number); });

// D11.2: on-time; skip and kFireOnce; initialize.
TEST(Decision, GraceIsStrict) {
    const Schedule minutely = schedule("* * * * *");
    for (const std::int64_t grace : {0, 1, 999, 1000, 30000, 299999, 300000}) {
        const auto on_time = decide(minutely, kSkip, {60000, 0, 60000 + grace}, grace);
        const auto late = decide(minutely, kSkip, {60000, 0, 60001 + grace}, grace);
        ASSERT_TRUE(on_time && late);
        EXPECT_EQ(on_time->disposition, Disposition::admit) << grace;
        EXPECT_EQ(on_time->scheduled_for_ms, 60000) << grace;
        EXPECT_EQ(late->disposition, Disposition::skip) << grace;
        EXPECT_FALSE(late->scheduled_for_ms) << grace;
    }
}

// D11.5: the decision does not depend on where in the minute it is taken.
TEST(Decision, AnyOffsetInTheMinute) {
    const Schedule minutely = schedule("* * * * *");
    constexpr std::int64_t base = 1'700'000'040'000; // a whole minute
    for (const std::int64_t offset : {0, 1, 999, 1000, 59999}) {
        EXPECT_EQ(decide(minutely, kFireOnce, {base, 0, base + offset}, 0),
                  admit(base + offset, base, base + 60000));
        EXPECT_EQ(decide(minutely, kFireOnce, {std::nullopt, base + offset, base + offset}, 0),
                  offset == 0 ? admit(base, base, base + 60000) : initialize(base + offset, base + 60000));
    }
}

TEST(Decision, TheCursorIsDerivedAgain) {
    // A cursor between two instants means the first one from there on.
    const Schedule minutely = schedule("* * * * *");
    EXPECT_EQ(decide(minutely, kFireOnce, {60001, 0, 130000}, 30000), admit(130000, 120000, 180000));
    EXPECT_EQ(decide(minutely, kFireOnce, {60001, 0, 119999}, 30000), initialize(119999, 120000));
    EXPECT_EQ(decide(minutely, kFireOnce, {0, 0, 1}, 30000), admit(1, 0, 60000));
}

TEST(Decision, NoFurtherOccurrence) {
    EXPECT_FALSE(decide(schedule("0 0 30 2 *"), kFireOnce, {std::nullopt, 0, 60000}, 0));
    EXPECT_FALSE(decide(schedule("* * * * *"), kFireOnce, {std::nullopt, kMaxTimeMs, kMaxTimeMs}, 0));
    EXPECT_FALSE(decide(schedule("0 0 1 1 *"), kFireOnce, {60000, 0, kMaxTimeMs - 1}, 0));
}

TEST(CountPassed, ByDisposition) {
    const Schedule minutely = schedule("* * * * *");
    const auto passed = [&](MisfirePolicy policy, const ClaimTimes& times, std::int64_t grace) {
        return count_passed(minutely, policy, times, grace);
    };
    // Initialize passes nothing over.
    EXPECT_EQ(passed(kFireOnce, {std::nullopt, 30000, 40000}, 0).skipped, 0);
    EXPECT_EQ(passed(kFireOnce, {std::nullopt, 30000, 40000}, 0).coalesced, 0);
    // Skip: the due one and all after it until the moment of the claim, which itself counts.
    EXPECT_EQ(passed(kSkip, {60000, 0, 65001}, 5000).skipped, 1);
    EXPECT_EQ(passed(kSkip, {60000, 0, 119999}, 5000).skipped, 1);
    EXPECT_EQ(passed(kSkip, {60000, 0, 120000}, 5000).skipped, 2);
    EXPECT_EQ(passed(kSkip, {60000, 0, 120000}, 5000).coalesced, 0);
    EXPECT_EQ(passed(kSkip, {std::nullopt, 30000, 240000}, 5000).skipped, 4);
    EXPECT_EQ(passed(kSkip, {std::nullopt, 60000, 240000}, 5000).skipped, 4);
    // Admit: those jumped over, without the one admitted.
    EXPECT_EQ(passed(kFireOnce, {60000, 0, 119999}, 5000).coalesced, 0);
    EXPECT_EQ(passed(kFireOnce, {60000, 0, 120000}, 5000).coalesced, 1);
    EXPECT_EQ(passed(kFireOnce, {60000, 0, 630000}, 5000).coalesced, 9);
    EXPECT_EQ(passed(kFireOnce, {60000, 0, 630000}, 5000).skipped, 0);
}

// I2: between two cursors of one revision admitted + coalesced + skipped = occurrences.
TEST(CountPassed, EveryOccurrenceIsAccountedFor) {
    std::mt19937_64 random(20260101); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same cases each time
    const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
    };
    const std::string expressions[] = {"* * * * *",         "*/7 * * * * *", "30 2 * * *",
                                       "15,45 1-3 * * SUN", "0 0 L * *",     "59 23 15W * FRI#2"};
    const std::string zones[] = {"UTC", "America/New_York", "Australia/Lord_Howe"};
    for (const std::string& expression : expressions)
        for (const std::string& zone : zones) {
            const Schedule s = schedule(expression, zone);
            for (int i = 0; i < 30; ++i) {
                const MisfirePolicy policy = below(2) == 0 ? kSkip : kFireOnce;
                const std::int64_t start = 1'700'000'000'000 + below(40'000'000'000);
                ClaimTimes times{std::nullopt, start, start + below(100'000)};
                std::uint64_t accounted = 0;
                std::optional<std::int64_t> first;
                for (int claim = 0; claim < 6; ++claim) {
                    const Timing timing{policy, below(3) * 15000};
                    const auto decision = decide(s, timing, times);
                    ASSERT_TRUE(decision);
                    if (!first)
                        first = *s.next(start - 1);
                    const Passed passed = count_passed(s, timing, times, *decision);
                    accounted += passed.skipped + passed.coalesced +
                                 (decision->disposition == Disposition::admit ? 1 : 0);
                    ASSERT_GT(*decision->next_fire_at_ms, decision->observed_at_ms);
                    ASSERT_EQ(accounted, s.count(*first, *decision->next_fire_at_ms))
                        << expression << ' ' << zone;
                    const std::int64_t later = *decision->next_fire_at_ms + below(4) * below(400'000);
                    times = ClaimTimes{decision->next_fire_at_ms, start, later};
                }
            }
        }
}

TEST(CountPassed, IsCapped) {
    const Schedule secondly = schedule("* * * * * *");
    const ClaimTimes exact{1000, 0, 100'000'000}; // instants 1 s .. 100,000 s
    EXPECT_EQ(count_passed(secondly, kSkip, exact, 0).skipped, 100000);
    const ClaimTimes beyond{1000, 0, 100'001'000};
    EXPECT_EQ(count_passed(secondly, kSkip, beyond, 0).skipped, 100000);
    EXPECT_EQ(count_passed(secondly, kFireOnce, beyond, 0).coalesced, 100000);
    const ClaimTimes decades{1000, 0, 1'700'000'000'000};
    EXPECT_EQ(count_passed(secondly, kSkip, decades, 0).skipped, 100000);
}

TEST(CronSchedule, NextIsStrictlyAfterToTheMillisecond) {
    const Schedule secondly = schedule("* * * * * *");
    EXPECT_EQ(secondly.next(0), 1000);
    EXPECT_EQ(secondly.next(1), 1000);
    EXPECT_EQ(secondly.next(999), 1000);
    EXPECT_EQ(secondly.next(1000), 2000);
    EXPECT_EQ(secondly.next(-1), 0);
    EXPECT_EQ(secondly.next(-1000), 0);
    EXPECT_EQ(secondly.next(-1001), -1000);
    EXPECT_EQ(secondly.next(kMaxTimeMs - 1000), kMaxTimeMs / 1000 * 1000);
    EXPECT_FALSE(secondly.next(kMaxTimeMs / 1000 * 1000));
    EXPECT_FALSE(secondly.next(kMaxTimeMs));
}

TEST(CronSchedule, CountIsHalfOpenInMilliseconds) {
    const Schedule minutely = schedule("* * * * *");
    EXPECT_EQ(minutely.count(60000, 60000), 0);
    EXPECT_EQ(minutely.count(60000, 60001), 1);
    EXPECT_EQ(minutely.count(60001, 120000), 0);
    EXPECT_EQ(minutely.count(59999, 120000), 1);
    EXPECT_EQ(minutely.count(60000, 120001), 2);
    EXPECT_EQ(minutely.count(120000, 60000), 0);
    EXPECT_EQ(minutely.count(-60000, 1), 2);
    EXPECT_EQ(minutely.count(0, 60000, 0), 0);
    EXPECT_EQ(minutely.count(0, 600000, 3), 3);
}

TEST(CronSchedule, CountAgreesWithNextAcrossChangesOfTheOffset) {
    for (const char* text : {"*/5 * * * *", "30 2 * * *", "0 0 * * *", "0 9-17/2 * * MON-FRI", "7 */3 L * *"})
        for (const char* zone :
             {"UTC", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia"}) {
            const Schedule s = schedule(text, zone);
            for (const std::int64_t from : {1'710'000'000'123, 1'730'500'000'000, 1'325'000'000'000}) {
                const std::int64_t until = from + 20 * 86'400'000LL + 1;
                std::uint64_t steps = 0;
                for (auto at = s.next(from - 1); at && *at < until; at = s.next(*at))
                    ++steps;
                EXPECT_EQ(s.count(from, until), steps) << text << ' ' << zone << ' ' << from;
            }
        }
}

} // namespace
} // namespace qinglong::core
