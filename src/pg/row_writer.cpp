#include "qinglong_sched/pg/row_writer.hpp"

namespace qinglong::pg {

namespace {

// Everything in here may ereport: only for use inside pgcall().

struct Target {
    Relation table;
    EState* state;
    ResultRelInfo* result;
    const AttrNumber* numbers; // of the columns
};

Target open_target(Oid table_id, Columns columns, AclMode right) {
    PreventCommandIfReadOnly("scheduling");
    Relation const table = table_open(table_id, RowExclusiveLock);
    check_access(table, right);
    const AttrNumber* const numbers = column_numbers(table, columns);
    Bitmapset* written = nullptr;
    for (std::size_t i = 0; i < columns.size(); ++i)
        written = bms_add_member(written, numbers[i] - FirstLowInvalidHeapAttributeNumber);
    EState* const state = CreateExecutorState();
    init_range_table(state, table, right, written);
    ResultRelInfo* const result = makeNode(ResultRelInfo);
    InitResultRelInfo(result, table, 1, nullptr, 0);
    state->es_opened_result_relations = list_make1(result); // where triggers look for it
    state->es_output_cid = GetCurrentCommandId(true);
    state->es_snapshot = GetActiveSnapshot();
    AfterTriggerBeginQuery();
    ExecOpenIndices(result, false);
    return {table, state, result, numbers};
}

void close_target(const Target& target) {
    AfterTriggerEndQuery(target.state);
    ExecCloseIndices(target.result);
    ExecResetTupleTable(target.state->es_tupleTable, false);
    FreeExecutorState(target.state);
    table_close(target.table, NoLock);
    CommandCounterIncrement();
}

void set_columns(TupleTableSlot* slot, const Target& target, std::span<const Value> row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
        slot->tts_values[target.numbers[i] - 1] = row[i].datum;
        slot->tts_isnull[target.numbers[i] - 1] = row[i].null;
    }
}

} // namespace

std::size_t insert_rows(Oid table, Columns columns, std::span<const Value> values) {
    return pgcall([&] {
        const Target target = open_target(table, columns, ACL_INSERT);
        EState* const state = target.state;
        const std::size_t count = values.size() / columns.size();
        TransitionCaptureState* const capture =
            MakeTransitionCaptureState(target.table->trigdesc, table, CMD_INSERT);
        ExecBSInsertTriggers(state, target.result);
        auto** const slots = static_cast<TupleTableSlot**>(palloc(sizeof(TupleTableSlot*) * count));
        std::size_t kept = 0;
        for (std::size_t i = 0; i < count; ++i) {
            TupleTableSlot* const slot = table_slot_create(target.table, &state->es_tupleTable);
            ExecStoreAllNullTuple(slot);
            set_columns(slot, target, values.subspan(i * columns.size(), columns.size()));
            if (target.table->trigdesc != nullptr && target.table->trigdesc->trig_insert_before_row) {
                if (!ExecBRInsertTriggers(state, target.result, slot))
                    continue;
                ExecMaterializeSlot(slot); // a trigger's row lives for one row only
            }
            if (target.table->rd_att->constr != nullptr) {
                if (target.table->rd_att->constr->has_generated_stored)
                    ExecComputeStoredGenerated(target.result, state, slot, CMD_INSERT);
                ExecConstraints(target.result, slot, state);
            }
            ResetPerTupleExprContext(state);
            slots[kept++] = slot;
        }
        if (kept > 0)
            table_multi_insert(target.table, slots, static_cast<int>(kept), state->es_output_cid, 0, nullptr);
        for (std::size_t i = 0; i < kept; ++i) {
            List* const recheck = insert_index_tuples(target.result, slots[i], state);
            ExecARInsertTriggers(state, target.result, slots[i], recheck, capture);
            list_free(recheck);
            ResetPerTupleExprContext(state);
        }
        ExecASInsertTriggers(state, target.result, capture);
        close_target(target);
        return kept;
    });
}

void update_rows(Oid table, Columns columns, const std::vector<Datum>& row_ids,
                 std::span<const Value> values) {
    pgcall([&] {
        const Target target = open_target(table, columns, ACL_UPDATE);
        TupleTableSlot* const old_row = table_slot_create(target.table, &target.state->es_tupleTable);
        TupleTableSlot* const new_row = table_slot_create(target.table, &target.state->es_tupleTable);
        EPQState recheck; // by row triggers; never of a row that is locked
        init_recheck(&recheck, target.state);
        for (std::size_t i = 0; i < row_ids.size(); ++i) {
            auto* const row_id = reinterpret_cast<ItemPointer>(DatumGetPointer(row_ids[i]));
            if (!table_tuple_fetch_row_version(target.table, row_id, SnapshotAny, old_row))
                elog(ERROR, "a locked row is gone");
            slot_getallattrs(old_row);
            ExecClearTuple(new_row);
            const auto size = static_cast<std::size_t>(RelationGetNumberOfAttributes(target.table));
            std::memcpy(new_row->tts_values, old_row->tts_values, size * sizeof(Datum));
            std::memcpy(new_row->tts_isnull, old_row->tts_isnull, size * sizeof(bool));
            set_columns(new_row, target, values.subspan(i * columns.size(), columns.size()));
            ExecStoreVirtualTuple(new_row);
            ExecSimpleRelationUpdate(target.result, target.state, &recheck, old_row, new_row);
            ExecClearTuple(old_row);
            ResetPerTupleExprContext(target.state);
        }
        EvalPlanQualEnd(&recheck);
        close_target(target);
    });
}

} // namespace qinglong::pg
