#pragma once
// A hash whose values are kept: they decide when a trigger becomes due and tell zone data apart, so they are
// the same on every machine and in every version.

#include <cstdint>
#include <string_view>

namespace qinglong::core {

// FNV-1a with a finaliser, so that texts that differ in one byte spread over all bits.
constexpr std::uint64_t stable_hash(std::string_view bytes) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : bytes) {
        hash ^= static_cast<unsigned char>(c);
        hash *= 0x100000001b3;
    }
    hash ^= hash >> 33;
    hash *= 0xff51afd7ed558ccd;
    hash ^= hash >> 33;
    hash *= 0xc4ceb9fe1a85ec53;
    return hash ^ hash >> 33;
}

// How much later than its occurrences a trigger becomes due: the same share of the jitter each time.
constexpr std::int64_t due_delay_ms(std::string_view trigger_id, std::int64_t jitter_ms) {
    return static_cast<std::int64_t>(stable_hash(trigger_id) % (static_cast<std::uint64_t>(jitter_ms) + 1));
}

} // namespace qinglong::core
