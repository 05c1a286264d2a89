#include "qinglong_sched/pg/row_version.hpp"

namespace qinglong::pg {

namespace {

Datum text_datum(std::string_view text) {
    return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

Row copy_columns(TupleTableSlot* slot, const AttrNumber* numbers, std::size_t count) {
    auto* const values = static_cast<Datum*>(palloc(sizeof(Datum) * count));
    auto* const nulls = static_cast<bool*>(palloc(sizeof(bool) * count));
    for (std::size_t i = 0; i < count; ++i) {
        const Form_pg_attribute attribute = TupleDescAttr(slot->tts_tupleDescriptor, numbers[i] - 1);
        values[i] = slot_getattr(slot, numbers[i], &nulls[i]);
        if (!nulls[i])
            values[i] = datumCopy(values[i], attribute->attbyval, attribute->attlen);
    }
    return Row(values, nulls);
}

Version to_version(TupleTableSlot* slot, const AttrNumber* numbers, std::size_t count) {
    auto* const row_id = static_cast<ItemPointer>(palloc(sizeof(ItemPointerData)));
    *row_id = slot->tts_tid;
    bool null;
    const Datum writer = slot_getsysattr(slot, MinTransactionIdAttributeNumber, &null);
    return {PointerGetDatum(row_id), DatumGetTransactionId(writer), false,
            copy_columns(slot, numbers, count)};
}

} // namespace

void check_access(Relation table, AclMode right) {
    const Oid oid = RelationGetRelid(table);
    const AclResult allowed = pg_class_aclcheck(oid, GetUserId(), right);
    if (allowed != ACLCHECK_OK)
        aclcheck_error(allowed, OBJECT_TABLE, RelationGetRelationName(table));
}

AttrNumber* column_numbers(Relation table, Columns columns) {
    auto* const numbers = static_cast<AttrNumber*>(palloc(sizeof(AttrNumber) * columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) {
        numbers[i] = get_attnum(RelationGetRelid(table), columns[i]);
        if (numbers[i] == InvalidAttrNumber)
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_COLUMN),
                            errmsg("column \"%s\" of relation \"%s\" does not exist", columns[i],
                                   RelationGetRelationName(table))));
    }
    return numbers;
}

std::vector<std::size_t> indexes_of(const std::vector<char>& flags) {
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < flags.size(); ++i)
        if (flags[i] != 0)
            indexes.push_back(i);
    return indexes;
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

std::vector<Version> find_rows(Find what, Oid table, Columns columns, std::span<const Value> keys) {
    std::vector<Version> versions(keys.size()); // of keys of one column
    const std::size_t count = pgcall([&] {
        Relation const heap = table_open(table, AccessShareLock);
        check_access(heap, ACL_SELECT);
        const Oid index = primary_key(heap);
        if (!OidIsValid(index))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                            errmsg("table \"%s\" has no primary key", RelationGetRelationName(heap))));
        Relation const tree = index_open(index, AccessShareLock);
        const auto key_columns = static_cast<std::size_t>(IndexRelationGetNumberOfKeyAttributes(tree));
        const std::size_t rows = keys.size() / key_columns;
        const AttrNumber* const numbers = column_numbers(heap, columns);
        TupleTableSlot* const slot = table_slot_create(heap, nullptr);
        Snapshot const snapshot = RegisterSnapshot(GetTransactionSnapshot());
        IndexScanDesc const scan = begin_index_scan(
            heap, tree, what == Find::latest ? SnapshotSelf : snapshot, static_cast<int>(key_columns));
        for (std::size_t i = 0; i < rows; ++i) {
            ScanKeyData key[INDEX_MAX_KEYS];
            for (std::size_t k = 0; k < key_columns; ++k)
                ScanKeyInit(&key[k], static_cast<AttrNumber>(k + 1), BTEqualStrategyNumber,
                            tree->rd_opcintype[k] == INT4OID ? F_INT4EQ : F_TEXTEQ,
                            keys[i * key_columns + k].datum);
            index_rescan(scan, key, static_cast<int>(key_columns), nullptr, 0);
            if (!index_getnext_slot(scan, ForwardScanDirection, slot))
                continue;
            versions[i] = to_version(slot, numbers, columns.size());
            versions[i].visible =
                what == Find::visible || table_tuple_satisfies_snapshot(heap, slot, snapshot);
        }
        index_endscan(scan);
        UnregisterSnapshot(snapshot);
        ExecDropSingleTupleTableSlot(slot);
        index_close(tree, NoLock);
        table_close(heap, NoLock);
        return rows;
    });
    versions.resize(count);
    return versions;
}

RowScan::RowScan(Oid table, const char* index, Columns columns, Bound bound, std::int64_t value,
                 const std::optional<Start>& start)
    : columns_(columns) {
    pgcall([&] {
        heap_ = table_open(table, AccessShareLock);
        check_access(heap_, ACL_SELECT);
        const Oid oid = get_relname_relid(index, RelationGetNamespace(heap_));
        if (!OidIsValid(oid))
            ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("index \"%s\" does not exist", index)));
        tree_ = index_open(oid, AccessShareLock);
        numbers_ = column_numbers(heap_, columns_);
        slot_ = table_slot_create(heap_, nullptr);
        snapshot_ = RegisterSnapshot(GetTransactionSnapshot());
        const int count = start ? 2 : 1;
        scan_ = begin_index_scan(heap_, tree_, snapshot_, count);
        ScanKeyData keys[2];
        if (bound == Bound::at_most)
            ScanKeyInit(&keys[0], 1, BTLessEqualStrategyNumber, F_INT8LE, Int64GetDatum(value));
        else
            ScanKeyInit(&keys[0], 1, BTGreaterStrategyNumber, F_INT8GT, Int64GetDatum(value));
        if (start) { // ROW(...) >= ROW(...); the scan refers to its members
            auto* const members = static_cast<ScanKey>(palloc0(3 * sizeof(ScanKeyData)));
            const auto member = [&](int i, Oid collation, RegProcedure compare, Datum datum) {
                ScanKeyEntryInitialize(&members[i], SK_ROW_MEMBER | (i == 2 ? SK_ROW_END : 0),
                                       static_cast<AttrNumber>(i + 1), BTGreaterEqualStrategyNumber,
                                       InvalidOid, collation, compare, datum);
            };
            member(0, InvalidOid, F_BTINT8CMP, Int64GetDatum(start->number));
            member(1, C_COLLATION_OID, F_BTTEXTCMP, text_datum(start->first));
            member(2, C_COLLATION_OID, F_BTTEXTCMP, text_datum(start->second));
            keys[1] = {};
            keys[1].sk_flags = SK_ROW_HEADER;
            keys[1].sk_attno = 1;
            keys[1].sk_strategy = BTGreaterEqualStrategyNumber;
            keys[1].sk_argument = PointerGetDatum(members);
        }
        index_rescan(scan_, keys, count, nullptr, 0);
    });
}

bool RowScan::next(Version& version) {
    return pgcall([&] {
        // Asked again at the end, an index would begin anew.
        while (!at_end_ && index_getnext_tid(scan_, ForwardScanDirection) != nullptr) {
            if (!index_fetch_heap(scan_, slot_)) {
                ++dead_;
                continue;
            }
            version = to_version(slot_, numbers_, columns_.size());
            version.visible = true;
            return true;
        }
        at_end_ = true;
        return false;
    });
}

void RowScan::close() {
    pgcall([&] {
        index_endscan(scan_);
        UnregisterSnapshot(snapshot_);
        ExecDropSingleTupleTableSlot(slot_);
        index_close(tree_, NoLock);
        table_close(heap_, NoLock);
    });
}

std::vector<std::size_t> lock_versions(Oid table, const std::vector<Datum>& row_ids) {
    std::vector<char> locked(row_ids.size(), 0);
    pgcall([&] {
        PreventCommandIfReadOnly("scheduling");
        Relation const relation = table_open(table, RowShareLock);
        check_access(relation, ACL_UPDATE); // what SELECT ... FOR UPDATE would ask for
        TupleTableSlot* const slot = table_slot_create(relation, nullptr);
        for (std::size_t i = 0; i < row_ids.size(); ++i) {
            auto* const row_id = reinterpret_cast<ItemPointer>(DatumGetPointer(row_ids[i]));
            TM_FailureData failure;
            const TM_Result result =
                table_tuple_lock(relation, row_id, GetActiveSnapshot(), slot, GetCurrentCommandId(false),
                                 LockTupleNoKeyExclusive, LockWaitSkip, 0, &failure);
            locked[i] = result == TM_Ok ? 1 : 0;
            ExecClearTuple(slot);
        }
        ExecDropSingleTupleTableSlot(slot);
        table_close(relation, NoLock);
    });
    return indexes_of(locked);
}

} // namespace qinglong::pg
