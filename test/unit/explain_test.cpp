#include "qinglong_sched/core/describe.hpp"
#include "qinglong_sched/core/explain.hpp"

#include "zone_from_system.hpp"

#include <gtest/gtest.h>

using namespace qinglong::core;
using qinglong::test::zone_from_system;

namespace {

Schedule cron(std::string_view text, const char* zone_name = "UTC") {
    Schedule schedule;
    CronError error;
    EXPECT_TRUE(parse_cron(text, schedule.expression, error)) << text << ": " << cron_error_text(error);
    const auto& zone = zone_from_system(zone_name);
    schedule.zone = {zone.spans, zone.cycle_from};
    return schedule;
}

std::string rows(const Schedule& schedule, std::int64_t after_ms, std::size_t count) {
    std::string out;
    for (const Explained& row : explain(schedule, after_ms, count)) {
        out += row.occurrence_ms ? std::to_string(*row.occurrence_ms / 1000) : "lost";
        out += ' ' + print_local(row.local_ms) + (row.note.empty() ? "" : " " + row.note) + '\n';
    }
    return out;
}

std::string described(std::string_view text) {
    return describe(cron(text).expression);
}

constexpr std::int64_t kBeforeGap =
    1772949600000; // New York, 2026-03-08T06:00Z: 01:00, an hour before the gap
constexpr std::int64_t kBeforePasses =
    1793505600000; // New York, 2026-11-01T04:00Z: midnight before the passes

} // namespace

TEST(Explain, Gap) {
    Schedule schedule = cron("30 2,3 * * *", "America/New_York");
    EXPECT_EQ(
        rows(schedule, kBeforeGap, 1),
        "1772955000 2026-03-08 03:30:00 also stands for 02:30:00, which does not exist: clocks go forward "
        "from 02:00:00 to 03:00:00\n");
    schedule = cron("30 2 * * *", "America/New_York");
    EXPECT_EQ(
        rows(schedule, kBeforeGap, 2),
        "1772955000 2026-03-08 03:30:00 moved from 02:30:00, which does not exist: clocks go forward from "
        "02:00:00 to 03:00:00\n"
        "1773037800 2026-03-09 02:30:00\n");
    schedule.rules.gap = Gap::skip;
    EXPECT_EQ(rows(schedule, kBeforeGap, 1),
              "lost 2026-03-08 02:30:00 does not exist: clocks go forward from 02:00:00 to 03:00:00\n"
              "1773037800 2026-03-09 02:30:00\n");
    schedule.begin_ms = 1773000000000; // the gap lies before the start
    EXPECT_EQ(rows(schedule, kBeforeGap, 1), "1773037800 2026-03-09 02:30:00\n");
    EXPECT_EQ(
        rows(cron("*/15 * * * *", "America/New_York"), kBeforeGap + 45 * 60000, 1),
        "lost 2026-03-08 02:00:00 does not exist: clocks go forward from 02:00:00 to 03:00:00; nor do 3 "
        "later ones\n"
        "1772953200 2026-03-08 03:00:00\n");
}

TEST(Explain, TwoPasses) {
    Schedule schedule = cron("30 1 * * *", "America/New_York");
    EXPECT_EQ(rows(schedule, kBeforePasses, 2),
              "1793511000 2026-11-01 01:30:00 first of two passes; the second does not count\n"
              "1793601000 2026-11-02 01:30:00\n");
    schedule.rules.overlap = Overlap::both;
    EXPECT_EQ(rows(schedule, kBeforePasses, 2), "1793511000 2026-11-01 01:30:00 first of two passes\n"
                                                "1793514600 2026-11-01 01:30:00 second of two passes\n");
    schedule.rules.overlap = Overlap::second;
    EXPECT_EQ(rows(schedule, kBeforePasses, 1),
              "1793514600 2026-11-01 01:30:00 second of two passes; the first does not count\n");
    EXPECT_EQ(rows(cron("30 * * * *", "America/New_York"), kBeforePasses + 3600000, 3),
              "1793511000 2026-11-01 01:30:00 first of two passes\n"
              "1793514600 2026-11-01 01:30:00 second of two passes\n"
              "1793518200 2026-11-01 02:30:00\n");
}

TEST(Explain, AWholeDayThatDoesNotExist) {
    Schedule schedule = cron("0 12 30 12 *", "Pacific/Apia");
    EXPECT_EQ(
        rows(schedule, 1325000000000, 1),
        "1325282400 2011-12-31 12:00:00 moved from 2011-12-30 12:00:00, which does not exist: clocks go "
        "forward from 2011-12-30 00:00:00 to 00:00:00\n");
}

TEST(Explain, OtherKinds) {
    EXPECT_EQ(rows(interval_schedule(500, 1500), 0, 2), "0 1970-01-01 00:00:00.500\n2 1970-01-01 00:00:02\n");
    EXPECT_EQ(rows(once_schedule(1793511000000), 0, 5), "1793511000 2026-11-01 05:30:00\n");
    EXPECT_EQ(rows(once_schedule(1793511000000), 1793511000000, 5), "");
}

// Whatever the zone and rules, the occurrences are those of next(), and their local readings are right.
TEST(Explain, ShowsWhatNextAnswers) {
    for (const char* zone : {"America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"}) {
        for (const char* text : {"*/20 * * * *", "30 0,2 * * *", "0 12 29 2 *"}) {
            for (const Gap gap : {Gap::shift, Gap::skip}) {
                Schedule schedule = cron(text, zone);
                schedule.rules.gap = gap;
                for (const std::int64_t start : {std::int64_t{1300000000000}, std::int64_t{16000000000000}}) {
                    std::int64_t at = start;
                    for (const Explained& row : explain(schedule, at, 2000)) {
                        if (row.occurrence_ms) {
                            ASSERT_EQ(row.occurrence_ms, schedule.next(at)) << zone << ' ' << text;
                            at = *row.occurrence_ms;
                            ASSERT_EQ(row.local_ms,
                                      at + std::int64_t{1000} * offset_at(schedule.zone, at / 1000));
                        }
                    }
                }
            }
        }
    }
}

TEST(Explain, YearsAreThoseOfTheServersCalendar) {
    EXPECT_EQ(print_local(9007199254740991), "287396-10-12 08:59:00.991");
    EXPECT_EQ(print_local(-62135596800000), "0001-01-01 00:00:00");
    EXPECT_EQ(print_local(-62135596801000), "0001-12-31 23:59:59 BC");
    EXPECT_EQ(print_local(-62167219200000), "0001-01-01 00:00:00 BC");
    EXPECT_EQ(print_local(-62167219201000), "0002-12-31 23:59:59 BC");
}

TEST(Describe, FieldByField) {
    const std::pair<const char*, const char*> cases[] = {
        {"* * * * *", "Every minute."},
        {"* * * * * *", "Every second."},
        {"*/15 * * * *", "Every 15 minutes."},
        {"0,15,30,45 * * * *", "Every 15 minutes."},
        {"*/10 * * * * *", "Every 10 seconds."},
        {"*/7 * * * *", "Every 7th minute from 0 through 56 of every hour."},
        {"5,20,35,50 * * * *", "Every 15th minute from 5 through 50 of every hour."},
        {"30 * * * *", "At minute 30 of every hour."},
        {"0 */2 * * *", "At minute 0 of every 2nd hour from 0 through 22."},
        {"0 1/4 * * *", "At 01:00, 05:00, 09:00, 13:00, 17:00 and 21:00 every day."},
        {"0 9 * * 1-5", "At 09:00 on Monday through Friday."},
        {"30 2 * * *", "At 02:30 every day."},
        {"15 30 2 * * *", "At 02:30:15 every day."},
        {"0,30 8,17 * * *", "At 08:00, 08:30, 17:00 and 17:30 every day."},
        {"0 9-17 * * 1-5", "At minute 0 of hours 9 through 17, on Monday through Friday."},
        {"*/5 9-17 * * *", "Every 5 minutes of hours 9 through 17."},
        {"*/15 */5 * * * *", "Every 15 seconds of every 5th minute from 0 through 55 of every hour."},
        {"* 5 * * *", "Every minute of hour 5."},
        {"0,30 * * * * *", "At seconds 0 and 30 of every minute."},
        {"0,30 5 * * * *", "At seconds 0 and 30 of minute 5 of every hour."},
        {"* 5 3 * * *", "Every second of minute 5 of hour 3."},
        {"*/20 9 * * 6,0", "At 09:00, 09:20 and 09:40 on Saturday and Sunday."},
        {"0 0 1 * *", "At 00:00 on day 1 of the month."},
        {"0 0 1,15 * *", "At 00:00 on days 1 and 15 of the month."},
        {"0 0 1,15 * 1", "At 00:00 on days 1 and 15 of the month or on Monday."},
        {"0 0 */10 * *", "At 00:00 on every 10th day from 1 through 31 of the month."},
        {"0 0 L * *", "At 00:00 on the last day of the month."},
        {"0 0 15,L * *", "At 00:00 on day 15 and the last day of the month."},
        {"0 0 15W * *", "At 00:00 on the weekday (Monday to Friday) nearest to day 15 of the month."},
        {"0 0 LW * *", "At 00:00 on the last weekday (Monday to Friday) of the month."},
        {"0 0 * * 5#2", "At 00:00 on the second Friday of the month."},
        {"0 0 * * 5L", "At 00:00 on the last Friday of the month."},
        {"0 0 * * 1#1,1#3,MON#L", "At 00:00 on the first and third Monday and the last Monday of the month."},
        {"0 0 * * 3,5#2", "At 00:00 on Wednesday and the second Friday of the month."},
        {"0 12 * 1 *", "At 12:00 every day in January."},
        {"* * * 6-8 *", "Every minute, in June through August."},
        {"0 0 1 */3 *", "At 00:00 on day 1 of the month in January, April, July and October."},
        {"0 9 ? * MON", "At 09:00 on Monday."},
        {"0 0 30 2 *", "At 00:00 on day 30 of the month in February, which never happens."},
        {"0 0 29 2 *", "At 00:00 on day 29 of the month in February."},
    };
    for (const auto& [text, sentence] : cases) {
        EXPECT_EQ(described(text), sentence) << text;
    }
}
