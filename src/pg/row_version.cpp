#include "qinglong_sched/pg/row_version.hpp"

namespace qinglong::pg {

Oid table_oid(const char* schema, const char* name) {
    return pgcall([&] {
        const Oid oid = get_relname_relid(name, get_namespace_oid(schema, false));
        if (!OidIsValid(oid))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                            errmsg("relation \"%s.%s\" does not exist", schema, name)));
        return oid;
    });
}

std::vector<Datum> find_versions(const char* schema, const char* table, const char* index,
                                 const std::vector<std::pair<std::string_view, std::string_view>>& keys) {
    const Oid table_id = table_oid(schema, table);
    const Oid index_id = table_oid(schema, index);
    std::vector<Datum> row_ids(keys.size(), 0);
    pgcall([&] {
        Relation const heap = table_open(table_id, AccessShareLock);
        Relation const tree = index_open(index_id, AccessShareLock);
        TupleTableSlot* const slot = table_slot_create(heap, nullptr);
        IndexScanDesc const scan = begin_index_scan(heap, tree, SnapshotSelf, 2);
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const auto datum = [](std::string_view text) {
                return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
            };
            ScanKeyData key[2];
            ScanKeyInit(&key[0], 1, BTEqualStrategyNumber, F_TEXTEQ, datum(keys[i].first));
            ScanKeyInit(&key[1], 2, BTEqualStrategyNumber, F_TEXTEQ, datum(keys[i].second));
            index_rescan(scan, key, 2, nullptr, 0);
            if (!index_getnext_slot(scan, ForwardScanDirection, slot))
                continue;
            auto* const row_id = static_cast<ItemPointer>(palloc(sizeof(ItemPointerData)));
            *row_id = slot->tts_tid;
            row_ids[i] = PointerGetDatum(row_id);
        }
        index_endscan(scan);
        ExecDropSingleTupleTableSlot(slot);
        index_close(tree, AccessShareLock);
        table_close(heap, AccessShareLock);
    });
    return row_ids;
}

std::vector<std::size_t> lock_versions(Oid table, const std::vector<Datum>& row_ids, std::size_t most) {
    std::vector<char> locked(row_ids.size(), 0);
    pgcall([&] {
        PreventCommandIfReadOnly("scheduling");
        // What SELECT ... FOR UPDATE would ask for.
        const AclResult allowed = pg_class_aclcheck(table, GetUserId(), ACL_UPDATE);
        if (allowed != ACLCHECK_OK)
            aclcheck_error(allowed, OBJECT_TABLE, get_rel_name(table));
        Relation const relation = table_open(table, RowShareLock);
        TupleTableSlot* const slot = table_slot_create(relation, nullptr);
        std::size_t count = 0;
        for (std::size_t i = 0; i < row_ids.size() && count < most; ++i) {
            auto* const row_id = reinterpret_cast<ItemPointer>(DatumGetPointer(row_ids[i]));
            TM_FailureData failure;
            const TM_Result result =
                table_tuple_lock(relation, row_id, GetActiveSnapshot(), slot, GetCurrentCommandId(false),
                                 LockTupleNoKeyExclusive, LockWaitSkip, 0, &failure);
            if (result == TM_Ok) {
                locked[i] = 1;
                ++count;
            }
            ExecClearTuple(slot);
        }
        ExecDropSingleTupleTableSlot(slot);
        table_close(relation, NoLock);
    });
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < locked.size(); ++i)
        if (locked[i] != 0)
            indexes.push_back(i);
    return indexes;
}

} // namespace qinglong::pg
