#include "qinglong_sched/core/canonical_json.hpp"
#include "qinglong_sched/core/digests.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

using namespace qinglong::core;

namespace {

// FIPS 180-4, for checking only; the server brings its own. The constants are the fractions of the roots of
// primes.
std::string sha256_hex(std::string text) {
    std::array<std::uint32_t, 64> k{};
    std::array<std::uint32_t, 8> state{};
    const auto fraction = [](long double root) {
        return static_cast<std::uint32_t>((root - std::floor(root)) * 4'294'967'296.0L);
    };
    for (unsigned n = 2, found = 0; found < 64; ++n) {
        bool prime = true;
        for (unsigned d = 2; d * d <= n; ++d) {
            prime = prime && n % d != 0;
        }
        if (prime) {
            k[found] = fraction(std::cbrt(static_cast<long double>(n)));
            if (found < 8) {
                state[found] = fraction(std::sqrt(static_cast<long double>(n)));
            }
            ++found;
        }
    }
    const std::uint64_t bits = text.size() * 8;
    text += '\x80';
    text.append((120 - text.size() % 64) % 64, '\0');
    for (int shift = 56; shift >= 0; shift -= 8) {
        text += static_cast<char>(bits >> shift & 0xFF);
    }
    for (std::size_t block = 0; block < text.size(); block += 64) {
        std::array<std::uint32_t, 64> w{};
        for (std::size_t i = 0; i < 64; ++i) {
            if (i < 16) {
                for (std::size_t b = 0; b < 4; ++b) {
                    w[i] = w[i] << 8 | static_cast<unsigned char>(text[block + 4 * i + b]);
                }
            } else {
                const auto a = w[i - 15];
                const auto b = w[i - 2];
                w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ a >> 3) + w[i - 7] +
                       (std::rotr(b, 17) ^ std::rotr(b, 19) ^ b >> 10);
            }
        }
        auto v = state;
        for (std::size_t i = 0; i < 64; ++i) {
            const auto t1 = v[7] + (std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25)) +
                            ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
            const auto t2 = (std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22)) +
                            ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
            v = {t1 + t2, v[0], v[1], v[2], v[3] + t1, v[4], v[5], v[6]};
        }
        for (std::size_t i = 0; i < 8; ++i) {
            state[i] += v[i];
        }
    }
    std::string hex;
    for (const auto word : state) {
        for (int shift = 28; shift >= 0; shift -= 4) {
            hex += "0123456789abcdef"[word >> shift & 15];
        }
    }
    return hex;
}

std::string text(const Json& object, const char* name) {
    return object.find(name)->text;
}
std::int32_t integer(const Json& object, const char* name) {
    return std::stoi(text(object, name));
}

std::string without_domain(const std::string& input, const std::string& domain) {
    const std::string prefix = domain + '\0';
    EXPECT_TRUE(input.starts_with(prefix));
    return input.substr(prefix.size());
}

ExecutionContent execution(Json plan) {
    return {"p",
            "t",
            1,
            std::string(64, 'a'),
            std::string(executor_type),
            std::string(plan_schema),
            std::move(plan)};
}

} // namespace

TEST(Digests, TestHashIsSha256) {
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Digests, MatchTheReferenceByteForByte) {
    std::ifstream file(QL_TEST_DATA_DIR "/digests.jsonl");
    ASSERT_TRUE(file);
    constexpr JsonLimits limits{1'000'000, 10'000, 16, 0, 1'000, 1'000};
    int tasks = 0;
    int triggers = 0;
    int executions = 0;
    for (std::string line; std::getline(file, line);) {
        SCOPED_TRACE(line);
        const Json record = parse_json(line, limits);
        const Json& input = *record.find("input");
        const std::string kind = text(record, "kind");
        std::string bytes;
        std::string json;
        if (kind == "task") {
            ++tasks;
            TaskContent task{
                text(input, "projectId"),
                text(input, "taskId"),
                integer(input, "revision"),
                text(input, "name"),
                {},
                text(input, "kind"),
                validate_task_spec(*input.find("spec"), {text(input, "projectId"), text(input, "kind")}),
                validate_labels(*input.find("labels")),
                input.find("enabled")->truth};
            if (const Json* description = input.find("description")) {
                task.description = description->text;
            }
            json = bytes = task_digest_input(task);
        } else if (kind == "trigger") {
            ++triggers;
            bytes = trigger_digest_input(
                {text(input, "projectId"), text(input, "triggerId"), integer(input, "revision"),
                 text(input, "taskId"), integer(input, "taskRevision"), text(input, "taskContentDigest"),
                 validate_trigger_spec(*input.find("spec")), input.find("enabled")->truth});
            json = without_domain(bytes, "qinglong.trigger-definition.v1");
        } else {
            ++executions;
            ASSERT_EQ(kind, "execution");
            ASSERT_EQ(text(input, "executorType"), executor_type);
            ASSERT_EQ(text(input, "planSchema"), plan_schema);
            const ExecutionContent content{text(input, "projectId"),
                                           text(input, "taskId"),
                                           integer(input, "sourceRevision"),
                                           text(input, "sourceContentDigest"),
                                           text(input, "executorType"),
                                           text(input, "planSchema"),
                                           *input.find("plan")};
            EXPECT_EQ(task_reference(content.source_revision, content.source_content_digest),
                      text(input, "taskRevision"));
            bytes = execution_digest_input(content);
            json = without_domain(bytes, "qinglong.cluster-task-execution-revision.v1");
        }
        EXPECT_EQ(json, text(record, "canonical"));
        EXPECT_EQ(sha256_hex(bytes), text(record, "sha256"));
    }
    EXPECT_EQ(tasks, 15);
    EXPECT_EQ(triggers, 27);
    EXPECT_EQ(executions, 12);
}

TEST(Digests, ThePlanCompiledFromEachTaskIsTheReferencePlan) {
    std::ifstream file(QL_TEST_DATA_DIR "/digests.jsonl");
    constexpr JsonLimits limits{1'000'000, 10'000, 16, 0, 1'000, 1'000};
    std::vector<Json> specs;
    int compared = 0;
    for (std::string line; std::getline(file, line);) {
        const Json record = parse_json(line, limits);
        const Json& input = *record.find("input");
        if (text(record, "kind") == "task") {
            specs.push_back(input);
        } else if (text(record, "kind") == "execution") {
            for (const Json& task : specs) {
                if (text(task, "taskId") == text(input, "taskId") &&
                    text(task, "projectId") == text(input, "projectId")) {
                    const Spec spec =
                        validate_task_spec(*task.find("spec"), {text(task, "projectId"), "command"});
                    EXPECT_EQ(canonical_json(compile_execution_plan(spec), stored_limits),
                              canonical_json(*input.find("plan"), stored_limits));
                    ++compared;
                }
            }
        }
    }
    EXPECT_EQ(compared, 12);
}

TEST(Digests, DescriptionIsOmittedOnlyWhenAbsent) {
    TaskContent task{"p", "t", 1, "n", {}, "tool", {"a/b@v1", Json::object({})}, Json::object({}), true};
    EXPECT_EQ(task_digest_input(task),
              "{\"projectId\":\"p\",\"taskId\":\"t\",\"revision\":1,\"name\":\"n\",\"kind\":\"tool\","
              "\"spec\":{\"schema\":\"a/b@v1\",\"config\":{}},\"labels\":{},\"enabled\":true}");
    task.description = "d\n";
    EXPECT_NE(task_digest_input(task).find("\"name\":\"n\",\"description\":\"d\\n\",\"kind\""),
              std::string::npos);
}

TEST(Digests, APlanMemberOutsideTheDigestIsRefused) {
    Json plan = Json::object({{"command", Json::object({})}, {"environment", Json::array({})}});
    EXPECT_NO_THROW(execution_digest_input(execution(plan)));
    plan.members.push_back({"extra", Json::null()});
    EXPECT_THROW(execution_digest_input(execution(plan)), InvalidSpec);
    plan.members.pop_back();
    plan.members.pop_back();
    EXPECT_THROW(execution_digest_input(execution(plan)), InvalidSpec);
    EXPECT_THROW(execution_digest_input(execution(Json::null())), InvalidSpec);
}

TEST(Digests, TaskReferenceNamesRevisionAndDigest) {
    EXPECT_EQ(task_reference(2'147'483'647, std::string(64, 'f')),
              "qltd:v1:2147483647:" + std::string(64, 'f'));
}
