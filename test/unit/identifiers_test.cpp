#include "qinglong_sched/core/identifiers.hpp"

#include <gtest/gtest.h>
#include <string>

using namespace qinglong::core;

namespace {

std::string text_of(std::size_t size, char c = 'x') {
    return std::string(size, c);
}

} // namespace

TEST(Identifiers, IdsAreShortUtf8WithoutControls) {
    for (const std::string& good :
         {std::string("a"), text_of(128), std::string("项目-α"), std::string("a:b/c d"),
          std::string("\xc2\xa0"), std::string("\xc3\x80")}) {
        EXPECT_FALSE(check_id(good)) << good;
    }
    for (const std::string& bad :
         {std::string(), text_of(129), "é" + text_of(127), std::string("a\0b", 3), std::string("a\n"),
          std::string("\x1f"), std::string("\x7f"), std::string("\xc2\x80"), std::string("\xc2\x9f"),
          std::string("\xff"), std::string("a\xc2")}) {
        EXPECT_TRUE(check_id(bad)) << bad;
    }
    EXPECT_FALSE(check_id("é" + text_of(126))); // bytes count, not characters
}

TEST(Identifiers, OwnerIds) {
    for (const std::string& good : {std::string("a"), text_of(128), std::string("bgw:7:5:0:1.2_3-Z")}) {
        EXPECT_FALSE(check_owner_id(good)) << good;
    }
    for (const std::string& bad :
         {std::string(), text_of(129), std::string(".a"), std::string(":a"), std::string("a b"),
          std::string("a/b"), std::string("é"), std::string("a\n")}) {
        EXPECT_TRUE(check_owner_id(bad)) << bad;
    }
}

TEST(Identifiers, NamesAndDescriptions) {
    EXPECT_TRUE(check_name(""));
    EXPECT_FALSE(check_name("n"));
    EXPECT_FALSE(check_name(text_of(255)));
    EXPECT_TRUE(check_name(text_of(256)));
    EXPECT_TRUE(check_name("\xff"));
    EXPECT_TRUE(check_description(""));
    EXPECT_FALSE(check_description("Line one\nline two"));
    EXPECT_FALSE(check_description(text_of(4'096)));
    EXPECT_TRUE(check_description(text_of(4'097)));
    EXPECT_TRUE(check_description(std::string_view("\0", 1)));
}

TEST(Identifiers, TaskKinds) {
    for (const char* good : {"script", "command", "workflow", "agent", "tool"}) {
        EXPECT_FALSE(check_task_kind(good));
    }
    for (const char* bad : {"", "Command", "commands", "cron"}) {
        EXPECT_TRUE(check_task_kind(bad));
    }
}

TEST(Identifiers, SchemaNames) {
    for (const std::string& good :
         {std::string("qinglong/command@v1"), std::string("a/b@v1"),
          std::string("example.org/x.y-z0@v999999"), text_of(64) + '/' + text_of(64) + "@v1"}) {
        EXPECT_FALSE(check_schema_name(good)) << good;
    }
    for (const std::string& bad : {std::string(),
                                   std::string("a"),
                                   std::string("a/b"),
                                   std::string("a/b@v"),
                                   std::string("a/b@v0"),
                                   std::string("a/b@v01"),
                                   std::string("a/b@v1000000"),
                                   std::string("a/b@1"),
                                   std::string("/b@v1"),
                                   std::string("a/@v1"),
                                   std::string("A/b@v1"),
                                   std::string("1/b@v1"),
                                   std::string("a/1@v1"),
                                   std::string("a/b/c@v1"),
                                   std::string("a/b@v1@v1"),
                                   std::string("a/b@v1\n"),
                                   std::string("a_/b@v1"),
                                   std::string("a@v1/b"),
                                   text_of(65) + "/b@v1",
                                   "a/" + text_of(65) + "@v1"}) {
        EXPECT_TRUE(check_schema_name(bad)) << bad;
    }
}

TEST(Identifiers, Labels) {
    for (const std::string& good : {std::string("a"), std::string("0"), std::string("a.b/c-d"), text_of(63),
                                    text_of(63) + '/' + text_of(63), std::string("a_b")}) {
        EXPECT_FALSE(check_label_key(good)) << good;
    }
    for (const std::string& bad :
         {std::string(), text_of(64), std::string("/a"), std::string("a/"), std::string("a/b/c"),
          std::string(".a"), std::string("a-"), std::string("_"), std::string("A"), std::string("é"),
          "a/" + text_of(64)}) {
        EXPECT_TRUE(check_label_key(bad)) << bad;
    }
    EXPECT_FALSE(check_label_value(""));
    EXPECT_FALSE(check_label_value(text_of(256)));
    EXPECT_TRUE(check_label_value(text_of(257)));
    EXPECT_TRUE(check_label_value("\xff"));
}

TEST(Identifiers, DigestsAndRevisions) {
    EXPECT_FALSE(check_content_digest(text_of(60, '0') + "9af0"));
    for (const std::string& bad :
         {std::string(), text_of(63, 'a'), text_of(65, 'a'), text_of(64, 'g'), text_of(64, 'A')}) {
        EXPECT_TRUE(check_content_digest(bad)) << bad;
    }
    EXPECT_TRUE(check_revision(0));
    EXPECT_FALSE(check_revision(1));
    EXPECT_FALSE(check_revision(2'147'483'647));
    EXPECT_TRUE(check_revision(2'147'483'648));
}
