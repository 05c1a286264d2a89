#include "qinglong_sched/core/instant.hpp"

#include <chrono>

namespace qinglong::core {

namespace {

constexpr std::int64_t kLastInstantMs = 253402300799999; // 9999-12-31T23:59:59.999Z

// Reads exactly `digits` digits at the front of text.
bool take_number(std::string_view& text, std::size_t digits, int& number) {
    if (text.size() < digits)
        return false;
    number = 0;
    for (const char c : text.substr(0, digits)) {
        if (c < '0' || c > '9')
            return false;
        number = number * 10 + (c - '0');
    }
    text.remove_prefix(digits);
    return true;
}

bool take(std::string_view& text, char wanted) {
    if (text.empty() || text.front() != wanted)
        return false;
    text.remove_prefix(1);
    return true;
}

void append_number(std::string& out, int number, int digits) {
    const std::string text = std::to_string(number);
    out.append(static_cast<std::size_t>(digits) - text.size(), '0').append(text);
}

} // namespace

std::optional<std::int64_t> parse_instant(std::string_view text) {
    int year, month, day, hour, minute, second;
    if (!take_number(text, 4, year) || !take(text, '-') || !take_number(text, 2, month) || !take(text, '-') ||
        !take_number(text, 2, day) || !take(text, 'T') || !take_number(text, 2, hour) || !take(text, ':') ||
        !take_number(text, 2, minute) || !take(text, ':') || !take_number(text, 2, second))
        return std::nullopt;
    const std::chrono::year_month_day date{std::chrono::year(year),
                                           std::chrono::month(static_cast<unsigned>(month)),
                                           std::chrono::day(static_cast<unsigned>(day))};
    if (!date.ok() || hour > 23 || minute > 59 || second > 59)
        return std::nullopt;
    int fraction = 0;
    if (take(text, '.')) {
        int scale = 100;
        int digit = 0;
        do {
            if (scale == 0 || !take_number(text, 1, digit))
                return std::nullopt;
            fraction += digit * scale;
            scale /= 10;
        } while (!text.empty() && text.front() >= '0' && text.front() <= '9');
    }
    int offset_minutes = 0;
    if (!take(text, 'Z')) {
        const bool west = !text.empty() && text.front() == '-';
        int hours, minutes;
        if (!(take(text, '+') || take(text, '-')) || !take_number(text, 2, hours) || !take(text, ':') ||
            !take_number(text, 2, minutes) || hours > 23 || minutes > 59)
            return std::nullopt;
        offset_minutes = (west ? -1 : 1) * (hours * 60 + minutes);
    }
    if (!text.empty())
        return std::nullopt;
    const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
    const std::int64_t seconds =
        ((days * 24 + hour) * 60 + minute - offset_minutes) * std::int64_t{60} + second;
    const std::int64_t ms = seconds * 1000 + fraction;
    if (ms < 0 || ms > kLastInstantMs)
        return std::nullopt;
    return ms;
}

std::string print_instant(std::int64_t ms) {
    constexpr std::int64_t kDayMs = 86400000;
    const std::chrono::year_month_day date{
        std::chrono::sys_days(std::chrono::days(static_cast<int>(ms / kDayMs)))};
    const auto rest = static_cast<int>(ms % kDayMs);
    std::string out;
    append_number(out, static_cast<int>(date.year()), 4);
    append_number(out += '-', static_cast<int>(static_cast<unsigned>(date.month())), 2);
    append_number(out += '-', static_cast<int>(static_cast<unsigned>(date.day())), 2);
    append_number(out += 'T', rest / 3600000, 2);
    append_number(out += ':', rest / 60000 % 60, 2);
    append_number(out += ':', rest / 1000 % 60, 2);
    if (rest % 1000 != 0)
        append_number(out += '.', rest % 1000, 3);
    return out + 'Z';
}

} // namespace qinglong::core
