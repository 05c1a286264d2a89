#pragma once
// Every difference between PostgreSQL 15 and 18 that this project meets, and nothing else.
// Included by pg.hpp only, after PostgreSQL's headers.

#if PG_VERSION_NUM >= 160000
extern "C" {
#include "varatt.h"
}
#endif

// Modules are built with hidden symbols; 15's PGDLLEXPORT does not undo that, 16's does.
#define QL_EXPORT __attribute__((visibility("default")))

#if PG_VERSION_NUM < 160000
extern "C" QL_EXPORT void
_PG_init(void); // NOLINT(bugprone-reserved-identifier): the server calls it by this name
#endif

namespace qinglong::pg {

#if PG_VERSION_NUM >= 170000
inline std::uint32_t wait_event(const char* name) {
    return WaitEventExtensionNew(name);
}
#else
inline std::uint32_t wait_event(const char*) {
    return PG_WAIT_EXTENSION;
}
#endif

#if PG_VERSION_NUM >= 160000
inline bool owns_database(Oid database, Oid role) {
    return object_ownercheck(DatabaseRelationId, database, role);
}
#else
inline bool owns_database(Oid database, Oid role) {
    return pg_database_ownercheck(database, role);
}
#endif

inline IndexScanDesc begin_index_scan(Relation table, Relation index, Snapshot snapshot, int keys) {
#if PG_VERSION_NUM >= 180000
    return index_beginscan(table, index, snapshot, nullptr, keys, 0);
#else
    return index_beginscan(table, index, snapshot, keys, 0);
#endif
}

inline Oid primary_key(Relation table) {
#if PG_VERSION_NUM >= 180000
    return RelationGetPrimaryKeyIndex(table, false);
#else
    return RelationGetPrimaryKeyIndex(table);
#endif
}

// Makes a table the first and only one of an executor's state, with the columns that are written.
inline void init_range_table(EState* state, Relation table, AclMode right, Bitmapset* written) {
    RangeTblEntry* const entry = makeNode(RangeTblEntry);
    entry->rtekind = RTE_RELATION;
    entry->relid = RelationGetRelid(table);
    entry->relkind = table->rd_rel->relkind;
    entry->rellockmode = RowExclusiveLock;
#if PG_VERSION_NUM >= 160000
    List* permissions = NIL;
    RTEPermissionInfo* const columns = addRTEPermissionInfo(&permissions, entry);
#else
    RangeTblEntry* const columns = entry;
#endif
    if (right == ACL_UPDATE)
        columns->updatedCols = written;
    else
        columns->insertedCols = written;
#if PG_VERSION_NUM >= 180000
    ExecInitRangeTable(state, list_make1(entry), permissions, bms_make_singleton(1));
#elif PG_VERSION_NUM >= 160000
    ExecInitRangeTable(state, list_make1(entry), permissions);
#else
    ExecInitRangeTable(state, list_make1(entry));
#endif
}

inline List* insert_index_tuples(ResultRelInfo* table, TupleTableSlot* slot, EState* state) {
#if PG_VERSION_NUM >= 160000
    return ExecInsertIndexTuples(table, slot, state, false, false, nullptr, NIL, false);
#else
    return ExecInsertIndexTuples(table, slot, state, false, false, nullptr, NIL);
#endif
}

inline void init_recheck(EPQState* recheck, EState* state) {
#if PG_VERSION_NUM >= 160000
    EvalPlanQualInit(recheck, state, nullptr, NIL, -1, NIL);
#else
    EvalPlanQualInit(recheck, state, nullptr, NIL, -1);
#endif
}

// The server's own have_createdb_privilege() came with a minor release of 15.
inline bool may_create_databases() {
    HeapTuple const role = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
    if (!HeapTupleIsValid(role))
        return false;
    const bool may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(role))->rolcreatedb;
    ReleaseSysCache(role);
    return may || superuser();
}

// AllocSetContextCreate() is a statement expression.
inline MemoryContext new_context(MemoryContext parent, const char* name) {
    return AllocSetContextCreateInternal(parent, name, ALLOCSET_DEFAULT_SIZES);
}

} // namespace qinglong::pg
