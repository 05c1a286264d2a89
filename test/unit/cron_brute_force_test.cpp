// The engine against the definition of the instants, spelled out second by second.
//
// QL_BRUTE_CASES sets the number of random cases (default 20,000; from 200,000 on, all zones of the system
// take part). QL_BRUTE_SEED sets the seed.

#include "qinglong_sched/core/occurrence.hpp"
#include "zone_from_system.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace qinglong::core {
namespace {

using test::SystemZone;
using test::zone_from_system;

constexpr std::int64_t kDaySeconds = 86400;
constexpr std::int64_t kYear1970 = 0;
constexpr std::int64_t kYear2100 = 4102444800;

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    return a / b - (a % b < 0 ? 1 : 0);
}

using Random = std::mt19937_64;

int pick(Random& random, int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
}

bool chance(Random& random, int percent) {
    return pick(random, 1, 100) <= percent;
}

// --- An expression as a list of items, read item by item
// ---------------------------------------------------------

enum class Kind { wildcard, value, range, last_day, nearest, last_workday };

struct Item {
    Kind kind = Kind::wildcard;
    int from = 0;
    int to = 0;
    int step = 0; // 0: none
    int nth = 0;  // 0: none, 6: last
};

struct Field {
    int min;
    int max; // of "*" and "a/n"
    std::vector<Item> items;

    bool is_bare_wildcard() const {
        return items.size() == 1 && items[0].kind == Kind::wildcard && items[0].step == 0;
    }
};

std::string print(const Item& item) {
    std::string text;
    switch (item.kind) {
    case Kind::wildcard:
        text = item.from == 0 ? "*" : "?";
        break;
    case Kind::value:
        text = std::to_string(item.from);
        break;
    case Kind::range:
        text = std::to_string(item.from) + "-" + std::to_string(item.to);
        break;
    case Kind::last_day:
        return "L";
    case Kind::nearest:
        return std::to_string(item.from) + "W";
    case Kind::last_workday:
        return "LW";
    }
    text += item.step > 0 ? "/" + std::to_string(item.step) : "";
    text += item.nth == 0 ? "" : item.nth == 6 ? "#L" : "#" + std::to_string(item.nth);
    return text;
}

bool holds(const Field& field, const Item& item, int value) {
    const int from = item.kind == Kind::wildcard ? field.min : item.from;
    const int to = item.kind == Kind::range                       ? item.to
                   : item.kind == Kind::wildcard || item.step > 0 ? field.max
                                                                  : item.from;
    return value >= from && value <= to && (value - from) % std::max(item.step, 1) == 0;
}

bool holds(const Field& field, int value) {
    return std::any_of(field.items.begin(), field.items.end(),
                       [&](const Item& item) { return holds(field, item, value); });
}

struct Expression {
    bool has_seconds = false;
    Field second{0, 59, {}};
    Field minute{0, 59, {}};
    Field hour{0, 23, {}};
    Field day{1, 31, {}};
    Field month{1, 12, {}};
    Field weekday{0, 6, {}};
    // Readings of the time fields, kept for speed.
    std::array<bool, 60> seconds{};
    std::array<bool, 60> minutes{};
    std::array<bool, 24> hours{};

    std::string text() const {
        std::string result;
        for (const Field* field : {&second, &minute, &hour, &day, &month, &weekday}) {
            if (field == &second && !has_seconds) {
                continue;
            }
            result += result.empty() ? "" : " ";
            for (const Item& item : field->items) {
                result += (&item == field->items.data() ? "" : ",") + print(item);
            }
        }
        return result;
    }

    bool is_wall_clock() const { return std::find(hours.begin(), hours.end(), false) != hours.end(); }
};

Field random_field(Random& random, Field field, int wildcard_percent) {
    const auto value = [&] { return pick(random, field.min, field.max); };
    if (chance(random, wildcard_percent)) {
        field.items = {{Kind::wildcard, pick(random, 0, 1)}};
        return field;
    }
    const int count = chance(random, 70) ? 1 : pick(random, 2, 4);
    for (int i = 0; i < count; ++i) {
        Item item;
        const int shape = pick(random, 1, 10);
        item.kind = shape <= 4 ? Kind::value : shape <= 8 ? Kind::range : Kind::wildcard;
        item.from = item.kind == Kind::wildcard ? 0 : value();
        item.to = item.kind == Kind::range ? pick(random, item.from, field.max) : 0;
        item.step =
            chance(random, 40) ? pick(random, 1, chance(random, 80) ? 6 : field.max - field.min + 1) : 0;
        field.items.push_back(item);
    }
    return field;
}

Expression random_expression(Random& random) {
    Expression expression;
    expression.has_seconds = chance(random, 25);
    expression.second = expression.has_seconds ? random_field(random, expression.second, 15)
                                               : Field{0, 59, {{Kind::value, 0}}};
    expression.minute = random_field(random, expression.minute, 15);
    expression.hour = random_field(random, expression.hour, 25);
    if (chance(random, 50)) { // hours in which zones like to change
        expression.hour.items = {{Kind::range, pick(random, 0, 2), pick(random, 2, 4)}};
    }
    expression.day = random_field(random, expression.day, 60);
    expression.month = random_field(random, expression.month, 75);
    expression.weekday = random_field(random, expression.weekday, 60);
    for (Item& item : expression.weekday.items) {
        if (item.kind == Kind::value && item.step == 0 && item.from == 0 && chance(random, 50)) {
            item.from = 7;
        }
        if (item.kind == Kind::range && item.to == 6 && chance(random, 50)) {
            item.to = 7;
        }
        if ((item.kind != Kind::wildcard || item.step > 0) && chance(random, 25)) {
            item.nth = pick(random, 1, 6);
        }
    }
    if (chance(random, 8)) {
        expression.day.items = {{Kind::last_workday}};
    } else if (chance(random, 15)) {
        expression.day.items.push_back({Kind::nearest, pick(random, chance(random, 50) ? 1 : 28, 31)});
    } else if (chance(random, 10)) {
        expression.day.items.push_back({Kind::last_day});
    }
    for (int value = 0; value < 60; ++value) {
        const auto index = static_cast<std::size_t>(value);
        expression.seconds[index] = holds(expression.second, value);
        expression.minutes[index] = holds(expression.minute, value);
        if (value < 24) {
            expression.hours[index] = holds(expression.hour, value);
        }
    }
    return expression;
}

bool matches_date(const Expression& expression, std::int64_t day_number, DayMatch day_match) {
    using namespace std::chrono;
    const sys_days date{days(day_number)};
    const year_month_day ymd(date);
    if (!holds(expression.month, static_cast<int>(unsigned{ymd.month()}))) {
        return false;
    }
    const auto day = static_cast<int>(unsigned{ymd.day()});
    const auto length = static_cast<int>(unsigned{(ymd.year() / ymd.month() / last).day()});
    const auto weekday_of = [&](int d) {
        return static_cast<int>(weekday(sys_days(ymd.year() / ymd.month() / 1) + days(d - 1)).c_encoding());
    };
    const auto nearest = [&](int wanted) { // 0: no such day
        if (wanted > length) {
            return 0;
        }
        for (const int candidate : {wanted, wanted - 1, wanted + 1, wanted - 2, wanted + 2}) {
            if (candidate >= 1 && candidate <= length && weekday_of(candidate) % 6 != 0) {
                return candidate;
            }
        }
        return 0;
    };
    const bool by_date =
        std::any_of(expression.day.items.begin(), expression.day.items.end(), [&](const Item& item) {
            switch (item.kind) {
            case Kind::last_day:
                return day == length;
            case Kind::nearest:
                return day == nearest(item.from);
            case Kind::last_workday:
                return day == nearest(length);
            default:
                return holds(expression.day, item, day);
            }
        });
    const int today = weekday_of(day);
    const auto& items = expression.weekday.items;
    const bool by_weekday = std::any_of(items.begin(), items.end(), [&](const Item& item) {
        const bool is_it =
            holds(expression.weekday, item, today) ||
            (today == 0 && (item.kind != Kind::wildcard && item.step == 0
                                ? holds(expression.weekday, item, 7)
                                : item.kind == Kind::range && holds(expression.weekday, item, 7)));
        return is_it && (item.nth == 0 || (item.nth == 6 ? day + 7 > length : (day - 1) / 7 + 1 == item.nth));
    });
    const bool needs_both = expression.day.is_bare_wildcard() || expression.weekday.is_bare_wildcard() ||
                            day_match == DayMatch::both;
    return needs_both ? by_date && by_weekday : by_date || by_weekday;
}

// --- The set of instants, as it is defined
// -----------------------------------------------------------------------

class Definition {
  public:
    Definition(const Expression& expression, const ZoneView& zone, const InstantRules& rules)
        : expression_(expression), zone_(zone), rules_(rules), is_wall_clock_(expression.is_wall_clock()) {}

    bool contains(std::int64_t instant) {
        const std::int64_t local = instant + offset(instant);
        if (!is_wall_clock_) {
            return matches(local);
        }
        if (matches(local) && counts_here(instant, local)) {
            return true;
        }
        if (rules_.gap == Gap::skip) {
            return false;
        }
        // A local time that does not exist, read with the offset in force before the gap.
        for (std::size_t i = nearby_begin(instant); i < zone_.spans.size() && near(i, instant); ++i) {
            const std::int32_t before = zone_.spans[i - 1].offset;
            const std::int64_t gone = instant + before;
            if (gone >= zone_.spans[i].begin + before &&
                gone < zone_.spans[i].begin + zone_.spans[i].offset && matches(gone) && !exists(gone)) {
                return true;
            }
        }
        return false;
    }

    bool matches(std::int64_t local) {
        const std::int64_t day = floor_div(local, kDaySeconds);
        const auto time = static_cast<std::size_t>(local - day * kDaySeconds);
        if (!expression_.seconds[time % 60] || !expression_.minutes[time / 60 % 60] ||
            !expression_.hours[time / 3600]) {
            return false;
        }
        if (day != known_day_) {
            known_day_ = day;
            is_known_match_ = matches_date(expression_, day, rules_.day_match);
        }
        return is_known_match_;
    }

    std::int32_t offset(std::int64_t instant) const { return offset_at(zone_, instant); }

  private:
    // The changes of offset no more than three days away.
    std::size_t nearby_begin(std::int64_t instant) const {
        return std::max<std::size_t>(span_index(zone_, instant - 3 * kDaySeconds), 1);
    }
    bool near(std::size_t i, std::int64_t instant) const {
        return zone_.spans[i].begin < instant + 3 * kDaySeconds;
    }

    template<typename Visit>
    void visit_readings(std::int64_t instant, std::int64_t local, Visit visit) const {
        for (std::size_t i = nearby_begin(instant) - 1;
             i < zone_.spans.size() && (i == 0 || near(i, instant)); ++i) {
            const std::int64_t other = local - zone_.spans[i].offset;
            if (offset(other) == zone_.spans[i].offset) {
                visit(other);
            }
        }
    }

    bool exists(std::int64_t local) const {
        bool found = false;
        visit_readings(local, local, [&](std::int64_t) { found = true; });
        return found;
    }

    bool counts_here(std::int64_t instant, std::int64_t local) const {
        bool counts = true;
        visit_readings(instant, local, [&](std::int64_t other) {
            counts = counts && !(rules_.overlap == Overlap::first && other < instant) &&
                     !(rules_.overlap == Overlap::second && other > instant);
        });
        return counts;
    }

    const Expression& expression_;
    ZoneView zone_;
    InstantRules rules_;
    bool is_wall_clock_;
    std::int64_t known_day_ = INT64_MIN;
    bool is_known_match_ = false;
};

// --- Zones
// -------------------------------------------------------------------------------------------------------

std::vector<std::string> all_system_zones() {
    std::vector<std::string> names;
    const std::filesystem::path root = "/usr/share/zoneinfo";
    for (auto entry = std::filesystem::recursive_directory_iterator(root);
         entry != std::filesystem::recursive_directory_iterator(); ++entry) {
        const std::string name = std::filesystem::relative(entry->path(), root).string();
        if (name == "posix" || name == "right") {
            entry.disable_recursion_pending();
            continue;
        }
        std::array<char, 4> magic{};
        if (entry->is_regular_file() &&
            std::ifstream(entry->path(), std::ios::binary).read(magic.data(), 4) &&
            std::string(magic.data(), 4) == "TZif") {
            names.push_back(name);
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

// Changes as close and as large as a view may have them.
SystemZone random_zone(Random& random) {
    SystemZone zone;
    zone.cycle_from = kYear2100;
    const auto offset = [&] { return pick(random, -kMaxOffset / 900, kMaxOffset / 900) * 900; };
    zone.spans.push_back({std::numeric_limits<std::int64_t>::min(), offset()});
    std::int64_t begin = std::uniform_int_distribution<std::int64_t>(kYear1970, kYear2100 / 2)(random);
    for (int i = 0; i < 200; ++i) {
        std::int32_t next =
            chance(random, 50) ? zone.spans.back().offset + pick(random, -4, 4) * 1800 : offset();
        next += chance(random, 10) ? pick(random, -900, 900) : 0;
        const std::int32_t jump = next - zone.spans.back().offset;
        if (jump > kMaxOffset || jump < -kMaxOffset || next > kMaxOffset || next < -kMaxOffset) {
            next = 0;
        }
        zone.spans.push_back({begin, next});
        begin += kMinSpanSeconds + (chance(random, 50) ? 0 : pick(random, 0, 8000000));
    }
    return zone;
}

std::uint64_t setting(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::int64_t random_instant(Random& random, const ZoneView& zone) {
    std::int64_t instant = std::uniform_int_distribution<std::int64_t>(kYear1970, kYear2100)(random);
    const std::size_t index = span_index(zone, instant);
    if (index > 0 && chance(random, 80)) {
        const int reach = chance(random, 50) ? 10800 : chance(random, 50) ? 100000 : 5;
        instant = zone.spans[index].begin + pick(random, -reach, reach);
    }
    return instant;
}

// Nothing but `next` itself is an occurrence in (after, next], as far as the windows reach.
void check_against_definition(Definition& definition, std::int64_t after, std::int64_t next, int window) {
    const std::int64_t head_end = std::min(next - 1, after + window);
    for (std::int64_t instant = after + 1; instant <= head_end; ++instant) {
        ASSERT_FALSE(definition.contains(instant)) << "missed " << instant;
    }
    for (std::int64_t instant = std::max(head_end + 1, next - window); instant < next; ++instant) {
        ASSERT_FALSE(definition.contains(instant)) << "missed " << instant;
    }
    ASSERT_TRUE(definition.contains(next)) << "invented " << next;
}

TEST(CronBruteForce, RandomCasesAgreeWithTheDefinition) {
    const std::uint64_t cases = setting("QL_BRUTE_CASES", 20000);
    Random random(setting("QL_BRUTE_SEED", 20240310));
    const std::vector<std::string> all = all_system_zones();
    ASSERT_GT(all.size(), 300U);
    std::vector<std::string> names{"UTC",
                                   "America/New_York",
                                   "Australia/Lord_Howe",
                                   "Antarctica/Troll",
                                   "Pacific/Apia",
                                   "America/Sao_Paulo",
                                   "Asia/Beirut",
                                   "Africa/Cairo",
                                   "Asia/Tehran",
                                   "Africa/Casablanca",
                                   "Europe/Dublin",
                                   "America/St_Johns",
                                   "Asia/Pyongyang",
                                   "Pacific/Kwajalein",
                                   "America/Caracas",
                                   "Asia/Kathmandu"};
    if (cases >= 200000) {
        names = all;
    }
    std::uint64_t most_steps = 0;
    for (std::uint64_t i = 0; i < cases; ++i) {
        const Expression naive = random_expression(random);
        const bool is_synthetic = chance(random, 30);
        const std::size_t number = std::uniform_int_distribution<std::size_t>(0, names.size() - 1)(random);
        const SystemZone synthetic = is_synthetic ? random_zone(random) : SystemZone{};
        const ZoneView zone = is_synthetic ? synthetic.view() : zone_from_system(names[number]).view();
        InstantRules rules;
        if (chance(random, 40)) {
            rules = {static_cast<Gap>(pick(random, 0, 1)), static_cast<Overlap>(pick(random, 0, 2)),
                     static_cast<DayMatch>(pick(random, 0, 1))};
        }
        const std::int64_t after = random_instant(random, zone);
        SCOPED_TRACE("case " + std::to_string(i) + ": " + naive.text() + " in " +
                     (is_synthetic ? "a synthetic zone" : names[number]) + " after " + std::to_string(after) +
                     ", rules " + std::to_string(static_cast<int>(rules.gap)) +
                     std::to_string(static_cast<int>(rules.overlap)) +
                     std::to_string(static_cast<int>(rules.day_match)));
        ASSERT_TRUE(zone_is_valid(zone));
        CronExpression expression;
        CronError error;
        ASSERT_TRUE(parse_cron(naive.text(), expression, error)) << cron_error_text(error);
        ASSERT_EQ(is_wall_clock(expression), naive.is_wall_clock());

        Definition definition(naive, zone, rules);
        std::int64_t from = after;
        for (std::uint64_t k = 1; k <= 3; ++k) {
            std::int64_t next = from;
            std::uint32_t steps = 0;
            const bool is_found = next_occurrence(expression, zone, from, next, rules, &steps);
            ASSERT_LE(steps, search_step_bound(zone));
            most_steps = std::max<std::uint64_t>(most_steps, steps);
            if (!is_found) {
                for (std::int64_t instant = from + 1; instant <= from + 7200; ++instant) {
                    ASSERT_FALSE(definition.contains(instant)) << "missed " << instant;
                }
                break;
            }
            ASSERT_GT(next, from);
            check_against_definition(definition, from, next, 5400);
            // Days in between, one by one: where none of their times is skipped, none of them may match.
            if (rules.gap == Gap::shift && rules.overlap == Overlap::first) {
                const std::int64_t until = std::min(next - 2 * kDaySeconds, from + 3000 * kDaySeconds);
                for (std::int64_t noon = from + 2 * kDaySeconds; noon < until; noon += kDaySeconds) {
                    const std::int64_t day = floor_div(noon + definition.offset(noon), kDaySeconds);
                    ASSERT_FALSE(matches_date(naive, day, rules.day_match)) << "missed day " << day;
                }
            }
            const std::int64_t between = std::uniform_int_distribution<std::int64_t>(from, next - 1)(random);
            std::int64_t again = 0;
            ASSERT_TRUE(next_occurrence(expression, zone, between, again, rules));
            ASSERT_EQ(again, next) << "asked from " << between;
            ASSERT_EQ(count_occurrences(expression, zone, after, next, 1000, rules), k);
            ASSERT_EQ(count_occurrences(expression, zone, after, next - 1, 1000, rules), k - 1);
            from = next;
        }
        // Counting over many occurrences, with the instant of a change somewhere inside.
        std::uint64_t visited = 0;
        const std::int64_t until = after + pick(random, 0, 400000);
        for (std::int64_t at = after; visited < 300;) {
            if (!next_occurrence(expression, zone, at, at, rules) || at > until) {
                break;
            }
            ++visited;
        }
        ASSERT_EQ(count_occurrences(expression, zone, after, until, 300, rules), visited);
    }
    RecordProperty("most_steps", std::to_string(most_steps));
}

} // namespace
} // namespace qinglong::core
