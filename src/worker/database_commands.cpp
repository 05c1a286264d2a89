#include "qinglong_sched/worker/database_commands.hpp"

#include "qinglong_sched/scheduling/wakeup.hpp"
#include "qinglong_sched/settings.hpp"
#include "qinglong_sched/worker/process.hpp"
#include "qinglong_sched/worker/shared_state.hpp"

// DROP DATABASE, CREATE DATABASE ... TEMPLATE, ALTER DATABASE ... RENAME and ... SET TABLESPACE fail where
// another session is connected. They get the database without our workers until their transaction ends,
// however it ends. What they may do is decided by the command itself; asked here is only whether the caller
// may disturb the workers.

namespace qinglong::worker {

namespace {

ProcessUtility_hook_type next_utility = nullptr;

List* stopped = NIL;  // databases, in TopMemoryContext
bool touched = false; // the launcher should look at the databases

void on_transaction_end(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT && event != XACT_EVENT_PREPARE)
        return;
    ListCell* cell;
    foreach (cell, stopped)
        resume(lfirst_oid(cell));
    list_free(stopped);
    stopped = NIL;
    if (touched)
        wake_launcher();
    touched = false;
}

const DefElem* option(const List* options, const char* name) {
    ListCell* cell;
    foreach (cell, options) {
        const auto* const given = static_cast<const DefElem*>(lfirst(cell));
        if (strcmp(given->defname, name) == 0)
            return given;
    }
    return nullptr;
}

bool is_template(Oid database) {
    HeapTuple const tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
    if (!HeapTupleIsValid(tuple))
        return false;
    const bool answer = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datistemplate;
    ReleaseSysCache(tuple);
    return answer;
}

// The existing database that the command needs for itself, if the caller may have it.
Oid wanted_database(const Node* statement) {
    const char* name = nullptr;
    bool creates = false;
    bool copies = false;
    if (IsA(statement, DropdbStmt)) {
        name = reinterpret_cast<const DropdbStmt*>(statement)->dbname;
    } else if (IsA(statement, RenameStmt)) {
        const auto* const rename = reinterpret_cast<const RenameStmt*>(statement);
        if (rename->renameType == OBJECT_DATABASE)
            name = rename->subname;
        creates = true;
    } else if (IsA(statement, AlterDatabaseStmt)) {
        const auto* const alter = reinterpret_cast<const AlterDatabaseStmt*>(statement);
        if (option(alter->options, "tablespace") != nullptr)
            name = alter->dbname;
    } else if (IsA(statement, CreatedbStmt)) {
        const auto* const create = reinterpret_cast<const CreatedbStmt*>(statement);
        const DefElem* const source = option(create->options, "template");
        if (source != nullptr && source->arg != nullptr)
            name = defGetString(const_cast<DefElem*>(source));
        creates = copies = true;
    }
    if (name == nullptr)
        return InvalidOid;
    const Oid oid = get_database_oid(name, true);
    if (!OidIsValid(oid) || (creates && !pg::may_create_databases()) ||
        !(pg::owns_database(oid, GetUserId()) || (copies && is_template(oid))))
        return InvalidOid;
    return oid;
}

void make_room(const Node* statement) {
    if (!IsA(statement, DropdbStmt) && !IsA(statement, RenameStmt) && !IsA(statement, AlterDatabaseStmt) &&
        !IsA(statement, CreatedbStmt))
        return;
    if (RecoveryInProgress() || !IsTransactionState())
        return;
    touched = touched || !IsA(statement, RenameStmt);
    const Oid oid = wanted_database(statement);
    if (!OidIsValid(oid) || list_member_oid(stopped, oid))
        return;
    MemoryContext const context = MemoryContextSwitchTo(TopMemoryContext);
    stopped = lappend_oid(stopped, oid);
    MemoryContextSwitchTo(context);
    stop_workers(oid);
    wait_for_workers(oid, settings::stop_timeout_ms);
}

bool drops_extension(const Node* statement) {
    return IsA(statement, DropStmt) &&
           reinterpret_cast<const DropStmt*>(statement)->removeType == OBJECT_EXTENSION &&
           OidIsValid(find_extension().oid);
}

bool commits_prepared(const Node* statement) {
    return IsA(statement, TransactionStmt) &&
           reinterpret_cast<const TransactionStmt*>(statement)->kind == TRANS_STMT_COMMIT_PREPARED;
}

void process_utility(PlannedStmt* planned, const char* text, bool read_only_tree,
                     ProcessUtilityContext context, ParamListInfo parameters, QueryEnvironment* environment,
                     DestReceiver* destination, QueryCompletion* completion) {
    // The statement may be gone afterwards.
    const bool drops = drops_extension(planned->utilityStmt);
    const bool commits = commits_prepared(planned->utilityStmt);
    make_room(planned->utilityStmt);
    (next_utility != nullptr ? next_utility : standard_ProcessUtility)(
        planned, text, read_only_tree, context, parameters, environment, destination, completion);
    // Wake-ups of a prepared transaction are lost: another session commits it.
    if (drops || (commits && IsTransactionState() && OidIsValid(find_extension().oid)))
        scheduling::request_wakeup();
}

} // namespace

void install_database_commands() {
    next_utility = ProcessUtility_hook;
    ProcessUtility_hook = process_utility;
    RegisterXactCallback(on_transaction_end, nullptr);
}

} // namespace qinglong::worker
