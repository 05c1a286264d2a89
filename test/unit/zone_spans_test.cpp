#include "qinglong_sched/core/zone_spans.hpp"
#include "zone_from_system.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace qinglong::core {
namespace {

using test::SystemZone;
using test::zone_from_system;

constexpr std::int64_t kBegin = std::numeric_limits<std::int64_t>::min();

TEST(ZoneSpans, WhatAViewMustKeep) {
    const auto is_valid = [](std::vector<ZoneSpan> spans, std::int64_t cycle_from = 0) {
        return zone_is_valid({spans, cycle_from});
    };
    EXPECT_TRUE(is_valid({{kBegin, 0}}));
    EXPECT_TRUE(is_valid({{kBegin, -50400}, {0, 36000}, {kMinSpanSeconds, 0}}));
    EXPECT_FALSE(is_valid({}));
    EXPECT_FALSE(is_valid({{0, 0}}));
    EXPECT_FALSE(is_valid({{kBegin, kMaxOffset + 1}}));
    EXPECT_FALSE(is_valid({{kBegin, 0}, {0, -kMaxOffset - 1}}));
    EXPECT_FALSE(is_valid({{kBegin, -50400}, {0, 36001}}));
    EXPECT_FALSE(is_valid({{kBegin, 0}, {0, 3600}, {kMinSpanSeconds - 1, 0}}));
    EXPECT_FALSE(is_valid({{kBegin, 0}, {0, 3600}, {-kMinSpanSeconds, 0}}));
    EXPECT_FALSE(is_valid({{kBegin, 0}}, kMaxInstant + 1));
}

TEST(ZoneSpans, SpansBeginAtTheirFirstSecond) {
    const std::vector<ZoneSpan> spans{{kBegin, 1}, {0, 2}, {kMinSpanSeconds, 3}};
    const ZoneView zone{spans, 2 * kMinSpanSeconds};
    EXPECT_EQ(offset_at(zone, kMinInstant), 1);
    EXPECT_EQ(offset_at(zone, -1), 1);
    EXPECT_EQ(offset_at(zone, 0), 2);
    EXPECT_EQ(offset_at(zone, kMinSpanSeconds - 1), 2);
    EXPECT_EQ(offset_at(zone, kMinSpanSeconds), 3);
    EXPECT_EQ(offset_at(zone, kMaxInstant), 3);
}

TEST(ZoneSpans, FoldingStaysInsideTheFirstCycle) {
    const std::vector<ZoneSpan> spans{{kBegin, 0}};
    const ZoneView zone{spans, 1000};
    EXPECT_EQ(fold_instant(zone, kMinInstant), kMinInstant);
    EXPECT_EQ(fold_instant(zone, 999 + kCycleSeconds), 999 + kCycleSeconds);
    EXPECT_EQ(fold_instant(zone, 1000 + kCycleSeconds), 1000);
    EXPECT_EQ(fold_instant(zone, 1001 + 7 * kCycleSeconds), 1001);
}

TEST(ZoneSpans, AgreeWithTheSystemToTheYear9999) {
    for (const char* name :
         {"America/New_York", "Africa/Casablanca", "Australia/Lord_Howe", "Pacific/Apia"}) {
        const SystemZone& zone = zone_from_system(name);
        ASSERT_TRUE(zone_is_valid(zone.view())) << name;
        setenv("TZ", name, 1);
        tzset();
        for (std::int64_t instant = -3000000000; instant < 253402300800; instant += 20000003) {
            const std::time_t time = instant;
            std::tm local{};
            localtime_r(&time, &local);
            ASSERT_EQ(offset_at(zone.view(), instant), local.tm_gmtoff) << name << " at " << instant;
        }
    }
}

} // namespace
} // namespace qinglong::core
