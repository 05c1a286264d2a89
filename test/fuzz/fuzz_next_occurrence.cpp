// Any expression, zone, rules and instant: answers strictly increase, are the same from anywhere before them,
// agree with the count, and take no more steps than proven.
//
// Input: one line of text, then bytes: rules and cycles to add (1), instant (8), and the zone's changes (7
// each: 4 for the distance to the change before, 3 for the offset).

#include "qinglong_sched/core/occurrence.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

using namespace qinglong::core;

namespace {

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

class Bytes {
  public:
    explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

    bool is_empty() const { return bytes_.empty(); }

    std::uint64_t take(std::size_t count) {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < count && !bytes_.empty(); ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(bytes_.front())} << (8 * i);
            bytes_.remove_prefix(1);
        }
        return value;
    }

  private:
    std::string_view bytes_;
};

std::int32_t clamp_offset(std::int64_t offset, std::int64_t low, std::int64_t high) {
    return static_cast<std::int32_t>(std::clamp(offset, low, high));
}

std::vector<ZoneSpan> take_spans(Bytes& bytes, std::int64_t begin) {
    std::vector<ZoneSpan> spans{{std::numeric_limits<std::int64_t>::min(), 0}};
    for (int i = 0; i < 64 && !bytes.is_empty(); ++i) {
        begin += static_cast<std::int64_t>(bytes.take(4)) + (i == 0 ? 0 : kMinSpanSeconds);
        const auto offset = static_cast<std::int64_t>(bytes.take(3) % (2 * kMaxOffset + 1)) - kMaxOffset;
        const std::int64_t before = spans.back().offset;
        spans.push_back({begin, clamp_offset(offset, std::max(-kMaxOffset, before - kMaxOffset),
                                             std::min(kMaxOffset, before + kMaxOffset))});
    }
    return spans;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t line = std::min(input.find('\n'), input.size());
    CronExpression expression;
    CronError error;
    if (!parse_cron(input.substr(0, line), expression, error)) {
        return 0;
    }
    Bytes bytes(input.substr(std::min(line + 1, input.size())));
    const std::uint64_t choice = bytes.take(1);
    const InstantRules rules{static_cast<Gap>(choice % 2), static_cast<Overlap>(choice / 2 % 3),
                             static_cast<DayMatch>(choice / 6 % 2)};
    auto start = kMinInstant + static_cast<std::int64_t>(bytes.take(8) % (kMaxInstant / 2));
    const std::vector<ZoneSpan> spans = take_spans(bytes, start - 1000000);
    const std::int64_t last_change = spans.size() > 1 ? spans.back().begin : 0;
    const ZoneView zone{spans, std::clamp(last_change + 2 * kMaxOffset, kMinInstant, kMaxInstant)};
    require(zone_is_valid(zone));

    start += kCycleSeconds * static_cast<std::int64_t>(choice / 12 % 3);
    std::int64_t after = start;
    for (std::uint64_t k = 1; k <= 16; ++k) {
        std::int64_t next = 0;
        std::uint32_t steps = 0;
        const bool is_found = next_occurrence(expression, zone, after, next, rules, &steps);
        require(steps <= search_step_bound(zone));
        if (!is_found) {
            require(count_occurrences(expression, zone, after, after + kCycleSeconds, 1, rules) == 0);
            break;
        }
        require(next > after && next <= after + kCycleSeconds);
        for (const std::int64_t between : {after + (next - after) / 2, next - 1}) {
            std::int64_t again = 0;
            require(next_occurrence(expression, zone, between, again, rules) && again == next);
        }
        require(count_occurrences(expression, zone, start, next, 1000, rules) == k);
        require(count_occurrences(expression, zone, start, next - 1, 1000, rules) == k - 1);
        after = next;
    }
    return 0;
}
