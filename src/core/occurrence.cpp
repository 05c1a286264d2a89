#include "qinglong_sched/core/occurrence.hpp"

#include <algorithm>
#include <bit>

namespace qinglong::core {
namespace {

// Local time is counted in seconds since 1970-01-01T00:00 local, days likewise.
constexpr std::int64_t kDaySeconds = 86400;

constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

struct Month {
    std::int64_t year;
    int month; // 1..12
};

// A year that begins in March puts the leap day last; the rest is counting.
constexpr std::int64_t first_day_of(Month at) {
    const std::int64_t year = at.month <= 2 ? at.year - 1 : at.year;
    const std::int64_t cycle = floor_div(year, 400);
    const std::int64_t year_of_cycle = year - cycle * 400;
    const std::int64_t day_of_year = (153 * (at.month > 2 ? at.month - 3 : at.month + 9) + 2) / 5;
    return cycle * 146097 + year_of_cycle * 365 + year_of_cycle / 4 - year_of_cycle / 100 + day_of_year -
           719468;
}

constexpr Month month_of(std::int64_t day) {
    const std::int64_t shifted = day + 719468;
    const std::int64_t cycle = floor_div(shifted, 146097);
    const std::int64_t day_of_cycle = shifted - cycle * 146097;
    const std::int64_t year_of_cycle =
        (day_of_cycle - day_of_cycle / 1460 + day_of_cycle / 36524 - day_of_cycle / 146096) / 365;
    const std::int64_t day_of_year =
        day_of_cycle - (365 * year_of_cycle + year_of_cycle / 4 - year_of_cycle / 100);
    const int march_month = static_cast<int>((5 * day_of_year + 2) / 153);
    const int month = march_month < 10 ? march_month + 3 : march_month - 9;
    return {cycle * 400 + year_of_cycle + (month <= 2 ? 1 : 0), month};
}

constexpr int length_of(Month at) {
    if (at.month == 2) {
        const bool leap = at.year % 4 == 0 && (at.year % 100 != 0 || at.year % 400 == 0);
        return leap ? 29 : 28;
    }
    return 30 + ((at.month + (at.month >> 3)) & 1);
}

// 0 = Sunday.
constexpr int weekday_of(std::int64_t day) {
    const auto weekday = static_cast<int>((day + 4) % 7);
    return weekday < 0 ? weekday + 7 : weekday;
}

constexpr std::uint64_t kEachWeek = 0x1020'4081; // bit 0 of each of five groups of seven

// Turns weekday bits, in five groups of seven, so that bit 0 of a group is the weekday `first`.
constexpr std::uint64_t rotate_weeks(std::uint64_t weeks, int first) {
    const std::uint64_t low = kEachWeek * ((1U << (7 - first)) - 1U);
    return ((weeks >> first) & low) | ((weeks << (7 - first)) & ~low & (kEachWeek * 127));
}

constexpr std::uint32_t days_up_to(int day) {
    return static_cast<std::uint32_t>((std::uint64_t{2} << day) - 1);
}

// The matches of an expression in local time, with no regard to zones.
class LocalMatches {
  public:
    LocalMatches(const CronExpression& expression, DayMatch day_match)
        : expression_(expression),
          every_field_(expression.any_day || expression.any_weekday || day_match == DayMatch::both) {}

    // The first match in [from, limit), or `limit`.
    // One step for each month that is in the month set; there is no day that is looked at by itself.
    std::int64_t first(std::int64_t from, std::int64_t limit) {
        const std::int64_t day = floor_div(from, kDaySeconds);
        Month at = month_of(day);
        std::int64_t month_start = first_day_of(at);
        std::uint32_t open_days = 0;
        if ((expression_.months >> at.month & 1U) != 0) {
            const int today = static_cast<int>(day - month_start) + 1;
            open_days = days_in(at, month_start) & ~days_up_to(today - 1);
            if ((open_days >> today & 1U) != 0) {
                const int time = first_time(static_cast<int>(from - day * kDaySeconds));
                if (time >= 0) {
                    return std::min(limit, day * kDaySeconds + time);
                }
                open_days &= open_days - 1;
            }
        }
        while (open_days == 0) {
            const std::uint32_t months_left = expression_.months & ~days_up_to(at.month);
            if (months_left == 0) {
                ++at.year;
            }
            at.month = std::countr_zero(months_left != 0 ? months_left : std::uint32_t{expression_.months});
            month_start = first_day_of(at);
            if (month_start * kDaySeconds >= limit) {
                return limit;
            }
            open_days = days_in(at, month_start);
        }
        const std::int64_t found = month_start + std::countr_zero(open_days) - 1;
        return std::min(limit, found * kDaySeconds + earliest_time());
    }

    // How many matches lie in [from, limit).
    std::uint64_t count(std::int64_t from, std::int64_t limit) {
        if (from >= limit) {
            return 0;
        }
        const std::int64_t first_day = floor_div(from, kDaySeconds);
        const std::int64_t last_day = floor_div(limit, kDaySeconds);
        const std::uint64_t before = times_before(static_cast<int>(from - first_day * kDaySeconds));
        const std::uint64_t until = times_before(static_cast<int>(limit - last_day * kDaySeconds));
        // Whole days [first_day, last_day), less the start of the first, plus the start of the last. In
        // unsigned arithmetic the order does not matter.
        std::uint64_t total = days_between(first_day, last_day) * times_before(kDaySeconds);
        total -= days_between(first_day, first_day + 1) * before;
        total += days_between(last_day, last_day + 1) * until;
        return total;
    }

    std::uint32_t steps = 0;

  private:
    // The matching days of a month, as bits 1..31.
    std::uint32_t days_in(Month at, std::int64_t month_start) {
        ++steps;
        const int length = length_of(at);
        const int first_weekday = weekday_of(month_start);
        const std::uint32_t by_date = by_date_in(length, first_weekday);
        const std::uint32_t by_weekday = by_weekday_in(length, first_weekday);
        return (every_field_ ? by_date & by_weekday : by_date | by_weekday) & (days_up_to(length) & ~1U);
    }

    std::uint32_t by_date_in(int length, int first_weekday) const {
        std::uint32_t days = expression_.days;
        if (expression_.last_day) {
            days |= 1U << length;
        }
        if (expression_.nearest_workdays != 0) {
            const std::uint32_t wanted = expression_.nearest_workdays & days_up_to(length);
            const auto saturdays =
                static_cast<std::uint32_t>(rotate_weeks(kEachWeek << 6, first_weekday) << 1);
            const auto sundays = static_cast<std::uint32_t>(rotate_weeks(kEachWeek, first_weekday) << 1);
            const std::uint32_t first = 1U << 1;
            const std::uint32_t last = 1U << length;
            days |= wanted & ~(saturdays | sundays);
            days |= (wanted & saturdays & ~first) >> 1 | (wanted & saturdays & first) << 2;
            days |= (wanted & sundays & ~last) << 1 | (wanted & sundays & last) >> 2;
        }
        if (expression_.last_workday) {
            const int last_weekday = (first_weekday + length - 1) % 7;
            days |= 1U << (length - (last_weekday == 6 ? 1 : last_weekday == 0 ? 2 : 0));
        }
        return days;
    }

    std::uint32_t by_weekday_in(int length, int first_weekday) const {
        auto days = static_cast<std::uint32_t>(rotate_weeks(expression_.weekdays, first_weekday) << 1);
        if (expression_.last_weekdays != 0) {
            const int weekday = (first_weekday + length - 7) % 7; // of the first of the last seven days
            const auto week =
                static_cast<std::uint32_t>(rotate_weeks(expression_.last_weekdays, weekday) & 127);
            days |= week << (length - 6);
        }
        return days;
    }

    int earliest_time() const { return std::countr_zero(expression_.hours) * 3600 + earliest_in_hour(); }

    int earliest_in_hour() const {
        return std::countr_zero(expression_.minutes) * 60 + std::countr_zero(expression_.seconds);
    }

    // The first matching second of the day at or after `from`, or -1.
    int first_time(int from) const {
        const int hour = from / 3600;
        const int minute = from / 60 % 60;
        const int second = from % 60;
        if ((expression_.hours >> hour & 1U) != 0) {
            const std::uint64_t seconds = expression_.seconds >> second;
            if ((expression_.minutes >> minute & 1U) != 0 && seconds != 0) {
                return from + std::countr_zero(seconds);
            }
            const std::uint64_t minutes = expression_.minutes >> minute >> 1;
            if (minutes != 0) {
                return hour * 3600 + (minute + 1 + std::countr_zero(minutes)) * 60 +
                       std::countr_zero(expression_.seconds);
            }
        }
        const std::uint32_t hours = expression_.hours >> hour >> 1;
        return hours == 0 ? -1 : (hour + 1 + std::countr_zero(hours)) * 3600 + earliest_in_hour();
    }

    // How many matching seconds of the day lie before `limit` (0..86,400).
    std::uint64_t times_before(std::int64_t limit) const {
        const auto hour = static_cast<int>(limit / 3600);
        const auto minute = static_cast<int>(limit / 60 % 60);
        const auto second = static_cast<int>(limit % 60);
        const auto below = [](std::uint64_t set, int bit) {
            return static_cast<std::uint64_t>(std::popcount(set & ((std::uint64_t{1} << bit) - 1)));
        };
        std::uint64_t minutes = below(expression_.hours, hour) * below(expression_.minutes, 60);
        std::uint64_t rest = 0;
        if ((std::uint64_t{expression_.hours} >> hour & 1U) != 0) {
            minutes += below(expression_.minutes, minute);
            rest = (expression_.minutes >> minute & 1U) != 0 ? below(expression_.seconds, second) : 0;
        }
        return minutes * below(expression_.seconds, 60) + rest;
    }

    // How many matching days lie in [from, limit).
    std::uint64_t days_between(std::int64_t from, std::int64_t limit) {
        std::uint64_t total = 0;
        Month at = month_of(from);
        for (std::int64_t month_start = first_day_of(at); month_start < limit;) {
            const int length = length_of(at);
            if ((expression_.months >> at.month & 1U) != 0) {
                const auto skipped = static_cast<int>(std::max<std::int64_t>(from - month_start, 0));
                const auto wanted = static_cast<int>(std::min<std::int64_t>(limit - month_start, length));
                total += static_cast<std::uint64_t>(
                    std::popcount(days_in(at, month_start) & days_up_to(wanted) & ~days_up_to(skipped)));
            }
            month_start += length;
            at = at.month == 12 ? Month{at.year + 1, 1} : Month{at.year, at.month + 1};
        }
        return total;
    }

    const CronExpression& expression_;
    bool every_field_;
};

// Instants [begin, end) whose local reading is taken with `offset`.
struct Reading {
    std::int64_t begin;
    std::int64_t end;
    std::int32_t offset;
};

// What a span contributes. `own` are its instants read with its own offset, less the pass of a repeated hour
// that does not count. `moved` are the instants after a gap read with the offset before it: that moves the
// local times that do not exist to just after the gap, by the gap's length.
struct SpanReadings {
    std::int64_t end;
    Reading own;
    Reading moved;
};

class Readings {
  public:
    Readings(const CronExpression& expression, const ZoneView& zone, const InstantRules& rules)
        : spans_(zone.spans), gap_(is_wall_clock(expression) ? rules.gap : Gap::skip),
          overlap_(is_wall_clock(expression) ? rules.overlap : Overlap::both) {}

    SpanReadings of(std::size_t index) const {
        const ZoneSpan& span = spans_[index];
        const bool is_last = index + 1 == spans_.size();
        const std::int64_t end = is_last ? std::numeric_limits<std::int64_t>::max() : spans_[index + 1].begin;
        SpanReadings readings{end, {span.begin, end, span.offset}, {span.begin, span.begin, span.offset}};
        if (index > 0) {
            const std::int32_t before = spans_[index - 1].offset;
            if (gap_ == Gap::shift && span.offset > before) {
                readings.moved = {span.begin, span.begin + (span.offset - before), before};
            }
            if (overlap_ == Overlap::first && span.offset < before) {
                readings.own.begin += before - span.offset;
            }
        }
        if (!is_last && overlap_ == Overlap::second) {
            readings.own.end -= std::max(0, span.offset - spans_[index + 1].offset);
        }
        return readings;
    }

  private:
    std::span<const ZoneSpan> spans_;
    Gap gap_;
    Overlap overlap_;
};

bool has_times(const CronExpression& expression) {
    return expression.seconds != 0 && expression.minutes != 0 && expression.hours != 0 &&
           expression.months != 0;
}

// The first instant of `reading` in [from, limit), or `limit`.
std::int64_t first_of(LocalMatches& matches, const Reading& reading, std::int64_t from, std::int64_t limit) {
    const std::int64_t begin = std::max(from, reading.begin);
    const std::int64_t end = std::min(limit, reading.end);
    if (begin >= end) {
        return limit;
    }
    const std::int64_t found = matches.first(begin + reading.offset, end + reading.offset) - reading.offset;
    return found < end ? found : limit;
}

// How many occurrences lie in (after, until], all inside the part of the zone that is complete.
std::uint64_t count_unfolded(LocalMatches& matches, const ZoneView& zone, const Readings& readings,
                             std::int64_t after, std::int64_t until, std::uint64_t cap) {
    std::uint64_t total = 0;
    std::int64_t from = after + 1;
    for (std::size_t index = span_index(zone, from); from <= until && total < cap; ++index) {
        const SpanReadings span = readings.of(index);
        const std::int64_t end = std::min(span.end, until + 1);
        // After a gap two readings run side by side and may meet in one instant: visit these, one by one
        // (a gap is short), and count the rest.
        const std::int64_t visited = std::min(end, span.moved.end);
        while (from < visited && total < cap) {
            from = std::min(first_of(matches, span.own, from, visited),
                            first_of(matches, span.moved, from, visited));
            if (from < visited) {
                ++total;
                ++from;
            }
        }
        const std::int64_t begin = std::max(from, span.own.begin);
        total += matches.count(begin + span.own.offset, std::min(end, span.own.end) + span.own.offset);
        from = end;
    }
    return std::min(total, cap);
}

// The months that a search of 400 years can meet: what `from` and `limit` of its local times can be apart.
constexpr std::uint64_t kSearchedMonths = 4803;

} // namespace

bool is_wall_clock(const CronExpression& expression) {
    return expression.hours != (1U << 24) - 1U;
}

// Proof that the steps are bounded. A step is a span visited or a month looked at.
// Spans: each round ends or moves `from` to the end of its span or beyond, so no span is visited twice.
// Months: let [clear, match) be the local times known to hold no match. A round looks for a new match only if
// its `local` lies outside of it, that is, below or above.
//   Above: the search goes on where the last one ended, and meets one month again at most.
//   Below: local time was set back. An offset is at most kMaxOffset = M, so instants 2M apart never swap
//   their local order, and a span lasts 2M or more: only a span that begins within 2M of the instant at which
//   the search for the current `clear` was made can lie below it. Every search but the first is made at the
//   begin of a span, so only the second round can be below, once.
// Hence at most two passes over kSearchedMonths, and per span one step for itself, one for a month met again
// and two for the months of a gap, which is no longer than a day.
std::uint64_t search_step_bound(const ZoneView& zone) {
    return 2 * kSearchedMonths + 4 * (std::uint64_t{zone.spans.size()} + 1);
}

bool next_occurrence(const CronExpression& expression, const ZoneView& zone, std::int64_t after,
                     std::int64_t& result, const InstantRules& rules, std::uint32_t* steps) {
    if (after < kMinInstant || after > kMaxInstant || !has_times(expression)) {
        return false;
    }
    const std::int64_t folded = fold_instant(zone, after);
    const std::int64_t horizon = folded + kCycleSeconds + 1; // exclusive
    const std::int64_t limit = horizon + kMaxOffset;
    const Readings readings(expression, zone, rules);
    LocalMatches matches(expression, rules.day_match);
    std::int64_t found = horizon;
    std::int64_t clear = limit; // there is no match in [clear, match)
    std::int64_t match = limit - 1;
    std::uint32_t rounds = 0;
    for (std::int64_t from = folded + 1; from < horizon && found == horizon;) {
        ++rounds;
        const SpanReadings span = readings.of(span_index(zone, from));
        const std::int64_t local = std::max(from, span.own.begin) + span.own.offset;
        if (local < clear || local > match) {
            clear = local;
            match = matches.first(local, limit);
        }
        if (match - span.own.offset < std::min(span.own.end, horizon)) {
            found = match - span.own.offset;
        }
        found = std::min(found, first_of(matches, span.moved, from, horizon));
        from = span.end;
        // Local times differ from instants by kMaxOffset at most: what lies further ahead of the known match
        // than that need not be visited, provided that it cannot lie before `clear` either.
        if (from - kMaxOffset >= clear) {
            from = std::max(from, match - kMaxOffset);
        }
    }
    if (steps != nullptr) {
        *steps = rounds + matches.steps;
    }
    if (found == horizon) {
        return false;
    }
    result = found + (after - folded);
    return true;
}

std::uint64_t count_occurrences(const CronExpression& expression, const ZoneView& zone, std::int64_t after,
                                std::int64_t until, std::uint64_t cap, const InstantRules& rules) {
    if (!has_times(expression)) {
        return 0;
    }
    after = std::max(after, kMinInstant);
    until = std::min(until, kMaxInstant);
    const Readings readings(expression, zone, rules);
    LocalMatches matches(expression, rules.day_match);
    std::uint64_t total = 0;
    while (after < until && total < cap) {
        const std::int64_t folded = fold_instant(zone, after);
        const std::int64_t length = std::min(until - after, kCycleSeconds);
        const std::uint64_t part =
            count_unfolded(matches, zone, readings, folded, folded + length, cap - total);
        // Once the zone repeats, all whole cycles hold as much as the first.
        const std::int64_t times =
            after >= zone.cycle_from ? std::max<std::int64_t>((until - after) / kCycleSeconds, 1) : 1;
        total += part * static_cast<std::uint64_t>(times);
        after += length * times;
    }
    return std::min(total, cap);
}

} // namespace qinglong::core
