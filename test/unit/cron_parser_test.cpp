#include "qinglong_sched/core/cron_expression.hpp"

#include <gtest/gtest.h>

#include <string>

namespace qinglong::core {
namespace {

CronExpression parsed(std::string_view text) {
    CronExpression expression;
    CronError error;
    EXPECT_TRUE(parse_cron(text, expression, error)) << text << ": " << cron_error_text(error);
    return expression;
}

CronError refused(std::string_view text) {
    CronExpression expression;
    CronError error;
    EXPECT_FALSE(parse_cron(text, expression, error)) << text;
    return error;
}

TEST(CronParser, SixFieldsPutSecondsFirst) {
    EXPECT_EQ(parsed("5 * * * *").seconds, 1U);
    EXPECT_EQ(parsed("5 * * * *").minutes, 1U << 5);
    EXPECT_EQ(parsed("7 5 * * * *").seconds, 1U << 7);
    EXPECT_EQ(parsed("7 5 * * * *").minutes, 1U << 5);
    EXPECT_EQ(parsed("0 0 * * * *"), parsed("0 * * * *"));
}

TEST(CronParser, ItemsMeanWhatTheGrammarSays) {
    EXPECT_EQ(parsed("* * * * *").minutes, (std::uint64_t{1} << 60) - 1);
    EXPECT_EQ(parsed("*/20 * * * *").minutes, parsed("0,20,40 * * * *").minutes);
    EXPECT_EQ(parsed("50/5 * * * *").minutes, parsed("50,55 * * * *").minutes);
    EXPECT_EQ(parsed("10-20/5,7 * * * *").minutes, parsed("7,10,15,20 * * * *").minutes);
    EXPECT_EQ(parsed("000000000000005 * * * *"), parsed("5 * * * *"));
    EXPECT_EQ(parsed("0 1/4 * * *").hours, parsed("0 1,5,9,13,17,21 * * *").hours);
    EXPECT_EQ(parsed("0 0 1 jan,Feb-APR *"), parsed("0 0 1 1-4 *"));
    EXPECT_EQ(parsed("0 0 ? * ?"), parsed("0 0 * * *"));
}

TEST(CronParser, SundayIsZeroAndSevenAndEndsARange) {
    EXPECT_EQ(parsed("0 0 * * 7"), parsed("0 0 * * 0"));
    EXPECT_EQ(parsed("0 0 * * SAT-SUN"), parsed("0 0 * * 0,6"));
    EXPECT_EQ(parsed("0 0 * * 5-7"), parsed("0 0 * * FRI,SAT,SUN"));
    EXPECT_EQ(parsed("0 0 * * sun-SUN"), parsed("0 0 * * 0-6"));
    EXPECT_EQ(parsed("0 0 * * 3/2"), parsed("0 0 * * 3,5"));
    EXPECT_EQ(parsed("0 0 * * SUN/3"), parsed("0 0 * * 0,3,6"));
    EXPECT_EQ(parsed("0 0 * * 0-7/7"), parsed("0 0 * * SUN"));
    EXPECT_EQ(parsed("0 0 * * 7#2"), parsed("0 0 * * 0#2"));
}

TEST(CronParser, OccurrencesOfAWeekday) {
    EXPECT_EQ(parsed("0 0 * * FRIL"), parsed("0 0 * * 5#L"));
    EXPECT_EQ(parsed("0 0 * * 1-5L"), parsed("0 0 * * MON-FRI#L"));
    EXPECT_EQ(parsed("0 0 * * */2#1"), parsed("0 0 * * 0#1,2#1,4#1,6#1"));
    EXPECT_EQ(parsed("0 0 * * 2#1,2#2,2#3,2#4,2#5"), parsed("0 0 * * 2"));
    EXPECT_EQ(parsed("0 0 * * 5#2").last_weekdays, 0U);
}

TEST(CronParser, OnlyTheBareWildcardsRestrictNothing) {
    EXPECT_TRUE(parsed("0 0 * * 1").any_day);
    EXPECT_TRUE(parsed("0 0 ? * 1").any_day);
    EXPECT_FALSE(parsed("0 0 */1 * 1").any_day);
    EXPECT_FALSE(parsed("0 0 1-31 * 1").any_day);
    EXPECT_FALSE(parsed("0 0 *,* * 1").any_day);
    EXPECT_TRUE(parsed("0 0 1 * ?").any_weekday);
    EXPECT_FALSE(parsed("0 0 1 * 0-7").any_weekday);
}

TEST(CronParser, AnErrorLeavesTheResultAlone) {
    CronExpression expression = parsed("1 2 3 4 5");
    CronError error;
    EXPECT_FALSE(parse_cron("1 2 3 4 99", expression, error));
    EXPECT_EQ(expression, parsed("1 2 3 4 5"));
}

TEST(CronParser, BlanksAreTrimmedAndCollapsed) {
    EXPECT_EQ(normalize_cron("  \t5\n\r 4 \v3\f2 1 "), "5 4 3 2 1");
    EXPECT_EQ(normalize_cron(""), "");
    EXPECT_EQ(normalize_cron(" \t "), "");
    EXPECT_EQ(parsed("\t0  0\n1 \v1\f* "), parsed("0 0 1 1 *"));
}

struct Refusal {
    const char* text;
    CronField field;
    std::uint32_t position;
    const char* message;
    const char* expected;
};

TEST(CronParser, ErrorsNameFieldPlaceAndRemedy) {
    const Refusal refusals[] = {
        {"60 * * * *", CronField::minute, 1, "value out of range", "0 to 59"},
        {"60 * * * * *", CronField::second, 1, "value out of range", "0 to 59"},
        {"0 1,24 * * *", CronField::hour, 5, "value out of range", "0 to 23"},
        {"  0   0  32 * *", CronField::day_of_month, 5, "value out of range", "1 to 31"},
        {"0 0 1 13 *", CronField::month, 7, "value out of range", "1 to 12 or JAN to DEC"},
        {"0 0 * * 8", CronField::day_of_week, 9, "value out of range", "0 to 7 or SUN to SAT"},
        {"0 0 * * 99999999999999999999", CronField::day_of_week, 9, "value out of range", "0 to 7"},
        {"0 22-2 * * *", CronField::hour, 3, "the range runs backwards", "ends at or after its start"},
        {"0 0 * * FRI-MON", CronField::day_of_week, 9, "the range runs backwards", "ends at or after"},
        {"*/61 * * * *", CronField::minute, 3, "step out of range", "a step of 1 to 60"},
        {"0 */25 * * *", CronField::hour, 5, "step out of range", "a step of 1 to 24"},
        {"*/ * * * *", CronField::minute, 3, "the step is missing", "a step of 1 to 60"},
        {"5, * * * *", CronField::minute, 3, "empty list item", "comma list"},
        {"5,,6 * * * *", CronField::minute, 3, "empty list item", "comma list"},
        {"1- * * * *", CronField::minute, 3, "a value is missing", "0 to 59"},
        {"-1 * * * *", CronField::minute, 1, "a value is missing", "0 to 59"},
        {"*5 * * * *", CronField::minute, 2, "unexpected character", "comma list"},
        {"5* * * * *", CronField::minute, 2, "a wildcard stands alone", "comma list"},
        {"0 0 L,L * *", CronField::day_of_month, 7, "L is given twice", "at most once"},
        {"0 0 LW,1 * *", CronField::day_of_month, 5, "LW stands alone", "whole field"},
        {"0 0 1,LW * *", CronField::day_of_month, 7, "LW stands alone", "whole field"},
        {"0 0 l * *", CronField::day_of_month, 5, "names have no place", "1 to 31"},
        {"0 0 15w * *", CronField::day_of_month, 7, "unexpected character", "nW"},
        {"0 0 * * 5#6", CronField::day_of_week, 11, "wrong occurrence", "1 to 5 or L"},
        {"0 0 * * *#1", CronField::day_of_week, 10, "a wildcard stands alone", "n#1"},
        {"0 0 * * MONDAY", CronField::day_of_week, 9, "unknown name", "SUN to SAT"},
        {"0 0 1 SEPT *", CronField::month, 7, "unknown name", "JAN to DEC"},
        {"0 0 * * 7/2", CronField::day_of_week, 9, "the start lies beyond", "0 to 6"},
        {"0 0 * * !5", CronField::day_of_week, 9, "character not allowed", "digits"},
        {"5.5 * * * *", CronField::minute, 2, "character not allowed", "digits"},
        {"0 0 1 * * 2024-05-05T00:00:00 *", CronField::expression, 24, "character not allowed", "digits"},
        {"5\xE2\x80\x93"
         "6 * * * * $",
         CronField::second, 2, "character not allowed", "plain blanks"},
        {"", CronField::expression, 1, "too few fields", "five fields"},
        {"* * * *", CronField::expression, 8, "too few fields", "five fields"},
        {"* * * * * * *", CronField::expression, 13, "too many fields", "five fields"},
        {"@daily", CronField::expression, 1, "macros are not supported", "five fields"},
    };
    for (const Refusal& refusal : refusals) {
        const CronError error = refused(refusal.text);
        EXPECT_EQ(cron_field_name(error.field), cron_field_name(refusal.field)) << refusal.text;
        EXPECT_EQ(error.position, refusal.position) << refusal.text;
        EXPECT_NE(error.message.find(refusal.message), std::string_view::npos)
            << refusal.text << ": " << error.message;
        EXPECT_NE(error.expected.find(refusal.expected), std::string_view::npos)
            << refusal.text << ": " << error.expected;
    }
    EXPECT_EQ(cron_error_text(refused("0 24 * * *")),
              "hour, character 3: value out of range; expected 0 to 23");
}

TEST(CronParser, MacrosAreAnsweredWithTheirFields) {
    const std::pair<const char*, const char*> macros[] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"},   {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},      {"@midnight", "0 0 * * *"},
        {"@HOURLY", "0 * * * *"}, {"@every 5m", "*/5 * * * *"},
    };
    for (const auto& [macro, fields] : macros) {
        EXPECT_NE(refused(macro).hint.find(fields), std::string_view::npos) << macro;
        parsed(fields);
    }
    EXPECT_FALSE(refused("@reboot").hint.empty());
}

TEST(CronParser, LongTextIsRefusedPlainly) {
    EXPECT_EQ(refused(std::string(1000, '1')).message, "too few fields");
    EXPECT_EQ(refused(std::string(129, '1') + " * * * *").message, "field too long");
    EXPECT_EQ(refused("* * * * " + std::string(1000, '*')).field, CronField::day_of_week);
    parsed(std::string(127, '0') + "1 * * * *");
}

TEST(CronParser, PrintedTextParsesBackToTheSame) {
    for (const char* text :
         {"* * * * *", "0 0 ? * ?", "*/7 1-5,9 1,15W,20W,L JAN-MAR,12 1-5", "0 0 LW * 1#2,FRIL,3",
          "5 5 1-31 * 0-7", "0 0 */1 2 1#1,1#2,1#3,1#4,1#5", "59 59 23 31 12 6"}) {
        const std::string printed = print_cron(parsed(text));
        EXPECT_EQ(parsed(printed), parsed(text)) << text << " became " << printed;
    }
    EXPECT_EQ(print_cron(parsed("*/30 9-17 * * mon-fri")), "0 0,30 9-17 * 1-12 1-5");
}

} // namespace
} // namespace qinglong::core
