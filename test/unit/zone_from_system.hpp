#pragma once

#include "qinglong_sched/core/zone_spans.hpp"

#include <string>
#include <vector>

namespace qinglong::test {

struct SystemZone {
    std::vector<core::ZoneSpan> spans;
    std::int64_t cycle_from = 0;

    core::ZoneView view() const { return {spans, cycle_from}; }
};

// The zone as the C library knows it, from 1850 on. Built once per name, then kept. Single-threaded.
const SystemZone& zone_from_system(const std::string& name);

// Whether the C library has data under that name.
bool system_has_zone(const std::string& name);

} // namespace qinglong::test
