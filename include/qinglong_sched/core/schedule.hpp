#pragma once
// The instants of one trigger, in the milliseconds of the tables. Whatever is shown, decided, counted or
// admitted comes from here.

#include "qinglong_sched/core/occurrence.hpp"

#include <cstdint>
#include <optional>

namespace qinglong::core {

// The largest time of the tables: 2^53 - 1.
inline constexpr std::int64_t kMaxTimeMs = 9007199254740991;

// Counting is exact up to here and stops: no decision may take long.
inline constexpr std::uint64_t kCountCap = 100000;

struct Schedule {
    CronExpression expression;
    ZoneView zone;

    // The first instant strictly after; nothing when there is none.
    std::optional<std::int64_t> next(std::int64_t after_ms) const;
    // How many instants lie in [from, until), at most cap.
    std::uint64_t count(std::int64_t from_ms, std::int64_t until_ms, std::uint64_t cap = kCountCap) const;
};

} // namespace qinglong::core
