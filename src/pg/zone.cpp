#include "qinglong_sched/pg/zone.hpp"

#include "qinglong_sched/core/stable_hash.hpp"
#include "qinglong_sched/pg/boundary.hpp"

namespace qinglong::pg {

namespace {

// PostgreSQL's data names every change until 2037 and repeats with the calendar after that; some zones have
// irregular changes planned until 2087. From here on every zone is periodic.
constexpr std::int64_t kCycleFrom = 13569465600; // 2400-01-01T00:00:00Z

constexpr std::size_t kNameSize = 128;

// Trivial, in TopMemoryContext, for the life of the backend (as pg_tz itself is).
struct CachedZone {
    char name[kNameSize];
    const core::ZoneSpan* spans;
    std::size_t count;
    bool noted;
};

HTAB* zone_cache = nullptr;

bool is_digit_zone(const std::string& name) {
    // The IANA names that contain a digit. Any other name with a digit would be read as a POSIX string.
    for (const char* fixed :
         {"EST5EDT", "CST6CDT", "MST7MDT", "PST8PDT", "GMT0", "GMT+0", "GMT-0", "Etc/GMT0"})
        if (pg_strcasecmp(name.c_str(), fixed) == 0)
            return true;
    if (name.size() < 9 || name.size() > 10 || pg_strncasecmp(name.c_str(), "Etc/GMT", 7) != 0 ||
        (name[7] != '+' && name[7] != '-') || name[8] < '0' || name[8] > '9')
        return false;
    int hours = name[8] - '0';
    if (name.size() == 10) {
        if (hours == 0 || name[9] < '0' || name[9] > '9')
            return false;
        hours = hours * 10 + name[9] - '0';
    }
    return hours <= (name[7] == '+' ? 12 : 14);
}

bool is_plain_name(const std::string& name) {
    if (name.empty() || name.size() >= kNameSize)
        return false;
    bool digit = false;
    for (const char c : name) {
        if (c >= '0' && c <= '9')
            digit = true;
        else if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/' || c == '+' ||
                   c == '-'))
            return false;
    }
    if (digit)
        return is_digit_zone(name);
    for (const char* not_a_zone : {"localtime", "posixrules", "Factory"})
        if (pg_strcasecmp(name.c_str(), not_a_zone) == 0)
            return false;
    return pg_strncasecmp(name.c_str(), "posix/", 6) != 0 && pg_strncasecmp(name.c_str(), "right/", 6) != 0;
}

pg_tz* load_zone(const std::string& name) {
    if (!is_plain_name(name))
        return nullptr;
    return pgcall([&]() -> pg_tz* {
        pg_tz* const zone = pg_tzset(name.c_str());
        return zone != nullptr && pg_tz_acceptable(zone) ? zone : nullptr;
    });
}

// Appends the spans of a zone to spans (when given) and returns how many there are. Neighbours with equal
// offsets are one span: PostgreSQL also reports changes of the abbreviation only.
std::size_t walk_spans(const pg_tz* zone, core::ZoneSpan* spans) {
    const pg_time_t end = kCycleFrom + 2 * core::kCycleSeconds;
    pg_time_t at = -(std::int64_t{1} << 40);
    std::size_t count = 0;
    std::int64_t begin = INT64_MIN;
    long offset = 0;
    for (;;) {
        long before;
        long after;
        int before_dst;
        int after_dst;
        pg_time_t boundary;
        const int rc = pg_next_dst_boundary(&at, &before, &before_dst, &boundary, &after, &after_dst, zone);
        if (count == 0 || before != offset) {
            if (spans != nullptr)
                spans[count] = core::ZoneSpan{begin, static_cast<std::int32_t>(before)};
            ++count;
            offset = before;
        }
        if (rc <= 0 || boundary >= end)
            return count;
        at = boundary;
        begin = boundary;
    }
}

// The name in a form in which "America/New York" and "america/new_york" are equal.
std::string folded(const std::string& name) {
    std::string result;
    for (const char c : name)
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '/' || c == '+' || c == '-')
            result.push_back(c);
        else if (c >= 'A' && c <= 'Z')
            result.push_back(static_cast<char>(c - 'A' + 'a'));
    return result;
}

// The name of this server that looks most like the given one; empty when none is near. Only errors pay for
// the walk.
std::string nearest_name(const std::string& given) {
    constexpr int kFar = 4;
    const std::string wanted = folded(given);
    if (wanted.empty() || wanted.size() > 60)
        return {};
    std::string best;
    int best_distance = kFar;
    pg_tzenum* const walk = pgcall([] { return pg_tzenumerate_start(); });
    for (;;) {
        pg_tz* const zone = pgcall([&] { return pg_tzenumerate_next(walk); });
        if (zone == nullptr)
            break;
        const std::string name = pg_get_timezone_name(zone);
        if (!is_plain_name(name))
            continue;
        std::string candidate = folded(name);
        // A lone city ("Berlin") means the zone that ends with it.
        if (const auto slash = candidate.rfind('/');
            slash != std::string::npos && wanted.find('/') == std::string::npos)
            candidate.erase(0, slash + 1);
        const int distance = pgcall([&] {
            return varstr_levenshtein_less_equal(wanted.data(), static_cast<int>(wanted.size()),
                                                 candidate.data(), static_cast<int>(candidate.size()), 1, 1,
                                                 1, best_distance, true);
        });
        if (distance < best_distance && distance * 3 <= static_cast<int>(wanted.size())) {
            best_distance = distance;
            best = name;
        }
    }
    pgcall([&] { pg_tzenumerate_end(walk); });
    return best;
}

} // namespace

namespace {

CachedZone* find_entry(const std::string& name) {
    if (name.empty() || name.size() >= kNameSize)
        return nullptr;
    CachedZone* entry = pgcall([&]() -> CachedZone* {
        if (zone_cache == nullptr) {
            HASHCTL control = {};
            control.keysize = kNameSize;
            control.entrysize = sizeof(CachedZone);
            control.hcxt = TopMemoryContext;
            zone_cache = hash_create("qinglong_sched time zones", 64, &control,
                                     HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
        }
        return static_cast<CachedZone*>(hash_search(zone_cache, name.c_str(), HASH_FIND, nullptr));
    });
    if (entry == nullptr) {
        const pg_tz* const zone = load_zone(name);
        // A POSIX reading or another spelling comes back under another name.
        if (zone == nullptr || name != pg_get_timezone_name(const_cast<pg_tz*>(zone)))
            return nullptr;
        entry = pgcall([&]() -> CachedZone* {
            const std::size_t count = walk_spans(zone, nullptr);
            auto* const spans = static_cast<core::ZoneSpan*>(
                MemoryContextAlloc(TopMemoryContext, sizeof(core::ZoneSpan) * count));
            (void)walk_spans(zone, spans);
            auto* const made =
                static_cast<CachedZone*>(hash_search(zone_cache, name.c_str(), HASH_ENTER, nullptr));
            made->spans = spans;
            made->count = count;
            made->noted = false;
            return made;
        });
    }
    return entry;
}

} // namespace

std::optional<core::ZoneView> find_zone(const std::string& name) {
    const CachedZone* const entry = find_entry(name);
    if (entry == nullptr)
        return std::nullopt;
    return core::ZoneView{{entry->spans, entry->count}, kCycleFrom};
}

std::optional<std::string> zone_fingerprint(const std::string& name) {
    const auto zone = find_zone(name);
    if (!zone)
        return std::nullopt;
    std::string text;
    for (const core::ZoneSpan& span : zone->spans)
        text += std::to_string(span.begin) + ' ' + std::to_string(span.offset) + ';';
    std::uint64_t hash = core::stable_hash(text);
    std::string hex(16, '0');
    for (auto digit = hex.rbegin(); digit != hex.rend(); ++digit, hash >>= 4)
        *digit = "0123456789abcdef"[hash & 15U];
    return hex;
}

bool zone_is_noted(const std::string& name) {
    const CachedZone* const entry = find_entry(name);
    return entry != nullptr && entry->noted;
}

void note_zone(const std::string& name) {
    if (CachedZone* const entry = find_entry(name))
        entry->noted = true;
}

std::string canonical_zone_name(const std::string& name) {
    if (pg_tz* const zone = load_zone(name); zone != nullptr) {
        std::string canonical = pg_get_timezone_name(zone);
        if (pg_strcasecmp(canonical.c_str(), name.c_str()) == 0 && find_zone(canonical))
            return canonical;
    }
    SqlError error{ERRCODE_INVALID_PARAMETER_VALUE,
                   "time zone \"" + name.substr(0, 128) + "\" is not known to this server",
                   "A time zone is an IANA name of the view pg_timezone_names; abbreviations and POSIX "
                   "strings are not."};
    const std::string near = nearest_name(name);
    error.hint = near.empty() ? "For example UTC, Europe/Berlin or America/New_York."
                              : "Perhaps you meant \"" + near + "\".";
    throw error;
}

} // namespace qinglong::pg
