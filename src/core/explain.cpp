#include "qinglong_sched/core/explain.hpp"

#include <chrono>

namespace qinglong::core {

namespace {

constexpr std::int64_t kDayMs = 86400000;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

std::string padded(std::int64_t number, std::size_t digits) {
    std::string text = std::to_string(number);
    return text.size() < digits ? std::string(digits - text.size(), '0') + text : text;
}

std::string print_time(std::int64_t local_ms) {
    const std::int64_t ms = local_ms - floor_div(local_ms, kDayMs) * kDayMs;
    return padded(ms / 3600000, 2) + ':' + padded(ms / 60000 % 60, 2) + ':' + padded(ms / 1000 % 60, 2) +
           (ms % 1000 == 0 ? "" : '.' + padded(ms % 1000, 3));
}

// A local time in a note on another: the date only where it differs.
std::string beside(std::int64_t local, std::int64_t other) {
    return floor_div(local, 86400) == floor_div(other, 86400) ? print_time(local * 1000)
                                                              : print_local(local * 1000);
}

// Where the clocks go forward.
struct ForwardJump {
    std::int64_t at;
    std::int32_t before;
    std::int32_t after;

    std::string text(std::int64_t other) const {
        return "clocks go forward from " + beside(at + before, other) + " to " + beside(at + after, other);
    }
};

// The first forward jump in (after, until].
std::optional<ForwardJump> next_jump(const ZoneView& zone, std::int64_t after, std::int64_t until) {
    for (std::int64_t at = after;;) {
        const std::int64_t folded = fold_instant(zone, at);
        const std::size_t index = span_index(zone, folded) + 1;
        if (index == zone.spans.size())
            return std::nullopt;
        at = zone.spans[index].begin + (at - folded);
        if (at > until)
            return std::nullopt;
        if (zone.spans[index].offset > zone.spans[index - 1].offset)
            return ForwardJump{at, zone.spans[index - 1].offset, zone.spans[index].offset};
    }
}

class CronExplainer {
  public:
    explicit CronExplainer(const Schedule& schedule)
        : schedule_(schedule), wall_clock_(is_wall_clock(schedule.expression)),
          loses_(!wall_clock_ || schedule.rules.gap == Gap::skip) {}

    void add_occurrence(std::int64_t occurrence_ms, std::vector<Explained>& out) const {
        const ZoneView& zone = schedule_.zone;
        const std::int64_t at = floor_div(occurrence_ms, 1000);
        const std::int64_t folded = fold_instant(zone, at);
        const std::size_t index = span_index(zone, folded);
        const ZoneSpan& span = zone.spans[index];
        const std::int64_t local = at + span.offset;
        std::string note;
        if (index > 0) {
            const std::int32_t before = zone.spans[index - 1].offset;
            const std::int64_t into = folded - span.begin;
            const std::int64_t missing = at + before; // read as if the clocks had not changed
            if (into < span.offset - before && !loses_ && matches(missing)) {
                const ForwardJump jump{at - into, before, span.offset};
                note = matches(local)
                           ? "also stands for " + beside(missing, local) + ", which does not exist: "
                           : "moved from " + beside(missing, local) + ", which does not exist: ";
                note += jump.text(local);
            } else if (into < before - span.offset) {
                note = "second of two passes";
                if (wall_clock_ && schedule_.rules.overlap == Overlap::second)
                    note += "; the first does not count";
            }
        }
        if (index + 1 < zone.spans.size()) {
            const ZoneSpan& next = zone.spans[index + 1];
            if (folded >= next.begin - (span.offset - next.offset)) {
                note = "first of two passes";
                if (wall_clock_ && schedule_.rules.overlap == Overlap::first)
                    note += "; the second does not count";
            }
        }
        out.push_back({occurrence_ms, local * 1000, span.offset, std::move(note)});
    }

    // The local times lost to jumps in (after, until].
    void add_lost(std::int64_t after_ms, std::int64_t until_ms, std::size_t most,
                  std::vector<Explained>& out) const {
        if (!loses_)
            return;
        const std::int64_t until = floor_div(until_ms, 1000);
        for (std::int64_t at = floor_div(after_ms, 1000);;) {
            const auto jump = next_jump(schedule_.zone, at, until);
            if (!jump)
                return;
            at = jump->at;
            if (at * 1000 < schedule_.begin_ms || at * 1000 >= schedule_.end_ms)
                continue;
            const std::int64_t last = at + jump->after - 1;
            std::int64_t local = at + jump->before - 1;
            std::size_t left = most;
            while (next_local(local, local) && local <= last) {
                std::string note = "does not exist: " + jump->text(local);
                if (--left == 0) {
                    const auto more = count_occurrences(schedule_.expression, kUtcZone, local, last,
                                                        kCountCap, schedule_.rules);
                    if (more != 0)
                        note += "; nor do " + std::to_string(more) + " later ones";
                }
                out.push_back({std::nullopt, local * 1000, 0, std::move(note)});
                if (left == 0)
                    break;
            }
        }
    }

  private:
    // In a zone without changes the instants are the matching local times.
    bool next_local(std::int64_t after, std::int64_t& local) const {
        return next_occurrence(schedule_.expression, kUtcZone, after, local, schedule_.rules);
    }
    bool matches(std::int64_t local) const {
        std::int64_t found = 0;
        return next_local(local - 1, found) && found == local;
    }

    const Schedule& schedule_;
    bool wall_clock_;
    bool loses_;
};

} // namespace

std::string print_local(std::int64_t local_ms) {
    const std::int64_t day = floor_div(local_ms, kDayMs);
    // The calendar repeats every 400 years, and chrono's years end at 32767.
    const std::int64_t cycle = floor_div(day, 146097);
    const std::chrono::year_month_day date{
        std::chrono::sys_days(std::chrono::days(static_cast<int>(day - cycle * 146097)))};
    const std::int64_t year = static_cast<int>(date.year()) + cycle * 400; // 0 is 1 BC
    return padded(year > 0 ? year : 1 - year, 4) + '-' + padded(static_cast<unsigned>(date.month()), 2) +
           '-' + padded(static_cast<unsigned>(date.day()), 2) + ' ' + print_time(local_ms) +
           (year > 0 ? "" : " BC");
}

std::vector<Explained> explain(const Schedule& schedule, std::int64_t after_ms, std::size_t count) {
    std::vector<Explained> out;
    const CronExplainer cron(schedule);
    for (std::size_t found = 0; found < count; ++found) {
        const auto next = schedule.next(after_ms);
        if (!next)
            break;
        if (schedule.kind == ScheduleKind::cron) {
            cron.add_lost(after_ms, *next, count, out);
            cron.add_occurrence(*next, out);
        } else {
            out.push_back({next, *next, 0, {}});
        }
        after_ms = *next;
    }
    return out;
}

} // namespace qinglong::core
