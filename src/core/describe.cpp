#include "qinglong_sched/core/describe.hpp"

#include "qinglong_sched/core/schedule.hpp"

#include <bit>
#include <vector>

namespace qinglong::core {

namespace {

constexpr const char* kMonths[] = {"",     "January", "February",  "March",   "April",    "May",     "June",
                                   "July", "August",  "September", "October", "November", "December"};
constexpr const char* kWeekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                     "Thursday", "Friday", "Saturday"};
constexpr const char* kOrdinals[] = {"", "first", "second", "third", "fourth", "fifth"};

using Values = std::vector<int>;

Values values_of(std::uint64_t bits) {
    Values values;
    for (; bits != 0; bits &= bits - 1)
        values.push_back(std::countr_zero(bits));
    return values;
}

std::string joined(const std::vector<std::string>& words, const char* last = " and ") {
    std::string out;
    for (std::size_t i = 0; i < words.size(); ++i)
        out.append(i == 0 ? "" : i + 1 == words.size() ? last : ", ").append(words[i]);
    return out;
}

// Three or more in a row as "a through c". `name` spells a value.
template<typename F>
std::vector<std::string> ranges(const Values& values, F name) {
    std::vector<std::string> words;
    for (std::size_t i = 0; i < values.size();) {
        std::size_t end = i + 1;
        while (end < values.size() && values[end] == values[end - 1] + 1)
            ++end;
        if (end - i >= 3) {
            words.push_back(name(values[i]) + " through " + name(values[end - 1]));
            i = end;
        } else {
            words.push_back(name(values[i++]));
        }
    }
    return words;
}

std::string number(int value) {
    return std::to_string(value);
}

std::string ordinal(int value) {
    const int tens = value % 100 / 10;
    const int ones = value % 10;
    return number(value) + (tens == 1 ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : ones == 3 ? "rd" : "th");
}

// The distance of equally spaced values; 0 where they are not.
int step_of(const Values& values) {
    if (values.size() < 3)
        return 0;
    const int step = values[1] - values[0];
    for (std::size_t i = 2; i < values.size(); ++i)
        if (values[i] - values[i - 1] != step)
            return 0;
    return step;
}

// What one field of the time says.
struct Phrase {
    std::string text;
    bool every = false;  // goes with "Every", others with "At"
    bool evenly = false; // needs no word on the next larger unit, of which it means every one
};

Phrase field_phrase(std::uint64_t bits, int size, const std::string& unit, bool smallest) {
    const Values values = values_of(bits);
    if (static_cast<int>(values.size()) == size)
        return {"every " + unit, true, true};
    const int step = step_of(values);
    const bool to_the_end = step > 0 && values.back() + step >= size;
    if (smallest && step > 1 && to_the_end && values.front() == 0 && size % step == 0)
        return {"every " + number(step) + ' ' + unit + 's', true, true};
    if (step > 1 && values.size() >= 4)
        return {"every " + ordinal(step) + ' ' + unit + " from " + number(values.front()) + " through " +
                    number(values.back()),
                true, false};
    return {unit + (values.size() == 1 ? " " : "s ") + joined(ranges(values, number)), false, false};
}

std::string two_digits(int value) {
    return (value < 10 ? "0" : "") + number(value);
}

// "09:00 and 17:30", where there are few times in a day; empty otherwise.
std::string clock_times(const CronExpression& expression) {
    constexpr int kFew = 6;
    if (std::popcount(expression.seconds) != 1 ||
        std::popcount(expression.minutes) * std::popcount(expression.hours) > kFew)
        return {};
    const int second = std::countr_zero(expression.seconds);
    std::vector<std::string> times;
    for (const int hour : values_of(expression.hours))
        for (const int minute : values_of(expression.minutes))
            times.push_back(two_digits(hour) + ':' + two_digits(minute) +
                            (second == 0 ? "" : ':' + two_digits(second)));
    return joined(times);
}

// "every 5 minutes of hours 9 through 17"
std::string time_phrase(const CronExpression& expression) {
    std::vector<Phrase> parts;
    if (expression.seconds != 1)
        parts.push_back(field_phrase(expression.seconds, 60, "second", true));
    const Phrase minutes = field_phrase(expression.minutes, 60, "minute", parts.empty());
    // "every second" needs no "of every minute", "every minute" no "of every hour".
    const auto add = [&](const Phrase& part, bool all) {
        if (!all || parts.empty() || !parts.back().evenly)
            parts.push_back(part);
    };
    add(minutes, std::popcount(expression.minutes) == 60);
    add(field_phrase(expression.hours, 24, "hour", false), std::popcount(expression.hours) == 24);
    std::string text = parts.front().every ? "" : "at ";
    for (std::size_t i = 0; i < parts.size(); ++i)
        text.append(i == 0 ? "" : " of ").append(parts[i].text);
    return text;
}

std::string dates_phrase(const CronExpression& expression) {
    std::vector<std::string> words;
    const Values days = values_of(expression.days);
    const std::vector<std::string> listed = ranges(days, number);
    if (!days.empty()) {
        const int step = step_of(days);
        words.push_back(step > 1 && days.size() >= 4
                            ? "every " + ordinal(step) + " day from " + number(days.front()) + " through " +
                                  number(days.back())
                            : (days.size() == 1 ? "day " : "days ") + joined(listed));
    }
    for (const int day : values_of(expression.nearest_workdays))
        words.push_back("the weekday (Monday to Friday) nearest to day " + number(day));
    if (expression.last_day)
        words.emplace_back("the last day");
    if (expression.last_workday)
        words.emplace_back("the last weekday (Monday to Friday)");
    return joined(words) + " of the month";
}

std::string weekdays_phrase(const CronExpression& expression) {
    Values whole; // Monday = 1 to Sunday = 7
    std::vector<std::string> some;
    for (int day = 1; day <= 7; ++day) {
        Values weeks;
        for (int week = 1; week <= 5; ++week)
            if ((expression.weekdays >> (7 * (week - 1) + day % 7) & 1U) != 0)
                weeks.push_back(week);
        if (weeks.size() == 5)
            whole.push_back(day);
        else if (!weeks.empty())
            some.push_back("the " +
                           joined(ranges(weeks, [](int week) { return std::string(kOrdinals[week]); })) +
                           ' ' + kWeekdays[day % 7]);
    }
    for (int day = 1; day <= 7; ++day)
        if ((expression.last_weekdays >> (day % 7) & 1U) != 0)
            some.push_back("the last " + std::string(kWeekdays[day % 7]));
    std::vector<std::string> words = ranges(whole, [](int day) { return std::string(kWeekdays[day % 7]); });
    if (!some.empty())
        words.push_back(joined(some) + " of the month");
    return joined(words);
}

} // namespace

std::string describe(const CronExpression& expression) {
    const std::string times = clock_times(expression);
    std::string text = times.empty() ? time_phrase(expression) : "at " + times;
    const bool dates = !expression.any_day;
    const bool weekdays = !expression.any_weekday;
    const char* const comma = times.empty() ? "," : "";
    if (dates || weekdays) {
        text.append(comma).append(" on ");
        if (dates)
            text += dates_phrase(expression);
        if (dates && weekdays)
            text += " or on ";
        if (weekdays)
            text += weekdays_phrase(expression);
    } else if (!times.empty()) {
        text += " every day";
    }
    if (std::popcount(static_cast<unsigned>(expression.months)) != 12)
        text.append(dates || weekdays ? "" : comma)
            .append(" in ")
            .append(joined(
                ranges(values_of(expression.months), [](int month) { return std::string(kMonths[month]); })));
    Schedule schedule;
    schedule.expression = expression;
    if (!schedule.next(0))
        text += ", which never happens";
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text + '.';
}

} // namespace qinglong::core
