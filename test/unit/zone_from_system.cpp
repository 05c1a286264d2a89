#include "zone_from_system.hpp"

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>

namespace qinglong::test {
namespace {

constexpr std::int64_t kStride = core::kMinSpanSeconds; // no two changes are closer

constexpr std::int64_t kYear1850 = -3786825600;
constexpr std::int64_t kYear2100 = 4102444800; // every zone follows its last rule long before

std::int32_t offset_from_system(std::int64_t instant) {
    const std::time_t time = instant;
    std::tm local{};
    localtime_r(&time, &local);
    return static_cast<std::int32_t>(local.tm_gmtoff);
}

// Appends the changes in (from, until], found by looking once in a while and halving.
void append_changes(std::vector<core::ZoneSpan>& spans, std::int64_t from, std::int64_t until) {
    std::int32_t known = offset_from_system(from);
    for (std::int64_t low = from; low < until; low += kStride) {
        const std::int32_t next = offset_from_system(low + kStride);
        if (next == known) {
            continue;
        }
        std::int64_t before = low;
        std::int64_t after = low + kStride;
        while (after - before > 1) {
            const std::int64_t middle = before + (after - before) / 2;
            (offset_from_system(middle) == known ? before : after) = middle;
        }
        known = next;
        spans.push_back({after, known});
    }
}

SystemZone build(const std::string& name) {
    setenv("TZ", (":" + name).c_str(), 1);
    tzset();
    SystemZone zone;
    zone.cycle_from = kYear2100;
    zone.spans.push_back({std::numeric_limits<std::int64_t>::min(), offset_from_system(kYear1850)});
    append_changes(zone.spans, kYear1850, kYear2100);
    // The last rule repeats every 400 years: find one cycle, write it down twice.
    std::vector<core::ZoneSpan> cycle;
    append_changes(cycle, kYear2100, kYear2100 + core::kCycleSeconds);
    for (const std::int64_t shift : {std::int64_t{0}, core::kCycleSeconds}) {
        for (const core::ZoneSpan& span : cycle) {
            zone.spans.push_back({span.begin + shift, span.offset});
        }
    }
    setenv("TZ", "UTC", 1);
    tzset();
    return zone;
}

} // namespace

const SystemZone& zone_from_system(const std::string& name) {
    static std::map<std::string, SystemZone> zones;
    auto found = zones.find(name);
    if (found == zones.end()) {
        found = zones.emplace(name, build(name)).first;
    }
    return found->second;
}

bool system_has_zone(const std::string& name) {
    std::error_code ignored;
    return std::filesystem::is_regular_file("/usr/share/zoneinfo/" + name, ignored);
}

} // namespace qinglong::test
