#include "qinglong_sched/core/canonical_json.hpp"
#include "qinglong_sched/core/specs.hpp"

#include <gtest/gtest.h>

using namespace qinglong::core;

namespace {

constexpr JsonLimits wide{10'000'000, 100'000, 64, 10'000'000, 100'000, 100'000};

std::string text_of(std::size_t size, char c = 'x') {
    return std::string(size, c);
}
Json parse(std::string_view text) {
    return parse_json(text, wide);
}
Json command_spec(const std::string& config) {
    return parse(R"({"schema":"qinglong/command@v1","config":)" + config + "}");
}
std::string argv(const std::string& more) {
    return R"({"command":{"kind":"argv","file":"/bin/echo","args":[]})" + more + "}";
}
std::string environment(const std::string& entries) {
    return argv(R"(,"environment":[)" + entries + "]");
}

Spec task(const Json& spec) {
    return validate_task_spec(spec, {"p", "command"});
}
Spec tool(const Json& spec) {
    return validate_task_spec(spec, {"p", "tool"});
}

// "path: message" of the refusal, or "" when there is none. No refusal may repeat what is marked as private.
template<typename F>
std::string refusal(F&& attempt) {
    try {
        attempt();
    } catch (const InvalidSpec& error) {
        EXPECT_FALSE(error.hint.empty());
        const std::string shown = error.path + ": " + error.what();
        EXPECT_EQ((shown + error.hint).find("PRIVATE"), std::string::npos) << shown;
        return shown;
    }
    return "";
}

std::string task_refusal(const Json& spec) {
    return refusal([&] { task(spec); });
}
std::string config_refusal(const std::string& config) {
    return task_refusal(command_spec(config));
}
std::string trigger_refusal(const std::string& spec) {
    return refusal([&] { validate_trigger_spec(parse(spec)); });
}
std::string plan_refusal(const std::string& config) {
    return refusal([&] { compile_execution_plan(task(command_spec(config))); });
}
std::string config_of(const std::string& config) {
    return canonical_json(task(command_spec(config)).config, stored_limits);
}
std::string plan_of(const std::string& config) {
    return canonical_json(compile_execution_plan(task(command_spec(config))), stored_limits);
}

std::string base64url(const std::string& bytes) {
    const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
        for (std::size_t k = 0; k < 3; ++k) {
            group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
        }
        for (std::size_t k = 0; k <= count; ++k) {
            out += alphabet[group >> (18 - 6 * k) & 63];
        }
    }
    return out;
}

std::string secret(const std::string& payload) {
    return "qlsecret:v1:" + base64url(payload);
}
std::string secret_refusal(const std::string& reference) {
    return config_refusal(environment(R"({"name":"A","kind":"secret","secretRef":")" + reference + R"("})"));
}
std::string bundle_refusal(const std::string& reference) {
    return config_refusal(argv(R"(,"environmentBundleRef":")" + reference + '"'));
}

const char* const no_reference = "config.environment[0].secretRef: is not a secret reference";

} // namespace

TEST(Specs, ShapeAndSchema) {
    EXPECT_EQ(task_refusal(parse("[]")), "spec: must be an object");
    EXPECT_EQ(task_refusal(parse("{}")), "schema: is missing");
    EXPECT_EQ(task_refusal(parse(R"({"schema":1,"config":{}})")), "schema: must be a string");
    EXPECT_EQ(task_refusal(parse(R"({"schema":"PRIVATE","config":{}})")),
              "schema: must look like example.org/name@v1, in lower case");
    EXPECT_EQ(task_refusal(parse(R"({"schema":"a/b@v1"})")), "config: is missing");
    EXPECT_EQ(task_refusal(parse(R"({"schema":"a/b@v1","config":{},"x y":"PRIVATE"})")),
              "(hidden key): is not known");
}

TEST(Specs, ReservedSchemasAreUnsupportedOthersPass) {
    for (const char* schema : {"qinglong/command@v2", "qinglong/script@v1", "qinglong/cron@v1"}) {
        EXPECT_THROW(task(Json::object({{"schema", Json::string(schema)}, {"config", Json::object({})}})),
                     UnsupportedSchema);
    }
    for (const char* schema : {"qinglong/command@v1", "qinglong/cron@v3"}) {
        EXPECT_THROW(validate_trigger_spec(
                         Json::object({{"schema", Json::string(schema)}, {"config", Json::object({})}})),
                     UnsupportedSchema);
    }
    EXPECT_EQ(canonical_spec(tool(parse(R"({"config":{"b":1.0,"a":[null]},"schema":"qinglongx/y@v1"})"))),
              R"({"schema":"qinglongx/y@v1","config":{"a":[null],"b":1}})");
    EXPECT_EQ(refusal([] { tool(command_spec(argv(""))); }), "schema: is only for tasks of kind command");
}

TEST(Specs, GenericTaskSpecsHoldTheLimits) {
    const auto with = [](Json config) {
        return Json::object({{"schema", Json::string("a/b@v1")}, {"config", std::move(config)}});
    };
    const auto check = [&](Json config) { return task_refusal(with(std::move(config))); };
    EXPECT_EQ(check(Json::object({{"s", Json::string(text_of(16'384))}})), "");
    EXPECT_EQ(check(Json::object({{"s", Json::string(text_of(16'385))}})),
              "config.s: is too long (at most 16384 bytes)");
    EXPECT_EQ(check(Json::array(std::vector<Json>(256))), "");
    EXPECT_EQ(check(Json::array(std::vector<Json>(257))), "config: has too many entries (at most 256)");
    EXPECT_EQ(check(Json::object({{text_of(128), Json::null()}})), "");
    EXPECT_NE(check(Json::object({{text_of(129), Json::null()}})), "");
    // Root, schema, config and the five lists are eight nodes.
    const auto nodes = [](std::size_t last) {
        const Json full = Json::array(std::vector<Json>(254));
        return Json::array(
            {full, full, full, Json::array(std::vector<Json>(253)), Json::array(std::vector<Json>(last))});
    };
    EXPECT_EQ(check(nodes(1)), "");
    EXPECT_EQ(check(nodes(2)), "spec: has too many values (at most 1024)");
    Json deep = Json::array({});
    for (int level = 2; level < 12; ++level) {
        deep = Json::array({deep});
    }
    EXPECT_EQ(check(deep), "");
    EXPECT_NE(check(Json::array({deep})).find("is nested too deeply (at most 12 levels)"), std::string::npos);
    const std::string frame = canonical_json(
        with(Json::array({Json::string(""), Json::string(""), Json::string(""), Json::string("")})), wide);
    const std::size_t room = 65'536 - frame.size() - 3 * 16'384;
    const auto sized = [&](std::size_t last) {
        const Json full = Json::string(text_of(16'384));
        return Json::array({full, full, full, Json::string(text_of(last))});
    };
    EXPECT_EQ(check(sized(room)), "");
    EXPECT_EQ(check(sized(room + 1)), "spec: is too large (at most 65536 bytes)");
}

TEST(CommandSpec, FillsInDefaultsAndSorts) {
    EXPECT_EQ(config_of(R"({"command":{"kind":"shell","command":"PRIVATE"}})"),
              R"({"command":{"command":"PRIVATE","kind":"shell","shell":"/bin/sh"}})");
    EXPECT_EQ(config_of(environment(
                  R"({"value":"1","name":"b","kind":"public"},{"kind":"public","name":"B","value":""},)"
                  R"({"kind":"public","name":"_","value":"x"})")),
              R"({"command":{"args":[],"file":"/bin/echo","kind":"argv"},"environment":[)"
              R"({"kind":"public","name":"B","value":""},{"kind":"public","name":"_","value":"x"},)"
              R"({"kind":"public","name":"b","value":"1"}]})");
    EXPECT_EQ(config_of(argv(R"(,"timeoutMs":3e4)")),
              R"({"command":{"args":[],"file":"/bin/echo","kind":"argv"},"timeoutMs":30000})");
    const Spec once = task(command_spec(environment(R"({"value":"1","name":"b","kind":"public"})")));
    EXPECT_EQ(canonical_spec(task(parse(canonical_spec(once)))), canonical_spec(once));
}

TEST(CommandSpec, RefusesByPath) {
    const std::pair<std::string, std::string> cases[] = {
        {"[]", "config: must be an object"},
        {"{}", "config.command: is missing"},
        {argv(R"(,"user":"PRIVATE")"), "config.user: is not known"},
        {R"({"command":"PRIVATE"})", "config.command: must be an object"},
        {R"({"command":{}})", "config.command.kind: is missing"},
        {R"({"command":{"kind":"PRIVATE"}})", "config.command.kind: must be argv or shell"},
        {R"({"command":{"kind":["shell"]}})", "config.command.kind: must be argv or shell"},
        {R"({"command":{"kind":"argv","args":[]}})", "config.command.file: is missing"},
        {R"({"command":{"kind":"argv","file":"PRIVATE","args":[]}})",
         "config.command.file: must be an absolute path"},
        {R"({"command":{"kind":"argv","file":"","args":[]}})",
         "config.command.file: must be 1 to 4096 bytes"},
        {R"({"command":{"kind":"argv","file":7,"args":[]}})", "config.command.file: must be a string"},
        {R"({"command":{"kind":"argv","file":"/a"}})", "config.command.args: is missing"},
        {R"({"command":{"kind":"argv","file":"/a","args":"PRIVATE"}})",
         "config.command.args: must be an array"},
        {R"({"command":{"kind":"argv","file":"/a","args":["PRIVATE",1]}})",
         "config.command.args[1]: must be a string"},
        {R"({"command":{"kind":"argv","file":"/a","args":[],"shell":"/bin/sh"}})",
         "config.command.shell: is not known"},
        {R"({"command":{"kind":"shell"}})", "config.command.command: is missing"},
        {R"({"command":{"kind":"shell","command":""}})", "config.command.command: must be 1 to 65536 bytes"},
        {R"({"command":{"kind":"shell","command":"PRIVATE","shell":"/bin/zsh"}})",
         "config.command.shell: must be /bin/sh or /bin/bash"},
        {R"({"command":{"kind":"shell","command":"PRIVATE","args":[]}})",
         "config.command.args: is not known"},
        {argv(R"(,"environment":{})"), "config.environment: must be an array"},
        {environment("1"), "config.environment[0]: must be an object"},
        {environment("{}"), "config.environment[0].name: is missing"},
        {environment(R"({"name":"A"})"), "config.environment[0].kind: is missing"},
        {environment(R"({"name":"A","kind":"PRIVATE"})"),
         "config.environment[0].kind: must be public or secret"},
        {environment(R"({"name":"A","kind":"public"})"), "config.environment[0].value: is missing"},
        {environment(R"({"name":"A","kind":"public","value":1})"),
         "config.environment[0].value: must be a string"},
        {environment(R"({"name":"A","kind":"public","value":"PRIVATE","secretRef":"x"})"),
         "config.environment[0].secretRef: is not known"},
        {environment(R"({"name":"A","kind":"secret","value":"PRIVATE"})"),
         "config.environment[0].value: is not known"},
        {environment(R"({"name":"A","kind":"secret"})"), "config.environment[0].secretRef: is missing"},
        {environment(
             R"({"name":"A","kind":"public","value":"PRIVATE"},{"name":"A","kind":"public","value":""})"),
         "config.environment[1].name: is given twice"},
        {environment(R"({"name":"1A","kind":"public","value":"PRIVATE"})"),
         "config.environment[0].name: must be letters, digits and underscores, not beginning with a digit"},
        {environment(R"({"name":"A-B","kind":"public","value":"PRIVATE"})"),
         "config.environment[0].name: must be letters, digits and underscores, not beginning with a digit"},
        {environment(R"({"name":"","kind":"public","value":"PRIVATE"})"),
         "config.environment[0].name: must be 1 to 128 bytes"},
        {environment(R"({"name":"QL3_X","kind":"public","value":"PRIVATE"})"),
         "config.environment[0].name: must not begin with QL3_"},
        {argv(R"(,"environmentBundleRef":null)"), "config.environmentBundleRef: must be a string"},
        {argv(R"(,"workingDirectory":"PRIVATE")"), "config.workingDirectory: must be an absolute path"},
        {argv(R"(,"workingDirectory":"")"), "config.workingDirectory: must be 1 to 4096 bytes"},
        {argv(R"(,"placement":[])"), "config.placement: must be an object"},
        {argv(R"(,"timeoutMs":0)"), "config.timeoutMs: must be a whole number from 1 to 31536000000"},
        {argv(R"(,"timeoutMs":1.5)"), "config.timeoutMs: must be a whole number from 1 to 31536000000"},
        {argv(R"(,"timeoutMs":"30")"), "config.timeoutMs: must be a whole number from 1 to 31536000000"},
        {argv(R"(,"timeoutMs":31536000001)"),
         "config.timeoutMs: must be a whole number from 1 to 31536000000"},
        {argv(R"(,"timeoutMs":1e300)"), "config.timeoutMs: must be a whole number from 1 to 31536000000"},
    };
    for (const auto& [config, expected] : cases) {
        EXPECT_EQ(config_refusal(config), expected) << config;
    }
    EXPECT_EQ(config_refusal(argv(R"(,"timeoutMs":31536000000)")), "");
    EXPECT_EQ(config_refusal(argv(R"(,"timeoutMs":1)")), "");
    EXPECT_EQ(config_refusal(environment(R"({"name":"QL3X","kind":"public","value":""})")), "");
}

TEST(CommandSpec, HoldsEachSizeAtItsEdge) {
    const auto file = [](std::size_t size) {
        return R"({"command":{"kind":"argv","args":[],"file":"/)" + text_of(size - 1) + "\"}}";
    };
    EXPECT_EQ(config_refusal(file(4'096)), "");
    EXPECT_EQ(config_refusal(file(4'097)), "config.command.file: must be 1 to 4096 bytes");
    const auto directory = [](std::size_t size) {
        return argv(R"(,"workingDirectory":"/)" + text_of(size - 1) + '"');
    };
    EXPECT_EQ(config_refusal(directory(4'096)), "");
    EXPECT_EQ(config_refusal(directory(4'097)), "config.workingDirectory: must be 1 to 4096 bytes");

    const auto args = [](std::size_t count, std::size_t size) {
        Json spec = command_spec(argv(""));
        spec.members[1].value.members[0].value.members[2].value.items.assign(count,
                                                                             Json::string(text_of(size)));
        return spec;
    };
    EXPECT_EQ(task_refusal(args(256, 0)), "");
    EXPECT_EQ(task_refusal(args(257, 0)), "config.command.args: must be at most 256 arguments");
    EXPECT_EQ(task_refusal(args(1, 16'384)), "");
    EXPECT_EQ(task_refusal(args(1, 16'385)), "config.command.args[0]: must be 0 to 16384 bytes");
    EXPECT_EQ(task_refusal(args(4, 16'384)), "spec: is too large (at most 65536 bytes)");
    EXPECT_EQ(task_refusal(args(5, 16'384)), "config.command.args: must be at most 65536 bytes together");

    const auto variable = [](std::size_t name, std::size_t value) {
        return environment(R"({"kind":"public","name":")" + text_of(name) + R"(","value":")" +
                           text_of(value) + "\"}");
    };
    EXPECT_EQ(config_refusal(variable(128, 16'384)), "");
    EXPECT_EQ(config_refusal(variable(129, 0)), "config.environment[0].name: must be 1 to 128 bytes");
    EXPECT_EQ(config_refusal(variable(1, 16'385)), "config.environment[0].value: must be 0 to 16384 bytes");

    const auto variables = [](std::size_t count, std::size_t size) {
        std::string entries;
        for (std::size_t i = 0; i < count; ++i) {
            entries += (i == 0 ? "" : ",") +
                       (R"({"kind":"public","name":"V)" + std::to_string(i) + R"(","value":")") +
                       text_of(size) + "\"}";
        }
        return environment(entries);
    };
    // Four nodes a variable: the limit on nodes is reached just before the one on variables.
    EXPECT_EQ(config_refusal(variables(253, 0)), "");
    EXPECT_NE(config_refusal(variables(256, 0)).find("has too many values (at most 1024)"),
              std::string::npos);
    EXPECT_EQ(config_refusal(variables(257, 0)), "config.environment: must be at most 256 variables");
    EXPECT_EQ(config_refusal(variables(4, 16'382)), "spec: is too large (at most 65536 bytes)");
    EXPECT_EQ(config_refusal(variables(4, 16'383)),
              "config.environment: must be at most 65536 bytes of names and values together");
}

TEST(CommandSpec, AShellTextMayFillTheSpec) {
    const auto shell = [](std::size_t size) {
        return command_spec(R"({"command":{"kind":"shell","shell":"/bin/sh","command":")" + text_of(size) +
                            "\"}}");
    };
    const std::size_t room = 65'536 - canonical_spec(task(shell(1))).size() + 1;
    EXPECT_GT(room, 65'400U);
    const Spec full = task(shell(room));
    EXPECT_EQ(canonical_spec(full).size(), 65'536U);
    EXPECT_EQ(full.config.find("command")->find("command")->text, text_of(room));
    EXPECT_EQ(canonical_spec(task(parse(canonical_spec(full)))), canonical_spec(full));
    EXPECT_EQ(compile_execution_plan(full).find("command")->find("command")->text, text_of(room));
    EXPECT_EQ(task_refusal(shell(room + 1)), "spec: is too large (at most 65536 bytes)");
    EXPECT_EQ(task_refusal(shell(65'537)), "config.command.command: must be 1 to 65536 bytes");
    // The generic limit of a string still holds where no rule of the schema grants more.
    EXPECT_EQ(config_refusal(argv(R"(,"placement":{"note":")" + text_of(16'384) + "\"}")), "");
    EXPECT_EQ(config_refusal(argv(R"(,"placement":{"note":")" + text_of(16'385) + "\"}")),
              "config.placement.note: is too long (at most 16384 bytes)");
}

TEST(SecretReference, AcceptsExactlyOneSpelling) {
    EXPECT_EQ(secret_refusal(secret(R"({"projectId":"p","name":"TOKEN"})")), "");
    EXPECT_EQ(secret_refusal(secret(R"({"projectId":"p","name":"TOKEN","version":1})")), "");
    EXPECT_EQ(secret_refusal(secret(R"({"projectId":"p","name":"TOKEN","version":2147483647})")), "");
    EXPECT_EQ(secret_refusal(secret("{\"projectId\":\"p\",\"name\":\"\xc3\xa9 \\\"\"}")), "");
    for (const std::string& bad : {
             std::string("PRIVATE"),
             std::string("qlsecret:v1:"),
             std::string("qlsecret:v2:") + base64url(R"({"projectId":"p","name":"TOKEN"})"),
             std::string("qlsecret:v1:PRIVATE="),
             secret(R"({"projectId":"p","name":"TOKEN"})") + "=",
             secret(R"({"projectId":"p","name":"TOKEN"})") + "A",
             secret("PRIVATE"),
             secret("null"),
             secret("[]"),
             secret(R"({"projectId":"p"})"),
             secret(R"({"name":"TOKEN"})"),
             secret(R"({"name":"TOKEN","projectId":"p"})"),
             secret(R"({"projectId":"p","name":"TOKEN" })"),
             secret(R"({"projectId":"p","name":"TOKEN","name":"TOKEN"})"),
             secret(R"({"projectId":"p","name":"TOKEN","scope":"PRIVATE"})"),
             secret(R"({"projectId":"p","name":"\u0054OKEN"})"),
             secret(R"({"projectId":1,"name":"TOKEN"})"),
             secret(R"({"projectId":"p","name":1})"),
             secret(R"({"projectId":"p","name":""})"),
             secret(R"({"projectId":"p","name":"TOKEN","version":0})"),
             secret(R"({"projectId":"p","name":"TOKEN","version":1.5})"),
             secret(R"({"projectId":"p","name":"TOKEN","version":1.0})"),
             secret(R"({"projectId":"p","name":"TOKEN","version":"1"})"),
             secret(R"({"projectId":"p","name":"TOKEN","version":null})"),
             secret(R"({"projectId":"p","name":"TOKEN","version":2147483648})"),
         }) {
        EXPECT_EQ(secret_refusal(bad), no_reference) << bad;
    }
    EXPECT_EQ(secret_refusal(""), "config.environment[0].secretRef: must be 1 to 512 bytes");
    EXPECT_EQ(secret_refusal(text_of(513)), "config.environment[0].secretRef: must be 1 to 512 bytes");
    EXPECT_EQ(secret_refusal(secret(R"({"projectId":"PRIVATE","name":"TOKEN"})")),
              "config.environment[0].secretRef: belongs to another project");
}

TEST(SecretReference, SpareBitsMustBeZero) {
    // 31 bytes leave one byte in the last group: two digits, of which the second has four spare bits.
    std::string reference = secret(R"({"projectId":"p","name":"TOKE"})");
    ASSERT_EQ(secret_refusal(reference), "");
    reference.back() = static_cast<char>(reference.back() + 1);
    EXPECT_EQ(secret_refusal(reference), no_reference);
}

TEST(SecretReference, ABundlePinsItsVersion) {
    EXPECT_EQ(bundle_refusal(secret(R"({"projectId":"p","name":"B","version":3})")), "");
    EXPECT_EQ(bundle_refusal(secret(R"({"projectId":"p","name":"B"})")),
              "config.environmentBundleRef: must pin a version");
    EXPECT_EQ(bundle_refusal(secret(R"({"projectId":"q","name":"B","version":3})")),
              "config.environmentBundleRef: belongs to another project");
}

TEST(ExecutionPlan, CarriesTheConfigAndAPlacement) {
    EXPECT_EQ(plan_of(argv("")),
              R"({"command":{"args":[],"file":"/bin/echo","kind":"argv"},"environment":[],)"
              R"("placement":{"preferred":[],"required":{"executors":["remote-worker"]}}})");
    const std::string bundle = secret(R"({"projectId":"p","name":"B","version":3})");
    EXPECT_EQ(
        plan_of(argv(R"(,"workingDirectory":"/w","timeoutMs":5,"environmentBundleRef":")" + bundle +
                     R"(","environment":[{"name":"A","kind":"public","value":"1"}])")),
        R"({"command":{"args":[],"file":"/bin/echo","kind":"argv"},"environment":[{"kind":"public","name":"A",)"
        R"("value":"1"}],"environmentBundleRef":")" +
            bundle +
            R"(","placement":{"preferred":[],"required":{"executors":["remote-worker"]}},"timeoutMs":5,)"
            R"("workingDirectory":"/w"})");
    EXPECT_EQ(refusal([] {
                  compile_execution_plan({"a/b@v1", Json::object({})});
              }),
              "schema: has no execution plan");
}

TEST(ExecutionPlan, CompletesAPlacementButNeverOverrulesIt) {
    const auto placement = [](const std::string& own) {
        const Json plan = compile_execution_plan(task(command_spec(argv(R"(,"placement":)" + own))));
        return canonical_json(*plan.find("placement"), stored_limits);
    };
    const std::string standard = R"({"preferred":[],"required":{"executors":["remote-worker"]}})";
    EXPECT_EQ(placement("{}"), standard);
    EXPECT_EQ(placement(R"({"required":{}})"), standard);
    EXPECT_EQ(placement(standard), standard);
    EXPECT_EQ(placement(R"({"required":{"labels":{"a":"b"}},"preferred":[1]})"),
              R"({"preferred":[1],"required":{"executors":["remote-worker"],"labels":{"a":"b"}}})");
    EXPECT_EQ(placement(R"({"required":{"executors":["x","remote-worker"]}})"),
              R"({"preferred":[],"required":{"executors":["x","remote-worker"]}})");
    const auto refused = [](const std::string& own) { return plan_refusal(argv(R"(,"placement":)" + own)); };
    EXPECT_EQ(refused(R"({"required":{"executors":["remote_worker",1]}})"),
              "config.placement.required.executors: must contain remote-worker");
    EXPECT_EQ(refused(R"({"required":{"executors":[]}})"),
              "config.placement.required.executors: must contain remote-worker");
    EXPECT_EQ(refused(R"({"required":{"executors":"remote-worker"}})"),
              "config.placement.required.executors: must be an array");
    EXPECT_EQ(refused(R"({"required":[]})"), "config.placement.required: must be an object");
}

TEST(ExecutionPlan, IsBounded) {
    const auto plan = [](std::size_t size) {
        const Json config = Json::object({{"command", Json::string(text_of(size))}});
        return compile_execution_plan({std::string(command_schema), config});
    };
    const std::size_t room = 98'304 - canonical_json(plan(0), stored_limits).size();
    EXPECT_EQ(refusal([&] { plan(room); }), "");
    EXPECT_EQ(refusal([&] { plan(room + 1); }), "plan: is too large (at most 98304 bytes)");
}

TEST(TriggerSpec, CronHasExactlyThreeMembers) {
    const auto cron = [](const std::string& config) {
        return R"({"schema":"qinglong/cron@v1","config":)" + config + "}";
    };
    const Spec spec = validate_trigger_spec(
        parse(cron(R"({"timezone":"UTC","misfirePolicy":"fire_once","expression":" *  * * * * "})")));
    const ScheduleSpec trigger = read_schedule(spec);
    EXPECT_EQ(trigger.expression, " *  * * * * "); // normalised by the caller, which has the grammar
    EXPECT_EQ(trigger.timezone, "UTC");
    EXPECT_EQ(trigger.misfire_policy, "fire_once");
    EXPECT_EQ(canonical_spec(cron_trigger_spec({"* * * * *", "Asia/Kolkata", "skip"})),
              R"({"schema":"qinglong/cron@v1","config":{"expression":"* * * * *","misfirePolicy":"skip",)"
              R"("timezone":"Asia/Kolkata"}})");
    const std::pair<std::string, std::string> cases[] = {
        {"[]", "config: must be an object"},
        {R"({"timezone":"UTC","misfirePolicy":"skip"})", "config.expression: is missing"},
        {R"({"expression":"* * * * *","misfirePolicy":"skip"})", "config.timezone: is missing"},
        {R"({"expression":"* * * * *","timezone":"UTC"})", "config.misfirePolicy: is missing"},
        {R"({"expression":"* * * * *","timezone":"UTC","misfirePolicy":"skip","jitter":1})",
         "config.jitter: is not known"},
        {R"({"expression":5,"timezone":"UTC","misfirePolicy":"skip"})",
         "config.expression: must be a string"},
        {R"({"expression":"","timezone":"UTC","misfirePolicy":"skip"})",
         "config.expression: must be 1 to 768 bytes"},
        {R"({"expression":"*","timezone":"","misfirePolicy":"skip"})",
         "config.timezone: must be 1 to 128 bytes"},
        {R"({"expression":"*","timezone":"UTC","misfirePolicy":"fire"})",
         "config.misfirePolicy: must be skip or fire_once"},
    };
    for (const auto& [config, expected] : cases) {
        EXPECT_EQ(trigger_refusal(cron(config)), expected);
    }
    const auto sized = [&](std::size_t expression, std::size_t zone) {
        return trigger_refusal(cron(R"({"misfirePolicy":"skip","expression":")" + text_of(expression, '*') +
                                    R"(","timezone":")" + text_of(zone) + "\"}"));
    };
    EXPECT_EQ(sized(768, 128), "");
    EXPECT_EQ(sized(769, 128), "config.expression: must be 1 to 768 bytes");
    EXPECT_EQ(sized(768, 129), "config.timezone: must be 1 to 128 bytes");
    EXPECT_EQ(refusal([] { read_schedule({"a/b@v1", Json::object({})}); }), "schema: has no schedule");
}

TEST(TriggerSpec, CronV2AddsOptionalMembers) {
    const auto cron = [](const std::string& more) {
        return R"({"schema":"qinglong/cron@v2","config":{"expression":"* * * * *","timezone":"UTC",)"
               R"("misfirePolicy":"skip")" +
               more + "}}";
    };
    const auto read = [&](const std::string& more) {
        return read_schedule(validate_trigger_spec(parse(cron(more))));
    };
    const auto stored = [&](const std::string& more) {
        return canonical_spec(validate_trigger_spec(parse(cron(more))));
    };
    const ScheduleSpec plain = read("");
    EXPECT_EQ(plain.schedule.rules.gap, Gap::shift);
    EXPECT_EQ(plain.schedule.rules.overlap, Overlap::first);
    EXPECT_EQ(plain.schedule.rules.day_match, DayMatch::either);
    EXPECT_FALSE(plain.schedule.ends());
    EXPECT_EQ(plain.jitter_ms, 0);
    EXPECT_FALSE(plain.grace_ms);
    EXPECT_EQ(stored(""), R"({"schema":"qinglong/cron@v2","config":{"expression":"* * * * *",)"
                          R"("misfirePolicy":"skip","timezone":"UTC"}})");

    const ScheduleSpec full =
        read(R"(,"gap":"skip","overlap":"second","dayMatch":"and","startAt":"2026-03-29T00:00:00+02:00",)"
             R"("endAt":"2026-03-30T00:00:00.250Z","jitterMs":300000,"misfireGraceMs":0)");
    EXPECT_EQ(full.schedule.rules.gap, Gap::skip);
    EXPECT_EQ(full.schedule.rules.overlap, Overlap::second);
    EXPECT_EQ(full.schedule.rules.day_match, DayMatch::both);
    EXPECT_EQ(full.schedule.begin_ms, 1774735200000);
    EXPECT_EQ(full.schedule.end_ms, 1774828800250);
    EXPECT_TRUE(full.schedule.ends());
    EXPECT_EQ(full.jitter_ms, 300000);
    EXPECT_EQ(full.grace_ms, 0);
    EXPECT_EQ(read(R"(,"overlap":"both")").schedule.rules.overlap, Overlap::both);
    // One instant, one spelling, one digest.
    EXPECT_EQ(stored(R"(,"startAt":"2026-03-29T00:00:00.000+02:00")"),
              stored(R"(,"startAt":"2026-03-28T22:00:00Z")"));

    const std::pair<std::string, std::string> cases[] = {
        {R"(,"Gap":"skip")", "config.Gap: is not known"},
        {R"(,"gap":"first")", "config.gap: must be shift or skip"},
        {R"(,"overlap":"last")", "config.overlap: must be first or both or second"},
        {R"(,"dayMatch":true)", "config.dayMatch: must be or or and"},
        {R"(,"startAt":"2026-03-29")", "config.startAt: must be an RFC 3339 instant from 1970 to 9999"},
        {R"(,"endAt":1774828800)", "config.endAt: must be a string"},
        {R"(,"startAt":"2026-03-29T00:00:00Z","endAt":"2026-03-29T00:00:00Z")",
         "config.endAt: must be later than startAt"},
        {R"(,"jitterMs":-1)", "config.jitterMs: must be a whole number from 0 to 300000"},
        {R"(,"jitterMs":300001)", "config.jitterMs: must be a whole number from 0 to 300000"},
        {R"(,"jitterMs":1.5)", "config.jitterMs: must be a whole number from 0 to 300000"},
        {R"(,"misfireGraceMs":"1")", "config.misfireGraceMs: must be a whole number from 0 to 300000"},
    };
    for (const auto& [more, expected] : cases) {
        EXPECT_EQ(trigger_refusal(cron(more)), expected);
    }
}

TEST(TriggerSpec, IntervalAndOnce) {
    const auto interval = [](const std::string& config) {
        return R"({"schema":"qinglong/interval@v1","config":)" + config + "}";
    };
    const ScheduleSpec read = read_schedule(validate_trigger_spec(
        parse(interval(R"({"everyMs":1500,"anchorAt":"2026-01-01T00:00:00.5Z","misfirePolicy":"skip"})"))));
    EXPECT_EQ(read.schedule.kind, ScheduleKind::interval);
    EXPECT_EQ(read.schedule.every_ms, 1500);
    EXPECT_EQ(read.schedule.begin_ms, 1767225600500);
    EXPECT_EQ(read.misfire_policy, "skip");
    EXPECT_EQ(trigger_refusal(
                  interval(R"({"everyMs":999,"anchorAt":"2026-01-01T00:00:00Z","misfirePolicy":"skip"})")),
              "config.everyMs: must be a whole number from 1000 to 3155760000000");
    EXPECT_EQ(trigger_refusal(interval(R"({"everyMs":1000,"misfirePolicy":"skip"})")),
              "config.anchorAt: is missing");
    EXPECT_EQ(trigger_refusal(interval(R"({"everyMs":1000,"anchorAt":"2026-01-01T00:00:00Z"})")),
              "config.misfirePolicy: is missing");
    EXPECT_EQ(trigger_refusal(interval(
                  R"({"everyMs":1000,"anchorAt":"2026-01-01T00:00:00Z","misfirePolicy":"skip","endAt":""})")),
              "config.endAt: is not known");

    const auto once = [](const std::string& config) {
        return R"({"schema":"qinglong/once@v1","config":)" + config + "}";
    };
    const Spec spec = validate_trigger_spec(
        parse(once(R"({"misfirePolicy":"fire_once","at":"2026-01-01T01:00:00+01:00"})")));
    EXPECT_EQ(canonical_spec(spec), once(R"({"at":"2026-01-01T00:00:00Z","misfirePolicy":"fire_once"})"));
    EXPECT_EQ(read_schedule(spec).schedule.begin_ms, 1767225600000);
    EXPECT_TRUE(read_schedule(spec).schedule.ends());
    EXPECT_EQ(trigger_refusal(once(R"({"misfirePolicy":"skip"})")), "config.at: is missing");
}

TEST(TriggerSpec, GenericSpecsHoldTheLimits) {
    const auto check = [](Json config) {
        return refusal([&] {
            validate_trigger_spec(
                Json::object({{"schema", Json::string("a/b@v1")}, {"config", std::move(config)}}));
        });
    };
    EXPECT_EQ(check(Json::string(text_of(4'096))), "");
    EXPECT_EQ(check(Json::string(text_of(4'097))), "config: is too long (at most 4096 bytes)");
    EXPECT_EQ(check(Json::array(std::vector<Json>(128))), "");
    EXPECT_EQ(check(Json::array(std::vector<Json>(129))), "config: has too many entries (at most 128)");
    const Json full = Json::array(std::vector<Json>(125));
    EXPECT_EQ(check(Json::array({full, full, full, full,
                                 Json::array({Json::null(), Json::null(), Json::null(), Json::null()})})),
              "");
    EXPECT_NE(check(Json::array({full, full, full, full, Json::array(std::vector<Json>(5))})), "");
    Json deep = Json::array({});
    for (int level = 2; level < 8; ++level) {
        deep = Json::array({deep});
    }
    EXPECT_EQ(check(deep), "");
    EXPECT_NE(check(Json::array({deep})), "");
    const Json text = Json::string(text_of(4'090));
    EXPECT_EQ(check(Json::array({text, text, text, Json::string(text_of(4'000))})), "");
    EXPECT_EQ(check(Json::array({text, text, text, Json::string(text_of(4'096))})),
              "spec: is too large (at most 16384 bytes)");
}

TEST(Labels, HoldTheRules) {
    const auto check = [](const Json& labels) { return refusal([&] { validate_labels(labels); }); };
    EXPECT_EQ(check(parse("{}")), "");
    EXPECT_EQ(check(parse(R"({"team":"ops","a.b/c-d":""})")), "");
    EXPECT_EQ(check(parse("[]")), "labels: must be an object");
    EXPECT_EQ(check(parse(R"({"team":1})")), "labels.team: must be a string");
    EXPECT_NE(check(parse(R"({"Team":"x"})")).find("labels.Team: has a wrong key"), std::string::npos);
    const auto sized = [](std::size_t count, const std::string& value) {
        Json labels = Json::object({});
        for (std::size_t i = 0; i < count; ++i) {
            labels.members.push_back({"k" + std::to_string(i), Json::string(value)});
        }
        return labels;
    };
    EXPECT_EQ(check(sized(32, text_of(256))), "");
    EXPECT_EQ(check(sized(33, "")), "labels: must be at most 32 labels");
    EXPECT_EQ(check(sized(1, text_of(257))), "labels.(hidden key): must be at most 256 bytes of UTF-8");
    EXPECT_EQ(check(sized(32, text_of(256, '\x01'))), "labels: is too large (at most 16384 bytes)");
}

TEST(StoredSpecs, AreReadWithoutBeingJudgedAgain) {
    const Spec spec = read_spec(parse(R"({"schema":"qinglong/command@v9","config":{"b":1,"a":2}})"));
    EXPECT_EQ(canonical_spec(spec), R"({"schema":"qinglong/command@v9","config":{"a":2,"b":1}})");
    EXPECT_THROW(read_spec(parse(R"({"schema":"a/b@v1","config":{},"more":1})")), InvalidSpec);
}
