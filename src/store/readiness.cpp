#include "qinglong_sched/store/readiness.hpp"

#include <algorithm>

#include "qinglong_sched/pg/datum.hpp"

namespace qinglong::store {

using pg::SqlError;

namespace {

// --- the verdict on the catalogue, kept until something it rests on changes
// -------------------------------------

constexpr std::size_t kMostRelations = 128;

// Counts the changes seen; the verdict "as shipped" holds for the count at which its look began. Trivial
// statics: the callbacks run at any point where invalidations are read.
std::uint64_t changes = 1;
std::uint64_t verified = 0;
bool registered = false;
std::array<Oid, kMostRelations> relations; // sorted
std::size_t relation_count = 0;

void relation_changed(Datum, Oid relation) {
    if (relation == InvalidOid ||
        std::binary_search(relations.begin(), relations.begin() + static_cast<std::ptrdiff_t>(relation_count),
                           relation))
        ++changes;
}

void catalogue_changed(Datum, int, uint32) {
    ++changes;
}

void watch_relations() {
    static pg::Statement list =
        pg::statement("SELECT c.oid FROM pg_catalog.pg_class c"
                      " WHERE c.relnamespace = (SELECT n.oid FROM pg_catalog.pg_namespace n"
                      "                         WHERE n.nspname = 'qinglong')"
                      " ORDER BY c.oid LIMIT 128");
    const pg::Rows rows = pg::execute_latest(list, {});
    for (relation_count = 0; relation_count < rows.size(); ++relation_count)
        relations[relation_count] = DatumGetObjectId(pg::Row(rows, relation_count).datum(0));
    if (!registered)
        pg::pgcall([] {
            CacheRegisterRelcacheCallback(relation_changed, 0);
            CacheRegisterSyscacheCallback(PROCOID, catalogue_changed, 0);
            CacheRegisterSyscacheCallback(NAMESPACEOID, catalogue_changed, 0);
            registered = true;
        });
}

std::optional<SqlError> not_as_shipped() {
    if (verified == changes)
        return std::nullopt;
    watch_relations();
    const std::uint64_t seen = changes;
    // The newest snapshot: an old one of a serializable transaction would not see the change that brought us
    // here.
    static pg::Statement findings = pg::statement(
        "SELECT f.finding FROM qinglong._catalog_findings() f ORDER BY f.code, f.finding LIMIT 1");
    const pg::Rows rows = pg::execute_latest(findings, {});
    if (rows.empty()) {
        verified = seen;
        return std::nullopt;
    }
    return SqlError{ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "qinglong_sched is not installed as shipped",
                    "First finding: " + pg::Row(rows, 0).string(0) + ".",
                    "SELECT * FROM qinglong.ql_readiness() shows all findings."};
}

// --- version
// ----------------------------------------------------------------------------------------------------

// Numeric parts compared as numbers: 1.10 is newer than 1.9.
bool newer(std::string_view a, std::string_view b) {
    const auto part = [](std::string_view& rest) {
        long number = 0;
        while (!rest.empty() && rest.front() >= '0' && rest.front() <= '9') {
            number = number * 10 + (rest.front() - '0');
            rest.remove_prefix(1);
        }
        if (!rest.empty())
            rest.remove_prefix(1);
        return number;
    };
    while (!a.empty() || !b.empty()) {
        const long x = part(a);
        const long y = part(b);
        if (x != y)
            return x > y;
    }
    return false;
}

std::optional<SqlError> version_differs(const std::string& installed) {
    if (installed == QL_VERSION)
        return std::nullopt;
    return SqlError{
        ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
        "the qinglong_sched library and its SQL objects have different versions",
        "The library is " QL_VERSION ", the extension in this database is " + installed + ".",
        newer(installed, QL_VERSION)
            ? "Install the library of that version and restart the server, or at least connect anew."
            : "Run ALTER EXTENSION qinglong_sched UPDATE."};
}

SqlError not_installed() {
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE,
            "extension qinglong_sched is not installed in this database",
            {},
            "Run CREATE EXTENSION qinglong_sched."};
}

// --- hold
// -------------------------------------------------------------------------------------------------------

SqlError held(const std::string& reason) {
    return {ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "scheduling is held in this database", reason,
            "Run SELECT qinglong.ql_release_hold() when no other database schedules the same triggers."};
}

} // namespace

void lock_extension() {
    pg::pgcall([] {
        // What was waited for may have dropped it, or dropped and created it.
        for (Oid locked = InvalidOid;;) {
            const Oid extension = get_extension_oid("qinglong_sched", true);
            if (!OidIsValid(extension) || extension == locked)
                return;
            LockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock);
            locked = extension;
        }
    });
}

void require_matching_version() {
    lock_extension();
    static pg::Statement version = pg::statement(
        "SELECT e.extversion FROM pg_catalog.pg_extension e WHERE e.extname = 'qinglong_sched'");
    const pg::Rows rows = pg::execute(version, {});
    if (rows.empty())
        throw not_installed();
    if (auto error = version_differs(pg::Row(rows, 0).string(0)))
        throw std::move(*error);
}

std::optional<SqlError> why_not_ready() {
    if (RecoveryInProgress())
        return SqlError{ERRCODE_READ_ONLY_SQL_TRANSACTION,
                        "cannot schedule during recovery",
                        {},
                        "Schedulers work on the primary server only."};
    static pg::Statement state =
        pg::statement("SELECT e.extversion, i.system_identifier, i.database_oid, i.held_reason FROM "
                      "pg_catalog.pg_extension e"
                      " LEFT JOIN qinglong.identity i ON i.singleton WHERE e.extname = 'qinglong_sched'");
    const pg::Rows rows = pg::execute(state, {});
    if (rows.empty())
        return not_installed();
    const pg::Row row(rows, 0);
    if (auto error = version_differs(row.string(0)))
        return error;
    // No identity yet: nothing was ever published here.
    if (!row.null(1)) {
        if (auto reason = row.maybe_string(3))
            return held("Reason: " + *reason + ".");
        if (row.string(1) != std::to_string(GetSystemIdentifier()) ||
            row.bigint(2) != static_cast<std::int64_t>(MyDatabaseId))
            return held("The state belongs to another database, of which this one is a copy.");
    }
    return not_as_shipped();
}

void require_ready() {
    lock_extension();
    if (auto error = why_not_ready())
        throw std::move(*error);
}

} // namespace qinglong::store
