#include "qinglong_sched/core/canonical_json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

using namespace qinglong::core;

namespace {

std::string canonical(std::string_view text) {
    return canonical_json(parse_json(text, stored_limits), stored_limits);
}

// "path: message" of the refusal, or "" when there is none.
template<typename F>
std::string refusal(F&& attempt) {
    try {
        attempt();
    } catch (const InvalidSpec& error) {
        EXPECT_FALSE(error.hint.empty());
        return error.path + ": " + error.what();
    }
    return "";
}

std::string canonical_refusal(const Json& value, const JsonLimits& limits) {
    return refusal([&] { canonical_json(value, limits); });
}

std::string builder_refusal(std::string_view text, const JsonLimits& limits) {
    return refusal([&] { parse_json(text, limits); });
}

std::string text_of(std::size_t size) {
    return std::string(size, 'x');
}

Json nested(std::size_t depth) {
    Json value = Json::integer(1);
    for (std::size_t i = 0; i < depth; ++i) {
        value = i % 2 == 0 ? Json::array({value}) : Json::object({{"a", value}});
    }
    return value;
}

constexpr JsonLimits wide{1'000'000, 100'000, 64, 1'000'000, 100'000, 100'000};

} // namespace

TEST(CanonicalNumber, IsWrittenAsEcmaScriptDoes) {
    const std::pair<const char*, const char*> cases[] = {
        {"0", "0"},
        {"-0", "0"},
        {"-0.0", "0"},
        {"0e7", "0"},
        {"1", "1"},
        {"1.0", "1"},
        {"1.50", "1.5"},
        {"-2.25", "-2.25"},
        {"0.1", "0.1"},
        {"100", "100"},
        {"1e2", "100"},
        {"1E+2", "100"},
        {"12e-1", "1.2"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1e-7"},
        {"1e-7", "1e-7"},
        {"0.00000123", "0.00000123"},
        {"1.23e-7", "1.23e-7"},
        {"100000000000000000000", "100000000000000000000"},
        {"123456789012345680000", "123456789012345680000"},
        {"999999999999999900000", "999999999999999900000"},
        {"1000000000000000000000", "1e+21"},
        {"1234567890123456800000", "1.2345678901234568e+21"},
        {"9007199254740991", "9007199254740991"},
        {"9007199254740992", "9007199254740992"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"5e-324", "5e-324"},
        {"2.2250738585072014e-308", "2.2250738585072014e-308"},
        {"-1e-7", "-1e-7"},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(canonical_number(text), expected) << text;
    }
    EXPECT_EQ(canonical_number("0." + std::string(323, '0') + "5"),
              "5e-324"); // as a numeric column writes it
    EXPECT_EQ(canonical_number("1" + std::string(300, '0')), "1e+300");
}

TEST(CanonicalNumber, RefusesWhatWouldChangeItsValue) {
    for (const char* text :
         {"123456789012345678", "9007199254740993", "1152921504606846976",
          "0.1000000000000000055511151231257827", "1e309", "-1e309", "1e-400", "4.9e-324", "1e999999999",
          "1e-999999999", "1e99999999999999999999", "1.7976931348623159e308"}) {
        EXPECT_EQ(canonical_number(text), std::nullopt) << text;
    }
    EXPECT_EQ(canonical_number(std::string(100'000, '7')), std::nullopt);
}

TEST(CanonicalNumber, RefusesWhatIsNoJsonNumber) {
    for (const char* text :
         {"",   "-",  "+1",  "01",  "-01",      "1.",        ".5",  "1e",  "1e+",   "1e--1", "1e+-1",
          " 1", "1 ", "0x1", "NaN", "Infinity", "-Infinity", "inf", "1,5", "1.2.3", "--1"}) {
        EXPECT_EQ(canonical_number(text), std::nullopt) << text;
    }
}

TEST(CanonicalNumber, KeepsEveryBinary64AndIsStable) {
    std::mt19937_64 random(20240601);
    for (int i = 0; i < 50'000; ++i) {
        const std::uint64_t bits = random();
        double value = 0;
        std::memcpy(&value, &bits, sizeof value);
        if (i % 4 == 0) { // numbers as people write them
            value = static_cast<double>(static_cast<std::int64_t>(bits % 2'000'001) - 1'000'000) / 1000.0;
        }
        if (!std::isfinite(value)) {
            continue;
        }
        char buffer[32];
        const auto end =
            std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
        const auto text = canonical_number(std::string_view(buffer, static_cast<std::size_t>(end - buffer)));
        ASSERT_TRUE(text) << value;
        double back = 0;
        std::from_chars(text->data(), text->data() + text->size(), back);
        ASSERT_EQ(back, value) << *text;
        ASSERT_EQ(canonical_number(*text), text);
    }
}

TEST(CanonicalJson, EscapesOnlyWhatJsonDemands) {
    std::string out;
    append_json_string(out, std::string_view("\0\x01\x1f\b\f\n\r\t\"\\/\x7f\xe2\x80\xa8\xc3\xa9", 17));
    EXPECT_EQ(out, "\"\\u0000\\u0001\\u001f\\b\\f\\n\\r\\t\\\"\\\\/\x7f\xe2\x80\xa8\xc3\xa9\"");
}

TEST(CanonicalJson, SortsKeysByUtf8Bytes) {
    // UTF-16 would put U+1F680 (a surrogate pair) before U+FF5E.
    EXPECT_EQ(
        canonical("{\"\\ud83d\\ude80\":1,\"\xef\xbd\x9e\":2,\"\xc3\xa9\":3,\"z\":4,\"10\":5,\"9\":6,\"\":7}"),
        "{\"\":7,\"10\":5,\"9\":6,\"z\":4,\"\xc3\xa9\":3,\"\xef\xbd\x9e\":2,\"\xf0\x9f\x9a\x80\":1}");
}

TEST(CanonicalJson, KeepsTheOrderOfArraysAndAllKinds) {
    EXPECT_EQ(
        canonical(
            " [ 3 , 2 , { \"z\" : null , \"y\" : true , \"x\" : [ ] , \"w\" : { } } , false , \"s\" ] "),
        "[3,2,{\"w\":{},\"x\":[],\"y\":true,\"z\":null},false,\"s\"]");
}

TEST(CanonicalJson, IgnoresTheGivenKeyOrder) {
    std::mt19937 random(7);
    std::vector<JsonMember> members;
    for (int i = 0; i < 30; ++i) {
        members.push_back({"k" + std::to_string(i * 7919 % 31), nested(static_cast<std::size_t>(i % 8))});
    }
    const std::string expected = canonical_json(Json::object(members), stored_limits);
    for (int round = 0; round < 100; ++round) {
        std::shuffle(members.begin(), members.end(), random);
        ASSERT_EQ(canonical_json(Json::object(members), stored_limits), expected);
        ASSERT_EQ(canonical(expected), expected);
    }
}

TEST(CanonicalJson, HoldsEachLimitAtItsEdge) {
    const JsonLimits tight{100, 8, 3, 10, 4, 5};
    EXPECT_EQ(canonical_refusal(Json::string(text_of(10)), tight), "");
    EXPECT_EQ(canonical_refusal(Json::array({Json::string(text_of(11))}), tight),
              "[0]: is too long (at most 10 bytes)");
    EXPECT_EQ(canonical_refusal(nested(3), tight), "");
    EXPECT_EQ(canonical_refusal(nested(4), tight), "a[0].a: is nested too deeply (at most 3 levels)");
    EXPECT_EQ(canonical_refusal(Json::array(std::vector<Json>(4)), tight), "");
    EXPECT_EQ(canonical_refusal(Json::array(std::vector<Json>(5)), tight),
              "spec: has too many entries (at most 4)");
    EXPECT_EQ(canonical_refusal(Json::object({{"12345", Json::null()}}), tight), "");
    EXPECT_EQ(canonical_refusal(Json::object({{"abcdef", Json::null()}}), tight),
              "abcdef: is a key that is too long (at most 5 bytes)");
    EXPECT_EQ(canonical_refusal(
                  Json::array({Json::array(std::vector<Json>(3)), Json::array(std::vector<Json>(2))}), tight),
              "");
    EXPECT_EQ(canonical_refusal(
                  Json::array({Json::array(std::vector<Json>(3)), Json::array(std::vector<Json>(3))}), tight),
              "spec: has too many values (at most 8)");
    const JsonLimits bytes{12, 100, 12, 100, 100, 100};
    EXPECT_EQ(canonical_refusal(Json::string(text_of(10)), bytes), "");
    EXPECT_EQ(canonical_refusal(Json::string(text_of(11)), bytes), "spec: is too large (at most 12 bytes)");
    EXPECT_EQ(canonical_refusal(Json::string("\x01\n"), bytes), ""); // ten bytes with quotes
    EXPECT_EQ(canonical_refusal(Json::string("\x01\x01"), bytes), "spec: is too large (at most 12 bytes)");
}

TEST(CanonicalJson, RefusesWhatCannotBeWritten) {
    EXPECT_EQ(canonical_refusal(Json::object({{"a", Json::number("123456789012345678")}}), wide),
              "a: is a number that would change its value in 64-bit floating point");
    EXPECT_EQ(canonical_refusal(Json::object({{"a", Json::null()}, {"a", Json::null()}}), wide),
              "a: is given twice");
    EXPECT_EQ(canonical_refusal(Json::array({Json::string("\xff")}), wide), "[0]: is not UTF-8 text");
    EXPECT_EQ(canonical_refusal(Json::array({Json::object({{"\xc3", Json::null()}})}), wide),
              "[0]: has a key that is not UTF-8 text");
    EXPECT_EQ(refusal([] { canonical_json(Json::number("x"), wide, "labels"); }),
              "labels: is a number that would change its value in 64-bit floating point");
}

// A key may be a secret that was given in the place of its name.
TEST(CanonicalJson, PathsShowOnlyKeysMadeOfLetters) {
    const auto path = [](const std::string& key) {
        std::string out = "config";
        append_path_key(out, key);
        return out;
    };
    EXPECT_EQ(path("timeoutMs"), "config.timeoutMs");
    EXPECT_EQ(path(std::string(32, 'a')), "config." + std::string(32, 'a'));
    for (const std::string& key :
         {std::string(), std::string(33, 'a'), std::string("a b"), std::string("hunter2"),
          std::string("pass-word"), std::string("\xc3\xa9")}) {
        EXPECT_EQ(path(key), "config.(hidden key)");
    }
}

TEST(JsonBuilder, StopsEarlyAtEachLimit) {
    const JsonLimits tight{20, 8, 3, 10, 4, 5};
    EXPECT_EQ(builder_refusal("[[[1]]]", tight), "");
    EXPECT_EQ(builder_refusal("{\"b\":[[[1]]]}", tight), "b[0][0]: is nested too deeply");
    EXPECT_EQ(builder_refusal(std::string(100'000, '['), tight), "[0][0][0]: is nested too deeply");
    EXPECT_EQ(builder_refusal("[1,2,3,4]", tight), "");
    EXPECT_EQ(builder_refusal("[1,2,3,4,5]", tight), "[4]: is in a list or object with too many entries");
    EXPECT_EQ(builder_refusal("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1}", tight),
              "e: is in a list or object with too many entries");
    EXPECT_EQ(builder_refusal("[[1,2,3],[1,2]]", tight), "");
    EXPECT_EQ(builder_refusal("[[1,2,3],[1,2,3]]", tight), "spec: has too many values");
    EXPECT_EQ(builder_refusal("{\"12345\":1}", tight), "");
    EXPECT_EQ(builder_refusal("{\"123456\":1}", tight), "spec: has a key that is too long");
    EXPECT_EQ(builder_refusal('"' + text_of(20) + '"', tight),
              ""); // longer strings are the schema's business
    EXPECT_EQ(builder_refusal('"' + text_of(21) + '"', tight), "spec: is too large");
    EXPECT_EQ(builder_refusal("[\"" + text_of(15) + "\",\"123456\"]", tight), "spec: is too large");
}

TEST(JsonBuilder, RefusesBadTexts) {
    JsonBuilder builder(wide);
    builder.begin_object();
    EXPECT_EQ(refusal([&] { builder.key("\xed\xa0\x80"); }), "spec: has a key that is not UTF-8 text");
    builder.key("a");
    EXPECT_EQ(refusal([&] { builder.string(std::string_view("\0", 1)); }), "a: is not UTF-8 text");
    EXPECT_EQ(refusal([&] { builder.number("123456789012345678"); }),
              "a: is a number that would change its value in 64-bit floating point");
    builder.number("-0.00");
    builder.end();
    EXPECT_EQ(canonical_json(builder.finish(), wide), "{\"a\":0}");
}

TEST(JsonParser, ReadsEscapesAndRefusesBadSyntax) {
    EXPECT_EQ(canonical("\"\\u0041\\u00e9\\u65e5\\ud83d\\ude80\\/\\b\""),
              "\"A\xc3\xa9\xe6\x97\xa5\xf0\x9f\x9a\x80/\\b\"");
    for (const char* text : {"",
                             " ",
                             "{",
                             "[",
                             "[1,]",
                             "[1 2]",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{\"a\":1,}",
                             "{a:1}",
                             "{\"a\":1,\"a\":2}",
                             "tru",
                             "nul",
                             "1 2",
                             "\"",
                             "\"\n\"",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\u12g4\"",
                             "\"\\ud800\"",
                             "\"\\ud800\\u0041\"",
                             "\"\\udc00\"",
                             "\"\\u0000\"",
                             "\"\xff\"",
                             "01",
                             "+1",
                             "NaN",
                             "[1]]",
                             "{\"a\":1}}",
                             "\"\\"}) {
        EXPECT_NE(builder_refusal(text, wide), "") << text;
    }
}

TEST(Utf8, AcceptsExactlyTheWellFormed) {
    for (const char* good : {"", "a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                             "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_TRUE(is_clean_utf8(good)) << good;
    }
    for (const char* bad :
         {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2\x20", "\xe0\x80\x80", "\xe0\x9f\xbf",
          "\xe0\xa0", "\xed\xa0\x80", "\xed\xbf\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80",
          "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff", "\xfe"}) {
        EXPECT_FALSE(is_clean_utf8(bad)) << bad;
    }
    EXPECT_FALSE(is_clean_utf8(std::string_view("\0", 1)));
}
