#include "qinglong_sched/pg/row_version.hpp"

namespace qinglong::pg {

namespace {

Row copy_columns(Relation table, TupleTableSlot* slot, Columns columns) {
    auto* const values = static_cast<Datum*>(palloc(sizeof(Datum) * columns.size()));
    auto* const nulls = static_cast<bool*>(palloc(sizeof(bool) * columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) {
        const AttrNumber number = column_number(table, columns[i]);
        const Form_pg_attribute attribute = TupleDescAttr(RelationGetDescr(table), number - 1);
        values[i] = slot_getattr(slot, number, &nulls[i]);
        if (!nulls[i])
            values[i] = datumCopy(values[i], attribute->attbyval, attribute->attlen);
    }
    return Row(values, nulls);
}

} // namespace

AttrNumber column_number(Relation table, const char* name) {
    const AttrNumber number = get_attnum(RelationGetRelid(table), name);
    if (number == InvalidAttrNumber)
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_COLUMN), errmsg("column \"%s\" of relation \"%s\" does not exist",
                                                           name, RelationGetRelationName(table))));
    return number;
}

Oid table_oid(const char* schema, const char* name) {
    return pgcall([&] {
        const Oid oid = get_relname_relid(name, get_namespace_oid(schema, false));
        if (!OidIsValid(oid))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE),
                            errmsg("relation \"%s.%s\" does not exist", schema, name)));
        return oid;
    });
}

std::vector<Version> find_versions(const char* schema, const char* table, const char* index, Columns columns,
                                   const std::vector<std::pair<std::string_view, std::string_view>>& keys) {
    const Oid table_id = table_oid(schema, table);
    const Oid index_id = table_oid(schema, index);
    std::vector<Version> versions(keys.size());
    pgcall([&] {
        const AclResult allowed = pg_class_aclcheck(table_id, GetUserId(), ACL_SELECT);
        if (allowed != ACLCHECK_OK)
            aclcheck_error(allowed, OBJECT_TABLE, get_rel_name(table_id));
        Relation const heap = table_open(table_id, AccessShareLock);
        Relation const tree = index_open(index_id, AccessShareLock);
        TupleTableSlot* const slot = table_slot_create(heap, nullptr);
        Snapshot const snapshot = RegisterSnapshot(GetTransactionSnapshot());
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
            bool null;
            versions[i].row_id = PointerGetDatum(row_id);
            versions[i].writer =
                DatumGetTransactionId(slot_getsysattr(slot, MinTransactionIdAttributeNumber, &null));
            versions[i].visible = table_tuple_satisfies_snapshot(heap, slot, snapshot);
            versions[i].row = copy_columns(heap, slot, columns);
        }
        index_endscan(scan);
        UnregisterSnapshot(snapshot);
        ExecDropSingleTupleTableSlot(slot);
        index_close(tree, AccessShareLock);
        table_close(heap, AccessShareLock);
    });
    return versions;
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
