#include "qinglong_sched/core/occurrence.hpp"
#include "zone_from_system.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace qinglong::core {
namespace {

using test::system_has_zone;
using test::zone_from_system;

std::vector<std::vector<std::string>> read_rows(const std::string& name) {
    std::ifstream file(std::string(QL_TEST_DATA_DIR) + "/cron/" + name);
    std::vector<std::vector<std::string>> rows;
    std::string line;
    std::getline(file, line); // the heading
    while (std::getline(file, line)) {
        std::vector<std::string> cells;
        std::stringstream stream(line);
        for (std::string cell; std::getline(stream, cell, '\t');) {
            cells.push_back(cell);
        }
        rows.push_back(cells);
    }
    return rows;
}

std::int64_t floor_seconds(std::int64_t milliseconds) {
    return milliseconds / 1000 - (milliseconds % 1000 < 0 ? 1 : 0);
}

std::string utf8(std::uint32_t code) {
    const auto byte = [](std::uint32_t value) {
        return static_cast<char>(static_cast<unsigned char>(value));
    };
    if (code < 0x80) {
        return {byte(code)};
    }
    if (code < 0x800) {
        return {byte(0xC0 | code >> 6), byte(0x80 | (code & 63))};
    }
    if (code < 0x10000) {
        return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 63)), byte(0x80 | (code & 63))};
    }
    return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 63)), byte(0x80 | (code >> 6 & 63)),
            byte(0x80 | (code & 63))};
}

std::string unescape_json(const std::string& text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '\\') {
            result += text[i];
            continue;
        }
        ++i;
        switch (text[i]) {
        case 'u': {
            auto code = static_cast<std::uint32_t>(std::stoul(text.substr(i + 1, 4), nullptr, 16));
            i += 4;
            if (code >= 0xD800 && code < 0xDC00) {
                const auto low = static_cast<std::uint32_t>(std::stoul(text.substr(i + 3, 4), nullptr, 16));
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                i += 6;
            }
            result += utf8(code);
            break;
        }
        case 'n':
            result += '\n';
            break;
        case 't':
            result += '\t';
            break;
        default:
            result += text[i];
        }
    }
    return result;
}

TEST(CronVectors, EveryRowComesOutAsWritten) {
    const auto rows = read_rows("vectors.tsv");
    ASSERT_EQ(rows.size(), 2610U);
    int checked = 0;
    int foreign = 0; // the zone is wrong, which is not for this layer to see
    for (const auto& row : rows) {
        ASSERT_EQ(row.size(), 10U) << row[0];
        if (row[9] == "invalid-zone") {
            ++foreign;
            continue;
        }
        ++checked;
        CronExpression expression;
        CronError error;
        const bool is_parsed = parse_cron(row[1], expression, error);
        ASSERT_EQ(is_parsed, row[4] != "ERROR") << row[0] << ": " << row[1] << ": " << error.message;
        if (!is_parsed) {
            continue;
        }
        ASSERT_TRUE(system_has_zone(row[2])) << row[2];
        const ZoneView zone = zone_from_system(row[2]).view();
        std::int64_t after = floor_seconds(std::stoll(row[3]));
        for (std::size_t k = 4; k < 9; ++k) {
            std::int64_t next = 0;
            const bool is_found = next_occurrence(expression, zone, after, next);
            ASSERT_EQ(is_found ? std::to_string(next * 1000) : "NONE", row[k])
                << row[0] << ": " << row[1] << " in " << row[2] << " after " << row[3] << ", next_" << k - 3;
            if (!is_found) {
                break;
            }
            ASSERT_EQ(count_occurrences(expression, zone, after, next, 10), 1U) << row[0];
            after = next;
        }
    }
    EXPECT_EQ(checked, 2600);
    EXPECT_EQ(foreign, 10);
}

TEST(CronVectors, EveryInvalidExpressionIsRefusedWithItsPlace) {
    const auto rows = read_rows("invalid.tsv");
    ASSERT_EQ(rows.size(), 203U);
    for (const auto& row : rows) {
        const std::string text = unescape_json(row[0]);
        CronExpression expression;
        CronError error;
        EXPECT_FALSE(parse_cron(text, expression, error)) << text;
        EXPECT_GE(error.position, 1U) << text;
        EXPECT_LE(error.position, normalize_cron(text).size() + 1) << text;
        EXPECT_FALSE(error.message.empty()) << text;
        EXPECT_FALSE(error.expected.empty()) << text;
    }
}

} // namespace
} // namespace qinglong::core
