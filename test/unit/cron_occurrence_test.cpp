#include "qinglong_sched/core/occurrence.hpp"
#include "zone_from_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

namespace qinglong::core {
namespace {

using test::zone_from_system;

constexpr std::int64_t kDaySeconds = 86400;

std::int64_t utc(const std::string& text) { // 2024-03-10, or 2024-03-10T07:30, or 2024-03-10T07:30:15
    int year = 0;
    unsigned month = 0;
    unsigned day = 0;
    long hour = 0;
    long minute = 0;
    long second = 0;
    EXPECT_GE(std::sscanf(text.c_str(), "%d-%u-%uT%ld:%ld:%ld", &year, &month, &day, &hour, &minute, &second),
              3);
    const std::chrono::sys_days date =
        std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
    return date.time_since_epoch().count() * kDaySeconds + hour * 3600 + minute * 60 + second;
}

CronExpression parsed(const std::string& text) {
    CronExpression expression;
    CronError error;
    EXPECT_TRUE(parse_cron(text, expression, error)) << text << ": " << cron_error_text(error);
    return expression;
}

class Schedule {
  public:
    Schedule(const std::string& expression, const std::string& zone, InstantRules rules = {})
        : text_(expression + " in " + zone), expression_(parsed(expression)),
          zone_(zone_from_system(zone).view()), rules_(rules) {}

    // The occurrences that follow are exactly these, also when asked from any second between them.
    void expect(const std::string& after, const std::vector<std::string>& wanted) const {
        std::int64_t from = utc(after);
        const std::int64_t begin = from;
        std::uint64_t number = 0;
        for (const std::string& instant : wanted) {
            std::int64_t next = 0;
            ASSERT_TRUE(next_occurrence(expression_, zone_, from, next, rules_)) << text_;
            ASSERT_EQ(next, utc(instant))
                << text_ << ": off by " << next - utc(instant) << " s at " << instant;
            for (std::int64_t between = from; between < next; between += 1 + (next - from) / 97) {
                std::int64_t again = 0;
                ASSERT_TRUE(next_occurrence(expression_, zone_, between, again, rules_)) << text_;
                ASSERT_EQ(again, next) << text_ << " asked from " << between;
            }
            from = next;
            ASSERT_EQ(count_occurrences(expression_, zone_, begin, from, 1000000, rules_), ++number) << text_;
        }
    }

    std::uint64_t count(std::int64_t after, std::int64_t until, std::uint64_t cap = UINT64_MAX) const {
        return count_occurrences(expression_, zone_, after, until, cap, rules_);
    }

    std::uint64_t count_one_by_one(std::int64_t after, std::int64_t until) const {
        std::uint64_t count = 0;
        std::int64_t next = 0;
        while (next_occurrence(expression_, zone_, after, next, rules_) && next <= until) {
            EXPECT_GT(next, after) << text_;
            after = next;
            ++count;
        }
        return count;
    }

    bool has_next(std::int64_t after) const {
        std::int64_t next = 0;
        return next_occurrence(expression_, zone_, after, next, rules_);
    }

  private:
    std::string text_;
    CronExpression expression_;
    ZoneView zone_;
    InstantRules rules_;
};

TEST(CronOccurrence, GapsMoveWallClockTimesLater) {
    Schedule("0 17 * * *", "America/New_York").expect("2016-03-12T22:00", {"2016-03-13T21:00"});
    Schedule("30 2 * * *", "America/New_York").expect("2026-03-08T06:30", {"2026-03-08T07:30"});
    Schedule("30 2 * * *", "America/New_York").expect("2024-03-10", {"2024-03-10T07:30", "2024-03-11T06:30"});
    Schedule("15,45 2 * * *", "America/New_York")
        .expect("2024-03-10", {"2024-03-10T07:15", "2024-03-10T07:45"});
    Schedule("0 2 * * *", "America/Los_Angeles").expect("2025-03-09T00:00", {"2025-03-09T10:00"});
    Schedule("30 2 * * *", "Europe/Amsterdam").expect("2023-03-26T00:00", {"2023-03-26T01:30"});
    Schedule("0 7-8 * * *", "America/Los_Angeles")
        .expect("2020-03-08T08:00", {"2020-03-08T14:00", "2020-03-08T15:00"});
    Schedule("20 */4 * * *", "America/Los_Angeles")
        .expect("2023-03-12T08:00", {"2023-03-12T08:20", "2023-03-12T11:20", "2023-03-12T15:20",
                                     "2023-03-12T19:20", "2023-03-12T23:20"});
}

TEST(CronOccurrence, TwoLocalTimesOnOneInstantAreOneOccurrence) {
    Schedule("0 */2 * * *", "America/Toronto")
        .expect("2023-03-12T04:00", {"2023-03-12T05:00", "2023-03-12T07:00", "2023-03-12T08:00",
                                     "2023-03-12T10:00", "2023-03-12T12:00"});
    Schedule("0 2,3 * * *", "America/New_York")
        .expect("2024-03-10", {"2024-03-10T07:00", "2024-03-11T06:00"});
    // 02:30 arrives at 03:30, between 03:10 and 03:50.
    Schedule("10,50 3 * * *", "America/New_York")
        .expect("2024-03-10", {"2024-03-10T07:10", "2024-03-10T07:50"});
    Schedule("10,30,50 2,3 * * *", "America/New_York")
        .expect("2024-03-10",
                {"2024-03-10T07:10", "2024-03-10T07:30", "2024-03-10T07:50", "2024-03-11T06:10"});
}

TEST(CronOccurrence, IntervalsFollowRealTime) {
    Schedule("*/15 * * * *", "America/New_York")
        .expect("2024-03-10T06:30", {"2024-03-10T06:45", "2024-03-10T07:00"});
    Schedule("*/15 * * * *", "America/New_York")
        .expect("2024-11-03T04:59", {"2024-11-03T05:00", "2024-11-03T05:15", "2024-11-03T05:30",
                                     "2024-11-03T05:45", "2024-11-03T06:00", "2024-11-03T06:15",
                                     "2024-11-03T06:30", "2024-11-03T06:45", "2024-11-03T07:00"});
    Schedule("* * * * *", "America/Sao_Paulo").expect("2016-02-21T02:00", {"2016-02-21T02:01"});
    const Schedule every_15_s("*/15 * * * * *", "Europe/London");
    EXPECT_EQ(every_15_s.count(utc("2025-10-26T01:00") - 1, utc("2025-10-26T02:00") - 1), 240U);
    EXPECT_EQ(every_15_s.count_one_by_one(utc("2025-10-26T01:00") - 1, utc("2025-10-26T02:00") - 1), 240U);
}

TEST(CronOccurrence, OverlapsCountTheFirstPass) {
    Schedule("30 1 * * *", "America/New_York").expect("2024-11-03", {"2024-11-03T05:30", "2024-11-04T06:30"});
    // The day after the last minute before midnight is repeated.
    Schedule("59 23 * * *", "America/Sao_Paulo")
        .expect("2018-02-17T03:00", {"2018-02-18T01:59", "2018-02-19T02:59"});
}

TEST(CronOccurrence, MidnightsThatDoNotExist) {
    Schedule("0 0 1 4 11 *", "America/Sao_Paulo").expect("2018-11-04T02:00", {"2018-11-04T03:00"});
    Schedule("0 0 12 11,26 * *", "America/Sao_Paulo").expect("2014-10-12T15:00", {"2014-10-26T14:00"});
    Schedule("0 6 * * *", "America/Santiago").expect("2018-08-12T00:00", {"2018-08-12T09:00"});
    Schedule("0 0 * * *", "Asia/Beirut").expect("2024-03-30T12:00", {"2024-03-30T22:00", "2024-03-31T21:00"});
    Schedule("30 0 26 4 *", "Africa/Cairo").expect("2024-04-25T12:00", {"2024-04-25T22:30"});
}

TEST(CronOccurrence, OddShifts) {
    // A whole day that was never there.
    Schedule("0 12 30 12 *", "Pacific/Apia").expect("2011-12-01", {"2011-12-30T22:00", "2012-12-29T22:00"});
    Schedule("0 12 * * *", "Pacific/Apia")
        .expect("2011-12-29T00:00", {"2011-12-29T22:00", "2011-12-30T22:00"});
    EXPECT_EQ(Schedule("0 12,13 * * *", "Pacific/Apia").count(utc("2011-12-29"), utc("2011-12-31")), 4U);
    // Half an hour, and two hours.
    Schedule("15 2 * * *", "Australia/Lord_Howe")
        .expect("2024-10-05T13:00", {"2024-10-05T15:45", "2024-10-06T15:15"});
    Schedule("45 1 * * *", "Australia/Lord_Howe")
        .expect("2024-04-06T10:00", {"2024-04-06T14:45", "2024-04-07T15:15"});
    Schedule("30 1,2 * * *", "Antarctica/Troll")
        .expect("2024-03-31T00:00", {"2024-03-31T01:30", "2024-03-31T02:30", "2024-03-31T23:30"});
}

TEST(CronOccurrence, OffsetsOfAllKinds) {
    const std::pair<const char*, const char*> nine_o_clock[] = {
        {"America/St_Johns", "2026-01-15T12:30"},   {"Pacific/Marquesas", "2026-01-15T18:30"},
        {"Asia/Kathmandu", "2026-01-15T03:15"},     {"Pacific/Chatham", "2026-01-14T19:15"},
        {"Pacific/Kiritimati", "2026-01-14T19:00"},
    };
    for (const auto& [zone, instant] : nine_o_clock) {
        Schedule("0 9 15 1 *", zone).expect("2026-01-01", {instant});
    }
}

TEST(CronOccurrence, DayRules) {
    Schedule("0 9 * * mon,tue,wed,thu,fri", "UTC")
        .expect("2010-08-07", {"2010-08-09T09:00", "2010-08-10T09:00"});
    Schedule("1 1 1 1 1", "UTC")
        .expect("2026-12-31", {"2027-01-01T01:01", "2027-01-04T01:01", "2027-01-11T01:01", "2027-01-18T01:01",
                               "2027-01-25T01:01", "2028-01-01T01:01"});
    Schedule("0 0 10,14,16 ? * MON-FRI", "UTC")
        .expect("2024-06-01T12:00", {"2024-06-03T10:00", "2024-06-03T14:00"});
    Schedule("0 1/4 * * *", "UTC")
        .expect("2024-06-01", {"2024-06-01T01:00", "2024-06-01T05:00", "2024-06-01T09:00", "2024-06-01T13:00",
                               "2024-06-01T17:00", "2024-06-01T21:00", "2024-06-02T01:00"});
    Schedule("0 0 L * *", "UTC").expect("2024-02-01", {"2024-02-29", "2024-03-31", "2024-04-30"});
    Schedule("0 0 LW * *", "UTC")
        .expect("2024-03-01", {"2024-03-29", "2024-04-30", "2024-05-31", "2024-06-28"});
    // 1 June 2024 is a Saturday, 30 June a Sunday: both stay inside the month.
    Schedule("0 0 1W,30W 6 *", "UTC").expect("2024-05-01", {"2024-06-03", "2024-06-28"});
    Schedule("0 0 31W * *", "UTC").expect("2024-08-01", {"2024-08-30", "2024-10-31", "2024-12-31"});
    Schedule("0 0 * * 5#5", "UTC").expect("2024-03-01", {"2024-03-29", "2024-05-31"});
    Schedule("0 0 * * 1-5#L", "UTC")
        .expect("2024-02-20",
                {"2024-02-23", "2024-02-26", "2024-02-27", "2024-02-28", "2024-02-29", "2024-03-25"});
}

TEST(CronOccurrence, BothDayFieldsMayBeAskedToMatch) {
    const InstantRules both{Gap::shift, Overlap::first, DayMatch::both};
    Schedule("0 0 13 * 5", "UTC", both).expect("2024-01-01", {"2024-09-13", "2024-12-13", "2025-06-13"});
    Schedule("0 0 29 2 1", "UTC", both)
        .expect("1996-01-01", {"2016-02-29", "2044-02-29", "2072-02-29", "2112-02-29"});
    Schedule("0 0 29 2 1", "UTC").expect("2024-02-20", {"2024-02-26", "2024-02-29", "2025-02-03"});
    // 40 years without a leap Tuesday, over the end of a century.
    Schedule("0 0 29 2 2", "UTC", both).expect("2072-03-01", {"2084-02-29", "2124-02-29"});
}

TEST(CronOccurrence, GapsMayBeSkipped) {
    const InstantRules skip{Gap::skip, Overlap::first, DayMatch::either};
    Schedule("30 2 * * *", "America/New_York", skip).expect("2024-03-09T12:00", {"2024-03-11T06:30"});
    Schedule("30 2,3 * * *", "America/New_York", skip)
        .expect("2024-03-10", {"2024-03-10T07:30", "2024-03-11T06:30"});
    Schedule("0 12 30 12 *", "Pacific/Apia", skip).expect("2011-12-01", {"2012-12-29T22:00"});
    // Always inside the gap: the search ends, and says so.
    const InstantRules never{Gap::skip, Overlap::first, DayMatch::both};
    EXPECT_FALSE(Schedule("30 2 8-14 3 SUN", "America/New_York", never).has_next(utc("2024-01-01")));
    EXPECT_TRUE(Schedule("30 2 8-14 3 SUN", "America/New_York", never).has_next(utc("2000-01-01")));
    // Real time is not affected.
    Schedule("30 * * * *", "America/New_York", skip)
        .expect("2024-03-10T06:00", {"2024-03-10T06:30", "2024-03-10T07:30"});
}

TEST(CronOccurrence, OverlapsMayCountTwiceOrTheSecondPass) {
    const InstantRules both{Gap::shift, Overlap::both, DayMatch::either};
    const InstantRules second{Gap::shift, Overlap::second, DayMatch::either};
    Schedule("30 1 * * *", "America/New_York", both)
        .expect("2024-11-02T12:00", {"2024-11-03T05:30", "2024-11-03T06:30", "2024-11-04T06:30"});
    Schedule("30 1 * * *", "America/New_York", second)
        .expect("2024-11-02T12:00", {"2024-11-03T06:30", "2024-11-04T06:30"});
    Schedule("0 0-2 * * *", "America/New_York", second)
        .expect("2024-11-03T03:00", {"2024-11-03T04:00", "2024-11-03T06:00", "2024-11-03T07:00"});
    Schedule("30 * * * *", "America/New_York", second)
        .expect("2024-11-03T05:00", {"2024-11-03T05:30", "2024-11-03T06:30"});
}

TEST(CronOccurrence, ImpossibleDatesHaveNoNext) {
    for (const char* text : {"0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 2 *"}) {
        EXPECT_FALSE(Schedule(text, "UTC").has_next(utc("2024-01-01"))) << text;
        EXPECT_FALSE(Schedule(text, "Europe/Paris").has_next(utc("2024-01-01"))) << text;
        EXPECT_EQ(Schedule(text, "Europe/Paris").count(kMinInstant, kMaxInstant), 0U) << text;
    }
    std::int64_t next = 0;
    EXPECT_FALSE(next_occurrence(CronExpression{}, zone_from_system("UTC").view(), 0, next));
}

TEST(CronOccurrence, OldAndFarInstants) {
    Schedule("0 0 1 1 *", "UTC").expect("-4712-06-01", {"-4711-01-01", "-4710-01-01"});
    Schedule("0 0 29 2 *", "UTC").expect("-0004-03-01", {"0000-02-29"});
    Schedule("59 59 23 31 12 *", "UTC").expect("1969-12-31T23:59:58", {"1969-12-31T23:59:59"});
    Schedule("30 2 * * *", "America/New_York").expect("9999-03-13T12:00", {"9999-03-14T07:30"});
    const Schedule daily("0 0 * * *", "UTC");
    EXPECT_TRUE(daily.has_next(kMaxInstant));
    EXPECT_TRUE(daily.has_next(kMinInstant));
    EXPECT_FALSE(daily.has_next(kMaxInstant + 1));
    EXPECT_FALSE(daily.has_next(kMinInstant - 1));
}

TEST(CronOccurrence, LaterCyclesRepeatTheFirst) {
    for (const char* text : {"30 2 * * *", "*/7 * * * *", "0 0 29 2 *", "15 1 * 10,11 0#1"}) {
        const CronExpression expression = parsed(text);
        const ZoneView zone = zone_from_system("America/New_York").view();
        for (std::int64_t after = utc("2400-01-01"); after < utc("2402-01-01"); after += 1234567) {
            std::int64_t near = 0;
            std::int64_t far = 0;
            ASSERT_TRUE(next_occurrence(expression, zone, after, near));
            ASSERT_TRUE(next_occurrence(expression, zone, after + 300 * kCycleSeconds, far));
            ASSERT_EQ(far, near + 300 * kCycleSeconds) << text;
        }
    }
}

TEST(CronOccurrence, CountingEqualsVisiting) {
    for (const char* zone :
         {"UTC", "America/New_York", "Pacific/Apia", "Australia/Lord_Howe", "Africa/Casablanca"}) {
        for (const char* text : {"* * * * *", "*/5 * * * *", "*/10 1-5 * * *", "30 2 * * *",
                                 "7,8 0-3,12 1,L * 1#L", "*/20 30 1-2 * 3,10,12 *"}) {
            for (const Overlap overlap : {Overlap::first, Overlap::both, Overlap::second}) {
                const Schedule schedule(text, zone, {Gap::shift, overlap, DayMatch::either});
                for (const char* year : {"1969", "2011", "2024"}) {
                    const std::int64_t after = utc(std::string(year) + "-02-03T04:05:06");
                    const std::int64_t until = after + 367 * kDaySeconds + 7777;
                    ASSERT_EQ(schedule.count(after, until), schedule.count_one_by_one(after, until))
                        << text << " in " << zone << ", " << year;
                }
            }
        }
    }
}

TEST(CronOccurrence, CountsAreCappedAndAdditive) {
    const Schedule minutely("* * * * *", "America/New_York");
    EXPECT_EQ(minutely.count(0, 600, 4), 4U);
    EXPECT_EQ(minutely.count(0, 600, 10), 10U);
    EXPECT_EQ(minutely.count(0, 600, 11), 10U);
    EXPECT_EQ(minutely.count(0, 600, 0), 0U);
    EXPECT_EQ(minutely.count(600, 0), 0U);
    EXPECT_EQ(minutely.count(0, kCycleSeconds * 600), static_cast<std::uint64_t>(kCycleSeconds * 10));
    EXPECT_EQ(minutely.count(INT64_MIN, INT64_MAX), minutely.count(kMinInstant, kMaxInstant));
    const Schedule daily("30 2 * * *", "America/New_York");
    EXPECT_EQ(daily.count(0, kCycleSeconds * 600), std::uint64_t{146097} * 600);
    for (std::int64_t middle = -kCycleSeconds; middle < 9 * kCycleSeconds; middle += 777777777) {
        ASSERT_EQ(daily.count(-2 * kCycleSeconds, middle) + daily.count(middle, 10 * kCycleSeconds),
                  daily.count(-2 * kCycleSeconds, 10 * kCycleSeconds));
    }
}

} // namespace
} // namespace qinglong::core
